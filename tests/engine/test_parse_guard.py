from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow_ops.engine import parse_guard
from dataflow_ops.engine.parse_guard import ParseGuard
from dataflow_ops.errors import DocumentTooCostly, ParserFailed, WorkerDied

TARGET = "guard_targets:act"


@pytest.fixture(scope="module")
def path() -> Iterator[None]:
    sys.path.insert(0, str(Path(__file__).parent))
    yield
    sys.path.remove(str(Path(__file__).parent))


@pytest.fixture(scope="module")
def shared(path: None) -> Iterator[ParseGuard]:
    with ParseGuard(TARGET, 0.2, 256) as guard:
        yield guard


def ask(guard: ParseGuard, *orders: bytes) -> list[object]:
    return list(guard.run([[order] for order in orders]))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.binary(max_size=300), max_size=3), max_size=20))
def test_answers_come_in_order(shared: ParseGuard, requests: list[list[bytes]]) -> None:
    requests = [[b"=", *parts] for parts in requests]
    assert shared.run(requests) == [b"".join(parts).upper() for parts in requests]


def test_large_requests_cross_the_pipe(shared: ParseGuard) -> None:
    big = b"x" * (20 << 20)
    assert shared.run([[big], [b"small"], [big, b"y"]]) == [big.upper(), b"SMALL", big.upper() + b"Y"]


def test_child_persists_and_is_not_this_process(shared: ParseGuard) -> None:
    first, second = ask(shared, b"pid")[0], ask(shared, b"pid")[0]
    assert first == second
    assert first != str(os.getpid()).encode()


@pytest.mark.crash
def test_endless_loop_costs_its_own_document_only(shared: ParseGuard) -> None:
    a, loop, b = ask(shared, b"a", b"spin", b"b")
    assert (a, b) == (b"A", b"B")
    assert isinstance(loop, DocumentTooCostly)
    assert "0.6 s of CPU time" in str(loop)


@pytest.mark.crash
def test_slow_document_passes_alone_with_three_times_the_limit(shared: ParseGuard) -> None:
    assert ask(shared, b"a", b"burn 0.35", b"b") == [b"A", b"BURN 0.35", b"B"]


@pytest.mark.crash
def test_memory_limit(path: None) -> None:
    with ParseGuard(TARGET, 10, 64) as guard:
        a, most, too_much, b = ask(guard, b"a", b"memory 100", b"memory 400", b"b")
    assert (a, most, b) == (b"A", str(100 << 20).encode(), b"B")
    assert isinstance(too_much, DocumentTooCostly)
    assert "192 MB" in str(too_much)


@pytest.mark.crash
@pytest.mark.parametrize(
    ("order", "why"), [(b"segfault", "SIGSEGV"), (b"native memory", "SIGABRT"), (b"exit", "exit code 3")]
)
def test_a_crash_is_isolated(shared: ParseGuard, order: bytes, why: str) -> None:
    a, crashed, b, again, c = ask(shared, b"a", order, b"b", order, b"c")
    assert (a, b, c) == (b"A", b"B", b"C")
    for error in (crashed, again):
        assert isinstance(error, ParserFailed)
        assert why in str(error)


@pytest.mark.crash
def test_a_child_killed_between_documents_is_replaced(shared: ParseGuard) -> None:
    ask(shared, b"a")
    assert shared.pid is not None
    os.kill(shared.pid, signal.SIGKILL)
    time.sleep(0.05)
    assert ask(shared, b"b", b"c") == [b"B", b"C"]


@pytest.mark.crash
def test_a_hanging_parser_fails_the_task_not_the_document(
    path: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse_guard, "_STALL_SECONDS", 0.3)
    monkeypatch.setattr(parse_guard, "_STALL_FACTOR", 0)
    with ParseGuard(TARGET, 1, 256) as guard:
        with pytest.raises(WorkerDied, match="hangs"):
            ask(guard, b"sleep")
        monkeypatch.setattr(parse_guard, "_STALL_SECONDS", 30.0)
        assert ask(guard, b"a") == [b"A"]


def test_a_target_that_cannot_be_imported_is_said(path: None) -> None:
    with ParseGuard("no_such_module:f", 1, 256) as guard, pytest.raises(WorkerDied, match="starting"):
        guard.run([[b"x"]])


@pytest.mark.crash
@pytest.mark.parametrize("order", ["spin", "idle"])
def test_child_dies_with_its_parent(tmp_path: Path, order: str) -> None:
    script = f"""
import sys, threading, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from dataflow_ops.engine import parse_guard
from dataflow_ops.engine.parse_guard import ParseGuard
guard = ParseGuard({TARGET!r}, 60, 256)
print(int(guard.run([[b"pid"]])[0]), flush=True)
if {order!r} == "spin":
    guard.run([[b"spin"]])
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.2)
    parent.kill()
    parent.wait()
    for _ in range(100):
        if not _alive(child):
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child outlived its parent")


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_overhead_per_document(shared: ParseGuard) -> None:
    requests = [[b"r" * 3000]] * 64
    shared.run(requests)
    best = min(_timed(shared, requests) for _ in range(20))
    assert best / 64 < 50e-6, f"{best / 64 * 1e6:.0f} µs per document"


def _timed(guard: ParseGuard, requests: list[list[bytes]]) -> float:
    began = time.perf_counter()
    guard.run(requests)
    return time.perf_counter() - began


class Stop(Exception):
    """What a question raises."""


@pytest.mark.crash
def test_what_a_question_raises_ends_the_wait_without_a_verdict(path: None) -> None:
    def stop() -> None:
        raise Stop

    with ParseGuard(TARGET, 2, 256) as guard:
        assert ask(guard, b"a") == [b"A"]
        child = guard.pid
        assert child is not None
        with pytest.raises(Stop):
            guard.run([[b"b"], [b"spin"], [b"c"]], stop)
        assert guard.pid is None
        assert not os.path.exists(f"/proc/{child}"), "the child spins on"
        assert ask(guard, b"d", b"burn 1") == [b"D", b"BURN 1"], "answers of the abandoned are gone with it"


@pytest.mark.crash
def test_questions_change_no_verdict(path: None) -> None:
    asked: list[float] = []
    with ParseGuard(TARGET, 0.6, 256) as guard:
        answers = guard.run([[b"burn 1"], [b"spin"], [b"a"]], lambda: asked.append(time.monotonic()))
    assert asked
    assert (answers[0], answers[2]) == (b"BURN 1", b"A")
    assert isinstance(answers[1], DocumentTooCostly)
