"""What listing a source gives: files, and what became of everything else that was seen."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a source.

    Attributes:
        path: relative to the source's root, forward slashes, escaped (see ``names.py``); for a list of
            URLs the URL itself. The identity.
        size: stored bytes; -1 where it is not known before fetching.
        mtime_ns: modification time; 0 where there is none.
        etag: anything else that changes when the file does, else ``""``.
        media_type: from ``media.py``; ``""`` where only the transport will tell.
        url: where it is fetched from, ``""`` for local files.
        problem: why it can't be read (a folder without permission), else ``""``: it becomes a dead letter.
    """

    path: str
    size: int
    mtime_ns: int = 0
    etag: str = ""
    media_type: str = ""
    url: str = ""
    problem: str = ""


LeftOut = Counter[str]
"""Reason -> how many entries were deliberately left out: ``hidden``, ``not_included``, ``excluded``,
``symlink_outside``, ``symlink_folder``, ``special``, ``unknown_type``, ``vendored``, ``submodule``, …"""
