"""What models answered, and what failed: each made durable in a transaction of its own.

For a request key there is an answer or a failure, never both: whoever writes one holds the key's lock (after
the row of the task, in this order everywhere).

A row belongs to the prompt version that asked. Where another version sends the very same request, its own row
has a key that follows from both (:func:`version_key`): the answer is judged anew, but not asked for again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from dataflow_ops.state.database import Database, dump
from dataflow_ops.state.sample_tables import generation, generation_failure
from dataflow_ops.state.upsert import insert_missing

_g, _f = generation.c, generation_failure.c
_MOST_KEYS = 500
CLOSED = ("SOLVED", "REPLACED")
"""States of failures that a later request of the same sample and draw settled."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request took.

    Attributes:
        prompt_tokens: as the endpoint counts.
        completion_tokens: as the endpoint counts.
        cost: of them, in the currency of the prices given.
        lost_tokens: most that tries may have taken whose usage never came.
        lost_cost: most that they may have cost.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    lost_tokens: int = 0
    lost_cost: float = 0.0

    @property
    def tokens(self) -> int:
        """All that may have been taken."""
        return self.prompt_tokens + self.completion_tokens + self.lost_tokens

    @property
    def most_cost(self) -> float:
        """All that it may have cost."""
        return self.cost + self.lost_cost

    def __add__(self, other: Usage) -> Usage:
        return self._plus(other, 1)

    def __sub__(self, other: Usage) -> Usage:
        return self._plus(other, -1)

    def _plus(self, other: Usage, sign: int) -> Usage:
        return Usage(
            self.prompt_tokens + sign * other.prompt_tokens,
            self.completion_tokens + sign * other.completion_tokens,
            self.cost + sign * other.cost,
            self.lost_tokens + sign * other.lost_tokens,
            self.lost_cost + sign * other.lost_cost,
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked, as far as its rows tell.

    Attributes:
        key: of the request.
        retry_of: key of the failure that it asks again, or None.
        prompt: the messages.
        parameters: all else that was sent, but the model.
    """

    key: str
    retry_of: str | None
    sample_id: int
    file_id: str
    row: int
    turn: int
    draw: int
    prompt_name: str
    prompt_version: str
    model: str
    prompt: Sequence[Mapping[str, Any]]
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a request key: ``answered``, or ``failed`` with the failure's state."""

    how: Literal["answered", "failed"]
    task_id: str
    prompt_version: str
    state: str = ""
    answer: str = ""
    finish_reason: str = ""


@dataclass(frozen=True, slots=True)
class Spent:
    """Sums over a task."""

    answered: int
    failed: int
    usage: Usage


def version_key(key: str, prompt_version: str) -> str:
    """The key of a prompt version's own row about a request that another version sent first."""
    return hashlib.sha256(f"{key} {prompt_version}".encode()).hexdigest()


def known(connection: sa.Connection, keys: Sequence[str]) -> dict[str, Known]:
    """Which of these requests were answered, or have failed, whatever task asked."""
    found: dict[str, Known] = {}
    for start in range(0, len(keys), _MOST_KEYS):
        part = keys[start : start + _MOST_KEYS]
        failures = sa.select(_f.request_key, _f.task_id, _f.prompt_version, _f.state)
        for key, *rest in connection.execute(failures.where(_f.request_key.in_(part))):
            found[key] = Known("failed", *rest)
        answers = sa.select(_g.request_key, _g.task_id, _g.prompt_version, _g.answer, _g.finish_reason)
        for key, task_id, version, answer, finish in connection.execute(
            answers.where(_g.request_key.in_(part))
        ):
            found[key] = Known("answered", task_id, version, "", answer, finish or "")
    return found


def record_answer(
    connection: sa.Connection,
    db: Database,
    task_id: str,
    asked: Asked,
    answer: str,
    result_as: str,
    score: float | None,
    usage: Usage,
    seconds: float,
    finish_reason: str = "",
) -> None:
    """Store an answer inside the caller's transaction; the same answer once more changes nothing.

    Args:
        connection: in a transaction.
        db: its database.
        task_id: of the task that asked; its row is held (``SampleStore.hold``).
        asked: the request.
        answer: text, not empty.
        result_as: what becomes of it: ``next_turn``, ``replacement``, ``question``, ``score``.
        score: the number in it, of a scoring.
        usage: what it took.
        seconds: from the first try to the answer.
        finish_reason: why the model ended.

    Raises:
        ValueError: the answer is empty: a fault in the caller.
    """
    if not answer.strip():
        raise ValueError(f"request {asked.key}: an empty answer is a failure, never a result")
    key = _own_key(connection, db, asked)
    insert_missing(
        connection,
        generation,
        [
            {
                "request_key": key,
                "task_id": task_id,
                "sample_id": asked.sample_id,
                "dataset_file_id": asked.file_id,
                "row_identifier": asked.row,
                "turn_taking": asked.turn,
                "draw": asked.draw,
                "prompt_name": asked.prompt_name,
                "prompt_version": asked.prompt_version,
                "model": asked.model,
                "parameters": dump(asked.parameters),
                "retry_of": asked.retry_of,
                "result_as": result_as,
                "answer": answer,
                "score": score,
                "finish_reason": finish_reason[:40] or None,
                **_usage_values(usage),
                "seconds": seconds,
                "created_at": _now(connection, db),
            }
        ],
    )
    connection.execute(sa.delete(generation_failure).where(_f.request_key == key))
    _close(connection, db, asked.retry_of, "SOLVED")


def record_failure(
    connection: sa.Connection,
    db: Database,
    task_id: str,
    asked: Asked,
    error: str,
    message: str,
    raw: str | None,
    usage: Usage,
    tries: int,
) -> None:
    """Put a request into the failure queue inside the caller's transaction, unless it has an answer.

    Args:
        connection: in a transaction.
        db: its database.
        task_id: of the task that asked; its row is held (``SampleStore.hold``).
        asked: the request.
        error: name of the error.
        message: for people.
        raw: what the endpoint answered, as text.
        usage: what it took.
        tries: how often it was asked.
    """
    key = _own_key(connection, db, asked)
    answered = sa.select(_g.request_key).where(_g.request_key == key)
    if connection.execute(answered).one_or_none() is None:
        now = _now(connection, db)
        insert_missing(
            connection,
            generation_failure,
            [
                {
                    "request_key": key,
                    "task_id": task_id,
                    "sample_id": asked.sample_id,
                    "draw": asked.draw,
                    "state": "OPEN",
                    "retry_of": asked.retry_of,
                    "prompt_version": asked.prompt_version,
                    "model": asked.model,
                    "prompt": dump(asked.prompt),
                    "parameters": dump(asked.parameters),
                    "raw_answer": raw,
                    "error": error,
                    "message": message,
                    "attempts": tries,
                    **_usage_values(usage),
                    "created_at": now,
                    "updated_at": now,
                }
            ],
        )
    _close(connection, db, asked.retry_of, "REPLACED")


def spent(connection: sa.Connection, task_id: str) -> Spent:
    """What a task has got and used so far: sums over its rows, so exact after any kill."""
    columns = ("prompt_tokens", "completion_tokens", "cost", "lost_tokens", "lost_cost")
    sums: list[tuple[int, Usage]] = []
    for table in (generation, generation_failure):
        c = table.c
        query = sa.select(sa.func.count(), *(sa.func.coalesce(sa.func.sum(c[n]), 0) for n in columns)).where(
            c.task_id == task_id
        )
        row = connection.execute(query).one()
        sums.append((row[0], Usage(int(row[1]), int(row[2]), float(row[3]), int(row[4]), float(row[5]))))
    closed = sa.select(sa.func.count()).where(_f.task_id == task_id, _f.state.in_(CLOSED))
    return Spent(sums[0][0], sums[1][0] - connection.execute(closed).scalar_one(), sums[0][1] + sums[1][1])


def _own_key(connection: sa.Connection, db: Database, asked: Asked) -> str:
    """The key of the version's own row; it is locked against other tasks until the transaction ends."""
    db.lock(connection, int(asked.key[:7], 16))
    there = known(connection, [asked.key]).get(asked.key)
    if there is None or there.prompt_version == asked.prompt_version:
        return asked.key
    return version_key(asked.key, asked.prompt_version)


def _close(connection: sa.Connection, db: Database, failed: str | None, state: str) -> None:
    if failed is not None:
        connection.execute(
            sa.update(generation_failure)
            .where(_f.request_key == failed)
            .values(state=state, updated_at=db.now)
        )


def _usage_values(usage: Usage) -> dict[str, float]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
        "lost_tokens": usage.lost_tokens,
        "lost_cost": usage.lost_cost,
    }


def _now(connection: sa.Connection, db: Database) -> float:
    return float(connection.execute(sa.select(db.now)).scalar_one())
