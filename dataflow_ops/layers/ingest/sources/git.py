"""``kind: git``: the tracked files of a working tree, as they lie there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.ingest.sources.jsonfiles import record_or_document
from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.layers.ingest.sources.names import escape
from dataflow_ops.layers.ingest.sources.patterns import Patterns
from dataflow_ops.layers.ingest.sources.roots import root_of
from dataflow_ops.layers.ingest.sources.vendored import is_vendored
from dataflow_ops.layers.ingest.sources.walk import media_by_content
from dataflow_ops.media import media_of
from dataflow_ops.source_settings import SourceSettings

_REASON_BY_MODE = {"120000": "symlink", "160000": "submodule"}


def list_files(source: SourceSettings, left_out: LeftOut) -> Iterator[SourceFile]:
    """Yield tracked text files, without vendored and generated ones, dot files, submodules and links.

    Raises:
        ConfigError: the path is no folder of a git working tree, or git is not installed.
    """
    root = root_of(source)
    if root.single or root.pattern:
        raise ConfigError(
            f"source '{source.source_id}': kind git needs the folder of a working tree, not {source.path!r};"
            " narrow it with include and exclude"
        )
    patterns = Patterns(source)
    for mode, name in _tracked(root.folder, source.source_id):
        path = root.folder / name
        marker = is_vendored(name)
        reason = (
            _REASON_BY_MODE.get(mode, "")
            or ("hidden" if patterns.is_hidden(path.name) else "")
            or patterns.verdict(name)
            or ("vendored" if marker and not patterns.named(marker) else "")
        )
        if reason:
            left_out[reason] += 1
            continue
        try:
            status = path.lstat()
        except FileNotFoundError:
            left_out["deleted_in_tree"] += 1
            continue
        except OSError as e:
            yield SourceFile(escape(name), -1, problem=f"can't be looked at: {e.strerror}")
            continue
        media_type = record_or_document(path, media_by_content(path, media_of(name)), source).media_type
        if media_type:
            yield SourceFile(escape(name), status.st_size, status.st_mtime_ns, media_type=media_type)
        else:
            left_out["unknown_type"] += 1


def _tracked(folder: Path, source_id: str) -> Iterator[tuple[str, str]]:
    """``(file mode, path below the folder)`` of every tracked file."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    # A repository's own configuration may name a program to run: not while only listing it.
    command = ["git", "-c", "core.fsmonitor=false", "ls-files", "--stage", "-z"]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**environment, "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as e:
        raise ConfigError(
            f"source '{source_id}': kind git needs the git program, which is not installed"
        ) from e
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ConfigError(
            f"source '{source_id}': {folder} is not a git working tree that git will list"
            f" ({said[0] if said else 'no reason given'}); use kind: files for a plain folder"
        )
    seen = ""
    for entry in os.fsdecode(done.stdout).split("\0"):
        if entry:
            facts, _, name = entry.partition("\t")
            # A file in a merge conflict is listed once for each side.
            if name != seen:
                yield facts.split(" ", 1)[0], name
            seen = name
