"""A compaction that died and was overtaken is ended, one that goes on is not."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from dataflow_ops.pipeline.compact_dead import end_overtaken
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.maintenance import maintain
from dataflow_ops.pipeline.ordered import GATE
from dataflow_ops.pipeline.versions import VersionBook
from dataflow_ops.state.tables import run
from tests.pipeline.compacting import chain, compacted, current
from tests.pipeline.growing import TEXTS, Growing
from tests.pipeline.inside import At, Notes

pytestmark = pytest.mark.xdist_group("compact")


class Killed(BaseException):
    """As if the process had died."""


def die() -> None:
    raise Killed


@pytest.fixture
def died(tmp_path: Path) -> tuple[Growing, str, str]:
    """A chain, its top, and the run of a compaction that died with half of it done."""
    made = chain(tmp_path)
    with pytest.raises(Killed):
        compacted(made, hooks=At("after commit weigh", die))
    with made.state() as state:
        [row] = state.live_runs("grows")
    return made, current(made), row.run_id


def silent(made: Growing, run_id: str, seconds: float = 100.0) -> None:
    """Let its last sign of life be so long ago."""
    with made.state() as state, state.db.write() as connection:
        connection.execute(
            sa.update(run).where(run.c.run_id == run_id).values(updated_at=run.c.updated_at - seconds)
        )


def test_maintenance_ends_what_was_overtaken_and_no_version_is_held_back(
    died: tuple[Growing, str, str],
) -> None:
    made, old, run_id = died
    home, told = open_home(made.home), []
    made.put("more.md", TEXTS[45])
    assert made.run(date="2026-11-05").current
    made.put("most.md", TEXTS[46])
    day = made.day(6)
    assert day.current
    assert old not in maintain(home, keep_versions=1, log=told.append)["versions"], "it died a moment ago"
    silent(made, run_id)
    assert maintain(home, keep_versions=1, dry_run=True, log=told.append)["dry_run"]
    with made.state() as state:
        assert [row.run_id for row in state.live_runs("grows")] == [run_id], "a rehearsal ends nothing"
    assert old in maintain(home, keep_versions=1, log=told.append)["versions"]
    with made.state() as state:
        row = state.get_run(run_id)
        assert row is not None
        assert row.state == "CANCELLED"
        assert row.detail is not None
        assert f"{day.version_id} is current now" in row.detail
        assert not state.live_runs("grows")
    assert [line for line in told if run_id in line]


def test_the_next_compaction_ends_it_too(died: tuple[Growing, str, str]) -> None:
    made, old, run_id = died
    made.put("more.md", TEXTS[45])
    assert made.day(5).current
    silent(made, run_id)
    notes = Notes()
    assert compacted(made, notes=notes).current
    [note] = [n for n in notes.notes if run_id in n]
    with made.state() as state:
        row = state.get_run(run_id)
        assert row is not None
        assert row.state == "CANCELLED"
        assert row.detail is not None
        assert f"dataflow versions compact {old}" in row.detail
        assert row.detail in note
    again = compacted(made, old)
    assert (again.state, again.run_id != run_id) == ("AWAITING_APPROVAL", True)


def test_what_lives_goes_on_or_waits_for_a_person_is_left(died: tuple[Growing, str, str]) -> None:
    made, old, run_id = died
    silent(made, run_id)
    with made.state() as state:
        assert end_overtaken(state, print) == [], "the same command goes on: its version is current"
        made.put("more.md", TEXTS[45])
        day = made.day(5)
        assert end_overtaken(state, print, silent_s=1e6) == [], "it may be between two tasks"
        lease = state.acquire_lease("grows", GATE, "", run_id, 60.0)
        assert lease is not None
        assert end_overtaken(state, print) == [], "it has its turn"
        state.release_lease(lease)
        state.set_run_state(run_id, "pause")
        silent(made, run_id)
        assert end_overtaken(state, print) == [], "somebody paused it"
        state.set_run_state(run_id, "resume")
        silent(made, run_id)
        with VersionBook(open_home(made.home)) as book:
            book.rollback(old)
        assert end_overtaken(state, print) == []
        done = compacted(made)
        assert (done.run_id, done.current) == (run_id, True), "it goes on after the rollback"
        assert day.current
