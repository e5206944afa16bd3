"""The report's sections on documents: funnel, rules, sources, duplicates, shares, lengths, mixing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dataflow_ops.observe import charts
from dataflow_ops.observe.flow import order
from dataflow_ops.observe.markup import Html, bar, both, esc, grouped, name, number, percent, say, table
from dataflow_ops.observe.rule_texts import RULE_TEXTS
from dataflow_ops.observe.texts import TEXTS

Data = Mapping[str, Any]

OFF_TARGET = 0.02
"""Difference of shares from which a domain's given share is marked: two percentage points."""


def section(key: str, *content: str, extra: str = "") -> Html:
    """A card with its heading; empty content gives nothing."""
    inner = "".join(content)
    if not inner:
        return Html("")
    return Html(f'<section id="{key}" class="{extra}"><h2 id="h-{key}">{say(key)}</h2>{inner}</section>')


def part(key: str, content: str) -> str:
    """A chart or table under a small heading whose id is ``h-<key>``."""
    return f'<div><h3 id="h-{key}">{say(key)}</h3>{content}</div>'


def note(key: str, **facts: object) -> str:
    """A line of explanation."""
    return f'<p class="muted">{say(key, **facts)}</p>'


def legend(*entries: tuple[str, str]) -> str:
    """Colours and what they mean: ``(colour class, text key)``."""
    return (
        '<div class="key">'
        + "".join(f'<span><i class="{c}"></i>{say(k)}</span>' for c, k in entries)
        + "</div>"
    )


def step_name(step: str) -> Html:
    """A step by its name, which Chinese readers get in Chinese too."""
    key = f"step_{step}"
    return say(key) if key in TEXTS else esc(step)


def funnel(data: Data) -> Html:
    """In, kept, removed and dead by layer, on one scale."""
    stages = data["funnel"]
    whole = max((max(s["in"], s["out"]) for s in stages), default=0)
    rows: list[list[object]] = [
        [
            say(s["layer"]),
            bar([("kept", s["kept"]), ("removed", s["removed"]), ("deadc", s["dead"])], whole),
            grouped(s["in"]),
            grouped(s["removed"]),
            percent(s["removed"], s["in"]),
            grouped(s["dead"]),
            grouped(s["out"]),
        ]
        for s in stages
    ]
    head = [say("layer"), Html(""), say("in"), say("removed"), say("share"), say("dead_short"), say("out")]
    keys = legend(("kept", "kept"), ("removed", "removed"), ("deadc", "dead_short"))
    return section("s_funnel", note("x_funnel"), keys, table(head, rows, "tbnnnnn"))


def rules(data: Data) -> Html:
    """What each rule removed, with its bounds."""
    found = data["rules"]
    if not found:
        return section("s_rules", note("none_rules"))
    whole = max(r["hits"] for r in found)
    rows: list[list[object]] = []
    for r in found:
        rows.append(
            [
                _rule(r),
                Html(f'<span class="tag">{esc(r["gate"]) if r["gate"] else step_name(r["step"])}</span>'),
                bar([("removed", r["hits"])], whole),
                grouped(r["hits"]),
                percent(r["hits"], r["in"]),
                _bounds(r),
            ]
        )
    head = [say("rule"), say("gate"), Html(""), say("rejected"), say("share"), say("bounds")]
    return section("s_rules", note("x_rules"), note("x_bounds"), table(head, rows, "ttbnnt"), extra="long")


def _rule(r: Data) -> Html:
    """Its name, what it measures, where its bounds are set, and what others call it."""
    lines = [f"<code>{name(r['rule'])}</code>"]
    if r["rule"] in RULE_TEXTS:
        lines.append(f'<span class="what">{both(*map(esc, RULE_TEXTS[r["rule"]]))}</span>')
    if r.get("setting"):
        key = esc(r["setting"]) + (".low / .high" if r["step"] == "filter" else "")
        lines.append(f'<span class="small"><code class="setting">{key}</code></span>')
    if r["aliases"]:
        lines.append(f'<span class="small">{esc(", ".join(r["aliases"]))}</span>')
    return Html("".join(lines))


def _bounds(r: Data) -> Html:
    """One line where all kinds of text have the same bounds, else a line for each that differs."""
    kinds: dict[str, list[str]] = {}
    for kind, (low, high) in (r.get("by_kind") or {}).items():
        kinds.setdefault(_between(low, high), []).append(kind)
    if len(kinds) <= 1:
        return esc(next(iter(kinds), _between(r["low"], r["high"])))
    lines = (
        f'<span class="kinds">{both(*_listed(names))}: {esc(shown)}</span>' for shown, names in kinds.items()
    )
    return Html("".join(lines))


def _listed(kinds: Sequence[str]) -> tuple[str, str]:
    english, chinese = ([TEXTS.get(f"k_{kind}", (kind, kind))[i] for kind in kinds] for i in (0, 1))
    return esc(", ".join(english)), esc("、".join(chinese))


def _between(low: float | None, high: float | None) -> str:
    parts = [f"≥ {low:,.6g}"] if low is not None else []
    parts += [f"≤ {high:,.6g}"] if high is not None else []
    return " · ".join(parts) or "–"


def sources(data: Data) -> Html:
    """Which source lost what share in which step, and most to which rule: a table shaded by the share."""
    found = data["sources"]
    steps = sorted({one["step"] for source in found for one in source["steps"]}, key=order)
    if not steps:
        return Html("")
    head = "".join(f'<th scope="col" class="n">{step_name(step)}</th>' for step in steps)
    body = ""
    for source in found:
        by_step = {one["step"]: one for one in source["steps"]}
        cells = "".join(_heat(by_step.get(step)) for step in steps)
        body += f'<tr><th scope="row">{name(source["source"])}</th>{cells}</tr>'
    grid = f'<thead><tr><th scope="col">{say("source")}</th>{head}</tr></thead><tbody>{body}</tbody>'
    return section(
        "s_sources", note("x_sources"), f'<div class="wide"><table>{grid}</table></div>', extra="long"
    )


def _heat(one: Data | None) -> str:
    if one is None:
        return '<td class="n">–</td>'
    share = one["lost"] / one["in"] if one["in"] else 0.0
    title = f"{grouped(one['lost'])} / {grouped(one['in'])}"
    top = f'<span class="small">{name(one["top_rule"], 40)}</span>'
    return f'<td class="n heat" style="--h:{100 * share:.0f}%" title="{title}">{percent(share)}{top}</td>'


def dedup(data: Data) -> Html:
    """Exact against near, groups, similarities, and the S-curve with what to turn."""
    d = data["dedup"]
    whole = d["in"]
    if not whole:
        return Html("")
    shares: list[list[object]] = [
        [say(key), bar([(colour, d[field])], whole), grouped(d[field]), percent(d[field], whole)]
        for key, field, colour in (
            ("c_unique", "unique", "kept"),
            ("c_exact", "exact", "removed"),
            ("c_near", "near", "fillc"),
        )
    ]
    curve = d["curve"]
    limit = f"{curve['threshold']:.2f}"
    advice = note(
        "x_curve", bands=curve["bands"], rows=curve["rows"], threshold=limit, min=f"{d['min_similarity']:g}"
    )
    for key in ("looser", "stricter"):
        if curve[key]:
            advice += note(
                f"x_{key}",
                bands=curve[key]["bands"],
                rows=curve[key]["rows"],
                threshold=f"{curve[key]['threshold']:.2f}",
            )
    bins = d["similarity"]
    first = next((i for i, n in enumerate(bins) if n), 0)
    edges = [i / len(bins) for i in range(first, len(bins) + 1)] if bins else []
    similarity = charts.histogram(
        edges, bins[first:], "h-c_similarity", say("edit_similarity"), lambda v: (f"{v:.2f}", f"{v:.2f}")
    )
    groups = charts.histogram(
        d["groups"]["edges"], d["groups"]["counts"], "h-c_groups", say("group_size"), whole_numbers=True
    )
    blocks = part("c_share", table([Html(""), Html(""), say("documents"), say("share")], shares, "tbnn"))
    blocks += part("c_groups", groups)
    blocks += part("c_similarity", similarity)
    if d["near_on"]:
        blocks += part("c_curve", charts.s_curve(curve["points"], curve["threshold"], "h-c_curve"))
    return section(
        "s_dedup", f'<div class="two">{blocks}</div>', advice if d["near_on"] else "", extra="long"
    )


def shares(data: Data) -> Html:
    """Documents and tokens by domain, language, kind and quality level."""
    blocks = "".join(
        part(label, _share_table(data["shares"].get(label) or []))
        for label in ("domain", "language", "kind", "quality_level")
        if data["shares"].get(label)
    )
    if not blocks:
        return Html("")
    return section("s_shares", note(f"x_{data['basis']}"), f'<div class="two">{blocks}</div>', extra="long")


def _share_table(found: Sequence[Data]) -> Html:
    documents = sum(r["documents"] for r in found)
    tokens = sum(r["tokens"] for r in found)
    # Largest share of tokens fills the bar; a domain of few but long documents is not hidden.
    whole = max(r["tokens"] for r in found) or 1
    rows: list[list[object]] = [
        [
            say("others") if r["name"] is None else name(r["name"]),
            bar([("fillc", r["tokens"])], whole),
            number(r["tokens"]),
            percent(r["tokens"], tokens),
            number(r["documents"]),
            percent(r["documents"], documents),
        ]
        for r in found
    ]
    return table([Html(""), Html(""), say("tokens"), Html(""), say("documents"), Html("")], rows, "tbnnnn")


def lengths(data: Data) -> Html:
    """Histograms of characters, tokens and quality scores."""
    blocks = ""
    for key, histogram, axis in (
        ("c_chars", data["lengths"]["chars"], "characters"),
        ("c_tokens", data["lengths"]["tokens"], "tokens"),
        ("c_scores", data["scores"], "value"),
    ):
        if histogram["counts"]:
            chart = charts.histogram(histogram["edges"], histogram["counts"], f"h-{key}", say(axis))
            blocks += part(key, chart)
    if not blocks:
        return Html("")
    unscored = "" if data["scores"]["counts"] else note("not_scored")
    return section("s_lengths", note(f"x_{data['basis']}"), f'<div class="two">{blocks}</div>', unscored)


def plan(data: Data) -> Html:
    """Target, supply and drawn tokens by domain."""
    found = data["plan"]
    if not found:
        return Html("")
    whole = max(max(p["supply"], p.get("asked") or p["target"] or 0, p["drawn"]) for p in found)
    drawn = sum(p["drawn"] for p in found)
    rows: list[list[object]] = [
        [
            name(p["domain"]),
            bar([("kept", p["drawn"]), ("ghost", max(0, p["supply"] - p["drawn"]))], whole),
            percent(p["ratio"]) if p["ratio"] is not None else "–",
            _given(p, drawn),
            _asked(p),
            number(p["supply"]),
            number(p["drawn"]),
            number(p["shortage"]) if p["shortage"] else "–",
            _epochs(p["epochs"]),
        ]
        for p in found
    ]
    head = [say("domain"), Html(""), say("ratio"), say("actual"), say("target"), say("supply"), say("drawn")]
    head += [say("shortage"), say("epochs")]
    notes = "".join(f'<p class="muted">{esc(n, 600)}</p>' for n in data["notes"])
    keys = legend(("kept", "drawn"), ("ghost", "supply"))
    return section("s_plan", note("x_plan"), keys, table(head, rows, "tbnnnnnnn"), notes)


def _given(p: Data, drawn: int) -> Html:
    """Share of the drawn tokens, marked where it is far from what was asked for."""
    shown = percent(p["drawn"], drawn)
    off = p["ratio"] is not None and drawn > 0 and abs(p["drawn"] / drawn - p["ratio"]) > OFF_TARGET
    return Html(f'<span class="tag bad">{shown}</span>') if off else esc(shown)


def _asked(p: Data) -> Html:
    """Tokens asked for: more than the target where there is not enough of the domain."""
    asked = p["target"] if p.get("asked") is None else p["asked"]
    return say("all") if asked is None else number(asked)


def _epochs(pair: Sequence[int | None]) -> str:
    return "–" if pair[0] is None or pair[1] is None else f"[{pair[0]}, {pair[1]})"
