"""Turns by key ranges, verdicts about them, and what was changed, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import sqlalchemy as sa

from dataflow_ops.errors import StateError
from dataflow_ops.state.database import Database
from dataflow_ops.state.sample_tables import sample, sample_change
from dataflow_ops.state.samples.targets import ready_files
from dataflow_ops.state.upsert import insert_staged, upsert

_s = sample.c
TURN: Final = (
    _s.id,
    _s.row_identifier,
    _s.turn_taking,
    _s.data_role,
    _s.data_content,
    _s.data_meta,
    _s.status,
)
"""Columns of a turn, in the order in which they are read."""
TurnRow = tuple[int, int, int, str, str, str | None, str]
KEPT: Final = "KEPT"
"""``status`` of turns whose dialogue passed a clean-up."""
_PAGE: Final = 10_000
_KEYS_AT_ONCE: Final = 500


def read_records(
    connection: sa.Connection,
    file: str,
    first: int,
    highest_id: int,
    rows: int,
    *,
    before: int | None = None,
    statuses: Sequence[str] = (),
) -> list[TurnRow]:
    """Turns of whole records, deleted ones left out: about ``rows`` of them, more where one record has more.

    Args:
        connection: to read with.
        file: of which file.
        first: ``row_identifier`` to begin with.
        highest_id: rows above were not there when the task began.
        rows: how many turns, at least 1.
        before: ``row_identifier`` to end before.
        statuses: only rows of one of these; empty: of any.
    """
    query = sa.select(*TURN).where(
        _s.dataset_file_id == file, _s.id <= highest_id, _s.deleted_at.is_(None), _s.row_identifier >= first
    )
    if before is not None:
        query = query.where(_s.row_identifier < before)
    if statuses:
        query = query.where(_s.status.in_(statuses))
    query = query.order_by(_s.row_identifier, _s.turn_taking)
    while True:
        found: list[Any] = list(connection.execute(query.limit(rows + 1)))
        if len(found) <= rows:
            return found
        last = found[-1].row_identifier
        whole = [row for row in found if row.row_identifier != last]
        if whole:
            return whole
        rows *= 4


def read_dialogues(
    connection: sa.Connection, db: Database, places: Sequence[tuple[str, int]]
) -> Iterator[tuple[str, TurnRow]]:
    """Turns of some dialogues, those of one together and in order; deleted ones too.

    Args:
        connection: to read with.
        db: the database.
        places: file and ``row_identifier`` of each.

    Yields:
        ``(file, turn)``.
    """
    by_file: dict[str, list[int]] = {}
    for file, row in places:
        by_file.setdefault(file, []).append(row)
    for file, records in by_file.items():
        for start in range(0, len(records), _KEYS_AT_ONCE):
            part = sorted(records[start : start + _KEYS_AT_ONCE])
            query = (
                sa.select(*TURN)
                .where(_s.dataset_file_id == file, _s.row_identifier.in_(part))
                .order_by(_s.row_identifier, _s.turn_taking)
            )
            for found in connection.execute(query):
                yield file, cast("TurnRow", tuple(found))


def other_files(connection: sa.Connection, dataset: str, files: Sequence[str]) -> list[str]:
    """Files of a data set besides some, in one order for all."""
    return sorted(set(ready_files(connection, dataset)) - set(files))


def kept_pages(
    db: Database, file: str, highest_id: int, before: int | None = None
) -> Iterator[list[TurnRow]]:
    """Turns of kept dialogues of a file, page by page; whole records.

    Args:
        db: the database.
        file: of which file.
        highest_id: rows above are left out.
        before: ``row_identifier`` to end before; None: to the end.
    """
    first = 0
    while True:
        with db.read() as connection:
            found = read_records(connection, file, first, highest_id, _PAGE, before=before, statuses=[KEPT])
        if not found:
            return
        yield found
        first = found[-1][1] + 1


def write_verdicts(
    connection: sa.Connection, db: Database, rows: Sequence[dict[str, Any]], changes: Sequence[dict[str, Any]]
) -> None:
    """Update turns, and keep what they were before, in the caller's transaction.

    Args:
        connection: in the transaction that moves the cursor.
        db: the database.
        rows: ``id`` and the columns that are to change.
        changes: rows of ``sample_change`` without the time.

    Raises:
        StateError: a turn is not there any more: nothing may be committed.
    """
    now = connection.execute(sa.select(db.now)).scalar_one()
    counts = upsert(connection, sample, [{**row, "updated_at": now} for row in rows], mode="update")
    if counts.missing:
        raise StateError(
            f"{counts.missing} turn(s) that were to be updated are gone: somebody deleted rows of 'sample'"
            " for good while a task worked on them; nothing of this batch was kept"
        )
    if changes:
        insert_staged(connection, sample_change, [{**change, "created_at": now} for change in changes])
