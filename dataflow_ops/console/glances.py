"""Reads the outputs of a few chunks of a run, whichever run and however many chunks it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dataflow_ops.console.place import Place
from dataflow_ops.pipeline.flow import STEP_NAMES, partitioning
from dataflow_ops.values import Output

if TYPE_CHECKING:
    import pyarrow as pa

REMOVALS = frozenset(
    {("parse", "rejects"), ("filter", "rejects"), ("confirm", "verdicts"), ("label", "labels")}
)
"""Outputs that say which documents a step removed."""


class FewChunks:
    """A :class:`~dataflow_ops.observe.reader.StepReader` that knows only some partitions.

    Args:
        place: the home.
        run_id: the run.
        chunks: chunk ids, for steps that are cut by chunk.
        others: step → partitions, for steps that are cut otherwise.
        removing: of the steps that remove documents, only these; all for ``None``.
    """

    def __init__(
        self,
        place: Place,
        run_id: str,
        chunks: Sequence[str],
        others: Mapping[str, Sequence[str]] | None = None,
        removing: Sequence[str] | None = None,
    ) -> None:
        from dataflow_ops.storage.chunk_store import ChunkStore
        from dataflow_ops.storage.opening import open_store

        self._place = place
        self._run_id = run_id
        self._chunks = list(chunks)
        self._others = dict(others or {})
        self._removing = removing
        self._store = ChunkStore(open_store(place.home.root))

    def outputs(self, step: str, kind: str) -> Iterator[tuple[str, Output]]:
        """See the protocol."""
        if self._removing is not None and (step, kind) in REMOVALS and step not in self._removing:
            return
        if step not in STEP_NAMES:  # the version below: too much to look for a few texts in
            return
        chosen = self._chunks if partitioning(step) == "chunk" else self._others.get(step, ())
        found = self._place.state.outputs_of_partitions(self._run_id, step, kind, list(chosen))
        yield from sorted(found.items())

    def read(self, output: Output, slice_name: str = "", columns: Sequence[str] = ()) -> pa.Table:
        """See the protocol. Nobody asks for outputs without rows."""
        return self._store.read(output, slice_name, tuple(columns))

    def read_rows(self, output: Output, rows: Sequence[int], columns: Sequence[str] = ()) -> pa.Table:
        """A few rows by number; only their row groups are read."""
        import pyarrow as pa

        return pa.concat_tables([self._store.rows(output, tuple(columns), row).take(1) for row in rows])


def facts_of_chunks(place: Place, run_id: str, chunks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Chunk → ``{"source_id", "files", "bytes"}`` as ``discover`` listed it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    reader = FewChunks(place, run_id, (), {"discover": ["all"]})
    for _, output in reader.outputs("discover", "chunks"):
        if output.rows:
            table = reader.read(output, columns=("chunk", "source_id", "files", "bytes"))
            mine = table.filter(pc.is_in(table["chunk"], value_set=pa.array(list(chunks), pa.string())))
            return {row["chunk"]: row for row in mine.to_pylist()}
    return {}


def files_of_chunk(place: Place, run_id: str, chunk: str) -> list[str]:
    """Paths of the files of a chunk, in the order in which they are read; empty before it is fetched."""
    reader = FewChunks(place, run_id, [chunk])
    for _, output in reader.outputs("fetch", "files"):
        if output.rows:
            return list(reader.read(output, columns=("path",))["path"].to_pylist())
    return []
