"""What an orchestrator's platform needs: urgent runs, reviews, the versions' history, backfills, leases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("run", sa.Column("urgent", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("run", sa.Column("until_layer", sa.String(length=40), nullable=True))
    op.add_column("run", sa.Column("origin", sa.Text(), nullable=True))
    op.create_index(op.f("ix_task_step_ended_at"), "task", ["step", "ended_at"], unique=False)
    op.create_table(
        "step_total",
        sa.Column("run_id", sa.String(length=200), nullable=False),
        sa.Column("step", sa.String(length=40), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("sums", sa.Text(), nullable=True),
        sa.Column("hits", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_step_total_run_id_run")),
        sa.PrimaryKeyConstraint("run_id", "step", name=op.f("pk_step_total")),
    )
    op.create_table(
        "version_event",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("dataset", sa.String(length=200), nullable=False),
        sa.Column("version_id", sa.String(length=200), nullable=False),
        sa.Column("action", sa.String(length=24), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_version_event")),
    )
    op.create_index(
        op.f("ix_version_event_dataset_created_at"), "version_event", ["dataset", "created_at"], unique=False
    )
    op.create_table(
        "review",
        sa.Column("dataset", sa.String(length=200), nullable=False),
        sa.Column("doc_id", sa.String(length=64), nullable=False),
        sa.Column("rule", sa.String(length=200), nullable=False),
        sa.Column("run_id", sa.String(length=200), nullable=False),
        sa.Column("verdict", sa.String(length=8), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("dataset", "doc_id", "rule", name=op.f("pk_review")),
    )
    op.create_index(op.f("ix_review_dataset_rule"), "review", ["dataset", "rule"], unique=False)
    op.create_table(
        "backfill",
        sa.Column("backfill_id", sa.String(length=200), nullable=False),
        sa.Column("dataset", sa.String(length=200), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("first_day", sa.String(length=10), nullable=False),
        sa.Column("last_day", sa.String(length=10), nullable=False),
        sa.Column("reprocess", sa.String(length=12), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("backfill_id", name=op.f("pk_backfill")),
    )
    op.create_index(op.f("ix_backfill_dataset"), "backfill", ["dataset"], unique=False)
    op.create_table(
        "backfill_day",
        sa.Column("backfill_id", sa.String(length=200), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("run_id", sa.String(length=200), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["backfill_id"],
            ["backfill.backfill_id"],
            name=op.f("fk_backfill_day_backfill_id_backfill"),
        ),
        sa.PrimaryKeyConstraint("backfill_id", "day", name=op.f("pk_backfill_day")),
    )
    op.create_table(
        "lease",
        sa.Column("dataset", sa.String(length=200), nullable=False),
        sa.Column("layer", sa.String(length=40), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("dataset", "layer", "day", name=op.f("pk_lease")),
    )


def downgrade() -> None:
    for table in ("lease", "backfill_day", "backfill", "review", "version_event", "step_total"):
        op.drop_table(table)
    op.drop_index(op.f("ix_task_step_ended_at"), "task")
    for column in ("origin", "until_layer", "urgent"):
        op.drop_column("run", column)
