"""What pages show of sample tasks, and what people press beside one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.console import sample_actions, sample_tasks_view
from dataflow_ops.console.place import NotThere
from dataflow_ops.console.sample_desk import SampleDesk
from dataflow_ops.console.sample_pace import Pace
from dataflow_ops.errors import ConfigError
from dataflow_ops.state.records import CursorRecord
from tests.console.sample_home import augmenting, opened


class Clock:
    """Seconds that a test moves on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def shown(desk: SampleDesk, task_id: str) -> dict[str, Any]:
    [found] = [one for one in sample_tasks_view.tasks(desk, "d")["tasks"] if one["task"] == task_id]
    return dict(found)


def test_a_clean_up_says_where_it_is_and_what_it_did(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        desk.store.create_task("c", "d", "clean", {}, ["f1", "f2"], "ann")
        assert (shown(desk, "c")["state"], shown(desk, "c")["progress"]) == ("PENDING", None)
        claim = desk.store.claim_task("c", "other:1")
        counts = {"kept": 3, "rejected": 4, "rule.too_short": 1, "rule.no_answer": 3, "changed.nfc": 2}
        with desk.store.write() as connection:
            desk.store.progress(connection, claim, CursorRecord("f2", 1, 14, {}), counts)
        found = shown(desk, "c")
        assert found["at"] == {"file": "f2", "path": "f2", "number": 2, "of": 2, "offset": 1}
        assert (found["rows"], found["total"], found["progress"]) == (14, 20, 0.7)
        assert found["counts"] == {"kept": 3, "rejected": 4}
        assert found["rules"] == [{"name": "no_answer", "count": 3}, {"name": "too_short", "count": 1}]
        assert found["changes"] == [{"name": "nfc", "count": 2}]
        assert (found["model"], found["failures"], found["silent"]) == (None, None, False)
        desk.store.finish_task(claim)
        assert (shown(desk, "c")["progress"], shown(desk, "c")["rate"]) == (1.0, None)


def test_pace_and_time_left_are_those_of_what_was_seen(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, Pace(clock)) as desk:
        desk.store.create_task("c", "d", "clean", {}, ["f1", "f2"], "ann")
        claim = desk.store.claim_task("c", "other:1")

        def at(rows: int) -> dict[str, Any]:
            with desk.store.write() as connection:
                desk.store.progress(connection, claim, CursorRecord("f1", rows // 2, rows, {}), {})
            return shown(desk, "c")

        assert (at(2)["rate"], at(2)["eta"]) == (None, None)
        clock.now += 4.0
        assert (at(10)["rate"], at(10)["eta"]) == (2.0, 5.0)
        desk.store.pause_task(claim, CursorRecord("f1", 5, 10, {}), {})
        assert shown(desk, "c")["rate"] is None
        clock.now += 1000.0
        claim = desk.store.claim_task("c", "other:1")
        assert at(10)["rate"] is None, "the pause is no slow stretch"
        clock.now += 1.0
        assert at(12)["rate"] == 2.0


def test_a_pace_forgets_what_is_long_past() -> None:
    clock = Clock()
    pace = Pace(clock)
    for _ in range(400):
        clock.now += 1.0
        pace.rate("t", 1, int(clock.now))
    assert pace.rate("t", 1, int(clock.now)) == pytest.approx(1.0)
    for _ in range(400):
        clock.now += 1.0
        last = pace.rate("t", 1, 500 + int(10 * (clock.now - 500)))
    assert last == pytest.approx(10.0, rel=0.01)


def test_an_augmentation_tells_tokens_money_and_its_queue(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        augmenting(desk.store)
        found = shown(desk, "aug")
        assert found["total"] == 10, "the turns that it asks about, not all"
        assert found["rows"] == 5
        model = found["model"]
        assert (model["answered"], model["failed"], model["tokens"], model["cost"]) == (2, 3, 30, 1.0)
        assert (model["model"], model["template"]) == ("test-model", "better")
        assert found["failures"] == {"OPEN": 3}


def test_turns_of_an_augmentation_that_has_ended_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted(*_: object) -> int:
        raise AssertionError("counted")

    monkeypatch.setattr(sample_tasks_view, "count_targets", counted)
    with opened(tmp_path) as desk:
        desk.store.finish_task(augmenting(desk.store))
        found = shown(desk, "aug")
        assert (found["total"], found["progress"], found["rows"]) == (None, 1.0, 5)


def test_a_pause_is_no_failure_and_says_by_whom(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        claim = augmenting(desk.store)
        sample_actions.pause(desk, "d", "aug", "run", "li", "too dear")
        found = shown(desk, "aug")
        assert (found["state"], found["pause"]["who"], found["pause"]["why"]) == ("RUNNING", "li", "too dear")
        desk.store.pause_task(claim, CursorRecord("f1", 5, 5, {}), {}, "paused by li")
        found = shown(desk, "aug")
        assert (found["state"], found["error"], found["note"]) == ("PAUSED", None, None)
        sample_actions.resume(desk, "d", "aug", "run", "li")
        found = shown(desk, "aug")
        assert (found["pause"], found["error"], found["note"]) == (None, None, "paused by li")
        sample_actions.pause(desk, "d", "aug", "dataset", "li", "")
        assert shown(desk, "aug")["pause"]["scope"] == "dataset"
        assert desk.store.paused("another", "d") is not None


def test_a_cancelled_task_says_by_whom_and_can_not_be_paused(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        augmenting(desk.store)
        sample_actions.cancel(desk, "d", "aug", "li")
        found = shown(desk, "aug")
        assert (found["state"], found["error"]) == ("CANCELLED", {"type": None, "message": "cancelled by li"})
        for act in (
            lambda: sample_actions.pause(desk, "d", "aug", "run", "li", ""),
            lambda: sample_actions.cancel(desk, "d", "aug", "li"),
        ):
            with pytest.raises(ConfigError, match="has ended"):
                act()


def test_a_task_belongs_to_its_data_set(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        augmenting(desk.store)
        for dataset, task in (("other", "aug"), ("d", "none")):
            with pytest.raises(NotThere):
                sample_actions.cancel(desk, dataset, task, "li")
        with pytest.raises(ConfigError, match="scope"):
            sample_actions.pause(desk, "d", "aug", "everything", "li", "")


def test_an_owner_that_fell_silent_is_told(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        claim = augmenting(desk.store)
        desk.store.beat("aug", claim.epoch, 0.0)
        found = shown(desk, "aug")
        assert (found["silent"], found["rate"]) == (True, None)


def test_data_sets_are_those_that_may_be_read(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        found = sample_tasks_view.datasets(desk, lambda dataset: True)["datasets"]
        assert [(one["dataset"], one["files"], one["records"]) for one in found] == [("d", 2, 10)]
        assert sample_tasks_view.datasets(desk, lambda dataset: False) == {"datasets": []}
