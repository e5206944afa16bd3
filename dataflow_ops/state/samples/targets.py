"""Which turns a task asks a model about, in the order of the files, and the dialogues around them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from dataflow_ops.state.sample_tables import dataset_file, sample

_c = sample.c


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which turns with text: ``each`` that fits, or the ``first`` or the ``last`` of each dialogue."""

    turns: str
    roles: tuple[str, ...]
    status: tuple[str, ...]
    highest_id: int
    """Nothing above is read: it came after the task had begun."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn. ``meta`` holds its other keys, such as ``tool_calls``."""

    sample_id: int
    file_id: str
    row: int
    turn: int
    role: str
    content: str
    meta: Mapping[str, Any]


def ready_files(connection: sa.Connection, dataset: str) -> list[str]:
    """Files of a data set that were imported whole, in the order in which they came."""
    f = dataset_file.c
    query = (
        sa.select(f.id)
        .where(f.dataset == dataset, f.status == "READY", f.deleted_at.is_(None))
        .order_by(f.created_at, f.id)
    )
    return list(connection.execute(query).scalars())


def count_targets(connection: sa.Connection, wanted: Wanted, files: Sequence[str]) -> int:
    """How many turns there are to ask about in these files."""
    number = 0
    for file in files:
        query = (
            sa.select(sa.func.count()).select_from(sample).where(_c.dataset_file_id == file, *_fits(wanted))
        )
        number += connection.execute(query).scalar_one()
    return number


def next_targets(
    connection: sa.Connection, wanted: Wanted, file_id: str, start: tuple[int, int], limit: int
) -> list[Turn]:
    """The next turns of a file to ask about.

    Args:
        connection: reading.
        wanted: which.
        file_id: the file.
        start: record and turn to begin at.
        limit: most turns.
    """
    query = (
        sa.select(*_columns())
        .where(
            _c.dataset_file_id == file_id,
            sa.tuple_(_c.row_identifier, _c.turn_taking) >= sa.tuple_(*map(sa.literal, start)),
            *_fits(wanted),
        )
        .order_by(_c.row_identifier, _c.turn_taking)
        .limit(limit)
    )
    return [_turn(row) for row in connection.execute(query)]


def read_dialogues(
    connection: sa.Connection, file_id: str, rows: Sequence[int], highest_id: int
) -> dict[int, list[Turn]]:
    """Whole dialogues by record, their turns in order; what was deleted is left out."""
    query = (
        sa.select(*_columns())
        .where(
            _c.dataset_file_id == file_id,
            _c.row_identifier.in_(sorted(set(rows))),
            _c.id <= highest_id,
            _c.deleted_at.is_(None),
        )
        .order_by(_c.row_identifier, _c.turn_taking)
    )
    found: dict[int, list[Turn]] = {}
    for row in connection.execute(query):
        turn = _turn(row)
        found.setdefault(turn.row, []).append(turn)
    return found


def read_turns(connection: sa.Connection, ids: Sequence[int]) -> dict[int, Turn]:
    """Turns by id, deleted ones too."""
    query = sa.select(*_columns()).where(_c.id.in_(sorted(set(ids))))
    return {row.id: _turn(row) for row in connection.execute(query)}


def _fits(wanted: Wanted) -> list[sa.ColumnElement[bool]]:
    fits = [
        _c.id <= wanted.highest_id,
        _c.deleted_at.is_(None),
        _c.status.in_(wanted.status),
        _c.data_role.in_(wanted.roles),
        _c.data_length > 0,  # a turn that only calls a tool has no text to ask about
    ]
    if wanted.turns != "each":
        other = sample.alias()
        o = other.c
        further = (
            o.turn_taking < _c.turn_taking if wanted.turns == "first" else o.turn_taking > _c.turn_taking
        )
        same = (
            sa.select(sa.literal(1))
            .select_from(other)
            .where(
                o.dataset_file_id == _c.dataset_file_id,
                o.row_identifier == _c.row_identifier,
                further,
                o.id <= wanted.highest_id,
                o.deleted_at.is_(None),
                o.status.in_(wanted.status),
                o.data_role.in_(wanted.roles),
                o.data_length > 0,
            )
        )
        fits.append(~same.exists())
    return fits


def _columns() -> tuple[sa.ColumnElement[Any], ...]:
    return (
        _c.id,
        _c.dataset_file_id,
        _c.row_identifier,
        _c.turn_taking,
        _c.data_role,
        _c.data_content,
        _c.data_meta,
    )


def _turn(row: sa.Row[Any]) -> Turn:
    meta = json.loads(row.data_meta) if row.data_meta else {}
    return Turn(
        row.id,
        row.dataset_file_id,
        row.row_identifier,
        row.turn_taking,
        row.data_role,
        row.data_content,
        meta if isinstance(meta, dict) else {},
    )
