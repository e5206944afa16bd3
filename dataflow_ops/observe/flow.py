"""The steps in the order in which documents meet them, and the layer of each."""

from __future__ import annotations

STEPS: dict[str, str] = {
    "discover": "ingest",
    "fetch": "ingest",
    "parse": "parse",
    "filter": "filter",
    "sign": "dedup",
    "supersede": "dedup",
    "exact": "dedup",
    "match": "dedup",
    "gather": "dedup",
    "recall": "dedup",
    "verify": "dedup",
    "unite": "dedup",
    "collect": "dedup",
    "confirm": "dedup",
    "score": "score",
    "label": "mix",
    "plan": "mix",
    "scatter": "export",
    "export": "export",
    "publish": "export",
}
"""Step -> layer, in flow order."""

LAYERS: tuple[str, ...] = tuple(dict.fromkeys(STEPS.values()))
"""Layers in flow order."""

DEAD_STEPS: tuple[str, ...] = ("discover", "fetch", "parse", "filter", "sign", "score", "label")
"""Steps that may write dead letters."""


def order(step: str) -> tuple[int, str]:
    """Sort key: flow order, unknown steps last by name."""
    names = list(STEPS)
    return (names.index(step) if step in STEPS else len(names), step)
