"""Backfills in processes of their own: killed in the midst, and two that overlap."""

from __future__ import annotations

import signal
from itertools import pairwise
from pathlib import Path

import pytest

from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.backfill import INTERRUPTED
from dataflow_ops.pipeline.backfill_control import BackfillBook
from dataflow_ops.pipeline.run import run_job
from tests.pipeline.backfill_child import end, start
from tests.pipeline.by_day import DAYS, build
from tests.pipeline.inside import Notes, published


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("days") / "in")


@pytest.fixture(scope="module")
def by_hand(job: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What three incremental runs, one after the other, publish."""
    home = tmp_path_factory.mktemp("by-hand") / "home"
    for day in DAYS:
        run_job(load_job(job), home, mode="incremental", data_date=day, workers=0, reporter=Notes())
    return published(home)


@pytest.mark.crash
@pytest.mark.parametrize(
    ("point", "parallel"),
    [
        ("after commit parse", 1),
        ("before commit match", 1),
        ("after publish publish", 1),
        ("after commit sign", 3),
    ],
)
def test_killed_in_the_midst_the_same_command_goes_on(
    job: Path, by_hand: dict[str, str], tmp_path: Path, point: str, parallel: int
) -> None:
    home = tmp_path / "home"
    end(
        start(job, home, DAYS[0], DAYS[-1], kill=(DAYS[1], point), parallel=parallel),
        expect=-signal.SIGKILL,
    )
    with BackfillBook(home) as book:
        (record,) = book.state.list_backfills()
        assert record.state == "RUNNING"
        assert book.driver(record) == "", "its process is known to be gone"
        killed = book.state.day_runs("daily", DAYS[1], DAYS[1])[DAYS[1]]
        assert [r.state for r in killed] == ["RUNNING"]
    found = end(start(job, home, DAYS[0], DAYS[-1], parallel=parallel))
    assert (found["backfill"], found["state"]) == (record.backfill_id, "DONE")
    assert [d["state"] for d in found["days"]] == ["DONE"] * 3
    assert published(home) == by_hand
    with BackfillBook(home) as book:
        runs = book.state.day_runs("daily", DAYS[0], DAYS[-1])
    assert {day: len(of_day) for day, of_day in runs.items()} == dict.fromkeys(DAYS, 1), "one run a day"


@pytest.mark.parametrize("reprocess", ["none", "all"])
def test_two_overlapping_backfills(
    job: Path, by_hand: dict[str, str], tmp_path: Path, reprocess: str
) -> None:
    home = tmp_path / "home"
    with BackfillBook(home, create=True):
        pass
    both = [
        start(job, home, DAYS[0], DAYS[-1], reprocess=reprocess),
        start(job, home, DAYS[1], DAYS[-1], reprocess=reprocess),
    ]
    found = [end(process) for process in both]
    assert published(home) == by_hand, "no version twice"
    with BackfillBook(home) as book:
        rows = [
            book.state.get_run(r.run_id)
            for of in book.state.day_runs("daily", *DAYS[::2]).values()
            for r in of
        ]
    spans: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        assert row is not None
        assert row.state == "SUCCEEDED"
        assert row.started_at is not None
        assert row.ended_at is not None
        spans.setdefault(row.data_date or "", []).append((row.started_at, row.ended_at))
    for day, of_day in spans.items():
        of_day.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(of_day)), f"{day}: two at a time"
    # Whoever comes when all is done already begins none.
    states = [{d["day"]: d["state"] for d in f["days"]} for f in found if f["backfill"]]
    if reprocess == "none":
        assert {day: len(of_day) for day, of_day in spans.items()} == dict.fromkeys(DAYS, 1)
        for day in DAYS[1:]:
            assert sorted(s[day] for s in states if day in s)[:1] == ["DONE"], (
                "one did it, the other need not"
            )
    else:
        assert all(set(s.values()) == {"DONE"} for s in states)
        assert {day: len(of_day) for day, of_day in spans.items()} == dict(zip(DAYS, (1, 2, 2), strict=True))


@pytest.mark.crash
@pytest.mark.parametrize("parallel", [1, 3])
def test_interrupted_it_says_so_and_goes_on(
    job: Path, by_hand: dict[str, str], tmp_path: Path, parallel: int
) -> None:
    home = tmp_path / "home"
    process = start(job, home, DAYS[0], DAYS[-1], parallel=parallel, wait=DAYS[1])
    assert process.stderr is not None
    assert process.stderr.readline() == "waits for a signal\n"
    process.send_signal(signal.SIGINT)
    end(process, expect=130)
    with BackfillBook(home) as book:
        (record,) = book.state.list_backfills()
        assert (record.state, record.detail) == (
            "RUNNING",
            "interrupted; the same command goes on from there",
        )
        assert book.state.pauses() == [], "an interrupt is no pause that somebody would have to take back"
        stopped = book.state.day_runs("daily", DAYS[1], DAYS[1])[DAYS[1]]
        assert [(r.state, r.detail) for r in stopped] == [("FAILED", INTERRUPTED)]
        held = book.state.lease("daily", "day", DAYS[1])
        assert held is not None
        assert not held.held
    found = end(start(job, home, DAYS[0], DAYS[-1], parallel=parallel))
    assert (found["backfill"], found["state"]) == (record.backfill_id, "DONE")
    assert published(home) == by_hand
