from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dataflow_ops.storage.local import LocalStore
from dataflow_ops.storage.staging import Staging
from tests.storage.power_cut import PowerCut, PowerCutDisk


def rows(first: int, last: int) -> dict[str, pa.Table]:
    return {
        "text": pa.table({"row": pa.array(range(first, last), pa.uint32())}),
        "rejects": pa.table({"rule": pa.array([], pa.string())}),
    }


def save(staging: Staging, epoch: int, first: int, last: int) -> str:
    return staging.save(epoch, first, last, rows(first, last), {"counts": {"kept": last - first}})


def spans(staging: Staging, upto: int | None = None) -> list[tuple[int, int]]:
    return [(s.first_row, s.last_row) for s in staging.resume(upto)]


def test_stretches_come_back_whole(tmp_path: Path) -> None:
    staging = Staging(LocalStore(tmp_path), "k" * 64)
    save(staging, 1, 0, 10)
    save(staging, 1, 10, 25)
    save(staging, 3, 25, 30)
    found = list(Staging(LocalStore(tmp_path), "k" * 64).resume(30))
    assert [(s.first_row, s.last_row) for s in found] == [(0, 10), (10, 25), (25, 30)]
    for stretch in found:
        assert stretch.tables["text"].equals(rows(stretch.first_row, stretch.last_row)["text"])
        assert stretch.tables["rejects"].schema == rows(0, 0)["rejects"].schema
        assert stretch.facts == {"counts": {"kept": stretch.last_row - stretch.first_row}}


def test_gap_and_cursor_end_the_resume(tmp_path: Path) -> None:
    staging = Staging(LocalStore(tmp_path), "k")
    save(staging, 1, 0, 10)
    save(staging, 1, 11, 20)
    assert spans(staging) == [(0, 10)]
    save(staging, 2, 10, 20)
    assert spans(staging, 20) == [(0, 10), (10, 20)]
    assert spans(staging, 19) == [(0, 10)]
    assert spans(staging, 9) == []
    assert spans(Staging(LocalStore(tmp_path), "other")) == []


def test_broken_stretch_is_passed_over_and_named(tmp_path: Path) -> None:
    staging = Staging(LocalStore(tmp_path), "k")
    save(staging, 1, 0, 10)
    bad = save(staging, 1, 10, 30)
    save(staging, 2, 10, 20)
    path = tmp_path / bad
    path.write_bytes(path.read_bytes()[:-9])
    assert spans(staging) == [(0, 10), (10, 20)]
    assert staging.damaged == [bad]


def test_clear(tmp_path: Path) -> None:
    staging = Staging(LocalStore(tmp_path), "k")
    save(staging, 1, 0, 10)
    save(staging, 2, 10, 20)
    save(Staging(LocalStore(tmp_path), "kk"), 1, 0, 5)
    assert staging.clear() == 2
    assert spans(staging) == []
    assert spans(Staging(LocalStore(tmp_path), "kk")) == [(0, 5)]


def test_power_cut_while_saving(tmp_path: Path) -> None:
    trial = PowerCutDisk(tmp_path / "trial")
    save(Staging(LocalStore(tmp_path / "trial", trial), "k"), 1, 0, 10)
    for step in range(len(trial.steps)):
        root = tmp_path / str(step)
        disk = PowerCutDisk(root, stop_at=step)
        with pytest.raises(PowerCut):
            save(Staging(LocalStore(root, disk), "k"), 1, 0, 10)
        disk.power_cut(keep_names=True)
        staging = Staging(LocalStore(root), "k")
        assert spans(staging) in ([], [(0, 10)])
        assert staging.damaged == []
        save(staging, 2, 0, 10)
        assert spans(staging) == [(0, 10)]
