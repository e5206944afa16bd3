"""Waiting in the triggerer: through restarts of the database, and hundreds at once with one question."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from dataflow_ops.errors import DatabaseUnavailable

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("airflow-triggers")]


class Answers:
    """Gives scripted answers, then the last one for ever; counts the questions.

    Args:
        script: each a truth value, or an error to raise.
    """

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.asked = 0
        self._lock = threading.Lock()

    def __call__(self, *_: Any) -> bool:
        with self._lock:
            self.asked += 1
            answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        time.sleep(0.01)
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answers], Answers]]:
    from dataflow_ops.airflow import triggers

    monkeypatch.setattr(triggers, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(triggers, "MOST_S", 0.05)

    def use(answers: Answers) -> Answers:
        monkeypatch.setattr(triggers, "may_go_on", answers)
        return answers

    yield use
    triggers.ResumeTrigger._looks.clear()


async def fired(*triggers: Any) -> list[Any]:
    async def first(trigger: Any) -> Any:
        async for event in trigger.run():
            return event.payload

    return await asyncio.gather(*(first(trigger) for trigger in triggers))


def make(run_id: str = "r", **more: Any) -> Any:
    from dataflow_ops.airflow.triggers import ResumeTrigger

    trigger = ResumeTrigger("/home", run_id, "web", **more)
    # As the triggerer makes it.
    path, arguments = trigger.serialize()
    assert path == "dataflow_ops.airflow.triggers.ResumeTrigger"
    return type(trigger)(**arguments)


def test_it_fires_once_the_run_may_go_on(answering: Callable[[Answers], Answers]) -> None:
    answers = answering(Answers(False, False, True))
    assert asyncio.run(fired(make())) == ["resumed"]
    assert answers.asked == 3


@pytest.mark.parametrize(
    "gone",
    [
        DatabaseUnavailable("no answer"),
        OperationalError("select", {}, Exception("terminating connection")),
        OSError("host is down"),
    ],
)
def test_a_restarted_database_does_not_end_what_waits(
    answering: Callable[[Answers], Answers], gone: Exception
) -> None:
    answers = answering(Answers(False, gone, gone, gone, False, True))
    assert asyncio.run(fired(make())) == ["resumed"]
    assert answers.asked == 6


def test_looks_at_a_silent_database_are_ever_rarer() -> None:
    from dataflow_ops.airflow.triggers import MOST_S, Look

    said: list[str] = []
    look = Look(Answers(DatabaseUnavailable("away")), 2.0, said.append)

    async def pauses() -> list[float]:
        found = []
        for _ in range(8):
            assert await look() is None
            found.append(look.pause)
        return found

    found = asyncio.run(pauses())
    assert found == sorted(found)
    assert (found[0], found[-1]) == (4.0, MOST_S)
    assert len(said) == 1, "once is enough"


def test_the_tasks_of_a_run_ask_together(answering: Callable[[Answers], Answers]) -> None:
    answers = answering(Answers(*[False] * 10, True))
    assert asyncio.run(fired(*(make() for _ in range(200)))) == ["resumed"] * 200
    # 11 looks were needed; each trigger on its own would have made as many.
    assert answers.asked < 60


def test_runs_ask_for_themselves(answering: Callable[[Answers], Answers]) -> None:
    answers = answering(Answers(True))
    assert asyncio.run(fired(make("a"), make("b"), make("b", turn=True))) == ["resumed"] * 3
    assert answers.asked == 3


def test_one_that_is_cancelled_takes_no_other_with_it(answering: Callable[[Answers], Answers]) -> None:
    answering(Answers(False, False, False, True))

    async def one_leaves() -> list[Any]:
        leaving = asyncio.create_task(fired(make()))
        staying = asyncio.create_task(fired(make()))
        await asyncio.sleep(0.005)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        return await asyncio.wait_for(staying, 20)

    assert asyncio.run(one_leaves()) == ["resumed"]
