"""Statistics of repeated n-grams; units are words and single Han characters."""

from __future__ import annotations

from dataflow_ops.kernels.arrow import F64
from dataflow_ops.layers.filter.measures import Measures, ratio


def top_2gram(view: Measures) -> F64:
    """``min(1, 2 × count ÷ units)`` of the most frequent 2-gram."""
    return view.top_ngram(2)


def top_3gram(view: Measures) -> F64:
    """``min(1, 3 × count ÷ units)`` of the most frequent 3-gram."""
    return view.top_ngram(3)


def top_4gram(view: Measures) -> F64:
    """``min(1, 4 × count ÷ units)`` of the most frequent 4-gram."""
    return view.top_ngram(4)


def repeated_5grams(view: Measures) -> F64:
    """Share of characters in 5-grams that stood before."""
    return view.repeated_ngrams(5)


def repeated_6grams(view: Measures) -> F64:
    """Share of characters in 6-grams that stood before."""
    return view.repeated_ngrams(6)


def repeated_7grams(view: Measures) -> F64:
    """Share of characters in 7-grams that stood before."""
    return view.repeated_ngrams(7)


def repeated_8grams(view: Measures) -> F64:
    """Share of characters in 8-grams that stood before."""
    return view.repeated_ngrams(8)


def repeated_9grams(view: Measures) -> F64:
    """Share of characters in 9-grams that stood before."""
    return view.repeated_ngrams(9)


def repeated_10grams(view: Measures) -> F64:
    """Share of characters in 10-grams that stood before."""
    return view.repeated_ngrams(10)


def repeated_lines(view: Measures) -> F64:
    """Share of lines equal to an earlier line."""
    return ratio(view.line("repeated"), view.line("lines"))


def repeated_line_chars(view: Measures) -> F64:
    """Share of characters in lines equal to an earlier line."""
    return ratio(view.line("repeated_chars"), view.line("chars"))


def repeated_paragraphs(view: Measures) -> F64:
    """Share of paragraphs equal to an earlier one."""
    found: F64 = view.paragraphs[:, 0]
    return found


def repeated_paragraph_bytes(view: Measures) -> F64:
    """Share of bytes in paragraphs equal to an earlier one."""
    found: F64 = view.paragraphs[:, 1]
    return found
