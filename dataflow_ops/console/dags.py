"""What people's pages know of the orchestrator: handed in, because this package knows none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dataflow_ops.state.records import RunRecord


@dataclass(frozen=True, slots=True)
class DagFact:
    """A DAG that makes a data set.

    Attributes:
        dag_id: its name.
        dataset: what it makes.
        mode: ``full`` or ``incremental``.
        description: a line for people.
        schedule: as the orchestrator shows it; empty: none.
        next_run: when it starts next, seconds since 1970; None: never by itself.
        is_paused: whether the orchestrator starts nothing of it.
    """

    dag_id: str
    dataset: str
    mode: str
    description: str = ""
    schedule: str = ""
    next_run: float | None = None
    is_paused: bool = False


@dataclass(frozen=True, slots=True)
class Consumer:
    """A DAG run that started on a version.

    Attributes:
        dag_id: its DAG.
        run_id: the run's name in the orchestrator.
        at: when it was made, seconds since 1970.
        state: as the orchestrator names it.
    """

    dag_id: str
    run_id: str
    at: float | None
    state: str

    def as_dict(self) -> dict[str, str | float | None]:
        """For JSON."""
        return {"dag_id": self.dag_id, "run_id": self.run_id, "at": self.at, "state": self.state}


class DagFacts(Protocol):
    """Asked once per page."""

    def dags(self) -> Sequence[DagFact]:
        """All DAGs that make data sets."""

    def consumers(self, dataset: str) -> Mapping[str, Sequence[Consumer]]:
        """Version -> the runs that started on it, newest first."""


class NoDags:
    """Where there is no orchestrator."""

    def dags(self) -> Sequence[DagFact]:
        """None."""
        return ()

    def consumers(self, dataset: str) -> Mapping[str, Sequence[Consumer]]:
        """None."""
        return {}


def origin_of(run: RunRecord | None) -> tuple[str | None, str | None]:
    """``(DAG, its run)`` that started a run; None twice where the command line did."""
    if run is None or not run.origin:
        return None, None
    found = json.loads(run.origin)
    return found.get("dag_id"), found.get("run_id")
