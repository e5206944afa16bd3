from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import zstandard
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from dataflow_ops.samples.export.joining import Answer
from dataflow_ops.samples.export.settings import SampleExportSettings
from dataflow_ops.samples.export.step import Exporting, Position, Written
from dataflow_ops.samples.running import Interrupted
from dataflow_ops.state.sample_tables import sample
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.storage.local import LocalStore
from tests.samples.cleaning.table import Said, fill


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SampleStore]:
    with SampleStore(f"sqlite:///{tmp_path / 's.db'}") as store:
        yield store


@pytest.fixture
def blobs(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "root")


def export(
    store: SampleStore,
    blobs: LocalStore,
    files: Sequence[str],
    answers: Mapping[tuple[str, int], Sequence[Answer]] | None = None,
    stop_at: int = -1,
    **given: Any,
) -> list[Written]:
    settings = SampleExportSettings.model_validate({"status": ["NEW", "KEPT"], **given})
    with store.write() as connection:
        connection.exec_driver_sql("DELETE FROM sample_task")
    store.create_task("e", "d", "export", settings.model_dump(mode="json"), files, "me")
    task = store.claim_task("e", "me").task
    looks = iter(range(10**6))

    def read(file: str, first: int, last: int) -> dict[int, Sequence[Answer]]:
        return {row: a for (f, row), a in (answers or {}).items() if f == file and first <= row <= last}

    exporting = Exporting(store.db, task, settings, blobs, read, lambda: next(looks) == stop_at)
    at, made, number = Position(0, 0), [], 0
    while (done := exporting.shard(number, at)).turns:
        made.append(done)
        at = done.after
        number += done.shard is not None
    return made


def shown(blobs: LocalStore, path: str) -> list[dict[str, Any]]:
    data = blobs.read(f"exports/d/e/{path}")
    if path.endswith(".gz"):
        data = gzip.decompress(data)
    if path.endswith(".zst"):
        data = zstandard.ZstdDecompressor().stream_reader(data).read()
    return [json.loads(line) for line in data.decode().split("\n")[:-1]]


TALK: list[Said] = [
    [("system", "be kind"), ("user", f"q{i}"), ("assistant", f"a{i}\u2028")] for i in range(5)
]


@pytest.mark.parametrize(
    ("compression", "suffix"), [("none", "jsonl"), ("gz", "jsonl.gz"), ("zst", "jsonl.zst")]
)
def test_shards_hold_all_in_order(
    store: SampleStore, blobs: LocalStore, compression: str, suffix: str
) -> None:
    fill(store, {"a": TALK[:3], "b": TALK[3:]})
    made = export(store, blobs, ["a", "b"], shard_records=2, compression=compression)
    shards = [w.shard for w in made if w.shard]
    assert [s.path for s in shards] == [f"part-0000{i}.{suffix}" for i in range(3)]
    assert [s.records for s in shards] == [2, 2, 1]
    found = [r for s in shards for r in shown(blobs, s.path)]
    assert [r["id"] for r in found] == ["a:0", "a:1", "a:2", "b:0", "b:1"]
    assert found[3]["messages"] == [{"role": r, "content": c} for r, c in TALK[3]]
    assert sum(w.turns for w in made) == 15
    assert sum(w.counts["records"] for w in made if w.shard) == 5


def test_the_same_export_gives_the_same_bytes(store: SampleStore, blobs: LocalStore, tmp_path: Path) -> None:
    fill(store, {"a": TALK})
    for compression in ("none", "gz", "zst"):
        one = export(store, blobs, ["a"], compression=compression)
        two = export(store, LocalStore(tmp_path / compression), ["a"], compression=compression)
        assert one == two


def test_a_stop_leaves_no_shard_and_no_temporary(store: SampleStore, blobs: LocalStore) -> None:
    fill(store, {"a": TALK})
    with pytest.raises(Interrupted):
        export(store, blobs, ["a"], stop_at=1)
    assert list(blobs.list("exports/")) == []
    assert [p for p in blobs.root.rglob("*") if p.is_file()] == []


def test_only_the_wanted_status_and_no_deleted_ones(store: SampleStore, blobs: LocalStore) -> None:
    fill(store, {"a": TALK})
    with store.write() as connection:
        connection.execute(sa.update(sample).where(sample.c.row_identifier == 1).values(status="KEPT"))
        connection.execute(sa.update(sample).where(sample.c.row_identifier == 3).values(deleted_at=1.0))
    kept = export(store, blobs, ["a"], status=["KEPT"])
    assert [r["id"] for r in shown(blobs, "part-00000.jsonl")] == ["a:1"]
    assert kept[0].counts["dialogues"] == 1
    blobs.delete("exports/d/e/part-00000.jsonl")
    export(store, blobs, ["a"])
    assert [r["id"] for r in shown(blobs, "part-00000.jsonl")] == ["a:0", "a:1", "a:2", "a:4"]


def test_meta_comes_back(store: SampleStore, blobs: LocalStore) -> None:
    fill(store, {"a": [[("user", "weather?"), ("assistant", "")]]})
    calls = [{"function": {"name": "sky", "arguments": "{}"}, "odd": "\ud800"}]
    with store.write() as connection:
        for turn, meta in (
            (0, {"record": {"tools": ["sky"], "user_id": 7, "id": "u1", "messages": 1}}),
            (1, {"tool_calls": calls}),
        ):
            connection.execute(
                sa.update(sample).where(sample.c.turn_taking == turn).values(data_meta=json.dumps(meta))
            )
    export(store, blobs, ["a"])
    [record] = shown(blobs, "part-00000.jsonl")
    assert record["tools"] == ["sky"]
    assert record["user_id"] == 7
    assert (record["id"], record["record_id"], record["record_messages"]) == ("a:0", "u1", 1)
    assert record["messages"][1] == {"role": "assistant", "content": "", "tool_calls": calls}


def test_instruction_triples_and_what_they_can_not_hold(store: SampleStore, blobs: LocalStore) -> None:
    two = [("user", "q"), ("assistant", "a"), ("user", "more"), ("assistant", "b")]
    fill(
        store,
        {
            "a": [
                TALK[0],
                two,
                [("user", "open")],
                [("user", "q"), ("tool", "x")],
                [("user", "q"), ("assistant", "")],
            ]
        },
    )
    [made] = export(store, blobs, ["a"], form="instruction")
    assert shown(blobs, "part-00000.jsonl") == [
        {
            "id": "a:0",
            "system": "be kind",
            "history": [],
            "instruction": "q0",
            "input": "",
            "output": "a0\u2028",
        },
        {
            "id": "a:1",
            "system": "",
            "history": [["q", "a"]],
            "instruction": "more",
            "input": "",
            "output": "b",
        },
    ]
    assert {k: v for k, v in made.counts.items() if k.startswith("left_out")} == {
        "left_out.the last turn is not an answer": 1,
        "left_out.turns of other roles than user and assistant": 1,
        "left_out.an empty answer": 1,
    }


def answer(turn: int, result: str, text: str, draw: int = 1, **more: Any) -> Answer:
    return Answer("aug", turn, draw, "p", "m", text, result, **more)


def test_answers_become_records_of_their_own(store: SampleStore, blobs: LocalStore) -> None:
    fill(store, {"a": TALK[:1]})
    given = [
        answer(1, "next_turn", "first"),
        answer(1, "next_turn", "second", 2),
        answer(2, "question", "which?"),
        answer(2, "replacement", "better"),
        answer(2, "score", "4", score=4.0),
    ]
    export(store, blobs, ["a"], {("a", 0): given})
    found = shown(blobs, "part-00000.jsonl")
    assert [(r["id"], [t["content"] for t in r["messages"]]) for r in found] == [
        ("a:0", ["be kind", "q0", "a0\u2028"]),
        ("a:0#aug:1:1", ["be kind", "q0", "first"]),
        ("a:0#aug:1:2", ["be kind", "q0", "second"]),
        ("a:0#aug:2:1", ["which?", "a0\u2028"]),
        ("a:0#aug:1", ["be kind", "q0", "better"]),
    ]
    assert {json.dumps(r["scores"]) for r in found} == {'{"p": 4.0}'}
    assert found[1]["generated"] == {"task": "aug", "prompt": "p", "model": "m"}


def test_a_low_score_leaves_the_dialogue_out_and_is_counted(store: SampleStore, blobs: LocalStore) -> None:
    fill(store, {"a": TALK[:2]})
    given = {("a", 0): [answer(2, "score", "1", score=1.0)], ("a", 1): [answer(2, "score", "5", score=5.0)]}
    [made] = export(store, blobs, ["a"], given, min_score=3)
    assert [r["id"] for r in shown(blobs, "part-00000.jsonl")] == ["a:1"]
    assert made.counts["left_out.a score below the least"] == 1


def test_what_no_model_wrote_about_and_what_scored_low_are_told_apart(
    store: SampleStore, blobs: LocalStore
) -> None:
    fill(store, {"a": TALK[:3]})
    low = answer(2, "score", "1", score=1.0)
    given = {("a", 0): [low, answer(1, "next_turn", "x")], ("a", 1): [answer(1, "next_turn", "y")]}
    [made] = export(store, blobs, ["a"], given, min_score=3, originals=False)
    assert [r["id"] for r in shown(blobs, "part-00000.jsonl")] == ["a:1#aug:1:1"]
    assert {k: v for k, v in made.counts.items() if k.startswith("left_out")} == {
        "left_out.a score below the least": 1,
        "left_out.no answer of a model": 1,
    }


quick = hypothesis_settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@quick
@given(st.lists(st.lists(st.integers(1, 4), max_size=6), min_size=1, max_size=4), st.integers(1, 5))
def test_shards_cut_nothing(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[list[int]], per: int
) -> None:
    folder = tmp_path_factory.mktemp("s")
    blobs = LocalStore(folder / "root")
    with SampleStore(f"sqlite:///{folder / 's.db'}") as store:
        names = {
            f"f{n}": [[("user", f"{n} {i}")] * k for i, k in enumerate(some)] for n, some in enumerate(sizes)
        }
        fill(store, names)
        made = export(store, blobs, list(names), shard_records=per)
    wanted = [f"{name}:{i}" for name, some in names.items() for i in range(len(some))]
    found = [r["id"] for w in made if w.shard for r in shown(blobs, w.shard.path)]
    assert found == wanted
    assert all(w.shard.records == per for w in made[:-1] if w.shard)
