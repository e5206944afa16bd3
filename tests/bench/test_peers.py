"""The comparison's own arithmetic: what counts as found, as the best peer, as the same measurement."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from bench.peers import judge
from bench.peers.__main__ import key
from bench.peers.documents import chosen
from bench.peers.plot import Bar, draw
from bench.peers.process import measured
from bench.peers.results import report
from bench.peers.runners.shingles import Groups, shingles

PART = {"sha256": "f" * 64, "all": 1000, "english": 400, "bytes": 3_000_000, "characters": 2_500_000}
PARTS = {"f" * 12: PART}


def fact(label: str, of: int = -1, lang: str = "en") -> dict[str, object]:
    return {"label": label, "lang": lang, "dup_of": of}


TRUTH = {0: fact("base"), 1: fact("edit1", 0), 2: fact("edit1", 0), 3: fact("exact", 4), 4: fact("base")}


def test_a_copy_counts_as_joined_by_group_and_as_removed_by_either_of_the_two() -> None:
    kept, groups = {0, 2, 3}, {0: 7, 1: 7, 3: 9, 4: 8}
    found = judge.duplicates(TRUTH, kept, groups)
    assert found["edit1"] == {"copies": 2, "removed": 1, "joined": 1}
    assert found["exact"] == {"copies": 1, "removed": 1, "joined": 0}
    assert found["all en"] == {"copies": 3, "removed": 2, "joined": 1}


def test_a_tool_without_groups_is_judged_by_removals_alone() -> None:
    assert judge.duplicates(TRUTH, {0, 1, 2, 3, 4}, None)["edit1"] == {"copies": 2, "removed": 0}


def test_survivors_are_those_told_or_else_what_the_group_kept() -> None:
    decided = {"groups": {"0": 5, "1": 5, "2": 6}}
    assert judge.survivors_of(decided, {0, 2}) == {1: 0}
    assert judge.survivors_of({**decided, "survivors": {"1": 2}}, {0, 2}) == {1: 2}


def test_a_removal_for_an_unlike_survivor_is_counted() -> None:
    texts = {0: "abcdefghij" * 5, 1: "ＡBCDEFGHIJ " * 5, 2: "something else altogether" * 2}
    assert judge.unlike({1: 0}, texts) == 0
    assert judge.unlike({1: 0, 2: 0}, texts) == 1


def test_clean_documents_are_told_by_language() -> None:
    truth = {0: fact("base"), 1: fact("base", lang="zh"), 2: fact("loop")}
    assert judge.refusals(truth, {1}) == {"base en": [1, 1], "base zh": [1, 0], "loop": [1, 1]}


def test_a_copy_is_chosen_with_what_it_was_made_from() -> None:
    of = [-1] * 500 + list(range(500))
    table = pa.table({"id": range(1000), "dup_of": of})
    ids = set(chosen(table, 200)["id"].to_pylist())
    assert 100 < len(ids) < 300
    assert all((i in ids) == (i + 500 in ids) for i in range(500))
    assert chosen(table, 0).num_rows == chosen(table, 5000).num_rows == 1000


def test_shingles_are_words_and_characters_where_han_prevails() -> None:
    assert shingles("One two, three FOUR five six", 5) == [
        "one two three four five",
        "two three four five six",
    ]
    assert shingles("模型训练数据", 5) == ["模型训练数", "型训练数据"]
    assert shingles("a b", 5) == ["a b"]


def test_groups_join_through_chains_and_keep_the_first() -> None:
    groups = Groups(5)
    groups.join((4, 3))
    groups.join((3, 1))
    kept, found = groups.decided([10, 11, 12, 13, 14])
    assert kept == [10, 11, 12]
    assert found == {10: 10, 11: 11, 12: 12, 13: 11, 14: 11}


def row(peer: str, seconds: float, **more: object) -> dict[str, object]:
    labels = {"edit1": {"copies": 10, "removed": 9, "joined": 9}}
    base = {
        "documents_of": "f" * 12,
        "stage": "minhash",
        "peer": peer,
        "work": "" if peer == "dataflow" else "minhash",
        "version": f"{peer} 1",
        "round": 0,
        "documents": 1000,
        "load": 0.5,
        "cpu": seconds * 2,
        "peak_mb": 300.0,
        "marks": {"work": seconds},
        "judged": {"documents": 1000, "kept": 900, "removed": 100, "labels": labels},
    }
    return base | more


def test_the_report_names_the_best_peer_and_says_whether_the_bar_is_met() -> None:
    rows = [row("dataflow", 0.05), row("datatrove", 10.0), row("text-dedup", 4.0), row("rensa", 0.2)]
    text = report(rows, PARTS).text
    assert "Best peer: text-dedup (5 words), 80.0 × ours (met, the bar is 20 ×)." in text
    assert "Best that is a library: rensa (5 words), 4.0 × ours." in text
    every = (
        "datatrove (5 words) (200.0 × ours), text-dedup (5 words) (80.0 × ours), rensa (5 words) (4.0 × ours)"
    )
    assert f"Recall is at or above that of every tool of this table, on every label: {every}." in text
    missed = report([row("dataflow", 1.0), *rows[1:]], PARTS).text
    assert "4.0 × ours (missed, the bar is 20 ×)" in missed


def test_medians_are_of_the_newest_version_of_ours_alone() -> None:
    old = row("dataflow", 9.0)
    new = [row("dataflow", w, version="dataflow 2", round=i) for i, w in enumerate((0.1, 0.2, 0.9))]
    text = report([old, *new, row("datatrove", 10.0)], PARTS).text
    assert "| dataflow (16 × 8) | 200 | 100 to 900 | 1.0 |" in text


def test_a_peer_that_finds_more_is_named() -> None:
    better = {"edit1": {"copies": 10, "removed": 10, "joined": 10}}
    judged = {"documents": 1000, "kept": 900, "removed": 100, "labels": better}
    text = report([row("dataflow", 0.1), row("datatrove", 10.0, judged=judged)], PARTS).text
    assert "Recall is below a peer's on edit1 (ours 9, datatrove (5 words) 10 of 10)." in text


def test_each_of_our_settings_gets_its_own_verdict() -> None:
    def labels(found: int) -> dict[str, object]:
        counts = {"edit1": {"copies": 10, "removed": found, "joined": found}}
        return {"documents": 1000, "kept": 900, "removed": 100, "labels": counts}

    rows = [
        row("dataflow", 0.1, judged=labels(8)),
        row("dataflow", 0.2, work="25x5", judged=labels(10)),
        row("datatrove", 10.0, judged=labels(9)),
        row("text-dedup", 2.0, judged=labels(7)),
    ]
    text = report(rows, PARTS).text
    assert "| dataflow (25 × 5) | 200 | 200 to 200 | 2.0 |" in text
    assert (
        "**dataflow (16 × 8)**. Best peer: text-dedup (5 words), 20.0 × ours (met, the bar is 20 ×)." in text
    )
    assert "**dataflow (25 × 5)**. Best peer: text-dedup (5 words), 10.0 × ours (missed," in text
    below = "Recall is below a peer's on edit1 (ours 8, datatrove (5 words) 9 of 10)."
    reached = "On every label at or above text-dedup (5 words) (20.0 × ours). "
    assert f"**dataflow (16 × 8)**. {reached}{below}" in text
    every = "Recall is at or above that of every tool of this table, on every label"
    ratios = "datatrove (5 words) (50.0 × ours), text-dedup (5 words) (10.0 × ours)"
    assert f"**dataflow (25 × 5)**. {every}: {ratios}." in text


def test_each_stage_is_drawn_from_the_part_that_most_tools_ran_on() -> None:
    more = {"documents_of": "e" * 12, "documents": 9000}
    parts = {**PARTS, "e" * 12: PART | {"all": 9000}}
    rows = [row("dataflow", 0.1), row("datatrove", 9.0), row("dataflow", 0.9, **more)]
    plot = report(rows, parts).plot
    assert "1,000 documents" in plot
    assert "datatrove" in plot
    assert "9,000 documents" not in plot


def test_a_failed_run_is_told_and_is_no_measurement() -> None:
    rows = [
        row("dataflow", 0.1),
        row("datatrove", 10.0),
        row("text-dedup", 0.0001, failed="exit code 1: no disk"),
    ]
    text = report(rows, PARTS).text
    assert "text-dedup, minhash (minhash): exit code 1: no disk." in text
    assert "| text-dedup (5 words) |" not in text


def test_another_version_is_another_measurement() -> None:
    assert key(row("datatrove", 1.0)) == key(row("datatrove", 2.0))
    assert key(row("datatrove", 1.0)) != key(row("datatrove", 1.0, version="datatrove 2"))


def test_ours_is_drawn_in_its_own_colour_and_names_are_escaped() -> None:
    plot = draw([Bar("A & B", "x <y>", 10, False), Bar("A & B", "ours", 1, True)])
    assert plot.count("#0a7d5a") == 1
    assert "A &amp; B" in plot
    assert "x &lt;y&gt;" in plot


@pytest.mark.parametrize("child", [False, True])
def test_cpu_time_of_children_is_counted(tmp_path: Path, child: bool) -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    if child:
        burn = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    used = measured([sys.executable, "-c", burn], 0, tmp_path / "log", {}, 60)
    assert used.code == 0
    assert used.cpu >= 0.3


def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    used = measured([sys.executable, "-c", "import time; time.sleep(60)"], 0, tmp_path / "log", {}, 0.5)
    assert used.code < 0
