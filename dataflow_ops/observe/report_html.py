"""The whole report as one HTML file: no request leaves it, and nothing in the data can become markup."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from dataflow_ops.observe import report_compacted as compacted
from dataflow_ops.observe import report_intake as intake
from dataflow_ops.observe import report_sections as s
from dataflow_ops.observe.alarms import shown_facts
from dataflow_ops.observe.markup import (
    Html,
    bar,
    both,
    compact,
    details,
    duration,
    esc,
    grouped,
    name,
    percent,
    say,
    table,
)
from dataflow_ops.observe.style import CSS, SCRIPT

Data = Mapping[str, Any]

# Scripts and styles of this file only; should markup ever slip through, it can load and send nothing.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline';"
    " base-uri 'none'; form-action 'none'"
)


def render(data: Data) -> str:
    """Render the result of ``build_report_data`` (or of its JSON read back) as a self-contained page."""
    # Its run saw no records: that none was removed and none failed would be true and mislead.
    together = bool(data.get("compacted"))
    sections = {
        "s_compacted": compacted.versions_section(data),
        "s_funnel": Html("") if together else s.funnel(data),
        "s_rules": Html("") if together else s.rules(data),
        "s_sources": s.sources(data),
        "s_dedup": s.dedup(data),
        "s_shares": s.shares(data),
        "s_lengths": s.lengths(data),
        "s_plan": s.plan(data),
        "s_drift": _drift(data),
        "s_left_out": intake.left_out_section(data),
        "s_repaired": intake.repaired_section(data),
        "s_failures": Html("") if together else _failures(data),
        "s_throughput": _throughput(data),
        "s_settings": _settings(data),
        "s_versions": _versions(data),
        "s_next": _next(data),
    }
    links = "".join(f'<a href="#{key}">{say(key)}</a>' for key, body in sections.items() if body)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{esc(data['dataset'])} {esc(data['version'])} · DataFlow</title><style>{CSS}</style></head>"
        f'<body><div class="page">{_header(data)}{_alarms(data)}<nav>{links}</nav><main>'
        + "".join(sections.values())
        + f"</main></div><script>{SCRIPT}</script></body></html>\n"
    )


def _header(data: Data) -> str:
    summary = data["summary"]
    exported = data["basis"] == "exported"
    facts = {
        "records": grouped(summary["records_in"]),
        "documents": grouped(summary["documents_out"]),
        "tokens": compact(summary["tokens_out"]),
        "share": percent(summary["documents_out"], summary["records_in"]),
    }
    if data.get("compacted"):
        lead = compacted.lead(data)
    elif not summary["records_in"]:
        lead = say("outcome_empty")
    else:
        lead = Html(
            say("outcome" if exported else "outcome_kept", **facts)
            + " "
            + (say("dead_sentence", dead=grouped(summary["dead"])) if summary["dead"] else say("no_dead"))
        )
    if summary["tokens_estimated"] and summary["tokens_out"]:
        lead = Html(f'{lead} <span class="muted">{say("estimated")}</span>')
    meta = "".join(
        f"<li>{say(key)} <b>{name(data[key])}</b></li>"
        for key in ("version", "run", "state", "mode", "data_date", "made_at")
        if data[key]
    )
    stands = _stands(data)
    switch = (
        '<div class="switch" role="group" aria-label="Language / 语言">'
        '<button type="button" value="en" aria-pressed="true" lang="en">English</button>'
        '<button type="button" value="zh" aria-pressed="false" lang="zh">中文</button></div>'
    )
    # Times of tasks, not of runs: a run that finds everything done takes a second.
    worked = summary["seconds_tasks"]
    tiles = [
        ("records_in", both(*compact(summary["records_in"]))),
        ("documents_out" if exported else "documents_kept", both(*compact(summary["documents_out"]))),
        ("tokens_out", both(*compact(summary["tokens_out"]))),
        ("dead", both(*compact(summary["dead"]))),
    ]
    if summary["seconds"]:
        tiles.append(("duration", both(*duration(summary["seconds"]))))
    if data.get("compacted"):
        tiles = compacted.tiles(data)
    elif worked:
        tiles.append(("worked", both(*duration(worked))))
        tiles.append(("rate", both(*compact(summary["records_in"] / worked))))
    shown = "".join(
        f'<div class="tile"><b>{value}</b><span class="l">{say(key)}</span></div>' for key, value in tiles
    )
    return (
        f'<header><div class="top"><div><h1>{name(data["dataset"])}</h1></div>{switch}</div>'
        f'<ul class="meta">{meta}</ul>{stands}<p class="lead">{lead}</p>'
        f'<div class="tiles">{shown}</div></header>'
    )


def _stands(data: Data) -> str:
    """Whether the version is the current one; if not, why, and what to do."""
    if data.get("current") is None:
        return ""
    if data["current"]:
        return f'<p class="stands"><span class="tag good">{say("current")}</span></p>'
    if (stands := data.get("stands")) in ("increment", "published", "rejected", "removed"):
        return f'<p class="stands"><span class="tag">{say(f"stands_{stands}")}</span></p>'
    reasons = "".join(f"<li>{esc(reason, 2000)}</li>" for reason in data["waits"])
    why = f"{say('waits')}<ul>{reasons}</ul>" if reasons else say("not_promoted")
    approve = f"<code>dataflow versions approve {esc(shlex.quote(data['version']))}</code>"
    return f'<div class="stands held"><b>{say("not_current")}</b> {why} {say("then_approve")} {approve}</div>'


def _alarms(data: Data) -> str:
    lines = []
    for alarm in data["alarms"]:
        lines.append(f"<li>{say('a_' + alarm['kind'], **shown_facts(alarm))}</li>")
    return s.section("s_alarms", f"<ul>{''.join(lines)}</ul>", extra="alarms") if lines else ""


def _drift(data: Data) -> Html:
    rows: list[list[object]] = []
    for d in data["drift"]:
        mark = f' <span class="tag bad">&gt; {esc(percent(d["limit"]))}</span>' if d["beyond"] else ""
        what = say("distance") if d["measure"] == "distance" else say(d["what"])
        measured = say(d["what"]) if d["measure"] == "distance" else say(d["measure"])
        rows.append(
            [
                what,
                "" if d["measure"] == "distance" else name(d["name"]),
                measured,
                percent(d["old"]),
                percent(d["new"]),
                Html(f"{100 * (d['new'] - d['old']):+.2f}{mark}"),
            ]
        )
    if not rows:
        return Html("")
    head = [say("what"), say("name"), say("share"), say("before"), say("now"), say("move")]
    return s.section("s_drift", s.note("x_drift"), table(head, rows, "tttnnn"), extra="long")


def _failures(data: Data) -> Html:
    blocks = "".join(_failed_by(key, data["failures"][key]) for key in ("parser", "media_type", "host"))
    refused = [r for r in data["rules"] if r["step"] == "parse"]
    told = "".join(
        s.note("x_refused", count=grouped(r["hits"]), rule=name(r["rule"]), of=grouped(r["in"]))
        for r in refused
    )
    groups: list[list[object]] = [
        [
            s.step_name(g["step"]),
            Html(f"<code>{name(g['error'])}</code>"),
            name(g["parser"]),
            name(g["media_type"]),
            name(g["host"]),
            grouped(g["count"]),
            esc(g["example"], 300),
        ]
        for g in data["dead_letters"]
    ]
    dead = ""
    if groups:
        head = [say(k) for k in ("step", "error", "parser", "media_type", "host", "count", "example")]
        dead = s.part("dead", table(head, groups, "tttttnt"))
    if not blocks and not dead:
        return s.section("s_failures", s.note("none_failed"), told)
    two = f'<div class="two">{blocks}</div>'
    return s.section("s_failures", s.note("x_hosts"), told, two, dead, extra="long")


def _failed_by(key: str, rows: list[Data]) -> str:
    """Dead records by parser, media type or host; by host also those that gave no text."""
    by_host = key == "host"
    shown: list[list[object]] = []
    for r in rows:
        if not r["failed"] and key != "parser":
            continue
        refused = r.get("rejected", 0)
        parts = [("deadc", r["failed"] - refused), ("removed", refused), ("ghost", r["total"] - r["failed"])]
        cells: list[object] = [name(r["name"]), bar(parts, r["total"]), grouped(r["failed"] - refused)]
        cells += [grouped(refused)] if by_host else []
        shown.append([*cells, grouped(r["total"]), percent(r["failed"], r["total"])])
    if not shown:
        return ""
    head = [Html(""), Html(""), say("dead_short"), *([say("no_text")] if by_host else []), say("of")]
    return s.part(key, table([*head, say("share")], shown, "tb" + "n" * (len(head) - 1)))


def _throughput(data: Data) -> Html:
    rows: list[list[object]] = [
        [
            s.step_name(t["step"]),
            s.step_name(t["layer"]),
            grouped(t["in"]),
            grouped(t["kept"]),
            grouped(t["rejected"]),
            grouped(t["dead"]),
            f"{t['seconds_tasks']:,.1f}",
            f"{t['seconds_cpu']:,.1f}",
            grouped(t["documents_per_second"]),
            f"{t['bytes_per_second'] / 1e6:,.1f}",
            grouped(t["tokens_per_second"]) if t["tokens_per_second"] else "–",
            f"{t['tasks']:,} ({t['tasks_skipped']:,})",
        ]
        for t in data["throughput"]
    ]
    keys = (
        "step",
        "layer",
        "in",
        "kept",
        "rejected",
        "dead_short",
        "seconds",
        "cpu_seconds",
        "docs_s",
        "mb_s",
    )
    head = [say(k) for k in (*keys, "tokens_s", "tasks")]
    return s.section("s_throughput", s.note("x_throughput"), table(head, rows, "ttnnnnnnnnnn"), extra="long")


def _settings(data: Data) -> Html:
    def listed(entries: list[Data]) -> Html:
        rows: list[list[object]] = [
            [Html(f"<code>{esc(e['key'])}</code>"), name(e["value"], 400)] for e in entries
        ]
        return table([say("key"), say("value")], rows)

    changed = [e for e in data["settings"] if e["changed"]]
    first = listed(changed) if changed else Html("")
    return s.section("s_settings", first, details(say("all"), listed(data["settings"])), extra="long")


def _versions(data: Data) -> Html:
    rows: list[list[object]] = [
        [say(v["what"]), Html(f"<code>{name(v['name'])}</code>"), name(v["version"])]
        for v in data["versions"]
    ]
    if not rows:
        return Html("")
    head = [say("what"), say("name"), say("version")]
    return s.section(
        "s_versions", details(say("show_all", count=grouped(len(rows))), table(head, rows)), extra="long"
    )


def _next(data: Data) -> Html:
    run = shlex.quote(data["run"] or "RUN")
    version = shlex.quote(data["version"])
    rule = shlex.quote(data["rules"][0]["rule"]) if data["rules"] else "RULE"
    lines = [
        ("n_audit", f"dataflow audit {run} --rule {rule} --n 50"),
        ("n_lineage", f"dataflow lineage DOC_ID --run {run}"),
        ("n_whatif", f"dataflow whatif JOB --run {run} --set {_other_bound(data)}"),
        ("n_set", f"dataflow run JOB --set {_other_bound(data)}"),
    ]
    if data.get("compacted"):
        # Rules are asked about in the runs that applied them.
        lines = [("n_lineage", f"dataflow lineage DOC_ID --run {run}")]
    if data["summary"]["dead"]:
        lines.append(("n_dead", "dataflow dead-letters list\ndataflow dead-letters retry --all"))
    if data.get("current") is False and data.get("stands", "waits") in ("waits", "held"):
        lines.append(("n_approve", f"dataflow versions approve {version}"))
    dataset = shlex.quote(data["dataset"])
    lines += [
        ("n_versions", f"dataflow versions list --dataset {dataset}\ndataflow versions show {version}"),
        ("n_verify", f"dataflow versions verify {version}"),
        ("n_report", f"dataflow report {version}"),
        ("n_doctor", "dataflow doctor"),
    ]
    shown = "".join(f"<h3>{say(key)}</h3><pre>{esc(text, 400)}</pre>" for key, text in lines)
    return s.section("s_next", s.note("x_next"), shown)


def _other_bound(data: Data) -> str:
    """A looser bound of the rule that removed most, as an example."""
    for r in data["rules"]:
        for side, factor in (("low", 0.75), ("high", 1.25)):
            if r["step"] == "filter" and r[side]:
                return shlex.quote(f"{r['setting']}.{side}={r[side] * factor:.4g}")
    return "clean.quality_rules.min_zlib_ratio=0.15"
