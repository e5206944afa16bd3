"""Run by Alembic; the connection comes from ``migrate.py`` and its transaction stays with it."""

from __future__ import annotations

from alembic import context

from dataflow_ops.state.migrate import VERSION_TABLE
from dataflow_ops.state.sample_tables import sample

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=sample.metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
