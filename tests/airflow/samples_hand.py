"""Runs the tasks of the samples DAG by hand, in order, with plain dictionaries as contexts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from dataflow_ops.state.samples.store import SampleStore

TEMPLATE: dict[str, Any] = {
    "name": "better",
    "kind": "rewrite",
    "target": {"status": ["NEW", "KEPT"], "roles": ["assistant"]},
    "messages": [{"role": "user", "content": "Improve this answer:\n{{turn}}"}],
    "model": "test-model",
    "parameters": {"max_tokens": 50},
    "endpoint": {"back_off_s": 0.01, "tries": 2},
    "limits": {"concurrency": 4},
}
TASKS = ("import", "clean", "augment", "export")


class Notes:
    """XComs of one run."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], Any] = {}
        self.task = ""

    def xcom_pull(self, task_ids: str) -> Any:
        return self.values.get((task_ids, "return_value"))

    def xcom_push(self, key: str, value: Any) -> None:
        self.values[self.task, key] = value


class Samples:
    """A home, a folder of files and one of templates.

    Args:
        folder: for all of it.
        url: of a model server; empty for none.
    """

    def __init__(self, folder: Path, url: str = "") -> None:
        self.home, self.templates = folder / "home", folder / "templates"
        (self.home / "samples").mkdir(parents=True)
        self.templates.mkdir()
        self.template(base_url=url)

    def template(self, base_url: str = "", **limits: Any) -> None:
        """Write the template ``better``."""
        raw = json.loads(json.dumps(TEMPLATE))
        raw["limits"] |= limits
        if base_url:
            raw["endpoint"]["base_url"] = base_url
        (self.templates / "better.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")

    def file(self, name: str, dialogues: int, of: str = "") -> None:
        """Write a file of dialogues of a question and an answer each."""
        lines = [
            {
                "messages": [
                    {"role": "user", "content": f"question {of}{number}: 多少？"},
                    {"role": "assistant", "content": f"answer {of}{number} is {number * number}"},
                ]
            }
            for number in range(dialogues)
        ]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (self.home / "samples" / name).write_text(text, encoding="utf-8")

    def run(self, run_id: str = "r1", **form: Any) -> Run:
        """A run of the DAG with these values in its form."""
        return Run(self, run_id, form)

    @contextmanager
    def store(self) -> Iterator[SampleStore]:
        """The store, as the command line opens it."""
        from dataflow_ops.pipeline.home import open_home

        with SampleStore(open_home(self.home).state_url) as store:
            yield store


class Run:
    """One run of the DAG.

    Args:
        samples: where.
        run_id: Airflow's name for it.
        form: values; others are the form's own.
    """

    def __init__(self, samples: Samples, run_id: str, form: dict[str, Any]) -> None:
        from dataflow_ops.airflow.samples_dag import samples_dag

        self.dag = samples_dag(samples.home, samples.templates)
        self.run_id = run_id
        self.notes = Notes()
        own = {name: param.value for name, param in self.dag.params.items() if name != "dataset"}
        self.context = {
            "dag": self.dag,
            "run_id": run_id,
            "params": {"dataset": "chat", **own, **form},
            "ti": self.notes,
            "dag_run": SimpleNamespace(triggering_user_name="ann"),
        }

    def operator(self, task: str) -> Any:
        operator = self.dag.get_task(task)
        operator.render_template_fields(self.context)
        self.notes.task = task
        return operator

    def task(self, task: str, event: Any = None) -> dict[str, Any]:
        """Run one task; what it leaves."""
        left: dict[str, Any] = self.operator(task).execute(self.context, event)
        self.notes.values[task, "return_value"] = left
        return left

    def all(self) -> dict[str, dict[str, Any]]:
        """Run all tasks that the form wants."""
        from airflow.sdk.exceptions import AirflowSkipException

        found = {}
        for task in TASKS:
            try:
                found[task] = self.task(task)
            except AirflowSkipException:
                continue
        return found

    def note(self, task: str) -> dict[str, Any]:
        """What a task noted before it began."""
        found: dict[str, Any] = self.notes.values[task, "sample_task"]
        return found


def fires(trigger: Any, within_s: float) -> bool:
    """Whether a trigger fires so soon, made anew as the triggerer makes it."""
    path, arguments = trigger.serialize()
    assert path == "dataflow_ops.airflow.samples_waits.SampleTrigger"
    again = type(trigger)(**arguments)

    async def first() -> bool:
        async for _ in again.run():
            return True
        return False

    try:
        return asyncio.run(asyncio.wait_for(first(), within_s))
    except TimeoutError:
        return False
