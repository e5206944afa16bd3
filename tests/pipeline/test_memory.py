"""A run under a small share of memory writes the same bytes in every step."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataflow_ops.layers.dedup import spill
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.protocols import Side
from dataflow_ops.state.store import StateStore
from tests.pipeline import corpus, inside
from tests.pipeline.inside import published

STEPS = ("exact", "match", "gather", "verify", "unite", "collect", "confirm")


def outputs(home: Path, run_id: str) -> dict[tuple[str, str, str], str]:
    """(step, partition, kind) -> SHA-256 of the file."""
    state = StateStore(open_home(home).state_url)
    return {
        (step, record.partition, output.kind): output.sha256
        for step in STEPS
        for record in state.records(list(state.records_of_step(run_id, step))).values()
        for output in record.outputs
    }


def test_ranges_that_do_not_fit_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = corpus.build(tmp_path / "in")
    whole = inside.run(job, tmp_path / "whole")
    spills: list[Path] = []

    def little(side: Side, peak: float) -> int:
        spills.append(side.scratch)
        return 20_000

    monkeypatch.setattr(spill, "share_of", little)
    cut = inside.run(job, tmp_path / "cut")
    assert len(spills) > len(STEPS)
    found = outputs(tmp_path / "whole", whole.run_id)
    assert len(found) > 50
    assert outputs(tmp_path / "cut", cut.run_id) == found
    assert published(tmp_path / "cut") == published(tmp_path / "whole")
