"""How many processes a run takes where nobody said: none for a small day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.engine.pool import Pool
from dataflow_ops.pipeline import worth
from dataflow_ops.pipeline.worth import BYTES_EACH, workers_for
from tests.pipeline.growing import TEXTS, Growing
from tests.pipeline.inside import published

pytestmark = pytest.mark.xdist_group("worth")


@pytest.mark.parametrize(
    ("size", "cores", "wanted"),
    [
        (0, 8, 0),
        (2 * BYTES_EACH - 1, 8, 0),
        (2 * BYTES_EACH, 8, 2),
        (3 * BYTES_EACH, 8, 3),
        (100 * BYTES_EACH, 8, 8),
        (100 * BYTES_EACH, 1, 1),
        (BYTES_EACH, 1, 0),
    ],
)
def test_one_for_so_much_input_and_never_one_beside_an_idle_parent(
    size: int, cores: int, wanted: int
) -> None:
    assert workers_for(size, cores) == wanted


def test_a_small_run_starts_no_process_and_makes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    start = Pool._start

    def counted(self: Pool) -> Any:
        started.append(self)
        return start(self)

    monkeypatch.setattr(Pool, "_start", counted)
    made = Growing(tmp_path)
    for i in range(4):
        made.put(f"d{i}.md", TEXTS[i])
    assert made.run(workers=None).current
    assert started == []
    small, made.home = made.home, tmp_path / "other"
    monkeypatch.setattr(worth, "BYTES_EACH", 1)
    assert made.run(workers=None).current
    assert started
    assert published(made.home) == published(small)
