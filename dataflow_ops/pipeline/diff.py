"""``diff``: how much of each change between two versions comes from sources, parser, rules, dedup and mixing.

Chunks that are equal on both sides are counted and not looked into. Of the others, lineage is read a chunk at
a time, and text only where a chunk's text differs. Documents that stand in other chunks on either side are
put aside on disk and joined bucket by bucket. So memory is bounded by the lineage of one chunk, one batch of
its text, and buckets of about half a million rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.errors import ConfigError, ConservationError, CorruptOutput
from dataflow_ops.kernels.arrow import string_buffers
from dataflow_ops.kernels.digest import leading_u64, sha1_rows
from dataflow_ops.observe import diff
from dataflow_ops.observe.buckets import Buckets, bucket_count
from dataflow_ops.observe.diff_text import why
from dataflow_ops.observe.ids import id_matrix
from dataflow_ops.pipeline.diff_files import Files
from dataflow_ops.pipeline.home import Home, open_home
from dataflow_ops.pipeline.tombstones import without_hidden
from dataflow_ops.pipeline.version_reader import OpenVersion, open_version
from dataflow_ops.schema import DOC_ID
from dataflow_ops.state.store import StateStore
from dataflow_ops.values import Output

_COLUMNS = tuple(name for name in diff.SIDE.names if name not in ("text", "chunk"))
_EQUAL = bytes(20)
"""Stands for the text of documents in chunks whose text is the same file on both sides."""


def diff_of(home_path: Path, a: str, b: str, dataset: str | None = None, n: int = 5) -> dict[str, Any]:
    """:func:`diff_versions` for a home folder."""
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        return diff_versions(home, state, a, b, dataset=dataset, n=n)


def diff_versions(
    home: Home, state: StateStore, a: str, b: str, *, dataset: str | None = None, n: int = 5
) -> dict[str, Any]:
    """Compare two versions.

    Args:
        home: where they are.
        state: open state store.
        a: version, or the start of one.
        b: the other; changes are told from ``a`` to ``b``.
        dataset: look only among its versions.
        n: examples of each cause and change.

    Returns:
        ``a, b, documents, tokens, causes, domains, settings, notes, cli``; see docs/finding-documents.md.

    Raises:
        ConfigError: both are the same version, or versions of two data sets.
        VersionError: no such version.
        ConservationError: a document would be counted twice or not at all.
    """
    sides = open_version(home, state, a, dataset), open_version(home, state, b, dataset)
    names = [side.record.version_id for side in sides]
    if names[0] == names[1]:
        raise ConfigError(
            f"{names[0]} is named twice; `dataflow versions list` shows what it can be compared with"
        )
    if sides[0].record.dataset != sides[1].record.dataset:
        raise ConfigError(f"{names[0]} and {names[1]} are versions of two data sets; compare versions of one")
    with tempfile.TemporaryDirectory(prefix="dataflow-diff-") as folder:
        comparison = _Comparison(*sides, n, Path(folder))
        documents = comparison.run()
    causes = comparison.tally.rows()
    totals = [side.manifest["totals"] for side in sides]
    diff.check(documents, causes, {"a": totals[0]["documents"], "b": totals[1]["documents"]})
    return {
        "a": names[0],
        "b": names[1],
        "dataset": sides[0].record.dataset,
        "documents": documents,
        "tokens": {"a": totals[0]["tokens"], "b": totals[1]["tokens"]},
        "causes": causes,
        "domains": _domains(*sides),
        "settings": _settings(*sides),
        "notes": comparison.notes(),
        "cli": f"dataflow diff {names[0]} {names[1]}",
    }


@dataclass(frozen=True, slots=True)
class _Part:
    """One version of a side (a version may build on others), with its texts by chunk."""

    version: OpenVersion
    texts: Mapping[str, Output]

    @classmethod
    def of(cls, version: OpenVersion) -> _Part:
        return cls(version, dict(version.reader.outputs("parse", "text")))


class _Comparison:
    """One comparison under way."""

    def __init__(self, a: OpenVersion, b: OpenVersion, n: int, folder: Path) -> None:
        self._sides = (a, b)
        self._folder = folder
        self._files = Files(a, b)
        self._parts = tuple([_Part.of(part) for part in side.parts] for side in self._sides)
        self._gone: set[str] = set()
        every = [part for parts in self._parts for part in parts]
        self._chunks = sorted({chunk for part in every for chunk in part.version.lineage})
        rows = sum(output.rows for part in every for output in part.version.lineage.values())
        self._count = bucket_count(rows)
        self.tally = diff.Tally(n)
        self._exported = [0, 0]
        self._same = self._uncompared = 0

    def run(self) -> dict[str, int]:
        """Compare everything; return the counts of documents."""
        with (
            Buckets(self._folder, "a", diff.SIDE, self._count) as only_a,
            Buckets(self._folder, "b", diff.SIDE, self._count) as only_b,
            Buckets(self._folder, "open", diff.MOVED, self._count) as undecided,
            Buckets(self._folder, "twins", diff.MOVED, self._count) as self._twins,
        ):
            for chunk in self._chunks:
                rest = self._chunk(chunk, undecided)
                for table, aside in zip(rest, (only_a, only_b), strict=True):
                    aside.add(table, _id_hashes(table))
            for bucket in sorted({*only_a.tables(), *only_b.tables()}):
                paired = diff.pair(only_a.read(bucket), only_b.read(bucket))
                self._count_paired(paired, undecided)
                self._decide(diff.absent("removed", paired.only_a), undecided)
                self._decide(diff.absent("added", paired.only_b), undecided)
            for bucket in undecided.tables():
                self._by_files(undecided.read(bucket))
            for bucket in self._twins.tables():
                self._by_survivors(self._twins.read(bucket))
        return {
            "a": self._exported[0],
            "b": self._exported[1],
            **{change: self.tally.total(change) for change in diff.CHANGES},
            "same": self._same,
            "uncompared": self._uncompared,
        }

    def notes(self) -> list[str]:
        """What limits the answer."""
        found = []
        if not self._files.kept:
            found.append(
                "the lists of files are no longer kept: where verdicts don't tell, causes follow from the"
                " manifests' digests of whole sources, or stay unknown"
            )
        if self._uncompared:
            found.append(
                f"the text of {len(self._gone)} chunk(s) is no longer kept: {self._uncompared:,} documents of"
                " both versions are counted as the same without comparing their text"
            )
        return found

    def _chunk(self, chunk: str, undecided: Buckets) -> tuple[pa.Table, pa.Table]:
        """Compare the documents of one chunk; give back those without a counterpart in it."""
        found = [[p for p in parts if chunk in p.version.lineage] for parts in self._parts]
        equal_text = False
        if [len(parts) for parts in found] == [1, 1]:
            (one,), (other,) = found
            lineage = [part.version.lineage[chunk] for part in (one, other)]
            texts = [part.texts.get(chunk) for part in (one, other)]
            equal_text = texts[0] is not None and texts[1] is not None and texts[0].sha256 == texts[1].sha256
            whole = not len(one.version.hidden) and not len(other.version.hidden)
        if equal_text and whole and lineage[0].sha256 == lineage[1].sha256:
            fates = one.version.reader.read(lineage[0], columns=("fate",))
            exported = pc.sum(pc.equal(fates["fate"], "exported")).as_py() or 0
            self._exported = [count + exported for count in self._exported]
            self._same += exported
            return diff.SIDE.empty_table(), diff.SIDE.empty_table()
        tables = [
            pa.concat_tables([diff.SIDE.empty_table(), *(self._side(p, chunk, equal_text) for p in parts)])
            for parts in found
        ]
        for number, table in enumerate(tables):
            self._exported[number] += pc.sum(pc.equal(table["fate"], "exported")).as_py() or 0
        paired = diff.pair(tables[0], tables[1])
        self._count_paired(paired, undecided)
        return paired.only_a, paired.only_b

    def _side(self, part: _Part, chunk: str, equal_text: bool) -> pa.Table:
        side = part.version
        output = side.lineage[chunk]
        if not output.rows:
            return diff.SIDE.empty_table()
        table = side.reader.read(output, columns=_COLUMNS).combine_chunks()
        text = part.texts.get(chunk)
        tokens = pa.nulls(table.num_rows, diff.TEXT)
        try:
            if text is not None:
                tokens = self._tokens(side, text, table, equal_text)
        except CorruptOutput:
            text = None
        if text is None:
            self._gone.add(chunk)
        table = table.append_column("text", tokens)
        table = table.append_column("chunk", pa.array([chunk] * table.num_rows, pa.string()))
        return without_hidden(table.select(diff.SIDE.names).cast(diff.SIDE), side.hidden)

    @staticmethod
    def _tokens(side: OpenVersion, text: Output, lineage: pa.Table, equal: bool) -> Any:
        """SHA-1 of each document's text; lineage holds the records without text first."""
        without = lineage.num_rows - text.rows
        if equal:
            return pa.concat_arrays([pa.nulls(without, diff.TEXT), pa.array([_EQUAL] * text.rows, diff.TEXT)])
        parts, at = [pa.nulls(without, diff.TEXT)], without
        for batch in side.chunks.batches(text, ("doc_id", "text")) if text.rows else ():
            ids = lineage["doc_id"].slice(at, batch.num_rows).combine_chunks()
            if not ids.equals(batch["doc_id"].combine_chunks()):
                raise ConservationError(f"diff: {text.uri} and its lineage name other documents at row {at}")
            digests = sha1_rows(*string_buffers(batch["text"]))
            body = pa.py_buffer(np.ascontiguousarray(digests))
            parts.append(pa.FixedSizeBinaryArray.from_buffers(diff.TEXT, batch.num_rows, [None, body]))
            at += batch.num_rows
        return pa.concat_arrays(parts)

    def _count_paired(self, paired: diff.Paired, undecided: Buckets) -> None:
        self._same += paired.same
        self._uncompared += paired.uncompared
        self._decide(paired.moved, undecided)

    def _decide(self, moved: pa.Table, undecided: Buckets) -> None:
        if not moved.num_rows:
            return
        cause, by = diff.decide(moved)
        open_ = pc.equal(cause, diff.OPEN)
        twin = pc.equal(cause, diff.DEDUP)
        if (twins := moved.filter(twin)).num_rows:
            self._twins.add(twins, _id_hashes(twins))
        told = pc.invert(pc.or_(open_, twin))
        self.tally.add(moved.filter(told), cause.filter(told), by.filter(told), why)
        rest = moved.filter(open_)
        if rest.num_rows:
            undecided.add(rest, _id_hashes(rest))

    def _by_survivors(self, moved: pa.Table) -> None:
        """Duplicates: whether the version that exports the document removed its survivor instead."""
        for change, parts in (("removed", self._parts[0]), ("added", self._parts[1])):
            mine = moved.filter(pc.equal(moved["change"], change))
            if not mine.num_rows:
                continue
            wanted, removed = pc.unique(mine["other_survivor_id"]), [pa.array([], DOC_ID)]
            for part in parts:
                for output in part.version.lineage.values():
                    rows = part.version.reader.read(output, columns=("doc_id", "fate")).combine_chunks()
                    lost = rows.filter(
                        pc.and_(
                            pc.equal(rows["fate"], "duplicate"), pc.is_in(rows["doc_id"], value_set=wanted)
                        )
                    )
                    removed += without_hidden(lost, part.version.hidden)["doc_id"].chunks
            other = pc.is_in(mine["other_survivor_id"], value_set=pa.concat_arrays(removed))
            by = pc.if_else(other, diff.OTHER_SURVIVOR, mine["other_rule"])
            cause = pa.array([diff.DEDUP] * mine.num_rows, pa.string())
            self.tally.add(mine, cause, by, why)

    def _by_files(self, moved: pa.Table) -> None:
        told = self._files.tell(moved)
        causes = pa.array([t.cause for t in told], pa.string())
        moved = moved.append_column("why", pa.array([t.why for t in told], pa.string()))
        self.tally.add(moved, causes, moved["source_id"], lambda row: str(row["why"]))


def _id_hashes(table: pa.Table) -> Any:
    matrix, _ = id_matrix(table["doc_id"])
    return leading_u64(matrix) if len(matrix) else np.empty(0, np.uint64)


def _domains(a: OpenVersion, b: OpenVersion) -> list[dict[str, Any]]:
    """Distinct documents and tokens of each domain."""
    documents, tokens = (
        [_by_domain(side.manifest, key) for side in (a, b)] for key in ("documents", "tokens")
    )
    return [
        {
            "domain": name,
            "a": documents[0].get(name, 0),
            "b": documents[1].get(name, 0),
            "tokens_a": tokens[0].get(name, 0),
            "tokens_b": tokens[1].get(name, 0),
        }
        for name in sorted({*documents[0], *documents[1]})
    ]


def _by_domain(manifest: Mapping[str, Any], key: str) -> dict[str, int]:
    """Of the whole version; what builds on another has no plan of the whole, but counts it all the same."""
    if manifest.get("base"):
        return {name: cell[key] for name, cell in manifest["totals"]["by_domain"].items()}
    column = "documents" if key == "documents" else "drawn_tokens"
    return {row["domain"]: row[column] for row in manifest["plan"]["domains"]}


def _settings(a: OpenVersion, b: OpenVersion) -> list[dict[str, Any]]:
    """Settings, and versions of rules, parsers and tokenizer, that are not the same."""
    one, other = (dict(_told(side.manifest)) for side in (a, b))
    return [
        {"key": key, "a": one.get(key), "b": other.get(key)}
        for key in sorted({*one, *other})
        if one.get(key) != other.get(key)
    ]


def _told(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    job = dict(manifest["job"])
    job["sources"] = {s["source_id"]: s for s in job["sources"]}
    yield from _leaves(job, "")
    for what in ("rules", "parsers", "tokenizer"):
        yield from _leaves(manifest[what], f"version of {what.removesuffix('s')} ")


def _leaves(tree: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
