"""What moved between two versions, and why: a document that only one of them exports has exactly one cause.

The cause is read off the version that does *not* export the document, at the first layer that treats it
otherwise: its file is not listed or holds other bytes (``sources``), the same bytes give another record or
text (``parser``), the same text is refused (``rules``), is a duplicate (``dedup``) or is not drawn
(``mixing``).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops import schema
from dataflow_ops.errors import ConservationError
from dataflow_ops.observe.ids import id_matrix

SOURCES, PARSER, RULES, DEDUP, MIXING, UNKNOWN = "sources", "parser", "rules", "dedup", "mixing", "unknown"
CAUSES = (SOURCES, PARSER, RULES, DEDUP, MIXING, UNKNOWN)
"""In the order of the flow; ``unknown``: what would tell is no longer kept."""

OTHER_SURVIVOR = "other survivor"
"""Of a duplicate: the version that exports the document removed its survivor as a duplicate instead."""

CHANGES = ("added", "removed", "changed")
"""``changed``: exported by both versions, with another text."""

OPEN = ""
"""No cause yet: what became of the document's file decides."""

CAUSE_OF_LAYER: Mapping[str, str] = {
    "ingest": SOURCES,
    "parse": PARSER,
    "filter": RULES,
    "dedup": DEDUP,
    "score": RULES,
    "mix": MIXING,
    "export": MIXING,
}
"""Layer that removed a document (or gave up its chunk) -> cause."""

TEXT = pa.binary(20)

SIDE = pa.schema(
    [
        *(schema.FATES.field(c) for c in ("doc_id", "source_id", "path", "fate", "step", "rule")),
        *(schema.FATES.field(c) for c in ("value", "bound", "survivor_id", "similarity")),
        ("text", TEXT),  # SHA-1 of the stored text; null: none, or no longer kept
        ("chunk", pa.string()),
    ]
)
"""A version's documents, as they are compared."""

_OTHER = ("fate", "step", "rule", "value", "bound", "survivor_id", "similarity")
_OWN = ("doc_id", "source_id", "path", "chunk")

MOVED = pa.schema(
    [
        ("change", pa.string()),
        *(SIDE.field(c) for c in _OWN),
        ("differs", pa.bool_()),  # whether the texts differ; null: one of them is not there
        *(SIDE.field(c).with_name(f"other_{c}") for c in _OTHER),  # null: the other has no such document
    ]
)
"""A document that moved, with what the version that doesn't export it says."""

Ids = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Paired:
    """Two tables of ``SIDE`` put side by side.

    Attributes:
        same: documents that both export.
        uncompared: how many of these have a text that is no longer kept.
        moved: ``MOVED``.
        only_a: rows of a whose document is not in b; ``only_b`` likewise.
    """

    same: int
    uncompared: int
    moved: pa.Table
    only_a: pa.Table
    only_b: pa.Table


def pair(a: pa.Table, b: pa.Table) -> Paired:
    """Join two tables of ``SIDE`` by document.

    Raises:
        ConservationError: one of them has a document twice.
    """
    at_a, at_b = _matches(_ids(a), _ids(b))
    both_a, both_b = a.take(pa.array(at_a)), b.take(pa.array(at_b))
    out_a, out_b = (pc.equal(t["fate"], "exported").to_numpy() for t in (both_a, both_b))
    differs = pc.not_equal(both_a["text"], both_b["text"])
    both = out_a & out_b
    other_text = both & np.asarray(pc.fill_null(differs, False))
    moved = [
        _moved("removed", both_a, both_b, differs, out_a & ~out_b),
        _moved("added", both_b, both_a, differs, out_b & ~out_a),
        _moved("changed", both_a, both_b, differs, other_text),
    ]
    return Paired(
        int(both.sum()),
        int((both & np.asarray(pc.is_null(differs))).sum()),
        pa.concat_tables(moved),
        _without(a, at_a),
        _without(b, at_b),
    )


def absent(change: str, rows: pa.Table) -> pa.Table:
    """``MOVED`` for exported rows of ``SIDE`` whose document the other version doesn't have at all."""
    rows = rows.filter(pc.equal(rows["fate"], "exported"))
    columns = {"change": pa.array([change] * rows.num_rows, pa.string()), **{c: rows[c] for c in _OWN}}
    return pa.table(
        [columns.get(f.name, pa.nulls(rows.num_rows, f.type)) for f in MOVED],
        schema=MOVED,
    )


def decide(moved: pa.Table) -> tuple[Any, Any]:
    """Causes that the other version's verdict tells.

    Returns:
        ``(cause, by)``: string arrays; :data:`OPEN` where the file must tell. ``by`` names the rule, the kind
        of duplicate, or the source.
    """
    fate, step = pc.fill_null(moved["other_fate"], ""), pc.fill_null(moved["other_step"], "")
    differs = pc.fill_null(moved["differs"], False)
    by_file = pc.or_(
        pc.or_(pc.equal(fate, ""), pc.equal(step, "parse")), pc.or_(differs, pc.equal(fate, "exported"))
    )
    rest = pc.if_else(
        pc.equal(fate, "duplicate"), DEDUP, pc.if_else(pc.equal(fate, "not_sampled"), MIXING, RULES)
    )
    cause = pc.if_else(by_file, OPEN, rest)
    rule = pc.fill_null(moved["other_rule"], "")
    by = pc.if_else(pc.or_(by_file, pc.equal(fate, "not_sampled")), moved["source_id"], rule)
    return cause, by


@dataclass
class Tally:
    """Counts and examples by cause.

    Attributes:
        examples: documents shown of each cause and change: those with the smallest ids.
    """

    examples: int
    _counts: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    _shown: dict[tuple[str, str], list[tuple[str, Mapping[str, Any]]]] = field(default_factory=dict)

    def add(self, moved: pa.Table, cause: Any, by: Any, why: Callable[[Mapping[str, Any]], str]) -> None:
        """Count rows of ``MOVED``; ``why`` says a sentence about a row that becomes an example."""
        if not moved.num_rows:
            return
        whole = moved.append_column("cause", cause).append_column("by", by)
        groups = whole.select(["change", "cause", "by"]).group_by(["change", "cause", "by"])
        for row in groups.aggregate([([], "count_all")]).to_pylist():
            by_name = self._counts.setdefault((row["cause"], row["change"]), {})
            by_name[row["by"]] = by_name.get(row["by"], 0) + row["count_all"]
        if self.examples:
            for name in {(r["cause"], r["change"]) for r in _distinct(whole)}:
                self._show(name, whole, why)

    def _show(self, name: tuple[str, str], whole: pa.Table, why: Callable[[Mapping[str, Any]], str]) -> None:
        mine = whole.filter(pc.and_(pc.equal(whole["cause"], name[0]), pc.equal(whole["change"], name[1])))
        ids = pa.table({"i": np.arange(mine.num_rows), "id": mine["doc_id"].cast(pa.binary())})
        first = ids.sort_by("id").slice(0, self.examples)["i"]
        rows = [
            (row["doc_id"].hex(), {**row, "why": why(row)})
            for row in mine.take(first.combine_chunks()).to_pylist()
        ]
        self._shown[name] = heapq.nsmallest(
            self.examples, [*self._shown.get(name, []), *rows], key=lambda pair: pair[0]
        )

    def total(self, change: str, cause: str | None = None) -> int:
        """Documents that moved this way (for this cause)."""
        wanted = CAUSES if cause is None else (cause,)
        return sum(sum(self._counts.get((c, change), {}).values()) for c in wanted)

    def rows(self) -> list[dict[str, Any]]:
        """One row per cause that moved anything, in the order of the flow."""
        out = []
        for cause in CAUSES:
            counts = {change: self.total(change, cause) for change in CHANGES}
            if any(counts.values()):
                out.append(
                    {"cause": cause, **counts, "by": self._by(cause), "examples": self._examples(cause)}
                )
        return out

    def _by(self, cause: str) -> list[dict[str, Any]]:
        found = {change: self._counts.get((cause, change), {}) for change in CHANGES}
        names = {name for by in found.values() for name in by}
        rows = [
            {"name": name, **{change: found[change].get(name, 0) for change in CHANGES}} for name in names
        ]
        return sorted(rows, key=lambda r: (-sum(r[c] for c in CHANGES), r["name"]))

    def _examples(self, cause: str) -> list[dict[str, Any]]:
        return [
            {
                "change": change,
                "doc_id": doc_id,
                "source": row["source_id"],
                "path": row["path"],
                "why": row["why"],
            }
            for change in CHANGES
            for doc_id, row in self._shown.get((cause, change), [])
        ]


def check(
    documents: Mapping[str, int], causes: Sequence[Mapping[str, Any]], named: Mapping[str, int]
) -> None:
    """Every document is counted once, and every one that moved has one cause.

    Args:
        documents: ``a``, ``b``, ``added``, ``removed``, ``same``, ``changed``.
        causes: :meth:`Tally.rows`.
        named: documents that the manifests of ``a`` and ``b`` name.

    Raises:
        ConservationError: the sums differ; both sides are named.
    """
    d = documents
    sums = {change: sum(row[change] for row in causes) for change in CHANGES}
    claims = [
        ("documents in A's lineage and in its manifest", d["a"], named["a"]),
        ("documents in B's lineage and in its manifest", d["b"], named["b"]),
        ("same + removed and A", d["same"] + d["removed"], d["a"]),
        ("same + added and B", d["same"] + d["added"], d["b"]),
        *((f"{change} documents and those with a cause", d[change], sums[change]) for change in CHANGES),
    ]
    for what, one, other in claims:
        if one != other:
            raise ConservationError(f"diff: {what}: {one:,} and {other:,}")


def _distinct(whole: pa.Table) -> list[dict[str, str]]:
    found: list[dict[str, str]] = (
        whole.select(["cause", "change"]).group_by(["cause", "change"]).aggregate([]).to_pylist()
    )
    return found


def _moved(
    change: str, own: pa.Table, other: pa.Table, differs: Any, mask: npt.NDArray[np.bool_]
) -> pa.Table:
    chosen = pa.array(mask)
    own, other, differs = own.filter(chosen), other.filter(chosen), differs.filter(chosen)
    columns = {
        "change": pa.array([change] * own.num_rows, pa.string()),
        "differs": differs,
        **{c: own[c] for c in _OWN},
        **{f"other_{c}": other[c] for c in _OTHER},
    }
    return pa.table([columns[f.name] for f in MOVED], schema=MOVED)


def _without(table: pa.Table, rows: Rows) -> pa.Table:
    mask = np.ones(table.num_rows, np.bool_)
    mask[rows] = False
    return table.filter(pa.array(mask))


def _ids(table: pa.Table) -> Ids:
    matrix, _ = id_matrix(table["doc_id"])
    return np.ascontiguousarray(matrix).view(np.uint64).reshape(-1, 2)


def _matches(a: Ids, b: Ids) -> tuple[Rows, Rows]:
    """Row numbers of equal ids, in the order of the ids."""
    ids = np.concatenate([a, b])
    by_id = np.lexsort((np.arange(len(ids)), ids[:, 1], ids[:, 0]))
    ordered = ids[by_id]
    equal = np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1))
    first, second = by_id[equal], by_id[equal + 1]
    twice = (first >= len(a)) | (second < len(a))
    if twice.any():
        doc_id = ids[first[twice][0]].tobytes().hex()
        raise ConservationError(f"diff: document {doc_id} stands twice in the lineage of one version")
    return first.astype(np.int64), (second - len(a)).astype(np.int64)
