"""Charts as inline SVG, each labelled by a heading of the page and followed by its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dataflow_ops.observe.markup import Html, compact, details, esc, grouped, say, table

_W, _H = 460, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 22, 14, 38

Label = Callable[[float], tuple[str, str]]


def histogram(
    edges: Sequence[float],
    counts: Sequence[int],
    labelled_by: str,
    axis: Html,
    label: Label = compact,
    whole_numbers: bool = False,
) -> Html:
    """Counts by bins.

    Args:
        edges: ``n + 1`` bin edges, ascending; drawn evenly spaced (bins of a logarithmic scale look equal).
        counts: ``n`` counts.
        labelled_by: id of the heading that names the chart.
        axis: what the horizontal axis shows.
        label: edge -> its text in both languages.
        whole_numbers: bins hold whole numbers: the table then says ``3 – 4`` and not ``3 – below 5``.

    """
    n = len(counts)
    top = max(counts, default=0)
    if n == 0 or top == 0:
        return Html(f'<p class="muted">{say("nothing")}</p>')
    scale = _nice(top)
    step = (_W - _LEFT - _RIGHT) / max(n, 6)
    parts = [_grid(scale, lambda v: compact(v))]
    for i, count in enumerate(counts):
        height = (_H - _TOP - _BOTTOM) * count / scale
        # What is not nothing stays visible.
        height = max(height, 1.5) if count else 0.0
        x = _LEFT + i * step
        span = f"{'–'.join(label(e)[0] for e in edges[i : i + 2])}: {grouped(count)}"
        box = f'x="{x + 1.5:.1f}" y="{_H - _BOTTOM - height:.1f}" width="{max(step - 3, 1):.1f}"'
        parts.append(
            f'<rect class="fill" {box} height="{height:.1f}" rx="2"><title>{esc(span)}</title></rect>'
        )
    every = max(1, -(-(n + 1) // 8))
    for i in range(0, n + 1, every):
        parts.append(_text(_LEFT + i * step, _H - _BOTTOM + 15, label(edges[i]), "middle"))
    parts.append(_text((_LEFT + _W - _RIGHT) / 2, _H - 5, axis, "middle", "axis"))
    total = sum(counts)
    rows: list[list[object]] = [
        [_range(edges[i], edges[i + 1], label, whole_numbers), grouped(c), f"{100 * c / total:.1f}%"]
        for i, c in enumerate(counts)
    ]
    head = [say("from_to"), say("count"), say("share")]
    return _figure(parts, labelled_by, details(say("numbers"), table(head, rows, "tnn")))


def s_curve(points: Sequence[Sequence[float]], threshold: float, labelled_by: str) -> Html:
    """The probability that a pair becomes a candidate, over its similarity; both from 0 to 1."""
    wide, high = _W - _LEFT - _RIGHT, _H - _TOP - _BOTTOM

    def at(s: float, p: float) -> tuple[float, float]:
        return _LEFT + wide * s, _H - _BOTTOM - high * p

    parts = [_grid(1.0, lambda v: (f"{v:.2g}", f"{v:.2g}"))]
    path = " ".join(
        f"{'M' if i == 0 else 'L'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(at(*p) for p in points)
    )
    x, _ = at(threshold, 0)
    bottom = _H - _BOTTOM
    area = f"{path} L{at(1, 0)[0]:.1f} {bottom} L{_LEFT} {bottom} Z"
    parts.append(f'<path class="area" d="{area}"/><path class="line" d="{path}"/>')
    parts.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>')
    parts.append(_text(x - 5, _TOP + 10, (f"{threshold:.2f}", f"{threshold:.2f}"), "end", "strong"))
    for i in range(0, 11, 2):
        parts.append(_text(at(i / 10, 0)[0], bottom + 15, (f"{i / 10:g}", f"{i / 10:g}"), "middle"))
    parts.append(_text((_LEFT + _W - _RIGHT) / 2, _H - 5, say("jaccard"), "middle", "axis"))
    rows: list[list[object]] = [[f"{s:.2f}", f"{p:.4f}"] for s, p in points[::5]]
    numbers = details(say("numbers"), table([say("jaccard"), say("probability")], rows, "nn"))
    return _figure(parts, labelled_by, numbers)


def _figure(parts: Sequence[str], labelled_by: str, numbers: Html) -> Html:
    svg = f'<svg viewBox="0 0 {_W} {_H}" role="img" aria-labelledby="{labelled_by}">{"".join(parts)}</svg>'
    return Html(f"<figure>{svg}{numbers}</figure>")


def _grid(top: float, label: Label) -> str:
    out = []
    for i in range(5):
        y = _H - _BOTTOM - (_H - _TOP - _BOTTOM) * i / 4
        out.append(f'<line class="grid" x1="{_LEFT}" x2="{_W - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(_text(_LEFT - 6, y + 4, label(top * i / 4), "end"))
    return "".join(out)


def _text(x: float, y: float, value: tuple[str, str] | Html, anchor: str, extra: str = "") -> str:
    """SVG text in both languages; ``value`` is a pair, or HTML spans that become tspans."""
    start = f'<text class="{extra}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
    if isinstance(value, Html):
        return start + value.replace("<span", "<tspan").replace("</span", "</tspan") + "</text>"
    english, chinese = esc(value[0]), esc(value[1])
    if english == chinese:
        return f"{start}{english}</text>"
    return f'{start}<tspan class="en">{english}</tspan><tspan class="zh" lang="zh">{chinese}</tspan></text>'


def _range(low: float, high: float, label: Label, whole: bool) -> Html:
    if whole:
        return esc(f"{low:.0f}" if high - low <= 1 else f"{low:.0f} – {high - 1:.0f}")
    return say_pair(label(low), label(high))


def say_pair(low: tuple[str, str], high: tuple[str, str]) -> Html:
    """``low – high`` in both languages."""
    english, chinese = f"{esc(low[0])} – {esc(high[0])}", f"{esc(low[1])} – {esc(high[1])}"
    if english == chinese:
        return Html(english)
    return Html(f'<span class="en">{english}</span><span class="zh" lang="zh">{chinese}</span>')


def _nice(top: float) -> float:
    """The least of 4, 8, 12, 20, 32 times a power of ten not below ``top``: its quarters are round."""
    size = 1.0
    while True:
        for factor in (4, 8, 12, 20, 32):
            if factor * size >= top:
                return factor * size
        size *= 10
