"""Which passage of a text a rule objected to, as far as one passage can be pointed at."""

from __future__ import annotations

import re
from collections import Counter

from dataflow_ops.layers.filter import markers

PHRASES: dict[str, tuple[str, ...]] = {
    "captcha": markers.CAPTCHA,
    "error_page": markers.ERROR_PAGE,
    "advertising": markers.ADVERTISING,
}
REPEATED = frozenset(
    {
        "zlib_ratio",
        "zlib_window",
        "loop_share",
        "top_ngram_coverage",
        "repetition_ratio",
        "stop_words",
        "gopher_lines",
        "gopher_paragraphs",
        "gopher_line_chars",
        "gopher_paragraph_chars",
        "fineweb_line_chars",
        *(f"gopher_top_{n}gram" for n in (2, 3, 4)),
        *(f"gopher_{n}grams" for n in range(5, 11)),
    }
)
"""Rules against texts that say the same again and again."""
LOOKED_AT = 50_000
"""Characters in which a passage is looked for."""
AROUND = 160
"""Characters shown on each side of it."""

_WORD = re.compile(r"[一-鿿]|[^\W_一-鿿]+")
_ODD = {
    "replacement_ratio": re.compile("\ufffd+"),
    "control_ratio": re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+"),
    "c4_lorem_ipsum": re.compile("lorem ipsum", re.IGNORECASE),
    "c4_curly_brackets": re.compile(r"[{}]"),
}
_WORDS = 3


def locate(rule: str, text: str) -> tuple[int, int] | None:
    """``(start, end)`` of the passage in the text; ``None`` where all of it is meant, or none is found."""
    text = text[:LOOKED_AT]
    if rule in PHRASES:
        return _phrase(PHRASES[rule], text)
    if rule in _ODD:
        found = _ODD[rule].search(text)
        return None if found is None else found.span()
    return _repeated(text) if rule in REPEATED else None


def snippet(text: str, match: tuple[int, int] | None) -> tuple[str, tuple[int, int] | None]:
    """The part of a text to show, and where the passage lies in that part."""
    if match is None:
        return text[: 2 * AROUND], None
    start = max(0, match[0] - AROUND)
    end = min(len(text), max(match[1] + AROUND, start + 2 * AROUND))
    return text[start:end], (match[0] - start, match[1] - start)


def _phrase(phrases: tuple[str, ...], text: str) -> tuple[int, int] | None:
    # Lower-casing one character at a time keeps the places; a few letters would become two.
    lowered = "".join(low if len(low := c.lower()) == 1 else c for c in text)
    places = [(at, at + len(phrase)) for phrase in phrases if (at := lowered.find(phrase)) >= 0]
    return min(places, default=None)


def _repeated(text: str) -> tuple[int, int] | None:
    """The first of the three neighbouring words that come most often, if they come three times at least."""
    words = [(word.group().lower(), word.start(), word.end()) for word in _WORD.finditer(text)]
    grams = [tuple(word for word, _, _ in words[i : i + _WORDS]) for i in range(len(words) - _WORDS + 1)]
    if not grams:
        return None
    gram, times = Counter(grams).most_common(1)[0]
    if times < _WORDS:
        return None
    at = grams.index(gram)
    return words[at][1], words[at + _WORDS - 1][2]
