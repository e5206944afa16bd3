"""Escaped HTML in two languages: everything that goes into the report passes through here."""

from __future__ import annotations

import html
import re

from dataflow_ops.observe.texts import TEXTS

MAX_NAME = 160
"""Characters shown of a name or message out of the data."""

_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)


class Html(str):
    """Text that is markup already; everything else is escaped."""

    __slots__ = ()


def esc(value: object, limit: int = MAX_NAME) -> Html:
    """Escape a value out of the data.

    Control characters, lone surrogates and direction overrides become U+FFFD; long texts are cut.
    """
    if isinstance(value, Html):
        return value
    text = str(value)
    if len(text) > limit:
        text = text[:limit] + "…"
    return Html(html.escape(_CONTROL.sub("\ufffd", text), quote=True))


def name(value: object, limit: int = MAX_NAME) -> Html:
    """A name out of the data, its writing direction kept to itself; empty ones say so."""
    if value in (None, ""):
        return say("unknown")
    shown = esc(value, limit)
    # Only long words may be broken anywhere: the rest of a table stays readable.
    far = ' class="far"' if max(map(len, shown.split()), default=0) > 24 else ""
    return Html(f"<bdi{far}>{shown}</bdi>")


def both(english: str, chinese: str) -> Html:
    """Two renderings of the same thing, already escaped; one where they are equal."""
    if english == chinese:
        return Html(english)
    return Html(f'<span class="en">{english}</span><span class="zh" lang="zh">{chinese}</span>')


def say(key: str, **facts: object) -> Html:
    """A text of ``TEXTS`` in both languages, with facts filled in.

    A fact may be a pair ``(English, Chinese)`` of texts; others are escaped and the same in both.
    """
    rendered = []
    for i, template in enumerate(TEXTS[key]):
        filled = {k: esc(v[i]) if isinstance(v, tuple) else _fact(v) for k, v in facts.items()}
        rendered.append(html.escape(template, quote=False).format(**filled))
    return both(*rendered)


def _fact(value: object) -> Html:
    return Html(f"<bdi>{esc(value)}</bdi>")


def grouped(value: float | None) -> str:
    """A count with thousands apart: ``1,234,567``; the same in both languages."""
    return "–" if value is None else f"{round(value):,}"


def compact(value: float) -> tuple[str, str]:
    """About three digits: ``1.23M`` in English, ``123万`` in Chinese."""
    return _scaled(value, _ENGLISH), _scaled(value, _CHINESE)


_ENGLISH = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
_CHINESE = ((1e12, "万亿"), (1e8, "亿"), (1e4, "万"))


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    for size, unit in units:
        if abs(value) >= size * 0.9995:
            return f"{value / size:.3g}{unit}" if abs(value) < size * 999.5 else f"{value / size:,.0f}{unit}"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def number(value: float) -> Html:
    """A compact number in both languages."""
    return both(*compact(value))


def percent(part: float, whole: float = 1.0) -> str:
    """A share: ``12.3%``. What is not nothing never reads as 0 %, what is not all never as 100 %."""
    if not whole:
        return "–"
    share = 100 * part / whole
    if 99.95 <= share < 100:
        return f"{min(share, 99.99):.2f}%"
    if share == 0 or share >= 10:
        return f"{share:.1f}%" if share % 100 else f"{share:.0f}%"
    return f"{share:.2f}%" if share >= 0.01 else "<0.01%"


def duration(seconds: float) -> tuple[str, str]:
    """Hours and minutes, minutes and seconds, or seconds, in both languages."""
    if seconds < 60:
        return f"{seconds:.1f} s", f"{seconds:.1f} 秒"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s", f"{minutes} 分 {rest} 秒"
    return f"{minutes // 60:,} h {minutes % 60} min", f"{minutes // 60:,} 小时 {minutes % 60} 分"


def table(head: list[Html], rows: list[list[object]], kinds: str = "") -> Html:
    """A table. ``kinds`` gives a letter per column: ``n`` numbers (right), ``b`` a bar, else text."""
    if not rows:
        return Html(f'<p class="muted">{say("nothing")}</p>')
    kinds = kinds.ljust(len(head), "t")
    classes = {"n": ' class="n"', "b": ' class="b"', "t": ""}
    top = "".join(f'<th scope="col"{classes[k]}>{h}</th>' for h, k in zip(head, kinds, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{classes[k]}>{esc(c)}</td>" for c, k in zip(row, kinds, strict=True)) + "</tr>"
        for row in rows
    )
    return Html(f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>')


def bar(parts: list[tuple[str, float]], whole: float) -> Html:
    """A horizontal bar of coloured parts ``(colour class, value)`` on a scale that ends at ``whole``.

    Only decoration: the numbers stand beside it in the table.
    """
    if whole <= 0:
        return Html('<div class="bar" aria-hidden="true"></div>')
    pieces = "".join(
        f'<i class="{colour}" style="width:{100 * value / whole:.3f}%"></i>'
        for colour, value in parts
        if value > 0
    )
    return Html(f'<div class="bar" aria-hidden="true">{pieces}</div>')


def details(summary: Html, content: Html, is_open: bool = False) -> Html:
    """Folded content, opened in print by the style sheet."""
    return Html(f"<details{' open' if is_open else ''}><summary>{summary}</summary>{content}</details>")
