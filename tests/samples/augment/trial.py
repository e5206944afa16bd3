"""A long augmentation under every fault: the endpoint's by a seeded script, ours by signals; and its proof.

The command line runs as a process of its own; this one is endpoint, operator and judge.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import sqlalchemy as sa
import yaml

from dataflow_ops.state.sample_tables import generation, generation_failure, sample
from dataflow_ops.state.samples.store import SampleStore
from tests.samples.augment.augment_case import RAW, put_samples
from tests.samples.augment.model_server import FINAL, Call, ModelServer

CONCURRENCY: Final = 8
_WAIT_S: Final = 120.0


@dataclass(slots=True)
class Life:
    """One process of the command; times by ``time.monotonic``."""

    began: float
    ended: float = 0.0
    how: str = ""


@dataclass(slots=True)
class Trial:
    """A trial under way.

    Attributes:
        home: folder of the command.
        url: of the database.
        server: the endpoint.
        restart_database: restarts it.
        say: is told what happens.
        lives: processes so far.
        lost: answers that a kill lost, by life.
    """

    home: Path
    url: str
    server: ModelServer
    restart_database: Callable[[], None]
    say: Callable[[str], None] = lambda text: None
    lives: list[Life] = field(default_factory=list)
    lost: dict[int, int] = field(default_factory=dict)
    task_id: str = "augment-chat"
    rows: int = 0

    def prepare(self, store: SampleStore, rows: int) -> None:
        """Put samples into the database and the template into the home."""
        self.rows = rows
        put_samples(store, rows)
        endpoint = {"base_url": self.server.url, "back_off_s": 0.05, "read_s": 20, "total_s": 30, "tries": 8}
        raw = {**RAW, "endpoint": endpoint, "limits": {"concurrency": CONCURRENCY}}
        (self.home / "template.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")

    def run(self, store: SampleStore, events: Sequence[str]) -> int:
        """Run to the end with these events (``kill``, ``pause``, ``database``), spread evenly over the calls.

        Returns:
            Exit code of the last process.
        """
        step = self.rows // (len(events) + 1)
        process = self._start()
        for number, event in enumerate(events, 1):
            self._until_asked(number * step, process)
            self.say(f"{event} after {len(self.server.calls):,} calls")
            if event == "database":
                self.restart_database()
                assert process.poll() is None, "the process ended while the database was away"
                self.check_cursor(store)
                continue
            if event == "kill":
                process.kill()
                assert process.wait(_WAIT_S) == -signal.SIGKILL
            else:
                store.set_pause("run", self.task_id, "ann", "the trial pauses it")
                assert process.wait(_WAIT_S) == 3, self._log()
                task = store.sample_task(self.task_id)
                assert (task.state, task.error_type) == ("PAUSED", None)
                self.check_counts(store)
                store.clear_pause("run", self.task_id, "ann")
            self.lives[-1].ended, self.lives[-1].how = time.monotonic(), event
            self.check_cursor(store)
            process = self._start()
        code = process.wait(_WAIT_S + self.rows / 5)
        self.lives[-1].ended, self.lives[-1].how = time.monotonic(), "end"
        return code

    def check_cursor(self, store: SampleStore) -> None:
        """All in front of the cursor has ended, and the cursor counts exactly that."""
        at = store.sample_cursor(self.task_id)
        if at is None:
            return
        behind = sample.c.row_identifier < at.offset
        with store.read() as connection:
            in_front = connection.execute(
                sa.select(sample.c.id).where(behind, sample.c.data_role == "assistant")
            ).scalars()
            wanted = set(in_front)
            found = set(connection.execute(sa.select(generation.c.sample_id)).scalars())
            found |= set(connection.execute(sa.select(generation_failure.c.sample_id)).scalars())
        assert at.processed_rows == len(wanted) == at.offset, (at, len(wanted))
        assert wanted <= found, sorted(wanted - found)[:5]

    def check_counts(self, store: SampleStore) -> None:
        """The task's counts are the sums over its rows."""
        counts = store.sample_task(self.task_id).counts
        with store.read() as connection:
            for name, table in (("answered", generation), ("failed", generation_failure)):
                number = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                assert counts[name] == number, (name, counts, number)

    def check_each_has_one(self, store: SampleStore) -> tuple[int, int]:
        """Each row has exactly one valid result or one entry in the failure queue; how many of each."""
        with store.read() as connection:
            answered = connection.execute(sa.select(generation.c.sample_id, generation.c.answer)).all()
            failed = connection.execute(sa.select(generation_failure.c.sample_id)).scalars().all()
        assert sorted([*(row.sample_id for row in answered), *failed]) == [
            2 * number + 2 for number in range(self.rows)
        ]
        assert all(row.answer.startswith("Better, 更好") for row in answered)
        return len(answered), len(failed)

    def check_calls(self) -> None:
        """Only what was under way at a kill was asked again: at most ``CONCURRENCY`` each."""
        assert self.server.conflicts == []
        by_key: dict[str, list[Call]] = defaultdict(list)
        for call in self.server.calls:
            by_key[call.key].append(call)
        lost: dict[int, set[str]] = defaultdict(set)
        for key, calls in by_key.items():
            calls.sort(key=lambda call: call.nth)
            for call in calls[:-1]:
                if call.what in FINAL:
                    number, life = self._life(call.began)
                    assert life.how == "kill", f"asked again after {call} in a life that ended by {life.how}"
                    lost[number].add(key)
        self.lost = {number: len(keys) for number, keys in sorted(lost.items())}
        assert all(number <= CONCURRENCY for number in self.lost.values()), self.lost

    def _life(self, moment: float) -> tuple[int, Life]:
        return next((n, life) for n, life in enumerate(self.lives) if life.began <= moment <= life.ended)

    def _start(self) -> subprocess.Popen[bytes]:
        self.lives.append(Life(time.monotonic()))
        env = {k: v for k, v in os.environ.items() if not k.startswith("DATAFLOW_")}
        log = (self.home / "log").open("ab")
        with log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "dataflow_ops.cli.main", "samples", "augment"),
                    *("--template", str(self.home / "template.yaml"), "--dataset", "chat"),
                    *("--task", self.task_id, "--home", str(self.home)),
                ],
                env={**env, "DATAFLOW_STATE_URL": self.url, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdout=log,
                stderr=log,
            )

    def _until_asked(self, calls: int, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _WAIT_S + self.rows / 5
        while len(self.server.calls) < calls:
            assert process.poll() is None, self._log()
            assert time.monotonic() < deadline, f"{len(self.server.calls)} calls, not {calls}: {self._log()}"
            time.sleep(0.01)

    def _log(self) -> str:
        return (self.home / "log").read_text(encoding="utf-8")[-3000:]
