"""Files of dialogues: registered once by their bytes, counted as they are imported, with what was refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from dataflow_ops.errors import ConfigError
from dataflow_ops.state.database import Database
from dataflow_ops.state.sample_tables import dataset_file, sample_letter, sample_task
from dataflow_ops.state.samples.records import LOCK_SAMPLES
from dataflow_ops.state.upsert import insert_missing

_c = dataset_file.c


@dataclass(frozen=True, slots=True)
class SampleFile:
    """A file of a data set. Times are seconds since 1970.

    Attributes:
        id: a hash of the data set and the bytes.
        dataset: its data set.
        path: where it was when it was imported.
        format: ``messages``, ``sharegpt`` or ``instruction``.
        sha256: of its bytes.
        size: in bytes.
        records: so far, refused ones too.
        rows: turns so far.
        refused: records that are no dialogue; each is a letter.
        status: IMPORTING or READY.
        task_id: the task that imports it.
        created_at: when it was registered.
        updated_at: when it last changed.
    """

    id: str
    dataset: str
    path: str
    format: str
    sha256: str
    size: int
    records: int
    rows: int
    refused: int
    status: str
    task_id: str | None
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that somebody wants to import."""

    id: str
    path: str
    format: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Registered:
    """What became of files that were to be imported.

    Attributes:
        new: ids that the new task imports.
        there: ids that were imported before; nothing is to be done.
        waiting: id of a task that has begun to import a file, and must be taken up again → its files.
    """

    new: tuple[str, ...]
    there: tuple[str, ...]
    waiting: Mapping[str, tuple[str, ...]]


class SampleFiles:
    """Reading and writing of files."""

    db: Database

    def register_files(self, dataset: str, task_id: str, files: Sequence[NewFile]) -> Registered:
        """Note files of which a task is to import those that nobody has imported or begun to.

        A file whose import was cancelled begins anew under this task; so does one of which nothing could be
        read, when it comes in another format.

        Args:
            dataset: where they belong.
            task_id: imports the new ones.
            files: each with an id of its own.

        Raises:
            ConfigError: a file has been imported in another format.
        """
        new: list[str] = []
        there: list[str] = []
        waiting: dict[str, list[str]] = {}
        with self.db.write() as connection:
            self.db.lock(connection, LOCK_SAMPLES)  # of two who bring the same new file one is the first
            for file in files:
                row = connection.execute(
                    sa.select(_c.format, _c.status, _c.rows, _c.task_id, sample_task.c.state)
                    .outerjoin(sample_task, sample_task.c.task_id == _c.task_id)
                    .where(_c.id == file.id)
                    .with_for_update(of=dataset_file)
                ).one_or_none()
                anew = row is not None and (
                    (row.status == "IMPORTING" and row.state is None)
                    or (row.status == "IMPORTING" and row.state == "CANCELLED" and row.task_id != task_id)
                    or (row.status == "READY" and not row.rows and row.format != file.format)
                )
                if row is None or anew:
                    self._begin(connection, dataset, task_id, file, row is None)
                    new.append(file.id)
                elif row.format != file.format:
                    raise ConfigError(
                        f"{file.path}: these bytes are in data set {dataset!r} already, read as {row.format};"
                        f" they can't come as {file.format} too"
                    )
                elif row.status == "READY":
                    there.append(file.id)
                else:
                    waiting.setdefault(row.task_id, []).append(file.id)
        return Registered(tuple(new), tuple(there), {k: tuple(v) for k, v in waiting.items()})

    def _begin(
        self, connection: sa.Connection, dataset: str, task_id: str, file: NewFile, is_new: bool
    ) -> None:
        values = {
            "path": file.path,
            "format": file.format,
            "records": 0,
            "rows": 0,
            "refused": 0,
            "status": "IMPORTING",
            "task_id": task_id,
            "updated_at": self.db.now,
        }
        if is_new:
            connection.execute(
                sa.insert(dataset_file).values(
                    id=file.id,
                    dataset=dataset,
                    sha256=file.sha256,
                    size=file.size,
                    created_at=self.db.now,
                    **values,
                )
            )
        else:
            connection.execute(sa.delete(sample_letter).where(sample_letter.c.dataset_file_id == file.id))
            connection.execute(sa.update(dataset_file).where(_c.id == file.id).values(**values))

    def move_file(self, file_id: str, path: str) -> None:
        """The same bytes lie somewhere else now."""
        with self.db.write() as connection:
            connection.execute(sa.update(dataset_file).where(_c.id == file_id).values(path=path))

    def count_file(
        self, connection: sa.Connection, file_id: str, records: int, rows: int, refused: int, done: bool
    ) -> None:
        """Add to the counts of a file, in the caller's transaction; READY when it is done."""
        values: dict[str, Any] = {
            "records": _c.records + records,
            "rows": _c.rows + rows,
            "refused": _c.refused + refused,
            "updated_at": self.db.now,
        }
        if done:
            values["status"] = "READY"
        connection.execute(sa.update(dataset_file).where(_c.id == file_id).values(**values))

    def add_letters(self, connection: sa.Connection, letters: Sequence[Mapping[str, Any]]) -> None:
        """Keep what is no dialogue, in the caller's transaction.

        Args:
            connection: in a transaction.
            letters: ``dataset_file_id``, ``row_identifier``, ``error``, ``message``, ``raw`` of each.
        """
        if letters:
            now = connection.execute(sa.select(self.db.now)).scalar_one()
            insert_missing(connection, sample_letter, [{**one, "created_at": now} for one in letters])

    def sample_files(self, dataset: str | None = None) -> list[SampleFile]:
        """Files, oldest first; of one data set or of all."""
        query = _select().order_by(_c.created_at, _c.id)
        if dataset is not None:
            query = query.where(_c.dataset == dataset)
        with self.db.read() as connection:
            return [SampleFile(*row) for row in connection.execute(query)]

    def sample_file(self, file_id: str) -> SampleFile:
        """One file.

        Raises:
            ConfigError: there is none of this id.
        """
        with self.db.read() as connection:
            row = connection.execute(_select().where(_c.id == file_id)).one_or_none()
        if row is None:
            raise ConfigError(
                f"there is no file {file_id}; 'dataflow samples files' names those that are there"
            )
        return SampleFile(*row)

    def sample_letters(
        self, files: Sequence[str], limit: int = 50, after: tuple[str, int] | None = None
    ) -> list[dict[str, Any]]:
        """Refused records, by file and record, behind the one that ``after`` names."""
        c = sample_letter.c
        query = (
            sa.select(sample_letter)
            .where(self.db.among(c.dataset_file_id, list(files)))
            .order_by(c.dataset_file_id, c.row_identifier)
            .limit(limit)
        )
        if after is not None:
            query = query.where(sa.tuple_(c.dataset_file_id, c.row_identifier) > sa.tuple_(*after))
        with self.db.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def letters_by_error(self, files: Sequence[str]) -> dict[str, int]:
        """How many records were refused for what, most first."""
        c, number = sample_letter.c, sa.func.count()
        query = (
            sa.select(c.error, number)
            .where(self.db.among(c.dataset_file_id, list(files)))
            .group_by(c.error)
            .order_by(number.desc(), c.error)
        )
        with self.db.read() as connection:
            return {error: count for error, count in connection.execute(query)}


def _select() -> sa.Select[*tuple[Any, ...]]:
    return sa.select(*(_c[name] for name in SampleFile.__slots__))
