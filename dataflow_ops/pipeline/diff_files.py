"""What became of documents' files between two versions: not listed, other bytes, or the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.media import PARQUET
from dataflow_ops.observe.diff import CAUSE_OF_LAYER, PARSER, SOURCES, UNKNOWN
from dataflow_ops.pipeline.flow import STEPS
from dataflow_ops.pipeline.version_reader import OpenVersion

Parts = list[tuple[int, int, int, str, str]]
"""``(start, end, size, sha256, media type)`` of each part of a file, ascending."""

_GONE = "the outputs that would tell are no longer kept"


@dataclass(frozen=True, slots=True)
class Told:
    """The cause of one document's move, with a sentence."""

    cause: str
    why: str


def file_names(table: pa.Table) -> Any:
    """``source NUL path`` of each row, as one string column."""
    return pc.binary_join_element_wise(table["source_id"], table["path"], "\x00")


class Files:
    """The files of two versions.

    Args:
        a: one version.
        b: the other.
    """

    def __init__(self, a: OpenVersion, b: OpenVersion) -> None:
        self._sides = (a, b)
        parts = [part for side in self._sides for part in side.parts]
        self.kept = all(part.has("fetch", "files") or not part.lineage for part in parts)
        self._lost = tuple(_lost_chunks(side) for side in self._sides)
        self._sources = tuple({s["source_id"]: s for s in side.manifest["sources"]} for side in self._sides)
        parsers = [
            next((s["fingerprint"] for s in side.manifest["steps"] if s["name"] == "parse"), "")
            for side in self._sides
        ]
        self._same_parser = parsers[0] == parsers[1]

    def tell(self, moved: pa.Table) -> list[Told]:
        """The cause of each row of ``MOVED``; memory grows with their number.

        Args:
            moved: rows that no verdict explains: absent, refused by parse, or with another text.
        """
        names = file_names(moved)
        listed = [self._parts(side, names) for side in self._sides] if self.kept else []
        columns = ("change", "source_id", "chunk", "other_fate", "other_step", "other_rule")
        rows = moved.select(columns).to_pylist()
        found = []
        for row, name in zip(rows, names.to_pylist(), strict=True):
            # An added document is exported by B, so it is A that must say why not; else B.
            other = 0 if row["change"] == "added" else 1
            found.append(self._one(row, name, other, listed))
        return found

    def _one(
        self, row: Mapping[str, Any], name: str, other: int, listed: Sequence[Mapping[str, Parts]]
    ) -> Told:
        label = "AB"[other]
        step = self._lost[other].get(row["chunk"]) if row["other_fate"] is None else None
        if step is not None:
            layer = next(layer for known, layer, _ in STEPS if known == step)
            return Told(CAUSE_OF_LAYER[layer], f"its chunk was given up in {label}, in step {step}")
        if not self.kept:
            return self._by_manifest(row["source_id"], other)
        own, others = (listed[side].get(name, []) for side in (1 - other, other))
        if not others:
            return Told(SOURCES, f"its file is not among those that {label} read")
        if own == others:
            return Told(PARSER, _parsed(row, label))
        if [p[0] for p in own] != [p[0] for p in others]:
            if sum(p[2] for p in own) == sum(p[2] for p in others):
                return Told(PARSER, _parsed(row, label))
            if any(p[4] == PARQUET for p in own):
                return Told(UNKNOWN, f"its file was cut into other parts in {label}, which can't be compared")
        return Told(SOURCES, f"its file holds other bytes in {label}")

    def _by_manifest(self, source_id: str, other: int) -> Told:
        """From the digests of whole sources, which manifests keep."""
        label = "AB"[other]
        if any(side.record.base is not None for side in self._sides):
            return Told(UNKNOWN, _GONE)
        own, others = (self._sources[side].get(source_id) for side in (1 - other, other))
        if others is None:
            return Told(SOURCES, f"{label} has no source '{source_id}'")
        if own is not None and own["sha256"] == others["sha256"]:
            return Told(PARSER, f"its source is the same in {label}; {_GONE}")
        if self._same_parser:
            return Told(SOURCES, f"its source changed and the parser did not; {_GONE}")
        return Told(UNKNOWN, _GONE)

    @staticmethod
    def _parts(side: OpenVersion, names: Any) -> dict[str, Parts]:
        wanted = pc.unique(names)
        found: dict[str, Parts] = {}
        columns = ("source_id", "path", "start", "end", "size", "sha256", "media_type")
        for version in side.parts[::-1]:
            # As the uppermost version has it that read it.
            known = set(found)
            for _, output in version.reader.outputs("fetch", "files"):
                if not output.rows:
                    continue
                table = version.reader.read(output, columns=columns)
                mine = file_names(table)
                mask = pc.is_in(mine, value_set=wanted)
                rows = table.filter(mask).to_pylist()
                for name, row in zip(mine.filter(mask).to_pylist(), rows, strict=True):
                    part = (row["start"], row["end"], row["size"], row["sha256"], row["media_type"])
                    if name not in known:
                        found.setdefault(name, []).append(part)
        for parts in found.values():
            parts.sort()
        return found


def _parsed(row: Mapping[str, Any], label: str) -> str:
    if row["other_fate"] is None:
        return f"the same file gives no such record in {label}"
    if row["other_step"] == "parse":
        return f"the same record gives no text in {label}: {row['other_rule']}"
    return f"the same record gives another text in {label}"


def _lost_chunks(side: OpenVersion) -> dict[str, str]:
    """Chunk that was given up -> the step."""
    return {
        chunk: step
        for part in side.parts
        for step, _, by in reversed(STEPS)
        if by == "chunk"
        for chunk in side.state.partitions_in_state(part.run.run_id, [step], "DEAD")
    }
