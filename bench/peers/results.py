"""Rows to ``RESULTS.md`` and its plot."""

from __future__ import annotations

import os
import platform
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.peers.environments import LEFT_OUT, PEERS, versions_of
from bench.peers.notes import NOTES
from bench.peers.plot import Bar, draw
from bench.peers.stages import OURS, STAGES, Entry, Stage

Row = dict[str, Any]
BARS = {"minhash": 20, "repetition": 20}
"""How many times the CPU time of the best peer must be ours, by stage."""


class Report(NamedTuple):
    """The page and the plot that it shows."""

    text: str
    plot: str


class Line(NamedTuple):
    """Medians of one tool in one stage, per document; what the first round decided."""

    title: str
    peer: str
    part: str
    rounds: int
    work: float
    spread: tuple[float, float]
    whole: float
    peak_mb: float
    judged: Row


def report(rows: list[Row], parts: dict[str, Row]) -> Report:
    """The results on each part of the corpus that our newest version was measured on, the largest first."""
    good = [row for row in rows if not row.get("failed")]
    mine = [row for row in good if row["peer"] == OURS]
    if not mine:
        return Report("# Against other tools\n\nNothing has been measured yet.\n", draw([]))
    version = mine[-1]["version"]
    at = {row["documents_of"] for row in mine if row["version"] == version} & parts.keys()
    ordered = sorted(at, key=lambda of: -parts[of]["all"])
    text = [*_head(version, rows), ""]
    widest: dict[str, tuple[Row, list[Line]]] = {}
    for of in ordered:
        here = [r for r in good if r["documents_of"] == of and (r["peer"] != OURS or r["version"] == version)]
        lines = {stage.name: _lines(stage, here) for stage in STAGES}
        text += _part(parts[of], lines)
        for name, found in lines.items():
            if len(found) > len(widest.get(name, ({}, []))[1]):
                widest[name] = parts[of], found
    bars = [
        Bar(f"{stage.title}, {about[stage.documents]:,} documents", line.title, line.work, line.peer == OURS)
        for stage in STAGES
        for about, found in [widest.get(stage.name, ({stage.documents: 0}, []))]
        for line in found
    ]
    text += ["## What is not comparable, and why", "", *(f"- {note}" for note in NOTES), ""]
    text += ["Not run:", "", *(f"- {name}: {why}." for name, why in LEFT_OUT.items())]
    text += [f"- {line}" for line in _failures(rows, good)]
    return Report("\n".join(text) + "\n", draw(bars))


def _head(version: str, rows: Sequence[Row]) -> list[str]:
    loads = [row["load"] for row in rows]
    versions = "; ".join(", ".join(versions_of(peer)) for peer in PEERS if _installed(peer))
    return [
        "# Against other tools",
        "",
        "Made by `python -m bench.peers`: the same documents, the same core, in turn; medians.",
        "",
        "![CPU time per document and stage](peers/results.svg)",
        "",
        f"Machine: {_cpu()}, {os.cpu_count()} cores, {platform.system()} {platform.release()},"
        f" Python {platform.python_version()}; load before the runs {min(loads):.1f} to {max(loads):.1f}.",
        f"Ours: {version}. Theirs: {versions}.",
        "",
        "**work** is CPU time from the first document to the last decision: for ours what all tasks of the"
        " layer took in the engine, for theirs from the moment that imports (and, where the tool loads first,"
        " loading) are over. **whole** is CPU time of all processes, start and imports included; ours adds"
        " planning, state and the worker's start, theirs loading. Both are microseconds per document."
        " Nobody's writing of the surviving texts is in **work**. **peak** is the resident memory of the"
        " largest process.",
    ]


def _part(about: Row, lines: dict[str, list[Line]]) -> list[str]:
    mean = about["characters"] / about["all"]
    text = [
        f"## {about['all']:,} documents",
        "",
        f"{about['bytes'] / 1e6:,.0f} MB, {mean:,.0f} characters on average;"
        f" {about['english']:,} documents are English.",
        "",
    ]
    for stage in STAGES:
        found = lines[stage.name]
        mine = [line for line in found if line.peer == OURS]
        theirs = [line for line in found if line.peer != OURS]
        if mine and theirs:
            text += _stage(stage, mine, theirs)
    return text


def _stage(stage: Stage, mine: list[Line], theirs: list[Line]) -> list[str]:
    first = mine[0]
    text = [
        f"### {stage.title}",
        "",
        "| tool | work | (lowest to highest) | × ours | whole | × ours | peak MB | rounds |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for line in (*mine, *theirs):
        low, high = line.spread
        text.append(
            f"| {line.title} | {_us(line.work)} | {_us(low)} to {_us(high)} | {line.work / first.work:,.1f} |"
            f" {_us(line.whole)} | {line.whole / first.whole:,.1f} | {line.peak_mb:,.0f} | {line.rounds} |"
        )
    text.append("")
    if stage.name in BARS:
        for one in mine:
            text += [_of(one, mine) + _bar(BARS[stage.name], one, theirs), ""]
    text += _duplicates(mine, theirs) if stage.dedup else _refusals([*mine, *theirs])
    return text


def _of(line: Line, mine: Sequence[Line]) -> str:
    """Which of our lines a sentence is about, where there are several."""
    return f"**{line.title}**. " if len(mine) > 1 else ""


def _bar(bar: int, mine: Line, others: Sequence[Line]) -> str:
    whole = [line for line in others if not line.part]
    said = []
    if whole:
        best = min(whole, key=lambda line: line.work)
        times = best.work / mine.work
        said.append(
            f"Best peer: {best.title}, {times:,.1f} × ours ({_verdict(times >= bar)}, the bar is {bar} ×)."
        )
    for part in dict.fromkeys(line.part for line in others if line.part):
        best = min((line for line in others if line.part == part), key=lambda line: line.work)
        said.append(f"Best that is {part}: {best.title}, {best.work / mine.work:,.1f} × ours.")
    return " ".join(said)


def _duplicates(mine: Sequence[Line], theirs: Sequence[Line]) -> list[str]:
    ours, others = ([line for line in lines if line.judged] for lines in (mine, theirs))
    if not ours:
        return []
    judged = [*ours, *others]
    labels = sorted({label for line in judged for label in line.judged["labels"]}, key=_by_language_last)
    copies = {label: ours[0].judged["labels"].get(label, {}).get("copies", 0) for label in labels}
    text = [
        "Copies found, in per cent: in one group with what they were made from / one of the two gone."
        " **unlike**: removed documents whose survivor is less than 0.8 similar to them, of those checked.",
        "",
        "| tool | " + " | ".join(f"{label} ({copies[label]})" for label in labels) + " | removed | unlike |",
        "|---|" + "---:|" * (len(labels) + 2),
    ]
    for line in judged:
        cells = [_found(line.judged["labels"].get(label, {})) for label in labels]
        checked = line.judged.get("checked")
        wrong = "–" if checked is None else f"{line.judged['unlike']:,} of {checked:,}"
        text.append(f"| {line.title} | {' | '.join(cells)} | {line.judged['removed']:,} | {wrong} |")
    for one in ours:
        text += ["", _of(one, ours) + _recall(one, others, labels)]
    return [*text, ""]


def _by_language_last(label: str) -> tuple[bool, str]:
    return label.startswith("all "), label


def _recall(mine: Line, others: Iterable[Line], labels: Sequence[str]) -> str:
    """Whom we find as many copies as, on every label, at what ratio of cost; where a peer finds more."""
    lower, reached = [], []
    for line in others:
        before = len(lower)
        for label in labels:
            a, b = mine.judged["labels"].get(label, {}), line.judged["labels"].get(label, {})
            by = "joined" if "joined" in b else "removed"
            if b.get(by, 0) > a.get(by, 0):
                lower.append(f"{label} (ours {a.get(by, 0)}, {line.title} {b[by]} of {b['copies']})")
        if len(lower) == before:
            reached.append(f"{line.title} ({line.work / mine.work:,.1f} × ours)")
    if not lower:
        return (
            f"Recall is at or above that of every tool of this table, on every label: {', '.join(reached)}."
        )
    of = f"On every label at or above {', '.join(reached)}. " if reached else ""
    return f"{of}Recall is below a peer's on {'; '.join(lower)}."


def _found(row: Row) -> str:
    if not row or not row["copies"]:
        return "–"
    removed = f"{row['removed'] / row['copies']:.1%}"[:-1]
    return f"{row['joined'] / row['copies'] * 100:.1f} / {removed}" if "joined" in row else f"– / {removed}"


def _refusals(lines: Sequence[Line]) -> list[str]:
    judged = [line for line in lines if line.judged]
    kinds = sorted({kind for line in judged for kind in line.judged["refused"]})
    kinds = [
        k for k in kinds if k.startswith("base") or k in ("loop", "halfloop", "stuffed", "control", "punct")
    ]
    if not judged or all(line.judged["kept"] == line.judged["documents"] for line in judged):
        return []
    text = [
        "Refused, in per cent of the documents with an injected fault, and of clean ones (`base`):",
        "",
        "| tool | " + " | ".join(kinds) + " |",
        "|---|" + "---:|" * len(kinds),
    ]
    for line in judged:
        counts = [line.judged["refused"].get(kind, [0, 0]) for kind in kinds]
        cells = [f"{gone / n * 100:.1f}" if n else "–" for n, gone in counts]
        text.append(f"| {line.title} | {' | '.join(cells)} |")
    return [*text, ""]


def _lines(stage: Stage, rows: Sequence[Row]) -> list[Line]:
    """Ours first, then the peers in the order of the table."""
    by: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row["stage"] == stage.name:
            by[row["peer"], row["work"]].append(row)
    entries = (*(Entry(OURS, run.work, run.title) for run in stage.ours), *stage.peers)
    return [_line(entry, by[entry.peer, entry.work]) for entry in entries if by[entry.peer, entry.work]]


def _line(entry: Entry, rows: Sequence[Row]) -> Line:
    newest = [row for row in rows if row["version"] == rows[-1]["version"]]
    work = [row["marks"]["work"] / row["documents"] * 1e6 for row in newest]
    whole = statistics.median(row["cpu"] / row["documents"] * 1e6 for row in newest)
    judged = next((row["judged"] for row in newest if "judged" in row), {})
    peak = max(row["peak_mb"] for row in newest)
    median = statistics.median(work)
    spread = (min(work), max(work))
    return Line(entry.title, entry.peer, entry.part, len(newest), median, spread, whole, peak, judged)


def _failures(rows: Sequence[Row], good: Sequence[Row]) -> list[str]:
    ran = {(row["peer"], row["work"], row["documents_of"]) for row in good}
    failed = {
        (r["stage"], r["peer"], r["work"], r["documents_of"]): r["failed"] for r in rows if r.get("failed")
    }
    return [
        f"{peer}, {stage} ({work}): {why}."
        for (stage, peer, work, of), why in failed.items()
        if (peer, work, of) not in ran
    ]


def _us(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _verdict(ok: bool) -> str:
    return "met" if ok else "missed"


def _installed(peer: str) -> bool:
    try:
        return bool(versions_of(peer))
    except FileNotFoundError:
        return False


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
