"""What listing left out and what parsing mended: the report's data and sections on the way in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dataflow_ops.observe.markup import Html, bar, grouped, name, percent, say, table
from dataflow_ops.observe.metrics import RunMetrics
from dataflow_ops.observe.report_sections import note, section
from dataflow_ops.observe.report_tables import TOP
from dataflow_ops.observe.texts import TEXTS

Data = Mapping[str, Any]


def repaired(metrics: RunMetrics) -> list[dict[str, Any]]:
    """Records by what was mended (``repaired.<mark>`` of parse), most first; one may have several marks."""
    parse = metrics.step("parse")
    found = {
        key.removeprefix("repaired."): int(n)
        for key, n in parse.metrics.items()
        if key.startswith("repaired.")
    }
    return [
        {"mark": mark, "records": n, "kept": parse.counts.kept}
        for mark, n in sorted(found.items(), key=lambda item: (-item[1], item[0]))
        if n
    ]


def left_out(metrics: RunMetrics) -> list[dict[str, Any]]:
    """Entries by source and reason (``left_out.<source>.<reason>`` of discover), most first.

    Beyond ``TOP`` rows they are added up in one row whose source is ``None``.
    """
    rows: list[dict[str, Any]] = []
    for key, n in metrics.step("discover").metrics.items():
        if key.startswith("left_out.") and n:
            # A source id may hold dots, a reason holds none.
            source, _, reason = key.removeprefix("left_out.").rpartition(".")
            rows.append({"source": source, "reason": reason, "entries": int(n)})
    rows.sort(key=lambda r: (-r["entries"], r["source"], r["reason"]))
    if len(rows) > TOP:
        rest = sum(r["entries"] for r in rows[TOP - 1 :])
        rows = [*rows[: TOP - 1], {"source": None, "reason": None, "entries": rest}]
    return rows


def repaired_section(data: Data) -> Html:
    """Repairs with the records they were made in."""
    found = data.get("repaired") or []
    if not found:
        return Html("")
    whole = max(r["records"] for r in found)
    rows: list[list[object]] = [
        [
            _coded("m", r["mark"]),
            bar([("fillc", r["records"])], whole),
            grouped(r["records"]),
            percent(r["records"], r["kept"]),
        ]
        for r in found
    ]
    head = [say("repair"), Html(""), say("records"), say("share")]
    return section("s_repaired", note("x_repaired"), table(head, rows, "tbnn"), extra="long")


def left_out_section(data: Data) -> Html:
    """Entries that listing left out, by source and reason."""
    found = data.get("left_out") or []
    if not found:
        return Html("")
    whole = max(r["entries"] for r in found)
    rows: list[list[object]] = [
        [
            say("others") if r["source"] is None else name(r["source"]),
            Html("") if r["reason"] is None else _coded("o", r["reason"]),
            bar([("removed", r["entries"])], whole),
            grouped(r["entries"]),
        ]
        for r in found
    ]
    head = [say("source"), say("reason"), Html(""), say("entries")]
    return section("s_left_out", note("x_left_out"), table(head, rows, "ttbn"), extra="long")


def _coded(kind: str, code: str) -> Html:
    """A code as settings and metrics have it, with what it means where the report knows it."""
    key = f"{kind}_{code}"
    meaning = f'<span class="small">{say(key)}</span>' if key in TEXTS else ""
    return Html(f"<code>{name(code)}</code>{meaning}")
