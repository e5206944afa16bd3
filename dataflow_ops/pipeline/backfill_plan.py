"""What a backfill is asked to do, and which of its days need it."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dataflow_ops.dates import parse_day
from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.days import last_full
from dataflow_ops.pipeline.flow import LAYERS, steps_until
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.run import dry_run_of
from dataflow_ops.pipeline.session import data_date_of
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.backfills import DayRun
from dataflow_ops.state.machine import FINISHED_RUNS, LIVE_RUNS
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.versions import REMOVED

REPROCESS: Final = ("none", "failed", "all")
"""From the least to the most: days never done · failed ones too · every day again."""
TAKES_ALL: Final = "no full version yet whose files could be left out"
"""Why a day takes a source without ``{date}`` as a whole."""
MOST_DAYS: Final = 3_700
"""Ten years; a wrong digit in a year must not plan a thousand."""


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asked for. Days are inclusive.

    Attributes:
        job: path of the job file.
        settings: the job, overrides merged.
        first: first day.
        last: last day.
        reprocess: ``none``, ``failed`` or ``all``.
        overrides: ``section.key=value`` pairs, passed on.
        until: last layer of every day's run; None for all.
        promote: let versions made with overrides become current.
        urgent: go ahead of runs that are not.
    """

    job: Path
    settings: JobSettings
    first: dt.date
    last: dt.date
    reprocess: str = "none"
    overrides: tuple[str, ...] = ()
    until: str | None = None
    promote: bool = True
    urgent: bool = False

    @property
    def dataset(self) -> str:
        """Data set that the job makes."""
        return self.settings.dataset.id

    def kept(self) -> dict[str, Any]:
        """What state keeps of it, so that the same command is known again."""
        job = hashlib.sha256(self.settings.model_dump_json().encode()).hexdigest()
        return {
            "overrides": list(self.overrides),
            "until": self.until,
            "promote": self.promote,
            "urgent": self.urgent,
            "job_sha256": job,
        }


@dataclass(frozen=True, slots=True)
class DayPlan:
    """What becomes of one day.

    Attributes:
        day: ISO date.
        action: ``run``, ``skip``, ``wait`` for a run that another started, or ``done`` by this very backfill.
        why: for people.
        run_id: its newest run; ``""`` for none.
        state: of that run; ``""`` where the day was never run.
        version: the version that the day has; ``""`` for none.
    """

    day: str
    action: str
    why: str
    run_id: str = ""
    state: str = ""
    version: str = ""


def request_of(
    job: Path,
    first: str,
    last: str,
    *,
    reprocess: str = "none",
    overrides: Sequence[str] = (),
    until: str | None = None,
    promote: bool | None = None,
    urgent: bool = False,
) -> Request:
    """Check a request before anything is written.

    Args:
        job: job file.
        first: ISO date of the first day.
        last: ISO date of the last day, inclusive; may not lie in the future of the data set's time zone.
        reprocess: which days are done again.
        overrides: ``section.key=value`` pairs.
        until: last layer.
        promote: None: as for a run, unless there are overrides.
        urgent: go ahead of runs that are not.

    Raises:
        ConfigError: whatever is wrong with the job, the days or the options.
    """
    steps_until(until)
    if reprocess not in REPROCESS:
        raise ConfigError(f"--reprocess {reprocess}: there are {', '.join(REPROCESS)}")
    settings = load_job(job, overrides)
    start, end = parse_day(first, "--from"), parse_day(last, "--to")
    if start > end:
        raise ConfigError(f"--from {first} lies behind --to {last}; both days are inclusive")
    if (end - start).days >= MOST_DAYS:
        raise ConfigError(f"--from {first} --to {last}: more than {MOST_DAYS:,} days; is a digit wrong?")
    today = data_date_of(settings)
    if end.isoformat() > today:
        raise ConfigError(f"--to {last} has not begun: in {settings.dataset.timezone} it is {today}")
    return Request(
        job.absolute(),
        settings,
        start,
        end,
        reprocess,
        tuple(overrides),
        until,
        not overrides if promote is None else promote or not overrides,
        urgent,
    )


def days_of(request: Request) -> list[str]:
    """All days asked for, ISO dates, ascending."""
    count = (request.last - request.first).days + 1
    return [(request.first + dt.timedelta(days=i)).isoformat() for i in range(count)]


def plan_days(request: Request, runs: Mapping[str, Sequence[DayRun]]) -> list[DayPlan]:
    """Decide for each day.

    Args:
        request: what was asked for.
        runs: day -> its incremental runs, newest first.
    """
    return [plan_day(request, day, runs.get(day, ())) for day in days_of(request)]


def plan_day(
    request: Request, day: str, runs: Sequence[DayRun], own: str = "", gone: Collection[str] = ()
) -> DayPlan:
    """Decide for one day.

    Args:
        request: what was asked for.
        day: ISO date.
        runs: its incremental runs, newest first.
        own: this backfill's run of the day, which is no stranger.
        gone: live runs of which nothing was heard for so long that nobody waits for them.
    """
    if not runs:
        return DayPlan(day, "run", "never run")
    newest = runs[0]
    done = next(
        (r for r in runs if r.state in FINISHED_RUNS and _far_enough(r.until_layer, request.until)), None
    )
    version = next((r.version_id for r in runs if r.version_id and r.state in FINISHED_RUNS), "")
    removed = any(r.version_state == REMOVED for r in runs if r.version_id == version)
    at = {"run_id": newest.run_id, "state": newest.state, "version": version}
    if any(r.run_id == own and r.state in FINISHED_RUNS for r in runs):
        return DayPlan(day, "done", f"version {version}" if version else "done", **at)
    strange = next((r for r in runs if r.state in LIVE_RUNS and r.run_id not in (own, *gone)), None)
    if strange is not None:
        why = f"run {strange.run_id} is {strange.state}: waits for it, then looks again"
        return DayPlan(day, "wait", why, **at)
    if request.reprocess == "all":
        return DayPlan(day, "run", "done again" if done else "not done yet", **at)
    if newest.run_id == own and newest.state not in FINISHED_RUNS:
        return DayPlan(day, "run", "goes on", **at)
    if newest.state in ("FAILED", "CANCELLED"):
        word = newest.state.lower()
        if request.reprocess == "failed":
            return DayPlan(day, "run", f"{word} before", **at)
        if done is None:
            return DayPlan(day, "skip", f"{word} before; --reprocess failed does it again", **at)
    if done is not None:
        return DayPlan(day, "skip", _has(version, removed), **at)
    if newest.state in FINISHED_RUNS:
        return DayPlan(day, "run", f"was run up to layer '{newest.until_layer}' only", **at)
    return DayPlan(day, "run", f"run {newest.run_id} stopped in the middle", **at)


def dry_run(request: Request, home_path: Path, workers: int) -> list[dict[str, Any]]:
    """One row per day: what would happen, and what its listing finds. Starts nothing, makes no folder.

    Raises:
        ConfigError: whatever the runs themselves would refuse.
    """
    runs: dict[str, list[DayRun]] = {}
    base = None
    if home_path.is_dir():
        with StateStore(open_home(home_path, create=False).state_url) as state:
            runs = state.day_runs(request.dataset, request.first.isoformat(), request.last.isoformat())
            base = last_full(state, request.dataset)
    undated = [source.source_id for source in request.settings.sources if not source.dated]
    whole = f"; takes all of {', '.join(undated)}: {TAKES_ALL}" if undated and base is None else ""
    rows = []
    for plan in plan_days(request, runs):
        found = dry_run_of(
            request.settings,
            request.until,
            workers,
            mode="incremental",
            data_date=plan.day,
            home_path=home_path,
        )
        rows.append(
            {
                "day": plan.day,
                "action": plan.action,
                "why": plan.why + (whole if plan.action == "run" else ""),
                "run": plan.run_id,
                "state": plan.state,
                "version": plan.version,
                "files": sum(s["files"] for s in found["sources"]),
                "bytes": sum(s["bytes"] for s in found["sources"]),
                "chunks": sum(s["chunks"] for s in found["sources"]),
            }
        )
    return rows


def _has(version: str, removed: bool) -> str:
    if not version:
        return "done already"
    return f"had version {version}, past retention now" if removed else f"has version {version}"


def _far_enough(went: str | None, wanted: str | None) -> bool:
    """Whether a run until ``went`` did what a run until ``wanted`` would do."""
    return _depth(went) >= _depth(wanted)


def _depth(until: str | None) -> int:
    return len(LAYERS) - 1 if until is None else LAYERS.index(until)
