"""Samples: their rows, tasks, changes, what a model answered; deliveries of events to outside systems."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Both were made by 0001 and never written to.
    op.drop_table("sample")
    op.drop_table("dataset_file")
    op.create_table(
        "dataset_file",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("dataset", sa.String(length=200), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("format", sa.String(length=24), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("records", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("refused", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(length=24), nullable=False),
        sa.Column("task_id", sa.String(length=200), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("deleted_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_file")),
    )
    op.create_index(op.f("ix_dataset_file_dataset"), "dataset_file", ["dataset"], unique=False)
    op.create_table(
        "delivery",
        sa.Column(
            "event_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("endpoint", sa.String(length=200), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.Double(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("sent_at", sa.Double(), nullable=True),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("event_id", "endpoint", name=op.f("pk_delivery")),
    )
    op.create_index(
        op.f("ix_delivery_endpoint_next_attempt_at"),
        "delivery",
        ["endpoint", "next_attempt_at"],
        unique=False,
        sqlite_where=sa.text("next_attempt_at IS NOT NULL"),
        postgresql_where=sa.text("next_attempt_at IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_delivery_endpoint_subject_state_event_id"),
        "delivery",
        ["endpoint", "subject", "state", "event_id"],
        unique=False,
    )
    op.create_table(
        "id_block",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("next_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_id_block")),
    )
    op.create_table(
        "sample_task",
        sa.Column("task_id", sa.String(length=200), nullable=False),
        sa.Column("dataset", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("highest_id", sa.BigInteger(), nullable=True),
        sa.Column("snapshot_rows", sa.BigInteger(), nullable=True),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.Double(), nullable=True),
        sa.Column("error_type", sa.String(length=80), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("task_id", name=op.f("pk_sample_task")),
    )
    op.create_index(op.f("ix_sample_task_dataset"), "sample_task", ["dataset"], unique=False)
    op.create_index(op.f("ix_sample_task_state"), "sample_task", ["state"], unique=False)
    op.create_table(
        "upload",
        sa.Column("upload_id", sa.String(length=64), nullable=False),
        sa.Column("dataset", sa.String(length=200), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("upload_id", name=op.f("pk_upload")),
    )
    op.create_table(
        "sample",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("dataset_file_id", sa.String(length=64), nullable=False),
        sa.Column("row_identifier", sa.BigInteger(), nullable=False),
        sa.Column("turn_taking", sa.Integer(), nullable=False),
        sa.Column("data_role", sa.String(length=40), nullable=False),
        sa.Column("data_content", sa.Text(), nullable=False),
        sa.Column("data_length", sa.Integer(), nullable=False),
        sa.Column("data_meta", sa.Text(), nullable=True),
        sa.Column("status", sa.String(length=24), nullable=False),
        sa.Column("status_rule", sa.String(length=200), nullable=True),
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
        "sample_letter",
        sa.Column("dataset_file_id", sa.String(length=64), nullable=False),
        sa.Column("row_identifier", sa.BigInteger(), nullable=False),
        sa.Column("error", sa.String(length=80), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("raw", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_file_id"],
            ["dataset_file.id"],
            name=op.f("fk_sample_letter_dataset_file_id_dataset_file"),
        ),
        sa.PrimaryKeyConstraint("dataset_file_id", "row_identifier", name=op.f("pk_sample_letter")),
    )
    op.create_table(
        "generation",
        sa.Column("request_key", sa.String(length=64), nullable=False),
        sa.Column("task_id", sa.String(length=200), nullable=False),
        sa.Column("sample_id", sa.BigInteger(), nullable=False),
        sa.Column("dataset_file_id", sa.String(length=64), nullable=False),
        sa.Column("row_identifier", sa.BigInteger(), nullable=False),
        sa.Column("turn_taking", sa.Integer(), nullable=False),
        sa.Column("draw", sa.Integer(), nullable=False),
        sa.Column("prompt_name", sa.String(length=200), nullable=False),
        sa.Column("prompt_version", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("retry_of", sa.String(length=64), nullable=True),
        sa.Column("result_as", sa.String(length=24), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("finish_reason", sa.String(length=40), nullable=True),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.Double(), nullable=False),
        sa.Column("lost_tokens", sa.BigInteger(), nullable=False),
        sa.Column("lost_cost", sa.Double(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["sample_id"], ["sample.id"], name=op.f("fk_generation_sample_id_sample")),
        sa.PrimaryKeyConstraint("request_key", name=op.f("pk_generation")),
    )
    op.create_index(op.f("ix_generation_sample_id"), "generation", ["sample_id"], unique=False)
    op.create_index(op.f("ix_generation_task_id"), "generation", ["task_id"], unique=False)
    op.create_index(
        op.f("ix_generation_dataset_file_id_row_identifier"),
        "generation",
        ["dataset_file_id", "row_identifier"],
        unique=False,
    )
    op.create_table(
        "generation_failure",
        sa.Column("request_key", sa.String(length=64), nullable=False),
        sa.Column("task_id", sa.String(length=200), nullable=False),
        sa.Column("sample_id", sa.BigInteger(), nullable=False),
        sa.Column("draw", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("retry_of", sa.String(length=64), nullable=True),
        sa.Column("prompt_version", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("edited_prompt", sa.Text(), nullable=True),
        sa.Column("raw_answer", sa.Text(), nullable=True),
        sa.Column("error", sa.String(length=80), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.Double(), nullable=False),
        sa.Column("lost_tokens", sa.BigInteger(), nullable=False),
        sa.Column("lost_cost", sa.Double(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["sample_id"], ["sample.id"], name=op.f("fk_generation_failure_sample_id_sample")
        ),
        sa.PrimaryKeyConstraint("request_key", name=op.f("pk_generation_failure")),
    )
    op.create_index(
        op.f("ix_generation_failure_task_id_state"), "generation_failure", ["task_id", "state"], unique=False
    )
    op.create_table(
        "sample_change",
        sa.Column("sample_id", sa.BigInteger(), nullable=False),
        sa.Column("task_id", sa.String(length=200), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("rule", sa.String(length=200), nullable=False),
        sa.Column("field", sa.String(length=40), nullable=False),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("after", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["sample_id"], ["sample.id"], name=op.f("fk_sample_change_sample_id_sample")),
        sa.PrimaryKeyConstraint("sample_id", "task_id", "ordinal", name=op.f("pk_sample_change")),
    )
    op.create_index(op.f("ix_sample_change_task_id_rule"), "sample_change", ["task_id", "rule"], unique=False)


def downgrade() -> None:
    op.drop_table("upload")
    op.drop_table("generation_failure")
    op.drop_table("generation")
    op.drop_table("sample_letter")
    op.drop_table("sample_change")
    op.drop_table("sample_task")
    op.drop_table("sample")
    op.drop_table("id_block")
    op.drop_table("delivery")
    op.drop_table("dataset_file")
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
