"""What became of one document, and why: from the lineage that export wrote, or from what ran so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.errors import ConfigError
from dataflow_ops.observe.chunks import Chunks
from dataflow_ops.observe.evidence import PassedRule, RuleNote, describe
from dataflow_ops.observe.flow import DEAD_STEPS
from dataflow_ops.observe.ids import full_id, is_id, rows_with_prefix
from dataflow_ops.observe.reader import StepReader, take_rows

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Lineage:
    """The answer about one document.

    Attributes:
        doc_id: 32 hex digits.
        fate: ``exported``, ``rejected``, ``duplicate``, ``not_sampled``, ``dead``, or ``kept`` (not
            removed so far; the run ended before its export).
        step: where that was decided.
        source_id: source, ``path`` inside it, ``position`` (byte offset; Parquet: row; tables: key) and
            ``part``.
        record_id: the id that the record has in its source (of a table: its key), where it has one.
        rule: what rejected it, with its ``value``, the ``bound``, the ``side`` and the ``gate``.
        detail: a sentence more, where the step gave one.
        survivor: for duplicates the document that stands for it, with its own fate.
        similarity: edit similarity to the survivor.
        copies: how many removed duplicates this document stands for.
        shard: where it was exported to, in the folder of ``version`` where that is known.
        labels: domain, language, quality level, tokens, … where it was labelled.
        passed: rules it passed, with versions.
        error: of dead letters: error class, ``message`` and ``parser``.
        chunk: chunk id (16 hex digits) and ``row`` of its text; ``""`` and -1 where it has none.

    """

    doc_id: str
    fate: str
    step: str
    source_id: str = ""
    path: str = ""
    position: int = -1
    part: int = 0
    url: str = ""
    record_id: str = ""
    rule: str = ""
    gate: str = ""
    value: float | None = None
    bound: float | None = None
    side: str = ""
    detail: str = ""
    survivor_id: str = ""
    survivor: Lineage | None = None
    similarity: float | None = None
    copies: int = 0
    shard: str = ""
    version: str = ""
    labels: Mapping[str, Any] = field(default_factory=dict)
    passed: tuple[PassedRule, ...] = ()
    error: str = ""
    message: str = ""
    parser: str = ""
    chunk: str = ""
    row: int = -1


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a document was met: one row of one output."""

    doc_id: str
    step: str
    kind: str
    chunk: str
    row: int


def find(reader: StepReader, key: str, rules: Sequence[RuleNote] = ()) -> Lineage:
    """Trace one document.

    Args:
        reader: where outputs are read.
        key: document id, a unique prefix of at least 4 hex digits of one, or a URL.
        rules: what the run's rules are called, their versions and bounds, for "passed".

    Raises:
        ConfigError: nothing has this id or URL, or several documents have it; they are named.

    """
    found = find_all(reader, key, rules, limit=_SHOWN + 1)
    if len(found) > 1:
        ids = ", ".join(one.doc_id or f"{one.path} at {one.position}" for one in found[:_SHOWN])
        more = ", …" if len(found) > _SHOWN else ""
        raise ConfigError(f"{key!r} is not unique; it fits {ids}{more}. Give the whole id of one.")
    return found[0]


def find_all(
    reader: StepReader, key: str, rules: Sequence[RuleNote] = (), limit: int = 100
) -> tuple[Lineage, ...]:
    """Trace every document that a prefix or URL fits, in order of chunk and row, at most ``limit``.

    Raises:
        ConfigError: nothing fits.

    """
    chunks = Chunks(reader)
    by_id = is_id(key) or not any(c in key for c in ":/.")
    wanted = full_id(key) if by_id else key.strip()
    places: dict[tuple[str, str, int], _Place] = {}
    for place in _places(chunks, wanted, by_id):
        # The same document stands in several outputs; the first place tells most.
        identity = (place.doc_id, "", 0) if place.doc_id else (place.kind, place.chunk, place.row)
        places.setdefault(identity, place)
        if len(places) >= limit or (by_id and len(wanted) == 32):
            break
    if not places:
        what = "document id" if by_id else "URL"
        raise ConfigError(
            f"no document of this run has the {what} {key!r}. Ids are 32 hex digits as in the shards'"
            " column 'id' and in `dataflow audit`. For a document of another run name that run: --run RUN"
            " ('dataflow versions show VERSION' names the run of a version)."
        )
    return tuple(_trace(chunks, place, rules, frozenset()) for place in places.values())


def _places(chunks: Chunks, key: str, by_id: bool) -> Iterator[_Place]:
    """Where the key occurs; finished lineage first, then ever earlier outputs."""
    kinds = [("scatter", "fates"), ("parse", "text"), ("parse", "rejects")]
    if by_id:
        kinds += [(step, "dead") for step in DEAD_STEPS]
    column = "doc_id" if by_id else "url"
    for step, kind in kinds:
        for chunk, output in chunks.index(step, kind).items():
            if output.rows == 0:
                continue
            table = chunks.reader.read(output, columns=(column,) if by_id else ("url", "doc_id"))
            if by_id:
                rows = rows_with_prefix(table[column], key).tolist()
            else:
                rows = pc.indices_nonzero(pc.equal(table["url"], key)).to_pylist()
            for row in rows:
                ident = table["doc_id"][row].as_py()
                yield _Place(ident.hex() if ident else "", step, kind, chunk, row)


def _trace(chunks: Chunks, place: _Place, rules: Sequence[RuleNote], seen: frozenset[str]) -> Lineage:
    output = chunks.index(place.step, place.kind)[place.chunk]
    row = take_rows(chunks.reader, output, [place.row], _COLUMNS.get(place.kind, ())).to_pylist()[0]
    if place.kind == "dead":
        return _dead(place, row)
    if place.kind == "rejects":
        return replace(
            _where(place, row), fate="rejected", step="parse", **_why(row), detail=row["detail"] or ""
        )
    if place.kind == "text":
        return _so_far(chunks, place, row, rules, seen)
    return _from_fate(chunks, place, row, rules, seen)


_COLUMNS = {
    "text": ("doc_id", "source_id", "path", "position", "part", "url", "parser"),
}


def _where(place: _Place, row: Mapping[str, Any]) -> Lineage:
    return Lineage(
        doc_id=place.doc_id,
        fate="",
        step=place.step,
        source_id=row["source_id"] or "",
        path=row["path"] or "",
        position=-1 if row["position"] is None else row["position"],
        part=row.get("part") or 0,
        url=row.get("url") or "",
        parser=row.get("parser") or "",
        chunk=place.chunk,
    )


def _why(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"rule": row.get("rule") or "", "value": row.get("value"), "bound": row.get("bound")}


def _dead(place: _Place, row: Mapping[str, Any]) -> Lineage:
    return replace(_where(place, row), fate="dead", error=row["error"] or "", message=row["message"] or "")


def _from_fate(
    chunks: Chunks, place: _Place, row: Mapping[str, Any], rules: Sequence[RuleNote], seen: frozenset[str]
) -> Lineage:
    one = replace(
        _where(place, row),
        fate=row["fate"],
        step=row["step"] or place.step,
        **_why(row),
        similarity=row["similarity"],
        shard=row["shard"] or "",
        copies=row["copies"] or 0,
    )
    at = _row_in_text(chunks, place)
    if at >= 0:
        notes = describe(chunks, place.chunk, at, rules)
        one = replace(
            one,
            row=at,
            parser=notes.parser,
            record_id=notes.record_id,
            labels=notes.labels,
            passed=notes.passed,
            gate=notes.gate,
            side=notes.side,
        )
    if one.fate == "not_sampled":
        one = replace(one, detail=_plan_of(chunks, str(one.labels.get("domain", ""))))
    if one.step == "parse":
        one = replace(one, detail=_parse_detail(chunks, place))
    if row["survivor_id"] and row["fate"] == "duplicate":
        one = _with_survivor(chunks, one, row["survivor_id"].hex(), rules, seen)
    return one


def _so_far(
    chunks: Chunks, place: _Place, row: Mapping[str, Any], rules: Sequence[RuleNote], seen: frozenset[str]
) -> Lineage:
    """The fate of a document of which export has written none: from the verdicts there are."""
    notes = describe(chunks, place.chunk, place.row, rules)
    one = replace(
        _where(place, row),
        row=place.row,
        record_id=notes.record_id,
        labels=notes.labels,
        passed=notes.passed,
        copies=notes.copies,
    )
    if notes.reject is not None:
        return replace(
            one, fate="rejected", step="filter", gate=notes.gate, side=notes.side, **_why(notes.reject)
        )
    if notes.duplicate is not None:
        one = replace(
            one,
            fate="duplicate",
            step="confirm",
            rule=notes.duplicate["verdict"],
            similarity=notes.duplicate["similarity"],
        )
        return _with_survivor(chunks, one, notes.duplicate["survivor_id"].hex(), rules, seen)
    if notes.labels.get("verdict"):
        return replace(one, fate="rejected", step="label", rule=str(notes.labels["verdict"]))
    return replace(one, fate="kept", step=notes.last_step)


def _with_survivor(
    chunks: Chunks, one: Lineage, survivor_id: str, rules: Sequence[RuleNote], seen: frozenset[str]
) -> Lineage:
    one = replace(one, survivor_id=survivor_id)
    if survivor_id in seen or survivor_id == one.doc_id:
        return one
    # Its own exact place; an incremental run's survivor may belong to the version it builds on.
    place = next(_places(chunks, survivor_id, by_id=True), None)
    if place is None:
        return replace(one, detail="the survivor belongs to the version that this run builds on")
    return replace(one, survivor=_trace(chunks, place, rules, seen | {one.doc_id, survivor_id}))


def _plan_of(chunks: Chunks, domain: str) -> str:
    for partition in chunks.index("plan", "domains"):
        table = chunks.table("plan", "domains", partition)
        for row in table.to_pylist() if table is not None else []:
            if row["domain"] == domain:
                drawn, supply = row.get("drawn_tokens") or 0, row.get("supply_tokens") or 0
                return f"the mixing plan drew {drawn:,} of the {supply:,} tokens of domain {domain}"
    return ""


def _parse_detail(chunks: Chunks, place: _Place) -> str:
    table = chunks.table("parse", "rejects", place.chunk, ("doc_id", "detail"))
    if table is None:
        return ""
    rows = rows_with_prefix(table["doc_id"], place.doc_id)
    return str(table["detail"][int(rows[0])].as_py() or "") if len(rows) else ""


def _row_in_text(chunks: Chunks, place: _Place) -> int:
    table = chunks.table("parse", "text", place.chunk, ("doc_id",))
    if table is None:
        return -1
    if place.row < table.num_rows and table["doc_id"][place.row] == pa.scalar(
        bytes.fromhex(place.doc_id), pa.binary(16)
    ):
        return place.row
    rows = rows_with_prefix(table["doc_id"], place.doc_id)
    return int(rows[0]) if len(rows) else -1
