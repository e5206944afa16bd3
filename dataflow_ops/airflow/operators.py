"""Operators: thin callers of the same driver that the command line uses. Nothing heavy at import."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from airflow.sdk import BaseOperator  # noqa: TID253 - this package is where Airflow belongs
from airflow.sdk.exceptions import (  # noqa: TID253
    AirflowFailException,
    AirflowSkipException,
    TaskDeferred,
)

from dataflow_ops.airflow.assets import tell, tell_nothing
from dataflow_ops.airflow.object_store import use_connection
from dataflow_ops.airflow.processes import allow_children
from dataflow_ops.airflow.triggers import ResumeTrigger
from dataflow_ops.airflow.waits import held_back, leave_turn, turn
from dataflow_ops.pipeline.flow import partitioning


def our_run_id(context: Any) -> str:
    """Our name for an Airflow run."""
    return f"airflow-{context['dag'].dag_id}-{context['run_id']}"


class Pausable(BaseOperator):
    """Looks for a pause before it works, and hands its slot back while one holds or another day comes first.

    No retry is used: the trigger calls ``execute`` again once the run may go on.

    Args:
        home: DataFlow's home folder.
        dataset: data set that the DAG makes.
    """

    def __init__(self, *, home: str, dataset: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.home = home
        self.dataset = dataset

    def execute(self, context: Any, event: Any = None) -> Any:
        """Work, or wait without a slot while the run is paused."""
        from dataflow_ops.pipeline.ordered import WaitsForTurn
        from dataflow_ops.pipeline.tally import RunPaused

        allow_children()
        use_connection()
        run_id = our_run_id(context)
        if held_back(self.home, self.dataset, run_id):
            self._wait(run_id)
        try:
            return self.work(context, run_id)
        except RunPaused:
            self._wait(run_id)
        except WaitsForTurn as e:
            self._wait(run_id, str(e))

    def on_kill(self) -> None:
        """Airflow wants the task to end (cleared, marked, a worker that ends) and kills it in 5 seconds.

        It is called in the midst of whatever the task does: unwinding gives back what it holds, so that no
        attempt at a chunk is used.
        """
        raise SystemExit("Airflow ended this task; what is done is kept")

    def work(self, context: Any, run_id: str) -> Any:
        """What the task does.

        Raises:
            RunPaused: a pause flag was met on the way; everything done is kept.
            WaitsForTurn: an earlier day of the data set comes first.
        """
        raise NotImplementedError

    def _wait(self, run_id: str, turn_of: str = "") -> NoReturn:
        if turn_of:
            self.log.info("Waits for its turn, the slot is free: %s", turn_of)
        else:
            self.log.info("Paused, the slot is free. Go on with: dataflow resume %s", run_id)
        trigger = ResumeTrigger(self.home, run_id, self.dataset, bool(turn_of))
        raise TaskDeferred(trigger=trigger, method_name="execute")


FOREIGN = ("dataset", "sources")
"""Sections of a job that the form may not change: whoever may start a run of one data set must not publish
into another, or read files that its job file does not name."""


def refuse_foreign(overrides: Sequence[str]) -> None:
    """Refuse overrides of what a job reads and what it is.

    Raises:
        ConfigError: names the override.
    """
    from dataflow_ops.errors import ConfigError

    for line in overrides:
        if line.partition("=")[0].strip().partition(".")[0] in FOREIGN:
            raise ConfigError(
                f"override '{line.strip()[:80]}': {' and '.join(FOREIGN)} can't be changed for one run here;"
                " change the job file, or use `dataflow run` on the command line"
            )


class Start(Pausable):
    """Lists the sources, creates (or takes up) the run, and fixes how many bundles each step has.

    Args:
        job: job file.
        mode: ``full`` or ``incremental``.
    """

    template_fields: Sequence[str] = ("overrides", "until", "promote", "urgent", "look_only", "data_date")

    def __init__(self, *, job: str, mode: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.mode = mode
        self.overrides = "{{ (params.overrides or []) | tojson }}"
        self.until = "{{ params.until or '' }}"
        self.promote = "{{ params.promote | tojson }}"
        self.urgent = "{{ (params.priority == 'urgent') | tojson }}"
        self.look_only = "{{ params.dry_run | tojson }}"
        self.data_date = "{{ (dag_run.conf or {}).get('data_date') or '' }}"

    def work(self, context: Any, run_id: str) -> dict[str, Any]:
        """Return the run's id, its last layer, whether to promote, and bundles by partitioning."""
        import dataclasses

        from dataflow_ops.pipeline.bundles import start_run
        from dataflow_ops.pipeline.refusals import Refusal, refusals_told

        job, home, dry = Path(self.job), Path(self.home), json.loads(self.look_only)
        dag_id, dag_run = context["dag"].dag_id, context["run_id"]
        asked = Refusal(run_id, self.dataset, job.stem, self.mode, dag_id, dag_run, dry)
        overrides = [line for line in json.loads(self.overrides) if line.strip()]
        with refusals_told(home, asked):
            refuse_foreign(overrides)
            started = start_run(
                job,
                home,
                mode=self.mode,
                run_id=run_id,
                overrides=overrides,
                dataset=self.dataset,
                until=self.until or None,
                promote=json.loads(self.promote),
                moment=self._moment(context),
                log=self.log.info,
                origin={"kind": "airflow", "dag_id": dag_id, "run_id": dag_run},
                urgent=json.loads(self.urgent),
                data_date=self.data_date or None,
                dry_run=dry,
            )
        told = dataclasses.asdict(started)
        # By source it stands in the log, for it may be long; the sums are for the run's tab.
        sources = told.pop("found").get("sources", ())
        sums = {what: sum(row[what] for row in sources) for what in ("files", "bytes", "chunks")}
        return {**told, "looked": {"sources": len(sources), **sums} if started.dry_run else None}

    def _moment(self, context: Any) -> dt.datetime | None:
        """What dates the run. A full run by hand is of the day it was asked for, not of the last whole week.

        A run by hand may have neither an interval nor a logical date: then it is of now.
        """
        interval, logical = context.get("data_interval_start"), context.get("logical_date")
        first, second = (logical, interval) if self.mode == "full" else (interval, logical)
        moment: dt.datetime | None = first or second
        return moment


def _started(context: Any) -> Any:
    """What ``start`` has fixed.

    Raises:
        AirflowFailException: nothing was: it was marked as done, and has not run.
    """
    found = context["ti"].xcom_pull(task_ids="start")
    if found is None:
        raise AirflowFailException(
            "Task 'start' of this run was marked as done, but has fixed nothing: clear it with everything"
            " downstream"
        )
    return found


class Ranges(BaseOperator):
    """Lists one step's bundles: Airflow maps over return values only.

    Args:
        step: the step.
    """

    def __init__(self, *, step: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = step

    def execute(self, context: Any) -> list[dict[str, Any]]:
        """References to the step's bundles; none in a dry run, nor where it has nothing to do."""
        started = _started(context)
        of = 0 if self.step in started["idle"] else started["bundles"][partitioning(self.step)]
        if not of:
            self.log.info("Nothing to do; the log of 'start' says why")
        return [
            {"run_id": started["run_id"], "until": started["until"], "index": i, "of": of} for i in range(of)
        ]


class Bundle(Pausable):
    """Runs one step on one bundle of partitions.

    Args:
        step: the step.
        cores: worker processes inside the task.
        bundle: reference from :class:`Ranges`.
    """

    def __init__(self, *, step: str, cores: int, bundle: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = step
        self.cores = cores
        self.bundle = bundle
        self.kept = ""

    @property
    def name(self) -> str:
        """For the grid: which bundle it is and, once it has run, what came of it."""
        return f"{self.bundle['index'] + 1} of {self.bundle['of']}{self.kept}"

    def work(self, context: Any, run_id: str) -> dict[str, Any]:
        """Run what is open in the bundle; return its counts. A dead chunk is no failure: state has it."""
        from dataflow_ops.pipeline.bundles import run_bundle

        with turn(self.home, run_id, self.step):
            done = run_bundle(Path(self.home), self.step, self.bundle, self.cores, log=self.log.info)
        if "kept" in done:
            dead = f", {done['dead']:,} dead" if done["dead"] else ""
            self.kept = f" · {done['kept']:,} of {done['documents_in']:,} kept{dead}"
        return done


class Finish(Pausable):
    """Publishes the version and ends the run; fails when state says that something failed.

    An event of the data set's asset goes out for a version that is published, not for one that waits.
    """

    def work(self, context: Any, run_id: str) -> dict[str, Any]:
        """Return the version's id, where its manifest is, the run's state, and whether it is current."""
        from dataflow_ops.pipeline.bundles import finish_run

        started = _started(context)
        if started["dry_run"]:
            raise AirflowSkipException("Dry run: there is nothing to publish")
        with turn(self.home, run_id, "publish"):
            published = finish_run(
                Path(self.home),
                run_id,
                started["until"],
                promote=started["promote"],
                log=self.log.info,
            )
        leave_turn(self.home, run_id)
        if published["version"] and not published["waits"]:
            tell(self, context, published)
        else:
            tell_nothing(self)
        return published
