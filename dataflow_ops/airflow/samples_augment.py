"""The operator that asks a model, and what it writes into its log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.exceptions import AirflowException, AirflowFailException  # noqa: TID253 - where Airflow belongs

from dataflow_ops.airflow.samples_work import LOG_EVERY_S, Asked, SampleWork

if TYPE_CHECKING:
    from dataflow_ops.samples.augment.tally import Tally
    from dataflow_ops.samples.augment.templates import Template
    from dataflow_ops.state.samples.records import SampleTask
    from dataflow_ops.state.samples.store import SampleStore

BUDGET: Final = "budget"
"""Who pauses a task whose budget is used up."""
LOOK_EVERY_S: Final = 0.1
"""Between two looks at the pause flags: a quick endpoint answers ten questions in half a second."""


class AugmentSamples(SampleWork):
    """Asks a model about the dialogues of the data set, as a template says.

    A budget that is used up pauses the task by a flag of its own, which *Resume* takes back, or a new run
    with a higher budget.

    Args:
        templates: folder of templates.
    """

    def __init__(self, *, templates: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.templates = templates

    def wanted(self, form: Mapping[str, Any]) -> bool:
        """Whether the form names a template."""
        return form["template"] is not None

    def tasks(self, asked: Asked) -> Iterator[SampleTask]:
        """The task of the template on the files that there are; a new one where their rows have changed."""
        from dataflow_ops.samples.augment.run import ask_for_task
        from dataflow_ops.samples.repeating import once

        template, store, dataset = self._template(asked.form), asked.store, asked.dataset

        def named(task_id: str | None) -> SampleTask:
            return ask_for_task(store, template, dataset, asked.who, task_id)

        task = once(store, named(None), asked.name, named)
        flag = store.paused(task.task_id, dataset)
        if asked.fresh and flag is not None and (flag.scope, flag.who) == ("run", BUDGET):
            store.clear_pause("run", task.task_id, asked.who)
        yield task

    def noted(self, asked: Asked) -> dict[str, Any]:
        """The budget, which is no setting of the task."""
        template = self._template(asked.form)
        limits, currency = template.limits, template.prices.currency
        return {
            "budget_tokens": limits.budget_tokens,
            "budget_cost": limits.budget_cost,
            "currency": currency,
        }

    def work(self, asked: Asked, task: SampleTask) -> SampleTask:
        """Ask, until all is done, somebody pauses, or the budget is used up.

        Raises:
            AirflowException: the endpoint did not answer; what it is to blame for is asked again.
            AirflowFailException: a batch without a single result: somebody must look first.
        """
        from dataflow_ops.control.pause import PauseWatch
        from dataflow_ops.samples.augment.opening import opened_api
        from dataflow_ops.samples.augment.run import run_augment

        template, store = self._template(asked.form), asked.store
        watch = PauseWatch(store, task.task_id, task.dataset, interval_s=LOOK_EVERY_S)
        with opened_api(template) as api:
            ended = run_augment(store, task, template, api, watch, Heard(self.log.info))
        if ended.state == "FAILED":
            kind = AirflowException if _put_back(store, task.task_id) else AirflowFailException
            raise kind(f"{task.task_id}: {ended.message}")
        if ended.pause is not None and ended.pause.by == "interrupt":
            raise KeyboardInterrupt
        if ended.pause is not None and ended.pause.by == "budget":
            store.set_pause("run", task.task_id, BUDGET, ended.pause.why)
        return store.sample_task(task.task_id)

    def _template(self, form: Mapping[str, Any]) -> Template:
        from dataflow_ops.samples.augment.template_file import load_template

        sections: dict[str, dict[str, Any]] = {}
        limits = {name: form[name] for name in ("budget_tokens", "budget_cost") if form[name] is not None}
        if limits:
            sections["limits"] = limits
        if url := os.environ.get("DATAFLOW_MODEL_URL"):
            sections["endpoint"] = {"base_url": url}
        return load_template(Path(self.templates) / f"{form['template']}.yaml", sections)


def _put_back(store: SampleStore, task_id: str) -> bool:
    """Whether questions failed for the endpoint's sake, so that another attempt may help."""
    from dataflow_ops.state.samples.failures import Which, count_failures

    with store.read() as connection:
        return bool(count_failures(connection, Which(task_id=task_id, state="REQUEUED")))


class Heard:
    """Writes how far an augmentation is into the log, every half a minute.

    Args:
        log: of the Airflow task.
    """

    def __init__(self, log: Any) -> None:
        self._log, self._next, self._total = log, 0.0, 0

    def begins(self, task: SampleTask, tally: Tally, total: int) -> None:
        """It is known how much there is to do."""
        self._total = total
        self._log("%s: %s questions, %s settled before", task.task_id, f"{total:,}", f"{tally.settled:,}")
        self._next = time.monotonic() + LOG_EVERY_S

    def moved(self, tally: Tally) -> None:
        """Something ended, or time went by."""
        if time.monotonic() < self._next:
            return
        used = tally.used
        self._log(
            "%s of %s: %s answered, %s failed, %s tokens, cost %.4f",
            f"{tally.settled:,}",
            f"{self._total:,}",
            f"{tally.answered:,}",
            f"{tally.failed:,}",
            f"{used.tokens:,}",
            used.most_cost,
        )
        self._next = time.monotonic() + LOG_EVERY_S

    def note(self, message: str) -> None:
        """Something to read."""
        self._log("%s", message)
