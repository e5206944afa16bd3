"""What kind of text a document is, and its dominant script."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dataflow_ops.kernels import unicode_classes as uc
from dataflow_ops.kernels.arrow import I64
from dataflow_ops.layers.filter.measures import Measures, ratio
from dataflow_ops.layers.filter.rule import KINDS

VERSION = 1

_PROSE, _CODE, _TABLE, _DIALOGUE = range(len(KINDS))
_MIN_LINES = 5  # fewer lines say nothing about layout
_CODE_LINES = 0.40
_CELL_LINES = 0.60
_JAPANESE_KANA = 0.20  # of Han: Japanese prose has far more kana, Chinese none

SCRIPT_NAMES = (*uc.SCRIPTS.values(), "none")


def kinds(view: Measures, hints: pa.ChunkedArray) -> I64:
    """Kind of text of each document.

    The parser's hint decides. Without one: *code* where at least 40 % of five or more lines end in ``;``,
    ``{``, ``}`` or ``):`` · *table* where at least 60 % of them hold two tabs or bars · else *prose*.

    Returns:
        Codes into :data:`rule.KINDS`, int64.

    """
    lines = view.line("lines")
    enough = lines >= _MIN_LINES
    found = np.full(len(view), _PROSE, np.int64)
    found[enough & (ratio(view.line("cells"), lines) >= _CELL_LINES)] = _TABLE
    found[enough & (ratio(view.line("code"), lines) >= _CODE_LINES)] = _CODE
    hint = np.asarray(hints.fill_null("").to_pylist(), dtype=object)
    found[hint == "code"] = _CODE
    found[hint == "dialogue"] = _DIALOGUE
    return found


def scripts(view: Measures) -> I64:
    """Script with most letters, as an index into :data:`SCRIPT_NAMES`; ``none`` without letters.

    Han with a fifth as much kana or more is counted as kana: Japanese.
    """
    letters = view.counts[:, list(uc.SCRIPTS)].copy()
    classes = list(uc.SCRIPTS)
    han, kana = classes.index(uc.HAN), classes.index(uc.KANA)
    japanese = letters[:, kana] > _JAPANESE_KANA * letters[:, han]
    letters[japanese, kana] += letters[japanese, han]
    letters[japanese, han] = 0
    best = letters.argmax(axis=1)
    best[letters.sum(axis=1) == 0] = len(classes)
    found: I64 = best.astype(np.int64)
    return found
