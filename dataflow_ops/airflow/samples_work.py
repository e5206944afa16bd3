"""What every task of the samples DAG does: asks for its sample task, works on it, waits without a slot."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from airflow.sdk import BaseOperator  # noqa: TID253 - this package is where Airflow belongs
from airflow.sdk.exceptions import (  # noqa: TID253
    AirflowFailException,
    AirflowSkipException,
    TaskDeferred,
)

from dataflow_ops.airflow.object_store import use_connection
from dataflow_ops.airflow.samples_waits import SampleTrigger, patient_samples

if TYPE_CHECKING:
    from dataflow_ops.pipeline.home import Home
    from dataflow_ops.state.samples.records import SampleTask
    from dataflow_ops.state.samples.store import SampleStore

SAMPLES: Final = "samples"
"""Id of the DAG; the names of new sample tasks begin with ``airflow-samples-``."""
TOLD: Final = "sample_task"
"""XCom that names the sample task before it is worked on, for the run's tab."""
LOG_EVERY_S: Final = 30.0
_LONGEST: Final = 180


@dataclass(frozen=True, slots=True)
class Asked:
    """What a task of the DAG is to do.

    Attributes:
        home: opened.
        store: open; waits for a database that is away.
        form: values of the form.
        name: for a new sample task.
        who: triggered the run.
        fresh: it begins, and does not come back from waiting.
        before: what the other tasks of the run have left.
    """

    home: Home
    store: SampleStore
    form: Mapping[str, Any]
    name: str
    who: str
    fresh: bool
    before: Mapping[str, Any]

    @property
    def dataset(self) -> str:
        """Data set that is worked on."""
        return str(self.form["dataset"])


class SampleWork(BaseOperator):
    """One stage: asks for its sample task, works on it, and hands its slot back while a pause holds.

    The trigger calls ``execute`` again; what was done before is found in our state, so that neither a retry
    nor a second run does anything twice.

    Args:
        home: DataFlow's home folder.
    """

    template_fields: Sequence[str] = ("form",)

    def __init__(self, *, home: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.home = home
        self.form = "{{ params | tojson }}"

    def execute(self, context: Any, event: Any = None) -> dict[str, Any]:
        """Work, or wait without a slot while a pause holds or another run works on the same task."""
        from dataflow_ops.pipeline.home import open_home
        from dataflow_ops.state.database import PATIENCE_S

        form = json.loads(self.form)
        if not self.wanted(form):
            raise AirflowSkipException("The form wants nothing of this task")
        use_connection()
        home = open_home(Path(self.home), patience_s=PATIENCE_S)
        who = getattr(context.get("dag_run"), "triggering_user_name", None) or "airflow"
        before = {name: context["ti"].xcom_pull(task_ids=name) for name in sorted(self.upstream_task_ids)}
        with patient_samples(home) as store:
            asked = Asked(
                home, store, form, _name(context["run_id"], self.task_id), str(who), event is None, before
            )
            self._hold(store, asked.dataset, asked.name)
            done: list[SampleTask] = []
            try:
                for task in self.tasks(asked):
                    note = {"task": task.task_id, "dataset": asked.dataset, **self.noted(asked)}
                    context["ti"].xcom_push(key=TOLD, value=note)
                    done.append(self._finished(asked, task))
            except KeyboardInterrupt as e:
                raise SystemExit("Airflow ended this task; what is done is kept") from e
            return self.told(asked, done)

    def on_kill(self) -> None:
        """Airflow wants the task to end: unwinding gives it back, and its cursor is what was written."""
        raise KeyboardInterrupt

    def wanted(self, form: Mapping[str, Any]) -> bool:
        """Whether the form wants this stage."""
        raise NotImplementedError

    def tasks(self, asked: Asked) -> Iterator[SampleTask]:
        """Sample tasks of the stage, in order; each is asked for when the one before is done."""
        raise NotImplementedError

    def work(self, asked: Asked, task: SampleTask) -> SampleTask:
        """Work on a task until it is done or paused; the task as it stands then."""
        from dataflow_ops.control.pause import PauseWatch
        from dataflow_ops.samples.running import run_task
        from dataflow_ops.samples.steps import step_of

        watch = PauseWatch(asked.store, task.task_id, task.dataset)
        step = step_of(task, asked.store, asked.home.root, lambda: watch.flag() is not None)
        return run_task(asked.store, task.task_id, step, watch, told=Progress(task, self.log.info))

    def noted(self, asked: Asked) -> dict[str, Any]:
        """What the run's tab is told beside the name of the task."""
        return {}

    def told(self, asked: Asked, done: Sequence[SampleTask]) -> dict[str, Any]:
        """What the stage leaves for those behind it, and for people."""
        counts: dict[str, float] = {}
        for task in done:
            for name, n in task.counts.items():
                counts[name] = counts.get(name, 0) + n
        return {
            "dataset": asked.dataset,
            "tasks": [task.task_id for task in done],
            "counts": {name: int(n) if n == int(n) else n for name, n in sorted(counts.items())},
        }

    def _finished(self, asked: Asked, task: SampleTask) -> SampleTask:
        """The task once it is done, or a way out: deferred, failed."""
        from dataflow_ops.errors import LeaseLost
        from dataflow_ops.samples.repeating import in_the_way
        from dataflow_ops.samples.running import free_if_dead

        if task.state == "SUCCESS":
            self.log.info("%s was done before, with the same rows: nothing to do", task.task_id)
            return task
        self._hold(asked.store, task.dataset, task.task_id)
        free_if_dead(asked.store, task.task_id)
        self._let(asked.store.sample_task(task.task_id))
        first = in_the_way(asked.store, task)
        if first is not None:
            self._wait(task.dataset, first.task_id, f"{first.task_id} changes the same rows, and goes first")
        try:
            task = self.work(asked, task)
        except LeaseLost as e:
            task = asked.store.sample_task(task.task_id)
            self._let(task)
            if task.state in ("PENDING", "RUNNING", "FAILED"):
                # Whoever took it is gone already, or another goes first. It is not done: looked at anew.
                self._wait(task.dataset, task.task_id, str(e))
        if task.state == "CANCELLED":
            raise AirflowFailException(f"{task.task_id}: {task.error_message}; what it wrote stays")
        if task.state == "PAUSED":
            self._hold(asked.store, task.dataset, task.task_id)
            self._wait(task.dataset, task.task_id, f"{task.task_id} was paused, and may go on")
        self.log.info("%s is done: %s", task.task_id, dict(task.counts))
        return task

    def _hold(self, store: SampleStore, dataset: str, task_id: str) -> None:
        flag = store.paused(task_id, dataset)
        if flag is not None:
            self._wait(dataset, task_id, f"{task_id} is {flag.told}")

    def _let(self, task: SampleTask) -> None:
        """Wait where somebody who is alive works on it: another run, or a worker thought lost."""
        if task.state == "RUNNING" and not task.silent:
            self._wait(task.dataset, task.task_id, f"{task.owner} works on {task.task_id}")

    def _wait(self, dataset: str, task_id: str, why: str) -> NoReturn:
        self.log.info("%s. The slot is free", why)
        raise TaskDeferred(trigger=SampleTrigger(self.home, dataset, task_id), method_name="execute")


def _name(run_id: str, task_id: str) -> str:
    """Our name for what a task of a run asks for; a run's id may be longer than ours."""
    name = f"airflow-{SAMPLES}-{run_id}-{task_id}"
    return name if len(name) <= _LONGEST else f"{name[:150]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


class Progress:
    """Writes how far a task is into the log, every half a minute.

    Args:
        task: the task.
        log: of the Airflow task.
    """

    def __init__(self, task: SampleTask, log: Any) -> None:
        self._task, self._log, self._next = task, log, time.monotonic() + LOG_EVERY_S

    def __call__(self, done: int) -> None:
        """So many turns are done in all."""
        if time.monotonic() >= self._next:
            of = f" of {self._task.snapshot_rows:,}" if self._task.snapshot_rows else ""
            self._log("%s: %s turns%s", self._task.task_id, f"{done:,}", of)
            self._next = time.monotonic() + LOG_EVERY_S
