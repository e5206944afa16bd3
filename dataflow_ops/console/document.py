"""One document's way through a version, step by step, for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.errors import ConfigError, CorruptOutput
from dataflow_ops.observe.evidence import RuleNote
from dataflow_ops.observe.lineage import Lineage, find
from dataflow_ops.pipeline.find import read_texts
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.look import rule_notes
from dataflow_ops.pipeline.version_reader import OpenVersion, open_version
from dataflow_ops.schema import DOC_ID
from dataflow_ops.state.store import StateStore

MAX_TEXT = 200_000
"""Characters of a text that are handed out."""

_STATUS = {
    "exported": "kept",
    "kept": "kept",
    "rejected": "removed",
    "duplicate": "removed",
    "not_sampled": "not_sampled",
    "dead": "dead",
}


def document(
    home: Home,
    state: StateStore,
    doc_id: str,
    *,
    dataset: str | None = None,
    version: str | None = None,
    with_text: bool = False,
) -> dict[str, Any]:
    """Everything known about one document.

    Args:
        home: where versions are.
        state: open state store.
        doc_id: 32 hex digits, a unique start of them, or its URL.
        dataset: look only among its versions.
        version: the version; the current one when left out.
        with_text: whether the text may be shown.

    Returns:
        ``doc_id, status, steps, source, file, record, part, url, duplicates, survivor, text`` and, beside
        them, ``dataset, version, survivor_detail, shard, labels, detail, cli``.

    A step's verdict is ``kept``, ``rejected``, ``removed``, ``not_sampled`` or ``dead``.

    Raises:
        ConfigError: nothing in the version has this id or URL, or several documents have it.
        VersionError: no such version.
    """
    opened, found, kept = _found(open_version(home, state, version, dataset), doc_id)
    notes = rule_notes(opened.steps)
    text = _text(opened, found) if with_text else None
    return {
        "doc_id": found.doc_id,
        "dataset": opened.record.dataset,
        "version": opened.holder,
        "status": _STATUS[found.fate],
        "steps": _steps(found, notes),
        "source": found.source_id,
        "file": found.path,
        "record": None if found.position < 0 else found.position,
        "part": found.part,
        "url": found.url,
        "duplicates": found.copies,
        "survivor": found.survivor_id or None,
        "survivor_detail": _survivor(found, opened.settings.dedup.verify.min_similarity),
        "shard": opened.shard(found.shard) or None,
        "labels": {k: v for k, v in found.labels.items() if k not in ("verdict", "copies", "text_bytes")},
        "detail": found.detail
        if kept
        else "the outputs of the run are no longer kept: its lineage tells this",
        "text": text,
        "cli": f"dataflow lineage {found.doc_id} --run {opened.run.run_id}",
    }


def _found(top: OpenVersion, doc_id: str) -> tuple[OpenVersion, Lineage, bool]:
    """The part of a version that has a document, its lineage there, and whether all that tells is kept."""
    for place, part in enumerate(top.parts[::-1], 1):
        try:
            opened, found, kept = _in(part, doc_id)
        except ConfigError:
            if place == len(top.parts):
                raise
            continue
        if (
            found.doc_id
            and pc.is_in(pa.scalar(bytes.fromhex(found.doc_id), DOC_ID), value_set=part.hidden).as_py()
        ):
            raise ConfigError(
                f"document {found.doc_id} of {part.record.version_id} was replaced: its file was read again"
            )
        if found.survivor_id and found.survivor is None:
            found = replace(found, survivor=_below(top, found.survivor_id))
        return opened, found, kept
    raise AssertionError("a version has at least one part")


def _below(top: OpenVersion, doc_id: str) -> Lineage | None:
    """A survivor in a version below: by its lineage alone."""
    for part in top.parts[::-1]:
        try:
            return find(part.lineage_reader, doc_id)
        except ConfigError:
            continue
    return None


def _in(version: OpenVersion, doc_id: str) -> tuple[OpenVersion, Lineage, bool]:
    try:
        return version, find(version.reader, doc_id, rule_notes(version.steps)), True
    except CorruptOutput:
        return version, find(version.lineage_reader, doc_id), False


def _steps(found: Lineage, notes: Sequence[RuleNote]) -> list[dict[str, Any]]:
    """One row per step, and per rule inside the filter, up to where its fate was decided."""
    if found.fate == "dead":
        return [_row(found.step, "dead", found.error, detail=found.message)]
    rows = []
    if found.step != "parse":
        rows.append(_row("parse", "kept", detail=found.parser))
    for rule in found.passed:
        value = rule.value if _real(rule.value) is not None else rule.floor
        rows.append(_row("filter", "kept", rule.name, value, rule.low, rule.high, rule.version))
    if found.fate == "rejected":
        return [*rows, _rejected(found, notes)]
    if found.fate == "duplicate":
        return [*rows, _row("confirm", "removed", found.rule, found.similarity)]
    copies = f"stands for {found.copies:,} removed duplicate(s)" if found.copies else ""
    rows.append(_row("confirm", "kept", detail=copies))
    if found.labels:
        told = ("domain", "language", "kind", "quality_level", "tokens")
        labels = ", ".join(f"{k} {found.labels[k]}" for k in told if found.labels.get(k) not in (None, ""))
        rows.append(_row("label", "kept", detail=labels))
    if found.fate == "not_sampled":
        plan = _row("plan", "not_sampled", found.rule or None, found.value, None, found.bound)
        return [*rows, {**plan, "detail": found.detail}]
    if found.fate == "exported":
        rows += [_row("plan", "kept"), _row("export", "kept", detail=found.shard)]
    return rows


def _rejected(found: Lineage, notes: Sequence[RuleNote]) -> dict[str, Any]:
    note = next((n for n in notes if n.name == found.rule), None)
    low = found.bound if found.side == "low" else None
    high = found.bound if found.side == "high" else None
    if not found.side and _real(found.bound) is not None and _real(found.value) is not None:
        below = (found.value or 0.0) < (found.bound or 0.0)
        low, high = (found.bound, None) if below else (None, found.bound)
    version = note.version if note is not None and found.step == "filter" else ""
    return _row(found.step, "rejected", found.rule, found.value, low, high, version)


def _row(
    step: str,
    verdict: str,
    rule: str | None = None,
    value: float | None = None,
    low: float | None = None,
    high: float | None = None,
    version: str = "",
    detail: str = "",
) -> dict[str, Any]:
    return {
        "step": step,
        "verdict": verdict,
        "rule": rule,
        "value": _real(value),
        "low": _real(low),
        "high": _real(high),
        "version": version or None,
        "detail": detail,
    }


def _real(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _survivor(found: Lineage, enough: float) -> dict[str, Any] | None:
    if not found.survivor_id:
        return None
    other = found.survivor
    return {
        "doc_id": found.survivor_id,
        "similarity": _real(found.similarity),
        "enough": enough if found.rule == "near" else None,
        "status": _STATUS[other.fate] if other is not None else None,
        "source": other.source_id if other is not None else None,
        "file": other.path if other is not None else None,
        "shard": (other.shard or None) if other is not None else None,
    }


def _text(version: OpenVersion, found: Lineage) -> str | None:
    if found.row < 0:
        return None
    return next(iter(read_texts(version, [(found.chunk, found.row)]).values()), "")[:MAX_TEXT] or None
