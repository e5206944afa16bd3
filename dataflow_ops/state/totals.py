"""What the tasks of one step of a run add up to, kept once the step has settled.

To add up a hundred thousand tasks takes the database up to a second, too long for a page that is looked at
all day. A step of which every task has succeeded or is dead does not change any more by itself, so its sums
are kept; the few moves that change it after all (a ghost, a revived task, other tasks linked to the run) make
them void in their own transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import sqlalchemy as sa

from dataflow_ops.state.database import Database
from dataflow_ops.state.tables import rule_hit, run, run_task, step_total, task
from dataflow_ops.state.upsert import insert_missing

SETTLED = frozenset({"SUCCESS", "DEAD"})
"""States that a task leaves only when somebody makes it."""


@dataclass(frozen=True, slots=True)
class StepTotals:
    """One step of one run. Sums are over finished tasks; times are seconds since 1970.

    Attributes:
        step: name.
        layer: name.
        tasks: state → tasks.
        documents_in: records that came in, likewise ``kept``, ``rejected``, ``dead``, ``documents_out``.
        bytes_in: payload bytes.
        tokens_out: tokens, in the steps that know them.
        seconds: worker seconds.
        fresh: the same of the tasks that this run itself did, for rates: ``tasks``, ``documents_in``,
            ``tokens_out``, ``seconds``, ``first`` (start) and ``last`` (end).
    """

    step: str
    layer: str
    tasks: Mapping[str, int] = field(default_factory=dict)
    documents_in: int = 0
    kept: int = 0
    rejected: int = 0
    dead: int = 0
    documents_out: int = 0
    bytes_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    fresh: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """Tasks in all."""
        return sum(self.tasks.values())

    @property
    def done(self) -> int:
        """Tasks that succeeded."""
        return self.tasks.get("SUCCESS", 0)

    @property
    def settled(self) -> bool:
        """Whether nothing is left to be done."""
        return self.number > 0 and set(self.tasks) <= SETTLED

    @property
    def business(self) -> int:
        """Records that were this step's business: in, less those left out on purpose."""
        return self.kept + self.rejected + self.dead


class Totals:
    """Sums by run and step."""

    db: Database

    def steps_of_run(self, run_id: str) -> list[str]:
        """Steps that have tasks in the run."""
        c = run_task.c
        # One look into the index per step, where DISTINCT would walk over every task.
        steps = sa.select(sa.func.min(c.step).label("step")).where(c.run_id == run_id).cte(recursive=True)
        later = sa.select(sa.func.min(c.step)).where(c.run_id == run_id, c.step > steps.c.step)
        steps = steps.union_all(
            sa.select(later.scalar_subquery()).select_from(steps).where(steps.c.step.is_not(None))
        )
        with self.db.read() as connection:
            found = connection.execute(sa.select(steps.c.step).where(steps.c.step.is_not(None)))
            return list(found.scalars())

    def kept_totals(self, run_id: str) -> dict[str, StepTotals]:
        """Step → sums that were kept and still hold."""
        c = step_total.c
        query = sa.select(c.step, c.sums).where(c.run_id == run_id, c.sums.is_not(None))
        with self.db.read() as connection:
            return {step: StepTotals(**json.loads(text)) for step, text in connection.execute(query)}

    def total_of_step(self, run_id: str, step: str) -> StepTotals | None:
        """Add up one step now, and keep the sums if it has settled; ``None`` where it has no tasks."""
        with self.db.read() as connection:
            epoch = _epoch(connection, run_id, step)
            found = _sums(connection, run_id, step)
        if found is not None and found.settled:
            self._keep(run_id, step, epoch, sums=json.dumps(asdict(found)))
        return found

    def hits_of_step(self, run_id: str, step: str, settled: bool) -> dict[str, int]:
        """Rule → records that it rejected in one step.

        Args:
            run_id: the run.
            step: the step.
            settled: it has settled, so what is added up may be kept.
        """
        c = step_total.c
        query = (
            sa.select(rule_hit.c.rule, sa.cast(sa.func.sum(rule_hit.c.hits), sa.BigInteger))
            .select_from(
                sa.join(run_task, task, run_task.c.task_key == task.c.key).join(
                    rule_hit, rule_hit.c.task_key == task.c.key
                )
            )
            .where(run_task.c.run_id == run_id, run_task.c.step == step, task.c.state == "SUCCESS")
            .group_by(rule_hit.c.rule)
        )
        with self.db.read() as connection:
            known = connection.execute(
                sa.select(c.hits).where(c.run_id == run_id, c.step == step)
            ).scalar_one_or_none()
            if known is not None:
                hits: dict[str, int] = json.loads(known)
                return hits
            epoch = _epoch(connection, run_id, step)
            hits = {rule: number for rule, number in connection.execute(query)}
        if settled:
            self._keep(run_id, step, epoch, hits=json.dumps(hits))
        return hits

    def _keep(self, run_id: str, step: str, epoch: int, **values: str) -> None:
        """Keep what was added up, unless it was made void meanwhile."""
        c = step_total.c
        with self.db.write() as connection:
            totals_void(connection, run_id, [step], only_new=True)
            connection.execute(
                sa.update(step_total)
                .where(c.run_id == run_id, c.step == step, c.epoch == epoch)
                .values(**values, updated_at=self.db.now)
            )


def totals_void(connection: sa.Connection, run_id: str, steps: Sequence[str], only_new: bool = False) -> None:
    """Forget what was kept of steps of a run, inside the caller's transaction.

    A row is made where there is none: its epoch tells whoever is adding up at this moment to let it be.

    Args:
        connection: in a writing transaction, which has written its tasks already.
        run_id: the run.
        steps: their names.
        only_new: make the rows that are missing, leave the others as they are.
    """
    new = [{"run_id": run_id, "step": step, "epoch": 0, "updated_at": 0.0} for step in steps]
    insert_missing(connection, step_total, new)
    if not only_new:
        c = step_total.c
        connection.execute(
            sa.update(step_total)
            .where(c.run_id == run_id, c.step.in_(sorted(steps)))
            .values(epoch=c.epoch + 1, sums=None, hits=None)
        )


def totals_void_of_task(connection: sa.Connection, key: str) -> None:
    """:func:`totals_void` for every run that has the task."""
    c = run_task.c
    for run_id, step in connection.execute(sa.select(c.run_id, c.step).where(c.task_key == key)).all():
        totals_void(connection, run_id, [step])


def _epoch(connection: sa.Connection, run_id: str, step: str) -> int:
    c = step_total.c
    query = sa.select(c.epoch).where(c.run_id == run_id, c.step == step)
    return connection.execute(query).scalar_one_or_none() or 0


def _sums(connection: sa.Connection, run_id: str, step: str) -> StepTotals | None:
    c = task.c
    began = sa.select(run.c.created_at).where(run.c.run_id == run_id).scalar_subquery()
    own = c.started_at >= began

    def whole(column: sa.Column[Any], *where: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
        # SUM over BIGINT is NUMERIC in PostgreSQL, which would come back as Decimal.
        total: Any = sa.func.sum(column)
        return sa.cast(sa.func.coalesce(total.filter(*where) if where else total, 0), sa.BigInteger)

    query = (
        sa.select(
            c.state,
            sa.func.max(c.layer).label("layer"),
            sa.func.count().label("number"),
            whole(c.documents_in).label("documents_in"),
            whole(c.kept).label("kept"),
            whole(c.rejected).label("rejected"),
            whole(c.dead).label("dead"),
            whole(c.documents_out).label("documents_out"),
            whole(c.bytes_in).label("bytes_in"),
            whole(c.tokens_out).label("tokens_out"),
            sa.func.coalesce(sa.func.sum(c.seconds), 0.0).label("seconds"),
            sa.func.count().filter(own).label("fresh_tasks"),
            whole(c.documents_in, own).label("fresh_documents_in"),
            whole(c.tokens_out, own).label("fresh_tokens_out"),
            sa.func.coalesce(sa.func.sum(c.seconds).filter(own), 0.0).label("fresh_seconds"),
            sa.func.min(c.started_at).filter(own).label("fresh_first"),
            sa.func.max(c.ended_at).filter(own).label("fresh_last"),
        )
        .select_from(sa.join(run_task, task, run_task.c.task_key == c.key))
        .where(run_task.c.run_id == run_id, run_task.c.step == step)
        .group_by(c.state)
    )
    rows = list(connection.execute(query).mappings())
    if not rows:
        return None
    tasks = {row["state"]: int(row["number"]) for row in sorted(rows, key=lambda r: r["state"])}
    done = next((row for row in rows if row["state"] == "SUCCESS"), None)
    if done is None:
        return StepTotals(step, rows[0]["layer"], tasks)
    names = ("documents_in", "kept", "rejected", "dead", "documents_out", "bytes_in", "tokens_out", "seconds")
    fresh = {key.removeprefix("fresh_"): value for key, value in done.items() if key.startswith("fresh_")}
    sums: dict[str, Any] = {name: done[name] for name in names}
    return StepTotals(step, done["layer"], tasks, **sums, fresh=fresh)
