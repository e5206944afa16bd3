"""The state database goes away while a run is under way: the run waits, and no attempt at a chunk is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dataflow_ops.errors import DatabaseUnavailable
from dataflow_ops.pipeline.backfill_control import BackfillBook
from dataflow_ops.pipeline.backfill_drive import drive
from dataflow_ops.pipeline.backfill_plan import request_of
from dataflow_ops.state.store import StateStore
from tests.pipeline import by_day, inside
from tests.pipeline.inside import published
from tests.state.gate import Gate

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return inside.sources(tmp_path_factory.mktemp("away") / "in", files=6)


@pytest.fixture(scope="module")
def wanted(job: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("reference")
    inside.run(job, home)
    return published(home)


@pytest.fixture
def gate(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    with Gate(postgres_url) as found:
        monkeypatch.setenv("DATAFLOW_STATE_URL", found.url)
        yield found


def attempts(url: str) -> set[int]:
    with StateStore(url) as state, state.db.read() as connection:
        return set(connection.execute(sa.text("SELECT DISTINCT attempt FROM task")).scalars())


@pytest.mark.parametrize("point", ["after stage parse", "before commit filter", "after publish label"])
def test_a_restart_is_waited_for(
    job: Path, wanted: dict[str, str], gate: Gate, point: str, tmp_path: Path
) -> None:
    restarts: list[Any] = []

    def restart() -> None:
        if not restarts:
            gate.shut()
            restarts.append(gate.open_after(1.0))

    inside.run(job, tmp_path / "home", hooks=inside.At(point, restart), tuning={"stage_every_s": 0.0})
    assert restarts
    assert published(tmp_path / "home") == wanted
    assert attempts(gate.url) == {1}


@contextmanager
def broken_in(statement: str, gate: Gate, times: int) -> Iterator[list[str]]:
    """Cut all connections as such statements are sent, the first few times."""
    met: list[str] = []

    def cut(_c: Any, _cursor: Any, sql: str, *_: Any) -> None:
        if statement in sql and len(met) < times:
            met.append(sql)
            gate.cut()

    sa.event.listen(sa.Engine, "before_cursor_execute", cut)
    try:
        yield met
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", cut)


@pytest.mark.parametrize("statement", ["UPDATE task SET", "INSERT INTO task_output"])
def test_a_transaction_that_breaks_in_the_midst_costs_no_attempt(
    job: Path, wanted: dict[str, str], gate: Gate, statement: str, tmp_path: Path
) -> None:
    with broken_in(statement, gate, times=3) as met:
        ended = inside.run(job, tmp_path / "home")
    assert len(met) == 3
    assert ended.state == "SUCCEEDED"
    assert published(tmp_path / "home") == wanted
    assert attempts(gate.url) == {1}


class Restarts:
    """Hears how a backfill goes, and restarts the database between its days."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.ended: list[tuple[str, str]] = []

    def begins(self, record: Any, days: int, done: int, where: str) -> None:
        pass

    def day_begins(self, day: str, why: str) -> None:
        pass

    def day_ended(self, day: str, state: str, detail: str) -> None:
        self.ended.append((day, state))
        self._gate.shut()
        self._gate.open_after(1.0)

    def note(self, message: str) -> None:
        pass


def test_a_backfill_goes_on_too(gate: Gate, tmp_path: Path) -> None:
    request = request_of(by_day.build(tmp_path / "in", files=2), *by_day.DAYS[:2])
    watch = Restarts(gate)
    with BackfillBook(tmp_path / "home", create=True) as book:
        record, _ = book.begin(request, "somebody")
        assert record is not None
        ended = drive(book, request, record, None, watch, lambda _: inside.Notes(), 0, 1)
    assert watch.ended == [(day, "DONE") for day in by_day.DAYS[:2]]
    assert ended.state == "DONE"


def test_one_that_stays_away_ends_the_run(job: Path, gate: Gate, tmp_path: Path) -> None:
    gone = inside.At("before commit filter", gate.shut)
    with pytest.raises(DatabaseUnavailable):
        inside.run(job, tmp_path / "home", hooks=gone, tuning={"patience_s": 0.5})
    gate.open()
    assert inside.run(job, tmp_path / "home").state == "SUCCEEDED"
