"""Sorting a shard group that may be larger than memory: in memory while it fits, else through files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
            yield from _in_memory(pa.concat_tables(held))
        return
    if held:
        _spill(held, spilled, scratch)
        held = []
    for shard in sorted(spilled):
        yield shard, _from_files(spilled[shard], limit, scratch, 0, 2**64)
        for path in spilled[shard]:
            path.unlink(missing_ok=True)


def _in_memory(rows: pa.Table) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    shards = rows["shard"].to_numpy()
    for shard in np.unique(shards):
        mine = rows.filter(pa.array(shards == shard))
        yield int(shard), iter([mine.sort_by(_KEYS)])


def _spill(held: list[pa.Table], spilled: dict[int, list[Path]], scratch: Path) -> None:
    """Append the rows held to one new file per shard."""
    rows = pa.concat_tables(held)
    shards = rows["shard"].to_numpy()
    for shard in np.unique(shards):
        files = spilled.setdefault(int(shard), [])
        path = scratch / f"shard-{int(shard):05d}-{len(files):05d}.arrow"
        _write(path, rows.filter(pa.array(shards == shard)))
        files.append(path)


def _from_files(paths: list[Path], limit: int, scratch: Path, low: int, high: int) -> Iterator[pa.Table]:
    """Rows of one shard with ``low <= order < high``, sorted; ranges that are too large are halved.

    The order is a uniform hash, so halving its range halves the rows; a range of one value is sorted at
    once however large it is.
    """
    size = sum(p.stat().st_size for p in paths)
    if size <= limit or high - low <= 1:
        tables = [t for path in paths for t in _read(path)]
        if tables:
            yield pa.concat_tables(tables).sort_by(_KEYS)
        return
    middle = (low + high) // 2
    halves: tuple[list[Path], list[Path]] = ([], [])
    for path in paths:
        for i, table in enumerate(_read(path)):
            below = pc.less(table["order"], pa.scalar(middle, pa.uint64()))
            for half, mask in zip((0, 1), (below, pc.invert(below)), strict=True):
                part = table.filter(mask)
                if part.num_rows:
                    target = scratch / f"{path.stem}-{i}-{half}.arrow"
                    _write(target, part)
                    halves[half].append(target)
    yield from _from_files(halves[0], limit, scratch, low, middle)
    yield from _from_files(halves[1], limit, scratch, middle, high)
    for path in (*halves[0], *halves[1]):
        path.unlink(missing_ok=True)


def _write(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=1000)


def _read(path: Path) -> Iterator[pa.Table]:
    """Tables of about a thousand rows, one after the other."""
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_stream(source) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])
