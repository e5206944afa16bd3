"""Redis flushed, restarted, stopped, silent: a pause is known sooner with it, and holds without it."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator

import pytest

from dataflow_ops.control.flags import PauseFlags
from dataflow_ops.control.pause import BESIDE_COPY_S, GLANCE_S, PauseWatch
from dataflow_ops.control.redis_copy import REST_S, RedisCopy, key_of
from dataflow_ops.errors import DatabaseUnavailable
from dataflow_ops.state.store import StateStore
from tests.control.redis_server import RedisServer, redis_server  # noqa: F401 - a fixture
from tests.control.test_pause import CountingStore

pytestmark = pytest.mark.redis


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def copy(redis_server: RedisServer, clock: Clock) -> Iterator[RedisCopy]:  # noqa: F811
    copy = RedisCopy(redis_server.url, clock)
    yield copy
    copy.close()


def watch_over(source: CountingStore, copy: RedisCopy, clock: Clock) -> PauseWatch:
    watch = PauseWatch(source, "r1", "web", copy, clock=clock)  # type: ignore[arg-type]
    assert watch.flag() is None
    return watch


def test_a_copy_makes_a_pause_known_sooner_and_the_database_is_asked_less(
    sqlite_store: StateStore,
    redis_server: RedisServer,  # noqa: F811
    copy: RedisCopy,
    clock: Clock,
) -> None:
    source = CountingStore(sqlite_store)
    watch = watch_over(source, copy, clock)
    while clock.now < 103.9:
        clock.now += 0.01
        assert watch.flag() is None
    assert source.asked == 4, "once a second"
    PauseFlags(sqlite_store, redis_server.url).pause("dataset", "web", "ann", "")
    clock.now += GLANCE_S
    flag = watch.flag()
    assert flag is not None
    assert flag.who == "ann"


@pytest.mark.parametrize("trouble", ["flush", "restart", "stop"])
def test_nothing_goes_on_by_itself_whatever_becomes_of_redis(
    sqlite_store: StateStore,
    redis_server: RedisServer,  # noqa: F811
    copy: RedisCopy,
    clock: Clock,
    trouble: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    flags = PauseFlags(sqlite_store, redis_server.url)
    watch = watch_over(CountingStore(sqlite_store), copy, clock)
    flags.pause("run", "r1", "ann", "")
    clock.now += BESIDE_COPY_S
    assert watch.flag() is not None
    getattr(redis_server, trouble)()
    for _ in range(100):
        clock.now += 0.1
        assert watch.flag() is not None
    # A flag that was set while Redis knew nothing of it holds as well, and one taken back is gone.
    flags.pause("all", "", "bob", "")
    flags.resume("run", "r1", "ann")
    clock.now += BESIDE_COPY_S
    flag = watch.flag()
    assert flag is not None
    assert flag.scope == "all"
    flags.resume("all", "", "bob")
    clock.now += BESIDE_COPY_S
    assert watch.flag() is None
    with caplog.at_level(logging.WARNING):
        fresh = watch_over(CountingStore(sqlite_store), copy, clock)
        for _ in range(300):
            clock.now += 0.1
            assert fresh.flag() is None
    told = [r for r in caplog.records if "alone is" in r.message]
    assert len(told) == (1 if trouble == "stop" else 0), "told once, not for every batch"
    assert copy.failures <= 30 / REST_S + 1


def test_a_stopped_redis_is_looked_for_again(
    sqlite_store: StateStore,
    redis_server: RedisServer,  # noqa: F811
    copy: RedisCopy,
    clock: Clock,
) -> None:
    watch = watch_over(CountingStore(sqlite_store), copy, clock)
    redis_server.stop()
    clock.now += GLANCE_S
    assert watch.flag() is None
    assert copy.failures == 1
    redis_server.start()
    PauseFlags(sqlite_store, redis_server.url).pause("run", "r1", "ann", "")
    assert not copy.hints("r1", "web"), "left alone for a while"
    clock.now += REST_S
    assert copy.hints("r1", "web")
    assert copy.failures == 0


def test_a_silent_redis_holds_nobody_up(copy: RedisCopy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        silent = RedisCopy(f"redis://127.0.0.1:{deaf.getsockname()[1]}/0")
        began = time.monotonic()
        assert not silent.hints("r1", "web")
        assert not silent.hints("r1", "web")
        assert time.monotonic() - began < REST_S
        assert silent.failures == 1
        silent.close()


def test_a_hint_that_was_left_behind_pauses_nobody(
    sqlite_store: StateStore,
    redis_server: RedisServer,  # noqa: F811
    copy: RedisCopy,
    clock: Clock,
) -> None:
    with redis_server.client() as client:
        client.set(key_of("run", "r1"), "{}")
    source = CountingStore(sqlite_store)
    watch = watch_over(source, copy, clock)
    for _ in range(100):
        clock.now += 0.1
        assert watch.flag() is None
    assert source.asked <= 10 / GLANCE_S + 1


def test_a_forked_process_connects_anew(redis_server: RedisServer, copy: RedisCopy) -> None:  # noqa: F811
    """Two processes that read one socket would take each other's answers."""
    assert not copy.hints("r1", "web")
    with redis_server.client() as client:
        client.set(key_of("run", "r1"), '{"who": "ann"}')
        before = len(client.client_list())
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(tell, b"yes" if copy.hints("r1", "web") else b"no")
            time.sleep(60)
            os._exit(0)
        try:
            assert os.read(told, 10) == b"yes"
            assert len(client.client_list()) == before + 1
            assert copy.hints("r1", "web")
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)


def test_while_the_database_is_away_the_last_answer_stands(
    sqlite_store: StateStore, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    class Away(CountingStore):
        away = False

        def paused(self, run_id: str, dataset: str) -> object:
            if self.away:
                raise DatabaseUnavailable("restarting")
            return super().paused(run_id, dataset)

    source = Away(sqlite_store)
    watch = PauseWatch(source, "r1", "web", clock=clock)  # type: ignore[arg-type]
    sqlite_store.set_pause("run", "r1", "ann")
    assert watch.flag() is not None
    source.away = True
    for _ in range(10):
        clock.now += 1.0
        assert watch.flag() is not None
    assert len(caplog.records) == 1
    source.away = False
    sqlite_store.clear_pause("run", "r1")
    clock.now += 1.0
    assert watch.flag() is None
