"""A comparison of two versions in words: why one document moved, and the whole as lines for a person."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dataflow_ops.observe.diff import CHANGES, OTHER_SURVIVOR

TITLES: Mapping[str, str] = {
    "sources": "other files, or other bytes in them",
    "parser": "the same bytes give other records or text",
    "rules": "a rule refuses the text, or no longer does",
    "dedup": "it is a duplicate, or no longer is",
    "mixing": "the mix draws it, or no longer does",
    "unknown": "what would tell is no longer kept",
}
"""Cause -> what it means."""


def why(row: Mapping[str, Any]) -> str:
    """One sentence about a row of ``MOVED`` whose cause a verdict tells, as the other version's."""
    other = {"removed": "B", "added": "A"}[row["change"]]
    if row["other_fate"] == "duplicate":
        like = row["other_similarity"]
        similar = "" if like is None or row["other_rule"] == "exact" else f", similarity {like:.3f}"
        told = f"{row['other_rule']} duplicate of {_hex(row['other_survivor_id'])} in {other}{similar}"
        own = {"removed": "A", "added": "B"}[row["change"]]
        return told + (f", where {own} removed that one" if row.get("by") == OTHER_SURVIVOR else "")
    if row["other_fate"] == "not_sampled":
        return f"kept in {other}, but not drawn by its mix"
    return f"refused in {other} by {row['other_rule']}{_comparison(row)}"


def _comparison(row: Mapping[str, Any]) -> str:
    value, bound = row["other_value"], row["other_bound"]
    if value is None or math.isnan(value):
        return ""
    if bound is None or not math.isfinite(bound):
        return f": {value:.6g}"
    return f": {value:.6g} is {'below' if value < bound else 'above'} {bound:.6g}"


def as_text(found: Mapping[str, Any]) -> str:
    """The result of a comparison as lines."""
    d, tokens = found["documents"], found["tokens"]
    lines = [
        f"A  {found['a']}: {d['a']:,} documents, {tokens['a']:,} tokens",
        f"B  {found['b']}: {d['b']:,} documents, {tokens['b']:,} tokens",
        f"in both {d['same']:,} ({_changed(d)}), only in A {d['removed']:,}, only in B {d['added']:,}",
    ]
    if not found["causes"]:
        lines.append("No document moved.")
    for cause in found["causes"]:
        counts = ", ".join(f"{cause[c]:,} {c}" for c in CHANGES if cause[c])
        lines += ["", f"{cause['cause']}: {counts} ({TITLES[cause['cause']]})"]
        for row in cause["by"]:
            numbers = ", ".join(f"{row[c]:,} {c}" for c in CHANGES if row[c])
            lines.append(f"  {row['name'] or '-'}: {numbers}")
        for one in cause["examples"]:
            lines.append(f"    {one['change']} {one['doc_id']} {one['source']}: {one['path']}: {one['why']}")
    if found["settings"]:
        lines += ["", "Settings that differ:"]
        lines += [f"  {s['key']}: {_shown(s['a'])} -> {_shown(s['b'])}" for s in found["settings"]]
    lines += [f"note: {note}" for note in found["notes"]]
    return "\n".join("".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line) for line in lines)


def _changed(documents: Mapping[str, int]) -> str:
    text = f"{documents['changed']:,} of them with another text"
    return text + (f", {documents['uncompared']:,} not compared" if documents["uncompared"] else "")


def _shown(value: Any) -> str:
    return "(none)" if value is None else str(value)


def _hex(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
