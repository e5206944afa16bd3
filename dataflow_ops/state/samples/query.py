"""Looking at turns: filtered, page by page by key, whole dialogues, sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from dataflow_ops.errors import ConfigError
from dataflow_ops.state.database import Database
from dataflow_ops.state.sample_tables import sample
from dataflow_ops.state.samples.rows import dialogue_of
from dataflow_ops.state.tables import safe

_c = sample.c
STATUSES: Final = ("NEW", "KEPT", "REJECTED", "DUPLICATE")
BANDS: Final = (0, 1, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
"""Where bands of lengths begin, in characters; the last has no end."""
MOST: Final = 1_000
"""Most turns on a page."""
_KEY: Final = (_c.row_identifier, _c.turn_taking)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which turns are meant; whatever is left out holds for all.

    Attributes:
        files: ids, in the order in which they are shown.
        roles: ``user``, ``assistant``, …
        statuses: of :data:`STATUSES`.
        rule: that decided the status, or its first words (``near``, ``exact``).
        contains: text that the content has, letter by letter.
        shortest: least characters of the content.
        longest: most characters of the content.
        records: ordinals of records in their files.
        deleted: only those that are deleted, or those that are not; both when None.
    """

    files: tuple[str, ...]
    roles: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    rule: str | None = None
    contains: str = ""
    shortest: int | None = None
    longest: int | None = None
    records: tuple[int, ...] = ()
    deleted: bool | None = False

    def __post_init__(self) -> None:
        unknown = sorted(set(self.statuses) - set(STATUSES))
        if unknown:
            raise ConfigError(f"status {', '.join(unknown)}: use {', '.join(STATUSES)}")

    @property
    def is_open(self) -> bool:
        """Whether it names nothing but files."""
        return self == Filter(self.files, deleted=self.deleted)

    def conditions(self, db: Database) -> list[sa.ColumnElement[bool]]:
        """What turns must meet, without the file."""
        found: list[sa.ColumnElement[bool]] = []
        if self.roles:
            found.append(_c.data_role.in_(self.roles))
        if self.statuses:
            found.append(_c.status.in_(self.statuses))
        if self.rule is not None:
            # Of a duplicate the rule goes on with what it is a duplicate of: "near 0.9694 of FILE:RECORD".
            longer = _c.status_rule.startswith(f"{self.rule} ", autoescape=True)
            found.append(sa.or_(_c.status_rule == self.rule, longer))
        if self.contains:
            place = sa.func.strpos if db.is_postgres else sa.func.instr
            found.append(place(_c.data_content, safe(self.contains)) > 0)
        if self.shortest is not None:
            found.append(_c.data_length >= self.shortest)
        if self.longest is not None:
            found.append(_c.data_length <= self.longest)
        if self.records:
            found.append(_c.row_identifier.in_(self.records))
        if self.deleted is not None:
            found.append(_c.deleted_at.is_not(None) if self.deleted else _c.deleted_at.is_(None))
        return found

    def as_json(self) -> dict[str, Any]:
        """What can be stored; :func:`filter_of` reads it."""
        return {name: getattr(self, name) for name in self.__slots__}


def filter_of(stored: Mapping[str, Any]) -> Filter:
    """The filter that :meth:`Filter.as_json` gave."""
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
    return Filter(**values)


class SampleQuery:
    """Questions about turns."""

    db: Database

    def page(
        self, only: Filter, after: int | None = None, limit: int = 50, preview: int | None = None
    ) -> list[dict[str, Any]]:
        """Turns in the order of the files, and within a file by record and turn.

        Args:
            only: which turns.
            after: id of the last turn of the page before; None begins.
            limit: at most so many, up to 1,000.
            preview: at most so many characters of each content; all when None.

        Raises:
            ConfigError: ``limit`` is out of range, or turn ``after`` is in none of the files.
        """
        if not 0 < limit <= MOST:
            raise ConfigError(f"a page has 1 to {MOST:,} turns, not {limit:,}")
        found: list[dict[str, Any]] = []
        conditions = only.conditions(self.db)
        files = list(only.files)
        text = _c.data_content if preview is None else sa.func.substr(_c.data_content, 1, preview)
        columns = [text.label(c.name) if c is _c.data_content else c for c in sample.columns]
        with self.db.read() as connection:
            behind: tuple[int, int] | None = None
            if after is not None:
                file, *place = _place(connection, after)
                if file not in files:
                    raise ConfigError(f"turn {after} is in none of the files shown: begin without it")
                files, behind = files[files.index(file) :], (place[0], place[1])
            for file in files:
                # By the unique key: no other index has this order, so that no plan can walk past other files.
                query = sa.select(*columns).where(_c.dataset_file_id == file, *conditions).order_by(*_KEY)
                if behind is not None:
                    query = query.where(sa.tuple_(*_KEY) > sa.tuple_(*behind))
                    behind = None
                rows = connection.execute(query.limit(limit - len(found))).mappings()
                found += [dict(row) for row in rows]
                if len(found) == limit:
                    break
        return found

    def dialogue(self, file_id: str, record: int) -> list[dict[str, Any]]:
        """All turns of one dialogue in order, deleted ones too; empty where there is none."""
        with self.db.read() as connection:
            return [dict(row) for row in dialogue_of(connection, file_id, record)]

    def turn(self, sample_id: int) -> dict[str, Any] | None:
        """One turn; None where there is none of this id."""
        with self.db.read() as connection:
            row = connection.execute(sa.select(sample).where(_c.id == sample_id)).mappings().one_or_none()
        return None if row is None else dict(row)

    def aggregates(self, only: Filter) -> list[dict[str, Any]]:
        """Sums by file, role, status and band of lengths.

        Returns:
            ``file``, ``role``, ``status``, ``band`` (where it begins), ``turns``, ``dialogues`` (those whose
            first turn is among them) and ``characters`` of each combination that there is.
        """
        band = sa.case(*((_c.data_length >= start, start) for start in reversed(BANDS)), else_=0)
        columns = (
            _c.dataset_file_id.label("file"),
            _c.data_role.label("role"),
            _c.status.label("status"),
            band.label("band"),
        )
        first = sa.case((_c.turn_taking == 0, 1), else_=0)
        query = (
            sa.select(
                *columns,
                sa.func.count().label("turns"),
                sa.func.sum(first).label("dialogues"),
                sa.func.sum(sa.cast(_c.data_length, sa.BigInteger)).label("characters"),
            )
            .where(self.db.among(_c.dataset_file_id, list(only.files)), *only.conditions(self.db))
            .group_by(*(sa.literal_column(str(n + 1)) for n in range(len(columns))))
            .order_by(*(sa.literal_column(str(n + 1)) for n in range(len(columns))))
        )
        with self.db.read() as connection:
            return [
                {**row, "dialogues": int(row["dialogues"]), "characters": int(row["characters"])}
                for row in connection.execute(query).mappings()
            ]


def _place(connection: sa.Connection, turn: int) -> tuple[str, int, int]:
    """File, record and number of a turn."""
    row = connection.execute(
        sa.select(_c.dataset_file_id, _c.row_identifier, _c.turn_taking).where(_c.id == turn)
    ).one_or_none()
    return ("", 0, 0) if row is None else (row[0], row[1], row[2])
