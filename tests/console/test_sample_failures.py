"""The failure queue as pages see it: pages of it, one entry whole, answers to all and to one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dataflow_ops.console import sample_failures_view as view
from dataflow_ops.console.place import NotThere
from dataflow_ops.errors import ConfigError
from dataflow_ops.samples.augment import queue
from tests.console.sample_home import asked, augmenting, opened

KEY = asked(2).key


def test_the_queue_by_error_and_entry(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        augmenting(desk.store)
        found = view.failures(desk, "d", "aug", "", "", with_text=True)
        assert {(g["error"], g["state"], g["failures"]) for g in found["groups"]} == {
            ("EmptyAnswer", "OPEN", 2),
            ("EndpointAway", "OPEN", 1),
        }
        assert [one["message"] for one in found["failures"]] == ["why 2", "why 3", "why 4"]
        assert found["next"] is None
        one = view.failures(desk, "d", "aug", "EndpointAway", "", with_text=False)
        assert [(e["key"], e["message"]) for e in one["failures"]] == [(asked(4).key, None)]


def test_pages_neither_skip_nor_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "PAGE", 2)
    with opened(tmp_path) as desk:
        augmenting(desk.store)
        first = view.failures(desk, "d", "aug", "", "", with_text=True)
        second = view.failures(desk, "d", "aug", "", first["next"], with_text=True)
        assert [len(page["failures"]) for page in (first, second)] == [2, 1]
        assert second["next"] is None


def test_one_entry_whole_and_edited(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        augmenting(desk.store)
        found = view.failure(desk, "d", "aug", KEY)
        assert (found["prompt"], found["edited_prompt"]) == (
            [{"role": "user", "content": "improve 2\u2028"}],
            None,
        )
        assert found["raw_answer"] == "raw"
        new = [{"role": "system", "content": "be brief\u2028"}, {"role": "user", "content": "改进"}]
        view.edit(desk, "d", "aug", KEY, new)
        assert view.failure(desk, "d", "aug", KEY)["edited_prompt"] == new


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ([], "1 to 200 messages"),
        ([{"role": "robot", "content": "x"}], "message 1: its role"),
        ([{"role": "user", "content": "x"}, {"role": "user", "content": 3}], "message 2: its content"),
        ([{"role": "user", "content": " \n"}], "empty"),
        ([{"role": "user", "content": "x" * 200_001}], "200,000 at most"),
    ],
)
def test_a_prompt_that_is_none_is_refused(tmp_path: Path, prompt: list[dict[str, object]], told: str) -> None:
    with opened(tmp_path) as desk:
        augmenting(desk.store)
        with pytest.raises(ConfigError, match=told):
            view.edit(desk, "d", "aug", KEY, prompt)
        with pytest.raises(ConfigError, match=told):
            queue.edit(desk.store, KEY, json.dumps(prompt))


def test_a_call_of_a_tool_stays_in_an_edited_prompt(tmp_path: Path) -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}
    prompt = [{"role": "user", "content": "weather?"}, call, {"role": "tool", "content": "rain"}]
    with opened(tmp_path) as desk:
        augmenting(desk.store)
        queue.edit(desk.store, KEY, json.dumps(prompt))
        assert view.failure(desk, "d", "aug", KEY)["edited_prompt"] == prompt
        view.edit(desk, "d", "aug", KEY, prompt[:2])
        assert view.failure(desk, "d", "aug", KEY)["edited_prompt"] == prompt[:2]


def test_answers_to_one_to_an_error_and_to_all(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        augmenting(desk.store)

        def change(state: str, error: str = "", key: str = "") -> tuple[int, str]:
            found = view.change(desk, "d", "aug", state, error, key, "li")
            return found["changed"], found["code"]

        assert change("REQUEUED", key=KEY) == (1, "failures_requeued")
        assert change("REQUEUED", key=KEY) == (0, "failures_none")
        assert change("DROPPED", error="EmptyAnswer") == (2, "failures_dropped")
        assert change("REQUEUED") == (3, "failures_requeued")


def test_an_entry_belongs_to_its_task_and_the_task_to_its_data_set(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        augmenting(desk.store)
        desk.store.create_task("c", "d", "clean", {}, ["f1"], "ann")
        for dataset, task, key in (
            ("d", "c", KEY),
            ("x", "aug", KEY),
            ("d", "aug", KEY[:60]),
            ("d", "aug", "f"),
        ):
            with pytest.raises(NotThere):
                view.failure(desk, dataset, task, key)
            with pytest.raises(NotThere):
                view.change(desk, dataset, task, "DROPPED", "", key, "li")
        assert view.failure(desk, "d", "aug", KEY)["state"] == "OPEN"
