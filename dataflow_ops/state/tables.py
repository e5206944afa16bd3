"""The tables, once for SQLite and PostgreSQL. ``migrations/`` builds exactly these; a test compares them.

Times are seconds since 1970 (UTC) as doubles, taken from the database's clock. JSON is stored as ASCII text,
so that no NUL and no lone surrogate from a broken input ever aborts a statement.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

metadata: Final = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


class SafeText(sa.types.TypeDecorator[str]):
    """Text for people: NUL and lone surrogates, which PostgreSQL refuses, become U+FFFD."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """Replace what no database text may hold."""
        return None if value is None else safe(value)


def safe(value: str) -> str:
    """``value`` with NUL and lone surrogates replaced by U+FFFD."""
    if "\0" in value:
        value = value.replace("\0", "\ufffd")
    if value.isascii():
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def named(length: int = 200) -> sa.String:
    """Column type of ids and other short names."""
    return sa.String(length)


run: Final = sa.Table(
    "run",
    metadata,
    sa.Column("run_id", named(), primary_key=True),
    sa.Column("dataset", named(), nullable=False),
    sa.Column("job_name", named(), nullable=False),
    sa.Column("mode", named(20), nullable=False),
    sa.Column("settings", SafeText, nullable=False),
    sa.Column("data_date", named(20)),
    sa.Column("promote", sa.Boolean, nullable=False),
    sa.Column("urgent", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("until_layer", named(40)),  # null: all the way to a version
    sa.Column("origin", SafeText),  # JSON: what started it, where it can be watched; null: the command line
    sa.Column("state", named(24), nullable=False),
    sa.Column("detail", SafeText),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("started_at", sa.Double),
    sa.Column("ended_at", sa.Double),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Index(None, "dataset", "created_at"),
    sa.Index(None, "state"),
)

task: Final = sa.Table(
    "task",
    metadata,
    sa.Column("key", named(64), primary_key=True),
    sa.Column("step", named(40), nullable=False),
    sa.Column("layer", named(40), nullable=False),
    sa.Column("partition", named(64), nullable=False),
    sa.Column("state", named(12), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("owner", SafeText),
    sa.Column("lease_s", sa.Double),
    sa.Column("lease_until", sa.Double),
    sa.Column("heartbeat_at", sa.Double),
    sa.Column("progress", sa.Text),
    sa.Column("cursor_moved", sa.Boolean, nullable=False),  # since the last claim
    sa.Column("error_type", named(80)),
    sa.Column("error_message", SafeText),
    sa.Column("error_trace", SafeText),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("started_at", sa.Double),
    sa.Column("ended_at", sa.Double),
    sa.Column("seconds", sa.Double),
    sa.Column("documents_in", sa.BigInteger),
    sa.Column("kept", sa.BigInteger),
    sa.Column("rejected", sa.BigInteger),
    sa.Column("dead", sa.BigInteger),
    sa.Column("skipped", sa.Text),  # JSON: reason -> records; null where none were
    sa.Column("documents_out", sa.BigInteger),
    sa.Column("bytes_in", sa.BigInteger),
    sa.Column("tokens_out", sa.BigInteger),
    sa.Index(None, "state"),
    sa.Index(None, "step", "ended_at"),  # the newest of a step, without a look at the others
)

run_task: Final = sa.Table(
    "run_task",
    metadata,
    sa.Column("run_id", named(), sa.ForeignKey("run.run_id"), primary_key=True),
    sa.Column("step", named(40), primary_key=True),
    sa.Column("partition", named(64), primary_key=True),
    sa.Column("task_key", named(64), sa.ForeignKey("task.key"), nullable=False, index=True),
    sa.Column("ordinal", sa.Integer, nullable=False),
)

task_output: Final = sa.Table(
    "task_output",
    metadata,
    sa.Column("task_key", named(64), sa.ForeignKey("task.key"), primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("uri", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("mtime_ns", sa.BigInteger, nullable=False),
    sa.Column("sha256", named(64), nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("slices", sa.Text),  # JSON [[name, offset, length, sha256, rows], …]; null: see lookup.py
    sa.Column("attributes", sa.Text),  # JSON object; null: empty
)

cursor: Final = sa.Table(
    "cursor",
    metadata,
    sa.Column("task_id", named(), primary_key=True),
    sa.Column("stage", named(40), primary_key=True),
    sa.Column("task_type", named(40), primary_key=True),
    sa.Column("current_file_id", SafeText),
    sa.Column("current_offset", sa.BigInteger, nullable=False),
    sa.Column("processed_rows", sa.BigInteger, nullable=False),
    sa.Column("detail", sa.Text),
    sa.Column("updated_at", sa.Double, nullable=False),
)

dead_letter: Final = sa.Table(
    "dead_letter",
    metadata,
    sa.Column("id", named(32), primary_key=True),  # a hash of what it is about: the same letter never doubles
    sa.Column("task_key", named(64), sa.ForeignKey("task.key"), nullable=False, index=True),
    sa.Column("state", named(12), nullable=False),
    sa.Column("level", named(12), nullable=False),
    sa.Column("step", named(40), nullable=False),
    sa.Column("source_id", SafeText, nullable=False),
    sa.Column("path", SafeText, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("doc_id", named(64), nullable=False),
    sa.Column("error", named(80), nullable=False),
    sa.Column("message", SafeText, nullable=False),
    sa.Column("parser", SafeText, nullable=False),
    sa.Column("media_type", SafeText, nullable=False),
    sa.Column("host", SafeText, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Index(None, "state", "error"),
)

metric: Final = sa.Table(
    "metric",
    metadata,
    sa.Column("task_key", named(64), sa.ForeignKey("task.key"), primary_key=True),
    sa.Column("name", named(), primary_key=True),
    sa.Column("value", sa.Double, nullable=False),
)

rule_hit: Final = sa.Table(
    "rule_hit",
    metadata,
    sa.Column("task_key", named(64), sa.ForeignKey("task.key"), primary_key=True),
    sa.Column("rule", named(), primary_key=True),
    sa.Column("hits", sa.BigInteger, nullable=False),
)

step_total: Final = sa.Table(
    "step_total",
    metadata,
    sa.Column("run_id", named(), sa.ForeignKey("run.run_id"), primary_key=True),
    sa.Column("step", named(40), primary_key=True),
    sa.Column("epoch", sa.Integer, nullable=False),  # goes up with everything that makes the sums void
    sa.Column("sums", sa.Text),  # JSON; null: not known, or void
    sa.Column("hits", sa.Text),  # JSON: rule -> records
    sa.Column("updated_at", sa.Double, nullable=False),
)

pause_flag: Final = sa.Table(
    "pause_flag",
    metadata,
    sa.Column("scope", named(12), primary_key=True),
    sa.Column("target", named(), primary_key=True),
    sa.Column("who", SafeText, nullable=False),
    sa.Column("why", SafeText, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
)

dataset_version: Final = sa.Table(
    "dataset_version",
    metadata,
    sa.Column("dataset", named(), primary_key=True),
    sa.Column("version_id", named(), primary_key=True),
    sa.Column("manifest_sha256", named(64), nullable=False),
    sa.Column("manifest_uri", sa.Text, nullable=False),
    sa.Column("run_id", named(), sa.ForeignKey("run.run_id"), nullable=False),
    sa.Column("state", named(24), nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("base", named()),  # version that it builds on; null: it holds all that it has
    sa.UniqueConstraint("dataset", "manifest_sha256"),
)

dataset_current: Final = sa.Table(
    "dataset_current",
    metadata,
    sa.Column("dataset", named(), primary_key=True),
    sa.Column("version_id", named(), nullable=False),
    sa.Column("who", SafeText, nullable=False),
    sa.Column("changed_at", sa.Double, nullable=False),
    sa.ForeignKeyConstraint(
        ["dataset", "version_id"], ["dataset_version.dataset", "dataset_version.version_id"]
    ),
)

version_event: Final = sa.Table(
    "version_event",
    metadata,
    sa.Column("id", named(32), primary_key=True),
    sa.Column("dataset", named(), nullable=False),
    sa.Column("version_id", named(), nullable=False),
    sa.Column("action", named(24), nullable=False),  # published, approved, rejected, rolled_back
    sa.Column("who", SafeText, nullable=False),
    sa.Column("note", SafeText, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Index(None, "dataset", "created_at"),
)

review: Final = sa.Table(
    "review",
    metadata,
    sa.Column("dataset", named(), primary_key=True),
    sa.Column("doc_id", named(64), primary_key=True),
    sa.Column("rule", named(), primary_key=True),
    sa.Column("run_id", named(), nullable=False),
    sa.Column("verdict", named(8), nullable=False),  # keep: wrongly removed; drop: rightly removed
    sa.Column("who", SafeText, nullable=False),
    sa.Column("note", SafeText, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Index(None, "dataset", "rule"),
)

backfill: Final = sa.Table(
    "backfill",
    metadata,
    sa.Column("backfill_id", named(), primary_key=True),
    sa.Column("dataset", named(), nullable=False, index=True),
    sa.Column("job", SafeText, nullable=False),  # path of the job file
    sa.Column("first_day", named(10), nullable=False),
    sa.Column("last_day", named(10), nullable=False),  # inclusive
    sa.Column("reprocess", named(12), nullable=False),  # none, failed, all
    sa.Column("settings", SafeText, nullable=False),  # JSON: overrides, until, promote, workers
    sa.Column("state", named(12), nullable=False),  # RUNNING, PAUSED, DONE, FAILED, CANCELLED
    sa.Column("who", SafeText, nullable=False),
    sa.Column("detail", SafeText, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
)

backfill_day: Final = sa.Table(
    "backfill_day",
    metadata,
    sa.Column("backfill_id", named(), sa.ForeignKey("backfill.backfill_id"), primary_key=True),
    sa.Column("day", named(10), primary_key=True),
    sa.Column(
        "state", named(12), nullable=False
    ),  # PENDING, RUNNING, PAUSED, DONE, FAILED, SKIPPED or CANCELLED
    sa.Column("run_id", named(), nullable=False),
    sa.Column("detail", SafeText, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
)

lease: Final = sa.Table(
    "lease",
    metadata,
    sa.Column("dataset", named(), primary_key=True),
    sa.Column("layer", named(40), primary_key=True),
    sa.Column("day", named(10), primary_key=True),  # "" for all days of the layer: one at a time
    sa.Column("owner", SafeText, nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("lease_until", sa.Double, nullable=False),
)

# SQLite counts up by itself only in a column of type INTEGER.
WIDE_KEY: Final = sa.BigInteger().with_variant(sa.Integer, "sqlite")

outbox: Final = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", WIDE_KEY, primary_key=True, autoincrement=True),
    sa.Column("topic", named(40), nullable=False),
    sa.Column("subject", named(), nullable=False),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("sent_at", sa.Double),
    sa.Index(None, "sent_at", "id"),
)

delivery: Final = sa.Table(
    "delivery",
    metadata,
    sa.Column("event_id", WIDE_KEY, primary_key=True, autoincrement=False),
    sa.Column("endpoint", named(), primary_key=True),
    sa.Column("subject", named(), nullable=False),  # of the event: its deliveries go out in order
    sa.Column("state", named(12), nullable=False),  # PENDING, SENT, DEAD, DROPPED
    sa.Column("attempts", sa.Integer, nullable=False),  # tries that may have reached the receiver
    # Null: waits behind an earlier one of its subject, or has ended. While it is sent: when the claim ends.
    sa.Column("next_attempt_at", sa.Double),
    sa.Column("owner", SafeText),  # that is sending it
    sa.Column("last_error", SafeText),
    sa.Column("sent_at", sa.Double),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Index(None, "endpoint", "subject", "state", "event_id"),  # which one of a subject comes next
    # Those that have a turn, and no others: however many wait, no planner takes it for anything else.
    sa.Index(
        None,
        "endpoint",
        "next_attempt_at",
        sqlite_where=sa.text("next_attempt_at IS NOT NULL"),
        postgresql_where=sa.text("next_attempt_at IS NOT NULL"),
    ),
)
