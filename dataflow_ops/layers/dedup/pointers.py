"""Key texts of a root range by pointer: read from the collected files, checked, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha1

import numpy as np
import pyarrow as pa

from dataflow_ops.errors import CorruptOutput
from dataflow_ops.kernels.arrow import I64, U32
from dataflow_ops.layers.dedup import columns, identity
from dataflow_ops.protocols import Side
from dataflow_ops.schema import chunk_name


@dataclass(frozen=True, slots=True)
class Pointer:
    """Which document's text it is, from which block it was collected, and what its SHA-1 must be."""

    chunk: int
    row: int
    block: int
    sha1: bytes


@dataclass(frozen=True, slots=True)
class _Slice:
    """Rows collected from one block, and where each document stands in them."""

    table: pa.Table
    at: dict[tuple[int, int], int]


class CollectedTexts:
    """Reads slices of ``collect.texts``; keeps those used last, up to a number of bytes.

    Args:
        side: where to read.
        made_by: the signatures' expected identity.
        budget: bytes of slices held at once, and as much again for single texts (at least one of each).
    """

    def __init__(self, side: Side, made_by: str, budget: int) -> None:
        self._side, self._made_by, self._budget = side, made_by, budget
        self._slices: OrderedDict[int, _Slice] = OrderedDict()
        self._held = 0
        self._texts: OrderedDict[tuple[int, int], str] = OrderedDict()
        self._characters = 0
        self.read = 0

    def text(self, at: Pointer) -> str:
        """The text at a pointer.

        Raises:
            CorruptOutput: there is none, or its SHA-1 is not the pointer's.
            FingerprintMismatch: its signature was made under other settings.
        """
        place = (at.chunk, at.row)
        known = self._texts.get(place)
        if known is not None:
            self._texts.move_to_end(place)
            return known
        found, i = self._row(at)
        text = str(found.table.column("key_text")[i].as_py())
        digest = sha1(text.encode(), usedforsecurity=False).digest()
        if digest != at.sha1:
            raise CorruptOutput(f"{_named(at)}: its SHA-1 is {digest.hex()}, not {at.sha1.hex()}")
        self._texts[place] = text
        self._characters += len(text)
        while 4 * self._characters > self._budget and len(self._texts) > 1:
            _, oldest = self._texts.popitem(last=False)
            self._characters -= len(oldest)
        return text

    def signatures(self, pointers: Sequence[Pointer]) -> tuple[U32, I64]:
        """Signatures, uint32 of shape ``(n, k)``, and shingle sizes, int64 of shape ``(n,)``.

        Raises:
            CorruptOutput, FingerprintMismatch: as for :meth:`text`.
        """
        by_block = sorted(range(len(pointers)), key=lambda i: pointers[i].block)
        signatures: U32 | None = None
        shingles = np.empty(len(pointers), np.int64)
        for i in by_block:
            found, row = self._row(pointers[i])
            value = np.frombuffer(found.table.column("signature")[row].as_py(), np.uint32)
            if signatures is None:
                signatures = np.empty((len(pointers), len(value)), np.uint32)
            signatures[i] = value
            shingles[i] = found.table.column("shingle")[row].as_py()
        return np.empty((0, 0), np.uint32) if signatures is None else signatures, shingles

    def _row(self, at: Pointer) -> tuple[_Slice, int]:
        found = self._slice(at.block)
        i = found.at.get((at.chunk, at.row))
        if i is None:
            raise CorruptOutput(f"{_named(at)}: missing")
        return found, i

    def _slice(self, block: int) -> _Slice:
        known = self._slices.get(block)
        if known is not None:
            self._slices.move_to_end(block)
            return known
        table = self._side.lookup("collect", "texts", str(block), self._side.partition).combine_chunks()
        identity.check_signatures(self._made_by, table, f"what was collected from block {block}")
        places = zip(
            columns.numbers(table, "chunk").tolist(), columns.numbers(table, "row").tolist(), strict=True
        )
        found = self._slices[block] = _Slice(table, {place: i for i, place in enumerate(places)})
        self._held += table.nbytes
        self.read += 1
        while self._held > self._budget and len(self._slices) > 1:
            _, oldest = self._slices.popitem(last=False)
            self._held -= oldest.table.nbytes
        return found


def _named(at: Pointer) -> str:
    return f"collected text of chunk {chunk_name(at.chunk)}, row {at.row}, block {at.block}"
