"""The few numbers of a version that pages ask for again and again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dataflow_ops.errors import CorruptOutput
from dataflow_ops.pipeline.report_file import read_report, report_uri
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.storage.opening import Root, open_store


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """Out of a version's manifest.

    Attributes:
        documents: distinct ones.
        tokens: with repetitions.
        tokens_estimated: whether no tokenizer counted them.
        dead_letters: what could not be processed.
        domains: ``domain, documents, tokens, share``, most tokens first.
        steps: step -> ``in, kept, rules, …``.
        job: settings that shaped it.
    """

    documents: int
    tokens: int
    tokens_estimated: bool
    dead_letters: int
    domains: tuple[Mapping[str, Any], ...]
    steps: Mapping[str, Mapping[str, Any]]
    job: Mapping[str, Any]


def facts_of(root: Root, record: VersionRecord) -> VersionFacts | None:
    """Facts of a version; None where its manifest is no longer stored."""
    try:
        return _facts(root, record.manifest_uri, record.manifest_sha256)
    except CorruptOutput:
        return None


@lru_cache(maxsize=512)
def _facts(root: Root, uri: str, sha256: str) -> VersionFacts:
    """By content: a manifest never changes, and one of many chunks takes a moment to read."""
    manifest = json.loads(open_store(root).read(uri))
    totals = manifest["totals"]
    documents = {row["domain"]: row["documents"] for row in manifest["plan"]["domains"]}
    whole = totals["tokens"] or 1
    domains = [
        {
            "domain": name,
            # What builds on another counts them itself: its plan is of its own documents.
            "documents": cell.get("documents", documents.get(name, cell["rows"])),
            "tokens": cell["tokens"],
            "share": cell["tokens"] / whole,
        }
        for name, cell in totals["by_domain"].items()
    ]
    domains.sort(key=lambda row: (-row["tokens"], row["domain"]))
    return VersionFacts(
        totals["documents"],
        totals["tokens"],
        manifest["tokens_estimated"],
        manifest["dead_letters"],
        tuple(domains),
        {step["name"]: step for step in manifest["steps"]},
        manifest["job"],
    )


Drifts = tuple[Mapping[str, Any], ...]


def drift_of(root: Root, version_id: str) -> tuple[Drifts | None, str | None]:
    """How far a version moved by its report, and from which one; None where that isn't known.

    A version without a report, or with a damaged one, has no drift that is known; an older report doesn't say
    what it was compared with.
    """
    there = open_store(root).stat(report_uri(version_id))
    return (None, None) if there is None else _drift(root, version_id, *there)


@lru_cache(maxsize=512)
def _drift(root: Root, version_id: str, size: int, mtime_ns: int) -> tuple[Drifts | None, str | None]:
    """By what tells one writing of the file from the next."""
    del size, mtime_ns
    found, _ = read_report(open_store(root), version_id)
    if found is None:
        return None, None
    return tuple(found.get("drift") or ()), found.get("drift_against")
