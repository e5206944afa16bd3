"""Killed before and after every durable action of every step, the run ends with the same bytes."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.pipeline import corpus
from tests.pipeline.harness import finish, once, published, start

TUNING = {"stage_every_s": 0.0, "batch_rows": 40}


@pytest.mark.crash
@pytest.mark.timeout(600)
@pytest.mark.parametrize("half", [0, 1])
def test_killed_at_every_point_in_turn(tmp_path: Path, half: int) -> None:
    job = corpus.build(tmp_path / "in", code=12, docs=24)
    points_file = tmp_path / "points"
    once(job, tmp_path / "reference", record=str(points_file), tuning=TUNING)
    wanted = published(tmp_path / "reference")
    points = list(dict.fromkeys(points_file.read_text().splitlines()))
    assert {p.split(" ")[1] for p in points} == {"stage", "publish", "commit", "pointer"}
    home = tmp_path / "home"
    for i, point in enumerate(points[half::2]):
        process = start(job, home, kill=point, marker=str(tmp_path / f"killed-{i}"), tuning=TUNING)
        finish(process, expect=None)
        assert process.returncode == -signal.SIGKILL, f"{point} was never reached"
    once(job, home, tuning=TUNING)
    assert published(home) == wanted


@pytest.mark.crash
@pytest.mark.parametrize("point", ["before commit sign", "after publish parse"])
def test_a_killed_worker_costs_an_attempt_and_nothing_else(tmp_path: Path, point: str) -> None:
    job = corpus.build(tmp_path / "in", code=12, docs=24)
    once(job, tmp_path / "reference")
    result = once(job, tmp_path / "home", workers=2, kill=point, marker=str(tmp_path / "killed"))
    assert (tmp_path / "killed").exists()
    assert result["state"] in ("SUCCEEDED", "SUCCEEDED_WITH_DEAD")
    assert published(tmp_path / "home") == published(tmp_path / "reference")


def test_a_double_trigger_is_one_version(tmp_path: Path) -> None:
    job = corpus.build(tmp_path / "in", code=12, docs=24)
    once(job, tmp_path / "reference")
    both = [start(job, tmp_path / "home", workers=1) for _ in range(2)]
    results = [finish(p) for p in both]
    assert results[0]["version"] == results[1]["version"]
    assert published(tmp_path / "home") == published(tmp_path / "reference")
