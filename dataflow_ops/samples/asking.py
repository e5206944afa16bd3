"""Asking for a clean-up or an export: settings from a file, files of a data set, and an id that follows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from dataflow_ops.samples.browse import meant_files
from dataflow_ops.samples.cleaning.settings import SampleCleanSettings
from dataflow_ops.samples.export.answers import Answers
from dataflow_ops.samples.export.settings import SampleExportSettings
from dataflow_ops.settings_file import override, read_mapping, validated
from dataflow_ops.state.database import dump
from dataflow_ops.state.samples.records import SampleTask
from dataflow_ops.state.samples.store import SampleStore

SETTINGS: Final[Mapping[str, type[BaseModel]]] = {
    "clean": SampleCleanSettings,
    "export": SampleExportSettings,
}
"""Kind of task → what its settings are."""


def load_settings(kind: str, path: Path | None, overrides: Sequence[str] = ()) -> BaseModel:
    """Settings of a task.

    Args:
        kind: a name in :data:`SETTINGS`.
        path: YAML file; None: the defaults.
        overrides: ``section.key=value`` pairs.

    Raises:
        ConfigError: the file can't be read, or a key or value is not allowed.
    """
    model = SETTINGS[kind]
    known = ", ".join(model.model_fields)
    raw: dict[str, Any] = {}
    if path is not None:
        raw = read_mapping(path, f"settings of a task of kind {kind} are a mapping; known here: {known}")
    for pair in overrides:
        override(raw, pair)
    return validated(model, raw, str(path or "settings"), overrides)


def ask(
    store: SampleStore,
    kind: str,
    dataset: str,
    settings: BaseModel,
    who: str,
    *,
    files: Sequence[str] = (),
    task_id: str | None = None,
) -> SampleTask:
    """Ask for a task over files of a data set.

    Args:
        store: open.
        kind: a name in :data:`SETTINGS`.
        dataset: whose files.
        settings: from :func:`load_settings`.
        who: name of the person or service.
        files: ids (or their beginnings), paths or names; empty: all that are ready.
        task_id: None for one that follows from data set, files and settings: the same command goes on with
            the same task.

    Raises:
        ConfigError: the data set has no such file, the id belongs to another task, or what the settings name
            is not there or not done.
    """
    chosen = [file.id for file in meant_files(store, dataset, files, ready=True)]
    if isinstance(settings, SampleExportSettings):
        Answers(store, settings.answers_of, dataset)  # before there is a task that could never run
    given = settings.model_dump(mode="json")
    if task_id is None:
        told = dump([kind, dataset, given, chosen])
        task_id = f"{kind}-{dataset}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"
    return store.create_task(task_id, dataset, kind, given, chosen, who)
