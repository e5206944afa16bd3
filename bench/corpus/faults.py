"""What is done to documents so that a filter or a dedup has something to find, each under a label.

Copies (``dup_of`` says of which document): ``exact``; ``width`` (full-width forms, outer white space);
``title`` (a line before, a date behind); ``block5``, ``block10`` (one stretch of that many per cent
replaced); ``edit1`` to ``edit10`` (that many per cent of words exchanged or dropped, scattered).
Faults: ``loop``, ``halfloop``, ``control``, ``stuffed``, ``punct``, ``short``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import NamedTuple

Words = dict[str, list[str]]
Change = Callable[[str, str, random.Random, Words], str]


class Fault(NamedTuple):
    """How many of 120,000 base documents get it, whether the result is a copy, and what is done."""

    per_120k: int
    copy: bool
    change: Change


def tokens(text: str, lang: str) -> list[str]:
    """Words and the white space between them; Han in pieces of one or two characters."""
    pattern = r"[\u4e00-\u9fff]{1,2}|\s+|[^\u4e00-\u9fff\s]+" if lang == "zh" else r"\S+|\s+"
    return re.findall(pattern, text)


def _word(words: Words, lang: str, rng: random.Random) -> str:
    return rng.choice(words["zh" if lang == "zh" else "en"])


def _same(text: str, lang: str, rng: random.Random, words: Words) -> str:
    return text


def _width(text: str, lang: str, rng: random.Random, words: Words) -> str:
    wide = {ord(c): ord(c) + 0xFEE0 for c in "(),1"}
    return f"\u3000 {text.translate(wide)} \n\n"


def _title(text: str, lang: str, rng: random.Random, words: Words) -> str:
    line = " ".join(_word(words, lang, rng) for _ in range(8))
    return f"{line}\n{text}\n2025-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}"


def _block(share: float) -> Change:
    def change(text: str, lang: str, rng: random.Random, words: Words) -> str:
        parts = tokens(text, lang)
        n = int(len(parts) * share)
        at = rng.randrange(max(1, len(parts) - n))
        blank = "" if lang == "zh" else " "
        new = [_word(words, lang, rng) + blank for _ in range(n // 2)]
        return "".join((*parts[:at], *new, *parts[at + n :]))

    return change


def _edit(share: float) -> Change:
    def one(part: str, lang: str, rng: random.Random, words: Words) -> str:
        if part.isspace() or rng.random() >= share:
            return part
        return _word(words, lang, rng) if rng.random() < 0.75 else ""

    def change(text: str, lang: str, rng: random.Random, words: Words) -> str:
        return "".join(one(part, lang, rng, words) for part in tokens(text, lang))

    return change


def _loop(text: str, lang: str, rng: random.Random, words: Words) -> str:
    return text[: rng.randint(8, 120)] * rng.randint(30, 200)


def _halfloop(text: str, lang: str, rng: random.Random, words: Words) -> str:
    half = len(text) // 2
    return text[:half] + text[half : half + rng.randint(10, 60)] * (len(text) // 60 + 5)


def _control(text: str, lang: str, rng: random.Random, words: Words) -> str:
    out = list(text)
    for _ in range(int(len(out) * rng.uniform(0.015, 0.1))):
        out[rng.randrange(len(out))] = rng.choice("\x01\x02\x04\x07\x08\x0e\x10\x1b\x7f")
    return "".join(out)


def _stuffed(text: str, lang: str, rng: random.Random, words: Words) -> str:
    keys = [_word(words, lang, rng) for _ in range(6)]
    drawn = (word for _ in range(250) for word in rng.sample(keys, rng.randint(1, 3)))
    return ("" if lang == "zh" else " ").join(drawn)


def _punct(text: str, lang: str, rng: random.Random, words: Words) -> str:
    marks = "#*-=|+/\\_.:~^<>%$&!?"
    return "".join(rng.choice(marks) if rng.random() < 0.6 else c for c in text)


def _short(text: str, lang: str, rng: random.Random, words: Words) -> str:
    return text[: rng.randint(3, 60)]


FAULTS: dict[str, Fault] = {
    "exact": Fault(3000, True, _same),
    "width": Fault(800, True, _width),
    "title": Fault(1500, True, _title),
    "block5": Fault(1000, True, _block(0.05)),
    "block10": Fault(1000, True, _block(0.10)),
    "edit1": Fault(1000, True, _edit(0.01)),
    "edit2": Fault(1000, True, _edit(0.02)),
    "edit5": Fault(1000, True, _edit(0.05)),
    "edit10": Fault(1000, True, _edit(0.10)),
    "loop": Fault(600, False, _loop),
    "halfloop": Fault(600, False, _halfloop),
    "control": Fault(600, False, _control),
    "stuffed": Fault(600, False, _stuffed),
    "punct": Fault(400, False, _punct),
    "short": Fault(400, False, _short),
}
"""Fault by label."""
