"""Many small files of real prose, each unlike the others, the same every time on one machine."""

from __future__ import annotations

import pydoc_data.topics
import random
import re
from pathlib import Path


def sentences() -> list[str]:
    """Sentences of Python's language reference, as it comes with the interpreter."""
    text = " ".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    found = re.split(r"(?<=[.:])\s+", re.sub(r"\s+", " ", text))
    return sorted({s for s in found if 60 < len(s) < 240 and s[0].isupper()})


def note(number: int, pool: list[str], length: int = 14) -> str:
    """A text of its own for each number; ``length`` sentences."""
    return "\n".join(random.Random(number).sample(pool, length)) + "\n"


def build(folder: Path, files: int, prefix: str = "note", first: int = 0) -> None:
    """``files`` texts, numbered from ``first``.

    Every tenth is a copy of the one before it, every twentieth a near copy.
    """
    pool = sentences()
    folder.mkdir(parents=True)
    for i in range(files):
        text = note(first + (i - 1 if i % 10 == 9 else i), pool)
        if i % 20 == 9:
            text = text.replace(" the ", " the very ", 1)
        (folder / f"{prefix}-{i:04d}.txt").write_text(text, encoding="utf-8")
