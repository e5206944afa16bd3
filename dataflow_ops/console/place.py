"""A home that stays open for as long as a server lives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dataflow_ops.console.sums import Sums
from dataflow_ops.errors import DataFlowError
from dataflow_ops.pipeline.home import Home, open_home
from dataflow_ops.state.store import StateStore


class NotThere(DataFlowError):
    """What was asked for does not exist (yet)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Everything that the pages read.

    Attributes:
        home: where things are.
        state: open; threads may share it.
        sums: what tasks add up to, remembered.
    """

    home: Home
    state: StateStore
    sums: Sums

    def close(self) -> None:
        """Give connections and threads back."""
        self.sums.close()
        self.state.close()


def open_place(path: Path) -> Place:
    """Open a home.

    Raises:
        ConfigError: there is none.
    """
    home = open_home(path, create=False)
    state = StateStore(home.state_url)
    return Place(home, state, Sums(state))
