"""Versions that build on others."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("dataset_version", sa.Column("base", sa.String(length=200), nullable=True))


def downgrade() -> None:
    op.drop_column("dataset_version", "base")
