"""Sorting a shard group that may be larger than memory: in memory while it fits, else through files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.layers.export.cut import MAX_ROWS

_MAX_PIECES = 64
"""Files written at once; a shard that needs more is cut again."""
_PIECE_ROWS = MAX_ROWS
"""Rows handed on at once; as many as a row group, so that most groups are written as they come."""
_KEYS = [("order", "ascending"), ("id", "ascending"), ("repetition", "ascending")]


def sorted_shards(
    tables: Iterable[pa.Table], limit: int, scratch: Path
) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """Group rows by shard and sort each shard by ``(order, id, repetition)``.

    Args:
        tables: rows with ``shard``, ``order``, ``id`` and ``repetition``, in any order.
        limit: bytes of rows held at once; sorting needs about twice that.
        scratch: folder for files, where the rows are more.

    Yields:
        ``(shard, its rows in order)``, ascending by shard; consume the rows before the next shard.

    """
    held: list[pa.Table] = []
    size = 0
    spilled: dict[int, list[Path]] = {}
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size > limit:
            _spill(held, spilled, scratch)
            held, size = [], 0
    if not spilled:
        if held:
            # Joined once, as each taking of some rows would join them anew; and then held once only.
            rows = pa.concat_tables(held).combine_chunks()
            held = []
            del table
            yield from _in_memory(rows)
        return
    if held:
        _spill(held, spilled, scratch)
        held = []
    for shard in sorted(spilled):
        yield shard, _from_files(spilled[shard], limit, scratch / f"shard-{shard:05d}")


def _in_memory(rows: pa.Table) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    keys = [("shard", "ascending"), *_KEYS]
    order = pc.sort_indices(rows.select([name for name, _ in keys]), sort_keys=keys).to_numpy()
    shards, counts = np.unique(rows["shard"].to_numpy(), return_counts=True)
    for shard, start, count in zip(shards, np.cumsum(counts) - counts, counts, strict=True):
        yield int(shard), _taken(rows, order[start : start + count])


def _taken(rows: pa.Table, order: npt.NDArray[np.uint64]) -> Iterator[pa.Table]:
    """Rows in an order, not many at once: the whole shard need not be there twice."""
    for start in range(0, len(order), _PIECE_ROWS):
        yield rows.take(pa.array(order[start : start + _PIECE_ROWS]))


def _spill(held: list[pa.Table], spilled: dict[int, list[Path]], scratch: Path) -> None:
    """Append the rows held to one new file per shard."""
    rows = pa.concat_tables(held)
    shards = rows["shard"].to_numpy()
    for shard in np.unique(shards):
        files = spilled.setdefault(int(shard), [])
        path = scratch / f"shard-{int(shard):05d}-{len(files):05d}.arrow"
        _write(path, rows.filter(pa.array(shards == shard)))
        files.append(path)


def _from_files(paths: list[Path], limit: int, name: Path) -> Iterator[pa.Table]:
    """Rows of some files, sorted; files that are too large are cut into ranges of ``order`` first.

    The order is a uniform hash, so that equal ranges hold about equally many rows; rows of one and the
    same order are sorted at once however many they are. The files are removed.
    """
    size = sum(p.stat().st_size for p in paths)
    low, high = _span(paths) if size > limit else (0, 0)
    if low == high:
        rows = pa.concat_tables([t for path in paths for t in _read(path)])
        for path in paths:
            path.unlink()
        yield rows.sort_by(_KEYS)
        return
    pieces = min(_MAX_PIECES, size // limit + 1)
    ends = np.array([low + (high - low) * i // pieces for i in range(1, pieces)], np.uint64)
    targets = [name.with_name(f"{name.name}-{i}") for i in range(pieces)]
    with ExitStack() as stack:
        writers: dict[int, pa.RecordBatchWriter] = {}
        for path in paths:
            for table in _read(path):
                piece = np.searchsorted(ends, table["order"].to_numpy(), side="left")
                for i in np.unique(piece):
                    if i not in writers:
                        sink = stack.enter_context(pa.OSFile(str(targets[i]), "wb"))
                        writers[i] = stack.enter_context(pa.ipc.new_stream(sink, table.schema))
                    writers[i].write_table(table.filter(pa.array(piece == i)))
            path.unlink()
    for target in targets:
        if target.exists():
            yield from _from_files([target], limit, target)


def _span(paths: list[Path]) -> tuple[int, int]:
    """Smallest and largest order in some files."""
    found = [pc.min_max(t["order"]).as_py() for path in paths for t in _read(path)]
    return min(f["min"] for f in found), max(f["max"] for f in found)


def _write(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=1000)


def _read(path: Path) -> Iterator[pa.Table]:
    """Tables of about a thousand rows, one after the other."""
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_stream(source) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])
