"""Edited copies of documents, made to see how many of them dedup finds.

Each copy follows from the text, the document's id and the kind of edit alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint32]
"""Code points of a text."""
Edit = Callable[[Codes, np.random.Generator], Codes]

_TITLE = 120
"""Characters up to which a first line is taken for a title."""
_LONGEST = 9
"""Characters of a run that is edited: one to so many, five in the mean."""
_REPLACED, _LEFT_OUT, _ADDED = range(3)
_FULL_WIDTH = 0xFEE0  # from ! … ~ to their full-width forms
_CASE = 0x20  # between A … Z and a … z


def copy_of(text: str, doc_id: bytes, kind: str) -> str:
    """One edited copy.

    Args:
        text: as stored.
        doc_id: seeds what is drawn.
        kind: a name in :data:`EDITS`.

    """
    seed = int.from_bytes(doc_id, "big")
    draw = np.random.default_rng([seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF, list(EDITS).index(kind)])
    edited = EDITS[kind](np.frombuffer(text.encode("utf-32-le"), np.uint32), draw)
    return edited.astype("<u4").tobytes().decode("utf-32-le")


def _words(share: float) -> Edit:
    """Edits a share of the characters in runs of one to nine, as words are.

    A third each is replaced, left out, or gets as many new ones before it. White space is neither edited nor
    counted: key texts have none. New characters are drawn from the text.
    """

    def edit(codes: Codes, draw: np.random.Generator) -> Codes:
        inked = np.flatnonzero(~_blank(codes))
        if not inked.size:
            return codes
        total = max(1, round(share * inked.size))
        lengths = draw.integers(1, _LONGEST + 1, total)
        lengths = lengths[: int(np.searchsorted(np.cumsum(lengths), total)) + 1]
        lengths[-1] -= lengths.sum() - total
        before = np.cumsum(lengths) - lengths
        starts = np.sort(draw.integers(0, inked.size - total + 1, lengths.size)) + before
        inside = np.repeat(starts - before, lengths) + np.arange(total)
        new, how = codes[draw.choice(inked, total)], np.repeat(draw.integers(0, 3, lengths.size), lengths)
        out, times = codes.copy(), np.ones(codes.size, np.int64)
        out[inked[inside[how == _REPLACED]]] = new[how == _REPLACED]
        times[inked[inside[how == _LEFT_OUT]]] = 0
        added = np.repeat(inked[starts], lengths)[how == _ADDED]
        np.add.at(times, added, 1)
        first = np.cumsum(times) - times
        out = np.repeat(out, times)
        nth = np.arange(total) - np.repeat(before, lengths)
        out[first[added] + nth[how == _ADDED]] = new[how == _ADDED]
        return out

    return edit


def _block(share: float) -> Edit:
    """Replaces one stretch of characters by the same number drawn from the text in no order."""

    def edit(codes: Codes, draw: np.random.Generator) -> Codes:
        inked = np.flatnonzero(~_blank(codes))
        if not inked.size:
            return codes
        count = max(1, round(share * inked.size))
        start = int(draw.integers(0, inked.size - count + 1))
        out = codes.copy()
        out[inked[start : start + count]] = codes[draw.choice(inked, count)]
        return out

    return edit


def _title(codes: Codes, draw: np.random.Generator) -> Codes:
    """Another first line: in place of a short one, else before a text that has none."""
    title = f"Document {int(draw.integers(0, 1 << 32)):08x}, revised"
    new = np.frombuffer(f"{title}\n".encode("utf-32-le"), np.uint32)
    ends = np.flatnonzero(codes[: _TITLE + 1] == ord("\n"))
    rest = codes[int(ends[0]) + 1 :] if ends.size else codes
    return np.concatenate([new, rest])


def _full_width(codes: Codes, draw: np.random.Generator) -> Codes:
    """Visible ASCII characters become full-width ones."""
    return np.where((codes > 0x20) & (codes < 0x7F), codes + _FULL_WIDTH, codes).astype(np.uint32)


def _upper_case(codes: Codes, draw: np.random.Generator) -> Codes:
    """Small ASCII letters become capitals."""
    small = (codes >= ord("a")) & (codes <= ord("z"))
    return np.where(small, codes - _CASE, codes).astype(np.uint32)


def _blank(codes: Codes) -> npt.NDArray[np.bool_]:
    blank: npt.NDArray[np.bool_] = _IS_BLANK[np.minimum(codes, _IS_BLANK.size - 1)]
    return blank


_IS_BLANK = np.array([chr(c).isspace() for c in range(0x3002)])
"""By code point; above the ideographic space there is no white space."""

EDITS: Mapping[str, Edit] = {
    "edit 1 %": _words(0.01),
    "edit 2 %": _words(0.02),
    "edit 5 %": _words(0.05),
    "edit 10 %": _words(0.10),
    "block 5 %": _block(0.05),
    "block 10 %": _block(0.10),
    "title": _title,
    "width": _full_width,
    "case": _upper_case,
}
"""Kinds of edits, by the name that tables show."""
SMALL = ("edit 1 %", "edit 2 %", "edit 5 %")
"""Kinds by which settings are recommended."""
