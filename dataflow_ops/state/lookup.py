"""Task records in bulk: planning looks at every task of a step, so nothing here is done row by row in SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from dataflow_ops.state.database import Database, no_collections
from dataflow_ops.state.tables import run_task, task, task_output
from dataflow_ops.values import Counts, Output, Slice, TaskRecord

_NOTHING: Final[Mapping[str, Any]] = {}

_TASK = (
    task.c.key,
    task.c.step,
    task.c.layer,
    task.c.partition,
    task.c.state,
    task.c.attempt,
    task.c.epoch,
    task.c.owner,
    task.c.heartbeat_at,
    task.c.error_type,
    task.c.error_message,
    task.c.error_trace,
    task.c.seconds,
    task.c.documents_in,
    task.c.kept,
    task.c.rejected,
    task.c.dead,
    task.c.skipped,
    task.c.documents_out,
    task.c.bytes_in,
    task.c.tokens_out,
)
_OUTPUT = (
    task_output.c.task_key,
    task_output.c.kind,
    task_output.c.uri,
    task_output.c.size,
    task_output.c.mtime_ns,
    task_output.c.sha256,
    task_output.c.rows,
    task_output.c.slices,
    task_output.c.attributes,
)


class Lookup:
    """Records of tasks with their outputs and counts."""

    db: Database

    def records(self, keys: Sequence[str]) -> dict[str, TaskRecord]:
        """Key → record, for the keys that exist, in the order of ``keys``. Outputs are sorted by kind."""
        if not keys:
            return {}
        with no_collections(), self.db.read() as connection:
            tasks = connection.execute(sa.select(*_TASK).where(self.db.among(task.c.key, keys))).all()
            outputs = connection.execute(
                sa.select(*_OUTPUT).where(self.db.among(task_output.c.task_key, keys))
            ).all()
            found = _join(tasks, outputs)
        return {key: found[key] for key in keys if key in found}

    def records_of_step(self, run_id: str, step: str) -> dict[str, TaskRecord]:
        """Key → record of all tasks of one step of a run, in the run's order. Outputs are sorted by kind."""
        mine = (run_task.c.run_id == run_id, run_task.c.step == step)
        with no_collections(), self.db.read() as connection:
            tasks = connection.execute(
                sa.select(*_TASK)
                .join(run_task, run_task.c.task_key == task.c.key)
                .where(*mine)
                .order_by(run_task.c.ordinal, run_task.c.partition)
            ).all()
            outputs = connection.execute(
                sa.select(*_OUTPUT).join(run_task, run_task.c.task_key == task_output.c.task_key).where(*mine)
            ).all()
            return _join(tasks, outputs)

    def partitions_in_state(self, run_id: str, steps: Sequence[str], state: str) -> list[str]:
        """Partitions of a run of which the task of any of these steps is in a state; ascending, each once."""
        query = (
            sa.select(run_task.c.partition)
            .join(task, task.c.key == run_task.c.task_key)
            .where(run_task.c.run_id == run_id, run_task.c.step.in_(steps), task.c.state == state)
            .distinct()
        )
        with self.db.read() as connection:
            return sorted(partition for (partition,) in connection.execute(query))

    def states_of_run(self, run_id: str) -> dict[str, dict[str, int]]:
        """Step → state → number of tasks."""
        query = (
            sa.select(run_task.c.step, task.c.state, sa.func.count())
            .join(task, task.c.key == run_task.c.task_key)
            .where(run_task.c.run_id == run_id)
            .group_by(run_task.c.step, task.c.state)
            .order_by(run_task.c.step, task.c.state)
        )
        states: dict[str, dict[str, int]] = {}
        with self.db.read() as connection:
            for step, state, number in connection.execute(query):
                states.setdefault(step, {})[state] = number
        return states


def _join(tasks: Sequence[Any], outputs: Sequence[Any]) -> dict[str, TaskRecord]:
    by_key: dict[str, list[Output]] = {}
    for key, kind, uri, size, mtime_ns, sha256, rows, slices, attributes in outputs:
        output = Output(
            kind,
            uri,
            size,
            mtime_ns,
            sha256,
            rows,
            (Slice("", 0, size, sha256, rows),)
            if slices is None
            else tuple(Slice(*s) for s in json.loads(slices)),
            _NOTHING if attributes is None else json.loads(attributes),
        )
        of_task = by_key.get(key)
        if of_task is None:
            by_key[key] = [output]
        else:
            of_task.append(output)
    for several in by_key.values():
        if len(several) > 1:
            several.sort(key=_kind)
    records: dict[str, TaskRecord] = {}
    for row in tasks:
        key, _, _, _, _, _, _, _, _, _, _, _, seconds, documents_in, kept, rejected, dead, skipped, *rest = (
            row
        )
        counts = None
        if documents_in is not None:
            counts = Counts(
                documents_in, kept, rejected, dead, json.loads(skipped) if skipped else _NOTHING, *rest
            )
        fields: list[Any] = [*row[:12], tuple(by_key.get(key, ())), counts, seconds]
        records[key] = TaskRecord(*fields)
    return records


def _kind(output: Output) -> str:
    return output.kind
