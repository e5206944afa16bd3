"""A home with one small real run, made once a session and copied for tests that change it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dataflow_ops.console.place import Place, open_place
from dataflow_ops.console.sums import Sums
from dataflow_ops.state.records import RunRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.values import TaskSpec
from tests.pipeline import corpus
from tests.pipeline.harness import once

DATASET = "tiny"


@dataclass(frozen=True)
class Made:
    """A finished run.

    Attributes:
        home: its home.
        run: its id.
    """

    home: Path
    run: str

    def copy(self, to: Path) -> Made:
        shutil.copytree(self.home, to)
        return Made(to, self.run)


def make(folder: Path) -> Made:
    job = corpus.build(folder / "in", code=12, docs=24)
    once(job, folder / "home")
    with StateStore(f"sqlite:///{folder / 'home' / 'state.db'}") as state:
        return Made(folder / "home", state.list_runs()[0].run_id)


@contextmanager
def opened(made: Made) -> Iterator[Place]:
    """The home, patient enough that nothing is left for later."""
    place = open_place(made.home)
    place.sums.close()
    patient = Place(place.home, place.state, Sums(place.state, patience_s=60))
    try:
        yield patient
    finally:
        patient.close()


def begin(place: Place, name: str, like: str, until: str | None = None) -> RunRecord:
    """A run of the same job that is running and has no tasks."""
    row = place.state.get_run(like)
    assert row is not None
    place.state.create_run(name, row.dataset, row.job_name, "full", row.settings, None, until_layer=until)
    return place.state.set_run_state(name, "start")


def link(place: Place, run_id: str, like: str, *steps: str) -> None:
    """Give a run the finished tasks of another."""
    for step in steps:
        found = place.state.records_of_step(like, step).values()
        place.state.enqueue(run_id, [TaskSpec(t.key, t.step, t.layer, t.partition) for t in found])


def plan(place: Place, run_id: str, like: str, step: str) -> list[TaskSpec]:
    """Give a run open tasks for the partitions of another run's step."""
    found = place.state.records_of_step(like, step).values()
    specs = [TaskSpec(f"{i:02d}{t.key[2:-4]}new", t.step, t.layer, t.partition) for i, t in enumerate(found)]
    place.state.enqueue(run_id, specs)
    return specs
