"""What kind of text a document is, and its dominant script."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dataflow_ops.kernels import unicode_classes as uc
from dataflow_ops.kernels.arrow import I64
from dataflow_ops.layers.filter.measures import Measures, ratio
from dataflow_ops.layers.filter.rule import KINDS

VERSION = 2

_PROSE, _CODE, _TABLE, _DIALOGUE = range(len(KINDS))
_MIN_LINES = 5  # fewer lines say nothing about layout
_CODE_LINES = 0.40
_CELL_LINES = 0.60
_JAPANESE_KANA = 0.20  # of Han: Japanese prose has far more kana, Chinese none

SCRIPT_NAMES = (*uc.SCRIPTS.values(), "none")


@dataclass(frozen=True, slots=True)
class Weight:
    """What one mark of :mod:`codemarks` adds to the score of code.

    Attributes:
        mark: the column.
        weight: ten-thousandths of a logit for each mark in a thousand characters or lines.
        most: marks in a thousand that count, so that a list of one kind of line is no code by that alone.

    """

    mark: str
    weight: int
    most: int = 1000


# Logistic regression, fitted by bench/code_kind.py on half of the 123,900 clean documents of the corpus of
# public packages and on half of 2,600 pieces of source files in 26 languages, which together weigh as much as
# the corpus's Python. Documentation made of listings was left out of the prose, docstrings out of the code.
# Which files a machine has moves the weights of mixed, attributes and quotes, and verdicts hardly.
# The threshold lies where 0.3 logits speak for prose: code judged as prose is lost, prose as code stays.
PER_CHARACTER = (
    Weight("gaps", -416),
    Weight("mixed", 140, 120),
    Weight("attributes", 119, 80),
    Weight("underscores", 46, 120),
    Weight("assignments", 409, 100),
    Weight("brackets", 75),
    Weight("quotes", 256, 120),
    Weight("shouted", 219, 150),
)
PER_LINE = (
    Weight("indented", 30),
    Weight("statements", 49, 500),
    Weight("connectives", 176, 250),
    Weight("comments", 129, 400),
    Weight("closed", 30),
    Weight("open", 26, 600),
    Weight("stopped", -21),
)
BIAS = -31_142
_WORDS = 6  # letters of a script without blanks that stand for one gap, as words of Latin text do
_FEW_CHARACTERS, _FEW_LINES = 20, 1  # added to what shares are taken of, so that a short text proves less
_HARDLY = -35_000  # lists whose lines end in semicolons score lower


def kinds(view: Measures, hints: pa.ChunkedArray) -> I64:
    """Kind of text of each document.

    The parser's hint decides. Without one: *code* where :func:`code_score` is above 0, or where at least 40 %
    of five or more lines end in ``;``, ``{``, ``}`` or ``):`` and the score does not deny it · *table* where
    at least 60 % of five or more lines hold two tabs or bars · else *prose*.

    Returns:
        Codes into :data:`rule.KINDS`, int64.

    """
    lines = view.line("lines")
    enough = lines >= _MIN_LINES
    score = code_score(view)
    found = np.full(len(view), _PROSE, np.int64)
    found[enough & (ratio(view.line("cells"), lines) >= _CELL_LINES)] = _TABLE
    found[enough & (ratio(view.line("code"), lines) >= _CODE_LINES) & (score > _HARDLY)] = _CODE
    found[score > 0] = _CODE
    hint = np.asarray(hints.fill_null("").to_pylist(), dtype=object)
    found[hint == "code"] = _CODE
    found[hint == "dialogue"] = _DIALOGUE
    return found


def code_score(view: Measures) -> I64:
    """How much a text looks like program code: above 0, more than like prose.

    Integers throughout, so that every machine decides alike.

    Returns:
        Ten-thousandths of a logit, int64 of shape ``(len(view),)``.

    """
    score = np.full(len(view), BIAS, np.int64)
    for w in (*PER_CHARACTER, *PER_LINE):
        score += w.weight * shares(view, w)
    return score


def shares(view: Measures, w: Weight) -> I64:
    """Marks in a thousand characters other than white space, or in a thousand lines; at most ``w.most``."""
    part = view.code_mark(w.mark)
    if w.mark == "gaps":
        part = part + view.of_classes(uc.HAN, uc.KANA, uc.THAI).astype(np.int64) // _WORDS
    if w in PER_LINE:
        whole = view.code_mark("lines") + _FEW_LINES
    else:
        whole = view.visible.astype(np.int64) + _FEW_CHARACTERS
    found: I64 = np.minimum(part * 1000 // whole, w.most)
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
