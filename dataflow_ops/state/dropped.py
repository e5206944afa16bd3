"""What a person gave up stays given up when a record is read again: under another key, in another chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from dataflow_ops.state.database import Database
from dataflow_ops.state.tables import dead_letter, run, run_task, safe
from dataflow_ops.values import DeadLetter

Subject = tuple[str, str, str, str, int, str]
"""What a letter is about, whatever task wrote it: level, step, source, path, position, error."""

_c = dead_letter.c
_SUBJECT: Final[tuple[sa.ColumnElement[Any], ...]] = (
    _c.level,
    _c.step,
    _c.source_id,
    _c.path,
    _c.position,
    _c.error,
)


def subject(letter: DeadLetter) -> Subject:
    """What a letter is about, as it is stored."""
    return (
        letter.level,
        letter.step,
        safe(letter.source_id),
        safe(letter.path),
        letter.position,
        letter.error[:80],
    )


def dropped_before(
    connection: sa.Connection, db: Database, task_key: str, letters: Sequence[DeadLetter]
) -> set[Subject]:
    """Those subjects that were dropped under another key, and not put back since.

    Whatever chunk the key is of: a full run cuts the files of many days in another way than a day does. Keys
    count that a run of the same data set needs, or that no run needs any more (a run that takes up a retried
    key lets go of the one before).
    """
    asked = {subject(letter) for letter in letters}
    found = _decided(connection, db, task_key, "dropped", asked)
    again = _decided(connection, db, task_key, "retried", set(found)) if found else {}
    return {about for about, at in found.items() if about not in again or again[about] < at}


def _decided(
    connection: sa.Connection, db: Database, task_key: str, state: str, asked: set[Subject]
) -> dict[Subject, float]:
    """Subject → when a letter about it last came into a state, under other keys."""
    keys = _keys_about(connection, db, task_key, state, asked)
    if not keys:
        return {}
    datasets = (
        sa.select(run.c.dataset)
        .join(run_task, run_task.c.run_id == run.c.run_id)
        .where(run_task.c.task_key == task_key)
    )
    linked = sa.exists().where(run_task.c.task_key == _c.task_key)
    related = linked.where(run.c.run_id == run_task.c.run_id, run.c.dataset.in_(datasets))
    query = (
        sa.select(*_SUBJECT, sa.func.max(_c.updated_at))
        .where(db.among(_c.task_key, keys), _c.state == state, sa.or_(related, ~linked))
        .group_by(*_SUBJECT)
    )
    found = {(*about,): at for *about, at in connection.execute(query)}
    return {about: found[about] for about in asked if about in found}


def _keys_about(
    connection: sa.Connection, db: Database, task_key: str, state: str, asked: set[Subject]
) -> list[str]:
    """Other keys with letters in a state about the same files, with the same errors."""
    query = sa.select(_c.task_key).where(
        _c.state == state,
        db.among(_c.error, sorted({about[-1] for about in asked})),
        db.among(_c.path, sorted({about[3] for about in asked})),
        _c.task_key != task_key,
    )
    return list(connection.execute(query.distinct()).scalars())
