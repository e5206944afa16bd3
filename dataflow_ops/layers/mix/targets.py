"""How many tokens each domain gives: ratios, caps, repetition, and what happens when a domain is short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dataflow_ops.errors import ShortageError
from dataflow_ops.settings import MixingSettings


@dataclass(frozen=True, slots=True)
class Target:
    """What one domain is asked for.

    Attributes:
        ratio: share of the whole target; None where the job gives no ratios.
        asked: tokens of one pass by ratio and cap; None takes everything.
        drawn: tokens to draw, after ``on_shortage``; None takes everything.
        cap: most tokens, or None.
        shortage: tokens asked for that are not there.

    """

    ratio: float | None
    asked: int | None
    drawn: int | None
    cap: int | None
    shortage: int


def targets(supply: Mapping[str, int], mixing: MixingSettings) -> dict[str, Target]:
    """Targets of every domain that has documents or is named in the job.

    Each domain's tokens are rounded by themselves, so that they depend on nothing but the whole target
    and the domain's own ratio: a larger target never draws less of any, and no ratio moves another's
    documents (``redistribute`` does, on purpose).

    Args:
        supply: tokens by domain of the documents that may be drawn.
        mixing: the job's section.

    Returns:
        Domain -> target, in order of name. A domain without a ratio, where others have one, gives nothing.

    Raises:
        ShortageError: a domain is short and the job says ``on_shortage: fail``.

    """
    names = sorted({*supply, *mixing.sampling, *mixing.caps})
    asked = {d: _asked(d, supply, mixing) for d in names}
    available = {d: supply.get(d, 0) * mixing.max_repetition for d in names}
    short = {d: max(0, wanted - available[d]) if wanted is not None else 0 for d, wanted in asked.items()}
    if mixing.on_shortage == "fail" and any(short.values()):
        lines = [f"{d}: {asked[d]:,} tokens asked for, {available[d]:,} there" for d in names if short[d]]
        raise ShortageError(
            "mixing.on_shortage is 'fail' and domains are short of tokens: "
            + "; ".join(lines)
            + ". Add sources, lower mixing.target_tokens or the ratio, or raise mixing.max_repetition."
        )
    drawn = {d: wanted if wanted is None else wanted - short[d] for d, wanted in asked.items()}
    if mixing.on_shortage == "redistribute":
        drawn = _redistribute(drawn, sum(short.values()), available, mixing)
    return {
        d: Target(
            mixing.sampling.get(d, 0.0) if mixing.sampling else None,
            asked[d],
            drawn[d],
            mixing.caps.get(d),
            short[d],
        )
        for d in names
    }


def _asked(domain: str, supply: Mapping[str, int], mixing: MixingSettings) -> int | None:
    cap = mixing.caps.get(domain)
    if mixing.sampling and not mixing.sampling.get(domain):
        return 0
    if mixing.target_tokens is None:
        return cap if cap is not None and cap < supply.get(domain, 0) else None
    if mixing.sampling:
        share = Fraction(repr(mixing.sampling[domain]))
    else:
        share = Fraction(supply.get(domain, 0), max(1, sum(supply.values())))
    asked = round(mixing.target_tokens * share)
    return asked if cap is None else min(asked, cap)


def _redistribute(
    drawn: Mapping[str, int | None], missing: int, available: Mapping[str, int], mixing: MixingSettings
) -> dict[str, int | None]:
    """Share missing tokens among domains with room, in proportion to their ratios, until none has room."""
    out = dict(drawn)
    limits = {d: min(available[d], mixing.caps.get(d, available[d])) for d in drawn}
    while missing > 0:
        room = {
            d: limits[d] - n
            for d, n in out.items()
            if n is not None and n < limits[d] and _weight(d, n, mixing)
        }
        if not room:
            break
        weights = [_weight(d, out[d] or 0, mixing) for d in room]
        for (d, free), extra in zip(room.items(), largest_remainder(missing, weights), strict=True):
            given = min(extra, free)
            out[d] = (out[d] or 0) + given
            missing -= given
    return out


def _weight(domain: str, drawn: int, mixing: MixingSettings) -> Fraction:
    return Fraction(repr(mixing.sampling.get(domain, 0.0))) if mixing.sampling else Fraction(drawn)


def largest_remainder(total: int, weights: list[Fraction] | list[int]) -> list[int]:
    """Split a whole number in proportion to weights (Hamilton's method); ties go to the earlier one.

    Args:
        total: what is split, not negative.
        weights: one per part, not negative, not all 0.

    Returns:
        Whole numbers that sum to ``total``.

    """
    whole = sum(weights, Fraction(0))
    exact = [total * Fraction(w) / whole for w in weights]
    out = [int(e) for e in exact]
    order = sorted(range(len(out)), key=lambda i: (out[i] - exact[i], i))
    for i in order[: total - sum(out)]:
        out[i] += 1
    return out
