"""The failure queue: requests without a good answer, for people to look at, edit, ask again or give up.

A failure is OPEN, REQUEUED (asked again by the next run of its task), DROPPED (given up), SOLVED (asked again
and answered) or REPLACED (asked again and failed again: the newer one is in the queue).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from dataflow_ops.errors import StateError
from dataflow_ops.state.database import Database, dump
from dataflow_ops.state.machine import move
from dataflow_ops.state.outbox import emit
from dataflow_ops.state.sample_tables import generation_failure, sample_task

_c = generation_failure.c
IN_QUEUE: Final = ("OPEN", "REQUEUED", "DROPPED")
"""States that are a row's last word."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One entry of the queue.

    Attributes:
        key: of the request.
        task_id: that asked.
        sample_id: row that was asked about.
        draw: from 0.
        state: see the module.
        retry_of: key of the failure that it had asked again, or None.
        prompt_version: of the template.
        model: that was asked.
        prompt: messages that were sent.
        edited_prompt: messages to be sent instead, or None.
        parameters: what else was sent.
        raw_answer: what the endpoint answered, as text; None where nothing came.
        error: name of the error.
        message: for people.
        attempts: how often it was asked.
        created_at: seconds since 1970.
        updated_at: seconds since 1970.
    """

    key: str
    task_id: str
    sample_id: int
    draw: int
    state: str
    retry_of: str | None
    prompt_version: str
    model: str
    prompt: Sequence[Mapping[str, Any]]
    edited_prompt: Sequence[Mapping[str, Any]] | None
    parameters: Mapping[str, Any]
    raw_answer: str | None
    error: str
    message: str
    attempts: int
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class Which:
    """Which entries: those with these keys (or beginnings of keys), or all that fit the rest."""

    task_id: str | None = None
    state: str | None = None
    error: str | None = None
    keys: tuple[str, ...] = ()


def count_failures(connection: sa.Connection, which: Which) -> list[tuple[str, str, int]]:
    """State, error and number, the most frequent first."""
    number = sa.func.count()
    query = sa.select(_c.state, _c.error, number).where(*_fits(which)).group_by(_c.state, _c.error)
    return [tuple(row) for row in connection.execute(query.order_by(number.desc(), _c.state, _c.error))]


def list_failures(connection: sa.Connection, which: Which, limit: int, after: str = "") -> list[Failure]:
    """Entries by key, which is a hash: no order, but pages that neither skip nor repeat.

    Args:
        connection: reading.
        which: which.
        limit: most entries.
        after: last key of the page before.
    """
    query = sa.select(generation_failure).where(_c.request_key > after, *_fits(which))
    return [_failure(row) for row in connection.execute(query.order_by(_c.request_key).limit(limit))]


def one_failure(connection: sa.Connection, key: str) -> Failure:
    """The entry whose key begins with ``key``.

    Raises:
        StateError: none does, or more than one.
    """
    found = list_failures(connection, Which(keys=(key,)), 2)
    if len(found) != 1:
        what = "more than one failure has a key that begins" if found else "no failure has a key that begins"
        raise StateError(f"{what} with {key!r}; `dataflow samples failures list` shows the keys")
    return found[0]


def edit_failure(
    connection: sa.Connection, db: Database, key: str, prompt: Sequence[Mapping[str, Any]]
) -> None:
    """Set the messages that are sent when the entry is asked again.

    Raises:
        StateError: no such entry, or one that was answered since.
    """
    done = connection.execute(
        sa.update(generation_failure)
        .where(_c.request_key == key, _c.state.in_(IN_QUEUE))
        .values(edited_prompt=dump(list(prompt)), updated_at=db.now)
        .returning(_c.request_key)
    ).one_or_none()
    if done is None:
        raise StateError(f"failure {key[:12]} is not in the queue any more: it was asked again since")


def change_failures(
    connection: sa.Connection, db: Database, which: Which, state: str, who: str
) -> dict[str, int]:
    """Requeue or drop entries, with an event for each task.

    Args:
        connection: in a transaction.
        db: its database.
        which: which of those in the queue.
        state: ``REQUEUED`` or ``DROPPED``.
        who: name of the person or service.

    Returns:
        Task -> entries that changed.
    """
    changed: dict[str, int] = {}
    from_ = ("OPEN", "DROPPED") if state == "REQUEUED" else ("OPEN", "REQUEUED")
    rows = connection.execute(
        sa.update(generation_failure)
        .where(_c.state.in_(from_), *_fits(which))
        .values(state=state, updated_at=db.now)
        .returning(_c.task_id)
    )
    for row in rows:
        changed[row.task_id] = changed.get(row.task_id, 0) + 1
    for task_id, number in sorted(changed.items()):
        emit(
            connection,
            db,
            f"generation_failure.{state.lower()}",
            task_id,
            {"failures": number, "who": who},
        )
    return changed


def requeue_keys(connection: sa.Connection, db: Database, keys: Sequence[str]) -> None:
    """Let open entries be asked again by the next run, without an event."""
    connection.execute(
        sa.update(generation_failure)
        .where(_c.request_key.in_(list(keys)), _c.state == "OPEN")
        .values(state="REQUEUED", updated_at=db.now)
    )


def reopen_task(connection: sa.Connection, db: Database, task_id: str) -> bool:
    """Let a task that is done run again where entries of it wait to be asked again; return whether."""
    waiting = sa.select(_c.request_key).where(_c.task_id == task_id, _c.state == "REQUEUED").limit(1)
    t = sample_task.c
    where = (t.task_id == task_id, t.state == "SUCCESS")
    task = connection.execute(sa.select(t.kind, t.dataset).where(*where).with_for_update()).one_or_none()
    if task is None:
        return False
    if connection.execute(waiting).one_or_none() is None:
        return False
    connection.execute(
        sa.update(sample_task).where(*where).values(state=move("SUCCESS", "ghost"), updated_at=db.now)
    )
    told = {"kind": task.kind, "dataset": task.dataset, "why": "failures wait to be asked again"}
    emit(connection, db, "sample_task.pending", task_id, told)
    return True


def _fits(which: Which) -> list[sa.ColumnElement[bool]]:
    fits = [
        column == value
        for column, value in ((_c.task_id, which.task_id), (_c.state, which.state), (_c.error, which.error))
        if value is not None
    ]
    if which.keys:
        fits.append(sa.or_(*(_c.request_key.startswith(key, autoescape=True) for key in which.keys)))
    return fits


def _failure(row: sa.Row[Any]) -> Failure:
    edited = row.edited_prompt
    return Failure(
        row.request_key,
        row.task_id,
        row.sample_id,
        row.draw,
        row.state,
        row.retry_of,
        row.prompt_version,
        row.model,
        json.loads(row.prompt),
        None if edited is None else json.loads(edited),
        json.loads(row.parameters),
        row.raw_answer,
        row.error,
        row.message,
        row.attempts,
        row.created_at,
        row.updated_at,
    )
