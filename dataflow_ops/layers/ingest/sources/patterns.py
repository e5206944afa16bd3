"""Which paths a source takes: ``include`` and ``exclude`` as in a .gitignore, hidden names by name only."""

from __future__ import annotations

from collections.abc import Sequence

import pathspec

from dataflow_ops.errors import ConfigError
from dataflow_ops.settings import SourceSettings

SKIPPED_FOLDERS = frozenset({"__pycache__"})
"""Skipped like hidden names: nothing in them was written by a person."""


class Patterns:
    """The patterns of one source.

    Args:
        source: its settings.
        glob: pattern that was part of the source's path, ``""`` if none.

    Raises:
        ConfigError: a pattern can't be read.
    """

    def __init__(self, source: SourceSettings, glob: str = "") -> None:
        where = f"source '{source.source_id}'"
        self._glob = _spec([f"/{glob}"] if glob else [], f"{where}.path")
        self._include = _spec(source.include, f"{where}.include")
        self._exclude = _spec(source.exclude, f"{where}.exclude")
        self.has_include = bool(source.include or glob)
        self._named = {part for pattern in (*source.include, glob) for part in pattern.split("/")}

    def verdict(self, path: str) -> str:
        """``""`` when the file is taken, else why not: ``not_included``, ``excluded``."""
        if self._glob is not None and not self._glob.match_file(path):
            return "not_included"
        if self._include is not None and not self._include.match_file(path):
            return "not_included"
        if self._exclude is not None and self._exclude.match_file(path):
            return "excluded"
        return ""

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
