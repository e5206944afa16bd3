"""Where something is in a version: by document id, by URL or path, or by a pasted text.

Nothing here reads the text of the corpus but that of a few candidates. An id or URL reads one column of the
version's lineage; a text reads the slices of ``sign`` that its hashes point to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.errors import CorruptOutput
from dataflow_ops.kernels import fold
from dataflow_ops.kernels.digest import leading_u64, prefix_of
from dataflow_ops.kernels.similarity import similarity
from dataflow_ops.layers.dedup import order
from dataflow_ops.layers.dedup.compare import estimate_bound
from dataflow_ops.observe.flow import DEAD_STEPS
from dataflow_ops.observe.ids import rows_with_prefix
from dataflow_ops.pipeline.probe import STATISTICS, Probe
from dataflow_ops.pipeline.version_reader import OpenVersion

CANDIDATES = 24
"""Texts that are read and compared for one query and version, the likeliest first."""

Place = tuple[str, int]
"""``(chunk, row in parse.text)``, or ``(chunk, row in lineage)`` where said so."""


@dataclass
class Found:
    """What a search came to.

    Attributes:
        rows: lineage rows by chunk.
        similar: edit similarity by lineage place, where a text was looked for.
        exact: lineage places whose key text is the one looked for.
        dead: rows of dead letters.
        texts: text by lineage place, where one had to be read anyway.
        chunks: how many chunks were looked into.
        complete: False where outputs are no longer kept, or more candidates were there than are compared.
    """

    rows: dict[str, set[int]] = field(default_factory=dict)
    similar: dict[Place, float] = field(default_factory=dict)
    exact: set[Place] = field(default_factory=set)
    dead: list[Mapping[str, Any]] = field(default_factory=list)
    texts: dict[Place, str] = field(default_factory=dict)
    chunks: int = 0
    complete: bool = True

    def add(self, chunk: str, rows: Iterable[int]) -> None:
        """Remember lineage rows."""
        for row in rows:
            self.rows.setdefault(chunk, set()).add(row)

    @property
    def count(self) -> int:
        """Documents found so far."""
        return sum(map(len, self.rows.values())) + len(self.dead)


def by_id(version: OpenVersion, prefix: str, limit: int) -> Found:
    """Documents whose id begins with hex digits; dead letters too."""
    return _by_column(version, "doc_id", lambda column: rows_with_prefix(column, prefix).tolist(), limit)


def by_url(version: OpenVersion, urls: Sequence[str], limit: int) -> Found:
    """Documents with one of these URLs; else those whose path is the first one, as far as both go.

    A path in a source has neither the source's folder before it nor what stands before that: what was typed
    may have them, or may begin further inside. Whole folder and file names are compared.
    """
    wanted = pa.array(urls, pa.string())

    def of_url(column: Any) -> list[int]:
        found: list[int] = pc.indices_nonzero(pc.is_in(column, value_set=wanted)).to_pylist()
        return found

    def of_path(column: Any) -> list[int]:
        ends = pc.or_(pc.equal(column, path), pc.ends_with(column, "/" + path))
        found: list[int] = pc.indices_nonzero(ends).to_pylist()
        return found

    def within_path(column: Any) -> list[int]:
        found: list[int] = pc.indices_nonzero(pc.is_in(column, value_set=shorter)).to_pylist()
        return found

    found = _by_column(version, "url", of_url, limit)
    if found.count or "://" in urls[0]:
        return found
    path = urls[0].replace("\\", "/").removeprefix("./").strip("/")
    names = path.split("/")
    shorter = pa.array(["/".join(names[first:]) for first in range(1, len(names))], pa.string())
    found = _by_column(version, "path", of_path, limit)
    return found if found.count or not len(shorter) else _by_column(version, "path", within_path, limit)


def by_text(version: OpenVersion, probe: Probe, limit: int) -> Found:
    """Documents with this text, or one at least as similar as the job's near copies are."""
    found = Found(chunks=len(version.lineage))
    if not version.has("sign", "keys"):
        found.complete = False
        return found
    offsets = _Offsets(version)
    for chunk, row in _equal_keys(version, probe):
        at = offsets.lineage_row(chunk, row)
        found.add(chunk, [at])
        found.exact.add((chunk, at))
        found.similar[chunk, at] = 1.0
    if found.count < limit:
        known = {(chunk, offsets.text_row(chunk, row)) for chunk, row in found.exact}
        near, cut = _near(version, probe)
        refused, more = _refused(version, probe)
        found.complete = not (cut or more)
        places = [place for place in dict.fromkeys([*near, *refused]) if place not in known]
        _compare(version, probe, places, offsets, found)
    return found


def _by_column(version: OpenVersion, column: str, rows: Any, limit: int) -> Found:
    found = Found(chunks=len(version.lineage))
    for chunk, output in version.lineage.items():
        if output.rows:
            found.add(chunk, rows(version.reader.read(output, columns=(column,))[column]))
        if found.count >= limit:
            found.complete = False
            return found
    if column != "url":
        for step in DEAD_STEPS:
            for _, output in version.reader.outputs(step, "dead"):
                if output.rows:
                    table = _read(version, output, found)
                    hits = rows(table[column]) if table is not None else []
                    found.dead += [{**row, "step": step} for row in _taken(table, hits)]
    return found


def _read(version: OpenVersion, output: Any, found: Found) -> pa.Table | None:
    try:
        return version.reader.read(output)
    except CorruptOutput:
        found.complete = False
        return None


def _taken(table: pa.Table | None, rows: Sequence[int]) -> list[dict[str, Any]]:
    taken: list[dict[str, Any]] = table.take(pa.array(rows, pa.int64())).to_pylist() if table and rows else []
    return taken


class _Offsets:
    """Lineage holds the records without text of a chunk first, then its documents in order of row."""

    def __init__(self, version: OpenVersion) -> None:
        self._lineage = version.lineage
        self._texts = dict(version.reader.outputs("parse", "text"))

    def of(self, chunk: str) -> int:
        """Records without text."""
        return self._lineage[chunk].rows - self._texts[chunk].rows

    def lineage_row(self, chunk: str, row: int) -> int:
        """Row in lineage of a row in ``parse.text``."""
        return row + self.of(chunk)

    def text_row(self, chunk: str, row: int) -> int:
        """Row in ``parse.text`` of a row in lineage; negative for records without text."""
        return row - self.of(chunk)


def _ranges(version: OpenVersion, step: str) -> int:
    """Into how many ranges a reduce is cut: each has a task, the empty ones too."""
    return sum(version.state.states_of_run(version.run.run_id).get(step, {"": 1}).values())


def _equal_keys(version: OpenVersion, probe: Probe) -> list[Place]:
    head = leading_u64(np.frombuffer(probe.sha1, np.uint8).reshape(1, -1))
    name = str(prefix_of(head, _ranges(version, "exact"))[0])
    wanted = pa.scalar(probe.sha1, pa.binary(20))
    found = []
    for chunk, output in version.reader.outputs("sign", "keys"):
        if any(part.name == name and part.rows for part in output.slices):
            table = version.reader.read(output, name, ("sha1", "row"))
            rows = table["row"].filter(pc.equal(table["sha1"], wanted))
            found += [(chunk, row) for row in rows.to_pylist()]
    return found


def _near(version: OpenVersion, probe: Probe) -> tuple[list[Place], bool]:
    """Places that share a band, the likeliest by signature first; and whether there were more."""
    if not len(probe.bands):
        return [], False
    prefixes = prefix_of(probe.bands, _ranges(version, "match"))
    wanted = {str(p): pa.array(probe.bands[prefixes == p]) for p in np.unique(prefixes)}
    signatures = dict(version.reader.outputs("sign", "signatures"))
    ranked: list[tuple[int, Place]] = []
    for chunk, output in version.reader.outputs("sign", "bands"):
        rows: set[int] = set()
        for part in output.slices:
            if part.rows and part.name in wanted:
                table = version.reader.read(output, part.name, ("band", "row"))
                mask = pc.is_in(table["band"], value_set=wanted[part.name])
                rows.update(table["row"].filter(mask).to_pylist())
        if rows:
            ranked += _agreeing(version, probe, chunk, signatures[chunk], rows)
    ranked.sort(key=lambda pair: (-pair[0], pair[1]))
    return [place for _, place in ranked[:CANDIDATES]], len(ranked) > CANDIDATES


def _agreeing(
    version: OpenVersion, probe: Probe, chunk: str, output: Any, rows: set[int]
) -> list[tuple[int, Place]]:
    """Those that are worth comparing, as dedup itself would: alike in length, and by the estimate."""
    table = version.reader.read(output, columns=("row", "shingle", "signature", "order_hi"))
    table = table.filter(pc.is_in(table["row"], value_set=pa.array(sorted(rows), pa.uint32())))
    lengths = order.key_chars(table["order_hi"].to_numpy())
    shorter = np.minimum(lengths, len(probe.key))
    least = version.settings.dedup.verify.min_similarity
    table = table.filter(pa.array(shorter >= least * np.maximum(lengths, len(probe.key)) - 1))
    bound = estimate_bound(version.settings)
    found = []
    for one in table.to_pylist():
        own = probe.signatures.get(one["shingle"])
        # Signatures of another shingle size say nothing about each other: such a pair is compared last.
        equal = 0 if own is None else int(np.count_nonzero(own == np.frombuffer(one["signature"], np.uint32)))
        if own is None or equal >= bound:
            found.append((equal, (chunk, one["row"])))
    return found


def _refused(version: OpenVersion, probe: Probe) -> tuple[list[Place], bool]:
    """Refused documents that measure the same: they have no key, because dedup never met them."""
    if not version.has("filter", "stats"):
        return [], True
    statistics = dict(version.reader.outputs("filter", "stats"))
    ranked: list[tuple[float, Place]] = []
    for chunk, output in version.reader.outputs("filter", "rejects"):
        if not output.rows:
            continue
        rows = version.reader.read(output, columns=("row",))["row"].to_numpy()
        stats = version.reader.read(statistics[chunk], columns=tuple(probe.statistics)).take(pa.array(rows))
        far = np.zeros(len(rows))
        for name, value in probe.statistics.items():
            off = STATISTICS[name] if name != "chars" else max(8.0, STATISTICS[name] * value)
            far = np.maximum(far, np.nan_to_num(np.abs(stats[name].to_numpy() - value) / off))
        ranked += [(float(far[i]), (chunk, int(rows[i]))) for i in np.flatnonzero(far <= 1.0)]
    ranked.sort()
    return [place for _, place in ranked[:CANDIDATES]], len(ranked) > CANDIDATES


def _compare(
    version: OpenVersion, probe: Probe, places: Sequence[Place], offsets: _Offsets, found: Found
) -> None:
    """Read the candidates' texts and keep those that are similar."""
    least = version.settings.dedup.verify.min_similarity
    normal = version.settings.clean.normalization
    for (chunk, row), text in read_texts(version, places).items():
        key = fold.fold_text(text, normal.unicode, normal.lower_case)
        value = similarity(probe.key, key, least)
        if value > 0.0:
            at = offsets.lineage_row(chunk, row)
            found.add(chunk, [at])
            found.similar[chunk, at] = value
            found.texts[chunk, at] = text
            if key == probe.key:
                found.exact.add((chunk, at))


def read_texts(version: OpenVersion, places: Sequence[Place]) -> dict[Place, str]:
    """Texts of rows of ``parse.text``; those that are no longer kept are left out."""
    outputs = dict(version.reader.outputs("parse", "text"))
    found: dict[Place, str] = {}
    by_chunk: dict[str, list[int]] = {}
    for chunk, row in places:
        if chunk in outputs and row >= 0:
            by_chunk.setdefault(chunk, []).append(row)
    for chunk, rows in sorted(by_chunk.items()):
        rows.sort()
        try:
            table = version.reader.read_rows(outputs[chunk], rows, ("text",))
        except CorruptOutput:
            continue
        found |= zip([(chunk, row) for row in rows], table["text"].to_pylist(), strict=True)
    return found
