"""Runs that never began: their settings were refused, or their first task was lost.

They have no row among the runs, because what they asked for may not even be a job: everything that looks for
the newest run of a data set would stumble over it. A small file each says what was wrong. Light: Airflow's
servers import it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dataflow_ops.engine.faults import told_plainly
from dataflow_ops.errors import DataFlowError
from dataflow_ops.pipeline.home import Home, open_home
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.opening import open_store

FOLDER = "refused/"
KEPT = 50
"""Newest refusals of a home: nobody looks at older ones."""
SILENT = "the log of its task 'start' says why"
"""Where nobody has told."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A run that did not begin.

    Attributes:
        run_id: the name that its orchestrator gave it.
        dataset: what it was to make.
        job: the job's name, for people.
        mode: ``full`` or ``incremental``.
        dag_id: its DAG.
        dag_run_id: its run there.
        dry_run: whether it was only to look.
        why: the error; the empty string where nobody has told.
        at: when, seconds since 1970.
    """

    run_id: str
    dataset: str
    job: str
    mode: str
    dag_id: str
    dag_run_id: str
    dry_run: bool = False
    why: str = ""
    at: float = 0.0


@contextmanager
def refusals_told(home_path: Path, asked: Refusal) -> Iterator[None]:
    """Around the start of a run: an error that keeps it from beginning is written down, and goes on its way.

    Args:
        home_path: home folder.
        asked: the run, without ``why`` and ``at``.
    """
    from dataflow_ops.pipeline.tally import RunPaused

    try:
        with told_plainly():
            yield
    except RunPaused:
        raise
    except DataFlowError as e:
        try:
            with told_plainly():
                _write_down(home_path, replace(asked, why=str(e)), f"{type(e).__name__}: {e}")
        except DataFlowError as other:
            # What is wrong with the run matters more than that nobody could be told.
            e.add_note(f"this could not be written down for others: {other}")
        raise
    if home_path.is_dir():  # a dry run makes none
        open_store(open_home(home_path, create=False).root).delete(_uri(asked.run_id))


def lost(home_path: Path, asked: Refusal) -> None:
    """The orchestrator gave a run up: where it has no row and nobody has said why, it never began."""
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        begun = state.get_run(asked.run_id) is not None
    if not begun and refusal_of(home, asked.run_id) is None:
        _put(home, asked)


def refusal_of(home: Home, run_id: str) -> Refusal | None:
    """What kept a run from beginning; None where nothing did."""
    return _read(open_store(home.root), _uri(run_id))


def refusals(home: Home, dataset: str | None = None) -> list[Refusal]:
    """Runs (of one data set) that did not begin, newest first."""
    blobs = open_store(home.root)
    read = (_read(blobs, blob.uri) for blob in blobs.list(FOLDER))
    found = [one for one in read if one is not None and dataset in (None, one.dataset)]
    return sorted(found, key=lambda one: (-one.at, one.run_id))


def _write_down(home_path: Path, refusal: Refusal, detail: str) -> None:
    if refusal.dry_run and not home_path.is_dir():
        return  # whoever only looks makes no home
    home = open_home(home_path)
    with StateStore(home.state_url) as state:
        row = state.get_run(refusal.run_id)
        if row is not None and row.state in ("PLANNED", "FAILED"):
            state.set_run_state(refusal.run_id, "FAILED", detail)
    if row is None:
        _put(home, refusal)


def _put(home: Home, refusal: Refusal) -> None:
    blobs = open_store(home.root)
    data = json.dumps(asdict(replace(refusal, at=time.time())), ensure_ascii=False).encode()
    blobs.put(_uri(refusal.run_id), data, replace=True)
    for old in refusals(home)[KEPT:]:
        blobs.delete(_uri(old.run_id))


def _read(blobs: BlobStore, uri: str) -> Refusal | None:
    if blobs.stat(uri) is None:
        return None
    return Refusal(**json.loads(blobs.read(uri)))


def _uri(run_id: str) -> str:
    return f"{FOLDER}{hashlib.sha256(run_id.encode()).hexdigest()[:24]}.json"
