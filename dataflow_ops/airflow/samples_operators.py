"""Operators of the samples flow: thin callers of the functions that the command line calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.exceptions import AirflowFailException  # noqa: TID253 - this package is where Airflow belongs

from dataflow_ops.airflow import places
from dataflow_ops.airflow.samples_work import Asked, SampleWork

if TYPE_CHECKING:
    from dataflow_ops.state.samples.records import SampleTask


UPLOAD: Final = "upload:"
"""Begins a line of the form that names an upload instead of a file."""


class ImportSamples(SampleWork):
    """Imports the files that the form names; those that are there already are left as they are."""

    def wanted(self, form: Mapping[str, Any]) -> bool:
        """Whether it names any."""
        return bool(_lines(form["files"]))

    def tasks(self, asked: Asked) -> Iterator[SampleTask]:
        """Imports that were begun before, then the new one."""
        from dataflow_ops.airflow.samples_files import named_files
        from dataflow_ops.samples.importing import plan_import

        lines = _lines(asked.form["files"])
        paths = named_files(
            places.sample_files(self.home), [one for one in lines if not one.startswith(UPLOAD)]
        )
        paths += [
            _uploaded(asked, one.removeprefix(UPLOAD).strip()) for one in lines if one.startswith(UPLOAD)
        ]
        wanted = plan_import(asked.store, asked.dataset, paths, asked.who, asked.form["format"])
        for path in wanted.there:
            self.log.info("%s was imported before: nothing to do", path)
        for task_id in (*wanted.resumed, *([wanted.task_id] if wanted.task_id else ())):
            yield asked.store.sample_task(task_id)


class CleanSamples(SampleWork):
    """Cleans all dialogues of the data set."""

    def wanted(self, form: Mapping[str, Any]) -> bool:
        """Whether the form says so."""
        return bool(form["clean"])

    def tasks(self, asked: Asked) -> Iterator[SampleTask]:
        """The one that cleans all files with these settings."""
        yield _ask("clean", asked, _lines(asked.form["clean_settings"]))


class ExportSamples(SampleWork):
    """Exports all dialogues of the data set, with what models answered in the same run."""

    def wanted(self, form: Mapping[str, Any]) -> bool:
        """Whether the form names a form for it."""
        return form["export"] is not None

    def tasks(self, asked: Asked) -> Iterator[SampleTask]:
        """The one that exports all files with these settings."""
        form = asked.form
        status = ["KEPT"] if form["clean"] else ["NEW", "KEPT"]
        pairs = [f"form={form['export']}", f"status={json.dumps(status)}"]
        if form["template"] is not None:
            pairs.append(f"answers_of={json.dumps(_augmented(asked))}")
        yield _ask("export", asked, [*pairs, *_lines(form["export_settings"])])

    def told(self, asked: Asked, done: Sequence[SampleTask]) -> dict[str, Any]:
        """Its counts, and the folder below the storage root."""
        return {**super().told(asked, done), "folder": f"exports/{asked.dataset}/{done[-1].task_id}"}


def _uploaded(asked: Asked, upload_id: str) -> str:
    """Where the bytes of an upload of this data set are.

    Raises:
        ConfigError: the data set has no such upload.
        IllegalMove: bytes are missing.
    """
    from dataflow_ops.errors import ConfigError
    from dataflow_ops.samples import uploading

    if asked.store.upload(upload_id).dataset != asked.dataset:
        raise ConfigError(f"data set {asked.dataset} has no upload {upload_id}: begin a new one")
    root = asked.home.root
    folder = (root if isinstance(root, Path) else asked.home.path) / uploading.FOLDER
    return str(uploading.finish(asked.store, folder, upload_id))


def _ask(kind: str, asked: Asked, pairs: Sequence[str]) -> SampleTask:
    """The task over all files of the data set with these settings, unless it was done with the same rows."""
    from dataflow_ops.samples.asking import ask, load_settings
    from dataflow_ops.samples.repeating import once

    settings = load_settings(kind, None, pairs)

    def named(task_id: str | None) -> SampleTask:
        return ask(asked.store, kind, asked.dataset, settings, asked.who, task_id=task_id)

    return once(asked.store, named(None), asked.name, named)


def _augmented(asked: Asked) -> list[str]:
    """The augmentations of this run.

    Raises:
        AirflowFailException: its task was marked as done, and has not run.
    """
    left = asked.before["augment"]
    if left is None:
        raise AirflowFailException(
            "Task 'augment' of this run was marked as done, but has asked nothing: clear it with everything"
            " downstream"
        )
    return list(left["tasks"])


def _lines(given: Sequence[str] | None) -> list[str]:
    return [line.strip() for line in given or () if line.strip()]
