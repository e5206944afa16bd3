"""What the contracts of the sample store share. Subclasses supply ``url``: a fresh, migrated database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from dataflow_ops.state.sample_tables import dataset_file, sample
from dataflow_ops.state.samples.store import SampleStore

EXPIRED = 0.0
"""A lease that is over as soon as it is given."""


def put_file(store: SampleStore, file: str = "f1", status: str = "READY", dataset: str = "chat") -> str:
    with store.write() as connection:
        connection.execute(
            sa.insert(dataset_file).values(
                id=file,
                dataset=dataset,
                path=f"{file}.jsonl",
                format="messages",
                sha256="ab",
                size=1,
                records=0,
                rows=0,
                refused=0,
                status=status,
                task_id="import",
                created_at=store.db.now,
                updated_at=store.db.now,
            )
        )
    return file


def put_turns(store: SampleStore, file: str, ids: range, turns: int = 2, first: int = 0) -> None:
    """Turns with these ids: dialogues of ``turns`` each, numbered from ``first``."""
    with store.write() as connection:
        connection.execute(
            sa.insert(sample),
            [
                {
                    "id": id_,
                    "dataset_file_id": file,
                    "row_identifier": first + number // turns,
                    "turn_taking": number % turns,
                    "data_role": ("user", "assistant")[number % 2],
                    "data_content": f"text {id_}",
                    "data_length": len(f"text {id_}"),
                    "data_meta": None,
                    "status": "NEW",
                    "created_at": 0.0,
                    "updated_at": 0.0,
                }
                for number, id_ in enumerate(ids)
            ],
        )


class SampleCase:
    """Fixtures and helpers of all contracts."""

    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def store(self, url: str) -> Iterator[SampleStore]:
        with SampleStore(url) as store:
            yield store

    def _number(self, store: SampleStore, table: sa.Table) -> int:
        with store.read() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()

    def _topics(self, store: SampleStore) -> list[str]:
        return [event.topic for event in store.pending_events()]
