"""Whatever ends a run is recorded in its row, and the first error is the one that the caller hears of."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import sqlalchemy as sa

from dataflow_ops.errors import (
    ConfigError,
    DatabaseUnavailable,
    IllegalMove,
    OutputConflict,
    StorageFull,
    VersionError,
)
from dataflow_ops.pipeline.bundles import Started, finish_run, run_bundle, start_run
from dataflow_ops.pipeline.driver import Driver
from dataflow_ops.pipeline.ending import told
from dataflow_ops.pipeline.flow import STEP_NAMES, partitioning
from dataflow_ops.state.store import StateStore
from tests.pipeline import inside
from tests.pipeline.compacting import chain, compacted, current, twin
from tests.pipeline.growing import TEXTS, Growing
from tests.pipeline.inside import At, Notes

FAULTS: list[Exception] = [
    OSError(errno.EIO, "io"),
    PermissionError(errno.EACCES, "no"),
    OSError(errno.EROFS, "read only"),
    pa.ArrowInvalid("arrow"),
    pa.ArrowMemoryError("memory"),
    ValueError("a file called \udcff\0"),
    MemoryError(),
    RuntimeError("r"),
    KeyError("k"),
    AssertionError("a"),
    RecursionError("deep"),
    sa.exc.OperationalError("x", {}, Exception("gone")),
    sa.exc.IntegrityError("x", {}, Exception("unique")),
    DatabaseUnavailable("gone"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Growing:
    return chain(tmp_path_factory.mktemp("ending"))


def raises(e: Exception) -> Callable[[], None]:
    def act() -> None:
        raise e

    return act


def newest(made: Growing, mode: str) -> tuple[str, str]:
    with made.state() as state:
        row = next(r for r in state.list_runs() if r.mode == mode)
    return row.state, row.detail or ""


def test_any_error_ends_a_run_and_a_compaction_as_failed(made: Growing, tmp_path: Path) -> None:
    other = twin(made, "any")
    for e in FAULTS:
        for go in (compacted, Growing.run) if e in FAULTS[::4] else (compacted,):
            other.put("more.md", TEXTS[44])
            with pytest.raises(type(e)) as met:
                go(other, hooks=At("before pointer publish", raises(e)))
            assert met.value is e
            mode = "compact" if go is compacted else "full"
            assert newest(other, mode) == ("FAILED", told(e))
    assert told(MemoryError()) == "MemoryError"
    assert compacted(other).current


def test_a_second_error_does_not_hide_the_first(made: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    other = twin(made, "second")
    true = StateStore.set_run_state
    seconds = [
        DatabaseUnavailable("gone"),
        sa.exc.OperationalError("x", {}, Exception("db")),
        sa.exc.IntegrityError("x", {}, Exception("unique")),
        OSError(errno.EIO, "io"),
        IllegalMove("no"),
        MemoryError("m"),
    ]
    for second in seconds:

        def bad(self: StateStore, run: str, to: str, detail: str = "", e: Exception = second) -> object:
            if to == "FAILED":
                raise e
            return true(self, run, to, detail)

        notes = Notes()
        hooks = At("before pointer publish", raises(OutputConflict("first")))
        with monkeypatch.context() as m:
            m.setattr(StateStore, "set_run_state", bad)
            with pytest.raises(OutputConflict) as met:
                compacted(other, notes=notes, hooks=hooks)
        assert str(met.value) == "first"
        [note] = [n for n in notes.notes if "could not be recorded" in n]
        assert str(second) in note
        assert note in met.value.__notes__


def begun(job: Path, home: Path, name: str) -> Started:
    return start_run(job, home, mode="full", run_id=name, log=lambda _: None)


def bundles(home: Path, started: Started, steps: tuple[str, ...]) -> None:
    for step in steps:
        of = started.bundles[partitioning(step)]
        for i in range(of):
            bundle = {"run_id": started.run_id, "until": None, "index": i, "of": of}
            run_bundle(home, step, bundle, 1, log=lambda _: None)


def state_of(home: Path, run: str) -> tuple[str, str]:
    with StateStore(f"sqlite:///{home / 'state.db'}") as state:
        row = state.get_run(run)
    assert row is not None
    return row.state, row.detail or ""


def test_a_task_of_an_orchestrator_that_meets_any_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, home = inside.sources(tmp_path / "in", files=3), tmp_path / "home"
    started = begun(job, home, "day-1")
    for e in FAULTS:

        def bad(*_: object, e: Exception = e) -> None:
            raise e

        for point in ("run_step", "numbers") if e in FAULTS[::4] else ("run_step",):
            with monkeypatch.context() as m:
                m.setattr(Driver, point, bad)
                with pytest.raises(type(e)):
                    bundles(home, started, ("fetch",))
            assert state_of(home, "day-1") == ("FAILED", told(e))
    bundles(home, started, STEP_NAMES[1:])
    shutil.rmtree(home / "versions", ignore_errors=True)
    (home / "versions").write_text("in the way")
    with pytest.raises(OSError, match="versions"):
        finish_run(home, "day-1", log=lambda _: None)
    state, detail = state_of(home, "day-1")
    assert state == "FAILED"
    assert "versions" in detail
    (home / "versions").unlink()
    assert finish_run(home, "day-1", log=lambda _: None)["state"] == "SUCCEEDED"


def test_a_full_disk_is_told_as_one(made: Growing) -> None:
    other = twin(made, "full")
    with pytest.raises(StorageFull):
        compacted(other, hooks=At("before pointer publish", raises(OSError(errno.ENOSPC, "no room"))))
    assert newest(other, "compact")[1].startswith("StorageFull: no space left")


def test_what_can_not_be_opened_fails_with_the_reason(made: Growing) -> None:
    other = twin(made, "opened")
    manifest = other.home / "versions" / current(other) / "manifest.json"
    whole = manifest.read_bytes()
    manifest.write_bytes(b"{}")
    with pytest.raises(VersionError, match="not what was published") as met:
        compacted(other)
    assert newest(other, "compact") == ("FAILED", told(met.value))
    manifest.write_bytes(whole)
    with pytest.raises(ConfigError, match="nowhere") as wrong:
        other.run(set=[f"mixing.tokenizer={other.root}/nowhere.json"])
    assert newest(other, "full") == ("FAILED", told(wrong.value))
    assert compacted(other).current
