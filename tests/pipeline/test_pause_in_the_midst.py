"""Paused in the midst of one slow document, or of one long reduce: nothing is judged, nothing is used up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.control.flags import PauseFlags
from dataflow_ops.engine.parse_guard import ParseGuard
from dataflow_ops.layers.dedup.verify import VerifyStep
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.run import resume_run
from dataflow_ops.state.store import StateStore
from tests.pipeline import inside
from tests.pipeline.inside import published
from tests.pipeline.slow_pdf import slow_pdf

CPU_SECONDS = 1.0
PAGES = 600
"""Above the limit on its first run, below three times the limit on its second, alone."""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("midst") / "in"
    job = inside.sources(root, files=6)
    (root / "notes" / "note-002-slow.pdf").write_bytes(slow_pdf(PAGES))
    text = job.read_text(encoding="utf-8")
    job.write_text(text + f"parse: {{cpu_seconds: {CPU_SECONDS}}}\n", encoding="utf-8")
    return job


@pytest.fixture(scope="module")
def wanted(job: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("reference")
    ended = inside.run(job, home)
    with StateStore(open_home(home).state_url) as state:
        assert state.count_dead_letters("error", run_id=ended.run_id) == {}, "the slow document comes through"
    return published(home)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateStore]:
    with StateStore(open_home(tmp_path / "home").state_url) as state:
        yield state


@pytest.mark.parametrize("alone", [False, True], ids=["first run", "alone, with three times the limit"])
def test_a_slow_document_is_abandoned_and_parsed_anew(
    job: Path,
    wanted: dict[str, str],
    state: StateStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    alone: bool,
) -> None:
    asked = During(state, "parse")
    attempt = ParseGuard._attempt

    def watched(
        self: ParseGuard, requests: Sequence[Sequence[bytes]], factor: int, ask: Callable[[], None]
    ) -> tuple[list[bytes], bool]:
        return attempt(self, requests, factor, asked.before(ask) if (factor > 1) == alone else ask)

    monkeypatch.setattr(ParseGuard, "_attempt", watched)
    home = tmp_path / "home"
    ended = inside.run(job, home)
    assert asked.times > 0, "the document was not slow enough to be asked about"
    assert (ended.state, state.list_runs()[0].state) == ("PAUSED", "PAUSED")
    [paused] = [t for t in state.records_of_step(ended.run_id, "parse").values() if t.state == "PAUSED"]
    assert paused.attempt == 1

    assert resume_run(home, None, 0, inside.Notes()).state == "SUCCEEDED"
    again = state.records([paused.key])[paused.key]
    assert (again.state, again.attempt) == ("SUCCESS", 1)
    assert state.count_dead_letters("error", run_id=ended.run_id) == {}
    assert published(home) == wanted


def test_a_long_reduce_stops_between_two_comparisons(
    job: Path, wanted: dict[str, str], state: StateStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = During(state, "verify")
    run = VerifyStep.run

    def watched(self: VerifyStep, side: Any, start: int) -> Iterator[Any]:
        return run(self, Watched(side, asked), start)

    monkeypatch.setattr(VerifyStep, "run", watched)
    home = tmp_path / "home"
    ended = inside.run(job, home)
    assert asked.times > 0, "nothing was compared"
    assert ended.state == "PAUSED"
    [paused] = [t for t in state.records_of_step(ended.run_id, "verify").values() if t.state == "PAUSED"]
    assert resume_run(home, None, 0, inside.Notes()).state == "SUCCEEDED"
    again = state.records([paused.key])[paused.key]
    assert (again.state, again.attempt) == ("SUCCESS", 1)
    assert published(home) == wanted


class During:
    """Sets the flag the first time that a question is asked in the midst of work."""

    def __init__(self, state: StateStore, step: str) -> None:
        self._state = state
        self._step = step
        self.times = 0

    def before(self, ask: Callable[[], None]) -> Callable[[], None]:
        def asked() -> None:
            self.times += 1
            if self.times == 1:
                run_id = self._state.list_runs()[0].run_id
                PauseFlags(self._state, None).pause("run", run_id, "ann", "now")
                time.sleep(0.6)  # flags are looked up at most twice a second
            ask()

        return asked


class Watched:
    """A side whose question is watched."""

    def __init__(self, side: Any, asked: During) -> None:
        self._side = side
        self.checkpoint = asked.before(side.checkpoint)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._side, name)
