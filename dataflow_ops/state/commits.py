"""How a task succeeds: everything it gave becomes known in one transaction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from dataflow_ops.state import cursors
from dataflow_ops.state.database import Database, dump
from dataflow_ops.state.fence import end
from dataflow_ops.state.letters import replace_letters
from dataflow_ops.state.tables import metric, rule_hit, task, task_output
from dataflow_ops.state.task_events import tell
from dataflow_ops.values import Claim, Counts, DeadLetter, Output, Slice


class Commits:
    """Commits of tasks."""

    db: Database

    def commit(
        self,
        claim: Claim,
        outputs: Sequence[Output],
        counts: Counts,
        metrics: Mapping[str, float],
        rule_hits: Mapping[str, int],
        dead: Sequence[DeadLetter],
        seconds: float,
    ) -> None:
        """RUNNING → SUCCESS with everything the task gave, in one transaction; what it gave before goes.

        Args:
            claim: from :meth:`claim`.
            outputs: published files; kinds are unique.
            counts: conserved.
            metrics: name → number; one that is not finite counts in ``non_finite_metrics`` instead.
            rule_hits: rule → records it rejected.
            dead: dead letters.
            seconds: worker seconds spent.

        Raises:
            LeaseLost: another attempt owns the task, or it was committed or cancelled; nothing was written.
            ConservationError: the counts don't add up; nothing was written.
            CommitUnknown: the connection broke during COMMIT; ask :meth:`committed`.
        """
        with self.db.write() as connection:
            row = end(
                connection,
                self.db,
                claim,
                "commit",
                seconds=seconds,
                error_type=None,
                error_message=None,
                error_trace=None,
                progress=None,
                **_count_values(counts),
            )
            counts.check(f"step {row.step}, partition {row.partition}")
            for table in (task_output, metric, rule_hit):
                connection.execute(sa.delete(table).where(table.c.task_key == claim.key))
            _insert(connection, task_output, [_output_row(claim.key, output) for output in outputs])
            _insert(connection, metric, _metric_rows(claim.key, metrics))
            _insert(
                connection,
                rule_hit,
                [{"task_key": claim.key, "rule": rule, "hits": n} for rule, n in sorted(rule_hits.items())],
            )
            replace_letters(connection, self.db, claim.key, dead)
            cursors.delete(connection, claim.key, row.step, cursors.CORPUS)
            tell(
                connection,
                self.db,
                "task.success",
                claim.key,
                {"step": row.step, "partition": row.partition, "epoch": claim.epoch, "dead": len(dead)},
            )

    def committed(self, claim: Claim) -> bool:
        """Whether this very claim's commit went through: what to ask after ``CommitUnknown``."""
        query = sa.select(task.c.state).where(task.c.key == claim.key, task.c.epoch == claim.epoch)
        with self.db.read() as connection:
            return connection.execute(query).scalar() == "SUCCESS"


def _insert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, object]]) -> None:
    if rows:
        connection.execute(sa.insert(table), rows)


def _count_values(counts: Counts) -> dict[str, object]:
    return {
        "documents_in": counts.documents_in,
        "kept": counts.kept,
        "rejected": counts.rejected,
        "dead": counts.dead,
        "skipped": dump(counts.skipped) if counts.skipped else None,
        "documents_out": counts.documents_out,
        "bytes_in": counts.bytes_in,
        "tokens_out": counts.tokens_out,
    }


def _metric_rows(key: str, metrics: Mapping[str, float]) -> list[dict[str, object]]:
    finite = {name: float(value) for name, value in metrics.items() if math.isfinite(value)}
    if len(finite) < len(metrics):
        finite["non_finite_metrics"] = float(len(metrics) - len(finite))
    return [{"task_key": key, "name": name, "value": value} for name, value in sorted(finite.items())]


def _output_row(key: str, output: Output) -> dict[str, object]:
    whole = (Slice("", 0, output.size, output.sha256, output.rows),)
    slices = [[s.name, s.offset, s.length, s.sha256, s.rows] for s in output.slices]
    return {
        "task_key": key,
        "kind": output.kind,
        "uri": output.uri,
        "size": output.size,
        "mtime_ns": output.mtime_ns,
        "sha256": output.sha256,
        "rows": output.rows,
        # One slice that is the whole file is the common case: null stands for it and costs nothing to read.
        "slices": None if output.slices == whole else dump(slices),
        "attributes": dump(output.attributes) if output.attributes else None,
    }
