"""Waiting without a slot: what a paused task leaves behind in the triggerer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

from airflow.triggers.base import BaseTrigger, TriggerEvent  # noqa: TID253 - where Airflow belongs

from dataflow_ops.airflow.waits import may_go_on
from dataflow_ops.errors import DataFlowError

LOOK_EVERY_S = 2.0
MOST_S = 60.0
"""Longest pause between two looks at a database that does not answer."""


class Look:
    """Looks at state every so often, in a thread: the triggerer's loop serves many.

    A database that can't be reached is asked again, ever more slowly: a restart must not end what waits.

    Args:
        ask: the question.
        every: seconds between two looks.
        log: told once of each fault.
    """

    def __init__(self, ask: Callable[[], bool], every: float, log: Callable[[str], Any]) -> None:
        self._ask = ask
        self._every = every
        self._log = log
        self._silent = 0

    async def __call__(self) -> bool | None:
        """The answer; None where the database gave none."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            answer = await asyncio.to_thread(self._ask)
        except (DataFlowError, SQLAlchemyError, OSError) as e:
            self._silent += 1
            if self._silent == 1:
                self._log(f"State can't be read, asked again until it can: {type(e).__name__}: {e}")
            return None
        self._silent = 0
        return answer

    @property
    def pause(self) -> float:
        """Seconds until the next look."""
        return min(MOST_S, self._every * float(2 ** min(self._silent, 10)))


class ResumeTrigger(BaseTrigger):
    """Fires when no pause flag holds for a run any more and, if asked, it is its turn.

    Args:
        home: DataFlow's home folder.
        run_id: the run that waits.
        dataset: its data set.
        turn: whether it waits for its turn at the steps that days take one after the other.
    """

    _looks: ClassVar[dict[tuple[str, str, str, bool], tuple[float, asyncio.Task[bool | None], Look]]] = {}
    """The waiting tasks of one run ask together: there may be hundreds in one triggerer."""

    def __init__(self, home: str, run_id: str, dataset: str = "", turn: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.home = home
        self.run_id = run_id
        self.dataset = dataset
        self.turn = turn

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes it again, in another process or after a restart."""
        arguments = {"home": self.home, "run_id": self.run_id, "dataset": self.dataset, "turn": self.turn}
        return "dataflow_ops.airflow.triggers.ResumeTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Fire once the run may go on."""
        while True:
            look, answer = await self._ask()
            if answer:
                break
            await asyncio.sleep(look.pause)
        yield TriggerEvent("resumed")  # type: ignore[no-untyped-call]

    async def _ask(self) -> tuple[Look, bool | None]:
        key, now = (self.home, self.dataset, self.run_id, self.turn), time.monotonic()
        known = self._looks.get(key)
        if known is None:
            look = Look(lambda: may_go_on(*key), LOOK_EVERY_S, self.log.warning)
        else:
            began, asking, look = known
            foreign = asking.get_loop() is not asyncio.get_running_loop()
            if not foreign and (not asking.done() or now - began < look.pause / 2):
                return look, await asyncio.shield(asking)
        asking = asyncio.ensure_future(look())
        self._looks[key] = now, asking, look
        # A trigger that is cancelled must not take the look of the others with it.
        answer = await asyncio.shield(asking)
        if answer:
            self._looks.pop(key, None)
        return look, answer
