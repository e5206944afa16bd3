"""What the history says where several processes finish one run."""

from __future__ import annotations

from pathlib import Path

from dataflow_ops.state.store import StateStore
from tests.pipeline import corpus, inside


def history(home: Path) -> list[tuple[str, str]]:
    with StateStore(f"sqlite:///{home / 'state.db'}") as state:
        return [(e.version_id, e.action) for e in state.version_events("tiny")]


def test_two_processes_that_finish_one_run_promote_nothing_twice(tmp_path: Path) -> None:
    job, home = corpus.build(tmp_path / "in", code=6, docs=8), tmp_path / "home"
    others: list[str] = []

    def another() -> None:
        if not others:
            others.append("at work")
            others.append(inside.run(job, home).version_id)

    made = inside.run(job, home, hooks=inside.At("before pointer publish", another))
    assert others == ["at work", made.version_id]
    assert made.current
    assert history(home) == [(made.version_id, "published")]


def test_a_later_run_that_makes_a_version_current_again_is_told(tmp_path: Path) -> None:
    job, home = corpus.build(tmp_path / "in", code=6, docs=8), tmp_path / "home"
    first = inside.run(job, home)
    other = inside.run(job, home, set=["output.shards=3"])
    assert other.version_id != first.version_id
    assert other.current
    assert inside.run(job, home).version_id == first.version_id
    assert history(home)[0] == (first.version_id, "promoted")
