"""How one day of a backfill is run: by this process, or by Airflow."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from dataflow_ops.clients.airflow_api import AirflowApi, AirflowAway
from dataflow_ops.errors import DataFlowError
from dataflow_ops.pipeline.backfill_plan import Request
from dataflow_ops.pipeline.driver import Reporter
from dataflow_ops.pipeline.run import run_job
from dataflow_ops.state.machine import FINISHED_RUNS
from dataflow_ops.state.store import StateStore

BY_AIRFLOW: Final = "airflow-"
"""How the names of Airflow's runs begin in state."""
LOOK_EVERY_S = 5.0
"""Seconds between two looks at a day in Airflow."""


@dataclass(frozen=True, slots=True)
class DayEnd:
    """How a day ended: ``DONE``, ``FAILED``, ``PAUSED`` or ``CANCELLED``.

    Attributes:
        state: see above.
        detail: version, or what went wrong, for people.
    """

    state: str
    detail: str


class DayRunner(Protocol):
    """Runs days."""

    @property
    def where(self) -> str:
        """Where the days are run, for people."""

    def run_id(self, backfill_id: str, day: str) -> str:
        """Name in state of the run that does a day of a backfill; always the same."""

    def run(self, backfill_id: str, day: str, halted: Callable[[], bool]) -> DayEnd:
        """Bring a day to its end.

        Args:
            backfill_id: which backfill.
            day: ISO date.
            halted: whether the backfill was paused or cancelled meanwhile.

        Raises:
            DataFlowError: a systemic fault, which would meet every other day as well.
        """


class LocalDays:
    """Days in this process and its workers.

    Args:
        request: what every day is given.
        home: home folder.
        state: open state store.
        workers: worker processes; 0 for this one.
        reporter_of: day -> who hears of its progress.
    """

    where = "in this process"

    def __init__(
        self,
        request: Request,
        home: Path,
        state: StateStore,
        workers: int,
        reporter_of: Callable[[str], Reporter],
    ) -> None:
        self._request = request
        self._home = home
        self._state = state
        self._workers = workers
        self._reporter_of = reporter_of

    def run_id(self, backfill_id: str, day: str) -> str:
        """See :class:`DayRunner`."""
        return f"backfill-{backfill_id}-{day}"

    def run(self, backfill_id: str, day: str, halted: Callable[[], bool]) -> DayEnd:
        """See :class:`DayRunner`. A pause flag at the run stops it: nobody need ask ``halted``."""
        asked, run_id = self._request, self.run_id(backfill_id, day)
        try:
            ended = run_job(
                asked.settings,
                self._home,
                mode="incremental",
                until=asked.until,
                workers=self._workers,
                reporter=self._reporter_of(day),
                run_id=run_id,
                data_date=day,
                job_name=asked.job.stem,
                promote=asked.promote,
                urgent=asked.urgent,
            )
        except DataFlowError as e:
            row = self._state.get_run(run_id)
            if row is not None and row.state == "CANCELLED":
                return DayEnd("CANCELLED", row.detail or "cancelled")
            if e.systemic:
                raise
            return DayEnd("FAILED", f"{type(e).__name__}: {e}")
        if ended.state == "PAUSED":
            return DayEnd("PAUSED", ended.message.splitlines()[0])
        return DayEnd("DONE", _made(ended.version_id, ended.state, asked.until))


class AirflowDays:
    """Days as runs of the data set's DAG in Airflow; this process only asks how they are.

    Args:
        request: what every day is given.
        api: logged in.
        state: open state store, the one that Airflow's tasks write to.
        note: told what a person should know while a day runs.
    """

    def __init__(
        self,
        request: Request,
        api: AirflowApi,
        state: StateStore,
        note: Callable[[str], object],
    ) -> None:
        self._request = request
        self._api = api
        self._state = state
        self._note = note
        self._dag_id = dag_of(request.dataset)

    @property
    def where(self) -> str:
        """See :class:`DayRunner`."""
        return f"as runs of DAG {self._dag_id} in Airflow at {self._api.login.url}"

    def run_id(self, backfill_id: str, day: str) -> str:
        """See :class:`DayRunner`."""
        return f"{BY_AIRFLOW}{self._dag_id}-{dag_run_id(backfill_id, day)}"

    def run(self, backfill_id: str, day: str, halted: Callable[[], bool]) -> DayEnd:
        """See :class:`DayRunner`."""
        asked, name = self._request, dag_run_id(backfill_id, day)
        conf = {
            "data_date": day,
            "overrides": list(asked.overrides),
            "until": asked.until,
            "promote": asked.promote,
            "priority": "urgent" if asked.urgent else "normal",
            "backfill": backfill_id,
        }
        triggered = False
        while not halted():
            try:
                if not triggered:
                    self._api.trigger(self._dag_id, name, conf, note=f"Backfill {backfill_id}, {day}")
                    triggered = True
                    if self._api.is_dag_paused(self._dag_id):
                        self._note(
                            f"DAG {self._dag_id} is switched off in Airflow: {day} waits in its queue until"
                            " somebody switches it on"
                        )
                end = self._look(backfill_id, day, name)
            except AirflowAway as e:
                self._note(f"{e}; asked again until it does")
                end = None
            if end is not None:
                return end
            time.sleep(LOOK_EVERY_S)
        return DayEnd("PAUSED", "the run stops at its next batch boundary")

    def _look(self, backfill_id: str, day: str, name: str) -> DayEnd | None:
        there = self._api.dag_run(self._dag_id, name)
        row = self._state.get_run(self.run_id(backfill_id, day))
        if there is None:
            return DayEnd("FAILED", f"run {name} of DAG {self._dag_id} was deleted in Airflow")
        if row is not None and row.state == "CANCELLED":
            return DayEnd("CANCELLED", row.detail or "cancelled")
        # A version that waits for a person keeps the DAG run open; the days after it need not wait.
        over = there.state == "success" or (row is not None and row.state == "AWAITING_APPROVAL")
        if row is not None and row.state in FINISHED_RUNS and over:
            runs = self._state.day_runs(row.dataset, day, day).get(day, [])
            version = next((r.version_id for r in runs if r.run_id == row.run_id), "")
            return DayEnd("DONE", _made(version, row.state, self._request.until))
        if there.state == "failed":
            why = (row.detail if row is not None else "") or "see its log"
            return DayEnd("FAILED", f"{why} ({self._api.run_page(self._dag_id, name)})")
        if there.state == "success":
            said = f"run {row.run_id} is {row.state}" if row is not None else "its run is not in this state"
            return DayEnd(
                "FAILED",
                f"Airflow says success, but {said}; do both use the same database (DATAFLOW_STATE_URL)?",
            )
        return None


def dag_of(dataset: str) -> str:
    """Airflow's name of the DAG that makes a data set's increments."""
    return f"{dataset}__incremental"


def dag_run_id(backfill_id: str, day: str) -> str:
    """Airflow's name for the run of a day. Names that begin with ``backfill__`` are Airflow's own."""
    return f"dataflow_backfill__{backfill_id}__{day}"


def _made(version: str, state: str, until: str | None) -> str:
    if until not in (None, "export"):
        return f"done up to layer '{until}'"
    made = f"version {version}" if version else "nothing new: a version holds the same"
    return f"{made}, waits for a person" if state == "AWAITING_APPROVAL" else made
