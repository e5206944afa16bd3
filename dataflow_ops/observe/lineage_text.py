"""A document's lineage as plain text for the console, and as a mapping for JSON."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from dataflow_ops.observe.evidence import PassedRule
from dataflow_ops.observe.lineage import Lineage


def as_dict(one: Lineage) -> dict[str, Any]:
    """JSON-able form; empty fields are left out, NaN becomes null."""
    out: dict[str, Any] = {}
    for item in dataclasses.fields(one):
        value = getattr(one, item.name)
        if item.name == "survivor":
            value = as_dict(value) if value is not None else None
        elif item.name == "passed":
            value = [_plain(dataclasses.asdict(rule)) for rule in value]
        elif item.name == "labels":
            value = _plain(dict(value))
        if value in (None, "", [], {}) or (item.name == "row" and value < 0):
            continue
        out[item.name] = _number(value)
    return out


def as_text(one: Lineage, indent: str = "") -> str:
    """Several lines in plain English: where it comes from, what became of it, and why."""
    lines = [f"document   {one.doc_id or '(none: a whole file)'}", f"fate       {_sentence(one)}"]
    where = one.path if one.position < 0 else f"{one.path}, at {one.position}"
    lines.append(f"source     {one.source_id}: {where}" + (f", part {one.part}" if one.part else ""))
    if one.record_id:
        lines.append(f"record id  {one.record_id}")
    if one.url:
        lines.append(f"url        {one.url}")
    if one.parser:
        lines.append(f"parser     {one.parser}")
    if one.detail:
        lines.append(f"note       {one.detail}")
    if one.copies:
        lines.append(f"stands for {one.copies} duplicate{'s' if one.copies != 1 else ''} besides itself")
    if one.labels:
        lines.append("labels     " + ", ".join(f"{k} {_short(v)}" for k, v in one.labels.items() if v != ""))
    if one.passed:
        lines.append("passed")
        for rule in one.passed:
            version = f"@{rule.version}" if rule.version else ""
            bounds = _bounds(rule.low, rule.high)
            lines.append(f"  {rule.gate or '-':3} {rule.name}{version} {_measured(rule)}{bounds}")
    # Hostile names must not move the cursor or forge lines.
    text = "\n".join(indent + _printable(line) for line in lines)
    if one.survivor is not None:
        text += f"\n{indent}its survivor:\n" + as_text(one.survivor, indent + "  ")
    return text


def _sentence(one: Lineage) -> str:
    if one.fate == "exported":
        of = f" of version {one.version}" if one.version else ""
        return f"exported to {one.shard}{of}" if one.shard else "exported"
    if one.fate == "rejected":
        gate = f" (gate {one.gate})" if one.gate else ""
        return f"rejected in {one.step} by {one.rule}{gate}{_comparison(one)}"
    if one.fate == "duplicate":
        like = "" if one.similarity is None else f", similarity {one.similarity:.3f}"
        kind = f"{one.rule} duplicate" if one.rule in ("exact", "near") else "duplicate"
        return f"{kind} of {one.survivor_id}{like}"
    if one.fate == "not_sampled":
        why = f": {one.rule}" if one.rule else ": its domain had more tokens than the mixing plan takes"
        return "kept by every step, but not drawn" + why + _comparison(one)
    if one.fate == "dead":
        return f"dead in {one.step}: {one.error}: {one.message}"
    return f"kept so far (after {one.step}); the run has not exported yet"


def _comparison(one: Lineage) -> str:
    if one.value is None or math.isnan(one.value):
        return ""
    if one.bound is None or math.isnan(one.bound):
        return f": {_short(one.value)}"
    side = one.side or ("low" if one.value < one.bound else "high")
    return f": {_short(one.value)} is {'below' if side == 'low' else 'above'} {_short(one.bound)}"


def _measured(rule: PassedRule) -> str:
    """The value, or how a document passes without one: a cheap floor already reached the bound."""
    if rule.value is not None and not math.isnan(rule.value):
        return _short(rule.value)
    if rule.floor is not None and not math.isnan(rule.floor):
        return f"passed by its floor {_short(rule.floor)}, not measured"
    return "not measured"


def _bounds(low: float | None, high: float | None) -> str:
    parts = ([f"at least {_short(low)}"] if low is not None else []) + (
        [f"at most {_short(high)}"] if high is not None else []
    )
    return f"  ({', '.join(parts)})" if parts else ""


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {k: _number(list(v) if isinstance(v, tuple) else v) for k, v in row.items()}


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line)
