"""How documents spread: shares by label, lengths, scores, duplicate groups. Histograms of fixed bins only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.observe.chunks import Chunks

SHARED = ("domain", "language", "quality_level", "kind")
"""Labels by which shares are reported."""

SIMILARITY_BINS = 50
"""Bins of the similarity histogram over [0, 1]."""


@dataclass(slots=True)
class LogHistogram:
    """Counts by powers of two: bin k holds values in [base^k, base^(k+1)); values below 1 fall in bin 0.

    Attributes:
        per_octave: bins per doubling.
        counts: bin -> documents.

    """

    per_octave: int = 1
    counts: dict[int, int] = field(default_factory=dict)

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add values of shape ``(n,)``; NaN is left out."""
        values = np.asarray(values, np.float64)
        values = values[~np.isnan(values)]
        bins = np.floor(np.log2(np.maximum(values, 1.0)) * self.per_octave + 1e-9).astype(np.int64)
        for k, n in zip(*np.unique(bins, return_counts=True), strict=True):
            self.counts[int(k)] = self.counts.get(int(k), 0) + int(n)

    def as_data(self) -> dict[str, list[float] | list[int]]:
        """``{"edges": n + 1 numbers, "counts": n}``, first to last bin in use; empty lists for none."""
        if not self.counts:
            return {"edges": [], "counts": []}
        first, last = min(self.counts), max(self.counts)
        edges = [round(2 ** (k / self.per_octave), 4) for k in range(first, last + 2)]
        return {"edges": edges, "counts": [self.counts.get(k, 0) for k in range(first, last + 1)]}


@dataclass(slots=True)
class Spread:
    """What :class:`SpreadCounter` measured.

    Attributes:
        basis: ``exported`` where lineage says what was, else ``kept``: survivors so far.
        documents: how many that is, with their ``tokens``.
        shares: label -> value -> ``[documents, tokens]``.
        chars: lengths in characters; ``tokens_hist`` in tokens; ``scores`` of the quality model.
        similarity: near duplicates by similarity, ``SIMILARITY_BINS`` counts over [0, 1].
        groups: duplicate groups by size (survivor counted).
        exact: documents removed as exact duplicates; ``near`` as near ones.
        not_sampled: documents kept by all steps and not drawn.

    """

    basis: str = "kept"
    documents: int = 0
    tokens: int = 0
    shares: dict[str, dict[str, list[int]]] = field(default_factory=lambda: {label: {} for label in SHARED})
    chars: LogHistogram = field(default_factory=LogHistogram)
    tokens_hist: LogHistogram = field(default_factory=LogHistogram)
    scores: LogHistogram = field(default_factory=lambda: LogHistogram(per_octave=4))
    similarity: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(SIMILARITY_BINS, np.int64))
    groups: LogHistogram = field(default_factory=LogHistogram)
    exact: int = 0
    near: int = 0
    not_sampled: int = 0


class SpreadCounter:
    """Measures all distributions chunk by chunk; memory does not grow with their number.

    Args:
        chunks: index of the run's outputs.

    """

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        labelled, traced = chunks.index("label", "labels"), chunks.index("scatter", "fates")
        # A run that stopped in the middle of scatter has exported nothing yet.
        self._exported = bool(traced) and set(labelled) <= set(traced)
        self.result = Spread(basis="exported" if self._exported else "kept")

    def add(self, chunk: str) -> None:
        """Measure one chunk."""
        out, chunks = self.result, self._chunks
        _groups(out, chunks.duplicates(chunk))
        scores = chunks.table("score", "scores", chunk, ("score",))
        if scores is not None:
            out.scores.add(scores["score"].drop_null().to_numpy())
        fates = chunks.table("scatter", "fates", chunk, ("doc_id", "fate")) if self._exported else None
        if fates is not None:
            out.not_sampled += pc.sum(pc.equal(fates["fate"], "not_sampled")).as_py() or 0
        labels = chunks.table("label", "labels", chunk, (*SHARED, "doc_id", "tokens", "chars", "verdict"))
        if labels is None:
            return
        labels = labels.filter(pc.equal(labels["verdict"], ""))
        if self._exported:
            labels = labels.filter(pc.is_in(labels["doc_id"], value_set=_exported(fates)))
        _labels(out, labels)


def _exported(fates: pa.Table | None) -> pa.Array:
    if fates is None:
        return pa.array([], pa.binary(16))
    return fates.filter(pc.equal(fates["fate"], "exported"))["doc_id"].combine_chunks()


def _labels(out: Spread, labels: pa.Table) -> None:
    out.documents += labels.num_rows
    out.tokens += pc.sum(labels["tokens"]).as_py() or 0
    out.chars.add(labels["chars"].to_numpy())
    out.tokens_hist.add(labels["tokens"].to_numpy())
    for label in SHARED:
        grouped = labels.select([label, "tokens"]).group_by(label)
        for row in grouped.aggregate([([], "count_all"), ("tokens", "sum")]).to_pylist():
            pair = out.shares[label].setdefault(row[label] or "", [0, 0])
            pair[0] += row["count_all"]
            pair[1] += row["tokens_sum"] or 0


def _groups(out: Spread, table: pa.Table) -> None:
    if table.num_rows == 0:
        return
    near = table.filter(pc.equal(table["verdict"], "near"))
    out.near += near.num_rows
    out.exact += pc.sum(pc.equal(table["verdict"], "exact")).as_py() or 0
    similarity = np.clip(near["similarity"].to_numpy().astype(np.float64), 0.0, 1.0)
    # A hair is added so that 0.8, stored as float32, falls into the bin that begins at 0.8.
    bins = np.minimum((similarity * SIMILARITY_BINS + 1e-4).astype(np.int64), SIMILARITY_BINS - 1)
    out.similarity += np.bincount(bins, minlength=SIMILARITY_BINS)
    survivors = table.filter(pc.equal(table["verdict"], "survivor"))
    out.groups.add(survivors["copies"].to_numpy() + 1)
