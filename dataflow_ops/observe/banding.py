"""The S-curve of MinHash banding, and what to turn when too much or too little is found."""

from __future__ import annotations

from typing import Any

_ROWS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20)


def match_probability(jaccard: float, bands: int, rows: int) -> float:
    """P(at least one band agrees) = 1 − (1 − s^r)^b (Mining of Massive Datasets, 3.4.2)."""
    return float(1.0 - (1.0 - jaccard**rows) ** bands)


def threshold(bands: int, rows: int) -> float:
    """Where the curve is steepest, about: (1/b)^(1/r), same source."""
    return float((1.0 / bands) ** (1.0 / rows))


def s_curve(bands: int, rows: int, signature: int) -> dict[str, Any]:
    """The curve with its threshold and the neighbouring settings.

    Returns:
        ``{"bands", "rows", "threshold", "points": [[s, p], …], "stricter", "looser"}``; the last two are
        ``{"bands", "rows", "threshold"}`` within the signature's size, or ``None`` where there are none.

    """
    here = threshold(bands, rows)
    pairs = [(signature // r, r) for r in _ROWS if signature // r >= 1]
    looser = [p for p in pairs if threshold(*p) < here - 0.03]
    stricter = [p for p in pairs if threshold(*p) > here + 0.03]
    return {
        "bands": bands,
        "rows": rows,
        "threshold": round(here, 4),
        "points": [[i / 50, round(match_probability(i / 50, bands, rows), 5)] for i in range(51)],
        "looser": _pair(max(looser, key=lambda p: threshold(*p), default=None)),
        "stricter": _pair(min(stricter, key=lambda p: threshold(*p), default=None)),
    }


def _pair(pair: tuple[int, int] | None) -> dict[str, Any] | None:
    if pair is None:
        return None
    return {"bands": pair[0], "rows": pair[1], "threshold": round(threshold(*pair), 4)}
