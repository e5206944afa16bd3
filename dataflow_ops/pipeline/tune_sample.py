"""Documents of a run to tune dedup on: a draw that depends on their ids alone, or those that labels name."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataflow_ops.errors import ConfigError
from dataflow_ops.kernels.arrow import I64, U64
from dataflow_ops.observe.ids import draw_order
from dataflow_ops.pipeline.opened import OpenRun
from dataflow_ops.values import Output

COLUMNS = ("doc_id", "text", "source_id")
_CHOICE = 4
"""Kept documents that are looked at for each one drawn: chunks beyond that stay unread."""
_BYTES = 256 << 20
"""Text held at most."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Documents and what is known of them.

    Attributes:
        documents: columns :data:`COLUMNS`.
        left: of labelled pairs, rows of ``documents``; int64.
        right: the rows that they are duplicates of.
        notes: what was left out.

    """

    documents: pa.Table
    left: I64
    right: I64
    notes: tuple[str, ...]


def draw(run: OpenRun, n: int) -> Sample:
    """Draw from the documents that the filter kept, by a hash of their ids.

    Chunks are taken in order of their ids, a turn for each source, until they hold four documents for each
    one that is drawn; so a sample of a large corpus reads a small part of it.

    Raises:
        ConfigError: the filter kept nothing.
        CorruptOutput: stored rows are gone or damaged.

    """
    picks: list[tuple[int, str, int]] = []
    for chunk, rows, order in _kept(run):
        picks += [(int(o), chunk, int(r)) for o, r in zip(order, rows, strict=True)]
        if len(picks) >= _CHOICE * n:
            break
    if not picks:
        raise ConfigError(f"run {run.row.run_id} kept no documents; there is nothing to tune on")
    documents, cut = _read(run, sorted(picks)[:n])
    nothing = np.zeros(0, np.int64)
    return Sample(documents, nothing, nothing, (cut,) if cut else ())


def labelled(run: OpenRun, path: Path) -> Sample:
    """The documents that a file of labels names.

    Args:
        run: whose documents; only kept ones count.
        path: CSV, JSON lines or Parquet with ``id`` and ``dup_of``: a document's id (32 hex digits) or the
            user's own; rows without ``dup_of`` say nothing.

    Raises:
        ConfigError: the file can't be read, or names no pair of documents that were kept.
        CorruptOutput: stored rows are gone or damaged.

    """
    wanted = read_labels(path)
    names = pa.array(sorted({name for pair in wanted for name in pair}), pa.string())
    places: dict[str, set[tuple[str, int]]] = {}
    for chunk, output in run.reader.outputs("parse", "text"):
        table = run.reader.read(output, columns=("doc_id", "source_record_id"))
        kept = run.reader.checked(_of(run, "verdicts", chunk), ("kept",))["kept"]
        own = pc.is_in(table["source_record_id"], value_set=names)
        ids = pa.array([i.hex() for i in table["doc_id"].to_pylist()], pa.string())
        for column, hit in ((table["source_record_id"], own), (ids, pc.is_in(ids, value_set=names))):
            rows = np.flatnonzero(pc.and_(pc.fill_null(hit, False), kept).to_numpy(zero_copy_only=False))
            for row in rows.tolist():
                places.setdefault(column[row].as_py(), set()).add((chunk, row))
    pairs = [(a, b) for a, b in wanted if len(places.get(a, ())) == 1 == len(places.get(b, ()))]
    notes = []
    if len(pairs) < len(wanted):
        notes.append(
            f"{len(wanted) - len(pairs):,} of {len(wanted):,} labelled pairs were left out: an id names no"
            f" document that the filter of run {run.row.run_id} kept, or several"
        )
    if not pairs:
        raise ConfigError(f"--labels {path}: {notes[0] if notes else 'it holds no pair with id and dup_of'}")
    used = sorted({place for pair in pairs for name in pair for place in places[name]})
    documents, cut = _read(run, [(0, chunk, row) for chunk, row in used])
    if cut:
        raise ConfigError(f"--labels {path}: the documents hold more than {_BYTES >> 20} MB; name fewer")
    number = {place: i for i, place in enumerate(used)}
    at = [[number[next(iter(places[name]))] for name in pair] for pair in pairs]
    left, right = np.array(at, np.int64).T
    return Sample(documents, left.copy(), right.copy(), tuple(notes))


def read_labels(path: Path) -> list[tuple[str, str]]:
    """Pairs ``(id, dup_of)`` of a file, by its ending.

    Raises:
        ConfigError: it can't be read, or has no such columns.

    """
    try:
        if path.suffix == ".parquet":
            rows = pq.read_table(path, columns=["id", "dup_of"]).to_pylist()
        elif path.suffix == ".csv":
            with open(path, encoding="utf-8-sig", newline="") as file:
                rows = list(csv.DictReader(file))
        elif path.suffix in (".jsonl", ".ndjson"):
            lines = path.read_text(encoding="utf-8").splitlines()
            rows = [json.loads(line) for line in lines if line.strip()]
        else:
            raise ConfigError(f"--labels {path}: give a .csv, .jsonl or .parquet file with id and dup_of")
        pairs = [(row["id"], row["dup_of"]) for row in rows]
    except OSError as e:
        raise ConfigError(f"--labels {path}: can't be read ({e.strerror or e})") from e
    except (KeyError, TypeError, ValueError, csv.Error, pa.ArrowException) as e:
        raise ConfigError(f"--labels {path}: each row needs id and dup_of ({type(e).__name__}: {e})") from e
    return [(str(a), str(b)) for a, b in pairs if a not in (None, "") and b not in (None, "")]


def _of(run: OpenRun, kind: str, chunk: str) -> Output:
    step = "parse" if kind == "text" else "filter"
    return run.index.output(step, kind, chunk)


def _kept(run: OpenRun) -> Iterator[tuple[str, I64, U64]]:
    """Chunk, its kept rows and their place in the draw."""
    sources = run.sources
    by_source: dict[str, list[str]] = {}
    for chunk, output in run.reader.outputs("filter", "verdicts"):
        if output.rows:
            by_source.setdefault(sources.get(chunk, ""), []).append(chunk)
    for turn in zip_longest(*(by_source[name] for name in sorted(by_source))):
        for chunk in turn:
            if chunk is None:
                continue
            kept = run.reader.checked(_of(run, "verdicts", chunk), ("kept",))["kept"]
            rows = np.flatnonzero(kept.to_numpy())
            ids = run.reader.read(_of(run, "text", chunk), columns=("doc_id",))["doc_id"]
            yield chunk, rows, draw_order(ids, 0)[rows]


def _read(run: OpenRun, picks: list[tuple[int, str, int]]) -> tuple[pa.Table, str]:
    """The documents of picks, in their order, and what to say where they hold too much text."""
    tables, places = [], []
    size = 0
    for chunk in sorted({chunk for _, chunk, _ in picks}):
        rows = np.array(sorted(row for _, c, row in picks if c == chunk), np.int64)
        for numbers, table in run.reader.pieces(_of(run, "text", chunk), rows, COLUMNS):
            if size > _BYTES:
                break
            tables.append(table)
            places += [(chunk, int(row)) for row in numbers]
            size += table.nbytes
    order = {(chunk, row): i for i, (_, chunk, row) in enumerate(picks)}
    taken = np.argsort([order[place] for place in places], kind="stable")
    cut = (
        f"{len(taken):,} of {len(picks):,} documents were taken: they hold {size >> 20} MB of text"
        if len(taken) < len(picks)
        else ""
    )
    return pa.concat_tables(tables).take(pa.array(taken)).combine_chunks(), cut
