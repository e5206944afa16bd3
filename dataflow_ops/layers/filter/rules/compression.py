"""Statistics from compressing: zlib ratios of the whole and of windows, and loops found on the way."""

from __future__ import annotations

import numpy as np

from dataflow_ops.kernels.arrow import F64
from dataflow_ops.kernels.compress import floor_of, whole_floor
from dataflow_ops.layers.filter.measures import Measures, ratio


def zlib_ratio(view: Measures) -> F64:
    """Compressed ÷ plain bytes at zlib level 1."""
    return view.zlib


def zlib_floor(view: Measures) -> F64:
    """What ``zlib_ratio`` does not fall below."""
    whole, _, _, matches, far = view.estimate.T
    return whole_floor(whole, matches, far, _entropy_share(view))


def zlib_window(view: Measures) -> F64:
    """The lowest zlib level-1 ratio among the four most repetitive windows of 2,048 bytes."""
    return view.window_zlib


def zlib_window_floor(view: Measures) -> F64:
    """What ``zlib_window`` does not fall below."""
    return floor_of(view.estimate[:, 1], _entropy_share(view))


def loop_share(view: Measures) -> F64:
    """Share of bytes in stretches that hold the same 8 bytes or more at least five times in a row."""
    found: F64 = view.estimate[:, 2]
    return found


def _entropy_share(view: Measures) -> F64:
    bits: F64 = (8 * view.size).astype(np.float64)
    return ratio(view.entropy * view.chars, bits, empty=1.0)
