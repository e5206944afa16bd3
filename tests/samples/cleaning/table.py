"""A database with dialogues, and a clean-up of them run to the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dataflow_ops.samples.cleaning.settings import SampleCleanSettings
from dataflow_ops.samples.cleaning.step import Cleaning
from dataflow_ops.state.sample_tables import dataset_file, sample, sample_change
from dataflow_ops.state.samples.records import SampleTask
from dataflow_ops.state.samples.store import SampleStore

Said = Sequence[tuple[str, str]]
"""Role and content of each turn."""


def fill(store: SampleStore, files: Mapping[str, Sequence[Said]], dataset: str = "d") -> None:
    """Add files of dialogues."""
    with store.write() as connection:
        last = connection.execute(sa.select(sa.func.coalesce(sa.func.max(sample.c.id), 0))).scalar_one()
        for name, dialogues in files.items():
            connection.execute(
                sa.insert(dataset_file).values(
                    id=name, dataset=dataset, path=name, format="messages", sha256=name, size=1,
                    records=len(dialogues), rows=1, refused=0, status="READY", task_id="i", created_at=0,
                    updated_at=0,
                )
            )  # fmt: skip
            for row, said in enumerate(dialogues):
                for turn, (role, content) in enumerate(said):
                    last += 1
                    connection.execute(
                        sa.insert(sample).values(
                            id=last, dataset_file_id=name, row_identifier=row, turn_taking=turn,
                            data_role=role, data_content=content, data_length=len(content), status="NEW",
                            created_at=0, updated_at=0,
                        )
                    )  # fmt: skip


def claimed(
    store: SampleStore, files: Sequence[str], settings: SampleCleanSettings, dataset: str = "d"
) -> SampleTask:
    """A task over some files, claimed."""
    store.create_task("t", dataset, "clean", settings.model_dump(mode="json"), files, "me")
    return store.claim_task("t", "me").task


def clean(
    store: SampleStore, files: Sequence[str], settings: SampleCleanSettings, restarts: Sequence[int] = ()
) -> dict[str, float]:
    """Run a clean-up to the end; after batches so numbered a fresh one takes over. The sums of its counts."""
    task = claimed(store, files, settings)
    cleaning = Cleaning(store.db, task, settings)
    cleaning.remember(None, 0)
    sums: dict[str, float] = {}
    batch = 0
    for file in files:
        at = 0
        while (done := cleaning.batch(file, at)) is not None:
            with store.write() as connection:
                done.write(connection, store.db)
            at = done.next_row
            for name, n in done.counts.items():
                sums[name] = sums.get(name, 0) + n
            batch += 1
            if batch in restarts:
                cleaning = Cleaning(store.db, task, settings)
                cleaning.remember(file, at)
    return sums


def rows(store: SampleStore) -> list[dict[str, Any]]:
    """All turns, ascending."""
    with store.read() as connection:
        found = connection.execute(sa.select(sample).order_by(sample.c.id))
        return [dict(row._mapping) for row in found]


def verdicts(store: SampleStore) -> dict[tuple[str, int], tuple[str, str | None]]:
    """File and record → status and reason."""
    return {(r["dataset_file_id"], r["row_identifier"]): (r["status"], r["status_rule"]) for r in rows(store)}


def history(store: SampleStore) -> list[tuple[int, str, str, str | None, str | None]]:
    """Row, rule, field, before, after of each change."""
    c = sample_change.c
    query = sa.select(c.sample_id, c.rule, c.field, c.before, c.after).order_by(c.sample_id, c.ordinal)
    with store.read() as connection:
        return [tuple(row) for row in connection.execute(query)]  # type: ignore[misc]
