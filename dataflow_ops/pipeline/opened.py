"""A run opened for asking: its settings, its steps and what it left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dataflow_ops.engine.context import RunContext
from dataflow_ops.engine.inputs import OutputIndex
from dataflow_ops.errors import ConfigError, CorruptOutput
from dataflow_ops.pipeline.build import build_steps
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.reader import RunReader
from dataflow_ops.pipeline.session import parse_job_text
from dataflow_ops.pipeline.version_states import REJECTED, SHOWN_WAITING, shown
from dataflow_ops.protocols import Step
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.machine import FINISHED_RUNS
from dataflow_ops.state.records import RunRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.opening import open_store

_LOOKED_THROUGH = 1_000


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run.

    Attributes:
        row: its row in state.
        settings: the job as the run had it.
        index: its recorded outputs.
        steps: its steps by name.
        reader: reads its outputs.
        newer: the newest run that could have been asked, where none was named and that one was passed over.

    """

    row: RunRecord
    settings: JobSettings
    index: OutputIndex
    steps: Mapping[str, Step]
    reader: RunReader
    newer: RunRecord | None = None

    @property
    def told(self) -> str:
        """What it is, for people: id, mode and day."""
        return _told(self.row)

    @property
    def notes(self) -> list[str]:
        """A word on a newer run that was passed over."""
        if self.newer is None:
            return []
        return [f"newer, but not asked: {_told(self.newer)}; --run {self.newer.run_id} takes it"]

    @property
    def sources(self) -> dict[str, str]:
        """Chunk -> the source it is from.

        Raises:
            CorruptOutput: the list of chunks is gone or damaged.
        """
        table = self.reader.checked(self.index.output("discover", "chunks", "all"), ("chunk", "source_id"))
        return dict(zip(table["chunk"].to_pylist(), table["source_id"].to_pylist(), strict=True))


@contextmanager
def open_run(home_path: Path, dataset: str, run_id: str | None, step: str) -> Iterator[OpenRun]:
    """Open a run for asking about what a step made of its documents.

    Args:
        home_path: home folder.
        dataset: whose newest finished full run is taken where none is named; one that was run with ``--set``
            or whose version waits or was rejected only after the others; a day where there is no full one.
        run_id: this run, finished or not.
        step: must have finished all its tasks, but for chunks given up.

    Raises:
        ConfigError: there is no such run, or the step has not finished in it.
        CorruptOutput: what the run left can't be read, with what to do.
    """
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        row, newest = _row(state, dataset, run_id, step)
        settings = parse_job_text(row.settings, row.run_id)
        index = OutputIndex(state, row.run_id)
        chunks = ChunkStore(open_store(home.root))
        steps = build_steps(RunContext(row.run_id, settings, home.root, home.state_url))
        try:
            reader = RunReader(index, chunks, steps)
            yield OpenRun(row, settings, index, steps, reader, None if newest == row else newest)
        except CorruptOutput as e:
            raise CorruptOutput(
                f"{e}; what run {row.run_id} left is no longer whole: run the job again, which makes"
                " missing outputs anew, or name another run with --run"
            ) from e


def _told(row: RunRecord) -> str:
    day = f" of {row.data_date}" if row.mode != "full" and row.data_date else ""
    return f"{row.run_id} ({row.mode}{day})"


def _row(state: StateStore, dataset: str, run_id: str | None, step: str) -> tuple[RunRecord, RunRecord]:
    """The run to ask, and the newest one that could be; the same twice where it was named."""
    if run_id is not None:
        row = state.get_run(run_id)
        if row is None:
            raise ConfigError(f"--run {run_id}: there is no such run here; `dataflow runs` lists them")
        if row.dataset != dataset:
            raise ConfigError(f"--run {run_id} is of data set '{row.dataset}', the job file of '{dataset}'")
        if (left := _left(state, run_id, step)) is not None:
            raise ConfigError(f"run {run_id} has not finished step '{step}': {left}; run its job again first")
        return row, row
    runs = [row for row in state.list_runs(dataset, _LOOKED_THROUGH) if row.state in FINISHED_RUNS]
    let_through = {
        v.run_id: shown(v.state, v.is_current) not in (SHOWN_WAITING, REJECTED)
        for v in state.versions(dataset)
    }

    def after_others(row: RunRecord) -> tuple[bool, bool]:
        return row.mode != "full", not let_through.get(row.run_id, row.promote)

    def first(among: Sequence[RunRecord]) -> RunRecord | None:
        return next((row for row in among if _left(state, row.run_id, step) is None), None)

    newest, chosen = first(runs), first(sorted(runs, key=after_others))
    if newest is None or chosen is None:
        raise ConfigError(
            f"data set '{dataset}' has no finished run with step '{step}' here; `dataflow run JOB` makes one"
        )
    return chosen, newest


def _left(state: StateStore, run_id: str, step: str) -> str | None:
    """What is not done of a step, for people; None where all is."""
    states = state.states_of_run(run_id).get(step, {})
    open_ = sum(count for name, count in states.items() if name not in ("SUCCESS", "DEAD"))
    if not states.get("SUCCESS"):
        return "none of its tasks is done"
    return f"{open_:,} of {sum(states.values()):,} tasks are open" if open_ else None
