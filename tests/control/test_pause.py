from __future__ import annotations

from dataflow_ops.control.pause import PauseWatch
from dataflow_ops.state.store import StateStore
from dataflow_ops.values import TaskSpec


class CountingStore:
    """A store that counts how often it is asked."""

    def __init__(self, store: StateStore) -> None:
        self.store = store
        self.asked = 0

    def paused(self, run_id: str, dataset: str) -> object:
        self.asked += 1
        return self.store.paused(run_id, dataset)

    def wanted_elsewhere(self, key: str, run_id: str) -> bool:
        return self.store.wanted_elsewhere(key, run_id)


def test_the_database_is_asked_at_most_twice_a_second(sqlite_store: StateStore) -> None:
    now = [100.0]
    source = CountingStore(sqlite_store)
    watch = PauseWatch(source, "r1", "web", clock=lambda: now[0])  # type: ignore[arg-type]
    for _ in range(1000):
        assert watch.flag() is None
        now[0] += 0.001
    assert source.asked == 2
    sqlite_store.set_pause("run", "r1", "ann", "look")
    now[0] += 0.5
    flag = watch.flag()
    assert flag is not None
    assert (flag.who, flag.why) == ("ann", "look")
    sqlite_store.clear_pause("run", "r1")
    now[0] += 0.5
    assert watch.flag() is None


def test_a_task_that_another_run_wants_goes_on(sqlite_store: StateStore) -> None:
    for run_id in ("r1", "r2"):
        sqlite_store.create_run(run_id, "web", "job", "full", "{}", None)
        sqlite_store.enqueue(run_id, [TaskSpec("a" * 64, "parse", "parse", "p")])
    sqlite_store.set_pause("run", "r1")
    now = [100.0]
    watch = PauseWatch(sqlite_store, "r1", "web", clock=lambda: now[0])
    assert watch.flag() is not None
    assert watch.should_stop("a" * 64) is None
    sqlite_store.cancel("r2")
    now[0] += 0.5
    assert watch.should_stop("a" * 64) is not None
