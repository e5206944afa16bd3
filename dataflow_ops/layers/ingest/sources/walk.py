"""Walking a folder: every entry is either given, left out for a counted reason, or reported as unreadable."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from dataflow_ops.layers.ingest.sources.days import starts
from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.layers.ingest.sources.names import escape
from dataflow_ops.layers.ingest.sources.patterns import OTHER_DAY, Patterns
from dataflow_ops.layers.ingest.sources.roots import root_of
from dataflow_ops.media import Media, media_of, sniff
from dataflow_ops.source_settings import SourceSettings

_HEAD = 512


def walk(source: SourceSettings, left_out: LeftOut) -> Iterator[tuple[SourceFile, Path]]:
    """Yield the files that a source's path and patterns take, with where they lie.

    Media types are by name alone. Linked files count where their target lies inside the source; linked
    folders are not followed (they may form a circle).

    Args:
        source: its settings.
        left_out: reasons are counted here.

    Raises:
        ConfigError: the path does not exist.
    """
    root = root_of(source)
    if root.single:
        path = root.folder / root.single
        status = path.stat()
        yield _file(root.single, status), path
        return
    patterns = Patterns(source, root.pattern, root.template)
    inside = os.path.realpath(root.folder)
    pending = list(starts(source, root, patterns.is_hidden))
    while pending:
        base, folder = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda e: e.name)
        except OSError as e:
            problem = f"the folder can't be listed: {e.strerror}"
            yield SourceFile(escape(base.rstrip("/")) or ".", -1, problem=problem), Path(folder)
            continue
        for entry in entries:
            path_inside = base + entry.name
            if patterns.is_hidden(entry.name):
                left_out["hidden"] += 1
            elif entry.is_dir(follow_symlinks=False):
                pending.append((f"{path_inside}/", entry.path))
            elif reason := _unfit(entry, inside) or patterns.verdict(path_inside):
                if reason != OTHER_DAY:
                    left_out[reason] += 1
            else:
                try:
                    status = entry.stat()
                except OSError as e:
                    yield (
                        SourceFile(escape(path_inside), -1, problem=f"can't be looked at: {e.strerror}"),
                        Path(entry.path),
                    )
                    continue
                yield _file(path_inside, status), Path(entry.path)


def media_by_content(path: Path, media: Media) -> Media:
    """Media type by the first bytes, where the name says nothing and nothing is compressed.

    A file that can't be opened counts as text: fetch will say what is wrong with it.
    """
    if media.media_type or media.codec:
        return media
    try:
        with open(path, "rb") as file:
            return sniff(file.read(_HEAD))
    except OSError:
        return sniff(b"")


def _file(name: str, status: os.stat_result) -> SourceFile:
    return SourceFile(escape(name), status.st_size, status.st_mtime_ns, media_type=media_of(name).media_type)


def _unfit(entry: os.DirEntry[str], inside: str) -> str:
    if entry.is_symlink():
        target = os.path.realpath(entry.path)
        if not os.path.exists(target):
            return "symlink_broken"
        if os.path.isdir(target):
            return "symlink_folder"
        if os.path.commonpath([inside, target]) != inside:
            return "symlink_outside"
    return "" if _is_regular(entry) else "special"


def _is_regular(entry: os.DirEntry[str]) -> bool:
    try:
        return stat.S_ISREG(entry.stat().st_mode)
    except OSError:
        # Reported by the caller, which looks again.
        return True
