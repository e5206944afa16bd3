"""Which paths a source takes: ``include`` and ``exclude`` as in a .gitignore, hidden names by name only."""

from __future__ import annotations

from collections.abc import Sequence

import pathspec

from dataflow_ops.dates import of_any_day
from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.ingest.sources.days import day_patterns
from dataflow_ops.source_settings import SourceSettings

SKIPPED_FOLDERS = frozenset({"__pycache__"})
"""Skipped like hidden names: nothing in them was written by a person."""

OTHER_DAY = "other_day"
"""Why a file is no part of an interval. Not counted: a day must not tell how full the others are."""


class Patterns:
    """The patterns of one source.

    Args:
        source: its settings.
        glob: pattern that was part of the source's path, ``""`` if none.
        template: the same with ``{date}`` in it, where the path has one.

    Raises:
        ConfigError: a pattern can't be read.
    """

    def __init__(self, source: SourceSettings, glob: str = "", template: str = "") -> None:
        where = f"source '{source.source_id}'"
        self._glob = _spec([f"/{glob}"] if glob else [], f"{where}.path")
        include = [of_any_day(pattern) for pattern in source.include]
        self._include = _spec(include, f"{where}.include")
        self._exclude = _spec(source.exclude, f"{where}.exclude")
        of_path = [f"/{pattern}" for pattern in day_patterns(source, [template])]
        self._days = [
            spec
            for spec in (_spec(of_path, where), _spec(day_patterns(source, source.include), where))
            if spec is not None
        ]
        self.has_include = bool(include or glob)
        self._named = {part for pattern in (*include, glob) for part in pattern.split("/")}

    def verdict(self, path: str) -> str:
        """``""`` when the file is taken, else why not: ``not_included``, ``excluded``, :data:`OTHER_DAY`."""
        if self._glob is not None and not self._glob.match_file(path):
            return "not_included"
        if self._include is not None and not self._include.match_file(path):
            return "not_included"
        if self._exclude is not None and self._exclude.match_file(path):
            return "excluded"
        return "" if all(spec.match_file(path) for spec in self._days) else OTHER_DAY

    def named(self, name: str) -> bool:
        """Whether a pattern names this very file or folder, which lets hidden and vendored ones in."""
        return name in self._named

    def is_hidden(self, name: str) -> bool:
        """Whether a name is passed over unless it is named."""
        return (name.startswith(".") or name in SKIPPED_FOLDERS) and not self.named(name)


def _spec(patterns: Sequence[str], where: str) -> pathspec.GitIgnoreSpec | None:
    if not patterns:
        return None
    try:
        return pathspec.GitIgnoreSpec.from_lines(patterns)
    except ValueError as e:
        raise ConfigError(f"{where}: {e}") from e
