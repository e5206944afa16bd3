from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from dataflow_ops.errors import ConservationError
from dataflow_ops.layers.export import sort
from dataflow_ops.layers.export.columns import EXPORTED
from dataflow_ops.layers.export.scatter import ScatterStep
from dataflow_ops.layers.mix.draw import draw_key
from tests.layers.export.flow import drawn_ids, drive, fates, job, make_chunks, publish, run_flow
from tests.layers.fake_side import FakeSide

MIXES: dict[str, dict[str, Any]] = {
    "everything": {},
    "ratios": {"mixing": {"target_tokens": 900, "sampling": {"web": 0.7, "code": 0.3}}},
    "repeated": {
        "mixing": {"target_tokens": 6000, "sampling": {"web": 0.5, "code": 0.5}, "max_repetition": 3}
    },
    "by language": {"output": {"partition_by": ["language", "domain"], "shards": 16}},
    "unpartitioned": {"output": {"partition_by": [], "shards": 5}},
}


@pytest.mark.parametrize("mix", MIXES)
def test_every_document_has_one_fate_and_every_exported_one_a_row(mix: str, tmp_path: Path) -> None:
    chunks = make_chunks()
    flow = run_flow(job(**MIXES[mix]), chunks, tmp_path)
    table = fates(flow)
    expected = sum(c.text.num_rows + c.unparsed.num_rows for c in chunks)
    assert table.num_rows == len(set(table["doc_id"].to_pylist())) == expected
    by_fate = Counter(table["fate"].to_pylist())
    assert by_fate["rejected"] == sum(c.rejects.num_rows + c.unparsed.num_rows for c in chunks)
    removed = sum(pc.sum(pc.not_equal(c.duplicates["verdict"], "survivor")).as_py() or 0 for c in chunks)
    assert by_fate["duplicate"] == removed > 0
    exported = table.filter(pc.equal(table["fate"], "exported"))
    assert {i.hex() for i in exported["doc_id"].to_pylist()} == drawn_ids(flow)
    rows = {name: pq.read_table(path, partitioning=None) for name, (path, _, _) in flow.shards.items()}
    where = {
        i: name
        for name, t in rows.items()
        for i, r in zip(t["id"].to_pylist(), t["repetition"].to_pylist(), strict=True)
        if r == 0
    }
    assert where == {
        i.hex(): s for i, s in zip(exported["doc_id"].to_pylist(), exported["shard"].to_pylist(), strict=True)
    }
    plan = flow.stored[("plan", "domains")][0][1]
    assert (
        sum(t.num_rows for t in rows.values())
        == pc.sum(plan["drawn_rows"]).as_py()
        == flow.counts["export"].kept
    )
    assert sum(pc.sum(t["tokens"]).as_py() for t in rows.values()) == pc.sum(plan["drawn_tokens"]).as_py()
    partitions = flow.stored[("plan", "partitions")][0][1]
    for place in partitions.to_pylist():
        mine = [t for name, t in rows.items() if name.rpartition("/")[0] == place["path"]]
        assert sum(t.num_rows for t in mine) == place["rows"]
        assert sum(pc.sum(t["tokens"]).as_py() for t in mine) == place["tokens"]


def test_a_duplicate_says_which_survivor_and_how_alike(tmp_path: Path) -> None:
    table = fates(run_flow(job(), make_chunks(), tmp_path))
    by_id = {r["doc_id"]: r for r in table.to_pylist()}
    duplicates = [r for r in by_id.values() if r["fate"] == "duplicate"]
    stands_for = Counter(r["survivor_id"] for r in duplicates)
    for row in duplicates:
        assert row["rule"] in {"exact", "near"}
        assert row["similarity"] == pytest.approx(0.9)
        assert by_id[row["survivor_id"]]["fate"] == "exported"
    for survivor, number in stands_for.items():
        assert by_id[survivor]["copies"] == number


def test_rejects_say_rule_value_and_bound(tmp_path: Path) -> None:
    settings = job(clean={"language": {"keep": ["zh"]}})
    rows = [
        r for r in fates(run_flow(settings, make_chunks(), tmp_path)).to_pylist() if r["fate"] == "rejected"
    ]
    seen = {(r["step"], r["rule"], r["value"], r["bound"]) for r in rows}
    assert seen == {
        ("parse", "empty_text", 0.0, 1.0),
        ("filter", "zlib_ratio", 0.1, 0.2),
        ("label", "language", 0.75, None),
    }


def contents(flow: Any) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, (path, _, _) in flow.shards.items()}


@pytest.mark.parametrize("format_", ["parquet", "jsonl.zst"])
def test_bytes_do_not_depend_on_batches_groups_or_memory(format_: str, tmp_path: Path) -> None:
    settings = job(
        output={"format": format_, "shards": 7},
        mixing={"target_tokens": 9000, "sampling": {"web": 0.5, "code": 0.5}, "max_repetition": 4},
    )
    chunks = make_chunks()
    first = run_flow(settings, chunks, tmp_path / "a")
    other = run_flow(settings, chunks, tmp_path / "b", size=7, budget=20_000, groups=1)
    assert contents(first) == contents(other)
    assert first.stored[("scatter", "fates")] == other.stored[("scatter", "fates")]
    assert len(first.shards) >= 7


def test_the_spill_to_disk_really_happens_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def spy(path: Path) -> Iterator[pa.Table]:
        read.append(path)
        yield from original(path)

    original = sort._read
    monkeypatch.setattr(sort, "_read", spy)
    run_flow(job(output={"shards": 1, "partition_by": []}), make_chunks(), tmp_path, budget=20_000)
    assert {p.stem for p in read} >= {"shard-00000-00000", "shard-00000-0", "shard-00000-1"}
    assert not [p for p in read if p.exists()]


def test_rows_are_shuffled_across_chunks_the_same_way_each_time(tmp_path: Path) -> None:
    flow = run_flow(job(output={"shards": 1, "partition_by": []}), make_chunks(), tmp_path, groups=1)
    [(path, _, _)] = flow.shards.values()
    files = pq.read_table(path, partitioning=None)["path"].to_pylist()
    changes = sum(a != b for a, b in pairwise(files))
    assert changes > len(files) / 3


def test_a_row_says_where_it_comes_from(tmp_path: Path) -> None:
    flow = run_flow(job(), make_chunks(), tmp_path)
    path, _, _ = flow.shards[min(flow.shards)]
    table = pq.read_table(path, partitioning=None)
    assert table.schema.equals(EXPORTED)
    row = table.to_pylist()[0]
    assert row["rules_passed"] == "default@1"
    assert row["source"] in {"s-web", "s-code", "s-zh"}
    assert row["quality_score"] is None
    assert row["quality_level"] == "unscored"


def test_a_reject_that_nobody_explains_is_an_error(tmp_path: Path) -> None:
    chunks = make_chunks()
    chunks[0].rejects = chunks[0].rejects.slice(1)
    with pytest.raises(ConservationError, match=r"filter\.rejects"):
        run_flow(job(), chunks, tmp_path)


def test_a_version_reads_as_one_data_set(tmp_path: Path) -> None:
    flow = run_flow(job(), make_chunks(), tmp_path / "work")
    root = publish(flow, tmp_path / "version")
    files = [str(p) for p in sorted(root.rglob("part-*.parquet"))]
    assert ds.dataset(files).to_table().num_rows == flow.counts["export"].kept
    manifest = json.loads((root / "manifest.json").read_text())
    assert manifest["totals"]["rows"] == flow.counts["export"].kept
    assert "/data/" not in json.dumps(manifest)


def test_every_partition_key_routes_its_rows(tmp_path: Path) -> None:
    keys = ["source", "kind", "quality_level", "language", "domain"]
    flow = run_flow(job(output={"partition_by": keys, "shards": 20}), make_chunks(), tmp_path)
    for name, (path, _, attributes) in flow.shards.items():
        for row in pq.read_table(path, partitioning=None).to_pylist():
            folders = name.split("/")[:-1]
            assert [f.split("=")[0] for f in folders] == keys
            assert [f.split("=")[1].replace("%3A", ":") for f in folders] == [row[k] for k in keys]
            assert attributes["partition"] == {k: row[k] for k in keys}


def test_copies_of_a_document_lie_apart(tmp_path: Path) -> None:
    mixing = {"target_tokens": 10**6, "sampling": {"web": 0.5, "code": 0.5}, "max_repetition": 4}
    flow = run_flow(
        job(output={"shards": 1, "partition_by": []}, mixing=mixing), make_chunks(), tmp_path, groups=1
    )
    [(path, _, attributes)] = flow.shards.values()
    ids = pq.read_table(path, partitioning=None)["id"].to_pylist()
    assert set(Counter(ids).values()) == {4}
    assert attributes["documents"] == len(set(ids))
    assert sum(a == b for a, b in pairwise(ids)) < len(ids) / 20


def test_a_document_without_any_fate_is_an_error(tmp_path: Path) -> None:
    chunks = make_chunks()
    flow = run_flow(job(), chunks, tmp_path)
    flow.stored[("label", "labels")] = [(c, t.slice(1)) for c, t in flow.stored[("label", "labels")]]
    aligned = chunks[0].text
    for name in chunks[0].verdicts.schema.names:
        aligned = aligned.append_column(name, chunks[0].verdicts[name])
    side = FakeSide(
        flow.stored, chunks[0].name, same=frozenset(flow.stored), sliced=frozenset({("plan", "draw")})
    )
    side.same -= {("plan", "draw"), ("plan", "places")}
    with pytest.raises(ConservationError, match="1 documents have no fate"):
        drive(ScatterStep(job(), "default@1", draw_key), side, aligned, 500)
