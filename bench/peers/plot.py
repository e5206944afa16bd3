"""A bar chart on a logarithmic axis, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, LABELS, ROW, GAP, HEAD = 860, 300, 18, 26, 46


class Bar(NamedTuple):
    """One bar: the group it is in, its name, its length in microseconds, and whether it is ours."""

    group: str
    name: str
    value: float
    ours: bool


def draw(bars: Sequence[Bar]) -> str:
    """The chart; groups in the order in which they come."""
    values = [bar.value for bar in bars if bar.value > 0] or [1.0, 10.0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    unit = (WIDTH - LABELS - 80) / (high - low)
    groups = list(dict.fromkeys(bar.group for bar in bars))
    height = HEAD + len(bars) * ROW + len(groups) * GAP + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        '<text x="10" y="18" font-weight="bold">CPU time per document, microseconds (logarithmic)</text>',
    ]
    for power in range(low, high + 1):
        x = LABELS + (power - low) * unit
        out.append(f'<line x1="{x:.1f}" y1="{HEAD - 8}" x2="{x:.1f}" y2="{height - 12}" stroke="#ddd"/>')
        out.append(
            f'<text x="{x:.1f}" y="{HEAD - 12}" text-anchor="middle" fill="#666">{10.0**power:,.10g}</text>'
        )
    y = HEAD
    for group in groups:
        out.append(f'<text x="10" y="{y + 16}" font-weight="bold">{escape(group)}</text>')
        y += GAP
        for bar in (b for b in bars if b.group == group):
            length = max(1.0, (math.log10(bar.value) - low) * unit)
            colour = "#0a7d5a" if bar.ours else "#9aa5b1"
            out.append(
                f'<text x="{LABELS - 8}" y="{y + 12}" text-anchor="end">{escape(bar.name)}</text>'
                f'<rect x="{LABELS}" y="{y + 2}" width="{length:.1f}" height="{ROW - 5}" fill="{colour}"/>'
                f'<text x="{LABELS + length + 5:.1f}" y="{y + 12}">{bar.value:,.0f}</text>'
            )
            y += ROW
    return "\n".join([*out, "</svg>"]) + "\n"
