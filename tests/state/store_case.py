"""What the contracts of the state store share. Subclasses supply ``url``: a fresh, migrated database."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import pytest
import sqlalchemy as sa

from dataflow_ops.state.store import StateStore
from dataflow_ops.values import Claim, Counts, DeadLetter, Output, Slice, TaskSpec

EXPIRED = 0.0
"""A lease that is over as soon as it is given."""


def spec(name: str, step: str = "parse", partition: str | None = None) -> TaskSpec:
    return TaskSpec(hashlib.sha256(name.encode()).hexdigest(), step, "parse", partition or name)


def letter(path: str = "a.html", error: str = "ParserFailed", position: int = 7) -> DeadLetter:
    return DeadLetter(
        "document", "parse", "web", path, position, "", error, "bad", "html@1", "text/html", "h"
    )


def output(kind: str = "text", uri: str = "data/parse/x") -> Output:
    return Output(kind, uri, 10, 20, "ff", 3, (Slice("", 0, 10, "ff", 3),))


class StoreCase:
    """Fixtures and helpers of all contracts."""

    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def store(self, url: str) -> Iterator[StateStore]:
        with StateStore(url) as store:
            store.create_run("r1", "web", "job", "full", "{}", "2026-01-01")
            store.set_run_state("r1", "start")
            yield store

    def _task(self, store: StateStore, name: str = "t", run_id: str = "r1") -> str:
        store.enqueue(run_id, [spec(name)])
        return spec(name).key

    def _claim(self, store: StateStore, key: str, **more: object) -> Claim:
        claim = store.claim(key, "me", **more)  # type: ignore[arg-type]
        assert claim is not None
        return claim

    def _commit(self, store: StateStore, claim: Claim, dead: Sequence[DeadLetter] = ()) -> None:
        counts = Counts(4 + len(dead), 2, 1, len(dead), {"later": 1}, 2, 100, 7)
        store.commit(claim, [output("text"), output("rejects")], counts, {"m": 1.5}, {"rule": 1}, dead, 2.0)

    def _state(self, store: StateStore, key: str) -> str:
        return store.records([key])[key].state

    def _number(self, store: StateStore, table: sa.Table) -> int:
        with store.db.read() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()

    def _topics(self, store: StateStore) -> list[str]:
        return [event.topic for event in store.pending_events()]
