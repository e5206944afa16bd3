"""A fair sample of what the rules removed, with the texts: wrongly removed is worse than wrongly kept."""

from __future__ import annotations

import csv
import heapq
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.errors import ConfigError
from dataflow_ops.observe.chunks import Chunks
from dataflow_ops.observe.ids import draw_order
from dataflow_ops.observe.reader import StepReader, take_rows
from dataflow_ops.observe.removed import removed
from dataflow_ops.schema import chunk_name

if TYPE_CHECKING:
    from rich.table import Table

_Stratum = tuple[str, str]
_Pick = tuple[int, str, tuple[int, str], dict[str, Any]]
"""Draw, document id, ``(part, chunk)``, row."""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One removed document.

    Attributes:
        doc_id: 32 hex digits.
        step: which step removed it.
        rule: which rule; ``exact`` and ``near`` for duplicates, ``language`` for label's.
        gate: L1 or L2, else ``""``.
        value: what was measured (similarity for duplicates), ``bound`` and ``side`` of the rule.
        source_id: source, with ``path``, ``position`` and ``url``.
        detail: a sentence more, where the step gave one.
        text: beginning of its text; ``""`` where parse found none.
        survivor_id: of duplicates, with the beginning of ``survivor_text``, ``survivor_path``, where it lies
            (``survivor_place``: chunk, row), and the ``similarity``. Text and path are empty where its chunk
            was not at hand.

    """

    doc_id: str
    step: str
    rule: str
    source_id: str
    gate: str = ""
    value: float | None = None
    bound: float | None = None
    side: str = ""
    path: str = ""
    position: int = -1
    url: str = ""
    detail: str = ""
    text: str = ""
    survivor_id: str = ""
    survivor_text: str = ""
    similarity: float | None = None
    survivor_path: str = ""
    survivor_place: tuple[str, int] | None = field(default=None, metadata={"for": "programs"})


@dataclass(slots=True)
class _Reservoirs:
    """The smallest draws of each stratum; never more than any allotment of ``n`` could ask for."""

    n: int
    strata: dict[_Stratum, list[_Pick]] = field(default_factory=dict)

    def offer(self, stratum: _Stratum, picks: list[_Pick]) -> None:
        merged = heapq.nsmallest(self.n, self.strata.get(stratum, []) + picks, key=_draw)
        self.strata[stratum] = merged

    def prune(self) -> None:
        """Forget what no allotment can reach: all other strata get a turn before one gets its second."""
        sources: dict[str, int] = {}
        for rule, _ in self.strata:
            sources[rule] = sources.get(rule, 0) + 1
        for stratum, picks in self.strata.items():
            most = self.n - (len(sources) - 1) - (sources[stratum[0]] - 1)
            del picks[max(1, most) :]

    def allot(self) -> list[_Pick]:
        """``n`` picks: turns go round the rules, inside a rule round its sources."""
        by_rule: dict[str, Iterator[_Pick]] = {}
        for rule in sorted({rule for rule, _ in self.strata}):
            queues = [self.strata[key] for key in sorted(self.strata) if key[0] == rule]
            # Where a rule has more sources than turns, the draw decides which sources are seen.
            queues.sort(key=lambda queue: _draw(queue[0]))
            by_rule[rule] = _rounds(queues)
        out: list[_Pick] = []
        while by_rule and len(out) < self.n:
            for rule in list(by_rule):
                pick = next(by_rule[rule], None)
                if pick is None:
                    del by_rule[rule]
                elif len(out) < self.n:
                    out.append(pick)
        return out


def sample(
    reader: StepReader, rule: str | None = None, n: int = 50, seed: int = 0, max_chars: int = 2000
) -> list[AuditRow]:
    """Draw what was removed, evenly over rules and, inside a rule, over sources.

    The draw takes the smallest hash(seed, doc_id) of each stratum, so it does not depend on the order of
    chunks or rows. Memory is bounded by ``n`` squared small rows and one chunk's texts.

    Args:
        reader: where outputs are read.
        rule: only this rule; ``None``: all.
        n: rows at most.
        seed: another seed draws other documents.
        max_chars: characters of each text that are kept.

    Returns:
        Rows in order of rule, source and draw. Empty where nothing was removed.

    Raises:
        ConfigError: ``n`` is below 1.

    """
    return sample_all([(reader, None)], rule, n, seed, max_chars)


def sample_all(
    parts: Sequence[tuple[StepReader, pa.Array | None]],
    rule: str | None = None,
    n: int = 50,
    seed: int = 0,
    max_chars: int = 2000,
) -> list[AuditRow]:
    """:func:`sample` over several runs together, as if one had removed it all.

    Args:
        parts: where outputs are read, with the ids of documents that others of the runs have replaced.
        rule: only this rule; ``None``: all.
        n: rows at most.
        seed: another seed draws other documents.
        max_chars: characters of each text that are kept.

    Returns:
        Rows in order of rule, source and draw.

    Raises:
        ConfigError: ``n`` is below 1.

    """
    if n < 1:
        raise ConfigError(f"n = {n}: draw at least one document")
    # The names that dedup counts its hits under mean the same.
    rule = {"exact_duplicate": "exact", "near_duplicate": "near"}.get(rule or "", rule)
    reservoirs = _Reservoirs(n)
    every = [Chunks(reader) for reader, _ in parts]
    for place, (_, hidden) in enumerate(parts):
        _draw_from(every[place], place, hidden, rule, n, seed, reservoirs)
    picks = reservoirs.allot()
    texts = [_texts(every[i], [p for p in picks if p[2][0] == i], max_chars) for i in range(len(parts))]
    picks.sort(key=lambda p: (p[3]["rule"] or "", p[3]["source_id"] or "", *_draw(p)))
    return [_row(pick, texts[pick[2][0]]) for pick in picks]


def _draw_from(
    chunks: Chunks,
    place: int,
    hidden: pa.Array | None,
    rule: str | None,
    n: int,
    seed: int,
    reservoirs: _Reservoirs,
) -> None:
    """Offer what one run removed."""
    for chunk in chunks.names():
        for table in removed(chunks, chunk, rule):
            if hidden is not None and len(hidden):
                table = table.filter(pc.invert(pc.is_in(table["doc_id"], hidden)))
            draws = draw_order(table["doc_id"], seed)
            strata = np.array(
                [f"{r or ''}\x00{s or ''}" for r, s in _pairs(table["rule"], table["source_id"])],
                dtype=object,
            )
            for name in sorted(set(strata)):
                rows = np.flatnonzero(strata == name)
                # Ties on the draw are broken by id below: keep all of the last draw's.
                if len(rows) > n:
                    limit = np.partition(draws[rows], n - 1)[n - 1]
                    rows = rows[draws[rows] <= limit]
                found = table.take(rows).to_pylist()
                picks = [
                    (int(draws[i]), row["doc_id"].hex(), (place, chunk), row)
                    for i, row in zip(rows, found, strict=True)
                ]
                r, _, s = name.partition("\x00")
                reservoirs.offer((r, s), picks)
        reservoirs.prune()


def _pairs(rules: Any, sources: Any) -> Iterator[tuple[str | None, str | None]]:
    return zip(rules.to_pylist(), sources.to_pylist(), strict=True)


def _draw(pick: _Pick) -> tuple[int, str]:
    return (pick[0], pick[1])


def _rounds(queues: list[list[_Pick]]) -> Iterator[_Pick]:
    for i in range(max(map(len, queues))):
        for queue in queues:
            if i < len(queue):
                yield queue[i]


def _texts(chunks: Chunks, picks: Sequence[_Pick], max_chars: int) -> dict[tuple[str, int], dict[str, Any]]:
    """Texts and places of documents and survivors, by ``kind/chunk`` and row."""
    texts: dict[tuple[str, int], dict[str, Any]] = {}
    wanted: dict[tuple[str, str], set[int]] = {}
    for _, _, (_, chunk), row in picks:
        kind = "rejects" if row["step"] == "parse" else "text"
        wanted.setdefault((chunk, kind), set()).add(row["row"])
        if row["survivor_row"] is not None:
            wanted.setdefault((chunk_name(row["survivor_chunk"]), "text"), set()).add(row["survivor_row"])
    for (chunk, kind), rows in sorted(wanted.items()):
        output = chunks.index("parse", kind).get(chunk)
        if output is None:
            # A survivor of the version that an incremental run builds on, as long as that is kept.
            output = chunks.index("base", "text").get(chunk)
        if output is None:
            continue
        columns = ("path", "position", "url", *(("text", "doc_id") if kind == "text" else ()))
        at = sorted(rows)
        for i, found in zip(at, take_rows(chunks.reader, output, at, columns).to_pylist(), strict=True):
            found["text"] = (found.get("text") or "")[:max_chars]
            texts[f"{kind}/{chunk}", i] = found
    return texts


def _row(pick: _Pick, texts: dict[tuple[str, int], dict[str, Any]]) -> AuditRow:
    _, doc_id, (_, chunk), row = pick
    kind = "rejects" if row["step"] == "parse" else "text"
    own = texts.get((f"{kind}/{chunk}", row["row"]), {})
    one = AuditRow(
        doc_id=doc_id,
        step=row["step"],
        rule=row["rule"] or "",
        source_id=row["source_id"] or "",
        gate=row["gate"] or "",
        value=row["value"],
        bound=row["bound"],
        side=row["side"] or "",
        path=own.get("path") or "",
        position=own.get("position", -1),
        url=own.get("url") or "",
        detail=row["detail"] or "",
        text=own.get("text") or "",
    )
    if row["survivor_id"] is None:
        return one
    survivor = texts.get((f"text/{chunk_name(row['survivor_chunk'])}", row["survivor_row"]), {})
    # Rows of another run's chunk of the same name would be another document: believe the id only.
    same = survivor.get("doc_id") == row["survivor_id"]
    return replace(
        one,
        survivor_id=row["survivor_id"].hex(),
        survivor_text=survivor["text"] if same else "",
        survivor_path=(survivor.get("path") or "") if same else "",
        survivor_place=None
        if row["survivor_row"] is None
        else (chunk_name(row["survivor_chunk"]), row["survivor_row"]),
        similarity=row["similarity"],
    )


def to_csv(rows: Sequence[AuditRow]) -> str:
    """CSV with a header line. A text cell that a spreadsheet would run as a formula gets a leading ``'``."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [f.name for f in fields(AuditRow) if not f.metadata]
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(getattr(row, name)) for name in names])
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return "" if value is None else value


def to_table(
    rows: Sequence[AuditRow], chars: int = 240, said: Mapping[tuple[str, str], str] | None = None
) -> Table:
    """A table for the console; texts are cut to ``chars`` and shown literally, without markup.

    Two columns: what was removed and why, and the text, which gets most of the width.

    Args:
        rows: to show.
        chars: of each text.
        said: ``(document id, rule)`` → what a person said of it.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(show_lines=True, expand=True)
    table.add_column("removed", ratio=2, overflow="fold")
    table.add_column("text", ratio=5, overflow="fold")
    for row in rows:
        gate = f" ({row.gate})" if row.gate else ""
        where = f"{row.source_id}: {row.url or row.path}"
        word = (said or {}).get((row.doc_id, row.rule), "")
        lines = [line for line in (row.rule + gate, _comparison(row), row.doc_id[:12], where, word) if line]
        text = _one_line(row.text or row.detail, chars)
        if row.survivor_id:
            kept = _one_line(row.survivor_text, chars)
            text += f"\n= {row.survivor_id[:12]}: " + (
                "the same text"
                if row.rule == "exact" and kept == text
                else kept or "(not among these outputs)"
            )
        table.add_row(Text(_printable("\n".join(lines))), Text(text))
    return table


def _comparison(row: AuditRow) -> str:
    """``0.1 < 0.2``: the value and the bound that it broke. Only filter names the side; else they tell."""
    if row.value is None:
        return ""
    if row.bound is None:
        return f"{row.value:.4g}"
    below = row.side == "low" if row.side else row.value < row.bound
    return f"{row.value:.4g} {'<' if below else '>'} {row.bound:.4g}"


def _one_line(text: str, chars: int) -> str:
    flat = " ".join(text[: 4 * chars].split())
    return _printable(flat[:chars] + ("…" if len(flat) > chars else ""))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
