"""One view of what all steps wrote about a chunk, whichever steps have run."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dataflow_ops import schema
from dataflow_ops.observe.reader import StepReader
from dataflow_ops.values import Output


class Chunks:
    """Index of a run's outputs by chunk.

    Of rows it holds only duplicates and single narrow columns, and only those of the chunk asked for last.

    Args:
        reader: where outputs are read.

    """

    def __init__(self, reader: StepReader) -> None:
        self.reader = reader
        self._by_kind: dict[tuple[str, str], dict[str, Output]] = {}
        self._duplicates: dict[str, list[Output]] | None = None
        self._at_hand: tuple[str, dict[tuple[str, ...], pa.Table]] = ("", {})

    def index(self, step: str, kind: str) -> dict[str, Output]:
        """Outputs of one kind by partition, ascending; empty where the step has not run."""
        key = (step, kind)
        if key not in self._by_kind:
            self._by_kind[key] = dict(sorted(self.reader.outputs(step, kind)))
        return self._by_kind[key]

    def names(self) -> list[str]:
        """Chunks that parse has finished, ascending."""
        return sorted({*self.index("parse", "text"), *self.index("parse", "rejects")})

    def table(self, step: str, kind: str, chunk: str, columns: Sequence[str] = ()) -> pa.Table | None:
        """Rows of one kind about one chunk; ``None`` where there are none."""
        output = self.index(step, kind).get(chunk)
        if output is None or output.rows == 0:
            return None
        if not columns or "text" in columns or len(columns) > 1:
            return self.reader.read(output, columns=columns)
        at_hand = self._of(chunk)
        key = (step, kind, *columns)
        if key not in at_hand:
            at_hand[key] = self.reader.read(output, columns=columns)
        return at_hand[key]

    def duplicates(self, chunk: str) -> pa.Table:
        """``confirm.verdicts`` about one chunk (columns ``schema.DUPLICATES``), in order of row."""
        if self._duplicates is None:
            self._duplicates = {}
            for output in self.index("confirm", "verdicts").values():
                for part in output.slices:
                    if part.rows:
                        self._duplicates.setdefault(part.name, []).append(output)
        at_hand = self._of(chunk)
        if ("duplicates",) in at_hand:
            return at_hand["duplicates",]
        tables = [self.reader.read(output, slice_name=chunk) for output in self._duplicates.get(chunk, ())]
        table = pa.concat_tables(tables).sort_by("row") if tables else schema.empty(schema.DUPLICATES)
        at_hand["duplicates",] = table
        return table

    def _of(self, chunk: str) -> dict[tuple[str, ...], pa.Table]:
        if self._at_hand[0] != chunk:
            self._at_hand = (chunk, {})
        return self._at_hand[1]

    def has(self, step: str, kind: str) -> bool:
        """Whether a step has written this kind at all."""
        return bool(self.index(step, kind))
