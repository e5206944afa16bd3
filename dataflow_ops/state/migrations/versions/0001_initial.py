"""Runs, tasks, cursors, dead letters, metrics, pauses, versions, outbox, samples."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cursor",
        sa.Column("task_id", sa.String(length=200), nullable=False),
        sa.Column("stage", sa.String(length=40), nullable=False),
        sa.Column("task_type", sa.String(length=40), nullable=False),
        sa.Column("current_file_id", sa.Text(), nullable=True),
        sa.Column("current_offset", sa.BigInteger(), nullable=False),
        sa.Column("processed_rows", sa.BigInteger(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("task_id", "stage", "task_type", name=op.f("pk_cursor")),
    )
    op.create_table(
        "dataset_file",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("dataset", sa.String(length=200), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(length=24), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_file")),
    )
    op.create_index(op.f("ix_dataset_file_dataset"), "dataset_file", ["dataset"], unique=False)
    op.create_table(
        "outbox",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("topic", sa.String(length=40), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("sent_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(op.f("ix_outbox_sent_at_id"), "outbox", ["sent_at", "id"], unique=False)
    op.create_table(
        "pause_flag",
        sa.Column("scope", sa.String(length=12), nullable=False),
        sa.Column("target", sa.String(length=200), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "target", name=op.f("pk_pause_flag")),
    )
    op.create_table(
        "run",
        sa.Column("run_id", sa.String(length=200), nullable=False),
        sa.Column("dataset", sa.String(length=200), nullable=False),
        sa.Column("job_name", sa.String(length=200), nullable=False),
        sa.Column("mode", sa.String(length=20), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("data_date", sa.String(length=20), nullable=True),
        sa.Column("promote", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=24), nullable=False),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run")),
    )
    op.create_index(op.f("ix_run_dataset_created_at"), "run", ["dataset", "created_at"], unique=False)
    op.create_index(op.f("ix_run_state"), "run", ["state"], unique=False)
    op.create_table(
        "task",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("step", sa.String(length=40), nullable=False),
        sa.Column("layer", sa.String(length=40), nullable=False),
        sa.Column("partition", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_s", sa.Double(), nullable=True),
        sa.Column("lease_until", sa.Double(), nullable=True),
        sa.Column("heartbeat_at", sa.Double(), nullable=True),
        sa.Column("progress", sa.Text(), nullable=True),
        sa.Column("cursor_moved", sa.Boolean(), nullable=False),
        sa.Column("error_type", sa.String(length=80), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("error_trace", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("documents_in", sa.BigInteger(), nullable=True),
        sa.Column("kept", sa.BigInteger(), nullable=True),
        sa.Column("rejected", sa.BigInteger(), nullable=True),
        sa.Column("dead", sa.BigInteger(), nullable=True),
        sa.Column("skipped", sa.Text(), nullable=True),
        sa.Column("documents_out", sa.BigInteger(), nullable=True),
        sa.Column("bytes_in", sa.BigInteger(), nullable=True),
        sa.Column("tokens_out", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_task")),
    )
    op.create_index(op.f("ix_task_state"), "task", ["state"], unique=False)
    op.create_table(
        "dataset_version",
        sa.Column("dataset", sa.String(length=200), nullable=False),
        sa.Column("version_id", sa.String(length=200), nullable=False),
        sa.Column("manifest_sha256", sa.String(length=64), nullable=False),
        sa.Column("manifest_uri", sa.Text(), nullable=False),
        sa.Column("run_id", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=24), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_dataset_version_run_id_run")),
        sa.PrimaryKeyConstraint("dataset", "version_id", name=op.f("pk_dataset_version")),
        sa.UniqueConstraint(
            "dataset", "manifest_sha256", name=op.f("uq_dataset_version_dataset_manifest_sha256")
        ),
    )
    op.create_table(
        "dead_letter",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("task_key", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("level", sa.String(length=12), nullable=False),
        sa.Column("step", sa.String(length=40), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("doc_id", sa.String(length=64), nullable=False),
        sa.Column("error", sa.String(length=80), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("parser", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["task_key"], ["task.key"], name=op.f("fk_dead_letter_task_key_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dead_letter")),
    )
    op.create_index(op.f("ix_dead_letter_state_error"), "dead_letter", ["state", "error"], unique=False)
    op.create_index(op.f("ix_dead_letter_task_key"), "dead_letter", ["task_key"], unique=False)
    op.create_table(
        "metric",
        sa.Column("task_key", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["task_key"], ["task.key"], name=op.f("fk_metric_task_key_task")),
        sa.PrimaryKeyConstraint("task_key", "name", name=op.f("pk_metric")),
    )
    op.create_table(
        "rule_hit",
        sa.Column("task_key", sa.String(length=64), nullable=False),
        sa.Column("rule", sa.String(length=200), nullable=False),
        sa.Column("hits", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["task_key"], ["task.key"], name=op.f("fk_rule_hit_task_key_task")),
        sa.PrimaryKeyConstraint("task_key", "rule", name=op.f("pk_rule_hit")),
    )
    op.create_table(
        "run_task",
        sa.Column("run_id", sa.String(length=200), nullable=False),
        sa.Column("step", sa.String(length=40), nullable=False),
        sa.Column("partition", sa.String(length=64), nullable=False),
        sa.Column("task_key", sa.String(length=64), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_run_task_run_id_run")),
        sa.ForeignKeyConstraint(["task_key"], ["task.key"], name=op.f("fk_run_task_task_key_task")),
        sa.PrimaryKeyConstraint("run_id", "step", "partition", name=op.f("pk_run_task")),
    )
    op.create_index(op.f("ix_run_task_task_key"), "run_task", ["task_key"], unique=False)
    op.create_table(
        "sample",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("dataset_file_id", sa.String(length=64), nullable=False),
        sa.Column("row_identifier", sa.String(length=200), nullable=False),
        sa.Column("turn_taking", sa.Integer(), nullable=False),
        sa.Column("data_role", sa.String(length=40), nullable=False),
        sa.Column("data_content", sa.Text(), nullable=False),
        sa.Column("data_meta", sa.Text(), nullable=True),
        sa.Column("status", sa.String(length=24), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("deleted_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["dataset_file_id"], ["dataset_file.id"], name=op.f("fk_sample_dataset_file_id_dataset_file")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sample")),
        sa.UniqueConstraint(
            "dataset_file_id",
            "row_identifier",
            "turn_taking",
            name=op.f("uq_sample_dataset_file_id_row_identifier_turn_taking"),
        ),
    )
    op.create_index(op.f("ix_sample_dataset_file_id_id"), "sample", ["dataset_file_id", "id"], unique=False)
    op.create_table(
        "task_output",
        sa.Column("task_key", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("slices", sa.Text(), nullable=True),
        sa.Column("attributes", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["task_key"], ["task.key"], name=op.f("fk_task_output_task_key_task")),
        sa.PrimaryKeyConstraint("task_key", "kind", name=op.f("pk_task_output")),
    )
    op.create_table(
        "dataset_current",
        sa.Column("dataset", sa.String(length=200), nullable=False),
        sa.Column("version_id", sa.String(length=200), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset", "version_id"],
            ["dataset_version.dataset", "dataset_version.version_id"],
            name=op.f("fk_dataset_current_dataset_dataset_version"),
        ),
        sa.PrimaryKeyConstraint("dataset", name=op.f("pk_dataset_current")),
    )


def downgrade() -> None:
    op.drop_table("dataset_current")
    op.drop_table("task_output")
    op.drop_index(op.f("ix_sample_dataset_file_id_id"), table_name="sample")
    op.drop_table("sample")
    op.drop_index(op.f("ix_run_task_task_key"), table_name="run_task")
    op.drop_table("run_task")
    op.drop_table("rule_hit")
    op.drop_table("metric")
    op.drop_index(op.f("ix_dead_letter_task_key"), table_name="dead_letter")
    op.drop_index(op.f("ix_dead_letter_state_error"), table_name="dead_letter")
    op.drop_table("dead_letter")
    op.drop_table("dataset_version")
    op.drop_index(op.f("ix_task_state"), table_name="task")
    op.drop_table("task")
    op.drop_index(op.f("ix_run_state"), table_name="run")
    op.drop_index(op.f("ix_run_dataset_created_at"), table_name="run")
    op.drop_table("run")
    op.drop_table("pause_flag")
    op.drop_index(op.f("ix_outbox_sent_at_id"), table_name="outbox")
    op.drop_table("outbox")
    op.drop_index(op.f("ix_dataset_file_dataset"), table_name="dataset_file")
    op.drop_table("dataset_file")
    op.drop_table("cursor")
