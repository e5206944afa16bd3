"""Days that wait for a person while later ones go on: nothing leaves the current version unseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.errors import ConfigError, VersionError
from dataflow_ops.pipeline.finish import Finished
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.versions import VersionBook
from tests.cases.product import dataflow
from tests.pipeline.growing import TEXTS, Growing
from tests.pipeline.inside import At
from tests.pipeline.test_left_behind import corpus, current, put

pytestmark = pytest.mark.xdist_group("overtaken")


def book_of(made: Growing) -> VersionBook:
    return VersionBook(open_home(made.home, create=False))


def states(made: Growing) -> dict[str, str]:
    with book_of(made) as book:
        return {row["version"]: row["state"] for row in book.list()}


def day(made: Growing, number: int, text: int, **more: Any) -> Finished:
    put(made, number, f"d{text}.md", TEXTS[text])
    return made.day(number, **more)


@pytest.fixture
def late(tmp_path: Path) -> tuple[Growing, Finished, Finished]:
    """Days three, which waits for its dead letters, and four, which did not wait for it."""
    made = corpus(tmp_path, dated=True)
    put(made, 3, "bad.pdf", "")
    (made.root / "docs/2026-11-03/bad.pdf").write_bytes(b"%PDF-1.4 nothing more")
    three = day(made, 3, 30, promote=True)
    assert (three.state, three.current) == ("AWAITING_APPROVAL", False)
    return made, three, day(made, 4, 40, promote=True)


def test_the_day_that_goes_on_says_what_it_lacks(late: tuple[Growing, Finished, Finished]) -> None:
    made, three, four = late
    assert four.current
    (note,) = four.facts["notes"]
    assert note.startswith(f"day 2026-11-03 waits for a person ({three.version_id}), and the documents")
    assert "its 2 file(s) are not in this version" in note
    assert "dataflow run JOB --mode incremental --date 2026-11-03" in note
    assert f"  note    {note}" in four.message
    report = (made.home / "versions" / four.version_id / "report.html").read_text(encoding="utf-8")
    assert three.version_id in report
    assert "2026-11-03/d30.md" not in made.kept(four.version_id)


def test_an_overtaken_day_is_refused_with_what_to_do_instead(
    late: tuple[Growing, Finished, Finished],
) -> None:
    made, three, four = late
    with book_of(made) as book:
        with pytest.raises(ConfigError, match="overtaken by") as refused:
            book.approve(three.version_id)
        said = str(refused.value)
        assert (
            f"{four.version_id}, which doesn't hold it: approved now, day(s) 2026-11-04 would leave" in said
        )
        assert "7 documents would become 7" in said
        assert "Do this instead: dataflow run JOB --mode incremental --date 2026-11-03" in said
        assert f"dataflow versions approve {three.version_id} --anyway" in said
        with pytest.raises(ConfigError, match="no version waits that can become current without loss"):
            book.approve(None)
        (row,) = [row for row in book.list() if row["version"] == three.version_id]
        assert (row["state"], row["overtaken_by"]) == ("WAITING", four.version_id)
        assert row["waits"].endswith(f"overtaken by {four.version_id}, which doesn't hold it")
        assert all(r["overtaken_by"] == "" for r in book.list() if r["version"] != three.version_id)
    assert current(made) == four.version_id
    with book_of(made) as book:
        assert book.approve(three.version_id, anyway=True) == three.version_id
    assert current(made) == three.version_id


def test_the_command_says_beforehand_what_it_would_do(late: tuple[Growing, Finished, Finished]) -> None:
    made, three, four = late
    for named in ((), (three.version_id,)):
        refused = dataflow("versions", "approve", *named, "--home", made.home)
        assert refused.code == 2
        assert "overtaken by" in refused.err
        assert "becomes current" not in refused.out
    assert current(made) == four.version_id
    unnamed = dataflow("versions", "approve", "--anyway", "--home", made.home)
    assert (unnamed.code, "name the version" in unnamed.err) == (2, True)
    done = dataflow("versions", "approve", three.version_id, "--anyway", "--home", made.home)
    assert done.code == 0
    first, then, *_ = done.out.splitlines()
    assert first == (
        f"{three.version_id} (7 documents) becomes current in the place of {four.version_id} (7 documents),"
        " and day(s) 2026-11-04 leave(s) it."
    )
    assert then == f"Current version: {three.version_id}"


def test_the_day_run_again_replaces_the_one_that_waits(late: tuple[Growing, Finished, Finished]) -> None:
    made, three, four = late
    (made.root / "docs/2026-11-03/bad.pdf").unlink()
    again = made.day(3, promote=True)
    assert (again.current, again.facts["base"], again.facts["notes"]) == (True, four.version_id, [])
    assert {"2026-11-03/d30.md", "2026-11-04/d40.md"} < made.kept(again.version_id)
    assert states(made)[three.version_id] == "REJECTED"
    with made.state() as state:
        run = state.get_run(three.run_id)
    assert run is not None
    assert run.state == "CANCELLED"
    with book_of(made) as book:
        event = next(e for e in book.events() if e["action"] == "rejected")
        assert (event["version"], event["who"]) == (three.version_id, again.run_id)
        assert again.version_id in event["note"]
        with pytest.raises(ConfigError, match="overtaken by"):
            book.approve(three.version_id)


def test_the_day_run_again_and_approved_replaces_it_too(late: tuple[Growing, Finished, Finished]) -> None:
    made, three, _ = late
    again = made.day(3, promote=True)
    assert again.state == "AWAITING_APPROVAL"
    assert states(made)[three.version_id] == "WAITING"
    with book_of(made) as book:
        assert book.approve(None, who="li") == again.version_id
    assert states(made)[three.version_id] == "REJECTED"


def test_days_that_list_what_was_not_read_bring_it_themselves(tmp_path: Path) -> None:
    made = corpus(tmp_path, dated=False)
    three = day(made, 3, 30, promote=False)
    four = day(made, 4, 40, promote=True)
    assert {"2026-11-03/d30.md", "2026-11-04/d40.md"} < made.kept(four.version_id)
    assert four.facts["notes"] == []
    with book_of(made) as book, pytest.raises(ConfigError, match="has read all its files since") as refused:
        book.approve(three.version_id)
    assert f"dataflow versions reject {three.version_id}" in str(refused.value)


def test_a_full_run_behind_it_overtakes_what_waits(tmp_path: Path) -> None:
    made = corpus(tmp_path, dated=True)
    put(made, 2, "d28.md", TEXTS[28])
    older = made.run(date="2026-11-02", promote=False)
    three = day(made, 3, 30, promote=False)
    full = made.run(date="2026-11-04", promote=True)
    assert (full.current, full.facts["notes"]) == (True, [])
    with book_of(made) as book:
        with pytest.raises(ConfigError, match=rf"{full.version_id} would leave") as refused:
            book.approve(older.version_id)
        assert "Do this instead: dataflow run JOB\n" in str(refused.value)
        with pytest.raises(ConfigError, match="has read all its files since"):
            book.approve(three.version_id)


def test_a_later_full_version_that_waits_and_a_way_back_are_not_refused(tmp_path: Path) -> None:
    made = corpus(tmp_path, dated=True)
    base = current(made)
    three = day(made, 3, 30, promote=True)
    waits = day(made, 4, 40, promote=False)
    with book_of(made) as book:
        book.rollback(base)
        assert book.approve(waits.version_id) == waits.version_id, "it holds the current one and more"
        book.rollback(three.version_id)
    full = made.run(date="2026-11-05", promote=False)
    with book_of(made) as book:
        assert book.approve(None) == full.version_id


def test_what_becomes_current_while_an_approval_looks_at_the_files_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = corpus(tmp_path, dated=True)
    three = day(made, 3, 30, promote=False)
    check = VersionBook._check

    def meanwhile(self: VersionBook, *arguments: Any) -> None:
        check(self, *arguments)
        assert day(made, 4, 40, promote=True).current

    monkeypatch.setattr(VersionBook, "_check", meanwhile)
    with book_of(made) as book, pytest.raises(VersionError, match="is current now, not"):
        book.approve(three.version_id)
    assert "2026-11-04" in current(made)


def test_a_kill_after_the_pointer_moved_loses_no_rejection(late: tuple[Growing, Finished, Finished]) -> None:
    made, three, _ = late
    (made.root / "docs/2026-11-03/bad.pdf").unlink()

    class Killed(BaseException):
        pass

    def stop() -> None:
        raise Killed

    with pytest.raises(Killed):
        made.day(3, promote=True, hooks=At("after pointer publish", stop))
    assert states(made)[three.version_id] == "WAITING"
    assert made.day(3, promote=True).current
    assert states(made)[three.version_id] == "REJECTED"
