"""Statistics of words, sentences and lines."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from dataflow_ops.kernels import textstats as ts
from dataflow_ops.kernels.arrow import F64
from dataflow_ops.layers.filter.measures import Measures, ratio


def stuffing(view: Measures) -> F64:
    """Share that the most frequent content words have of all; :func:`textstats.measure` says how."""
    return view.word(ts.STUFFING)


def function_word_share(view: Measures) -> F64:
    """Share of units that are function words of the language that has most of them."""
    return view.word(ts.FUNCTION_SHARE)


def function_word_spread(view: Measures) -> F64:
    """Effective number of different function words: two to the power of their entropy."""
    return view.word(ts.FUNCTION_SPREAD)


def words(view: Measures) -> F64:
    """Units: words, single Han and kana characters."""
    return view.word(ts.UNITS)


def avg_sentence_length(view: Measures) -> F64:
    """Characters per sentence; a sentence ends at a full stop of any script or at a line break."""
    return ratio(view.line("chars"), view.word(ts.SEGMENTS))


def sentences(view: Measures) -> F64:
    """Sentences that hold at least one word."""
    return view.word(ts.SEGMENTS)


def mean_word_length(view: Measures) -> F64:
    """Characters per unit."""
    return ratio(view.word(ts.CHARS), view.word(ts.UNITS))


def alphabetic_words(view: Measures) -> F64:
    """Share of units that hold a letter."""
    return ratio(view.word(ts.LETTERED), view.word(ts.UNITS))


def gopher_stop_words_present(view: Measures) -> F64:
    """How many of the, be, to, of, and, that, have, with occur."""
    return view.word(ts.TARGETS)


def symbols_per_word(view: Measures) -> F64:
    """Hash signs, or ellipses, per word, whichever are more."""
    texts = view.texts()
    hashes = pc.count_substring(texts, "#").to_numpy()
    ellipses = pc.count_substring_regex(texts, r"\.\.\.|…").to_numpy()
    return ratio(np.maximum(hashes, ellipses).astype(np.float64), view.word(ts.UNITS))


def ended_lines(view: Measures) -> F64:
    """Share of lines that end in a sentence end."""
    return ratio(view.line("ended"), view.line("lines"))


def ellipsis_lines(view: Measures) -> F64:
    """Share of lines that end in an ellipsis."""
    return ratio(view.line("ellipsis"), view.line("lines"))


def bullet_lines(view: Measures) -> F64:
    """Share of lines that begin with a bullet."""
    return ratio(view.line("bullet"), view.line("lines"))


def short_lines(view: Measures) -> F64:
    """Share of lines under 30 characters."""
    return ratio(view.line("short"), view.line("lines"))


def brace_lines(view: Measures) -> F64:
    """Lines that hold an opening curly bracket."""
    return view.line("brace")


def lorem_ipsum(view: Measures) -> F64:
    """Occurrences of "lorem ipsum", whatever the case."""
    found = pc.count_substring(view.texts(), "lorem ipsum", ignore_case=True)
    return np.asarray(found.to_numpy(), np.float64)
