"""The one door to the state database. Each part of it is a module of its own."""

from __future__ import annotations

import copy
from typing import Self

import sqlalchemy as sa

from dataflow_ops.state.backfills import Backfills
from dataflow_ops.state.commits import Commits
from dataflow_ops.state.database import Database, create_engine
from dataflow_ops.state.day_order import DayOrder
from dataflow_ops.state.deliveries import Deliveries
from dataflow_ops.state.delivery_desk import DeliveryDesk
from dataflow_ops.state.glance import Glance
from dataflow_ops.state.kept import Kept
from dataflow_ops.state.leases import Leases
from dataflow_ops.state.letter_pages import LetterPages
from dataflow_ops.state.letters import Letters
from dataflow_ops.state.lookup import Lookup
from dataflow_ops.state.migrate import migrate_database
from dataflow_ops.state.outbox import Outbox
from dataflow_ops.state.overview import Overview
from dataflow_ops.state.pauses import Pauses
from dataflow_ops.state.reviews import Reviews
from dataflow_ops.state.rollup import Rollup
from dataflow_ops.state.runs import Runs
from dataflow_ops.state.tasks import Tasks
from dataflow_ops.state.totals import Totals
from dataflow_ops.state.version_events import VersionEvents
from dataflow_ops.state.versions import Versions
from dataflow_ops.state.work_queue import WorkQueue


class StateStore(
    Runs,
    WorkQueue,
    Tasks,
    Commits,
    Lookup,
    Pauses,
    Letters,
    LetterPages,
    Versions,
    VersionEvents,
    Kept,
    Rollup,
    Totals,
    Glance,
    Reviews,
    Overview,
    Outbox,
    Deliveries,
    DeliveryDesk,
    Leases,
    DayOrder,
    Backfills,
):
    """State of runs, tasks, letters and versions.

    Threads may share a store; every process opens its own (a connection must not cross a fork or a spawn).
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

    def hasty(self) -> Self:
        """The same store, on the same connections, without patience: for whoever asks again by itself."""
        other = copy.copy(self)
        other.db = Database(self.db.engine)
        return other

    def close(self) -> None:
        """Close all connections."""
        self.db.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
