"""The tables of fine-tuning samples: one row per turn, tasks that take hours, what a model answered.

They belong to the same schema as :mod:`~dataflow_ops.state.tables`.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from dataflow_ops.state.tables import WIDE_KEY, SafeText, metadata, named

dataset_file: Final = sa.Table(
    "dataset_file",
    metadata,
    sa.Column("id", named(64), primary_key=True),  # a hash of the data set and the bytes: a file comes once
    sa.Column("dataset", named(), nullable=False, index=True),
    sa.Column("path", SafeText, nullable=False),
    sa.Column("format", named(24), nullable=False),  # messages, sharegpt, instruction
    sa.Column("sha256", named(64), nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("records", sa.BigInteger, nullable=False),  # so far, until the import is done
    sa.Column("rows", sa.BigInteger, nullable=False),  # turns of them
    sa.Column("refused", sa.BigInteger, nullable=False),  # records that are no dialogue; each is a letter
    sa.Column("status", named(24), nullable=False),  # IMPORTING, READY
    sa.Column("task_id", named()),  # that imports it
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Column("deleted_at", sa.Double),
)

id_block: Final = sa.Table(
    "id_block",
    metadata,
    sa.Column("name", named(40), primary_key=True),  # of the table that takes ids from it
    sa.Column("next_id", sa.BigInteger, nullable=False),
)

sample: Final = sa.Table(
    "sample",
    metadata,
    sa.Column("id", WIDE_KEY, primary_key=True, autoincrement=False),  # from reserved blocks
    sa.Column("dataset_file_id", named(64), sa.ForeignKey("dataset_file.id"), nullable=False),
    sa.Column("row_identifier", sa.BigInteger, nullable=False),  # the record's ordinal in its file, from 0
    sa.Column("turn_taking", sa.Integer, nullable=False),  # from 0
    sa.Column("data_role", named(40), nullable=False),
    sa.Column("data_content", SafeText, nullable=False),
    sa.Column("data_length", sa.Integer, nullable=False),  # characters of the content
    sa.Column("data_meta", sa.Text),  # JSON: the turn's other keys; the record's own, at turn 0
    sa.Column("status", named(24), nullable=False),  # NEW, KEPT, REJECTED, DUPLICATE
    sa.Column("status_rule", named()),  # which rule decided; for duplicates: of which dialogue
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Column("deleted_at", sa.Double),
    sa.UniqueConstraint("dataset_file_id", "row_identifier", "turn_taking"),
    sa.Index(None, "dataset_file_id", "id"),
)

sample_task: Final = sa.Table(
    "sample_task",
    metadata,
    sa.Column("task_id", named(), primary_key=True),
    sa.Column("dataset", named(), nullable=False, index=True),
    sa.Column("kind", named(12), nullable=False),  # import, clean, augment, export
    sa.Column("state", named(12), nullable=False),  # PENDING, RUNNING, PAUSED, SUCCESS, FAILED, CANCELLED
    sa.Column("settings", SafeText, nullable=False),  # JSON: all that decides the result
    sa.Column("files", sa.Text, nullable=False),  # JSON: ids of files in the order in which they are read
    sa.Column("highest_id", sa.BigInteger),  # of sample when the task began: nothing above is read
    sa.Column("snapshot_rows", sa.BigInteger),  # rows up to it: reading more is an alarm
    sa.Column("counts", sa.Text, nullable=False),  # JSON: name -> sum so far
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("owner", SafeText),
    sa.Column("lease_until", sa.Double),
    sa.Column("error_type", named(80)),
    sa.Column("error_message", SafeText),
    sa.Column("who", SafeText, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("started_at", sa.Double),
    sa.Column("ended_at", sa.Double),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Index(None, "state"),
)

sample_change: Final = sa.Table(
    "sample_change",
    metadata,
    sa.Column("sample_id", sa.BigInteger, sa.ForeignKey("sample.id"), primary_key=True),
    sa.Column("task_id", named(), primary_key=True),  # or the name of a person's own change
    sa.Column("ordinal", sa.Integer, primary_key=True),  # of the change within its task, from 0
    sa.Column("rule", named(), nullable=False),
    sa.Column("field", named(40), nullable=False),  # column that changed
    sa.Column("before", SafeText),
    sa.Column("after", SafeText),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Index(None, "task_id", "rule"),
)

sample_letter: Final = sa.Table(
    "sample_letter",
    metadata,
    sa.Column("dataset_file_id", named(64), sa.ForeignKey("dataset_file.id"), primary_key=True),
    sa.Column("row_identifier", sa.BigInteger, primary_key=True),
    sa.Column("error", named(80), nullable=False),
    sa.Column("message", SafeText, nullable=False),
    sa.Column("raw", SafeText, nullable=False),  # the beginning of the record, for people
    sa.Column("created_at", sa.Double, nullable=False),
)

generation: Final = sa.Table(
    "generation",
    metadata,
    # A hash of sample, turn, draw, prompt, model and parameters: an answer is never asked for twice.
    sa.Column("request_key", named(64), primary_key=True),
    sa.Column("task_id", named(), nullable=False),  # that asked
    sa.Column("sample_id", sa.BigInteger, sa.ForeignKey("sample.id"), nullable=False, index=True),
    sa.Column("dataset_file_id", named(64), nullable=False),
    sa.Column("row_identifier", sa.BigInteger, nullable=False),
    sa.Column("turn_taking", sa.Integer, nullable=False),
    sa.Column("draw", sa.Integer, nullable=False),
    sa.Column("prompt_name", named(), nullable=False),
    sa.Column("prompt_version", named(64), nullable=False),
    sa.Column("model", named(), nullable=False),
    sa.Column("parameters", sa.Text, nullable=False),  # JSON
    sa.Column("retry_of", named(64)),  # request_key of the failure that this one asked again
    sa.Column("result_as", named(24), nullable=False),  # next_turn, replacement, question, score
    sa.Column("answer", SafeText, nullable=False),
    sa.Column("score", sa.Double),  # the number in the answer, of a scoring
    sa.Column("finish_reason", named(40)),  # why the model ended, as it said
    sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
    sa.Column("completion_tokens", sa.BigInteger, nullable=False),
    sa.Column("cost", sa.Double, nullable=False),  # in the currency of the prices given
    sa.Column("lost_tokens", sa.BigInteger, nullable=False),  # most that tries took whose usage never came
    sa.Column("lost_cost", sa.Double, nullable=False),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Index(None, "task_id"),
    sa.Index(None, "dataset_file_id", "row_identifier"),
)

generation_failure: Final = sa.Table(
    "generation_failure",
    metadata,
    sa.Column("request_key", named(64), primary_key=True),
    sa.Column("task_id", named(), nullable=False),
    sa.Column("sample_id", sa.BigInteger, sa.ForeignKey("sample.id"), nullable=False),
    sa.Column("draw", sa.Integer, nullable=False),
    sa.Column("state", named(12), nullable=False),  # OPEN, REQUEUED, SOLVED, REPLACED, DROPPED
    sa.Column("retry_of", named(64)),  # request_key of the failure that this one asked again
    sa.Column("prompt_version", named(64), nullable=False),
    sa.Column("model", named(), nullable=False),
    sa.Column("prompt", SafeText, nullable=False),  # JSON: the messages that were sent
    sa.Column("parameters", sa.Text, nullable=False),  # JSON
    sa.Column("edited_prompt", SafeText),  # JSON: to be sent instead
    sa.Column("raw_answer", SafeText),
    sa.Column("error", named(80), nullable=False),
    sa.Column("message", SafeText, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("prompt_tokens", sa.BigInteger, nullable=False),  # what failing cost
    sa.Column("completion_tokens", sa.BigInteger, nullable=False),
    sa.Column("cost", sa.Double, nullable=False),
    sa.Column("lost_tokens", sa.BigInteger, nullable=False),
    sa.Column("lost_cost", sa.Double, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Index(None, "task_id", "state"),
)

upload: Final = sa.Table(
    "upload",
    metadata,
    sa.Column("upload_id", named(64), primary_key=True),
    sa.Column("dataset", named(), nullable=False),
    sa.Column("name", SafeText, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),  # that it will have
    sa.Column("received", sa.BigInteger, nullable=False),  # bytes that are durable; go on from here
    sa.Column("sha256", named(64)),  # that it must have; null: not told
    sa.Column("state", named(12), nullable=False),  # OPEN, DONE, ABORTED
    sa.Column("who", SafeText, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
)
