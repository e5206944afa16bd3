"""Where a backfill's days are run, checked and begun: in Airflow where it is up, else in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from dataflow_ops.clients.airflow_api import AirflowApi, AirflowAway, find_login
from dataflow_ops.errors import CommitUnknown, ConfigError, DatabaseUnavailable, DataFlowError
from dataflow_ops.pipeline.backfill import Backfill, Watch
from dataflow_ops.pipeline.backfill_control import BackfillBook
from dataflow_ops.pipeline.backfill_days import BY_AIRFLOW, AirflowDays, DayRunner, LocalDays, dag_of
from dataflow_ops.pipeline.backfill_plan import Request
from dataflow_ops.pipeline.driver import Reporter
from dataflow_ops.pipeline.run import dry_run_of
from dataflow_ops.state.backfills import BackfillRecord
from dataflow_ops.state.database import PATIENCE_S

AWAY: Final = (DatabaseUnavailable, CommitUnknown, AirflowAway)
"""What is raised where the database or Airflow goes down under a backfill."""


class BackfillStopped(DataFlowError):
    """What a backfill needs went away: the same command goes on where it stood."""

    retryable = True


def stopped(cause: DataFlowError, record: BackfillRecord | None, again: str) -> BackfillStopped:
    """The error that says what stopped, that nothing is lost, and how to go on.

    Args:
        cause: one of :data:`AWAY`.
        record: the backfill; None where none was begun yet.
        again: command that goes on with it.
    """
    # What a database's driver says is about sockets: its server's log tells more.
    what = str(cause) if isinstance(cause, AirflowAway) else "the state database can't be reached"
    if record is None:
        return BackfillStopped(f"{what}; nothing was begun. Once it is back, the same command begins.")
    return BackfillStopped(
        f"backfill {record.backfill_id} of {record.dataset} stopped: {what}. Nothing is lost: days that ended"
        " stay done, and the day under way goes on from its last batch. Once it is back, the same command"
        f" goes on where it stood, or: {again}"
    )


def airflow_if_up(home_path: Path, note: Callable[[str], object]) -> AirflowApi | None:
    """A client of the Airflow that belongs to a home, if it is up; the caller closes it.

    Raises:
        ConfigError: the environment names an Airflow, and it does not answer.
    """
    login = find_login(home_path)
    if login is None:
        return None
    api = AirflowApi(login)
    if api.is_healthy():
        return api
    api.close()
    if login.where == "the environment":
        raise ConfigError(
            f"Airflow at {login.url} (DATAFLOW_AIRFLOW_URL) is not up; start it, or add --local to run here"
        )
    note(f"Airflow at {login.url} is not up: this process runs the days itself")
    return None


def check(request: Request, home_path: Path, api: AirflowApi | None, workers: int) -> None:
    """Refuse before anything is written what would fail every day.

    Raises:
        ConfigError: the sources or settings are wrong.
        AirflowRefused: there is no such DAG, or it may not be run.
    """
    if api is not None:
        api.is_dag_paused(dag_of(request.dataset))
    else:
        dry_run_of(
            request.settings,
            request.until,
            workers,
            mode="incremental",
            data_date=request.first.isoformat(),
            home_path=home_path,
        )


def drive(
    book: BackfillBook,
    request: Request,
    record: BackfillRecord,
    api: AirflowApi | None,
    watch: Watch,
    reporter_of: Callable[[str], Reporter],
    workers: int,
    parallel: int,
) -> BackfillRecord:
    """Drive a backfill in this process until it ends or is paused; days run where its first one did.

    Args:
        book: the open home.
        request: what was asked for.
        record: the backfill.
        api: Airflow, where it is up.
        watch: hears how it goes.
        reporter_of: day -> who hears of its steps, where this process runs them.
        workers: worker processes of a day that this process runs.
        parallel: days under way at once.

    Raises:
        ConfigError: its days run in Airflow, and it is away.
        DataFlowError: see :meth:`Backfill.go`.
    """
    book.state.be_patient(PATIENCE_S)
    begun = [d.run_id for d in book.open_days(record) if d.run_id]
    in_airflow = any(run_id.startswith(BY_AIRFLOW) for run_id in begun)
    if in_airflow and api is None:
        raise ConfigError(
            f"a day of backfill {record.backfill_id} runs in Airflow, which is not up; start it, then the"
            " same command goes on"
        )
    runner: DayRunner
    if api is not None and (in_airflow or not begun):
        runner = AirflowDays(request, api, book.state, watch.note)
    else:
        runner = LocalDays(request, book.home.path, book.state, workers, reporter_of)
    return Backfill(book.state, book.flags, request, record, runner, watch, parallel).go()
