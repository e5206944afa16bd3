"""What a source's ``path`` means: one file, a folder, or a pattern below a folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dataflow_ops.dates import has_date, of_any_day, root_and_template
from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.ingest.sources.names import unescape
from dataflow_ops.source_settings import SourceSettings

WILD = frozenset("*?[")
"""Characters that make a name a pattern."""


@dataclass(frozen=True, slots=True)
class Root:
    """Where a source lies.

    Attributes:
        folder: paths inside the source are relative to it.
        single: name of the only file, ``""`` for folders and patterns.
        pattern: pattern relative to ``folder``, ``""`` if there is none.
        template: the same with ``{date}`` in it, where the path has one.
    """

    folder: Path
    single: str = ""
    pattern: str = ""
    template: str = ""


def root_of(source: SourceSettings) -> Root:
    """Take a source's path apart. A name that exists is taken literally, whatever characters it has.

    Raises:
        ConfigError: there is nothing of that name.
    """
    if has_date(source.path):
        return _dated(source)
    path = Path(source.path).expanduser()
    if path.is_dir():
        return Root(path)
    if path.exists():
        return Root(path.parent, single=path.name)
    parts = path.parts
    wild = first_wild(parts)
    if wild < len(parts):
        folder = Path(*parts[:wild])
        if folder.is_dir():
            return Root(folder, pattern="/".join(parts[wild:]))
        path = folder
    raise _absent(source, path)


def first_wild(parts: Sequence[str]) -> int:
    """Place of the first part that is a pattern; behind the last where none is."""
    return next((i for i, part in enumerate(parts) if WILD & set(part)), len(parts))


def _dated(source: SourceSettings) -> Root:
    """With ``{date}``: the last folder before it (before a pattern, where one stands in front of it)."""
    before, template = root_and_template(source.path)
    parts = Path(before).expanduser().parts
    wild = first_wild(parts)
    folder = Path(*parts[:wild])
    if not folder.is_dir():
        raise _absent(source, folder)
    template = "/".join([*parts[wild:], template])
    return Root(folder, pattern=of_any_day(template), template=template)


def _absent(source: SourceSettings, path: Path) -> ConfigError:
    return ConfigError(
        f"source '{source.source_id}': {os.fspath(path)} does not exist"
        " (relative paths count from the folder the command was started in)"
    )


def locate(source: SourceSettings, path: str) -> Path:
    """The file behind a listed path.

    Raises:
        ConfigError: the path would leave the source's folder, or the source is gone.
    """
    name = unescape(path)
    if name.startswith("/") or ".." in name.split("/"):
        raise ConfigError(f"source '{source.source_id}': {path!r} lies outside of it")
    return root_of(source).folder / name
