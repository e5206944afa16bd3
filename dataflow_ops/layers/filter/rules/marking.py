"""Shares of text that marker phrases mark."""

from __future__ import annotations

from dataflow_ops.kernels.arrow import F64
from dataflow_ops.layers.filter.markers import CLASSES
from dataflow_ops.layers.filter.measures import Measures


def captcha_share(view: Measures) -> F64:
    """Share of characters in sentences with a phrase of a challenge page."""
    return view.marked(CLASSES.index("captcha"))


def error_page_share(view: Measures) -> F64:
    """Share of characters in sentences with a phrase of an error page."""
    return view.marked(CLASSES.index("error_page"))


def advertising_share(view: Measures) -> F64:
    """Share of characters in sentences with an advertising phrase."""
    return view.marked(CLASSES.index("advertising"))


def bad_word_share(view: Measures) -> F64:
    """Share of characters in bad words."""
    return view.marked(CLASSES.index("bad_words"))
