"""Turns as they come in: ids from reserved blocks, written by staging and guarded upsert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from dataflow_ops.errors import StateError
from dataflow_ops.state.database import Database
from dataflow_ops.state.sample_tables import id_block, sample
from dataflow_ops.state.upsert import insert_staged

_c = sample.c
_BLOCK_NAME: Final = "sample"

Turn = Mapping[str, Any]
"""Values of ``sample``'s columns by name."""


class SampleRows:
    """Reading and writing of turns."""

    db: Database

    def reserve_ids(self, count: int) -> range:
        """Ids that nobody else gets, above all that were given out before. What is not used stays a gap."""
        table = postgresql.insert(id_block) if self.db.is_postgres else sqlite.insert(id_block)
        statement = (
            table.values(name=_BLOCK_NAME, next_id=1 + count)
            .on_conflict_do_update(index_elements=["name"], set_={"next_id": id_block.c.next_id + count})
            .returning(id_block.c.next_id)
        )
        with self.db.write() as connection:
            after: int = connection.execute(statement).scalar_one()
        return range(after - count, after)

    def add_turns(
        self, connection: sa.Connection, file_id: str, first: int, end: int, turns: Sequence[Turn]
    ) -> None:
        """Insert the turns of records ``first … end`` of a file; those that are there stay as they are.

        Args:
            connection: in a transaction.
            file_id: the file.
            first: record from which they are.
            end: record behind the last.
            turns: with ids of :meth:`reserve_ids`; all of them are of these records.

        Raises:
            MissingPrimaryKey: a turn has no id; nothing was written.
            StateError: the records have other turns in the table than these.
        """
        insert_staged(connection, sample, turns)
        found: int = connection.execute(
            sa.select(sa.func.count())
            .select_from(sample)
            .where(_c.dataset_file_id == file_id, _c.row_identifier >= first, _c.row_identifier < end)
        ).scalar_one()
        if found != len(turns):
            raise StateError(
                f"records {first:,} to {end - 1:,} of file {file_id} have {found:,} turns in the table, but"
                f" {len(turns):,} were read: they were imported before by another reader of the format"
            )

    def refresh_statistics(self) -> None:
        """Tell PostgreSQL's planner how large the table is: without it, pages are sorted instead of found."""
        if self.db.is_postgres:
            with self.db.write() as connection:
                connection.exec_driver_sql("ANALYZE sample")


def dialogue_of(connection: sa.Connection, file_id: str, record: int) -> list[sa.RowMapping]:
    """All turns of one dialogue in order, deleted ones too; empty where there is none."""
    query = (
        sa.select(sample)
        .where(_c.dataset_file_id == file_id, _c.row_identifier == record)
        .order_by(_c.turn_taking)
    )
    return list(connection.execute(query).mappings())
