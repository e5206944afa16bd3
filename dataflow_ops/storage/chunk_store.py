"""Task outputs on top of a blob store: names, slices, hashes. Never subclassed; stores differ below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from dataflow_ops.errors import CorruptOutput
from dataflow_ops.protocols import OutputSpec
from dataflow_ops.storage.blob import BlobStore, sha256_of
from dataflow_ops.storage.cold import COLD
from dataflow_ops.storage.row_groups import MAX_BYTES, MAX_ROWS
from dataflow_ops.storage.rows import RowReader
from dataflow_ops.storage.slice_buffer import SPILL_BYTES
from dataflow_ops.storage.task_writer import TaskWriter
from dataflow_ops.values import FileOut, Output, Slice

Listing = Mapping[str, tuple[int, int]]
"""URI -> (size, mtime_ns), from one pass over the store."""


def data_uri(step: str, partition: str, key: str, kind: str) -> str:
    """Where an output lies: ``data/<step>/<key[:2]>/part_<partition>_<key[:16]>.<kind>.parquet``."""
    return f"data/{step}/{key[:2]}/part_{partition}_{key[:16]}.{kind}.parquet"


class ChunkStore:
    """Writes and reads the outputs of tasks.

    Args:
        blobs: where the bytes are.
        scratch: local folder for spilled rows; the system's temporary folder when None.
        spill_bytes: rows of sliced outputs held in memory for each kind.
    """

    def __init__(self, blobs: BlobStore, scratch: Path | None = None, spill_bytes: int = SPILL_BYTES) -> None:
        self.blobs = blobs
        self._scratch = scratch
        self._spill_bytes = spill_bytes

    def writer(
        self,
        step: str,
        partition: str,
        key: str,
        epoch: int,
        specs: Mapping[str, OutputSpec],
        recorded: Mapping[str, str] | None = None,
        scratch: Path | None = None,
    ) -> TaskWriter:
        """Begin the outputs of one attempt.

        Args:
            step: step name.
            partition: chunk id, prefix number or ``all``.
            key: the task's key.
            epoch: of the claim; two attempts never share a temporary, and equal bytes are adopted, so it
                does not enter a name.
            specs: kind -> what is written.
            recorded: kind -> SHA-256 that state has from an earlier success: a published file that no
                longer matches it is quarantined and replaced.
            scratch: the task's own folder for spilled rows.

        Raises:
            StorageFull: no space left.
        """
        uris = {kind: data_uri(step, partition, key, kind) for kind in specs}
        return TaskWriter(self.blobs, uris, specs, recorded, scratch or self._scratch, self._spill_bytes)

    def publish_file(self, file: FileOut, uri: str, recorded: str = "") -> Output:
        """Publish a finished file as it is (a shard); the file is moved away from where it lies.

        Raises:
            OutputConflict: the name exists with other bytes.
            StorageFull: no space left.
        """
        with open(file.path, "rb") as opened:
            sha256, length = sha256_of(opened)
        size, mtime_ns = self.blobs.publish(file.path, uri, sha256, recorded)
        whole = Slice("", 0, length, sha256, file.rows)
        return Output(file.kind, uri, size, mtime_ns, sha256, file.rows, (whole,), file.attributes)

    def read(
        self,
        output: Output,
        slice_name: str = "",
        columns: Sequence[str] = (),
        verify: bool = False,
        schema: pa.Schema | None = None,
    ) -> pa.Table:
        """All rows of one slice; of all slices, in ascending order of name, when none is named.

        Args:
            output: as recorded.
            slice_name: the consumer's partition.
            columns: projection; empty reads all.
            verify: hash the bytes first.
            schema: columns of the table given back when there are no rows.

        Raises:
            CorruptOutput: the bytes are gone or not those recorded; or there are no rows, and no
                ``schema`` says what an empty table looks like.
        """
        parts = [p for p in output.slices if p.length and (not slice_name or p.name == slice_name)]
        if not parts:
            if schema is None:
                raise CorruptOutput(
                    f"{output.uri} has no slice {slice_name!r}, and no schema was given for none"
                )
            return (pa.schema([schema.field(c) for c in columns]) if columns else schema).empty_table()
        tables = [RowReader(self.blobs, output, p, columns, verify=verify).read_all() for p in parts]
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)

    def rows(
        self,
        output: Output,
        columns: Sequence[str] = (),
        first_row: int = 0,
        slice_name: str = "",
        verify: bool = False,
    ) -> RowReader:
        """A stream over an unsliced output, or over one slice; see :class:`RowReader`.

        Raises:
            CorruptOutput: no such slice, or the bytes are gone or not those recorded.
        """
        for part in output.slices:
            if part.name == slice_name:
                return RowReader(self.blobs, output, part, columns, first_row, verify)
        raise CorruptOutput(f"{output.uri} has no slice {slice_name!r}")

    def batches(
        self,
        output: Output,
        columns: Sequence[str] = (),
        first_row: int = 0,
        max_rows: int = MAX_ROWS,
        max_bytes: int = MAX_BYTES,
    ) -> Iterator[pa.Table]:
        """Rows of an unsliced output from ``first_row`` on, in bounded tables."""
        return self.rows(output, columns, first_row).batches(max_rows, max_bytes)

    @staticmethod
    def num_rows(output: Output, slice_name: str = "") -> int:
        """Rows recorded for a slice, for the whole output when none is named."""
        return sum(p.rows for p in output.slices if not slice_name or p.name == slice_name)

    def listing(self, prefix: str = "data/") -> dict[str, tuple[int, int]]:
        """Everything under a prefix, in one pass, for :meth:`absent`; without what was moved away."""
        return {uri: (size, mtime_ns) for uri, size, mtime_ns in self.blobs.list(prefix)}

    def cold_listing(self, prefix: str = "data/") -> dict[str, tuple[int, int]]:
        """What of it lies in the cold tier, by its usual name.

        Raises:
            ColdAway: the tier can't be reached.
        """
        found = self.listing(f"{COLD}/{prefix}")
        return {uri.removeprefix(f"{COLD}/"): known for uri, known in found.items()}

    def absent(self, outputs: Sequence[Output], listing: Listing | None = None) -> list[Output]:
        """Those outputs that are gone or broken.

        An output whose size and modification time are as recorded is there; where only the time
        differs its SHA-256 decides. Without ``listing`` each is asked for by itself.
        """
        bad = []
        for output in outputs:
            found = self.blobs.stat(output.uri) if listing is None else listing.get(output.uri)
            if found == (output.size, output.mtime_ns):
                continue
            if found is None or found[0] != output.size or not self.verify(output):
                bad.append(output)
        return bad

    def check_present(self, outputs: Sequence[Output], listing: Listing | None = None) -> bool:
        """Whether none of the outputs is :meth:`absent`."""
        return not self.absent(outputs, listing)

    def verify(self, output: Output) -> bool:
        """Whether the stored bytes hash to what was recorded."""
        try:
            with self.blobs.open(output.uri) as file:
                return sha256_of(file) == (output.sha256, output.size)
        except CorruptOutput:
            return False
