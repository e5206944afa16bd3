from __future__ import annotations

import hashlib
import itertools
import os
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.errors import CorruptOutput, OutputConflict, StorageError, StorageFull
from dataflow_ops.protocols import OutputSpec
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.local import LocalStore
from dataflow_ops.storage.row_groups import MAX_BYTES, RowCutter, row_bytes
from dataflow_ops.values import FileOut, Output
from tests.storage.power_cut import FullDisk

KEY = "ab" + "0" * 62
SCHEMA = pa.schema(
    [
        ("row", pa.uint32()),
        ("kind", pa.string()),
        ("text", pa.large_string()),
        ("bands", pa.list_(pa.uint64())),
        ("id", pa.binary(16)),
    ]
)
PLAIN = {"rows": OutputSpec("rows", SCHEMA)}
SLICED = {"rows": OutputSpec("rows", SCHEMA, "key_prefix")}


def make(n: int, seed: int = 0, chars: int = 20) -> pa.Table:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, chars + 1, n)
    return pa.table(
        {
            "row": pa.array(np.arange(n), pa.uint32()),
            "kind": pa.array([None if i % 7 == 0 else ("prose", "code", "表")[i % 3] for i in range(n)]),
            "text": pa.array([f"{i}é" * int(m) for i, m in enumerate(lengths)], pa.large_string()),
            "bands": pa.array([list(range(int(m) % 4)) for m in lengths], pa.list_(pa.uint64())),
            "id": pa.array(
                [hashlib.sha256(bytes([i % 256, seed % 256])).digest()[:16] for i in range(n)], pa.binary(16)
            ),
        },
        schema=SCHEMA,
    )


def write(
    store: ChunkStore, specs: Mapping[str, OutputSpec], tables: Sequence[pa.Table], key: str = KEY
) -> Output:
    writer = store.writer("filter", "00ff", key, 1, specs)
    for table in tables:
        writer.append("rows", table)
    (output,) = writer.finish()
    return output


def cut(table: pa.Table, at: Sequence[int]) -> list[pa.Table]:
    bounds = [0, *sorted(min(a, table.num_rows) for a in at), table.num_rows]
    return [table.slice(a, b - a) for a, b in itertools.pairwise(bounds)]


@pytest.fixture
def store(tmp_path: Path) -> ChunkStore:
    return ChunkStore(LocalStore(tmp_path / "store"), tmp_path)


def test_unsliced_round_trip(store: ChunkStore) -> None:
    table = make(25_000)
    output = write(store, PLAIN, [table])
    assert output.uri == "data/filter/ab/part_00ff_ab00000000000000.rows.parquet"
    assert store.read(output, verify=True).equals(table)
    assert store.read(output, columns=("kind",)).equals(table.select(["kind"]))
    assert (output.rows, store.num_rows(output)) == (25_000, 25_000)
    (whole,) = output.slices
    path = store.blobs.local_path(output.uri)
    assert path is not None
    assert (whole.name, whole.offset, whole.length, whole.sha256) == ("", 0, output.size, output.sha256)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == output.sha256
    footer = pq.read_metadata(path)
    assert [footer.row_group(i).num_rows for i in range(3)] == [10_000, 10_000, 5_000]
    encodings = {
        footer.row_group(0).column(i).path_in_schema: footer.row_group(0).column(i).encodings
        for i in range(3)
    }
    assert not any("DICT" in e for e in encodings["text"])
    assert any("DICT" in e for e in encodings["kind"])


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(0, 300),
    cuts=st.lists(st.integers(0, 300), max_size=8),
    sliced=st.booleans(),
    spill=st.booleans(),
)
def test_bytes_depend_on_the_rows_alone(
    tmp_path_factory: pytest.TempPathFactory, n: int, cuts: list[int], sliced: bool, spill: bool
) -> None:
    root = tmp_path_factory.mktemp("s")
    table = make(n, seed=n)
    specs = PLAIN
    if sliced:
        specs = SLICED
        table = table.append_column("slice", pa.array([str(i * i % 11) for i in range(n)], pa.string()))
    one = write(ChunkStore(LocalStore(root / "1"), root), specs, [table])
    # Rebuilt, so that offsets and bitmaps differ from slices of one buffer.
    pieces = [
        pa.Table.from_pylist(p.to_pylist(), schema=p.schema) if i % 2 else p
        for i, p in enumerate(cut(table, cuts))
    ]
    two = write(
        ChunkStore(LocalStore(root / "2"), root, spill_bytes=500 if spill else 1 << 30), specs, pieces
    )
    assert one.sha256 == two.sha256
    assert one.slices == two.slices


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 40), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    max_rows=st.integers(1, 9),
    max_bytes=st.integers(1, 90),
)
def test_row_groups_hold_their_bounds(
    sizes: list[int], cuts: list[int], max_rows: int, max_bytes: int
) -> None:
    schema = pa.schema([("text", pa.large_string())])
    table = pa.table({"text": ["x" * s for s in sizes]}, schema=schema)

    def groups(pieces: Sequence[pa.Table]) -> list[pa.Table]:
        cutter = RowCutter(schema, max_rows, max_bytes)
        out = [g for p in pieces for g in cutter.append(p)]
        return [*out, *cutter.finish()]

    got = groups(cut(table, cuts))
    assert [g["text"].to_pylist() for g in got] == [g["text"].to_pylist() for g in groups([table])]
    assert [v for g in got for v in g["text"].to_pylist()] == table["text"].to_pylist()
    for group in got:
        assert 1 <= group.num_rows <= max_rows
        assert group.num_rows == 1 or int(row_bytes(group["text"]).sum()) <= max_bytes
        assert group["text"].num_chunks == 1


def test_row_bytes_of_nested_columns() -> None:
    lists = pa.array([[1, 2], None, [], [3]], pa.list_(pa.uint64()))
    assert row_bytes(lists).tolist() == [20, 4, 4, 12]
    assert row_bytes(lists.slice(2)).tolist() == [4, 12]
    structs = pa.array([{"a": 1, "b": "xy"}, None], pa.struct([("a", pa.int32()), ("b", pa.string())]))
    assert row_bytes(structs)[0] == 10
    assert row_bytes(pa.array([True, None])).tolist() == [1, 1]
    assert row_bytes(pa.array([[1, 2]], pa.list_(pa.uint32(), 2))).tolist() == [8]
    assert row_bytes(pa.chunked_array([["é"], ["", None]])).tolist() == [6, 4, 4]


def test_sliced_round_trip(store: ChunkStore) -> None:
    table = make(5_000)
    names = [str(i % 37) for i in range(5_000)]
    output = write(store, SLICED, cut(table.append_column("slice", pa.array(names)), [100, 2_000, 2_001]))
    assert [s.name for s in output.slices] == sorted({str(i) for i in range(37)})
    assert sum(s.rows for s in output.slices) == output.rows == 5_000
    path = store.blobs.local_path(output.uri)
    assert path is not None
    data = path.read_bytes()
    at = 0
    for part in output.slices:
        assert part.offset == at
        at += part.length
        assert hashlib.sha256(data[part.offset : at]).hexdigest() == part.sha256
        expected = table.filter(pa.array([n == part.name for n in names]))
        assert store.read(output, part.name, verify=True).equals(expected)
        assert store.num_rows(output, part.name) == expected.num_rows
    assert at == output.size
    assert store.read(output).num_rows == 5_000
    with pytest.raises(CorruptOutput, match="no slice '99'"):
        store.read(output, "99")
    assert store.read(output, "99", columns=("row",), schema=SCHEMA).schema.names == ["row"]


def test_an_unchanged_slice_keeps_its_hash(store: ChunkStore) -> None:
    table = make(100).append_column("slice", pa.array([str(i % 2) for i in range(100)]))
    changed = table.filter(pa.array([i != 51 for i in range(100)]))
    one, two = write(store, SLICED, [table]), write(store, SLICED, [changed], "cd" * 32)
    assert one.slices[0].sha256 == two.slices[0].sha256
    assert one.slices[1].sha256 != two.slices[1].sha256


@pytest.mark.parametrize("specs", [PLAIN, SLICED])
def test_no_rows(store: ChunkStore, specs: Mapping[str, OutputSpec]) -> None:
    output = write(store, specs, [])
    assert output.rows == 0
    assert store.check_present([output])
    assert store.read(output, schema=SCHEMA).equals(SCHEMA.empty_table())


def test_batches_from_any_row(store: ChunkStore) -> None:
    table = make(25_000, chars=5)
    output = write(store, PLAIN, [table])
    for first in (0, 1, 9_999, 10_000, 19_500, 24_999, 25_000, 30_000):
        batches = list(store.batches(output, ("row",), first, max_rows=4_000))
        rows = [r for b in batches for r in b["row"].to_pylist()]
        assert rows == list(range(first, 25_000))
        assert all(0 < b.num_rows <= 4_000 for b in batches)
    small = list(store.batches(output, ("text",), 24_000, max_bytes=64))
    assert all(b.num_rows == 1 or int(row_bytes(b["text"]).sum()) <= 64 for b in small)


def test_earlier_row_groups_are_not_read(store: ChunkStore) -> None:
    output = write(store, PLAIN, [make(25_000, chars=5)])
    path = store.blobs.local_path(output.uri)
    assert path is not None
    footer = pq.read_metadata(path)
    start = (
        footer.row_group(1).column(0).dictionary_page_offset or footer.row_group(1).column(0).data_page_offset
    )
    data = path.read_bytes()
    path.write_bytes(data[:4] + b"\xff" * (start - 4) + data[start:])
    assert next(store.batches(output, (), 12_000))["row"][0].as_py() == 12_000
    with pytest.raises(CorruptOutput):
        list(store.batches(output, (), 0))


def test_side_by_side(store: ChunkStore) -> None:
    output = write(store, PLAIN, [make(25_000, chars=5)])
    reader = store.rows(output, ("row",), 9_000)
    assert reader.num_rows == 25_000
    assert reader.take(2_000)["row"].to_pylist() == list(range(9_000, 11_000))
    assert reader.next_row == 11_000
    assert reader.take(20_000).num_rows == 14_000
    assert reader.take(5).schema.names == ["row"]


def test_changed_bytes_are_noticed(store: ChunkStore) -> None:
    output = write(store, SLICED, [make(100).append_column("slice", pa.array(["a"] * 50 + ["b"] * 50))])
    path = store.blobs.local_path(output.uri)
    assert path is not None
    data = bytearray(path.read_bytes())
    data[output.slices[1].offset + 40] ^= 1
    path.write_bytes(data)
    assert store.read(output, "a", verify=True).num_rows == 50
    with pytest.raises(CorruptOutput, match="slice 'b'"):
        store.read(output, "b", verify=True)
    assert not store.verify(output)
    path.write_bytes(data[:100])
    with pytest.raises(CorruptOutput):
        store.read(output, "b")
    path.unlink()
    with pytest.raises(CorruptOutput):
        store.read(output, "b")


def test_presence(store: ChunkStore) -> None:
    a, b = write(store, PLAIN, [make(10)]), write(store, PLAIN, [make(11)], "cd" * 32)
    listing = store.listing()
    assert store.check_present([a, b], listing)
    path = store.blobs.local_path(a.uri)
    assert path is not None
    os.utime(path, ns=(1, 1))
    # Touched, equal bytes: there. Same size and another time, other bytes: not.
    assert store.check_present([a, b], store.listing())
    path.write_bytes(b"\x00" * a.size)
    assert store.absent([a, b], store.listing()) == [a]
    assert store.absent([a, b]) == [a]
    path.unlink()
    assert store.absent([a, b], store.listing()) == [a]
    assert not store.check_present([a])


def test_second_attempt_adopts_and_other_bytes_conflict(store: ChunkStore) -> None:
    first = write(store, PLAIN, [make(10)])
    assert write(store, PLAIN, [make(10)]) == first
    with pytest.raises(OutputConflict):
        write(store, PLAIN, [make(11)])
    assert store.read(first).num_rows == 10


def test_broken_output_is_replaced(store: ChunkStore) -> None:
    first = write(store, PLAIN, [make(10)])
    path = store.blobs.local_path(first.uri)
    assert path is not None
    path.write_bytes(b"rot")
    writer = store.writer("filter", "00ff", KEY, 2, PLAIN, {"rows": first.sha256})
    writer.append("rows", make(10))
    (again,) = writer.finish()
    assert again.sha256 == first.sha256
    assert store.verify(first)


def test_abort_leaves_nothing(store: ChunkStore, tmp_path: Path) -> None:
    writer = store.writer("filter", "00ff", KEY, 1, {**PLAIN, "b": OutputSpec("b", SCHEMA, "chunk")})
    writer.append("rows", make(20_000))
    writer.append("b", make(5).append_column("slice", pa.array(["x"] * 5)))
    writer.abort()
    writer.abort()
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


@pytest.mark.parametrize("room", [0, 3, 1_000, 100_000])
def test_full_disk_leaves_nothing(tmp_path: Path, room: int) -> None:
    store = ChunkStore(LocalStore(tmp_path / "store", FullDisk(room)), tmp_path)
    rng = np.random.default_rng(0)
    table = make(12_000).set_column(4, "id", pa.array([rng.bytes(16) for _ in range(12_000)], pa.binary(16)))
    with pytest.raises(StorageFull, match="no space left"):
        write(store, PLAIN, [table])
    assert [p for p in (tmp_path / "store").rglob("*") if p.is_file()] == []


def test_rows_that_do_not_fit_are_refused(store: ChunkStore) -> None:
    writer = store.writer("filter", "00ff", KEY, 1, {**PLAIN, "b": OutputSpec("b", SCHEMA, "chunk")})
    with pytest.raises(StorageError, match="missing"):
        writer.append("rows", make(1).drop_columns(["text"]))
    with pytest.raises(StorageError, match="types"):
        writer.append("rows", make(1).set_column(0, "row", pa.array([-1])))
    with pytest.raises(StorageError, match="'slice' column"):
        writer.append("b", make(1))
    with pytest.raises(StorageError, match="names no slice"):
        writer.append("b", make(1).append_column("slice", pa.array([None], pa.string())))
    with pytest.raises(StorageError, match="no output 'x'"):
        writer.append("x", make(1))
    writer.abort()


def test_publish_file(store: ChunkStore, tmp_path: Path) -> None:
    shard = tmp_path / "part.parquet"
    pq.write_table(make(10), shard)
    data = shard.read_bytes()
    output = store.publish_file(FileOut("shard/p", shard, 10, {"tokens": 5}), "data/export/p")
    assert output.sha256 == hashlib.sha256(data).hexdigest()
    assert (output.size, output.rows, output.attributes) == (len(data), 10, {"tokens": 5})
    assert store.read(output).num_rows == 10
    assert not shard.exists()


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Many times the spill budget passes through a sliced output without being held."""
    store = ChunkStore(LocalStore(tmp_path / "s"), tmp_path, spill_bytes=1 << 20)
    writer = store.writer(
        "sign", "0", KEY, 1, {"rows": OutputSpec("rows", pa.schema([("v", pa.binary())]), "chunk")}
    )
    rng = np.random.default_rng(0)
    pool = pa.default_memory_pool()
    peak, base = 0, pool.bytes_allocated()
    tracemalloc.start()
    for _ in range(40):
        values = pa.array([rng.bytes(10_000) for _ in range(100)], pa.binary())
        writer.append("rows", pa.table({"v": values, "slice": [str(j % 10) for j in range(100)]}))
        del values
        peak = max(peak, pool.bytes_allocated() - base)
    (output,) = writer.finish()
    tracemalloc.stop()
    assert output.rows == 4_000
    assert peak < 8 << 20


def test_giant_row_has_a_group_of_its_own(store: ChunkStore) -> None:
    schema = pa.schema([("text", pa.large_string())])
    spec = {"rows": OutputSpec("rows", schema)}
    table = pa.table({"text": ["a", "b" * (MAX_BYTES + 1), "c", "d"]}, schema=schema)
    output = write(store, spec, [table])
    assert [b.num_rows for b in store.batches(output)] == [1, 1, 2]


def test_empty_slice_name_is_refused(store: ChunkStore) -> None:
    with pytest.raises(StorageError, match="names no slice"):
        write(store, SLICED, [make(1).append_column("slice", pa.array([""]))])
    assert store.listing() == {}
