"""Step ``gather``: key texts of the candidates, written once more for those who verify."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.errors import ConservationError
from dataflow_ops.kernels import fold
from dataflow_ops.kernels.arrow import string_buffers
from dataflow_ops.layers.dedup import columns, identity
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import StepResult

_BYTES = 32 << 20  # stored text folded at once
_ROWS = 4096


class GatherStep:
    """Reduce over one chunk. Output ``texts``, sliced by block; a text goes to every block that wants it."""

    name = "gather"
    layer = "dedup"
    partitioned_by: Partitioning = "chunk"
    inputs = (
        Input("match", "wanted", "slice"),
        Input("parse", "text", "same", ("text",)),
        Input("sign", "signatures", "same"),
    )

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings
        self._schema = columns.texts_schema(settings.dedup.minhash.signature_size)
        self._signed = columns.signatures_schema(settings.dedup.minhash.signature_size)
        self.outputs = (OutputSpec("texts", self._schema, "block"),)

    def fingerprint(self) -> Mapping[str, object]:
        """What shapes key texts and the signatures beside them."""
        return {"step": 1, **identity.signature_fingerprint(self._settings)}

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Give the wanted texts in ascending order of row.

        Raises:
            FingerprintMismatch: the signatures were made under other settings.
            ConservationError: a wanted document has no signature or no text.
        """
        rows, blocks = _wanted(side)
        if not len(rows):
            yield StepResult()
            return
        signatures = _Signatures(side, identity.signature_id(self._settings), self._signed)
        first_row = done = 0
        for texts in side.stream("parse", "text"):
            for part in _stretches(texts):
                end = int(np.searchsorted(rows, first_row + part.num_rows))
                signed = signatures.before(first_row + part.num_rows)
                if end > done:
                    yield self._gather(side, part, first_row, rows[done:end], blocks[done:end], signed)
                done, first_row = end, first_row + part.num_rows
        if done < len(rows):
            raise ConservationError(
                f"chunk {side.partition}: row {rows[done]} is wanted, but there is no such text"
            )

    def _gather(
        self,
        side: Side,
        part: pa.Table,
        first_row: int,
        rows: npt.NDArray[np.uint32],
        blocks: npt.NDArray[np.uint32],
        signed: pa.Table,
    ) -> StepResult:
        signed_rows = columns.numbers(signed, "row")
        once, copies = np.unique(rows, return_inverse=True)
        at = np.searchsorted(signed_rows, once)
        if np.any(at >= len(signed_rows)) or np.any(
            signed_rows[np.minimum(at, len(signed_rows) - 1)] != once
        ):
            raise ConservationError(f"chunk {side.partition}: a wanted document has no signature")
        normal = self._settings.clean.normalization
        texts = part.column("text").take(pa.array(once.astype(np.int64) - first_row))
        key_texts = fold.fold(texts, fold.fold_table(normal.unicode, normal.lower_case)).array()
        table = signed.take(pa.array(at)).append_column("key_text", key_texts)
        table = table.take(pa.array(copies)) if len(copies) > len(once) else table
        chunk = pa.array(np.full(len(rows), int(side.partition, 16), np.uint64))
        table = table.add_column(0, "chunk", chunk).select(self._schema.names).cast(self._schema)
        slices = columns.prefix_slices(blocks.astype(np.int64), side.numbers.blocks)
        return StepResult(
            outputs={"texts": table.append_column("slice", slices)},
            metrics={
                "texts_gathered": len(rows),
                "key_characters": float(pc.sum(pc.utf8_length(key_texts)).as_py()),
            },
        )


class _Signatures:
    """A chunk's signatures as its texts go by, in ascending order of row."""

    def __init__(self, side: Side, made_by: str, schema: pa.Schema) -> None:
        self._where, self._made_by, self._schema = f"chunk {side.partition}", made_by, schema
        self._tables = side.stream("sign", "signatures")
        self._next: pa.Table | None = None

    def before(self, row: int) -> pa.Table:
        """Those of rows before this one that were not given yet."""
        found = []
        while (table := self._next if self._next is not None else next(self._tables, None)) is not None:
            if self._next is None:
                identity.check_signatures(self._made_by, table, self._where)
            end = int(np.searchsorted(columns.numbers(table, "row"), row))
            found.append(table.slice(0, end))
            self._next = table.slice(end)
            if self._next.num_rows:
                break
            self._next = None
        return pa.concat_tables([self._schema.empty_table(), *found]).combine_chunks()


def _wanted(side: Side) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    wanted = side.table("match", "wanted")
    row, block = columns.numbers(wanted, "row"), columns.numbers(wanted, "block")
    both = np.unique((row.astype(np.uint64) << np.uint64(32)) | block.astype(np.uint64))
    return (both >> np.uint64(32)).astype(np.uint32), (both & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def _stretches(texts: pa.Table) -> Iterator[pa.Table]:
    """Parts of at most 4,096 rows, and of 32 MB where single texts are not longer."""
    for batch in texts.to_batches(max_chunksize=_ROWS):
        table = pa.Table.from_batches([batch])
        _, offsets = string_buffers(table.column("text"))
        start = 0
        while start < table.num_rows:
            end = int(np.searchsorted(offsets, offsets[start] + _BYTES, side="right")) - 1
            end = min(max(end, start + 1), table.num_rows)
            yield table.slice(start, end - start)
            start = end
