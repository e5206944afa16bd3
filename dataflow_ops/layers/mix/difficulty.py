"""How hard a text is to read: easy, medium or hard, from what can be counted in it.

A coarse label for curricula, not a judgement of worth. Three measures, by kind of text:

* alphabetic scripts: the Automated Readability Index (Smith and Senter 1967),
  ``4.71 · letters/words + 0.5 · words/sentences − 21.43``, about the school grade that reads the text
  with ease; below 8 easy, from 13 (beyond school) hard;
* Han: mean characters between sentence ends; below 20 easy, from 40 hard;
* code: mean indentation of its lines in columns; below 2 easy, from 5 hard.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dataflow_ops.kernels.arrow import I64, U8, string_buffers

VERSION = 1
LEVELS = ("easy", "medium", "hard")

_ALPHABETIC = (8.0, 13.0)
_HAN = (20.0, 40.0)
_CODE = (2.0, 5.0)

_PREFIX = 4096
"""Bytes looked at: enough for a mean, and the same cost for every document."""


@njit(cache=True, nogil=True)
def _count(data: U8, offsets: I64, limit: int, out: I64) -> None:  # pragma: no cover - compiled
    """Letters, words, sentence ends, Han characters, lines with text, columns of indentation."""
    for i in range(len(offsets) - 1):
        letters = words = ends = han = lines = indent = 0
        in_word = False
        in_indent = True
        column = 0
        ended = True  # so that "..." and "?!" end one sentence
        for j in range(offsets[i], min(offsets[i + 1], offsets[i] + limit)):
            c = data[j]
            if c == 10:
                in_indent, column, in_word = True, 0, False
                continue
            if in_indent:
                if c == 32 or c == 9:
                    column += 1 if c == 32 else 4
                    continue
                in_indent = False
                lines += 1
                indent += column
            if (97 <= c <= 122) or (65 <= c <= 90) or (48 <= c <= 57) or (0xC3 <= c <= 0xDF):
                letters += 1
                words += not in_word
                in_word, ended = True, False
            elif 0x80 <= c <= 0xBF:
                # 。 is E3 80 82, ！ EF BC 81, ？ EF BC 9F
                if j >= 2 and not ended:
                    a, b = data[j - 2], data[j - 1]
                    if (a == 0xE3 and b == 0x80 and c == 0x82) or (
                        a == 0xEF and b == 0xBC and (c == 0x81 or c == 0x9F)
                    ):
                        ends += 1
                        ended = True
            elif 0xE4 <= c <= 0xE9:
                han += 1
                in_word, ended = False, False
            else:
                in_word = False
                if (c == 46 or c == 33 or c == 63) and not ended:
                    ends += 1
                    ended = True
        out[i, 0], out[i, 1], out[i, 2] = letters, words, ends
        out[i, 3], out[i, 4], out[i, 5] = han, lines, indent


def difficulty(
    texts: Any, kinds: npt.NDArray[np.object_], scripts: npt.NDArray[np.object_]
) -> npt.NDArray[np.object_]:
    """Level of each text, from its first 4 KB.

    Args:
        texts: (large_)string Array or ChunkedArray of n rows.
        kinds: kind of each text (``code`` is measured by indentation); shape (n,).
        scripts: dominant script of each (``han`` is measured by sentence length); shape (n,).

    Returns:
        Object array of ``easy``, ``medium``, ``hard``; shape (n,). Texts without words are ``easy``.

    """
    data, offsets = string_buffers(texts)
    counts = np.zeros((len(offsets) - 1, 6), np.int64)
    _count(data, offsets, _PREFIX, counts)
    letters, words, ends, han, lines, indent = counts.T.astype(np.float64)
    sentences = np.maximum(ends, 1)
    index = np.where(words > 0, 4.71 * letters / np.maximum(words, 1) + 0.5 * words / sentences - 21.43, 0.0)
    is_code, is_han = kinds == "code", scripts == "han"
    value = np.where(is_code, indent / np.maximum(lines, 1), np.where(is_han, han / sentences, index))
    low = np.where(is_code, _CODE[0], np.where(is_han, _HAN[0], _ALPHABETIC[0]))
    high = np.where(is_code, _CODE[1], np.where(is_han, _HAN[1], _ALPHABETIC[1]))
    levels: npt.NDArray[np.object_] = np.array(LEVELS, dtype=object)[
        (value >= low).astype(int) + (value >= high)
    ]
    return levels
