"""Texts above the job's limit: split at paragraphs, truncated, or refused."""

from __future__ import annotations

import re
from typing import Final, Literal

VERSION: Final = 1

OnTooLong = Literal["split", "truncate", "reject"]

_BOUNDARIES: Final = (
    re.compile(r"\n[ \t]*\n\s*"),  # paragraphs
    re.compile(r"\n"),
    # Each run of marks is entered at its beginning only: rows of dots must not cost their square.
    re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s+|[。！？]+[”’」』）]*"),  # sentences
    re.compile(r"\s+"),
)


def split_text(text: str, limit: int) -> list[str]:
    """Cut a text into pieces of at most ``limit`` characters whose concatenation is the text.

    Pieces are of about equal length, so that no stub is left at the end. Each cut takes the last
    boundary of the highest kind (paragraph, line, sentence, word) in its window, and a hard cut, never
    before a combining character, where there is none.

    Args:
        text: the text.
        limit: most characters in a piece, at least 1.
    """
    pieces: list[str] = []
    at = 0
    while len(text) - at > limit:
        left = len(text) - at
        aim = -(-left // -(-left // limit))
        low = at + max(1, aim // 2)
        high = at + min(limit, aim + aim // 4)
        cut = _cut(text, low, high)
        pieces.append(text[at:cut])
        at = cut
    pieces.append(text[at:])
    return pieces


def cut_text(text: str, limit: int) -> str:
    """The beginning of a text, at most ``limit`` characters, ended at a boundary where one is near."""
    return text if len(text) <= limit else text[: _cut(text, max(1, limit - limit // 4), limit)]


def _cut(text: str, low: int, high: int) -> int:
    for boundary in _BOUNDARIES:
        last = 0
        for match in boundary.finditer(text, low - 1, high):
            if low <= match.end() <= high:
                last = match.end()
        if last:
            return last
    cut = high
    while cut > low and _joins(text[cut]):
        cut -= 1
    return cut


def _joins(c: str) -> bool:
    """Whether a character belongs to the one before it (combining marks, joiners, variation selectors)."""
    return "\u0300" <= c <= "\u036f" or "\ufe00" <= c <= "\ufe0f" or c in "\u200d\u20e3"
