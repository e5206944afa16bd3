"""The orchestrator's calls, one by one: the bytes of a local run, also when a call is repeated or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
    assert start(job, home) == started
    run_steps(home, started, STEP_NAMES[4:])
    assert finish_run(home, "day-1", log=quiet)["state"] == "SUCCEEDED"
    assert finish_run(home, "day-1", log=quiet)["state"] == "SUCCEEDED", "a retry of the last call"
    inside.run(job, tmp_path / "local")
    assert shipped(home) == shipped(tmp_path / "local")
