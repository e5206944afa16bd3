"""Joining two lineages: against a naive join, through buckets, and with a document that stands twice."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dataflow_ops.errors import ConservationError
from dataflow_ops.kernels.digest import leading_u64
from dataflow_ops.observe import diff
from dataflow_ops.observe.buckets import ROWS, Buckets, bucket_count
from dataflow_ops.observe.ids import id_matrix

FATES = (
    ("exported", "export", ""),
    ("rejected", "filter", "length"),
    ("rejected", "parse", "too_long"),
    ("rejected", "label", "language"),
    ("duplicate", "confirm", "near"),
    ("not_sampled", "plan", ""),
)
CAUSE = {"filter": "rules", "label": "rules", "parse": "", "confirm": "dedup", "plan": "mixing"}


def side(numbers: list[int], seed: int) -> dict[bytes, dict[str, Any]]:
    """Documents by id with random fates and one of two texts."""
    draw = random.Random(seed)
    found = {}
    for number in numbers:
        doc_id = hashlib.sha256(str(number).encode()).digest()[:16]
        fate, step, rule = draw.choice(FATES)
        text = None if step == "parse" else bytes([draw.randrange(2)] * 20)
        row = {"doc_id": doc_id, "source_id": f"s{number % 3}", "path": f"{number}.txt", "chunk": "c"}
        found[doc_id] = {**row, "fate": fate, "step": step, "rule": rule, "text": text}
    return found


def table(rows: dict[bytes, dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows.values()), schema=diff.SIDE)


def naive(a: dict[bytes, Any], b: dict[bytes, Any]) -> tuple[int, Counter[tuple[str, str]]]:
    """Documents of both, and (change, cause) -> documents."""
    same, moves = 0, Counter[tuple[str, str]]()
    for doc_id in {*a, *b}:
        one, other = a.get(doc_id), b.get(doc_id)
        out = [row is not None and row["fate"] == "exported" for row in (one, other)]
        differs = one is not None and other is not None and None not in (one["text"], other["text"])
        differs = differs and one["text"] != other["text"]
        if all(out):
            same += 1
            if differs:
                moves["changed", ""] += 1
        elif any(out):
            missing = other if out[0] else one
            cause = "" if missing is None or differs else CAUSE[missing["step"]]
            moves["removed" if out[0] else "added", cause] += 1
    return same, moves


@pytest.mark.parametrize("buckets", [1, 16])
def test_a_join_through_buckets_is_the_naive_join(tmp_path: Path, buckets: int) -> None:
    a, b = side(list(range(700)), 1), side(list(range(300, 1000)), 2)
    found = Counter[tuple[str, str]]()
    same = rows = 0
    with (
        Buckets(tmp_path, "a", diff.SIDE, buckets) as left,
        Buckets(tmp_path, "b", diff.SIDE, buckets) as right,
    ):
        for documents, aside in ((a, left), (b, right)):
            whole = table(documents)
            for start in range(0, whole.num_rows, 90):
                part = whole.slice(start, 90)
                aside.add(part, leading_u64(id_matrix(part["doc_id"])[0]))
        for bucket in sorted({*left.tables(), *right.tables()}):
            paired = diff.pair(left.read(bucket), right.read(bucket))
            rows += left.read(bucket).num_rows + right.read(bucket).num_rows
            same += paired.same
            moved = [
                paired.moved,
                diff.absent("removed", paired.only_a),
                diff.absent("added", paired.only_b),
            ]
            for part in moved:
                causes, _ = diff.decide(part)
                found.update(zip(part["change"].to_pylist(), causes.to_pylist(), strict=True))
    assert rows == 1400
    assert (same, found) == naive(a, b)
    assert same > 0
    assert len(found) == 9  # removed and added by four causes or none yet, and changed


def test_examples_are_those_with_the_smallest_ids_whatever_the_order() -> None:
    a = side(list(range(200)), 3)
    for row in a.values():
        row.update(fate="exported", step="export", rule="")
    gone = diff.absent("removed", table(a))
    shown = []
    for order in (np.arange(200), np.random.default_rng(1).permutation(200)):
        tally = diff.Tally(3)
        for start in range(0, 200, 30):
            part = gone.take(pa.array(order[start : start + 30]))
            causes = pa.array(["sources"] * part.num_rows)
            tally.add(part, causes, part["source_id"], lambda row: row["path"])
        [row] = tally.rows()
        assert row["removed"] == 200
        assert sum(by["removed"] for by in row["by"]) == 200
        shown.append([(one["doc_id"], one["why"]) for one in row["examples"]])
    assert shown[0] == shown[1]
    assert [doc_id for doc_id, _ in shown[0]] == sorted(doc_id.hex() for doc_id in a)[:3]


def test_a_document_that_stands_twice_is_an_error() -> None:
    a = table(side([1, 2], 1))
    twice = pa.concat_tables([a, a.slice(0, 1)])
    for one, other in ((twice, a.slice(1, 1)), (a.slice(1, 1), twice), (twice, a)):
        with pytest.raises(ConservationError, match="twice"):
            diff.pair(one, other)


def test_buckets_grow_with_the_rows_up_to_a_bound() -> None:
    assert [bucket_count(n) for n in (0, ROWS - 1, ROWS, 3 * ROWS, 10**12)] == [1, 1, 2, 4, 1024]
