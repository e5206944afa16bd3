"""How these modules read the data sets between steps: two calls, and one optional third."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import pyarrow as pa

from dataflow_ops.values import Output


class StepReader(Protocol):
    """Reads the committed outputs of one run."""

    def outputs(self, step: str, kind: str) -> Iterator[tuple[str, Output]]:
        """Yield ``(partition, output)`` in ascending order of partition; nothing where a step has not run."""

    def read(self, output: Output, slice_name: str = "", columns: Sequence[str] = ()) -> pa.Table:
        """Rows of one slice (``""``: of the whole output), projected to ``columns`` (none named: all)."""


@runtime_checkable
class ReadsRows(Protocol):
    """An optional ability of a reader: a few rows by number, touching only their row groups."""

    def read_rows(self, output: Output, rows: Sequence[int], columns: Sequence[str] = ()) -> pa.Table:
        """The rows with these numbers (ascending) of an unsliced output, in that order."""


def take_rows(
    reader: StepReader, output: Output, rows: Sequence[int], columns: Sequence[str] = ()
) -> pa.Table:
    """Rows by number; through :class:`ReadsRows` where the reader has it, else out of a projected read.

    Args:
        reader: where outputs are read.
        output: an unsliced output.
        rows: row numbers, ascending and distinct.
        columns: projection; empty takes all.

    """
    if isinstance(reader, ReadsRows):
        return reader.read_rows(output, rows, columns)
    return reader.read(output, columns=columns).take(pa.array(rows, pa.int64()))
