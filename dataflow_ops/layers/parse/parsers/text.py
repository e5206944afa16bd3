"""Plain text, reStructuredText and their like: the text is kept as it is."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from dataflow_ops.layers.parse.encoding import decode
from dataflow_ops.layers.parse.parsers.base import Hints, ParsedDocument, Parser


def parse_text(data: bytes, hints: Hints) -> ParsedDocument:
    """Decode; for reStructuredText the first heading is the title.

    Raises:
        UndecodableText: no encoding gives readable text.
    """
    text, encoding = decode(data, (hints.charset,) if hints.charset else ())
    title = rst_title(text) if hints.path.lower().removesuffix(".gz").endswith(".rst") else ""
    return ParsedDocument(text, title, encoding=encoding)


def rst_title(text: str) -> str:
    """The first line underlined by at least its own length of one punctuation character, or ``""``."""
    rows = text[:10_000].splitlines()
    for row, under in pairwise(rows):
        mark = under.rstrip()
        title = row.strip()
        if (
            title
            and len(mark) >= max(3, len(title))
            and mark[0] in "=-~^\"'#*+`:.<>_"
            and mark == mark[0] * len(mark)
            and any(c.isalnum() for c in title)
        ):
            return title
    return ""


PARSER: Final = Parser("text", 1, parse_text)
