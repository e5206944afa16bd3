"""What settings of the signatures find, and what they cost, measured on documents at hand.

Copies of the documents are made, or pairs are named; each setting signs them with the step's own code. A pair
counts as found where it is one exact group, or meets in a band and verifies. False candidates are counted
among the documents themselves, by the steps ``match``, ``gather`` and ``verify``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels import fold
from dataflow_ops.kernels.arrow import I64, U8, U32, U64
from dataflow_ops.kernels.minhash import agreements
from dataflow_ops.kernels.similarity import expected_similarity, similarity
from dataflow_ops.layers.dedup import columns
from dataflow_ops.layers.dedup.compare import estimate_bound
from dataflow_ops.layers.dedup.gather import GatherStep
from dataflow_ops.layers.dedup.held import CHUNK, Held
from dataflow_ops.layers.dedup.match import MatchStep
from dataflow_ops.layers.dedup.sign import SignStep
from dataflow_ops.layers.dedup.verify import VerifyStep
from dataflow_ops.settings import JobSettings

BANDINGS = ((8, 16), (16, 8), (20, 6), (25, 5), (32, 4))
"""Bands and rows that are tried beside the job's own."""
SHINGLES = (5, 9, 13)
"""Characters of a shingle that are tried where the job sets none."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings to try.

    Attributes:
        name: bands x rows, and the shingle where it is not the job's.
        settings: the job with them.
        own: they are the job's own.
        changes: ``--set`` that brings them about.

    """

    name: str
    settings: JobSettings
    own: bool
    changes: tuple[str, ...]


def variants(job: JobSettings) -> list[Variant]:
    """The job's own settings first, then others."""
    m = job.dedup.minhash
    found = [_variant(job, m.band, m.rows_per_band, None)]
    found += [_variant(job, b, r, None) for b, r in BANDINGS if (b, r) != (m.band, m.rows_per_band)]
    if m.shingle_size is None and job.dedup.shingle_unit == "char":
        found += [_variant(job, m.band, m.rows_per_band, size) for size in SHINGLES]
    return found


def _variant(job: JobSettings, band: int, rows: int, shingle: int | None) -> Variant:
    m = job.dedup.minhash
    changed = {
        "signature_size": max(m.signature_size, band * rows),
        "band": band,
        "rows_per_band": rows,
        "shingle_size": m.shingle_size if shingle is None else shingle,
    }
    changes = [f"dedup.minhash.{key}={value}" for key, value in changed.items() if value != getattr(m, key)]
    dedup = job.dedup.model_copy(update={"minhash": m.model_copy(update=changed)})
    name = f"{band} x {rows}" + (f", shingle {shingle}" if shingle else "")
    # Of an increment the version below is left out: the documents are held against each other alone.
    return Variant(
        name, job.model_copy(update={"dedup": dedup, "interval": None}), not changes, tuple(changes)
    )


@dataclass(frozen=True, slots=True)
class Signed:
    """Some documents as one setting signs them; one row per document.

    Attributes:
        sha1: uint8, shape ``(n, 20)``.
        bands: uint64, shape ``(n, 2, bands)``: of the shingle size and, near the line, of the second.
        has: bool, shape ``(n, 2)``: which of them are there.
        signatures: uint32, shape ``(n, k)``.
        shingles: shingle size; 0 for texts that are too short for a signature.

    """

    sha1: U8
    bands: U64
    has: npt.NDArray[np.bool_]
    signatures: U32
    shingles: I64

    @staticmethod
    def joined(parts: Sequence[Signed]) -> Signed:
        """Several in one."""
        names = ("sha1", "bands", "has", "signatures", "shingles")
        return Signed(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass
class Trial:
    """One setting at work.

    Attributes:
        variant: the settings.
        found: kind of copy -> ``[found, made]``.
        sign_s: CPU seconds of signing the documents themselves.
        documents: how many those were.

    """

    variant: Variant
    found: dict[str, list[int]] = field(default_factory=dict)
    sign_s: float = 0.0
    documents: int = 0

    def __post_init__(self) -> None:
        self._step = SignStep(self.variant.settings)
        self._held = Held()
        self._task = self._step.open(self._held.side)
        self._bound = estimate_bound(self.variant.settings)

    def sign_documents(self, documents: pa.Table) -> Signed:
        """Sign documents, by the clock, and keep what finding candidates among them takes.

        Args:
            documents: columns ``doc_id``, ``text``, ``source_id``; not empty.

        """
        began = time.process_time()
        outputs = self._process(documents, self.documents)
        self.sign_s += time.process_time() - began
        for kind in ("bands", "signatures"):
            self._held.give(
                "sign", kind, outputs[kind].select([c for c in outputs[kind].column_names if c != "slice"])
            )
        self._held.give("parse", "text", documents.select(["text"]))
        signed = self._signed(outputs, documents.num_rows, self.documents)
        self.documents += documents.num_rows
        return signed

    def sign_copies(self, copies: pa.Table) -> Signed:
        """Sign copies of documents."""
        return self._signed(self._process(copies, 0), copies.num_rows, 0)

    def _process(self, documents: pa.Table, first_row: int) -> dict[str, pa.Table]:
        kept = pa.array(np.ones(documents.num_rows, np.bool_))
        result = self._step.process(documents.append_column("kept", kept), first_row, self._task)
        return dict(result.outputs)

    def _signed(self, outputs: dict[str, pa.Table], n: int, first_row: int) -> Signed:
        m = self.variant.settings.dedup.minhash
        bands, has = np.zeros((n, 2, m.band), np.uint64), np.zeros((n, 2), np.bool_)
        rows = columns.numbers(outputs["bands"], "row")[:: m.band].astype(np.int64) - first_row
        # All bands of one size stand together, those of the second size behind those of the first.
        second = np.zeros(rows.size, np.int64)
        second[1:] = rows[1:] == rows[:-1]
        bands[rows, second] = columns.numbers(outputs["bands"], "band").reshape(-1, m.band)
        has[rows, second] = True
        signatures, shingles = np.zeros((n, m.signature_size), np.uint32), np.zeros(n, np.int64)
        of = outputs["signatures"]
        at = columns.numbers(of, "row").astype(np.int64) - first_row
        signatures[at] = columns.binary_rows(of, "signature").view(np.uint32)
        shingles[at] = columns.numbers(of, "shingle")
        return Signed(columns.binary_rows(outputs["keys"], "sha1"), bands, has, signatures, shingles)

    def judge(self, kind: str, pairs: Pairs, a: Signed, b: Signed) -> None:
        """Count which pairs this setting finds.

        Args:
            kind: of copies.
            pairs: rows of ``a`` and of ``b`` that are copies of each other.
            a: documents.
            b: their copies.

        """
        left, right = pairs.left, pairs.right
        exact = (a.sha1[left] == b.sha1[right]).all(axis=1) & self.variant.settings.dedup.exact
        meet = np.zeros(left.size, np.bool_)
        for i in range(2):
            for j in range(2):
                both = a.has[left, i] & b.has[right, j]
                meet |= both & (a.bands[left, i] == b.bands[right, j]).any(axis=1)
        found = exact.copy()
        for pair in np.flatnonzero(meet & ~exact).tolist():
            found[pair] = self._verifies(pairs, pair, a, b)
        sums = self.found.setdefault(kind, [0, 0])
        sums[0] += int(found.sum())
        sums[1] += left.size

    def _verifies(self, pairs: Pairs, pair: int, a: Signed, b: Signed) -> bool:
        i, j = int(pairs.left[pair]), int(pairs.right[pair])
        expected = 1.0
        if a.shingles[i] == b.shingles[j] > 0:
            two = np.stack([a.signatures[i], b.signatures[j]])
            equal = int(agreements(two, np.zeros(1, np.int64), 1)[0])
            if equal < self._bound:
                return False
            expected = expected_similarity(equal / two.shape[1], int(a.shingles[i]))
        return pairs.similarity(pair, expected) > 0.0

    def among_documents(self) -> Among:
        """Look for candidates among the documents themselves, by the clock."""
        settings = self.variant.settings
        began = time.process_time()
        self._held.run(MatchStep(settings), "0")
        matched = time.process_time()
        self._held.run(GatherStep(settings), CHUNK)
        metrics = self._held.run(VerifyStep(settings), "0")
        compared, verified = metrics.get("pairs_compared", 0.0), metrics.get("pairs_verified", 0.0)
        return Among(int(compared), int(verified), matched - began, time.process_time() - matched)


@dataclass(frozen=True, slots=True)
class Among:
    """Candidates among documents.

    Attributes:
        compared: pairs of texts.
        verified: those of them that are duplicates.
        match_s: CPU seconds of finding the buckets.
        verify_s: of gathering and comparing.

    """

    compared: int
    verified: int
    match_s: float
    verify_s: float


class Pairs:
    """Pairs of texts with their edit similarity, computed once whatever the setting.

    Args:
        left: rows of the documents.
        right: rows of the copies, int64 like ``left``.
        texts: key texts of the documents.
        copies: key texts of the copies.
        least: the job's threshold.

    """

    def __init__(self, left: I64, right: I64, texts: pa.Array, copies: pa.Array, least: float) -> None:
        self.left, self.right = left, right
        self._texts, self._copies, self._least = texts, copies, least
        self._known: dict[int, float] = {}

    def similarity(self, pair: int, expected: float) -> float:
        """0.0 where it is below the threshold; ``expected`` makes it cheap."""
        if pair not in self._known:
            a, b = self._texts[int(self.left[pair])].as_py(), self._copies[int(self.right[pair])].as_py()
            self._known[pair] = similarity(a, b, self._least, expected)
        return self._known[pair]


def key_texts(job: JobSettings, texts: pa.ChunkedArray) -> pa.Array:
    """Key texts, as comparing takes them."""
    normal = job.clean.normalization
    return fold.fold(texts, fold.fold_table(normal.unicode, normal.lower_case)).array()
