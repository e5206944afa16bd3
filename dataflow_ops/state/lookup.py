"""Task records in bulk: planning looks at every task of a step, so nothing here is done row by row in SQL."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from dataflow_ops.state.database import Database, no_collections
from dataflow_ops.state.machine import TASK_STATES
from dataflow_ops.state.tables import run_task, task, task_output
from dataflow_ops.values import Counts, Output, Slice, TaskRecord

_NOTHING: Final[Mapping[str, Any]] = {}

_COUNTS = (
    task.c.documents_in,
    task.c.kept,
    task.c.rejected,
    task.c.dead,
    task.c.skipped,
    task.c.documents_out,
    task.c.bytes_in,
    task.c.tokens_out,
)
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
    *_COUNTS,
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


@dataclass(frozen=True, slots=True)
class Content:
    """What an output holds.

    Attributes:
        sha256: hex digest of the file.
        rows: rows inside.
        size: bytes.
    """

    sha256: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Standings:
    """Where tasks stand, as plain rows: a hundred thousand of them are told apart in a second.

    Attributes:
        tasks: key → ``(key, state, epoch, …counts)``, for the keys that exist.
        stored: ``(key, uri, size, mtime_ns)`` of every output of the finished ones.
    """

    tasks: Mapping[str, Sequence[Any]]
    stored: Sequence[Sequence[Any]]

    def state(self, key: str) -> str:
        """State of a task that exists."""
        state: str = self.tasks[key][1]
        return state

    def epoch(self, key: str) -> int:
        """Epoch of a task that exists."""
        epoch: int = self.tasks[key][2]
        return epoch

    def counts(self, keys: Sequence[str]) -> Counts:
        """What these tasks counted, together."""
        rows = [row for key in keys if (row := self.tasks[key])[3] is not None]
        if not rows:
            return Counts()
        columns = list(zip(*rows, strict=True))[3:]
        skipped: dict[str, int] = {}
        for text, times in Counter(columns[4]).items():
            for reason, n in json.loads(text).items() if text else ():
                skipped[reason] = skipped.get(reason, 0) + n * times
        documents_in, kept, rejected, dead = (sum(column) for column in columns[:4])
        documents_out, bytes_in, tokens_out = (sum(column) for column in columns[5:])
        return Counts(documents_in, kept, rejected, dead, skipped, documents_out, bytes_in, tokens_out)


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

    def outputs_of_step(self, run_id: str, step: str, kind: str) -> dict[str, Output]:
        """Partition → output of one kind, for the finished tasks of one step of a run."""
        query = (
            sa.select(run_task.c.partition, *_OUTPUT)
            .join(task_output, task_output.c.task_key == run_task.c.task_key)
            .where(run_task.c.run_id == run_id, run_task.c.step == step, task_output.c.kind == kind)
        )
        # Few tasks that have outputs are not done (ghosts): to name them costs less than to join all tasks.
        unfinished = sa.select(task.c.key).where(
            task.c.step == step, task.c.state.in_(sorted(TASK_STATES - {"SUCCESS"}))
        )
        with no_collections(), self.db.read() as connection:
            open_ = set(connection.execute(unfinished).scalars())
            rows = connection.execute(query).all()
            return {partition: output_of(*row) for partition, key, *row in rows if key not in open_}

    def contents_of_step(self, run_id: str, step: str, kind: str) -> dict[str, Content]:
        """Partition → what :meth:`outputs_of_step` has, less slices: many of them take long to read."""
        query = (
            sa.select(
                run_task.c.partition,
                task_output.c.sha256,
                task_output.c.rows,
                task_output.c.size,
            )
            .join(task, task.c.key == run_task.c.task_key)
            .join(task_output, task_output.c.task_key == run_task.c.task_key)
            .where(run_task.c.run_id == run_id, run_task.c.step == step, task_output.c.kind == kind)
            .where(task.c.state == "SUCCESS")
        )
        with no_collections(), self.db.read() as connection:
            return {row[0]: Content(*row[1:]) for row in connection.execute(query)}

    def standings(self, keys: Sequence[str]) -> Standings:
        """How far tasks are, and what the finished ones stored: enough to tell done from open, no more."""
        # In ascending order the database walks its index once, where it would jump about in it.
        ordered = sorted(keys)
        with no_collections(), self.db.read() as connection:
            tasks = connection.execute(
                sa.select(task.c.key, task.c.state, task.c.epoch, *_COUNTS).where(
                    self.db.among(task.c.key, ordered)
                )
            ).all()
            done = [row[0] for row in tasks if row[1] == "SUCCESS"]
            stored = (
                connection.execute(
                    sa.select(
                        task_output.c.task_key,
                        task_output.c.uri,
                        task_output.c.size,
                        task_output.c.mtime_ns,
                    ).where(self.db.among(task_output.c.task_key, done))
                ).all()
                if done
                else []
            )
            return Standings({row[0]: row for row in tasks}, stored)

    def partitions_in_state(self, run_id: str, steps: Sequence[str], state: str) -> list[str]:
        """Partitions of a run of which the task of any of these steps is in a state; ascending, each once."""
        c = run_task.c
        with self.db.read() as connection:
            # By state first: few tasks are dead, and most runs have none.
            query = sa.select(task.c.key).where(task.c.state == state, task.c.step.in_(steps))
            keys = list(connection.execute(query).scalars())
            if not keys:
                return []
            mine = sa.select(c.partition).where(
                c.run_id == run_id, c.step.in_(steps), self.db.among(c.task_key, keys)
            )
            return sorted(set(connection.execute(mine).scalars()))

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
    for key, *row in outputs:
        output = output_of(*row)
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


def output_of(
    kind: str,
    uri: str,
    size: int,
    mtime_ns: int,
    sha256: str,
    rows: int,
    slices: str | None,
    attributes: str | None,
) -> Output:
    """An output from its row."""
    parts = (
        (Slice("", 0, size, sha256, rows),)
        if slices is None
        else tuple(Slice(*s) for s in json.loads(slices))
    )
    facts = _NOTHING if attributes is None else json.loads(attributes)
    return Output(kind, uri, size, mtime_ns, sha256, rows, parts, facts)


def _kind(output: Output) -> str:
    return output.kind
