"""Collects the rows and counts of one stretch of a chunk and turns them into a StepResult."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops import schema
from dataflow_ops.errors import DocumentError, FileError
from dataflow_ops.layers.parse.finish import Origin, Reject, Row
from dataflow_ops.layers.parse.records import SourceFile
from dataflow_ops.values import Counts, StepResult


class RowBuilder:
    """Rows since the last result. Every record is added by exactly one of the ``add`` methods."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._documents: list[Row] = []
        self._rejects: list[Row] = []
        self._dead: list[Row] = []
        self._kept = 0
        self._bytes = 0
        self._skipped: dict[str, int] = {}
        self._hits: dict[str, int] = {}
        self._metrics: dict[str, float] = {}
        self._table_rows = 0
        self.text_bytes = 0

    @property
    def rows(self) -> int:
        """Rows waiting, of all outputs."""
        return self._table_rows + len(self._documents) + len(self._rejects) + len(self._dead)

    def add_documents(self, rows: list[Row], size: int) -> None:
        """Add the rows that one record gave; ``size``: bytes that it took up in its file."""
        self._documents += rows
        self._kept += 1
        self._bytes += size
        # Four bytes a character is an upper bound; exact sizes don't matter here.
        self.text_bytes += sum(len(row[1]) for row in rows) * 2
        for mark in filter(None, rows[0][14].split(",")):
            self._count(f"repaired.{mark}")

    @property
    def open_documents(self) -> int:
        """Documents added one by one since the last batch."""
        return len(self._documents)

    def begin_batch(self) -> None:
        """The documents added from here on are of one batch, until :meth:`end_batch`."""
        self._close_documents()

    def end_batch(
        self, documents: pa.Table, whole: npt.NDArray[np.bool_], ends: Sequence[int], size: int, chars: int
    ) -> None:
        """Add the whole records of a batch; what its others gave meanwhile takes its place among them.

        Args:
            documents: ``schema.DOCUMENTS``, one for each record of the batch; only the whole ones count.
            whole: which records those are.
            ends: for each other record, :attr:`open_documents` after it was added.
            size: bytes that each record took up.
            chars: characters of the texts of the whole ones.
        """
        n = len(whole)
        if not whole.all():
            counts, first = np.ones(n, np.int64), np.arange(n)
            bounds = np.array([0, *ends])
            counts[~whole], first[~whole] = np.diff(bounds), bounds[:-1] + n
            # 0, 1, … within the documents of each record.
            within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            both = pa.concat_tables([documents, _table(self._documents, schema.DOCUMENTS)])
            documents = both.take(pa.array(np.repeat(first, counts) + within))
            self._documents = []
        self._tables.append(documents)
        self._table_rows += documents.num_rows
        self._kept += int(whole.sum())
        self._bytes += size * int(whole.sum())
        self.text_bytes += chars * 2

    def add_reject(self, origin: Origin, reject: Reject, size: int) -> None:
        """Add a record that a rule of this step refused."""
        identity = schema.doc_id(origin.source_id, origin.path, origin.position)
        self._rejects.append(
            (
                identity,
                origin.source_id,
                origin.path,
                origin.position,
                0,
                origin.url,
                reject.rule,
                reject.value,
                reject.bound,
                reject.detail,
            )
        )
        self._hits[reject.rule] = self._hits.get(reject.rule, 0) + 1
        self._bytes += size

    def add_dead(self, origin: Origin, error: DocumentError, size: int) -> None:
        """Add a record that could not be processed."""
        identity = schema.doc_id(origin.source_id, origin.path, origin.position)
        self._dead.append(
            (
                "document",
                origin.source_id,
                origin.path,
                origin.position,
                identity,
                type(error).__name__,
                _storable(str(error)),
                origin.parser,
                origin.media_type,
                host_of(origin.url),
            )
        )
        self._bytes += size

    def add_broken_file(self, file: SourceFile, error: FileError) -> None:
        """Add the rest of a file, from ``error.offset`` on: one record in, one dead."""
        self._dead.append(
            (
                "file",
                file.source_id,
                file.path,
                error.offset,
                None,
                type(error).__name__,
                _storable(str(error)),
                "",
                file.media_type,
                host_of(file.url),
            )
        )

    def add_skipped(self, reason: str, size: int) -> None:
        """Count a record that is not this step's business."""
        self._skipped[reason] = self._skipped.get(reason, 0) + 1
        self._bytes += size

    def result(self, cursor: int) -> StepResult:
        """Everything added so far; the builder is empty afterwards."""
        self._close_documents()
        rejected, dead = len(self._rejects), len(self._dead)
        counts = Counts(
            documents_in=self._kept + rejected + dead + sum(self._skipped.values()),
            kept=self._kept,
            rejected=rejected,
            dead=dead,
            skipped=dict(sorted(self._skipped.items())),
            documents_out=self._table_rows,
            bytes_in=self._bytes,
        )
        counts.check("parse")
        outputs = {
            "text": pa.concat_tables(self._tables) if self._tables else schema.DOCUMENTS.empty_table(),
            "rejects": _table(self._rejects, schema.PARSE_REJECTS),
            "dead": _table(self._dead, schema.DEAD),
        }
        made = StepResult(
            {kind: table for kind, table in outputs.items() if table.num_rows},
            counts,
            dict(sorted(self._hits.items())),
            dict(sorted(self._metrics.items())),
            cursor=cursor,
        )
        self.__init__()  # type: ignore[misc]
        return made

    def _close_documents(self) -> None:
        """Rows to a table, in their place among the tables."""
        if self._documents:
            self._tables.append(_table(self._documents, schema.DOCUMENTS))
            self._table_rows += len(self._documents)
            self._documents = []

    def _count(self, metric: str) -> None:
        self._metrics[metric] = self._metrics.get(metric, 0.0) + 1.0


def host_of(url: str) -> str:
    """Host of a URL in lower case, ``""`` where there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _storable(message: str) -> str:
    return message.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")[:1000]


def _table(rows: list[Row], columns: pa.Schema) -> Any:
    if not rows:
        return columns.empty_table()
    arrays = [
        pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=columns)
