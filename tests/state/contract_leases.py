"""What every state database must do with leases on days."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dataflow_ops.errors import LeaseLost
from dataflow_ops.state.leases import Lease
from dataflow_ops.state.store import StateStore
from tests.state.store_case import EXPIRED, StoreCase

ROOT = Path(__file__).resolve().parents[2]
DAY = "2026-01-02"


def take(store: StateStore, owner: str, seconds: float = 60.0, day: str = DAY) -> Lease | None:
    return store.acquire_lease("web", "dedup", day, owner, seconds)


class LeasesContract(StoreCase):
    def test_a_lease_holds(self, store: StateStore) -> None:
        assert store.lease("web", "dedup", DAY) is None
        mine = take(store, "ann")
        assert mine is not None
        assert (mine.dataset, mine.layer, mine.day, mine.owner, mine.epoch) == ("web", "dedup", DAY, "ann", 1)
        assert 50 < mine.left_s <= 60
        assert take(store, "bob") is None
        there = store.lease("web", "dedup", DAY)
        assert there is not None
        assert (there.owner, there.epoch, there.held) == ("ann", 1, True)

    def test_the_same_owner_gets_it_again(self, store: StateStore) -> None:
        first = take(store, "ann", 5.0)
        again = take(store, "ann", 60.0)
        assert first is not None
        assert again is not None
        assert again.epoch == first.epoch
        assert again.until > first.until + 40

    def test_each_data_set_layer_and_day_has_its_own(self, store: StateStore) -> None:
        assert take(store, "ann") is not None
        assert take(store, "bob", day="2026-01-03") is not None
        assert take(store, "cid", day="") is not None
        assert store.acquire_lease("web", "parse", DAY, "dan", 60.0) is not None
        assert store.acquire_lease("code", "dedup", DAY, "eve", 60.0) is not None

    def test_an_expired_lease_changes_hands_and_the_old_holder_is_fenced_off(self, store: StateStore) -> None:
        late = take(store, "ann", EXPIRED)
        assert late is not None
        assert not late.held
        now = take(store, "bob")
        assert now is not None
        assert now.epoch == late.epoch + 1
        with pytest.raises(LeaseLost, match="another has taken it"):
            store.renew_lease(late, 60.0)
        assert not store.release_lease(late)
        still = store.lease("web", "dedup", DAY)
        assert still is not None
        assert (still.owner, still.held) == ("bob", True)

    def test_an_expired_lease_that_nobody_took_may_be_renewed(self, store: StateStore) -> None:
        late = take(store, "ann", EXPIRED)
        assert late is not None
        assert store.renew_lease(late, 60.0).held
        assert take(store, "bob") is None

    def test_a_released_lease_is_free_and_its_epoch_goes_on(self, store: StateStore) -> None:
        mine = take(store, "ann")
        assert mine is not None
        assert store.release_lease(mine)
        there = store.lease("web", "dedup", DAY)
        assert there is not None
        assert not there.held
        other = take(store, "bob")
        assert other is not None
        assert other.epoch == 2
        with pytest.raises(LeaseLost):
            store.renew_lease(mine, 60.0)

    def test_a_holder_known_to_be_gone_is_replaced_once(self, store: StateStore) -> None:
        gone = take(store, "ann")
        assert gone is not None
        won = store.acquire_lease("web", "dedup", DAY, "bob", 60.0, instead_of=gone)
        assert won is not None
        assert won.epoch == 2
        # Whoever read the same lease meanwhile may not take it from its new holder.
        assert store.acquire_lease("web", "dedup", DAY, "cid", 60.0, instead_of=gone) is None

    def test_sixteen_threads_get_one_lease(self, store: StateStore) -> None:
        for day in ("2026-02-01", "2026-02-02", "2026-02-03"):
            expired = take(store, "gone", EXPIRED, day) if day.endswith("2") else None
            start = threading.Barrier(16)

            def ask(i: int, day: str = day, start: threading.Barrier = start) -> Lease | None:
                start.wait()
                return take(store, f"t{i}", day=day)

            with ThreadPoolExecutor(16) as pool:
                got = [x for x in pool.map(ask, range(16)) if x is not None]
            assert len(got) == 1
            assert got[0].epoch == (1 if expired is None else 2)

    def test_never_two_holders_at_once(self, store: StateStore) -> None:
        inside: list[str] = []
        met: list[int] = []

        def work(i: int) -> None:
            done = 0
            while done < 3:
                held = take(store, f"t{i}")
                if held is None:
                    continue
                inside.append(held.owner)
                met.append(len(inside))
                inside.remove(held.owner)
                assert store.release_lease(held)
                done += 1

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert met == [1] * 24
        last = store.lease("web", "dedup", DAY)
        assert last is not None
        assert last.epoch >= 8

    def test_processes_get_one_lease(self, store: StateStore) -> None:
        racers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.state.racer", store.url, "lease", DAY],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(4)
        ]
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline().strip() == "ready"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        said = [racer.communicate(timeout=60)[0].strip() for racer in racers]
        assert sorted(said) == ["none", "none", "none", "won 1"]
