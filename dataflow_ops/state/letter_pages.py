"""The dead letters of a run with one error in one step, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from dataflow_ops.state.database import Database
from dataflow_ops.state.glance import of_run
from dataflow_ops.state.tables import dead_letter


@dataclass(frozen=True, slots=True)
class LetterGlance:
    """One letter as people read it; ``position`` is -1 where it is a whole file's."""

    id: str
    source: str
    path: str
    position: int
    message: str
    state: str


class LetterPages:
    """Pages of letters."""

    db: Database

    def letter_page(
        self, run_id: str, error: str, step: str, limit: int, after: str = ""
    ) -> list[LetterGlance]:
        """The next letters of a group, by id.

        Args:
            run_id: whose.
            error: class name.
            step: where it was met.
            limit: most to return.
            after: id of the last letter that was seen; the empty string for the first page.
        """
        c = dead_letter.c
        query = (
            sa.select(c.id, c.source_id, c.path, c.position, c.message, c.state)
            .where(of_run(self.db, run_id), c.error == error, c.step == step, c.id > after)
            .order_by(c.id)
            .limit(limit)
        )
        with self.db.read() as connection:
            return [LetterGlance(*row) for row in connection.execute(query)]

    def messages_of_groups(self, run_id: str) -> dict[tuple[str, str], int]:
        """``(error, step)`` → different messages among the letters of a run; looks at all of them."""
        c = dead_letter.c
        query = (
            sa.select(c.error, c.step, sa.func.count(c.message.distinct()))
            .where(of_run(self.db, run_id))
            .group_by(c.error, c.step)
        )
        with self.db.read() as connection:
            return {(error, step): number for error, step, number in connection.execute(query)}
