"""The six layers as people see them, and what goes into and out of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dataflow_ops.pipeline.flow import STEP_NAMES, steps_until
from dataflow_ops.state.totals import StepTotals

SHOWN: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ingest", ("discover", "fetch")),
    ("parse", ("parse",)),
    ("filter", ("filter",)),
    ("dedup", ("sign", "exact", "match", "gather", "verify", "unite", "collect", "confirm")),
    ("mix", ("score", "label", "plan")),
    ("export", ("scatter", "export")),
)
"""``(layer, steps)``; ``score`` is shown with the mix."""

LAYER_OF: dict[str, str] = {step: layer for layer, steps in SHOWN for step in steps}
ENTRY: dict[str, str] = {
    "ingest": "fetch",
    "parse": "parse",
    "filter": "filter",
    "dedup": "sign",
    "mix": "score",
    "export": "scatter",
}
"""Layer → the step that its documents meet first."""
WHOLE = ("dedup", "mix")
"""Layers of which nobody knows what they keep before their last step is done."""

Totals = Mapping[str, StepTotals]


@dataclass(frozen=True, slots=True)
class Through:
    """Records of one layer. ``None``: not known yet."""

    came: int | None
    kept: int | None

    @property
    def removed(self) -> int | None:
        """What did not go on."""
        return None if self.came is None or self.kept is None else self.came - self.kept

    @property
    def removed_share(self) -> float | None:
        """``removed`` of what came, 0 to 1; ``None`` where nothing came."""
        return None if not self.came or self.removed is None else self.removed / self.came


def steps_of(layer: str, until: str | None = None) -> tuple[str, ...]:
    """Steps of a shown layer, as far as a run goes."""
    wanted = steps_until(until)
    return tuple(step for step in dict(SHOWN)[layer] if step in wanted)


def layers_until(until: str | None) -> tuple[str, ...]:
    """Shown layers of a run that goes up to a layer (of the flow; ``score`` counts as mix)."""
    return tuple(layer for layer, _ in SHOWN if steps_of(layer, until))


def is_done(layer: str, totals: Totals, until: str | None = None) -> bool:
    """Whether every step of a layer has settled."""
    return all((one := totals.get(step)) is not None and one.settled for step in steps_of(layer, until))


def current_layer(totals: Totals, until: str | None) -> str | None:
    """The first layer that has something left to do; ``None`` where nothing has."""
    return next((layer for layer in layers_until(until) if not is_done(layer, totals, until)), None)


def through(layer: str, totals: Totals, until: str | None = None) -> Through:
    """What came into a layer so far, and what of it went on."""
    entry = totals.get(ENTRY[layer])
    if entry is None:
        return Through(None, None)
    if layer in WHOLE and not is_done(layer, totals, until):
        return Through(entry.business, None)
    lost = 0
    for step in steps_of(layer, until):
        one = totals.get(step)
        if one is None or step == "discover":
            continue
        lost += one.rejected + one.dead
        if step == "plan":
            lost += one.documents_in - one.business  # not drawn
    return Through(entry.business, entry.business - lost)


def order_of(step: str) -> int:
    """Place of a step in the flow."""
    return STEP_NAMES.index(step)
