"""Dead letters for the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.state.records import LetterRecord
from dataflow_ops.state.store import StateStore


def list_letters(
    home_path: Path, error: str | None, limit: int, dataset: str | None = None
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Counts by error, and the first ``limit`` open letters, of the newest run of each data set.

    Raises:
        ConfigError: letters are open, but none with this error; or there is no such data set.
    """
    with StateStore(open_home(home_path, create=False).state_url) as state:
        jobs = _jobs(state, dataset)
        counts = state.count_dead_letters("error", dataset=dataset, newest=True)
        if error is not None and counts and error not in counts:
            raise ConfigError(
                f"--error {error}: no open dead letter has this error; there are {', '.join(counts)}"
            )
        found = _letters(state, jobs, error, limit)
    rows = [
        {
            "id": r.id[:12],
            "dataset": name,
            "level": r.letter.level,
            "step": r.letter.step,
            "source": r.letter.source_id,
            "path": r.letter.path,
            "position": r.letter.position,
            "doc_id": r.letter.doc_id,
            "error": r.letter.error,
            "message": r.letter.message,
            "parser": r.letter.parser,
            "media_type": r.letter.media_type,
            "host": r.letter.host,
        }
        for name, r in found[:limit]
    ]
    return counts, rows


def change_letters(
    home_path: Path, action: Literal["retry", "drop"], ids: Sequence[str], error: str | None, every: bool
) -> int:
    """Retry or drop letters; return how many. See :func:`change_and_name`."""
    return change_and_name(home_path, action, ids, error, every)[0]


def change_and_name(
    home_path: Path,
    action: Literal["retry", "drop"],
    ids: Sequence[str],
    error: str | None,
    every: bool,
    dataset: str | None = None,
) -> tuple[int, list[str]]:
    """Retry or drop letters; return how many, and which jobs they belong to.

    The next run plans the chunks of document and file letters under new keys (docs/adr/0008).

    Raises:
        ConfigError: nothing was named, an id fits no letter, or there is no such data set.
    """
    if not (ids or error or every):
        raise ConfigError("name letters by id, or use --error NAME or --all")
    with StateStore(open_home(home_path, create=False).state_url) as state:
        jobs = _jobs(state, dataset)
        letters = _letters(state, jobs, error, 1_000_000)
        if ids:
            for one in ids:
                if not any(r.id.startswith(one) for _, r in letters):
                    raise ConfigError(
                        f"no open dead letter has the id '{one}'; `dataflow dead-letters list` shows them"
                    )
            letters = [(name, r) for name, r in letters if r.id.startswith(tuple(ids))]
        chosen = [r.id for _, r in letters]
        touched = [jobs[name] for name in sorted({name for name, _ in letters})]
        if action == "drop":
            return state.drop_dead_letters(chosen), touched
        return state.retry_dead_letter(chosen), touched


def _jobs(state: StateStore, dataset: str | None) -> dict[str, str]:
    """Data set -> name of the job that ran for it last."""
    newest: dict[str, str] = {}
    for run in state.list_runs(None, 10_000):
        newest.setdefault(run.dataset, run.job_name)
    if dataset is None:
        return newest
    if dataset not in newest:
        known = ", ".join(sorted(newest)) or "none"
        raise ConfigError(f"data set '{dataset}' has no run here; there are {known}")
    return {dataset: newest[dataset]}


def _letters(
    state: StateStore, jobs: dict[str, str], error: str | None, limit: int
) -> list[tuple[str, LetterRecord]]:
    """``(data set, letter)``; a letter of a task that two data sets share is told once."""
    found: dict[str, tuple[str, LetterRecord]] = {}
    for name in sorted(jobs):
        for record in state.dead_letters(dataset=name, error=error, limit=limit, newest=True):
            found.setdefault(record.id, (name, record))
    return list(found.values())
