"""``plan.notes``: what a person should know about this plan, one sentence a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from dataflow_ops.layers.mix.columns import NOTES
from dataflow_ops.layers.mix.plan_tables import epochs
from dataflow_ops.layers.mix.tally import Drawn, Supply, Totals
from dataflow_ops.layers.mix.targets import Target
from dataflow_ops.settings import MixingSettings

OVERSHOOT = 0.05
"""Part of a domain's target by which it may be exceeded without a word: one document of ordinary length."""
SHARE_POINTS = 0.02
"""By how much a domain's share of the drawn tokens may differ from its ratio without a word."""


def notes(
    wanted: Mapping[str, Target],
    supply: Mapping[str, Supply],
    drawn: Drawn,
    partitions: pa.Table,
    mixing: MixingSettings,
    shards: int | None,
) -> pa.Table:
    """Targets that were missed either way, and settings that could not do what their names promise.

    Args:
        wanted: targets by domain.
        supply: what each domain has.
        drawn: what was drawn.
        partitions: ``plan.partitions``.
        mixing: the job's section.
        shards: ``output.shards``.

    """
    lines = []
    if mixing.curriculum is not None:
        first, last = epochs(mixing)
        lines.append(
            f"No document has a quality score: early and later epochs are one window, [{first}, {last})."
        )
    if mixing.sampling and mixing.target_tokens is None:
        lines.append(
            "mixing.target_tokens is not set: everything that survives is taken, and the ratios of"
            " mixing.sampling only leave out domains whose ratio is 0."
        )
    for domain, target in wanted.items():
        there = supply[domain].tokens if domain in supply else 0
        if target.shortage:
            lines.append(
                f"Domain '{domain}' is short of {target.shortage:,} tokens:"
                f" {target.asked:,} asked for, {there:,} there."
            )
        elif target.ratio and domain not in supply:
            lines.append(f"Domain '{domain}' has a ratio but no documents.")
        if mixing.sampling and domain not in mixing.sampling and domain in supply:
            lines.append(f"Domain '{domain}' has no ratio in mixing.sampling, so none of it is taken.")
    lines += _overshoots(wanted, drawn)
    lines += _shares(wanted, drawn, mixing)
    if shards is not None and partitions.num_rows > shards:
        lines.append(f"{shards} shards were asked for, but {partitions.num_rows} partitions need one each.")
    return pa.table({"note": pa.array(lines, pa.string())}, schema=NOTES)


def _overshoots(wanted: Mapping[str, Target], drawn: Drawn) -> Iterator[str]:
    """Domains whose last document, the one that reaches the target, goes far beyond it."""
    for domain, target in wanted.items():
        given = drawn.domains.get(domain, Totals()).tokens
        last = drawn.last.get(domain)
        if not target.drawn or last is None or given <= target.drawn * (1 + OVERSHOOT):
            continue
        yield (
            f"Domain '{domain}' gives {given:,} tokens, {given / target.drawn - 1:.0%} more than its target"
            f" of {target.drawn:,}: the document that reaches the target has {last.tokens:,}, which is"
            f" {last.tokens / given:.0%} of the domain's. See: dataflow lineage {last.doc_id.hex()}"
        )


def _shares(wanted: Mapping[str, Target], drawn: Drawn, mixing: MixingSettings) -> Iterator[str]:
    """Domains whose share of the drawn tokens is not the one asked for; nothing without ratios or target."""
    total = sum(one.tokens for one in drawn.domains.values())
    if not mixing.sampling or mixing.target_tokens is None or not total:
        return
    asked = sum(target.ratio or 0.0 for target in wanted.values())
    odd = []
    for domain, target in wanted.items():
        given = drawn.domains.get(domain, Totals()).tokens / total
        ratio = (target.ratio or 0.0) / asked
        if abs(given - ratio) > SHARE_POINTS + 1e-9:
            odd.append(f"'{domain}' {given:.1%} instead of {ratio:.1%}")
    if odd:
        yield f"The drawn tokens don't have the ratios of mixing.sampling: {', '.join(odd)}."
