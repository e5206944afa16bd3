"""What became of every document of a version, out of the manifest's counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FATES: tuple[tuple[str, str], ...] = (
    ("exported", "exported"),
    ("not_sampled", "not drawn by the mix"),
    ("duplicate", "duplicates"),
    ("rejected", "rejected"),
    ("dead", "dead"),
)
"""``(fate as in the lineage files, how it is told)``."""


def fates_of(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Fate -> documents, of all that the parsers read.

    ``scatter`` writes one fate for each document, so its counts are those of the lineage files; what died
    before it are the dead letters that the steps counted.
    """
    steps = {step["name"]: step for step in manifest["steps"]}
    scatter = steps.get("scatter", {"kept": 0, "skipped": {}})
    aside = scatter["skipped"]
    return {
        "exported": scatter["kept"],
        "not_sampled": aside.get("not_sampled", 0),
        "duplicate": aside.get("duplicate", 0),
        "rejected": aside.get("rejected_before", 0),
        "dead": sum(step["dead"] for step in manifest["steps"]),
    }


def fates_line(manifest: Mapping[str, Any]) -> str:
    """One line whose parts add up to its first number."""
    fates = fates_of(manifest)
    # A long record may be cut into several documents, each with a fate of its own.
    parse = next((step for step in manifest["steps"] if step["name"] == "parse"), None)
    whole = sum(fates.values())
    noun = "records" if parse is not None and parse["in"] == whole else "documents"
    line = f"{whole:,} {noun}: " + ", ".join(f"{fates[key]:,} {words}" for key, words in FATES)
    given_up = manifest["dead_letters"] - fates["dead"]
    return line + (f"; and {given_up:,} chunk(s) given up unread" if given_up else "")


def replaced_documents(manifest: Mapping[str, Any], below: Mapping[str, Any]) -> int:
    """Documents of the version below that a version replaced: below, less these, and its own come to it all.

    Its tombstones are more where duplicates or rejected documents were replaced, which were in no version.

    Args:
        manifest: of a version that builds on another.
        below: manifest of that one.
    """
    before: int = below["totals"]["documents"]
    return before + int(manifest["own"]["documents"]) - int(manifest["totals"]["documents"])
