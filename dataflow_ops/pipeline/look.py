"""Looking into a run's data sets: lineage of a document, what its documents are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dataflow_ops.engine.base_records import record_source
from dataflow_ops.engine.context import RunContext
from dataflow_ops.engine.inputs import OutputIndex
from dataflow_ops.errors import ConfigError, VersionError
from dataflow_ops.observe.evidence import RuleNote
from dataflow_ops.observe.lineage import Lineage, find
from dataflow_ops.observe.lineage_text import as_dict, as_text
from dataflow_ops.pipeline.build import build_steps
from dataflow_ops.pipeline.chain import records_behind
from dataflow_ops.pipeline.home import Home, open_home
from dataflow_ops.pipeline.media_counts import documents_by_media
from dataflow_ops.pipeline.parent import base_parts
from dataflow_ops.pipeline.reader import RunReader
from dataflow_ops.pipeline.session import latest_run, parse_job_text
from dataflow_ops.pipeline.shard_places import placed
from dataflow_ops.protocols import Step
from dataflow_ops.state.records import COMPACT
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.opening import open_store

_LOOKED_THROUGH = 1_000


def lineage_of(
    home_path: Path, run_id: str | None, document: str, dataset: str | None = None
) -> tuple[str, dict[str, Any]]:
    """A document's story as text and as a JSON-able mapping."""
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        found = _traced(home, state, run_id or newest(state, dataset), document)
    return as_text(found), as_dict(found)


def _traced(home: Home, state: StateStore, run_id: str, document: str) -> Lineage:
    """In a run, else in those that made the versions below it; its survivor likewise."""
    runs = [run_id, *_runs_below(state, run_id)]
    for place, name in enumerate(runs, 1):
        reader, steps = reader_of(home, state, name)
        try:
            found = find(reader, document, rule_notes(steps))
        except ConfigError:
            if place == len(runs):
                raise
            continue
        found = placed(home, state, reader, name, found)
        for below in runs[place:] if found.survivor_id and found.survivor is None else ():
            reader, steps = reader_of(home, state, below)
            with suppress(ConfigError):
                survivor = find(reader, found.survivor_id, rule_notes(steps))
                survivor = placed(home, state, reader, below, survivor)
                return replace(found, survivor=survivor, detail="the survivor is of a version below")
        return found
    raise AssertionError("there is at least one run")


def _runs_below(state: StateStore, run_id: str) -> list[str]:
    """Runs that made the versions that a run builds on, the uppermost first."""
    row = state.get_run(run_id)
    settings = None if row is None else parse_job_text(row.settings, run_id)
    if settings is None or settings.interval is None or settings.interval.parent is None:
        return []
    records = records_behind(state.versions(settings.dataset.id), settings.interval.parent.version)
    return [record.run_id for record in records[::-1]]


def newest(state: StateStore, dataset: str | None) -> str:
    """The newest run that read sources; one that compacts versions removes nothing."""
    for run in state.list_runs(dataset, _LOOKED_THROUGH):
        if run.mode != COMPACT:
            return run.run_id
    return latest_run(state, dataset)


def media_of(home_path: Path, run_id: str | None) -> list[tuple[str, int]]:
    """A run's parsed documents by what they are, ``(name, documents)``, most first."""
    with _opened(home_path, run_id) as (reader, _):
        return documents_by_media(reader)


def rule_notes(steps: dict[str, Step]) -> list[RuleNote]:
    """What the run's filter rules are called, with versions and bounds."""
    rules: Any = steps["filter"].rules  # type: ignore[attr-defined]
    return [
        RuleNote(r.name, str(r.version), r.gate, r.low, r.high, r.statistic, r.applies_to, r.by_kind)
        for r in rules
    ]


@contextmanager
def _opened(
    home_path: Path, run_id: str | None, dataset: str | None = None
) -> Iterator[tuple[RunReader, dict[str, Step]]]:
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        yield reader_of(home, state, run_id or newest(state, dataset))


def reader_of(home: Home, state: StateStore, run_id: str) -> tuple[RunReader, dict[str, Step]]:
    """Reads what a run left, with the steps as it had them.

    Raises:
        ConfigError: there is no such run.
    """
    row = state.get_run(run_id)
    if row is None:
        raise ConfigError(f"no run '{run_id}' here; `dataflow runs` lists them")
    settings, blobs = parse_job_text(row.settings, run_id), open_store(home.root)
    steps = dict(build_steps(RunContext(run_id, settings, home.root, home.state_url)))
    try:
        below = base_parts(state, blobs, settings)
    except VersionError:
        below = ()  # no longer kept: what is told of survivors there is their ids
    index = OutputIndex(record_source(state, below), run_id)
    return RunReader(index, ChunkStore(blobs), steps), steps
