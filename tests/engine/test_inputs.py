"""What enters a task's key, and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.engine.inputs import (
    OutputIndex,
    Piece,
    digest_of,
    partition_order,
    plan_step,
    resolve,
    task_key,
    whole,
)
from dataflow_ops.errors import StateError
from dataflow_ops.protocols import Input, OutputSpec, Partitioning
from dataflow_ops.values import Numbers, Output, Slice, TaskRecord

NUMBERS = Numbers(2, 2, 2, 2, 2)


@dataclass(frozen=True)
class Reader:
    inputs: tuple[Input, ...]
    outputs: tuple[OutputSpec, ...] = (OutputSpec("out", pa.schema([])),)
    version: int = 1
    name: str = "reader"
    layer: str = "dedup"
    partitioned_by: Partitioning = "key_prefix"

    def fingerprint(self) -> Mapping[str, object]:
        return {"version": self.version}


def made(kind: str, sha: str, *parts: tuple[str, int, str]) -> Output:
    slices = tuple(Slice(name, 0, rows * 10, sha_ if rows else "", rows) for name, rows, sha_ in parts)
    return Output(kind, f"data/{kind}", 100, 1, sha, sum(rows for _, rows, _ in parts), slices)


class Records:
    """Finished tasks by step."""

    def __init__(self, **steps: Mapping[str, tuple[Output, ...]]) -> None:
        self.steps = steps

    def records_of_step(self, run_id: str, step: str) -> Mapping[str, TaskRecord]:
        found = self.steps.get(step, {})
        return {
            f"{step}-{p}": TaskRecord(f"{step}-{p}", step, "x", p, "SUCCESS", 1, 1, outputs=outputs)
            for p, outputs in found.items()
        }

    def outputs_of_step(self, run_id: str, step: str, kind: str) -> Mapping[str, Output]:
        found = self.steps.get(step, {})
        return {p: o for p, outputs in reversed(found.items()) for o in outputs if o.kind == kind}


def key(step: Any, records: Records, partition: str = "0", dead: tuple[str, ...] = ()) -> str:
    [spec] = plan_step(step, [partition], OutputIndex(records, "r"), NUMBERS, dead)
    return spec.key


SLICED = Reader((Input("sign", "keys", "slice"),))
A = made("keys", "a", ("0", 1, "a0"), ("1", 2, "a1"))
B = made("keys", "b", ("0", 3, "b0"), ("1", 0, ""))


def test_a_slice_is_keyed_by_its_own_bytes_only() -> None:
    before = Records(sign={"aa": (A,), "bb": (B,)})
    other_slice = made("keys", "changed", ("0", 1, "a0"), ("1", 9, "changed"))
    after = Records(sign={"aa": (other_slice,), "bb": (B,)})
    assert key(SLICED, before) == key(SLICED, after)
    assert key(SLICED, before, "1") != key(SLICED, after, "1")


def test_other_kinds_sizes_times_and_places_do_not_enter() -> None:
    before = Records(sign={"aa": (A,)})
    moved = replace(A, uri="elsewhere", mtime_ns=99, size=7, attributes={"note": 1})
    after = Records(sign={"aa": (moved, made("rejects", "new", ("", 1, "new")))})
    assert key(SLICED, before) == key(SLICED, after)


def test_what_does_enter() -> None:
    records = Records(sign={"aa": (A,), "bb": (B,)})
    keys = {
        key(SLICED, records),
        key(SLICED, records, "1"),
        key(replace(SLICED, version=2), records),
        key(replace(SLICED, name="other"), records),
        key(SLICED, records, dead=("cc",)),
        key(SLICED, Records(sign={"aa": (A,)})),
        key(SLICED, Records(sign={"cc": (A,), "bb": (B,)})),
        key(replace(SLICED, outputs=(OutputSpec("out", pa.schema([]), "block"),)), records),
    }
    assert len(keys) == 8


def test_dead_chunks_do_not_enter_the_keys_of_other_chunks() -> None:
    step = Reader((Input("parse", "text", "same"),), partitioned_by="chunk")
    records = Records(parse={"aa": (made("text", "t", ("", 1, "t")),)})
    assert key(step, records, "aa") == key(step, records, "aa", dead=("bb",))


def test_empty_slices_are_left_out_and_producers_are_in_order() -> None:
    records = Records(sign={"10": (A,), "9": (A,), "bb": (B,)})
    index = OutputIndex(records, "r")
    pieces = resolve(SLICED, "1", index)[("sign", "keys")]
    assert [p.partition for p in pieces] == ["9", "10"]
    assert resolve(SLICED, "7", index) == {("sign", "keys"): []}


def test_pointers_are_not_read_and_missing_outputs_are_told() -> None:
    pointing = Reader((Input("parse", "text", "pointer"), Input("sign", "keys", "all")))
    records = Records(sign={"aa": (A,)}, parse={"aa": (made("text", "t", ("", 1, "t")),)})
    changed = Records(sign={"aa": (A,)}, parse={"aa": (made("text", "other", ("", 1, "other")),)})
    assert key(pointing, records) == key(pointing, changed)
    aligned = Reader((Input("parse", "text", "aligned"),))
    with pytest.raises(StateError, match="run step 'parse' first"):
        key(aligned, records, "zz")


def test_the_index_forgets_only_when_told() -> None:
    records = Records(sign={"aa": (A,)})
    index = OutputIndex(records, "r")
    assert list(index.finished("sign")) == ["aa"]
    assert len(index.pieces(SLICED.inputs[0], "0")) == 1
    records.steps["sign"] = {"aa": (A,), "bb": (B,)}
    assert list(index.finished("sign")) == ["aa"]
    index.forget("sign")
    assert list(index.finished("sign")) == ["aa", "bb"]
    assert len(index.pieces(SLICED.inputs[0], "0")) == 2


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.frozensets(st.text(max_size=3)), max_size=5))
def test_a_fingerprint_does_not_depend_on_order(settings: dict[str, Any]) -> None:
    assert digest_of(settings) == digest_of(dict(reversed(settings.items())))


def test_a_fingerprint_holds_plain_values_only() -> None:
    with pytest.raises(TypeError, match="JSON values only"):
        digest_of({"when": object()})


@given(st.lists(st.integers(0, 5000).map(str), unique=True))
def test_prefixes_are_in_order_of_their_value(names: list[str]) -> None:
    assert sorted(names, key=partition_order) == sorted(names, key=int)


def test_chunk_ids_of_digits_only_are_in_order_of_text() -> None:
    ids = ["0000000000000009", "1000000000000000", "00000000000000aa"]
    assert sorted(ids, key=partition_order) == sorted(ids)


def test_keys_do_not_run_into_each_other() -> None:
    """Neither names nor digests can be cut at another place to give the same text."""
    one = {("s", "k"): [Piece("1", A, whole(A))]}
    two = {("s", "k"): [Piece("1", A, whole(A)), Piece("2", A, whole(A))]}
    keys = {
        task_key("step", "f", "p", one),
        task_key("step", "f", "p", two),
        task_key("step", "f", "p", {("s", "kk"): one[("s", "k")]}),
        task_key("step", "fp", "", one),
        task_key("step", "f", "p", one, ("x",)),
        task_key("step", "f", "p", one, ("x", "y")),
        task_key("step", "f", "p", one, ("xy",)),
    }
    assert len(keys) == 7
