"""Small looks at big runs: the newest, the slowest, the ones at work; never all tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from dataflow_ops.state.cursors import CORPUS
from dataflow_ops.state.database import Database
from dataflow_ops.state.lookup import output_of
from dataflow_ops.state.machine import FINISHED_RUNS
from dataflow_ops.state.records import RunRecord
from dataflow_ops.state.runs import RUN_COLUMNS
from dataflow_ops.state.tables import cursor, dead_letter, rule_hit, run, run_task, task, task_output
from dataflow_ops.values import Output

FAR = 10
"""How much further than asked one looks for tasks in which a rule rejected something."""


@dataclass(frozen=True, slots=True)
class TaskGlance:
    """A task as people watch it. Times are seconds since 1970; ``progress`` is what its heartbeat said."""

    key: str
    step: str
    layer: str
    partition: str
    state: str
    attempt: int
    owner: str | None
    heartbeat_at: float | None
    started_at: float | None
    ended_at: float | None
    seconds: float | None
    documents_in: int | None
    progress: Mapping[str, Any]
    error_type: str | None
    error_message: str | None
    error_trace: str | None


@dataclass(frozen=True, slots=True)
class LetterGroup:
    """Dead letters of a run that have all of this in common."""

    error: str
    step: str
    level: str
    state: str
    parser: str
    number: int
    example: str


_c = task.c
_GLANCE = (
    _c.key,
    run_task.c.step,
    _c.layer,
    run_task.c.partition,
    _c.state,
    _c.attempt,
    _c.owner,
    _c.heartbeat_at,
    _c.started_at,
    _c.ended_at,
    _c.seconds,
    _c.documents_in,
    _c.progress,
    _c.error_type,
    _c.error_message,
    _c.error_trace,
)


class Glance:
    """Looks at runs."""

    db: Database

    def now(self) -> float:
        """Seconds since 1970 by the database's clock, which all times in state are taken from."""
        with self.db.read() as connection:
            return float(connection.execute(sa.select(self.db.now)).scalar_one())

    def run_before(self, of: RunRecord, mode: str | None = None, finished: bool = False) -> RunRecord | None:
        """The run of the same data set that was started last before another.

        Args:
            of: the other one.
            mode: its mode; ``None`` for the same.
            finished: only one that came to its end.
        """
        query = sa.select(*RUN_COLUMNS).where(
            run.c.dataset == of.dataset,
            run.c.mode == (mode or of.mode),
            run.c.created_at < of.created_at,
        )
        if finished:
            query = query.where(run.c.state.in_(FINISHED_RUNS), run.c.until_layer.is_(None))
        query = query.order_by(run.c.created_at.desc(), run.c.run_id.desc()).limit(1)
        with self.db.read() as connection:
            row = connection.execute(query).one_or_none()
            return None if row is None else RunRecord(*row)

    def tasks_in(
        self, run_id: str, states: Sequence[str], steps: Sequence[str], limit: int
    ) -> list[TaskGlance]:
        """Tasks of a run in rare states (RUNNING, PAUSED, FAILED, DEAD), by step and partition."""
        # By state first: there are few of these in the whole database.
        few = (
            sa.select(_c.key)
            .where(_c.state.in_(states))
            .cte("few")
            .prefix_with("MATERIALIZED", dialect="postgresql")
        )
        query = (
            sa.select(*_GLANCE)
            .select_from(
                sa.join(few, run_task, run_task.c.task_key == few.c.key).join(task, _c.key == few.c.key)
            )
            .where(_by_key(self.db, run_id), run_task.c.step.in_(steps))
            .order_by(run_task.c.step, run_task.c.ordinal)
            .limit(limit)
        )
        with self.db.read() as connection:
            return [_glance(row) for row in connection.execute(query)]

    def newest_tasks(
        self,
        run_id: str,
        step: str,
        limit: int,
        rule: str | None = None,
        until: float | None = None,
    ) -> list[TaskGlance]:
        """Finished tasks of one step of a run, those that ended last first.

        Args:
            run_id: the run.
            step: the step.
            limit: most to return.
            rule: only those in which this rule (the empty string: any rule) rejected something, among
                :data:`FAR` times as many.
            until: none that ended after this moment: for a run that has ended, so that the tasks of later
                runs need not be walked past.
        """
        query = (
            sa.select(*_GLANCE)
            .select_from(sa.join(task, run_task, run_task.c.task_key == _c.key))
            .where(
                _c.step == step,
                _c.state == "SUCCESS",
                _c.ended_at.is_not(None),
                _by_key(self.db, run_id),
            )
            .order_by(_c.ended_at.desc())
            .limit(limit if rule is None else FAR * limit)
        )
        if until is not None:
            query = query.where(_c.ended_at <= until)
        with self.db.read() as connection:
            found = [_glance(row) for row in connection.execute(query)]
            if rule is None:
                return found
            c = rule_hit.c
            hit = sa.select(c.task_key).where(self.db.among(c.task_key, [t.key for t in found]), c.hits > 0)
            if rule:
                hit = hit.where(c.rule == rule)
            hits = set(connection.execute(hit).scalars())
        return [t for t in found if t.key in hits][:limit]

    def number_of_tasks(self, run_id: str, step: str) -> int:
        """Tasks of one step of a run."""
        c = run_task.c
        query = sa.select(sa.func.count()).where(c.run_id == run_id, c.step == step)
        with self.db.read() as connection:
            return int(connection.execute(query).scalar_one())

    def slowest_tasks(self, run_id: str, step: str, limit: int) -> list[TaskGlance]:
        """Finished tasks of one step of a run, those that took longest first. Looks at all of the step."""
        query = (
            sa.select(*_GLANCE)
            .select_from(sa.join(run_task, task, run_task.c.task_key == _c.key))
            .where(run_task.c.run_id == run_id, run_task.c.step == step, _c.seconds.is_not(None))
            .order_by(_c.seconds.desc(), run_task.c.partition)
            .limit(limit)
        )
        with self.db.read() as connection:
            return [_glance(row) for row in connection.execute(query)]

    def recent_work(
        self, run_id: str, steps: Sequence[str], since: float
    ) -> dict[str, tuple[int, int, int, float]]:
        """Step → ``(tasks, records in, tokens out, worker seconds)`` of what ended after a moment."""
        query = (
            sa.select(
                sa.func.count(),
                sa.cast(sa.func.coalesce(sa.func.sum(_c.documents_in), 0), sa.BigInteger),
                sa.cast(sa.func.coalesce(sa.func.sum(_c.tokens_out), 0), sa.BigInteger),
                sa.func.coalesce(sa.func.sum(_c.seconds), 0.0),
            )
            .select_from(sa.join(task, run_task, run_task.c.task_key == _c.key))
            .where(
                _c.step == sa.bindparam("of_step"),
                _c.ended_at > since,
                _c.state == "SUCCESS",
                _by_key(self.db, run_id),
            )
        )
        found: dict[str, tuple[int, int, int, float]] = {}
        with self.db.read() as connection:
            for step in steps:
                number, records, tokens, seconds = connection.execute(query, {"of_step": step}).one()
                if number:
                    found[step] = (number, records, tokens, seconds)
        return found

    def outputs_of_partitions(
        self, run_id: str, step: str, kind: str, partitions: Sequence[str]
    ) -> dict[str, Output]:
        """Partition → output of one kind, of these partitions if they are finished."""
        c = task_output.c
        query = (
            sa.select(
                run_task.c.partition,
                c.kind,
                c.uri,
                c.size,
                c.mtime_ns,
                c.sha256,
                c.rows,
                c.slices,
                c.attributes,
            )
            .select_from(
                sa.join(run_task, task, _c.key == run_task.c.task_key).join(
                    task_output, c.task_key == run_task.c.task_key
                )
            )
            .where(
                run_task.c.run_id == run_id,
                run_task.c.step == step,
                self.db.among(run_task.c.partition, partitions),
                _c.state == "SUCCESS",
                c.kind == kind,
            )
        )
        with self.db.read() as connection:
            return {partition: output_of(*row) for partition, *row in connection.execute(query)}

    def counts_of_partitions(self, run_id: str, step: str, partitions: Sequence[str]) -> dict[str, int]:
        """Partition → records that a finished task of a step gave on."""
        query = (
            sa.select(run_task.c.partition, _c.documents_out)
            .join(task, _c.key == run_task.c.task_key)
            .where(
                run_task.c.run_id == run_id,
                run_task.c.step == step,
                self.db.among(run_task.c.partition, partitions),
                _c.documents_out.is_not(None),
            )
        )
        with self.db.read() as connection:
            return {partition: number for partition, number in connection.execute(query)}

    def cursors_of(self, keys: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Task → ``(offset, rows done)`` of what it has staged."""
        c = cursor.c
        query = sa.select(c.task_id, c.current_offset, c.processed_rows).where(
            self.db.among(c.task_id, keys), c.task_type == CORPUS
        )
        with self.db.read() as connection:
            return {key: (offset, rows) for key, offset, rows in connection.execute(query)}

    def letter_groups(self, run_id: str) -> list[LetterGroup]:
        """Dead letters of a run, counted by what they have in common; looks at all of them."""
        c = dead_letter.c
        number = sa.func.count().label("number")
        query = (
            sa.select(c.error, c.step, c.level, c.state, c.parser, number, sa.func.min(c.id))
            .where(of_run(self.db, run_id))
            .group_by(c.error, c.step, c.level, c.state, c.parser)
            .order_by(number.desc(), c.error, c.step, c.level, c.state, c.parser)
        )
        with self.db.read() as connection:
            return [LetterGroup(*row) for row in connection.execute(query)]

    def letter_places(self, ids: Sequence[str]) -> dict[str, tuple[str, str, str]]:
        """Letter → ``(source, path, message)``."""
        c = dead_letter.c
        query = sa.select(c.id, c.source_id, c.path, c.message).where(self.db.among(c.id, ids))
        with self.db.read() as connection:
            return {id_: (source, path, message) for id_, source, path, message in connection.execute(query)}

    def letters_of_group(
        self, run_id: str, error: str, step: str, states: Sequence[str], letter: str = ""
    ) -> list[str]:
        """Ids of the dead letters of a run with one error in one step: all, or one if it is among them."""
        c = dead_letter.c
        query = sa.select(c.id).where(
            of_run(self.db, run_id), c.error == error, c.step == step, c.state.in_(states)
        )
        if letter:
            query = query.where(c.id == letter)
        with self.db.read() as connection:
            return list(connection.execute(query.order_by(c.id)).scalars())


def of_run(db: Database, run_id: str) -> sa.ColumnElement[bool]:
    """Whether a letter's task is the run's: asked letter by letter, for letters are fewer than tasks."""
    return sa.exists().where(run_task.c.task_key == dead_letter.c.task_key, _by_key(db, run_id))


def _by_key(db: Database, run_id: str) -> sa.ColumnElement[bool]:
    """Whether a link is the run's, where the link is found by its task.

    SQLite, which keeps no statistics, would walk through all of the run's links for every task, so there it
    is put in a way that no index answers.
    """
    return (run_task.c.run_id if db.is_postgres else run_task.c.run_id.op("||")("")) == run_id


def _glance(row: Any) -> TaskGlance:
    fields = list(row)
    fields[12] = json.loads(fields[12]) if fields[12] else {}
    return TaskGlance(*fields)
