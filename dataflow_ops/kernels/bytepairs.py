"""Token counts without a tokenizer: a linear model over counts of neighbouring byte classes.

One pass over the UTF-8 bytes counts pairs of classes (letter after space, digit after digit, Han lead
byte, …); a byte-pair tokenizer's tokens are close to a weighted sum of them, because its pre-tokenizer
cuts at exactly these borders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from dataflow_ops.kernels.arrow import I64, U8, ix, string_buffers
from dataflow_ops.kernels.counts import frozen

(
    _REST,
    _LOWER,
    _UPPER,
    _DIGIT,
    _SPACE,
    _BREAK,
    _MARK,
    _HAN,
    _E3,
    _HANGUL,
    _LATIN,
    _TWO,
    _OTHER,
    _X80,
    _FULL,
) = range(15)
_CLASSES = 16  # a power of two, so that the index of a pair is a shift and an or
_LETTER = (_LOWER, _UPPER)

FEATURES: dict[str, Callable[[int, int], bool]] = {
    "word starts": lambda a, b: b in _LETTER and a not in _LETTER,
    "ASCII letters": lambda a, b: b in _LETTER,
    "lower to upper case": lambda a, b: a == _LOWER and b == _UPPER,
    "digits": lambda a, b: b == _DIGIT,
    "letters after digits": lambda a, b: a == _DIGIT and b in _LETTER,
    "further spaces of a run": lambda a, b: a == b == _SPACE,
    "line breaks and tabs": lambda a, b: b == _BREAK,
    "starts of punctuation": lambda a, b: b == _MARK and a != _MARK,
    "further punctuation": lambda a, b: a == b == _MARK,
    "Han": lambda a, b: b == _HAN,
    "CJK and full-width punctuation": lambda a, b: b == _FULL or (a == _E3 and b == _X80),
    "kana": lambda a, b: a == _E3 and b == _REST,
    "Hangul": lambda a, b: b == _HANGUL,
    "Latin letters with accents": lambda a, b: b == _LATIN,
    "other two-byte characters": lambda a, b: b == _TWO,
    "other characters": lambda a, b: b == _OTHER,
}
"""What is counted: name -> whether a byte of class ``b`` after one of class ``a`` belongs to it."""


def _class_table() -> U8:
    """Class of each byte value: ASCII by kind, lead bytes by the block they open, the rest 0."""
    table = np.zeros(256, np.uint8)
    for byte in range(128):
        char = chr(byte)
        if char.islower():
            table[byte] = _LOWER
        elif char.isupper():
            table[byte] = _UPPER
        elif char.isdigit():
            table[byte] = _DIGIT
        elif char == " ":
            table[byte] = _SPACE
        elif byte < 32 or byte == 127:
            table[byte] = _BREAK
        else:
            table[byte] = _MARK
    table[0x80] = _X80  # after 0xE3: U+3000 to U+303F, CJK punctuation and no kana
    table[0xC0:0xCB] = _LATIN  # up to U+02BF
    table[0xCB:0xE0] = _TWO
    table[0xE0:0xF8] = _OTHER
    table[0xE4:0xEA] = _HAN  # U+4000 to U+9FFF
    table[0xE3] = _E3  # U+3000 to U+3FFF
    table[0xEF] = _FULL  # U+F000 to U+FFFF
    table[0xEA:0xEE] = _HANGUL  # U+A000 to U+DFFF
    return table


_TABLE = _class_table()


@njit(cache=True, nogil=True)
def _weigh(data, offsets, table, weights, out):  # type: ignore[no-untyped-def]
    """Sum ``weights[class before << 4 | class]`` over the bytes of every row into ``out``."""
    # Four tables in turn: incrementing one slot twice in a row would wait for the store. 32 bits serve texts
    # of 4 GB at least, and halve what is cleared for each.
    counts = np.zeros((4, 256), np.uint32)
    for i in range(len(offsets) - 1):
        counts[:] = 0
        before = np.uint32(5)  # a text starts as if after a line break
        j, end = offsets[i], offsets[i + 1]
        while j + 4 <= end:
            a, b = np.uint32(table[data[ix(j)]]), np.uint32(table[data[ix(j + 1)]])
            c, d = np.uint32(table[data[ix(j + 2)]]), np.uint32(table[data[ix(j + 3)]])
            counts[ix(0), (before << np.uint32(4)) | a] += np.uint32(1)
            counts[ix(1), (a << np.uint32(4)) | b] += np.uint32(1)
            counts[ix(2), (b << np.uint32(4)) | c] += np.uint32(1)
            counts[ix(3), (c << np.uint32(4)) | d] += np.uint32(1)
            before = d
            j += 4
        while j < end:
            a = np.uint32(table[data[ix(j)]])
            counts[ix(0), (before << np.uint32(4)) | a] += np.uint32(1)
            before = a
            j += 1
        total = np.int64(0)
        for k in range(256):
            pairs = counts[0, ix(k)] + counts[1, ix(k)] + counts[2, ix(k)] + counts[3, ix(k)]
            total += weights[ix(k)] * np.int64(pairs)
        out[i] = total


def pair_weights(per_feature: Mapping[str, int]) -> I64:
    """Expand weights by feature to weights by pair of classes: int64 of shape ``(256,)``."""
    weights = np.zeros(_CLASSES * _CLASSES, np.int64)
    for name, value in per_feature.items():
        belongs = FEATURES[name]
        for a in range(_CLASSES):
            for b in range(_CLASSES):
                weights[a * _CLASSES + b] += value * belongs(a, b)
    return weights


def weigh(texts: Any, weights: I64) -> I64:
    """Weighted pair counts of every text.

    Args:
        texts: (large_)string Array or ChunkedArray of n rows; nulls read as empty.
        weights: int64 of shape ``(256,)`` from :func:`pair_weights`.

    Returns:
        int64 of shape ``(n,)``. About 1.5 µs for a text of 3.8 KB.

    """
    data, offsets = string_buffers(texts)
    out = np.zeros(len(offsets) - 1, np.int64)
    _weigh(frozen(data), frozen(offsets), _TABLE, weights, out)
    return out


def features(texts: Any) -> npt.NDArray[np.int64]:
    """Each feature by itself, for fitting: int64 of shape ``(n, len(FEATURES))``."""
    return np.stack([weigh(texts, pair_weights({name: 1})) for name in FEATURES], axis=1)


def warm() -> None:
    """Compile the kernel of this module."""
    weigh(pa.array(["a"], pa.large_string()), pair_weights({}))
