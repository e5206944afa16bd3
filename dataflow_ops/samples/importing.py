"""Import of files of dialogues: registered by their bytes, read record by record, written turn by turn."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import sqlalchemy as sa

from dataflow_ops.errors import ConfigError, DataFlowError, MalformedRecord
from dataflow_ops.layers.parse.jsontext import to_json
from dataflow_ops.samples.formats import format_named
from dataflow_ops.samples.reading import Opener, Record, digest, records, told_format
from dataflow_ops.samples.running import Batch
from dataflow_ops.samples.turns import rows_of
from dataflow_ops.state.cursors import files_to_read
from dataflow_ops.state.samples.files import NewFile
from dataflow_ops.state.samples.records import Claim
from dataflow_ops.state.samples.store import SampleStore

BATCH_ROWS: Final = 10_000
BATCH_BYTES: Final = 32 << 20
_RAW: Final = 2_000
_FAULTS: Final = 1_000
"""Characters of a message that are kept with a refused record."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an import will do.

    Attributes:
        task_id: the new task; None where there is none to be made.
        resumed: tasks that began with some of the files and must be taken up again.
        there: paths that were imported before.
    """

    task_id: str | None
    resumed: tuple[str, ...]
    there: tuple[str, ...]


@dataclass(slots=True)
class Read:
    """Records that were read and are not yet written."""

    first: int
    end: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    letters: list[dict[str, Any]] = field(default_factory=list)
    repaired: Counter[str] = field(default_factory=Counter)
    size: int = 0
    last: bool = False


def open_local(path: str) -> BinaryIO:
    """A file of this machine."""
    return open(path, "rb")


def file_id(dataset: str, sha256: str) -> str:
    """The id of a file: the same bytes come into a data set once."""
    return hashlib.sha256(f"{dataset}\0{sha256}".encode()).hexdigest()


def plan_import(
    store: SampleStore,
    dataset: str,
    paths: Sequence[str],
    who: str,
    format_: str | None = None,
    opener: Opener = open_local,
    told: Callable[[int, int], None] | None = None,
) -> Wanted:
    """Register files and ask for the task that imports those that nobody has imported yet.

    Args:
        store: open.
        dataset: where they belong.
        paths: as the opener takes them; the same bytes twice are one file.
        who: name of the person or service.
        format_: of all of them; told by their records when None.
        opener: opens them.
        told: is told how many of them have been looked at.

    Raises:
        ConfigError: no files, an unknown format, or a file that looks like none.
    """
    if not paths:
        raise ConfigError("name the files to import")
    if format_ is not None:
        format_named(format_)
    files: dict[str, NewFile] = {}
    for number, path in enumerate(paths):
        sha256, size = digest(path, opener)
        id_ = file_id(dataset, sha256)
        files.setdefault(id_, NewFile(id_, path, format_ or told_format(path, opener), sha256, size))
        if told is not None:
            told(number + 1, len(paths))
    names = "\0".join(f"{f.id} {f.format}" for f in files.values())
    task_id = "import-" + hashlib.sha256(f"{dataset}\0{names}".encode()).hexdigest()[:16]
    done = store.register_files(dataset, task_id, list(files.values()))
    for id_ in (*done.new, *(f for fs in done.waiting.values() for f in fs)):
        store.move_file(id_, files[id_].path)
    for waiting in done.waiting:
        task = store.sample_task(waiting)
        # Asked for again, it is what it was, and waits even if it was cancelled.
        store.create_task(task.task_id, task.dataset, task.kind, task.settings, task.files, who)
    if done.new:
        formats = {f: files[f].format for f in done.new}
        store.create_task(task_id, dataset, "import", {"formats": formats}, done.new, who)
    return Wanted(
        task_id if done.new else None,
        tuple(done.waiting),
        tuple(files[id_].path for id_ in done.there),
    )


class ImportStep:
    """Reads files and writes their dialogues.

    Args:
        store: open.
        opener: opens paths.
        batch_rows: turns in a batch; a dialogue is never cut.
    """

    def __init__(self, store: SampleStore, opener: Opener = open_local, batch_rows: int = BATCH_ROWS) -> None:
        self._store = store
        self._opener = opener
        self._batch_rows = batch_rows

    def batches(self, claim: Claim) -> Iterator[Batch[Read]]:
        """Batches from the cursor on. A resumed file is read from its beginning, and skipped up to there.

        Statistics of the table are renewed after 2, 4, 8, … batches and at the end.
        """
        number = 0
        for batch in self._read(claim):
            yield batch
            number += 1
            if number > 1 and number & (number - 1) == 0:
                self._store.refresh_statistics()
        if number:
            self._store.refresh_statistics()

    def _read(self, claim: Claim) -> Iterator[Batch[Read]]:
        for id_, skip in files_to_read(claim.task.files, claim.cursor):
            file = self._store.sample_file(id_)
            if file.status == "READY":
                continue
            read = format_named(file.format).read
            gathered = Read(skip, skip)
            with closing(records(file.path, self._opener, file.sha256, skip)) as found:
                for record in found:
                    _add(gathered, record, id_, read)
                    gathered.end = record.number + 1
                    if len(gathered.rows) >= self._batch_rows or gathered.size >= BATCH_BYTES:
                        yield self._batch(id_, gathered)
                        gathered = Read(gathered.end, gathered.end)
            gathered.last = True
            yield self._batch(id_, gathered)

    def keep(self, connection: sa.Connection, claim: Claim, batch: Batch[Read]) -> Mapping[str, float]:
        """Turns, refused records and the file's counts."""
        read, store = batch.content, self._store
        if read.rows:
            now = connection.execute(sa.select(store.db.now)).scalar_one()
            for row in read.rows:
                row["created_at"] = row["updated_at"] = now
            store.add_turns(connection, batch.file_id, read.first, read.end, read.rows)
        store.add_letters(connection, read.letters)
        number, refused = read.end - read.first, len(read.letters)
        store.count_file(connection, batch.file_id, number, batch.rows, refused, read.last)
        return {
            "records": number,
            "rows": batch.rows,
            "refused": refused,
            **{f"repaired_{mark}": n for mark, n in read.repaired.items()},
        }

    def _batch(self, id_: str, read: Read) -> Batch[Read]:
        if read.rows:
            for number, row in zip(self._store.reserve_ids(len(read.rows)), read.rows, strict=True):
                row["id"] = number
        # The end of a file may hold no record, and yet the cursor must tell it from the batch before.
        return Batch(id_, read.end, len(read.rows), read, {"last": True} if read.last else {})


def _add(to: Read, record: Record, id_: str, read: Callable[[Mapping[str, Any]], Any]) -> None:
    fault: DataFlowError | None = record.error
    raw = record.head
    if record.fields is not None:
        try:
            rows = rows_of(read(record.fields), id_, record.number, to.repaired)
        except MalformedRecord as e:
            fault, raw = e, _shown(record.fields)
        else:
            to.rows += rows
            to.size += sum(row["data_length"] + len(row["data_meta"] or "") for row in rows)
    if fault is not None:
        to.letters.append(
            {
                "dataset_file_id": id_,
                "row_identifier": record.number,
                "error": type(fault).__name__,
                "message": str(fault)[:_FAULTS],
                "raw": raw[:_RAW],
            }
        )
        to.size += len(raw[:_RAW])


def _shown(fields: Mapping[str, Any]) -> str:
    try:
        return to_json(fields, sort_keys=False)[0]
    except MalformedRecord:
        return repr(fields)[:_RAW]
