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

from dataflow_ops.kernels.arrow import string_buffers
from dataflow_ops.kernels.readability import count_indentation, count_reading

VERSION = 1
LEVELS = ("easy", "medium", "hard")

_ALPHABETIC = (8.0, 13.0)
_HAN = (20.0, 40.0)
_CODE = (2.0, 5.0)

_PREFIX = 4096
"""Bytes looked at: enough for a mean, and the same cost for every document."""


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
    is_code, is_han = kinds == "code", scripts == "han"
    value = np.zeros(len(kinds), np.float64)
    code, prose = np.flatnonzero(is_code), np.flatnonzero(~is_code)
    lines, columns = count_indentation(data, offsets, code, _PREFIX).T.astype(np.float64)
    value[code] = columns / np.maximum(lines, 1)
    letters, words, ends, han = count_reading(data, offsets, prose, _PREFIX).T.astype(np.float64)
    sentences = np.maximum(ends, 1)
    index = np.where(words > 0, 4.71 * letters / np.maximum(words, 1) + 0.5 * words / sentences - 21.43, 0.0)
    value[prose] = np.where(is_han[prose], han / sentences, index)
    low = np.where(is_code, _CODE[0], np.where(is_han, _HAN[0], _ALPHABETIC[0]))
    high = np.where(is_code, _CODE[1], np.where(is_han, _HAN[1], _ALPHABETIC[1]))
    levels: npt.NDArray[np.object_] = np.array(LEVELS, dtype=object)[
        (value >= low).astype(int) + (value >= high)
    ]
    return levels
