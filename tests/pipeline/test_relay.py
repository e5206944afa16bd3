"""The relay against a real receiver that fails in every way, and relays that are killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from dataflow_ops.engine.owner import owner_name
from dataflow_ops.errors import ConfigError, DatabaseUnavailable
from dataflow_ops.pipeline import relay_lane
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.relay import Relay
from dataflow_ops.pipeline.relay_lane import Lane, Tally, back_off
from dataflow_ops.pipeline.webhooks import Webhook
from dataflow_ops.state.deliveries import Due
from dataflow_ops.state.outbox import emit
from dataflow_ops.state.store import StateStore
from tests.pipeline.receiver import SECRET, Receiver


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter pauses, in the same proportions."""
    for name, seconds in (
        ("FIRST_WAIT_S", 0.02),
        ("MOST_WAIT_S", 0.3),
        ("MOST_AWAY_S", 0.2),
        ("LOOK_EVERY_S", 0.05),
    ):
        monkeypatch.setattr(relay_lane, name, seconds)


def _emit(store: StateStore, *subjects: str, topic: str = "note.new") -> None:
    with store.db.write() as connection:
        for i, subject in enumerate(subjects):
            emit(connection, store.db, topic, subject, {"n": i})


def _webhook(url: str, **more: Any) -> Webhook:
    return Webhook(name="desk", url=url, topics=("note.*",), secret_env="S", **more)


async def _relay(
    store: StateStore,
    webhook: Webhook,
    until: Callable[[], bool] = lambda: False,
    *,
    once: bool = False,
    owner: str = "",
    said: list[str] | None = None,
) -> Tally:
    stop = asyncio.Event()
    log = [] if said is None else said
    async with httpx.AsyncClient(trust_env=False) as client:
        lane = Lane(
            store,
            client,
            webhook,
            SECRET.encode(),
            owner or owner_name(),
            stop,
            once=once,
            log=log.append,
            draw=random.Random(7).random,
        )
        running = asyncio.create_task(lane.run())
        end = time.monotonic() + 60
        while not running.done() and not until() and time.monotonic() < end:
            await asyncio.sleep(0.02)
        stop.set()
        await running
        assert time.monotonic() < end
    return lane.tally


def _all_sent(store: StateStore, number: int) -> Callable[[], bool]:
    def is_so() -> bool:
        return sum(b.sent + b.dead for b in store.backlog()) == number

    return is_so


def _in_order(receiver: Receiver) -> bool:
    return all(ids == sorted(ids) for ids in receiver.by_subject().values())


@pytest.mark.usefixtures("quick")
class TestAgainstAnAwkwardReceiver:
    def test_everything_arrives_in_order_and_is_applied_once(self, sqlite_store: StateStore) -> None:
        chance = random.Random(3)
        subjects = [f"s{chance.randrange(12)}" for _ in range(200)]
        _emit(sqlite_store, *subjects)
        ways: list[Any] = [200] * 6 + [
            500,
            "cut",
            "lost",
            "hang",
            (429, {"Retry-After": "0"}),
            408,
            (503, {}),
        ]

        def script(event: Mapping[str, Any], number: int) -> Any:
            return chance.choice(ways) if number < 4 else 200

        with Receiver(script) as receiver:
            webhook = _webhook(receiver.url, timeout_s=0.3, concurrency=6)
            tally = asyncio.run(_relay(sqlite_store, webhook, _all_sent(sqlite_store, 200)))
        assert receiver.faults == []
        assert len(receiver.applied) == 200
        assert _in_order(receiver)
        assert receiver.most_at_once <= 6
        assert (tally.sent, tally.dead) == (200, 0)
        assert tally.failed == sum(receiver.tries.values()) - 200
        assert {d.state for d in sqlite_store.deliveries(limit=1000)} == {"SENT"}

    def test_one_subject_that_fails_holds_up_no_other(self, sqlite_store: StateStore) -> None:
        _emit(sqlite_store, *(["bad", "bad", "good"] * 10))
        with Receiver(lambda event, number: 500 if event["subject"] == "bad" else 200) as receiver:
            webhook = _webhook(receiver.url, concurrency=2, max_attempts=1000)
            asyncio.run(_relay(sqlite_store, webhook, lambda: len(receiver.applied) == 10))
        assert {event["subject"] for event in receiver.applied} == {"good"}
        assert len(receiver.tries) == 11  # of the bad ones, the first alone

    def test_what_is_refused_is_dead_and_the_next_goes_on(self, sqlite_store: StateStore) -> None:
        _emit(sqlite_store, "x", "x", "x")
        said: list[str] = []
        with Receiver(lambda event, number: 410 if event["payload"]["n"] == 1 else 200) as receiver:
            webhook = _webhook(receiver.url)
            asyncio.run(_relay(sqlite_store, webhook, _all_sent(sqlite_store, 3), said=said))
            assert [event["payload"]["n"] for event in receiver.applied] == [0, 2]
            (dead,) = sqlite_store.deliveries("DEAD")
            assert dead.last_error == "answered 410: it broke: 坏了"
            assert any("is dead" in line and f"retry {dead.event_id}" in line for line in said)
            receiver.script = lambda event, number: 200
            assert sqlite_store.retry_deliveries([dead.event_id]) == 1
            asyncio.run(_relay(sqlite_store, webhook, _all_sent(sqlite_store, 3)))
            assert [event["payload"]["n"] for event in receiver.applied] == [0, 2, 1]

    def test_it_is_given_up_after_so_many_tries(self, sqlite_store: StateStore) -> None:
        _emit(sqlite_store, "x", "x")
        with Receiver(lambda event, number: 500 if event["payload"]["n"] == 0 else 200) as receiver:
            webhook = _webhook(receiver.url, max_attempts=3)
            asyncio.run(_relay(sqlite_store, webhook, _all_sent(sqlite_store, 2)))
        assert sorted(receiver.tries.values()) == [1, 3]
        (dead,) = sqlite_store.deliveries("DEAD")
        assert (dead.attempts, dead.last_error) == (
            3,
            "given up after 3 tries; the last one answered 500: it broke: 坏了",
        )

    def test_retry_after_holds_the_whole_endpoint_and_costs_no_try(self, sqlite_store: StateStore) -> None:
        _emit(sqlite_store, "x", "y", "z")
        times: list[float] = []

        def script(event: Mapping[str, Any], number: int) -> Any:
            times.append(time.monotonic())
            return (429, {"Retry-After": "1"}) if len(times) == 1 else 200

        with Receiver(script) as receiver:
            webhook = _webhook(receiver.url, concurrency=1, max_attempts=1)
            asyncio.run(_relay(sqlite_store, webhook, _all_sent(sqlite_store, 3)))
        assert times[1] - times[0] >= 1.0
        assert len(receiver.applied) == 3
        assert {d.attempts for d in sqlite_store.deliveries()} == {1}

    def test_an_endpoint_that_is_away_is_asked_with_one_event(self, sqlite_store: StateStore) -> None:
        _emit(sqlite_store, *(f"s{i}" for i in range(50)))
        with Receiver() as receiver:
            port = receiver.port
        said: list[str] = []
        end = time.monotonic() + 1.5
        webhook = _webhook(f"http://127.0.0.1:{port}/events", max_attempts=1)
        tally = asyncio.run(_relay(sqlite_store, webhook, lambda: time.monotonic() > end, said=said))
        assert tally.trouble.startswith("can't be reached")
        assert 8 <= tally.failed < 30
        assert sqlite_store.deliveries("DEAD") == []
        with Receiver(port=port) as receiver:
            tally = asyncio.run(_relay(sqlite_store, webhook, _all_sent(sqlite_store, 50)))
        assert len(receiver.applied) == 50
        assert {d.attempts for d in sqlite_store.deliveries(limit=100)} == {1}

    def test_once_ends_when_nothing_is_due(self, sqlite_store: StateStore) -> None:
        _emit(sqlite_store, "x", "x", "y")
        with Receiver(lambda event, number: 500 if event["subject"] == "y" else 200) as receiver:
            tally = asyncio.run(_relay(sqlite_store, _webhook(receiver.url), once=True))
        assert tally.sent == 2
        assert tally.failed >= 1
        assert [b.waiting for b in sqlite_store.backlog()] == [1]

    def test_two_relays_send_nothing_twice(self, sqlite_url: str, sqlite_store: StateStore) -> None:
        _emit(sqlite_store, *(f"s{i % 9}" for i in range(150)))

        async def both(webhook: Webhook) -> list[Tally]:
            with StateStore(sqlite_url) as other:
                done = _all_sent(sqlite_store, 150)
                return list(
                    await asyncio.gather(
                        _relay(sqlite_store, webhook, done, owner="a"),
                        _relay(other, webhook, done, owner="b"),
                    )
                )

        with Receiver() as receiver:
            tallies = asyncio.run(both(_webhook(receiver.url, concurrency=3)))
        assert receiver.faults == []
        assert len(receiver.applied) == sum(receiver.tries.values()) == 150
        assert _in_order(receiver)
        assert all(tally.sent > 0 for tally in tallies)

    def test_a_thousand_refusals_are_no_thousand_lines(
        self, sqlite_store: StateStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(relay_lane, "_MOST_LINES", 5)
        _emit(sqlite_store, *(f"s{i}" for i in range(40)))
        said: list[str] = []
        with Receiver(lambda event, number: 404) as receiver:
            tally = asyncio.run(
                _relay(sqlite_store, _webhook(receiver.url), _all_sent(sqlite_store, 40), said=said)
            )
        assert (tally.dead, len(said)) == (40, 5)

    def test_a_stop_waits_for_what_is_in_flight(self, sqlite_store: StateStore) -> None:
        _emit(sqlite_store, "x", "y")

        def script(event: Mapping[str, Any], number: int) -> Any:
            time.sleep(0.5)
            return 200

        with Receiver(script) as receiver:
            asyncio.run(
                _relay(sqlite_store, _webhook(receiver.url, concurrency=1), lambda: bool(receiver.tries))
            )
        assert len(receiver.applied) == 1
        assert [d.state for d in sqlite_store.deliveries()] == ["SENT", "PENDING"]

    def test_a_database_that_goes_away_is_waited_for(self, sqlite_url: str) -> None:
        class Away(StateStore):
            """Every third exchange breaks: before anything happened, or after all was committed."""

            asked = 0

            def exchange(
                self, endpoint: str, owner: str, outcomes: Any, room: int, lease_s: float
            ) -> list[Due]:
                self.asked += 1
                if self.asked % 6 == 3:
                    raise DatabaseUnavailable("gone")
                claimed = super().exchange(
                    endpoint, owner, outcomes, 0 if self.asked % 6 == 0 else room, lease_s
                )
                if self.asked % 6 == 0:
                    raise DatabaseUnavailable("gone, and nobody knows whether it committed")
                return claimed

        with Away(sqlite_url) as store, Receiver() as receiver:
            _emit(store, *(f"s{i % 5}" for i in range(60)))
            said: list[str] = []
            asyncio.run(_relay(store, _webhook(receiver.url), _all_sent(store, 60), said=said))
            assert len(receiver.applied) == sum(receiver.tries.values()) == 60
        assert any("gone" in line for line in said)


def test_pauses_double_up_to_a_bound() -> None:
    assert [back_off(n, 60.0, lambda: 0.0) for n in (1, 2, 3, 7, 400)] == [1.0, 2.0, 4.0, 60.0, 60.0]
    assert back_off(3, 60.0, lambda: 0.999) > 2.0


# As processes


class Place:
    """A home whose relay sends to a receiver; both can be killed."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self.url = url or f"sqlite:///{self.home / 'state.db'}"
        self.file = folder / "applied.jsonl"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.started: list[subprocess.Popen[bytes]] = []

    def name(self, port: int | None = None, **more: object) -> None:
        lines = {
            "name": "desk",
            "url": f"http://127.0.0.1:{port or self.port}/events",
            "topics": '["note.*"]',
            "secret_env": "DESK_SECRET",
            **more,
        }
        text = "".join(
            f"{'  - ' if key == 'name' else '    '}{key}: {value}\n" for key, value in lines.items()
        )
        (self.home / "webhooks.yaml").write_text("webhooks:\n" + text, encoding="utf-8")

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "DESK_SECRET": SECRET,
            "NO_PROXY": "127.0.0.1",
            "DATAFLOW_STATE_URL": self.url,
        }
        environment.pop("DATAFLOW_WEBHOOKS", None)
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            env=environment,
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.started.append(process)
        return process

    def relay(self, *more: str) -> subprocess.Popen[bytes]:
        return self.start("dataflow_ops.cli.main", "relay", "run", "--home", str(self.home), *more)

    def receiver(self) -> subprocess.Popen[bytes]:
        process = self.start("tests.pipeline.receiver", str(self.port), str(self.file))
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            time.sleep(0.05)
        raise AssertionError("the receiver does not start")

    def applied(self) -> list[str]:
        return self.file.read_text("utf-8").splitlines() if self.file.exists() else []

    def end(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()

    def wait(self, number: int) -> None:
        end = time.monotonic() + 90
        while len(self.applied()) < number:
            assert time.monotonic() < end, f"{len(self.applied())} of {number}"
            time.sleep(0.05)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.end()


def _check_order(place: Place) -> None:
    import json

    seen: dict[str, list[int]] = {}
    for line in place.applied():
        event = json.loads(line)
        seen.setdefault(event["subject"], []).append(event["id"])
    assert all(ids == sorted(set(ids)) for ids in seen.values())


@pytest.mark.crash
def test_a_receiver_that_is_killed_for_a_while_loses_nothing(place: Place) -> None:
    place.name(concurrency=3)
    with StateStore(place.url) as store:
        receiver = place.receiver()
        relay = place.relay()
        sent = 0
        for i in range(4):
            _emit(store, *(f"s{n % 6}" for n in range(30)))
            sent += 30
            if i == 1:
                place.wait(30)
                receiver.kill()
                receiver.wait()
            if i == 2:
                time.sleep(2.0)
                receiver = place.receiver()
        place.wait(sent)
        relay.send_signal(signal.SIGTERM)
        output = relay.communicate(timeout=30)[0].decode()
        assert relay.returncode == 0, output
        assert "can't be reached" in output or "the connection broke" in output
        assert [(b.sent, b.waiting, b.dead) for b in store.backlog()] == [(sent, 0, 0)]
    _check_order(place)


@pytest.mark.crash
def test_a_relay_that_is_killed_repeats_at_most_what_was_in_flight(place: Place) -> None:
    number, concurrency, kills = 150, 4, 4
    chance = random.Random(5)

    def script(event: Mapping[str, Any], tried: int) -> int:
        time.sleep(0.02)
        return 200

    with StateStore(place.url) as store, Receiver(script) as receiver:
        place.name(receiver.port, concurrency=concurrency)
        _emit(store, *(f"s{n % 10}" for n in range(number)))
        for _ in range(kills):
            relay = place.relay()
            target = len(receiver.applied) + chance.randrange(8, 25)
            end = time.monotonic() + 60
            while len(receiver.applied) < target:
                assert time.monotonic() < end
                time.sleep(0.001)
            relay.kill()
            relay.wait()
        relay = place.relay("--once")
        output = relay.communicate(timeout=60)[0].decode()
        assert relay.returncode == 0, output
        assert len(receiver.applied) == number
        repeats = sum(receiver.tries.values()) - number
        assert repeats <= kills * concurrency
        assert receiver.faults == []
        assert all(ids == sorted(ids) for ids in receiver.by_subject().values())
        assert [(b.sent, b.waiting, b.dead) for b in store.backlog()] == [(number, 0, 0)]


@pytest.mark.crash
@pytest.mark.postgres
def test_relays_on_postgres_take_over_from_one_that_is_killed(tmp_path: Path, postgres_url: str) -> None:
    number = 240

    def script(event: Mapping[str, Any], tried: int) -> Any:
        time.sleep(0.01)
        return 200 if tried > 1 or event["payload"]["n"] % 7 else "lost"

    place = Place(tmp_path, postgres_url)
    try:
        with StateStore(place.url) as store, Receiver(script) as receiver:
            place.name(receiver.port, concurrency=4)
            _emit(store, *(f"s{n % 12}" for n in range(number)))
            relays = [place.relay(), place.relay()]
            end = time.monotonic() + 90
            while len(receiver.applied) < 60:
                assert time.monotonic() < end
                time.sleep(0.01)
            relays[0].kill()
            relays[0].wait()
            # The other goes on; what the killed one had claimed is freed by the next that starts.
            relays.append(place.relay())
            while not _all_sent(store, number)():
                assert time.monotonic() < end
                time.sleep(0.1)
            lost = len([e for e in receiver.applied if e["payload"]["n"] % 7 == 0])
            assert len(receiver.applied) == number
            assert sum(receiver.tries.values()) - number <= lost + 4
            assert receiver.faults == []
            assert _in_order(receiver)
            for relay in relays[1:]:
                relay.send_signal(signal.SIGINT)
                assert relay.wait(30) == 0
    finally:
        place.end()


def test_a_changed_file_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None) -> None:
    place = Place(tmp_path)
    monkeypatch.setattr("dataflow_ops.pipeline.relay._FILE_EVERY_S", 0.1)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    said: list[str] = []
    with StateStore(place.url) as store, Receiver() as first, Receiver() as second:
        place.name(first.port)
        _emit(store, "x")
        stages = iter((1, 2, 3))
        stage = 0

        def progress(tallies: Mapping[str, Tally]) -> None:
            nonlocal stage
            if stage == 0 and len(first.applied) == 1:
                stage = next(stages)
                (place.home / "webhooks.yaml").write_text("webhooks: [{name: desk}]", encoding="utf-8")
            if stage == 1 and any("goes on with" in line for line in said):
                stage = next(stages)
                place.name(second.port)
            if stage == 2 and any(f":{second.port}" in line or line.count("relaying") for line in said[1:]):
                if sum(line.startswith("relaying") for line in said) == 2:
                    stage = next(stages)
                    _emit(store, "x")
            if stage == 3 and len(second.applied) == 1:
                os.kill(os.getpid(), signal.SIGTERM)

        home = Home(place.home, place.home, place.url)
        relay = Relay(home, {"DESK_SECRET": SECRET}, log=said.append, progress=progress)
        relay.run()
        assert (len(first.applied), len(second.applied)) == (1, 1)
        assert relay.tallies["desk"].sent == 2


def test_without_webhooks_or_secrets_it_does_not_start(tmp_path: Path) -> None:
    place = Place(tmp_path)
    home = Home(place.home, place.home, place.url)
    with pytest.raises(ConfigError, match="names no webhooks"):
        Relay(home, {}).run()
    place.name()
    with pytest.raises(ConfigError, match="DESK_SECRET is not set"):
        Relay(home, {}).run()
