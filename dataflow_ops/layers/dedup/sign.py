"""Step ``sign``: key text, SHA-1, MinHash signature and band hashes of every kept document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.kernels import bands as band_kernel
from dataflow_ops.kernels import digest, minhash
from dataflow_ops.kernels.arrow import I64, U8, U32, U64, string_buffers
from dataflow_ops.layers.dedup import columns, identity, order
from dataflow_ops.layers.dedup.signing import Signatures, Signer
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, Numbers, StepResult


@dataclass(frozen=True, slots=True)
class _Task:
    chunk: int
    numbers: Numbers


@dataclass(frozen=True, slots=True)
class _Signed:
    """Kept documents of a batch."""

    rows: U32
    doc_ids: U8
    sha1: U8
    order_hi: U64
    order_lo: U64


class SignStep:
    """Map step. Outputs ``keys``, ``bands`` and ``signatures``; texts below a shingle get only a key."""

    name = "sign"
    layer = "dedup"
    partitioned_by: Partitioning = "chunk"

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings
        m = settings.dedup.minhash
        # The source matters to the survivor order alone, and only if the job ranks domains.
        text = ("doc_id", "text", "source_id") if settings.dedup.priority else ("doc_id", "text")
        self.inputs = (
            Input("parse", "text", "aligned", text),
            Input("filter", "verdicts", "aligned", ("kept",)),
        )
        self._signatures = columns.signatures_schema(m.signature_size)
        self.outputs = (
            OutputSpec("keys", columns.KEYS, "key_prefix"),
            OutputSpec("bands", columns.BANDS, "band_prefix"),
            OutputSpec("signatures", self._signatures),
        )
        self._signer = Signer(settings)
        self._made_by = identity.signature_id(settings)

    def fingerprint(self) -> Mapping[str, object]:
        """Settings and code that shape keys, signatures and bands."""
        s = self._settings
        return {
            "step": 1,
            **identity.band_fingerprint(s),
            "near": s.dedup.near,
            "priority": list(s.dedup.priority),
            "ranks": order.source_ranks(s) if s.dedup.priority else {},
        }

    def open(self, side: Side) -> object:
        """Remember which chunk this is."""
        return _Task(int(side.partition, 16), side.numbers)

    def process(self, batch: pa.Table, first_row: int, state: object) -> StepResult:
        """Sign the kept rows of one batch."""
        assert isinstance(state, _Task)
        kept = np.flatnonzero(pc.fill_null(batch.column("kept"), False).to_numpy().astype(np.bool_))
        counts = Counts(
            documents_in=batch.num_rows,
            kept=len(kept),
            skipped={"rejected_before": batch.num_rows - len(kept)} if len(kept) < batch.num_rows else {},
            documents_out=len(kept),
        )
        if not len(kept):
            return StepResult(counts=counts)
        if len(kept) < batch.num_rows:
            batch = batch.take(pa.array(kept))
        return self._sign(batch, (kept + first_row).astype(np.uint32), state, counts)

    def _sign(self, batch: pa.Table, rows: U32, task: _Task, counts: Counts) -> StepResult:
        keys = self._signer.key_texts(batch.column("text"))
        folded, characters = keys.folded, keys.characters
        _, stored = string_buffers(batch.column("text"))
        doc_ids = columns.binary_rows(batch, "doc_id")
        high, low = order.pack(self._ranks(batch), characters, np.diff(stored), doc_ids)
        signed = _Signed(rows, doc_ids, digest.sha1_rows(folded.data, folded.offsets), high, low)
        outputs = {"keys": self._keys(signed, task)}
        if self._settings.dedup.near:
            outputs |= self._near(signed, self._signer.sign(batch.column("text"), keys), task)
        return StepResult(
            outputs=outputs,
            counts=counts + Counts(bytes_in=int(stored[-1] - stored[0])),
            metrics={"key_characters": float(characters.sum())},
        )

    def _ranks(self, batch: pa.Table) -> I64:
        if not self._settings.dedup.priority:
            return np.zeros(batch.num_rows, np.int64)
        ranks = order.source_ranks(self._settings)
        last = len(self._settings.dedup.priority)
        return np.array([ranks.get(s, last) for s in batch.column("source_id").to_pylist()], np.int64)

    def _keys(self, signed: _Signed, task: _Task) -> pa.Table:
        n = len(signed.rows)
        prefixes = digest.prefix_of(digest.leading_u64(signed.sha1), task.numbers.key_prefixes)
        arrays = [
            columns.fixed_binary(signed.sha1),
            pa.array(np.full(n, task.chunk, np.uint64)),
            pa.array(signed.rows),
            columns.fixed_binary(signed.doc_ids),
            pa.array(signed.order_hi),
            pa.array(signed.order_lo),
        ]
        return pa.Table.from_arrays(arrays, schema=columns.KEYS).append_column(
            "slice", columns.prefix_slices(prefixes, task.numbers.key_prefixes)
        )

    def _near(self, signed: _Signed, made: Signatures, task: _Task) -> dict[str, pa.Table]:
        signatures, shingles, size, second = made.values, made.shingles, made.size, made.second
        long_enough = np.flatnonzero(shingles > 0)
        hashes, owners = self._hash(signatures[long_enough], size[long_enough], long_enough)
        border = np.flatnonzero(second)
        if len(border):
            text = made.units.array().take(pa.array(border))
            data, offsets = string_buffers(text)
            other, found = minhash.signatures(
                data, offsets, second[border], self._signer.permutations, self._signer.words
            )
            able = np.flatnonzero(found > 0)
            more, of = self._hash(other[able], second[border][able], border[able])
            hashes, owners = np.concatenate([hashes, more]), np.concatenate([owners, of])
        table = pa.Table.from_arrays(
            [
                pa.array(signed.rows[long_enough]),
                columns.fixed_binary(signed.doc_ids[long_enough]),
                columns.fixed_binary(signed.sha1[long_enough]),
                pa.array(signed.order_hi[long_enough]),
                pa.array(signed.order_lo[long_enough]),
                pa.array(size[long_enough].astype(np.uint8)),
                pa.repeat(self._made_by, len(long_enough)),
                columns.fixed_binary(signatures[long_enough].view(np.uint8)),
            ],
            schema=self._signatures,
        )
        return {"bands": self._bands(signed, hashes, owners, task), "signatures": table}

    def _hash(self, signatures: U32, sizes: I64, owners: I64) -> tuple[U64, I64]:
        m = self._settings.dedup.minhash
        hashes = band_kernel.band_hashes(signatures, m.band, m.rows_per_band, sizes, self._signer.words)
        return hashes.reshape(-1), np.repeat(owners, m.band)

    def _bands(self, signed: _Signed, hashes: U64, owners: I64, task: _Task) -> pa.Table:
        by_row = np.argsort(owners, kind="stable")  # rows of a document together whatever the batch was
        hashes, owners = hashes[by_row], owners[by_row]
        prefixes = digest.prefix_of(hashes, task.numbers.band_prefixes)
        key = digest.leading_u64(signed.sha1)
        per_row: list[npt.NDArray[Any]] = [signed.rows, key, signed.order_hi, signed.order_lo]
        rows, keys, high, low = (values[owners] for values in per_row)
        arrays = [hashes, np.full(len(hashes), task.chunk, np.uint64), rows, keys, high, low]
        return pa.Table.from_arrays([pa.array(a) for a in arrays], schema=columns.BANDS).append_column(
            "slice", columns.prefix_slices(prefixes, task.numbers.band_prefixes)
        )
