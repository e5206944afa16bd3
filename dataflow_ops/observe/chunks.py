"""One view of what all steps wrote about a chunk, whichever steps have run."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dataflow_ops import schema
from dataflow_ops.observe.reader import StepReader
from dataflow_ops.values import Output


class Chunks:
    """Index of a run's outputs by chunk. Holds references only, never rows.

    Args:
        reader: where outputs are read.

    """

    def __init__(self, reader: StepReader) -> None:
        self.reader = reader
        self._by_kind: dict[tuple[str, str], dict[str, Output]] = {}
        self._duplicates: dict[str, list[Output]] | None = None

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
        return self.reader.read(output, columns=columns)

    def duplicates(self, chunk: str) -> pa.Table:
        """``confirm.verdicts`` about one chunk (columns ``schema.DUPLICATES``), in order of row."""
        if self._duplicates is None:
            self._duplicates = {}
            for output in self.index("confirm", "verdicts").values():
                for part in output.slices:
                    if part.rows:
                        self._duplicates.setdefault(part.name, []).append(output)
        tables = [self.reader.read(output, slice_name=chunk) for output in self._duplicates.get(chunk, ())]
        if not tables:
            return schema.empty(schema.DUPLICATES)
        return pa.concat_tables(tables).sort_by("row")

    def has(self, step: str, kind: str) -> bool:
        """Whether a step has written this kind at all."""
        return bool(self.index(step, kind))
