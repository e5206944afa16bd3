"""Tables over all code points: what a character is, and what it folds to in the rules' view.

Built once per process from :mod:`unicodedata` (about 0.06 s), so they change only with Python's Unicode
version, which belongs in the fingerprint of every step that uses them.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np

from dataflow_ops.kernels.arrow import U8, U32

VERSION = 1
CODE_POINTS = 0x110000

OTHER, SPACE, NEWLINE, DIGIT, NUMBER, PUNCT, SENTENCE_END, SYMBOL, CONTROL, REPLACEMENT, MARK = range(11)
LATIN, HAN, KANA, HANGUL, CYRILLIC, GREEK, ARABIC, HEBREW, DEVANAGARI, THAI, OTHER_LETTER = range(11, 22)
CLASSES = 22
"""Number of classes; each code point is in exactly one."""

SCRIPTS = {
    LATIN: "latin",
    HAN: "han",
    KANA: "kana",
    HANGUL: "hangul",
    CYRILLIC: "cyrillic",
    GREEK: "greek",
    ARABIC: "arabic",
    HEBREW: "hebrew",
    DEVANAGARI: "devanagari",
    THAI: "thai",
    OTHER_LETTER: "other",
}
"""Letter classes and the name of their script as it stands in verdicts."""

SENTENCE_ENDS = ".!?…。！？｡．؟۔।॥"
_NEWLINES = "\n\r\u2028\u2029"
_BY_NAME = {
    "LATIN": LATIN,
    "CJK": HAN,
    "HIRAGANA": KANA,
    "KATAKANA": KANA,
    "KATAKANA-HIRAGANA": KANA,
    "HANGUL": HANGUL,
    "CYRILLIC": CYRILLIC,
    "GREEK": GREEK,
    "ARABIC": ARABIC,
    "HEBREW": HEBREW,
    "DEVANAGARI": DEVANAGARI,
    "THAI": THAI,
}


_WHOLE = (
    (0x3400, 0x4DC0, HAN),
    (0x4E00, 0xA000, HAN),
    (0xAC00, 0xD7A4, HANGUL),
    (0xD800, 0xF900, OTHER),  # surrogates and private use
    (0x20000, 0x2A6E0, HAN),
)
"""Stretches of which every code point is assigned, and one class, since Unicode 14 (Python 3.11)."""


def _class_of(char: str) -> int:
    category = unicodedata.category(char)
    if char in _NEWLINES:
        return NEWLINE
    if char in SENTENCE_ENDS:
        return SENTENCE_END
    if char.isspace():
        return SPACE
    if category[0] == "L":
        words = unicodedata.name(char, "").split()
        first = (
            words[1] if words[:1] in (["FULLWIDTH"], ["HALFWIDTH"]) and len(words) > 1 else (words or [""])[0]
        )
        return _BY_NAME.get(first, OTHER_LETTER)
    if char == "\ufffd":
        return REPLACEMENT
    by_category = {"Nd": DIGIT, "Nl": NUMBER, "No": NUMBER, "Cc": CONTROL}
    by_major = {"M": MARK, "P": PUNCT, "S": SYMBOL}
    return by_category.get(category, by_major.get(category[0], OTHER))


@lru_cache(maxsize=1)
def class_table() -> U8:
    """Class of every code point.

    Returns:
        uint8 of shape ``(0x110000,)``. 〇 and ideographic iteration marks count as Han, as their names do
        not start with CJK.

    """
    table = np.zeros(CODE_POINTS, np.uint8)
    category = unicodedata.category
    # Above the Tertiary Ideographic Plane only variation selectors and private use are assigned.
    begin = 0
    for first, end, whole in (*_WHOLE, (0x40000, 0x40000, OTHER)):
        chars = map(chr, range(begin, first))
        table[begin:first] = [_class_of(c) if category(c) != "Cn" else OTHER for c in chars]
        table[first:end] = whole
        begin = end
    table[[0x3005, 0x3007, 0x303B]] = HAN
    table[0xE0100:0xE01F0] = MARK
    table.flags.writeable = False
    return table


@lru_cache(maxsize=4)
def fold_table(compatibility: bool = True, lower: bool = True) -> U32:
    """What each code point of the basic plane becomes in the rules' view.

    Args:
        compatibility: apply NFKC (full-width forms, ligatures); code points with several results stay.
        lower: lower-case.

    Returns:
        uint32 of shape ``(0x10000,)``; code points above are left as they are.

    """
    table = np.arange(0x10000, dtype=np.uint32)
    for cp in range(0x10000):
        if 0x3400 <= cp <= 0x9FFF or 0xAC00 <= cp <= 0xF8FF:
            continue
        folded = chr(cp)
        if compatibility:
            folded = unicodedata.normalize("NFKC", folded)
        if lower:
            folded = folded.lower()
        if len(folded) == 1:
            table[cp] = ord(folded)
    table.flags.writeable = False
    return table
