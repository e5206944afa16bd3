"""A run opened for asking: its settings, its steps and what it left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from dataflow_ops.protocols import Step
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.machine import FINISHED_RUNS
from dataflow_ops.state.records import RunRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.local import LocalStore

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

    """

    row: RunRecord
    settings: JobSettings
    index: OutputIndex
    steps: Mapping[str, Step]
    reader: RunReader

    @property
    def told(self) -> str:
        """What it is, for people: id, mode and day."""
        day = f" of {self.row.data_date}" if self.row.mode != "full" and self.row.data_date else ""
        return f"{self.row.run_id} ({self.row.mode}{day})"

    @property
    def sources(self) -> dict[str, str]:
        """Chunk -> the source it is from.

        Raises:
            CorruptOutput: the list of chunks is gone or damaged.
        """
        table = self.reader.checked(self.index.output("discover", "chunks", "all"), ("chunk", "source_id"))
        return dict(zip(table["chunk"].to_pylist(), table["source_id"].to_pylist(), strict=True))


@contextmanager
def open_run(
    home_path: Path, dataset: str, run_id: str | None, step: str, prefer: str = ""
) -> Iterator[OpenRun]:
    """Open a run for asking about what a step made of its documents.

    Args:
        home_path: home folder.
        dataset: whose newest finished run is taken where none is named.
        run_id: this run, finished or not.
        step: must have finished all its tasks, but for chunks given up.
        prefer: mode of the runs among which the newest is looked for first; all at once where empty.

    Raises:
        ConfigError: there is no such run, or the step has not finished in it.
        CorruptOutput: what the run left can't be read, with what to do.
    """
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        row = _row(state, dataset, run_id, step, prefer)
        settings = parse_job_text(row.settings, row.run_id)
        index = OutputIndex(state, row.run_id)
        chunks = ChunkStore(LocalStore(home.root))
        steps = build_steps(RunContext(row.run_id, settings, home.root, home.state_url))
        try:
            yield OpenRun(row, settings, index, steps, RunReader(index, chunks, steps))
        except CorruptOutput as e:
            raise CorruptOutput(
                f"{e}; what run {row.run_id} left is no longer whole: run the job again, which makes"
                " missing outputs anew, or name another run with --run"
            ) from e


def _row(state: StateStore, dataset: str, run_id: str | None, step: str, prefer: str) -> RunRecord:
    if run_id is not None:
        row = state.get_run(run_id)
        if row is None:
            raise ConfigError(f"--run {run_id}: there is no such run here; `dataflow runs` lists them")
        if row.dataset != dataset:
            raise ConfigError(f"--run {run_id} is of data set '{row.dataset}', the job file of '{dataset}'")
        if (left := _left(state, run_id, step)) is not None:
            raise ConfigError(f"run {run_id} has not finished step '{step}': {left}; run its job again first")
        return row
    runs = state.list_runs(dataset, _LOOKED_THROUGH)
    for row in sorted(runs, key=lambda row: row.mode != prefer) if prefer else runs:
        if row.state in FINISHED_RUNS and _left(state, row.run_id, step) is None:
            return row
    raise ConfigError(
        f"data set '{dataset}' has no finished run with step '{step}' here; `dataflow run JOB` makes one"
    )


def _left(state: StateStore, run_id: str, step: str) -> str | None:
    """What is not done of a step, for people; None where all is."""
    states = state.states_of_run(run_id).get(step, {})
    open_ = sum(count for name, count in states.items() if name not in ("SUCCESS", "DEAD"))
    if not states.get("SUCCESS"):
        return "none of its tasks is done"
    return f"{open_:,} of {sum(states.values()):,} tasks are open" if open_ else None
