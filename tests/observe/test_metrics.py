from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.observe.metrics import RunMetrics, StepMetrics
from dataflow_ops.observe.prometheus import exposition

ROWS = [
    {"step": "filter", "documents_in": 90, "kept": 60, "rejected": 30, "rule_hits": {"length": 30},
     "seconds_cpu": 3.0, "seconds_tasks": 1.5, "bytes_in": 3000, "tasks": 2, "tasks_skipped": 1},
    {"step": "parse", "documents_in": 100, "kept": 90, "rejected": 8, "dead": 2, "seconds_tasks": 2.0,
     "skipped": {"not_ours": 0}},
    {"step": "filter", "documents_in": 10, "kept": 10,
     "rule_hits": {"length": 0, "zlib": 1}, "metrics": {"m": 2}},
]  # fmt: skip


def test_rows_of_one_step_add_up_and_steps_stand_in_flow_order():
    run = RunMetrics.from_rows(ROWS)
    assert [s.step for s in run.steps] == ["parse", "filter"]
    f = run.step("filter")
    assert (f.layer, f.counts.documents_in, f.rule_hits) == ("filter", 100, {"length": 30, "zlib": 1})
    assert f.documents_per_second == pytest.approx(100 / 1.5)
    assert f.documents_per_cpu_second == pytest.approx(100 / 3)
    assert f.bytes_per_second == 2000
    assert run.records_in == 100
    assert run.table_rows()[0] == ("parse", 100, 90, 8, 2, 50.0)


def test_a_step_that_has_not_run_is_all_zero():
    empty = RunMetrics().step("score")
    assert (empty.counts.documents_in, empty.documents_per_second, empty.layer) == (0, 0.0, "score")


counts = st.integers(0, 10**12)


@given(st.lists(st.fixed_dictionaries({"documents_in": counts, "kept": counts, "tasks": counts}), max_size=6))
def test_addition_does_not_depend_on_order(rows):
    rows = [{"step": "parse", **r} for r in rows]
    assert RunMetrics.from_rows(rows) == RunMetrics.from_rows(rows[::-1])


def test_addition_keeps_the_left_operand():
    one = StepMetrics.from_row(ROWS[0])
    _ = one + one
    assert one.rule_hits == {"length": 30}


def test_exposition_escapes_and_parses_back():
    run = RunMetrics.from_rows(
        [{"step": "parse", "documents_in": 2**53 - 1, "rule_hits": {'a"b\\c\nd': 3}}],
        [{"step": "parse", "error": "ParserFailed", "host": 'evil"} 1\n', "count": 4}],
    )
    text = exposition(run, "web")
    assert f'outcome="in"}} {2**53 - 1}\n' in text
    assert 'rule="a\\"b\\\\c\\nd"} 3\n' in text
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
    for line in text.splitlines():
        if not line.startswith("#"):
            float(line.rsplit(" ", 1)[1])
            assert line.split("{")[0] in names


def test_exposition_of_an_empty_run_is_empty():
    assert exposition(RunMetrics(), "web") == ""
