"""Counts and examples of what other bounds would change, gathered chunk by chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels.arrow import F64, I64
from dataflow_ops.layers.filter.rule import ActiveRule, broken_bound
from dataflow_ops.observe.ids import id_matrix

KEPT = ""
"""Stands for a rule where nothing refuses a document."""
EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class Before:
    """What the run decided; ``rows`` are those it refused, ascending, the other arrays go with them."""

    rows: I64
    rules: npt.NDArray[np.object_]
    values: F64
    bounds: F64
    sides: npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class After:
    """What the other bounds decide of every document of a chunk: rule -1 keeps it."""

    rule: I64
    value: F64
    kinds: I64


@dataclass(frozen=True, slots=True)
class Pick:
    """A document that would be gained or lost."""

    change: Literal["gained", "lost"]
    doc_id: bytes
    chunk: str
    row: int
    rule: str
    side: str
    value: float
    old_bound: float
    new_bound: float


class Tally:
    """Sums over chunks; memory grows with rules, domains and languages, not with documents.

    Args:
        old: rules of the run.
        new: rules that are asked about.

    """

    def __init__(self, old: Sequence[ActiveRule], new: Sequence[ActiveRule]) -> None:
        self._old = {active.rule.name: active for active in old}
        self._new = {active.rule.name: active for active in new}
        # A run of older code may name rules that are none any more.
        self._names = [KEPT, *dict.fromkeys([*self._old, *self._new])]
        self._codes = {name: code for code, name in enumerate(self._names)}
        self._of_new = np.array([self._codes[KEPT], *(self._codes[a.rule.name] for a in new)], np.int64)
        self._moves: Counter[tuple[str, str]] = Counter()
        self._groups: dict[tuple[str, str, bool], I64] = {}
        self._picks: dict[tuple[str, str], list[Pick]] = {}
        self.documents = 0
        self.measured = 0

    def add(
        self,
        chunk: str,
        domain: str,
        languages: tuple[Sequence[str], I64, npt.NDArray[np.bool_]],
        before: Before,
        after: After,
        doc_ids: pa.ChunkedArray | None,
    ) -> None:
        """Count one chunk.

        Args:
            chunk: its id.
            domain: what the mix counts its source as.
            languages: names, the code of each document, and whether it is a label (else a script).
            before: what the run decided.
            after: what is decided now.
            doc_ids: of all documents, where some are gained or lost.

        """
        n = after.rule.size
        for name in set(before.rules.tolist()) - self._codes.keys():
            self._codes[name] = len(self._names)
            self._names.append(name)
        was = np.zeros(n, np.int64)
        was[before.rows] = [self._codes[name] for name in before.rules]
        now = self._of_new[after.rule + 1]
        self.documents += n
        width = len(self._names)
        pairs, counts = np.unique(was * width + now, return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            self._moves[self._names[pair // width], self._names[pair % width]] += count
        gained, lost = (was > 0) & (now == 0), (was == 0) & (now > 0)
        self._group(
            domain, languages, np.column_stack([np.ones(n, np.bool_), was == 0, now == 0, gained, lost])
        )
        if doc_ids is not None:
            self._draw(chunk, np.flatnonzero(gained), np.flatnonzero(lost), before, after, doc_ids)

    def _group(
        self,
        domain: str,
        languages: tuple[Sequence[str], I64, npt.NDArray[np.bool_]],
        marks: npt.NDArray[np.bool_],
    ) -> None:
        names, codes, labelled = languages
        for by_label in (False, True):
            rows = np.flatnonzero(labelled == by_label)
            sums = [np.bincount(codes[rows], marks[rows, i], len(names)) for i in range(marks.shape[1])]
            table = np.column_stack(sums).astype(np.int64)
            for code in np.flatnonzero(table[:, 0]).tolist():
                key = (domain, names[code], by_label)
                self._groups[key] = self._groups.get(key, 0) + table[code]

    def _draw(
        self, chunk: str, gained: I64, lost: I64, before: Before, after: After, doc_ids: pa.ChunkedArray
    ) -> None:
        """Offer the first documents by id of each rule and change: ids are hashes, so it is a fair draw."""
        ids, _ = id_matrix(doc_ids)
        order = np.ascontiguousarray(ids[:, :8]).view(">u8").ravel()
        at = np.searchsorted(before.rows, gained)
        for name in sorted(set(before.rules[at].tolist())):
            mine = gained[before.rules[at] == name]
            for row in mine[np.argsort(order[mine])[:EXAMPLES]].tolist():
                place = int(np.searchsorted(before.rows, row))
                side = str(before.sides[place])
                bound = self._bound(self._new, name, int(after.kinds[row]), side)
                value, old = float(before.values[place]), float(before.bounds[place])
                self._offer(Pick("gained", ids[row].tobytes(), chunk, row, name, side, value, old, bound))
        names = list(self._new)
        for index in np.unique(after.rule[lost]).tolist():
            mine = lost[after.rule[lost] == index]
            for row in mine[np.argsort(order[mine])[:EXAMPLES]].tolist():
                kind, value = int(after.kinds[row]), float(after.value[row])
                bound, side = broken_bound(self._new[names[index]], kind, value)
                old = self._bound(self._old, names[index], kind, side)
                self._offer(
                    Pick("lost", ids[row].tobytes(), chunk, row, names[index], side, value, old, bound)
                )

    @staticmethod
    def _bound(rules: dict[str, ActiveRule], name: str, kind: int, side: str) -> float:
        """A rule's bound on one side for one kind of text; NaN where it does not judge or has none."""
        active = rules.get(name)
        if active is None or not active.judges[kind]:
            return float("nan")
        bound = float(active.low[kind] if side == "low" else active.high[kind])
        return bound if np.isfinite(bound) else float("nan")

    def _offer(self, pick: Pick) -> None:
        found = self._picks.setdefault((pick.change, pick.rule), [])
        found.append(pick)
        found.sort(key=lambda p: p.doc_id)
        del found[EXAMPLES:]

    @property
    def examples(self) -> list[Pick]:
        """Twenty documents at most; turns go round changes and rules. In order of change, rule and id."""
        queues = [list(self._picks[key]) for key in sorted(self._picks)]
        chosen: list[Pick] = []
        while any(queues) and len(chosen) < EXAMPLES:
            for queue in queues:
                if queue and len(chosen) < EXAMPLES:
                    chosen.append(queue.pop(0))
        return sorted(chosen, key=lambda p: (p.change, p.rule, p.doc_id))

    def counts(self) -> dict[str, int]:
        """Documents in all, kept before and after, gained and lost, refused both times by another rule."""
        found = Counter[str]()
        for (was, now), count in self._moves.items():
            found["kept_before"] += count * (was == KEPT)
            found["kept_after"] += count * (now == KEPT)
            found["gained"] += count * (was != KEPT and now == KEPT)
            found["lost"] += count * (was == KEPT and now != KEPT)
            found["other_rule"] += count * (was not in (KEPT, now) and now != KEPT)
        keys = ("kept_before", "kept_after", "gained", "lost", "other_rule")
        return {
            "documents": self.documents,
            **{key: found[key] for key in keys},
            "measured_anew": self.measured,
        }

    def rules(self) -> list[dict[str, Any]]:
        """Documents that each rule refuses first, before and after, most moved first."""
        before, after = Counter[str](), Counter[str]()
        for (was, now), count in self._moves.items():
            before[was] += count
            after[now] += count
        names = [name for name in self._names if name != KEPT and (before[name] or after[name])]
        names.sort(key=lambda name: (-abs(after[name] - before[name]), name))
        return [{"rule": name, "before": before[name], "after": after[name]} for name in names]

    def moves(self) -> list[dict[str, Any]]:
        """From which rule to which (null: kept), where they differ, most documents first."""
        found = [(count, was, now) for (was, now), count in self._moves.items() if was != now]
        found.sort(key=lambda move: (-move[0], move[1], move[2]))
        return [{"from": was or None, "to": now or None, "documents": count} for count, was, now in found]

    def groups(self) -> list[dict[str, Any]]:
        """By domain and language (``by``: label or script), most changed first."""
        rows = []
        for (domain, language, by_label), sums in self._groups.items():
            documents, before, after, gained, lost = (int(value) for value in sums)
            rows.append(
                {
                    "domain": domain,
                    "language": language,
                    "by": "label" if by_label else "script",
                    "documents": documents,
                    "kept_before": before,
                    "kept_after": after,
                    "gained": gained,
                    "lost": lost,
                }
            )
        return sorted(rows, key=lambda r: (-(r["gained"] + r["lost"]), r["domain"], r["language"], r["by"]))
