"""Dead letters: what could not be processed, who looks after it, and what became of it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any, Final, Literal

import sqlalchemy as sa

from dataflow_ops.errors import ConfigError
from dataflow_ops.state.database import Database
from dataflow_ops.state.dropped import dropped_before, subject
from dataflow_ops.state.machine import move
from dataflow_ops.state.records import COMPACT, INCREMENTAL, LetterRecord
from dataflow_ops.state.tables import dead_letter, run, run_task, task
from dataflow_ops.state.task_events import tell
from dataflow_ops.state.totals import totals_void_of_task
from dataflow_ops.state.upsert import insert_missing
from dataflow_ops.values import DeadLetter

Grouping = Literal["error", "parser", "host", "media_type", "step", "source_id", "level"]
GROUPINGS: tuple[Grouping, ...] = ("error", "parser", "host", "media_type", "step", "source_id", "level")

_AT_ONCE = 10_000
_c = dead_letter.c
_COLUMNS: Final[tuple[sa.ColumnElement[Any], ...]] = (
    _c.id,
    _c.task_key,
    _c.state,
    _c.created_at,
    _c.level,
    _c.step,
    _c.source_id,
    _c.path,
    _c.position,
    _c.doc_id,
    _c.error,
    _c.message,
    _c.parser,
    _c.media_type,
    _c.host,
)


class Letters:
    """Dead letters of tasks."""

    db: Database

    def dead_letters(
        self,
        run_id: str | None = None,
        dataset: str | None = None,
        error: str | None = None,
        limit: int = 1000,
        state: str | None = "open",
        newest: bool = False,
    ) -> list[LetterRecord]:
        """Dead letters, by source, path and position.

        Args:
            run_id: of one run.
            dataset: of all runs of a data set.
            error: with this class name.
            limit: most letters to return.
            state: ``open``, ``retried``, ``dropped``; ``None`` for all.
            newest: leave out what a later run of the data set has looked at again: a full run after any, the
                same day after a day. Another day reads other files.
        """
        query = (
            sa.select(*_COLUMNS)
            .where(*_conditions(run_id, dataset, error, state, newest))
            .order_by(_c.source_id, _c.path, _c.position, _c.id)
            .limit(limit)
        )
        with self.db.read() as connection:
            return [_record(row) for row in connection.execute(query)]

    def count_dead_letters(
        self,
        by: Grouping = "error",
        run_id: str | None = None,
        dataset: str | None = None,
        state: str | None = "open",
        newest: bool = False,
    ) -> dict[str, int]:
        """Number of letters by error, parser, host, media type, step, source or level, most first.

        Raises:
            ConfigError: letters can't be grouped by that.
        """
        if by not in GROUPINGS:
            raise ConfigError(f"dead letters can't be grouped by {by!r}: use one of {', '.join(GROUPINGS)}")
        number = sa.func.count().label("number")
        query = (
            sa.select(_c[by], number)
            .where(*_conditions(run_id, dataset, None, state, newest))
            .group_by(_c[by])
            .order_by(number.desc(), _c[by])
        )
        with self.db.read() as connection:
            return {name: n for name, n in connection.execute(query)}

    def retry_dead_letter(self, ids: Sequence[str]) -> int:
        """Mark open or dropped letters for another try; dead tasks behind them are PENDING again.

        Returns:
            How many letters were marked.
        """
        with self.db.write() as connection:
            marked = connection.execute(
                sa.update(dead_letter)
                .where(self.db.among(_c.id, ids), _c.state != "retried")
                .values(state="retried", updated_at=self.db.now)
                .returning(_c.level, _c.task_key)
            ).all()
            for level, key in marked:
                if level == "chunk":
                    revive_task(connection, self.db, key)
        return len(marked)

    def keys_to_retry(self, keys: Sequence[str], run_id: str) -> set[str]:
        """Those tasks that a run plans under new keys, as letters of theirs were put back for another try.

        A chunk that was given up is taken up by its own run as it is. Another run makes it under a new key: a
        version may have been made without it, and what that is made of must not grow.
        """
        own = sa.exists().where(run_task.c.task_key == _c.task_key, run_task.c.run_id == run_id)
        query = sa.select(_c.task_key).where(
            self.db.among(_c.task_key, keys), _c.state == "retried", sa.or_(_c.level != "chunk", ~own)
        )
        with self.db.read() as connection:
            return set(connection.execute(query.distinct()).scalars())

    def letters_read_anew(self, run_ids: Sequence[str], files: Collection[tuple[str, str]]) -> int:
        """Close open letters of some runs about files that another run has read since.

        When a letter last changed stays as it is: nobody decided about the record, so a letter about it that
        a person dropped meanwhile keeps the last word.

        Args:
            run_ids: whose letters.
            files: ``(source, path)`` of what was read.

        Returns:
            How many letters were closed.
        """
        of_runs = sa.select(run_task.c.task_key).where(self.db.among(run_task.c.run_id, run_ids))
        with self.db.write() as connection:
            found = connection.execute(
                sa.select(_c.id, _c.source_id, _c.path).where(
                    _c.task_key.in_(of_runs), _c.state == "open", _c.level != "chunk"
                )
            )
            ids = [row.id for row in found if (row.source_id, row.path) in files]
            for first in range(0, len(ids), _AT_ONCE):
                connection.execute(
                    sa.update(dead_letter)
                    .where(self.db.among(_c.id, ids[first : first + _AT_ONCE]))
                    .values(state="retried")
                )
        return len(ids)

    def drop_dead_letters(self, ids: Sequence[str]) -> int:
        """Mark open letters as given up; return how many were marked."""
        with self.db.write() as connection:
            marked = connection.execute(
                sa.update(dead_letter)
                .where(self.db.among(_c.id, ids), _c.state == "open")
                .values(state="dropped", updated_at=self.db.now)
                .returning(_c.id)
            ).all()
        return len(marked)


def replace_letters(
    connection: sa.Connection, db: Database, task_key: str, letters: Sequence[DeadLetter]
) -> None:
    """Make these the letters of a task: the same ones keep their state, open ones that are gone go."""
    ids = [_identity(task_key, letter) for letter in letters]
    connection.execute(
        sa.delete(dead_letter).where(
            _c.task_key == task_key,
            sa.or_(_c.state == "open", _c.level == "chunk"),
            ~db.among(_c.id, ids),
        )
    )
    add_letters(connection, db, task_key, letters)


def add_letters(
    connection: sa.Connection,
    db: Database,
    task_key: str,
    letters: Sequence[DeadLetter],
    reopen: bool = False,
) -> None:
    """Add letters to a task; those that are there stay as they are, or are open again with ``reopen``.

    A new one is open, or dropped where a person dropped it under another key of the data set.
    """
    if not letters:
        return
    now = connection.execute(sa.select(db.now)).scalar_one()
    dropped = set() if reopen else dropped_before(connection, db, task_key, letters)
    rows = [
        _row(task_key, letter, "dropped" if subject(letter) in dropped else "open", now) for letter in letters
    ]
    insert_missing(connection, dead_letter, rows)
    if reopen:
        connection.execute(
            sa.update(dead_letter)
            .where(db.among(_c.id, [str(row["id"]) for row in rows]))
            .values(state="open", updated_at=now)
        )


def chunk_letter(
    connection: sa.Connection,
    db: Database,
    key: str,
    step: str,
    partition: str,
    error_type: str | None,
    message: str | None,
) -> None:
    """Open a letter for a dead task, with an alarm in the outbox."""
    letter = DeadLetter("chunk", step, "", partition, -1, "", error_type or "", message or "")
    add_letters(connection, db, key, [letter], reopen=True)
    tell(
        connection,
        db,
        "task.dead",
        key,
        {"step": step, "partition": partition, "error": letter.error, "message": letter.message[:500]},
    )


def revive_task(connection: sa.Connection, db: Database, key: str) -> bool:
    """DEAD → PENDING with all attempts anew; return whether the task was dead."""
    revived = connection.execute(
        sa.update(task)
        .where(task.c.key == key, task.c.state == "DEAD")
        .values(state=move("DEAD", "revive"), attempt=0)
        .returning(task.c.step, task.c.partition)
    ).one_or_none()
    if revived is None:
        return False
    connection.execute(
        sa.update(dead_letter)
        .where(_c.task_key == key, _c.level == "chunk", _c.state == "open")
        .values(state="retried", updated_at=db.now)
    )
    totals_void_of_task(connection, key)
    told = {"step": revived.step, "partition": revived.partition}
    tell(connection, db, "task.revived", key, told)
    return True


def _record(row: Any) -> LetterRecord:
    fields: list[Any] = [*row[:4], DeadLetter(*row[4:])]
    return LetterRecord(*fields)


def _conditions(
    run_id: str | None, dataset: str | None, error: str | None, state: str | None, newest: bool
) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = []
    if run_id is not None:
        conditions.append(_c.task_key.in_(sa.select(run_task.c.task_key).where(run_task.c.run_id == run_id)))
    if dataset is not None:
        of_dataset = (
            sa.select(run_task.c.task_key)
            .join(run, run.c.run_id == run_task.c.run_id)
            .where(run.c.dataset == dataset)
        )
        conditions.append(_c.task_key.in_(of_dataset))
    if error is not None:
        conditions.append(_c.error == error)
    if state is not None:
        conditions.append(_c.state == state)
    if newest:
        conditions.append(_of_newest_run())
    return conditions


def _of_newest_run() -> sa.ColumnElement[bool]:
    """Whether no later run of its data set, a full one or of the same day, came to the letter's step without
    the letter's task.
    """
    later, reached = run.alias("later"), run_task.alias("reached")
    came_to_step = sa.exists().where(reached.c.run_id == later.c.run_id, reached.c.step == run_task.c.step)
    superseded = sa.exists().where(
        later.c.dataset == run.c.dataset,
        later.c.created_at > run.c.created_at,
        sa.or_(
            later.c.mode.not_in((INCREMENTAL, COMPACT)),
            sa.and_(run.c.mode == INCREMENTAL, later.c.data_date == run.c.data_date),
        ),
        came_to_step.correlate(later, run_task),
    )
    return sa.exists().where(
        run_task.c.task_key == _c.task_key,
        run.c.run_id == run_task.c.run_id,
        ~superseded.correlate(run, run_task),
    )


def _identity(task_key: str, letter: DeadLetter) -> str:
    parts = (
        task_key,
        letter.level,
        letter.step,
        letter.source_id,
        letter.path,
        str(letter.position),
        letter.doc_id,
        letter.error,
    )
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _row(task_key: str, letter: DeadLetter, state: str, now: float) -> dict[str, object]:
    return {
        "id": _identity(task_key, letter),
        "task_key": task_key,
        "state": state,
        "level": letter.level,
        "step": letter.step,
        "source_id": letter.source_id,
        "path": letter.path,
        "position": letter.position,
        "doc_id": letter.doc_id,
        "error": letter.error[:80],
        "message": letter.message[:4000],
        "parser": letter.parser,
        "media_type": letter.media_type,
        "host": letter.host,
        "created_at": now,
        "updated_at": now,
    }
