"""Statistics from counts of characters: length, control, replacement and meaningful characters, scripts."""

from __future__ import annotations

import numpy as np

from dataflow_ops.kernels import unicode_classes as uc
from dataflow_ops.kernels.arrow import F64
from dataflow_ops.layers.filter.measures import Measures, ratio


def chars(view: Measures) -> F64:
    """Characters of the text."""
    return view.chars


def control_ratio(view: Measures) -> F64:
    """Control characters ÷ characters, counted before parse removed them.

    Tab, line feed and carriage return are white space. What still stands in the text counts too, where parse
    was told to leave it; a missing count gives NaN, which passes nowhere.
    """
    before = ratio(view.column("control_chars"), view.column("raw_chars"))
    unknown = np.isnan(view.column("control_chars")) | np.isnan(view.column("raw_chars"))
    worse = np.maximum(before, ratio(view.of_classes(uc.CONTROL), view.chars))
    return np.where(unknown, np.nan, worse)


def replacement_ratio(view: Measures) -> F64:
    """U+FFFD ÷ characters: what a wrong decoder left behind."""
    return ratio(view.of_classes(uc.REPLACEMENT), view.chars)


def meaningful_ratio(view: Measures) -> F64:
    """Letters, digits and their marks ÷ characters other than white space; 0 for white space alone."""
    return ratio(view.meaningful, view.visible)


def digit_ratio(view: Measures) -> F64:
    """Digits ÷ meaningful characters."""
    return ratio(view.of_classes(uc.DIGIT, uc.NUMBER), view.meaningful)


def latin_ratio(view: Measures) -> F64:
    """Latin letters ÷ letters."""
    return ratio(view.of_classes(uc.LATIN), view.letters)


def han_ratio(view: Measures) -> F64:
    """Han characters ÷ letters."""
    return ratio(view.of_classes(uc.HAN), view.letters)


def han_mixture(view: Measures) -> F64:
    """Han characters ÷ letters where any Han occurs, 1 where none does: how much a Chinese text is mixed."""
    han = view.of_classes(uc.HAN)
    return np.where(han > 0, ratio(han, view.letters), 1.0)


def entropy(view: Measures) -> F64:
    """Shannon entropy of the characters, in bits per character."""
    return view.entropy
