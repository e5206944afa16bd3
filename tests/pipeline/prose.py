"""Many small files of real prose, each unlike the others, the same every time on one machine."""

from __future__ import annotations

import hashlib
import pydoc_data.topics
import random
import re
from pathlib import Path

import yaml


def sentences() -> list[str]:
    """Sentences of Python's language reference, as it comes with the interpreter."""
    text = " ".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    found = re.split(r"(?<=[.:])\s+", re.sub(r"\s+", " ", text))
    return sorted({s for s in found if 60 < len(s) < 240 and s[0].isupper()})


def note(number: int, pool: list[str], length: int = 14) -> str:
    """A text of its own for each number; ``length`` sentences."""
    return "\n".join(random.Random(number).sample(pool, length)) + "\n"


def build(folder: Path, files: int, prefix: str = "note", first: int = 0) -> None:
    """``files`` texts, numbered from ``first``; every tenth is nearly the same as the one before it, every twentieth exactly."""
    pool = sentences()
    folder.mkdir(parents=True)
    for i in range(files):
        text = note(first + (i - 1 if i % 10 == 9 else i), pool)
        if i % 20 == 9:
            text = text.replace(" the ", " the very ", 1)
        (folder / f"{prefix}-{i:04d}.txt").write_text(text, encoding="utf-8")


def job(path: Path, sources: dict[str, Path], **sections: object) -> Path:
    """A job over some folders, each of the domain of its own name."""
    listed = [
        {"source_id": name, "kind": "files", "path": str(folder), "domain": name}
        for name, folder in sources.items()
    ]
    whole = {
        "dataset": {"id": "notes"},
        "sources": listed,
        "ingest": {"chunk_mb": 0.2},
        "output": {"partition_by": ["domain"], "version": "t", "shards": 8},
        **sections,
    }
    path.write_text(yaml.safe_dump(whole), encoding="utf-8")
    return path


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
