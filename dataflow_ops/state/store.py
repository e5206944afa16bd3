"""The one door to the state database. Each part of it is a module of its own."""

from __future__ import annotations

import copy
from typing import Self

from dataflow_ops.state.backfills import Backfills
from dataflow_ops.state.commits import Commits
from dataflow_ops.state.database import Database
from dataflow_ops.state.day_order import DayOrder
from dataflow_ops.state.deliveries import Deliveries
from dataflow_ops.state.delivery_desk import DeliveryDesk
from dataflow_ops.state.door import Door
from dataflow_ops.state.glance import Glance
from dataflow_ops.state.kept import Kept
from dataflow_ops.state.leases import Leases
from dataflow_ops.state.letter_pages import LetterPages
from dataflow_ops.state.letters import Letters
from dataflow_ops.state.lookup import Lookup
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
    Door,
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
    """State of runs, tasks, letters and versions."""

    def hasty(self) -> Self:
        """The same store, on the same connections, without patience: for whoever asks again by itself."""
        other = copy.copy(self)
        other.db = Database(self.db.engine)
        return other
