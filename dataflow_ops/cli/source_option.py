"""``--source [KIND:]PATH[@DOMAIN]`` into a source."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from dataflow_ops.errors import ConfigError
from dataflow_ops.source_settings import SourceSettings

_BY_SUFFIX = {".jsonl": "jsonl", ".parquet": "parquet", ".warc": "warc"}
_DOMAIN = re.compile(r"[A-Za-z0-9_.-]+")
_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]+")


def parse_source(text: str) -> SourceSettings:
    """A source as it is written on the command line.

    Without a kind the name's suffix decides; ``s3://…`` is of kind ``s3``. Its id is the file's or folder's
    name.

    Raises:
        ConfigError: it names no path, a kind that there is not, or one that needs more than a path.
    """
    from dataflow_ops.layers.ingest.sources import KINDS

    kinds = (*KINDS, "s3")
    kind, sep, path = text.partition(":")
    if kind == "sql":
        raise ConfigError(
            f"--source {text!r}: a table needs a key, too: write it into the job file's sources"
            " (kind: sql, see docs/sources.md)"
        )
    if text.startswith("s3://"):
        path = text
    elif not sep or kind not in kinds:
        kind, path = "", text
    path, domain = _domain(path)
    if not path.strip():
        raise ConfigError(
            f"--source {text!r} names no path; write '.' for this folder, or look whether the shell's"
            " variable is set"
        )
    prefix = text.partition(":")[0]
    if sep and not kind and prefix.isalpha() and not os.path.lexists(os.path.expandvars(path)):
        raise ConfigError(
            f"--source {text!r}: there is no such path, and no kind '{prefix}'; kinds are {', '.join(kinds)}"
        )
    # A path that ends in .. or is . has no name of its own.
    name = Path(path) if Path(path).name not in ("", "..") else Path(path).expanduser().resolve()
    if not kind:
        suffixes = [s for s in name.suffixes if s in _BY_SUFFIX]
        kind = _BY_SUFFIX[suffixes[0]] if suffixes else "files"
    found: dict[str, str] = {"kind": kind, "path": path, "source_id": safe_id(name.stem)}
    if domain:
        found["domain"] = domain
    return SourceSettings.model_validate(found)


def safe_id(name: str) -> str:
    """An id out of a name: other characters become dashes; a name of none but those is told by its hash."""
    plain = _FOREIGN.sub("-", name.replace(".", "-")).strip("-")
    if plain and plain.isascii() and (name.isascii() or len(plain) > 2):
        return plain
    return f"source-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


def _domain(path: str) -> tuple[str, str]:
    """``PATH@DOMAIN`` taken apart, unless a file of that very name is there (or it is a URL list's login)."""
    head, sep, domain = path.rpartition("@")
    if sep and head and _DOMAIN.fullmatch(domain) and not os.path.lexists(os.path.expandvars(path)):
        return head, domain
    return path, ""
