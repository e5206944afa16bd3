"""An audit of what was removed: by one run, or by all that made a version."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from dataflow_ops.errors import ConfigError, VersionError
from dataflow_ops.observe.audit import AuditRow, sample_all
from dataflow_ops.pipeline.chain import version_named
from dataflow_ops.pipeline.home import Home, open_home
from dataflow_ops.pipeline.look import newest, reader_of, rule_notes
from dataflow_ops.pipeline.reader import RunReader
from dataflow_ops.pipeline.version_reader import OpenVersion, open_version
from dataflow_ops.state.store import StateStore

REMOVERS: Final = (
    "exact",
    "near",
    "exact_duplicate",
    "near_duplicate",
    "empty_text",
    "too_long",
    "language",
    "language_score",
)
"""What removes documents besides the filter's rules."""
READ: Final = (("parse", "rejects"), ("filter", "rejects"), ("confirm", "verdicts"), ("label", "labels"))
"""``(step, kind)`` of what tells which documents a step removed."""
Parts = Sequence[tuple[RunReader, pa.Array | None]]


def run_named(home_path: Path, of: str | None, dataset: str | None = None) -> str:
    """Id of a run by its own, or by the version that it made; the newest where nothing is named.

    Raises:
        ConfigError: there is neither.
        VersionError: the start of a version's id fits several.
    """
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        if of is None:
            return newest(state, dataset)
        return of if state.get_run(of) is not None else _version_run(state, of, dataset)


def audit_of(
    home_path: Path, of: str | None, rule: str | None, n: int, seed: int, dataset: str | None = None
) -> list[AuditRow]:
    """A sample of what was removed.

    Args:
        home_path: home folder.
        of: a run's id: what that run removed. A version's id, or the start of one: what the runs removed that
            made it and those below it, less what later ones replaced. None: the newest run.
        rule: only this rule.
        n: rows at most.
        seed: another seed draws other documents.
        dataset: of this data set.

    Raises:
        ConfigError: no such run, version or rule.
        VersionError: the start of a version's id fits several, or what its runs removed is no longer kept.
    """
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        known: set[str] = set()
        parts: list[tuple[RunReader, pa.Array | None]] = []
        for run_id, hidden in _runs(home, state, of, dataset):
            reader, steps = reader_of(home, state, run_id)
            known |= {note.name for note in rule_notes(steps)}
            parts.append((reader, hidden))
        names = [*sorted(known), *REMOVERS]
        if rule is not None and rule not in names:
            raise ConfigError(f"--rule {rule}: no such rule in this run; there are {', '.join(names)}")
        return sample_all(parts, rule, n, seed)


def _runs(
    home: Home, state: StateStore, of: str | None, dataset: str | None
) -> list[tuple[str, pa.Array | None]]:
    """Runs, with the documents that others of them have replaced."""
    if of is None or state.get_run(of) is not None:
        return [(of or newest(state, dataset), None)]
    _version_run(state, of, dataset)
    parts = open_version(home, state, of, dataset).parts
    for part in parts:
        _need_whole(part)
    return [(part.run.run_id, part.hidden) for part in parts]


def _version_run(state: StateStore, of: str, dataset: str | None) -> str:
    versions = state.versions(dataset)
    if not any(v.version_id.startswith(of) for v in versions):
        raise ConfigError(
            f"no run and no version '{of}' here; `dataflow runs` and `dataflow versions list` list them"
        )
    return version_named(versions, of).run_id


def _need_whole(part: OpenVersion) -> None:
    """A sample of half of what was removed would look like one of all."""
    rejected = {step["name"]: step["rejected"] for step in part.manifest["steps"]}
    for step, kind in READ:
        if rejected.get(step) and not part.has(step, kind):
            raise VersionError(
                f"what step '{step}' removed in run {part.run.run_id}, which made"
                f" {part.record.version_id}, is no longer kept; `dataflow audit RUN` draws from a newer run"
                " alone"
            )
