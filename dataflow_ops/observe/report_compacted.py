"""The report of a compacted version: what it holds, and which versions it was put together from.

Its run read no records and removed nothing, so what the run counted says nothing about the version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dataflow_ops.observe.markup import Html, both, compact, grouped, name, say, table
from dataflow_ops.observe.report_sections import note, section
from dataflow_ops.observe.report_tables import top

Data = Mapping[str, Any]
Cells = Mapping[tuple[str, str], tuple[int, int, int]]


def compacted_data(
    data: Data, manifest: Mapping[str, Any], cells: Cells, versions: Sequence[Data]
) -> dict[str, Any]:
    """A report's data with the numbers of the version instead of those of its run.

    Args:
        data: what ``build_report_data`` gathered of the compaction's run: times, settings, versions of steps.
        manifest: of the compacted version.
        cells: ``(domain, language)`` -> ``(rows, tokens, documents)`` of all its rows.
        versions: those that it was put together from, the lowest first: ``version``, and ``documents`` and
            ``shards`` of its own.
    """
    totals, dead = manifest["totals"], manifest["dead_letters"]
    entered = next(step["in"] for step in manifest["steps"] if step["name"] == "compact")
    summary = {
        **data["summary"],
        "records_in": entered,
        "documents_out": totals["documents"],
        "tokens_out": totals["tokens"],
        "tokens_estimated": manifest["tokens_estimated"],
        "dead": dead,
        "dead_share": dead / entered if entered else 0.0,
        "shards": len(manifest["shards"]),
    }
    shares: dict[str, Any] = {**data["shares"]}
    for at, label in enumerate(("domain", "language")):
        sums: dict[str, list[int]] = {}
        for key, (_, tokens, documents) in cells.items():
            pair = sums.setdefault(key[at], [0, 0])
            pair[0] += documents
            pair[1] += tokens
        shares[label] = top(sums)
    return {
        **data,
        "summary": summary,
        "shares": shares,
        "basis": "exported",
        "compacted": {"version": manifest["compacted"]["version"], "versions": list(versions)},
    }


def lead(data: Data) -> Html:
    """The sentence under the headline."""
    summary, made = data["summary"], data["compacted"]
    return say(
        "outcome_compacted",
        documents=grouped(summary["documents_out"]),
        tokens=compact(summary["tokens_out"]),
        shards=grouped(summary["shards"]),
        count=grouped(len(made["versions"])),
        version=name(made["version"]),
    )


def tiles(data: Data) -> list[tuple[str, Html]]:
    """The big numbers."""
    summary = data["summary"]
    return [
        ("documents", both(*compact(summary["documents_out"]))),
        ("tokens_out", both(*compact(summary["tokens_out"]))),
        ("shards", both(*compact(summary["shards"]))),
        ("dead", both(*compact(summary["dead"]))),
    ]


def versions_section(data: Data) -> Html:
    """The versions that it was put together from."""
    if not data.get("compacted"):
        return Html("")
    rows: list[list[object]] = [
        [Html(f"<code>{name(one['version'])}</code>"), grouped(one["documents"]), grouped(one["shards"])]
        for one in data["compacted"]["versions"]
    ]
    head = [say("version"), say("own_documents"), say("shards")]
    return section("s_compacted", note("x_compacted"), table(head, rows, "tnn"))
