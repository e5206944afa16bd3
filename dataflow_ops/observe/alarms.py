"""What a person should look at: pure functions from counts to alarms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dataflow_ops.observe.losses import SourceLoss
from dataflow_ops.observe.markup import grouped, percent
from dataflow_ops.observe.texts import TEXTS

NEAR_BAND = (0.0005, 0.5)
"""Usual share of near duplicates among what dedup takes in; production web crawls lie near 0.08."""

NEAR_BAND_FROM = 10_000
"""Documents below which the share says nothing."""

SOURCE_LOSS_FROM = 20
"""Documents of a source below which losing nearly all of them is no news."""

BUCKET_METRICS = ("buckets_split", "leaders_capped", "filters_resized")
"""Numbers by which dedup reports buckets, and filters of the index, that were too full."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm.

    Attributes:
        kind: key of its text in ``texts.py``.
        facts: the numbers and names of that text, JSON-able.

    """

    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """JSON-able form."""
        return {"kind": self.kind, **self.facts}


def shown_facts(alarm: Mapping[str, Any]) -> dict[str, object]:
    """The facts of an alarm's data as they are printed: shares as per cents, counts with thousands apart."""
    return {k: _shown(k, v) for k, v in alarm.items() if k != "kind"}


def message(alarm: Mapping[str, Any]) -> str:
    """An alarm's data as one English sentence or two, for the console and logs."""
    return TEXTS[f"a_{alarm['kind']}"][0].format(**shown_facts(alarm))


def _shown(key: str, value: object) -> object:
    if not isinstance(value, (int, float)):
        return value
    return percent(value) if key in ("share", "usual", "limit") else grouped(value)


def source_losses(losses: Iterable[SourceLoss], max_loss: float) -> list[Alarm]:
    """Sources that lost more than ``max_loss`` (share) of their documents in one step, worst first.

    Where a source is small the alarm is left out: see ``SOURCE_LOSS_FROM``.
    """
    found = [
        one
        for one in losses
        # Not being drawn is the mixing plan's wish, no loss.
        if one.step != "plan" and one.share > max_loss and one.documents_in >= SOURCE_LOSS_FROM
    ]
    found.sort(key=lambda one: (-one.share, -one.lost, one.source, one.step))
    return [
        Alarm(
            "source_loss",
            {
                "source": one.source,
                "step": one.step,
                "rule": one.top_rule,
                "lost": one.lost,
                "documents_in": one.documents_in,
                "share": one.share,
                "rule_hits": one.rules.get(one.top_rule, 0),
            },
        )
        for one in found
    ]


def near_share(near: int, documents: int, band: tuple[float, float] = NEAR_BAND) -> list[Alarm]:
    """Near duplicates out of their usual band, where there are enough documents to tell."""
    if documents < NEAR_BAND_FROM:
        return []
    share = near / documents
    if share > band[1]:
        return [Alarm("near_high", {"share": share, "usual": band[1], "near": near})]
    if share < band[0]:
        return [Alarm("near_low", {"share": share, "usual": band[0], "near": near})]
    return []


def full_buckets(metrics: Mapping[str, float]) -> list[Alarm]:
    """Buckets over their cap: a template shared by very many pages, or a shingle that is too short."""
    return [Alarm(name, {"count": int(metrics[name])}) for name in BUCKET_METRICS if metrics.get(name, 0) > 0]


def dead_share(dead: int, records: int, limit: float) -> list[Alarm]:
    """More dead letters than a version may have and still become current by itself."""
    if records == 0 or dead / records <= limit:
        return []
    return [Alarm("dead_share", {"dead": dead, "records": records, "share": dead / records, "limit": limit})]


def shortages(plan: Iterable[Mapping[str, Any]]) -> list[Alarm]:
    """Domains that have fewer tokens than the mixing plan wanted of them."""
    return [
        Alarm(
            "shortage",
            {
                "domain": row["domain"],
                "short": row["shortage"],
                "asked": row["target"] if row.get("asked") is None else row["asked"],
                "supply": row["supply"],
                "given": row["drawn"],
            },
        )
        for row in plan
        if (row.get("shortage") or 0) > 0
    ]
