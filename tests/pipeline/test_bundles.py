"""The orchestrator's calls, one by one: the bytes of a local run, also when a call is repeated or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.pipeline import bundles as bundles_module
from dataflow_ops.pipeline.bundles import Started, finish_run, run_bundle, start_run
from dataflow_ops.pipeline.flow import STEP_NAMES, partitioning
from dataflow_ops.pipeline.tally import RunFailed
from tests.pipeline import inside
from tests.pipeline.inside import published
from tests.pipeline.test_damage import flip, largest


def shipped(home: Path) -> list[str]:
    return sorted(v for k, v in published(home).items() if "part-" in k or k.endswith("manifest.json"))


def start(job: Path, home: Path) -> Started:
    return start_run(job, home, mode="full", run_id="day-1", log=quiet)


def quiet(_: str) -> None:
    """No lines."""


def run_steps(home: Path, started: Started, names: tuple[str, ...], times: int = 1) -> list[dict[str, Any]]:
    results = []
    for name in names:
        of = started.bundles[partitioning(name)]
        for i in reversed(range(of)):
            bundle = {"run_id": started.run_id, "until": started.until, "index": i, "of": of}
            results += [run_bundle(home, name, bundle, 1, log=quiet) for _ in range(times)]
    return results


def test_bundles_are_a_local_run_in_pieces(tmp_path: Path) -> None:
    job = inside.sources(tmp_path / "in", files=4)
    home = tmp_path / "home"
    started = start(job, home)
    assert start(job, home) == started, "a retry of the first call"
    results = run_steps(home, started, ("fetch",), times=2)
    assert all(again["skipped"] == again["tasks"] for again in results[1::2])

    run_steps(home, started, ("parse", "filter"))
    flip(largest(home, "data/discover/*/*.chunks.parquet"))
    with pytest.raises(RunFailed, match="start the run again"):
        run_steps(home, started, ("sign",))
    again = start(job, home)
    assert (again.bundles, again.idle) == (started.bundles, ["fetch", "parse", "filter"])
    run_steps(home, started, STEP_NAMES[4:])
    assert finish_run(home, "day-1", log=quiet)["state"] == "SUCCEEDED"
    assert finish_run(home, "day-1", log=quiet)["state"] == "SUCCEEDED", "a retry of the last call"
    inside.run(job, tmp_path / "local")
    assert shipped(home) == shipped(tmp_path / "local")


def test_what_is_done_is_seen_before_any_bundle_is_started(tmp_path: Path) -> None:
    job = inside.sources(tmp_path / "in", files=3)
    home = tmp_path / "home"
    run_steps(home, start(job, home), STEP_NAMES[1:])
    finish_run(home, "day-1", log=quiet)
    told: list[str] = []

    def idle(name: str, **more: Any) -> list[str]:
        return start_run(job, home, mode="full", run_id=name, log=told.append, **more).idle

    assert idle("day-2") == list(STEP_NAMES[1:])
    assert any(line.startswith("export:") and "done already" in line for line in told)
    version = finish_run(home, "day-2", log=quiet)
    assert version["state"] == "SUCCEEDED"
    assert idle("day-3", until="filter") == list(STEP_NAMES[1:])
    assert idle("day-4", overrides=["clean.boilerplate_filter.min_text_len=150"]) == ["fetch", "parse"]
    # An output that is gone, or of another size, is not done.
    largest(home, "data/label/*/*.labels.parquet").unlink()
    assert idle("day-5") == list(STEP_NAMES[1 : STEP_NAMES.index("label")])
    short = largest(home, "data/parse/*/*.text.parquet")
    short.write_bytes(short.read_bytes()[:-1])
    assert idle("day-6") == ["fetch"]


def test_a_day_looks_no_further_than_the_steps_that_days_take_in_turn(tmp_path: Path) -> None:
    job = inside.sources(tmp_path / "in", files=3)
    home = tmp_path / "home"

    def day(name: str) -> Started:
        return start_run(job, home, mode="incremental", run_id=name, data_date="2026-01-05", log=quiet)

    run_steps(home, day("one"), STEP_NAMES[1:])
    assert day("two").idle == ["fetch", "parse", "filter", "sign"]


def test_the_job_says_how_many_bundles(tmp_path: Path) -> None:
    job = inside.sources(tmp_path / "in", files=6)

    def bundles(name: str, *overrides: str) -> int:
        home = tmp_path / name
        started = start_run(job, home, mode="full", run_id=name, overrides=overrides, log=quiet)
        return started.bundles["chunk"]

    chunks = bundles("each", "run.chunks_per_bundle=1")
    assert chunks > 2
    assert bundles("few", "run.chunks_per_bundle=1", "run.max_bundles=2") == 2
    assert bundles("one") == 1


def test_small_input_makes_few_tasks_and_no_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import multiprocessing

    job = inside.sources(tmp_path / "in", files=4)

    def never(*_: object) -> None:
        raise AssertionError("a process was started for nothing")

    with monkeypatch.context() as watched:
        watched.setattr(multiprocessing.get_context("spawn").Process, "start", never)
        started = start(job, tmp_path / "home")
        run_steps(tmp_path / "home", started, STEP_NAMES[1:])
    assert set(started.bundles.values()) == {1}
    # Where it is worth it, ranges have bundles of their own, and bundles processes; the bytes are the same.
    monkeypatch.setattr(bundles_module, "WORTH_A_TASK", 1)
    monkeypatch.setattr(bundles_module, "WORTH_A_PROCESS", 0)
    large = start(job, tmp_path / "large")
    assert large.bundles["key_prefix"] == 4
    assert run_steps(tmp_path / "large", large, STEP_NAMES[1:])
    for home in ("home", "large"):
        assert finish_run(tmp_path / home, "day-1", log=quiet)["state"] == "SUCCEEDED"
    assert shipped(tmp_path / "home") == shipped(tmp_path / "large")
