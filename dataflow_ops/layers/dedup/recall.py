"""Step ``recall``, of incremental runs: key texts of the version below, for those who verify.

They are read by pointer from what its runs parsed, a chunk's text by one task, and folded and signed by the
code that signs new documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.errors import BaseDamaged
from dataflow_ops.kernels import digest
from dataflow_ops.kernels.arrow import U64
from dataflow_ops.layers.dedup import base, columns, identity, order
from dataflow_ops.layers.dedup.signing import Signer
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.schema import chunk_name
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import StepResult


class RecallStep:
    """Reduce over a range of the base's chunks. Output ``texts``, as ``gather`` gives those of new ones."""

    name = "recall"
    layer = "dedup"
    partitioned_by: Partitioning = "block"
    inputs = (
        Input("match", "recalled", "slice"),
        Input(base.STEP, "text", "pointer", ("doc_id", "text")),
    )

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings
        self._signer = Signer(settings)
        self._schema = columns.texts_schema(settings.dedup.minhash.signature_size)
        self.outputs = (OutputSpec("texts", self._schema, "block"),)

    def fingerprint(self) -> Mapping[str, object]:
        """What shapes key texts and signatures, and which version is below."""
        return {
            "step": 1,
            **identity.signature_fingerprint(self._settings),
            **base.fingerprint(self._settings),
        }

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Give the wanted texts in ascending order of chunk and row.

        Raises:
            BaseDamaged: a text is gone, or is not the one that was signed.
        """
        wanted = side.table("match", "recalled")
        chunks = columns.numbers(wanted, "chunk")
        empty = True
        for chunk in np.unique(chunks).tolist():
            mine = wanted.filter(pa.array(chunks == np.uint64(chunk)))
            rows, keys, blocks, owner = _distinct(mine)
            done = 0
            for texts in side.rows(base.STEP, "text", chunk_name(chunk), rows.tolist()):
                end = done + texts.num_rows
                yield self._signed(side, chunk, rows[done:end], keys[done:end], texts, blocks, owner, done)
                done, empty = end, False
        if empty:
            yield StepResult()

    def _signed(
        self,
        side: Side,
        chunk: int,
        rows: npt.NDArray[np.uint32],
        keys: U64,
        texts: pa.Table,
        blocks: npt.NDArray[np.uint32],
        owner: npt.NDArray[np.int64],
        first: int,
    ) -> StepResult:
        """Texts of rows ``first …``, once for each block that wants them."""
        text = texts.column("text").combine_chunks()
        key_texts = self._signer.key_texts(text)
        sha1 = digest.sha1_rows(key_texts.folded.data, key_texts.folded.offsets)
        other = np.flatnonzero(digest.leading_u64(sha1) != keys)
        if len(other):
            raise BaseDamaged(
                f"text of row {rows[other[0]]} in chunk {chunk_name(chunk)} of the version that this run"
                " builds on is not the one that was signed; check the disk, or run the job in full mode"
            )
        signed = self._signer.sign(text, key_texts)
        doc_ids = columns.binary_rows(texts, "doc_id")
        n = len(rows)
        values = {
            "chunk": pa.array(np.full(n, chunk, np.uint64)),
            "row": pa.array(rows),
            "doc_id": columns.fixed_binary(doc_ids),
            "sha1": columns.fixed_binary(sha1),
            "order_hi": pa.array(np.full(n, order.BASE, np.uint64)),
            "order_lo": pa.array(digest.leading_u64(doc_ids)),
            "shingle": pa.array(signed.size.astype(np.uint8)),
            "made_by": pa.repeat(identity.signature_id(self._settings), n),
            "signature": columns.fixed_binary(signed.values.view(np.uint8)),
            "key_text": key_texts.folded.array(),
        }
        table = pa.table([values[name] for name in self._schema.names], schema=self._schema)
        mine = np.flatnonzero((owner >= first) & (owner < first + n))
        table = table.take(pa.array(owner[mine] - first))
        slices = columns.prefix_slices(blocks[mine].astype(np.int64), side.numbers.blocks)
        return StepResult(
            outputs={"texts": table.append_column("slice", slices)},
            metrics={"texts_recalled": len(mine), "key_characters": float(key_texts.characters.sum())},
        )


def _distinct(
    wanted: pa.Table,
) -> tuple[npt.NDArray[np.uint32], U64, npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Rows of a chunk once each with their keys; and each block that wants one, with the place of its row."""
    row, block = columns.numbers(wanted, "row"), columns.numbers(wanted, "block")
    pairs = np.unique((row.astype(np.uint64) << np.uint64(32)) | block.astype(np.uint64))
    rows, owner = np.unique((pairs >> np.uint64(32)).astype(np.uint32), return_inverse=True)
    _, first = np.unique(row, return_index=True)
    keys = columns.numbers(wanted, "key")[first]
    return rows, keys, (pairs & np.uint64(0xFFFFFFFF)).astype(np.uint32), owner.astype(np.int64)
