"""Run as a process by the contract suite: does one thing to a state database and says what came of it."""

from __future__ import annotations

import os
import signal
import sys

from dataflow_ops.errors import LeaseLost
from dataflow_ops.state import commits
from dataflow_ops.state.store import StateStore
from dataflow_ops.values import Claim, Counts, Output


def main(url: str, deed: str, *rest: str) -> None:
    with StateStore(url) as store:
        print("ready", flush=True)
        sys.stdin.readline()  # so that all racers start together
        if deed == "claim":
            won = sum(store.claim(key, owner=str(os.getpid())) is not None for key in rest[0].split(","))
            print(won, flush=True)
        elif deed == "commit":
            key, epoch = rest
            claim = Claim(key, int(epoch), 1, "racer")
            try:
                store.commit(claim, [output()], Counts(2, 2), {"m": 1.0}, {"r": 1}, [], 1.0)
            except LeaseLost:
                print("lost", flush=True)
            else:
                print("committed", flush=True)
        elif deed == "lease":
            got = store.acquire_lease("web", "dedup", rest[0], str(os.getpid()), 60.0)
            print("none" if got is None else f"won {got.epoch}", flush=True)
        elif deed == "die_in_commit":
            # Killed after the outputs were written and before the transaction ends.
            commits.replace_letters = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
            claim = store.claim(rest[0], owner="doomed", lease_s=0.0)
            assert claim is not None
            store.commit(claim, [output()], Counts(2, 2), {}, {}, [], 1.0)


def output() -> Output:
    return Output("text", "data/x", 1, 1, "ab", 2)


if __name__ == "__main__":
    main(*sys.argv[1:])
