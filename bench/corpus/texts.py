"""From files as they were shipped to documents of 2 to 6 KB."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

TEXT = re.compile(r"\.(html?|xhtml|page|txt|rst|md)(\.gz)?$|/man/.*\.gz$")
CODE = re.compile(r"\.(py|js|c|h|rs|java|ts|pyx)$")
SMALLEST_FILE, LARGEST_FILE = 800, 6_000_000  # bytes
SHORTEST_REST = 600  # bytes: what is left of a file below this is no document
GOAL = (2200, 6200)  # bytes of a document, drawn anew for each
PER_FILE = 60


class Text(NamedTuple):
    """One document as found: where it is from, ``en``, ``zh`` or ``code``, and its text."""

    source: str
    lang: str
    text: str


def wanted(name: str) -> bool:
    """Whether a file of this name is read at all."""
    return bool(TEXT.search(name) or CODE.search(name))


def read_file(job: tuple[str, str, str]) -> list[Text]:
    """Documents of one file; none where it can't be read as text.

    Args:
        job: source, path, and the path inside its source, which alone decides where the file is cut.

    """
    source, path, inside = job
    try:
        data = gzip.open(path).read() if path.endswith(".gz") else Path(path).read_bytes()
        text = _text_of(data) if SMALLEST_FILE < len(data) < LARGEST_FILE else ""
    except (OSError, ValueError, EOFError):
        return []
    code = bool(CODE.search(path))
    pieces = list(cut(text.split("\n"), inside))[:PER_FILE]
    return [Text(source, "code" if code else language(piece), piece) for piece in pieces]


def _text_of(data: bytes) -> str:
    if data[:300].lstrip()[:5].lower() not in (b"<!doc", b"<html", b"<?xml"):
        return data.decode()
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    tree = HTMLTree.parse_from_bytes(data, "utf-8")
    text = extract_plain_text(tree, preserve_formatting=True, main_content=True)
    return text.encode("utf-8", "ignore").decode()


def cut(lines: Iterable[str], seed: str) -> Iterator[str]:
    """Join lines until a size drawn from ``seed`` is reached; blank lines go."""
    rng, size, held = random.Random(seed), 0, []
    goal = rng.randint(*GOAL)
    for line in lines:
        if not line.strip():
            continue
        held.append(line.rstrip())
        size += len(line.encode()) + 1
        if size >= goal:
            yield "\n".join(held)
            size, held, goal = 0, [], rng.randint(*GOAL)
    if size > SHORTEST_REST:
        yield "\n".join(held)


def language(text: str) -> str:
    """``zh`` where Han characters are more than 15 % of the first 4,000 characters, else ``en``."""
    head = text[:4000]
    return "zh" if sum("\u4e00" <= c <= "\u9fff" for c in head) > 0.15 * max(1, len(head)) else "en"


def poems(folder: Path) -> Iterator[Text]:
    """Verse, several poems to a document."""
    rng, size, held, goal = random.Random(3), 0, [], 3000
    for name in sorted(folder.rglob("*.json")):
        try:
            items = json.loads(name.read_text())
        except ValueError:
            continue
        for item in items if isinstance(items, list) else ():
            verses = item.get("paragraphs") if isinstance(item, dict) else None
            if not verses:
                continue
            head = (item.get("title") or item.get("rhythmic") or "", item.get("author") or "")
            poem = "\n".join((*head, *map(str, verses)))
            held.append(poem)
            size += len(poem.encode())
            if size >= goal:
                yield Text(folder.name, "zh", "\n\n".join(held))
                size, held, goal = 0, [], rng.randint(*GOAL)
