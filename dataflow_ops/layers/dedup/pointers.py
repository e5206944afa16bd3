"""Key texts by pointer: read from the gathered files on demand, checked, within a bound of memory."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha1

import numpy as np
import pyarrow as pa

from dataflow_ops.errors import CorruptOutput
from dataflow_ops.kernels.arrow import U32, U64
from dataflow_ops.kernels.digest import prefix_of
from dataflow_ops.layers.dedup import columns, identity
from dataflow_ops.protocols import Side
from dataflow_ops.schema import chunk_name


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where a gathered (``recalled``: of the version below) text is, and what its SHA-1 must be."""

    chunk: int
    row: int
    block: int
    sha1: bytes
    recalled: bool = False


@dataclass(frozen=True, slots=True)
class KeyText:
    """A gathered text with its signature."""

    text: str
    signature: U32
    shingle: int


class GatheredTexts:
    """Reads slices of ``gather.texts`` and ``recall.texts``; keeps those used last, up to a number of bytes.

    Args:
        side: where to read.
        made_by: the signatures' expected identity.
        budget: bytes of slices held at once, and as much again for single texts (at least one of each).
    """

    def __init__(self, side: Side, made_by: str, budget: int) -> None:
        self._side, self._made_by, self._budget = side, made_by, budget
        self._slices: OrderedDict[tuple[str, str, int], pa.Table] = OrderedDict()
        self._held = 0
        self._texts: OrderedDict[Pointer, KeyText] = OrderedDict()
        self._characters = 0
        self.read = 0

    def get(self, at: Pointer) -> KeyText:
        """The text at a pointer.

        Raises:
            CorruptOutput: there is none, or its SHA-1 is not the pointer's.
            FingerprintMismatch: its signature was made under other settings.
        """
        known = self._texts.get(at)
        if known is not None:
            self._texts.move_to_end(at)
            return known
        found = self._read(at)
        self._texts[at] = found
        self._characters += len(found.text)
        while 4 * self._characters > self._budget and len(self._texts) > 1:
            _, oldest = self._texts.popitem(last=False)
            self._characters -= len(oldest.text)
        return found

    def _read(self, at: Pointer) -> KeyText:
        table = self._slice(at)
        rows, first = columns.numbers(table, "row"), 0
        if at.recalled:
            # One slice holds a range of the base's chunks, in ascending order.
            first, last = _between(columns.numbers(table, "chunk"), at.chunk)
            rows = rows[first:last]
        i = int(np.searchsorted(rows, at.row))
        where = f"gathered text of chunk {chunk_name(at.chunk)}, row {at.row}, block {at.block}"
        if i == len(rows) or rows[i] != at.row:
            raise CorruptOutput(f"{where}: missing")
        i += first
        text = str(table.column("key_text")[i].as_py())
        found = sha1(text.encode(), usedforsecurity=False).digest()
        if found != at.sha1:
            raise CorruptOutput(f"{where}: its SHA-1 is {found.hex()}, not {at.sha1.hex()}")
        signature = np.frombuffer(table.column("signature")[i].as_py(), np.uint32)
        return KeyText(text, signature, int(table.column("shingle")[i].as_py()))

    def _slice(self, at: Pointer) -> pa.Table:
        step, partition = "gather", chunk_name(at.chunk)
        if at.recalled:
            ranges = self._side.numbers.blocks
            step, partition = "recall", str(prefix_of(np.array([at.chunk], np.uint64), ranges)[0])
        key = (step, partition, at.block)
        if key in self._slices:
            self._slices.move_to_end(key)
            return self._slices[key]
        table = self._side.lookup(step, "texts", partition, str(at.block)).combine_chunks()
        identity.check_signatures(self._made_by, table, f"{step} of {partition}, block {at.block}")
        self._slices[key] = table
        self._held += table.nbytes
        self.read += 1
        while self._held > self._budget and len(self._slices) > 1:
            _, oldest = self._slices.popitem(last=False)
            self._held -= oldest.nbytes
        return table


def _between(chunks: U64, chunk: int) -> tuple[int, int]:
    """Where the rows of one chunk stand in an ascending column."""
    at = np.uint64(chunk)
    return int(np.searchsorted(chunks, at, "left")), int(np.searchsorted(chunks, at, "right"))
