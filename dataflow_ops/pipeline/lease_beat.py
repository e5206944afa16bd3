"""Keeps a lease on a day (or a backfill, or the turn of a run) alive from a thread."""

from __future__ import annotations

import threading

from dataflow_ops.errors import DatabaseUnavailable, LeaseLost
from dataflow_ops.state.leases import Lease, Leases


class LeaseBeat(threading.Thread):
    """Renews a lease every third of its time, until stopped or lost. Starts at once.

    Args:
        state: the open state store.
        held: the lease.
        seconds: how long each renewal holds.
    """

    def __init__(self, state: Leases, held: Lease, seconds: float) -> None:
        super().__init__(name=f"lease-{held.layer}", daemon=True)
        self._state = state
        self._held = held
        self._seconds = seconds
        self._over = threading.Event()
        self.lost = False
        self.start()

    def run(self) -> None:
        """Renew until stopped; a database that is away is asked again."""
        while not self._over.wait(self._seconds / 3):
            try:
                self._state.renew_lease(self._held, self._seconds)
            except DatabaseUnavailable:
                continue  # whoever works under the lease meets the same fault and says so
            except LeaseLost:
                self.lost = True
                return

    def stop(self) -> None:
        """Renew no more."""
        self._over.set()
        self.join()
