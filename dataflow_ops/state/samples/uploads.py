"""Uploads that can be cut off and continued: how many bytes of each are durable."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from dataflow_ops.errors import ConfigError, IllegalMove
from dataflow_ops.state.database import Database
from dataflow_ops.state.sample_tables import upload

_c = upload.c


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload. Times are seconds since 1970.

    Attributes:
        upload_id: given at its beginning.
        dataset: where the file is to go.
        name: that the user gave the file.
        size: bytes that it will have.
        received: bytes that are durable: the next part begins there.
        sha256: that it must have; None: not told.
        state: OPEN, DONE, ABORTED.
        who: who sends it.
        created_at: when it began.
        updated_at: when the last part came.
    """

    upload_id: str
    dataset: str
    name: str
    size: int
    received: int
    sha256: str | None
    state: str
    who: str
    created_at: float
    updated_at: float


class SampleUploads:
    """The record of uploads."""

    db: Database

    def begin_upload(self, dataset: str, name: str, size: int, sha256: str | None, who: str) -> Upload:
        """Note a new upload."""
        upload_id = uuid.uuid4().hex
        with self.db.write() as connection:
            connection.execute(
                sa.insert(upload).values(
                    upload_id=upload_id,
                    dataset=dataset,
                    name=name,
                    size=size,
                    received=0,
                    sha256=sha256,
                    state="OPEN",
                    who=who,
                    created_at=self.db.now,
                    updated_at=self.db.now,
                )
            )
        return self.upload(upload_id)

    def upload(self, upload_id: str) -> Upload:
        """One upload.

        Raises:
            ConfigError: there is none of this id.
        """
        query = sa.select(*(_c[name] for name in Upload.__slots__)).where(_c.upload_id == upload_id)
        with self.db.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise ConfigError(f"there is no upload {upload_id}: begin a new one")
        return Upload(*row)

    def uploads(self, dataset: str, state: str = "OPEN") -> list[Upload]:
        """Uploads of a data set, newest first."""
        query = (
            sa.select(*(_c[name] for name in Upload.__slots__))
            .where(_c.dataset == dataset, _c.state == state)
            .order_by(_c.created_at.desc(), _c.upload_id)
        )
        with self.db.read() as connection:
            return [Upload(*row) for row in connection.execute(query)]

    def advance_upload(self, upload_id: str, offset: int, received: int) -> None:
        """Bytes up to ``received`` are durable, where they were up to ``offset``.

        Raises:
            IllegalMove: somebody else has moved it since.
        """
        self._change_upload(upload_id, _c.received == offset, received=received)

    def end_upload(self, upload_id: str, state: str) -> None:
        """DONE or ABORTED.

        Raises:
            IllegalMove: it has ended already.
        """
        self._change_upload(upload_id, sa.true(), state=state)

    def _change_upload(self, upload_id: str, where: sa.ColumnElement[bool], **values: Any) -> None:
        with self.db.write() as connection:
            row = connection.execute(
                sa.update(upload)
                .where(_c.upload_id == upload_id, _c.state == "OPEN", where)
                .values(updated_at=self.db.now, **values)
                .returning(_c.upload_id)
            ).one_or_none()
        if row is None:
            raise IllegalMove(f"upload {upload_id} has moved on: ask how far it is, and go on from there")
