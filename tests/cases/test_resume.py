"""A run that stops in the middle of file 2 of 5 reads files 3 to 5 from their first row."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from dataflow_ops.cli.console import ConsoleReporter
from dataflow_ops.job_file import load_job
from dataflow_ops.layers.parse import step as parse
from dataflow_ops.pipeline.run import run_job
from dataflow_ops.state.store import StateStore
from tests.cases.product import CASES, Product, dataflow

ROWS = 6
STOP_AFTER = 9
"""Rows staged before the pause: three of the second file's six."""


@dataclass
class PauseAfter:
    """Sets the run's pause flag when so many stretches of parse have been staged."""

    state: StateStore
    stages: int

    def reached(self, point: str) -> None:
        if point == "after stage parse":
            self.stages -= 1
            if self.stages == 0:
                self.state.set_pause("run", self.state.list_runs()[0].run_id, "ann", "")
                time.sleep(0.6)  # flags are looked up at most twice a second


def test_files_after_the_resumed_one_start_at_their_first_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse, "_GROUP_RECORDS", 1)
    monkeypatch.setattr(parse, "_YIELD_ROWS", 1)
    prose = (CASES / "text/en_prose_ok.txt").read_text("utf-8").split()
    folder = tmp_path / "in"
    folder.mkdir()
    wanted = []
    for file in range(5):
        texts = [" ".join(prose[file * ROWS + row :]) + f" {file} {row}" for row in range(ROWS)]
        lines = "".join(json.dumps({"id": f"{file}.{i}", "text": t}) + "\n" for i, t in enumerate(texts))
        (folder / f"file-{file}.jsonl").write_text(lines, encoding="utf-8")
        wanted += [(f"file-{file}.jsonl", text) for text in texts]
    product = Product(tmp_path, [{"source_id": "a", "kind": "jsonl", "path": str(folder)}])
    assert product.run("--until", "ingest").code == 0
    with product.state() as state:
        ended = run_job(
            load_job(product.job),
            product.home,
            workers=0,
            reporter=ConsoleReporter(quiet=True),
            hooks=PauseAfter(state, STOP_AFTER),
            tuning={"stage_every_s": 0.0},
        )
        assert ended.state == "PAUSED"
        (task,) = state.records_of_step(ended.run_id, "parse").values()
        assert task.state == "PAUSED"
        cursor = state.read_cursor(task.key)
        assert cursor is not None
        assert ROWS < cursor.processed_rows < 2 * ROWS
    assert dataflow("run", product.job, "--home", product.home, "--workers", 0).code == 3
    resumed = dataflow("resume", "--home", product.home, "--workers", 0, "--json")
    assert resumed.code == 0, resumed.err
    assert [(row["path"], row["text"]) for row in product.rows("parse", "text")] == wanted
    assert product.metrics()["parse"].counts.documents_in == len(wanted)
    product.verify()
