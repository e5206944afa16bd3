"""Which data sets there are."""

from __future__ import annotations

import sqlalchemy as sa

from dataflow_ops.state.database import Database
from dataflow_ops.state.tables import dataset_version, run


class Overview:
    """Looks over everything."""

    db: Database

    def datasets(self) -> list[str]:
        """Names of all data sets that have a run or a version, ascending."""
        names = sa.union(sa.select(run.c.dataset), sa.select(dataset_version.c.dataset))
        with self.db.read() as connection:
            return sorted(connection.execute(names).scalars())
