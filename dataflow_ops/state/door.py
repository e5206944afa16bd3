"""What every door to the state database shares: opened by its address, its schema brought up to date."""

from __future__ import annotations

from typing import Self

import sqlalchemy as sa

from dataflow_ops.state.database import Database, create_engine
from dataflow_ops.state.migrate import migrate_database


class Door:
    """Connections to a state database.

    Threads may share a door; every process opens its own (a connection must not cross a fork or a spawn).
    Every method may raise ``DatabaseUnavailable`` and, where it writes, ``CommitUnknown`` or ``StorageFull``.

    Args:
        url: ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``. The schema is brought up to date.
        patience_s: how long each call waits for a database that is away, this one too; for work that is
            under way :data:`~dataflow_ops.state.database.PATIENCE_S`, none where a person waits for a word.

    Raises:
        ConfigError: not a URL that we can use.
        StateError: the database was made by a newer version of the program.
    """

    def __init__(self, url: str, patience_s: float = 0.0) -> None:
        self.url = url
        self.db = Database(create_engine(url), patience_s)
        try:
            migrate_database(self.db)
        except BaseException:
            self.close()
            raise

    @property
    def engine(self) -> sa.Engine:
        """For :func:`~dataflow_ops.state.paging.bounded_pages` and for views."""
        return self.db.engine

    def be_patient(self, seconds: float) -> None:
        """From now on wait so long for a database that is away."""
        self.db.patience_s = seconds

    def close(self) -> None:
        """Close all connections."""
        self.db.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
