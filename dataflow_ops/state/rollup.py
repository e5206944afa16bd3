"""What the finished tasks of a run add up to, by step."""

from __future__ import annotations

import json

import sqlalchemy as sa

from dataflow_ops.state.database import Database
from dataflow_ops.state.records import StepMetrics
from dataflow_ops.state.tables import metric, rule_hit, run_task, task
from dataflow_ops.values import Counts


class Rollup:
    """Sums over the tasks of runs."""

    db: Database

    def metrics_of_run(self, run_id: str) -> dict[str, StepMetrics]:
        """Step → sums over its tasks, in the order in which the steps began (those not begun last)."""
        c = task.c
        done = c.state == "SUCCESS"

        def total(column: sa.Column[int | None]) -> sa.ColumnElement[int]:
            # SUM over BIGINT is NUMERIC in PostgreSQL, which would come back as Decimal.
            return sa.cast(sa.func.coalesce(sa.func.sum(column).filter(done), 0), sa.BigInteger)

        mine = run_task.c.run_id == run_id
        joined = sa.join(run_task, task, run_task.c.task_key == c.key)
        sums = (
            sa.select(
                run_task.c.step,
                sa.func.max(c.layer),
                total(c.documents_in),
                total(c.kept),
                total(c.rejected),
                total(c.dead),
                total(c.documents_out),
                total(c.bytes_in),
                total(c.tokens_out),
                sa.func.coalesce(sa.func.sum(c.seconds).filter(done), 0.0),
                sa.func.min(c.started_at).label("first"),
                sa.func.max(c.ended_at),
            )
            .select_from(joined)
            .where(mine)
            .group_by(run_task.c.step)
        )
        states = (
            sa.select(run_task.c.step, c.state, sa.func.count())
            .select_from(joined)
            .where(mine)
            .group_by(run_task.c.step, c.state)
            .order_by(c.state)
        )
        # Equal texts are grouped by the database: most tasks skip nothing, many skip alike.
        skipped = (
            sa.select(run_task.c.step, c.skipped, sa.func.count())
            .select_from(joined)
            .where(mine, done, c.skipped.is_not(None))
            .group_by(run_task.c.step, c.skipped)
        )
        values = (
            sa.select(run_task.c.step, metric.c.name, sa.func.sum(metric.c.value))
            .select_from(joined.join(metric, metric.c.task_key == c.key))
            .where(mine, done)
            .group_by(run_task.c.step, metric.c.name)
            .order_by(metric.c.name)
        )
        tasks: dict[str, dict[str, int]] = {}
        reasons: dict[str, dict[str, int]] = {}
        metrics: dict[str, dict[str, float]] = {}
        with self.db.read() as connection:
            rows = connection.execute(sums).all()
            for step, state, number in connection.execute(states):
                tasks.setdefault(step, {})[state] = number
            for step, text, number in connection.execute(skipped):
                of_step = reasons.setdefault(step, {})
                for reason, n in json.loads(text).items():
                    of_step[reason] = of_step.get(reason, 0) + n * number
            for step, name, value in connection.execute(values):
                metrics.setdefault(step, {})[name] = value
        rows = sorted(rows, key=lambda row: (row.first is None, row.first, row.step))
        return {
            step: StepMetrics(
                step=step,
                layer=layer,
                tasks=tasks[step],
                counts=Counts(
                    documents_in, kept, rejected, dead, dict(sorted(reasons.get(step, {}).items())), *rest
                ),
                metrics=metrics.get(step, {}),
                seconds=seconds,
                first_start=first,
                last_end=last,
            )
            for step, layer, documents_in, kept, rejected, dead, *rest, seconds, first, last in rows
        }

    def rule_hits_of_run(self, run_id: str) -> dict[str, dict[str, int]]:
        """Step → rule → records it rejected, over the finished tasks of the run."""
        hits = sa.cast(sa.func.sum(rule_hit.c.hits), sa.BigInteger)
        query = (
            sa.select(run_task.c.step, rule_hit.c.rule, hits)
            .join(task, task.c.key == run_task.c.task_key)
            .join(rule_hit, rule_hit.c.task_key == task.c.key)
            .where(run_task.c.run_id == run_id, task.c.state == "SUCCESS")
            .group_by(run_task.c.step, rule_hit.c.rule)
            .order_by(run_task.c.step, rule_hit.c.rule)
        )
        found: dict[str, dict[str, int]] = {}
        with self.db.read() as connection:
            for step, rule, number in connection.execute(query):
                found.setdefault(step, {})[rule] = number
        return found
