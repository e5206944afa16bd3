"""Waiting without a slot: what a paused task leaves behind in the triggerer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent  # noqa: TID253 - where Airflow belongs

LOOK_EVERY_S = 2.0


class ResumeTrigger(BaseTrigger):
    """Fires when no pause flag holds for a run any more.

    Args:
        home: DataFlow's home folder.
        run_id: the paused run.
    """

    def __init__(self, home: str, run_id: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.home = home
        self.run_id = run_id

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes it again, in another process or after a restart."""
        return "dataflow_ops.airflow.triggers.ResumeTrigger", {"home": self.home, "run_id": self.run_id}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look every two seconds, in a thread: the triggerer's loop serves many."""
        from dataflow_ops.pipeline.status import is_paused

        while await asyncio.to_thread(is_paused, Path(self.home), self.run_id):
            await asyncio.sleep(LOOK_EVERY_S)
        yield TriggerEvent("resumed")  # type: ignore[no-untyped-call]
