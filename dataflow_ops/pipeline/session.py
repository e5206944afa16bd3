"""An opened run: its row in state, its stores, its driver. Both callers begin and end runs through here."""

from __future__ import annotations

import datetime as dt
import json
import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from zoneinfo import ZoneInfo

from dataflow_ops.engine.context import Hooks, NoHooks, RunContext, owner_is_gone
from dataflow_ops.engine.pool import Pool
from dataflow_ops.engine.runner import give_back
from dataflow_ops.engine.tidy import tidy
from dataflow_ops.errors import ConfigError, IllegalMove, LeaseLost
from dataflow_ops.job_file import parse_job
from dataflow_ops.pipeline.build import build_steps
from dataflow_ops.pipeline.driver import Driver, Reporter
from dataflow_ops.pipeline.ending import end_failed, end_run
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.parent import base_parts, check_base, refuse_other_ranges, settle
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.records import INCREMENTAL, RunRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.opening import open_store
from dataflow_ops.timing import ParentSettings
from dataflow_ops.values import Claim

if TYPE_CHECKING:
    import pyarrow as pa


def data_date_of(settings: JobSettings, moment: dt.datetime | None = None) -> str:
    """The local date, in the data set's time zone, of a moment (now)."""
    moment = moment or dt.datetime.now(dt.UTC)
    return moment.astimezone(ZoneInfo(settings.dataset.timezone)).date().isoformat()


def create_run(
    home: Home,
    settings: JobSettings,
    mode: str,
    *,
    run_id: str = "",
    data_date: str = "",
    job_name: str = "",
    promote: bool = True,
    until: str | None = None,
    origin: Mapping[str, Any] | None = None,
    urgent: bool = False,
) -> str:
    """Create a run's row, or take up the live run of the same job, so that a double trigger is one run.

    Runs of other modes, and incremental runs of other days, go on side by side.

    Args:
        home: where state is.
        settings: the job, overrides merged.
        mode: ``full`` or ``incremental``.
        run_id: take this name; empty: the live run of the same job, or a new one.
        data_date: ISO date of the data; default today in the data set's time zone.
        job_name: for people.
        promote: let the new version become current.
        until: last layer of the run; None for all.
        origin: what started it (``{"kind": "airflow", "dag_id": …, "run_id": …}``); None: a command line.
        urgent: whether it goes ahead of runs that are not.

    Returns:
        The run's id.

    Raises:
        ConfigError: no such mode, not a date, or ``run_id`` is a run with other settings.
    """
    text = settings.model_dump_json()
    date = data_date or data_date_of(settings)
    state = StateStore(home.state_url)
    try:
        from dataflow_ops.pipeline.days import in_interval

        own = in_interval(settings, mode, date, state, open_store(home.root))
        if run_id:
            known = state.get_run(run_id)
            if known is not None and known.mode == mode and _job_of(known) == text:
                return run_id
            if known is not None:
                raise ConfigError(f"run '{run_id}' exists with other settings; give this one another name")
        else:
            for live in state.live_runs(settings.dataset.id):
                same_day = mode == "full" or live.data_date == date
                if live.mode == mode and same_day and _job_of(live) == text:
                    state.set_until(live.run_id, until)
                    return live.run_id
            stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%S")
            run_id = f"{settings.dataset.id}-{mode}-{stamp}-{secrets.token_hex(2)}"
        state.create_run(
            run_id,
            settings.dataset.id,
            job_name or settings.dataset.id,
            mode,
            own.model_dump_json(),
            date,
            promote,
            urgent=urgent,
            until_layer=until,
            origin=None if origin is None else json.dumps(dict(origin), sort_keys=True),
        )
        return run_id
    finally:
        state.close()


def _job_of(row: RunRecord) -> str:
    """A run's settings as its job has them, without what the run added; of any age."""
    return parse_job_text(row.settings, row.run_id).model_copy(update={"interval": None}).model_dump_json()


class Session(AbstractContextManager["Session"]):
    """A run, opened in this process.

    Args:
        home: where state and storage are.
        run_id: an existing run.
        workers: worker processes; 0 runs tasks in this process.
        reporter: hears of progress.
        discover: list the sources now (the coordinating process does, once).
        hooks: crash points, for tests.
        tuning: fields of :class:`RunContext` to replace (batch sizes, lease); never shapes output.
    """

    def __init__(
        self,
        home: Home,
        run_id: str,
        workers: int,
        reporter: Reporter,
        *,
        discover: bool = False,
        hooks: Hooks | None = None,
        tuning: dict[str, object] | None = None,
    ) -> None:
        self.home = home
        self.state = StateStore(home.state_url)
        try:
            self._open(run_id, workers, reporter, discover, hooks, tuning)
        except BaseException:
            self.state.close()
            raise

    def _open(
        self,
        run_id: str,
        workers: int,
        reporter: Reporter,
        discover: bool,
        hooks: Hooks | None,
        tuning: dict[str, object] | None,
    ) -> None:
        home = self.home
        row = self.state.get_run(run_id)
        if row is None:
            raise ConfigError(f"no run '{run_id}' here; `dataflow runs` lists them")
        self.row = row
        self.settings = parse_job_text(row.settings, run_id)
        blobs = open_store(home.root)
        base = base_parts(self.state, blobs, self.settings)
        if discover:
            check_base(self.state, blobs, self.settings)
        self.context = replace(
            RunContext(
                run_id,
                self.settings,
                home.root,
                home.state_url,
                redis_url=home.redis_url,
                urgent=row.urgent,
                base=base,
                hooks=hooks or NoHooks(),
            ),
            **(tuning or {}),  # type: ignore[arg-type]
        )
        # It was there a moment ago: should it go away now, it is waited for.
        self.state.be_patient(self.context.patience_s)
        self.chunks = ChunkStore(open_store(home.root, self.context.disk))
        self._reporter = reporter
        self._listing: pa.Table | None = self._list() if discover else None
        self.pool = Pool(self.context, build_steps, workers)
        self.steps = build_steps(self.context, self._listing)
        if discover:
            # Steps check their own settings when they are made: what is wrong is told before work begins.
            self.steps = dict(self.steps)
        self.driver = Driver(
            self.context, self.steps, self.state, self.chunks, self.pool, reporter, has_listing=discover
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(at_once=kind is not None and issubclass(kind, KeyboardInterrupt | SystemExit))

    def close(self, *, at_once: bool = False) -> None:
        """End the workers and close the state store. What they were made to drop costs no attempt.

        Args:
            at_once: do not wait for what they work on: whoever interrupts may kill this process next.
        """
        if at_once:
            self.state.be_patient(0)
        try:
            self.pool.close(at_once=at_once)
            for record in self.state.records([spec.key for spec in self.pool.cut_off]).values():
                if record.state == "RUNNING" and owner_is_gone(record.owner):
                    with suppress(LeaseLost):
                        give_back(
                            self.state, Claim(record.key, record.epoch, record.attempt, record.owner or "")
                        )
        except Exception as e:  # noqa: BLE001 - told: it must not hide what ended the run
            self.driver.reporter.note(f"tasks that were cut off could not be given back: {e}")
        finally:
            self.state.close()

    def discover(self, *, relist: bool = False) -> None:
        """Run ``discover`` in this process; with ``relist`` after a new look at the sources."""
        if relist:
            self._listing = self._list()
            self.steps = build_steps(self.context, self._listing)
            self.driver.steps = self.steps
            self.driver.has_listing = True
            self.driver.forget()
        self.driver.discover()

    def _list(self) -> pa.Table:
        from dataflow_ops.pipeline.days import listing_of

        return listing_of(self.settings, self.state, self.chunks, self._reporter.note)

    @property
    def parent(self) -> ParentSettings | None:
        """The version that the run builds on; None for full runs, and for increments."""
        return None if self.settings.interval is None else self.settings.interval.parent

    @property
    def is_increment(self) -> bool:
        """Whether the run's version holds one interval's documents and builds on nothing."""
        return self.row.mode == INCREMENTAL and self.parent is None

    def settle_parent(self) -> None:
        """Fix once and for all which version the run builds on: its turn has come. Other runs build on none.

        Raises:
            VersionError: the current version's index is gone, or can't be compared with.
            SourceChanged: what the run has signed must be cut otherwise; list the sources again and go on.
        """
        if self.settings.interval is None or self.settings.interval.settled:
            return
        before = self.settings.interval
        found = settle(self.state, self.chunks.blobs, self.settings, self.driver.reporter.note)
        other = found.parent is not None and dict(found.ranges) != dict(before.ranges)
        # Nothing is settled before everything is cut so that the index fits.
        kept = before.model_copy(update={"ranges": found.ranges}) if other else found
        text = self.settings.model_copy(update={"interval": kept}).model_dump_json()
        self.row = self.state.change_settings(self.row.run_id, self.row.settings, text)
        self.settings = parse_job_text(self.row.settings, self.row.run_id)
        base = base_parts(self.state, self.chunks.blobs, self.settings)
        self.context = replace(self.context, settings=self.settings, base=base)
        self.steps = build_steps(self.context, self._listing)
        self.driver.take_over(self.context, self.steps)
        if other:
            refuse_other_ranges(before, found)
        if found.parent is not None:
            self.driver.reporter.note(f"builds on version {found.parent.version}")

    def begin(self) -> None:
        """Mark the run as running, unless another process that drives it has just ended it.

        What killed processes left behind is cleared away first.
        """
        tidy(self.state, self.chunks.blobs)
        try:
            self.state.set_run_state(self.row.run_id, "start", "")
        except IllegalMove:
            self.driver.reporter.note("another process ended this run a moment ago; looking at what it left")

    def end(self, state: str, detail: str = "") -> None:
        """Move the run to where it ended, wherever another process that drove it had left it."""
        end_run(self.state, self.row.run_id, state, detail)

    def end_failed(self, met: Exception) -> None:
        """End the run as failed, see :func:`~dataflow_ops.pipeline.ending.end_failed`."""
        end_failed(self.state, self.row.run_id, met, self.driver.reporter.note)


def parse_job_text(text: str, where: str) -> JobSettings:
    """Settings from a run's row."""
    return parse_job(json.loads(text), where)


def latest_run(state: StateStore, dataset: str | None = None) -> str:
    """Id of the newest run.

    Raises:
        ConfigError: there is none.
    """
    runs = state.list_runs(dataset, 1)
    if runs:
        return runs[0].run_id
    others = sorted({r.dataset for r in state.list_runs(None, 1000)})
    if dataset is not None and others:
        raise ConfigError(f"data set '{dataset}' has no run here; there are {', '.join(others)}")
    raise ConfigError("no runs yet; `dataflow run JOB` starts one")


def default_home() -> Path:
    """``./.dataflow``."""
    return Path(".dataflow")
