"""A task that asks in the midst of its work: paused, lost, and what reading asks on its way."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from dataflow_ops.engine.asking import AskingFile, asked
from dataflow_ops.engine.pace import FIRST_BYTES, Pace
from dataflow_ops.engine.pool import Pool
from dataflow_ops.engine.priority import BACKGROUND_NICE
from dataflow_ops.errors import Paused
from dataflow_ops.state.store import StateStore
from tests.engine import tiny_steps


def stop_after(n: int) -> Callable[[], None]:
    left = [n]

    def ask() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Paused("enough")

    return ask


def test_a_reduce_that_asks_is_paused_in_the_midst_and_begins_anew(tmp_path: Path) -> None:
    context = tiny_steps.context_in(tmp_path)
    specs = tiny_steps.enqueued(context, "ask-for-ever")
    with StateStore(context.state_url) as state, Pool(context, tiny_steps.build, 1) as pool:

        def pause() -> None:
            while not (tmp_path / "ask-for-ever.asking").exists():
                time.sleep(0.02)
            state.set_pause("run", "r", "ann")

        setter = threading.Thread(target=pause)
        setter.start()
        assert [o.ending for o in pool.run(specs, tiny_steps.NUMBERS, 0)] == ["paused"]
        setter.join()
        assert state.settle_pause("r") is not None
        row = state.get_run("r")
        assert row is not None
        assert row.state == "PAUSED"
        state.clear_pause("run", "r")
        (tmp_path / "ask-for-ever.asking").write_text("enough")
        [again] = pool.run(specs[:1], tiny_steps.NUMBERS, 0)
        assert again.ending == "done"
        assert state.records([specs[0].key])[specs[0].key].attempt == 1


def test_a_cancelled_task_stops_in_the_midst(tmp_path: Path) -> None:
    context = tiny_steps.context_in(tmp_path, lease_s=1.0)
    specs = tiny_steps.enqueued(context, "ask-for-ever")
    with StateStore(context.state_url) as state, Pool(context, tiny_steps.build, 1) as pool:
        cancelled = threading.Event()

        def cancel() -> None:
            while not (tmp_path / "ask-for-ever.asking").exists():
                time.sleep(0.02)
            state.cancel("r")
            cancelled.set()

        setter = threading.Thread(target=cancel)
        setter.start()
        assert list(pool.run(specs, tiny_steps.NUMBERS, 0, cancelled.is_set)) == [], (
            "it was nobody's any more"
        )
        setter.join()
        assert state.records([specs[0].key])[specs[0].key].state == "CANCELLED"


def test_reading_asks_on_its_way() -> None:
    file = AskingFile.over(io.BytesIO(b"x" * (3 << 20)), stop_after(2))
    assert file.read(1 << 20) == b"x" * (1 << 20)
    with pytest.raises(Paused):
        file.read()


def test_a_file_that_asks_reads_as_any_other(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(256)) * 5000)
    opened = open(path, "rb")
    with AskingFile.over(opened, lambda: None) as file:
        assert file.seek(0, 2) == 256 * 5000
        assert file.seek(-3, 2) == 256 * 5000 - 3
        assert file.read() == bytes([253, 254, 255])
        file.seek(255)
        assert (file.read(2), file.tell()) == (b"\xff\x00", 257)
    assert opened.closed


def test_items_are_asked_about_one_by_one() -> None:
    items = asked("abc", stop_after(2))
    assert (next(items), next(items)) == ("a", "b")
    with pytest.raises(Paused):
        next(items)


def test_a_slow_step_is_handed_less_and_a_quick_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    table = pa.table({"text": ["x" * 1000] * 100_000})

    def sizes(seconds_per_mb: float) -> list[int]:
        pace, found = Pace(1_000_000, 64 << 20), []
        for piece in pace.cut(table):
            found.append(piece.num_rows)
            now[0] += seconds_per_mb * piece.nbytes / (1 << 20)
        assert sum(found) == table.num_rows
        return found

    quick, slow = sizes(0.001), sizes(4.0)
    assert quick[1] > quick[0] == pytest.approx(FIRST_BYTES / 1004, rel=0.01)
    assert slow[-2] * 1004 / (1 << 20) * 4.0 == pytest.approx(1.0, rel=0.05), "a second of work at once"
    assert next(iter(Pace(10, 1 << 20).cut(table.slice(0, 0)))).num_rows == 0


@pytest.mark.skipif(os.nice(0) > 14, reason="the tests themselves stand back already")
@pytest.mark.parametrize("urgent", [False, True])
def test_workers_stand_back_unless_the_run_is_urgent(tmp_path: Path, urgent: bool) -> None:
    context = tiny_steps.context_in(tmp_path, urgent=urgent)
    specs = tiny_steps.enqueued(context, "slow-a", "slow-b")
    own = os.nice(0)
    with Pool(context, tiny_steps.build, 1) as pool:
        list(pool.run(specs[:1], tiny_steps.NUMBERS, 0))
        worker = int((tmp_path / "slow-a.pids").read_text())
        assert psutil.Process(worker).nice() == (own if urgent else own + BACKGROUND_NICE)
        pool.set_urgent(not urgent)
        list(pool.run(specs[1:], tiny_steps.NUMBERS, 0))
        other = int((tmp_path / "slow-b.pids").read_text())
        assert psutil.Process(other).nice() == (own + BACKGROUND_NICE if urgent else own)
    assert os.nice(0) == own, "who coordinates does not stand back"
