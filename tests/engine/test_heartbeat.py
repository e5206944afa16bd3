"""A claim is kept alive; its loss reaches the task; a database that is away for a while does no harm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataflow_ops.engine.heartbeat import Heartbeat
from dataflow_ops.errors import CommitUnknown, DatabaseUnavailable, LeaseLost
from dataflow_ops.state.store import StateStore
from dataflow_ops.values import Claim, TaskSpec

CLAIM = Claim("k", 1, 1, "me")


class Beats:
    """Answers each beat with the next of a list; the last one stays."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers: Iterator[Exception | None] = iter(answers)
        self.seen: list[dict[str, Any] | None] = []

    def heartbeat(self, claim: Claim, progress: dict[str, Any] | None = None) -> None:
        self.seen.append(progress)
        answer = next(self.answers, None)
        if answer is not None:
            raise answer


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_beats_go_on_with_the_newest_progress_and_stop_at_the_end() -> None:
    beats = Beats()
    with Heartbeat(beats, CLAIM, 0.02) as beat:
        beat.progress = {"rows": 1}
        until(lambda: {"rows": 1} in beats.seen)
        beat.progress = {"rows": 2}
        until(lambda: {"rows": 2} in beats.seen)
        beat.check()
    seen = len(beats.seen)
    time.sleep(0.1)
    assert len(beats.seen) == seen


def test_a_database_that_is_away_is_tried_again() -> None:
    beats = Beats(DatabaseUnavailable("locked"), CommitUnknown("?"), DatabaseUnavailable("gone"))
    with Heartbeat(beats, CLAIM, 0.01) as beat:
        until(lambda: len(beats.seen) > 5)
        beat.check()


def test_a_lost_lease_is_told_and_no_beat_follows() -> None:
    beats = Beats(None, LeaseLost("another attempt"))
    with Heartbeat(beats, CLAIM, 0.01) as beat:
        until(lambda: len(beats.seen) == 2)
        time.sleep(0.1)
        with pytest.raises(LeaseLost):
            beat.check()
    assert len(beats.seen) == 2


def test_against_a_real_store(sqlite_store: StateStore) -> None:
    """A lease of a quarter of a second lives for a second, and ends when another takes the task over."""
    sqlite_store.create_run("r", "d", "d", "full", "{}", None)
    sqlite_store.enqueue("r", [TaskSpec("k", "act", "ingest", "a")])
    claim = sqlite_store.claim("k", "me", lease_s=0.25)
    assert claim is not None
    with Heartbeat(sqlite_store, claim, 0.05) as beat:
        time.sleep(1)
        assert sqlite_store.claim("k", "you", lease_s=0.25) is None
        beat.check()
        assert sqlite_store.expire_leases("me") == 1
        taken = sqlite_store.claim("k", "you", lease_s=60)
        if taken is None:  # a beat came between the two
            sqlite_store.expire_leases("me")
            taken = sqlite_store.claim("k", "you", lease_s=60)
        assert taken is not None
        assert taken.epoch == claim.epoch + 1
        time.sleep(0.2)
        with pytest.raises(LeaseLost):
            beat.check()
