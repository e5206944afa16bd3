"""The power goes at a durable step: what was never synced is forgotten; the run goes on to the same bytes.

State is a SQLite file outside the simulated disk: its own synchronisation is taken for granted.
"""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from tests.pipeline import inside
from tests.pipeline.inside import published
from tests.storage.power_cut import PowerCut, PowerCutDisk

TUNING = {"stage_every_s": 0.0, "batch_rows": 4, "lease_s": 0.4}
"""The test's process lives on, so that the lease of the attempt that was cut off must run out."""


@pytest.fixture(scope="module", autouse=True)
def _many_files() -> None:
    # The simulator keeps every file open.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 16_384)), hard))


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return inside.sources(tmp_path_factory.mktemp("cut") / "in", files=4, run="max_attempts: 9")


@pytest.fixture(scope="module")
def undisturbed(job: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], list[str]]:
    """What the version is made of, and all durable steps on the way."""
    base = tmp_path_factory.mktemp("reference")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATAFLOW_ROOT", str(base / "root"))
        (base / "root").mkdir()
        disk = PowerCutDisk(base / "root")
        inside.run(job, base / "home", tuning={**TUNING, "disk": disk})
    return published(base / "root"), disk.steps


@pytest.mark.parametrize("keep_names", [False, True], ids=["names-lost", "bytes-lost"])
def test_cut_again_and_again(
    job: Path,
    undisturbed: tuple[dict[str, str], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keep_names: bool,
) -> None:
    """Every time the same home loses its power a good way further on."""
    wanted, steps = undisturbed
    root = tmp_path / "root"
    root.mkdir()
    monkeypatch.setenv("DATAFLOW_ROOT", str(root))
    stride = len(steps) // 7
    cuts = 0
    for after in (False, True) * 6:
        disk = PowerCutDisk(root, stop_at=stride + cuts, after=after)
        try:
            inside.run(job, tmp_path / "home", tuning={**TUNING, "disk": disk})
        except PowerCut:
            cuts += 1
            disk.power_cut(keep_names)
            continue
        break
    assert cuts >= 4
    inside.run(job, tmp_path / "home", tuning=TUNING)
    assert published(root) == wanted
