"""``run``, ``pause``, ``resume``: what is printed while it runs, and what the exit code says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline import run as run_module
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.session import create_run
from tests.cli.conftest import Dataflow

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture
def clean_job(tmp_path: Path, job: Path) -> Path:
    """Nothing in it is broken."""
    path = tmp_path / "job.yaml"
    path.write_text(f"dataset: {{id: small}}\nsources: [{{path: {job.parent}/docs, domain: docs}}]\n")
    return path


def test_a_dry_run_writes_nothing(dataflow: Dataflow, job: Path, tmp_path: Path) -> None:
    said = dataflow("run", job, "--dry-run", "--home", tmp_path / "home")
    assert said.code == 0
    assert "Nothing was written" in said.out
    found = dataflow("run", job, "--dry-run", "--json", "--home", tmp_path / "home").json
    assert [row["source"] for row in found["sources"]] == ["code", "docs", "rows", "pages"]
    assert all(row["files"] > 0 and row["chunks"] > 0 for row in found["sources"])
    assert not (tmp_path / "home").exists()


def test_a_dry_run_counts_the_workers_that_a_run_starts(
    dataflow: Dataflow, clean_job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(run_module, "IDLE_FROM", 0)
    asked = ("run", clean_job, "--dry-run", "--home", tmp_path / "home")
    assert "chunk(s) for" not in dataflow(*asked).out
    assert "1 chunk(s) for 5 workers" in dataflow(*asked, "--workers", 5).out


def test_progress_is_plain_lines_where_nobody_watches(
    dataflow: Dataflow, clean_job: Path, tmp_path: Path
) -> None:
    said = dataflow("run", clean_job, "--workers", 0, "--home", tmp_path / "home")
    assert said.code == 0
    lines = said.err.splitlines()
    assert [line.split()[0] for line in lines][:4] == ["discover", "fetch", "parse", "filter"]
    assert "\x1b" not in said.err
    assert "\r" not in said.err
    assert said.out.startswith("Version v1-full-")
    assert "report.html" in said.out
    again = dataflow("run", clean_job, "--workers", 0, "--home", tmp_path / "home")
    assert again.out == said.out
    assert " ran" not in again.err, "everything was done already"


def test_json_leaves_standard_output_to_one_document(
    dataflow: Dataflow, clean_job: Path, tmp_path: Path
) -> None:
    said = dataflow("run", clean_job, "--workers", 0, "--json", "--home", tmp_path / "home")
    assert said.json["state"] == "SUCCEEDED"
    assert said.json["current"] is True
    assert said.err == ""


def test_sources_from_the_command_line(dataflow: Dataflow, job: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.yaml"
    bare.write_text("dataset: {id: bare}\n")
    rows = job.parent / "rows" / "part-0.jsonl"
    said = dataflow(
        "run", bare, "--dry-run", "--json", "--source", rows, "--source", f"files:{job.parent}/docs"
    )
    assert [(r["source"], r["kind"]) for r in said.json["sources"]] == [
        ("part-0", "jsonl"),
        ("docs", "files"),
    ]


def test_until_stops_after_a_layer(dataflow: Dataflow, clean_job: Path, tmp_path: Path) -> None:
    said = dataflow("run", clean_job, "--workers", 0, "--until", "parse", "--home", tmp_path / "home")
    assert said.code == 0
    assert said.out.strip() == "Done up to layer 'parse'."


def test_a_paused_run_ends_with_3_and_resume_ends_it(
    dataflow: Dataflow, clean_job: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    settings = load_job(clean_job)
    run_id = create_run(open_home(home), settings, "full", job_name="job")
    asked = dataflow("pause", "--why", "maintenance", "--home", home)
    assert (asked.code, f"dataflow resume --home {home} {run_id}" in asked.out) == (0, True)
    said = dataflow("run", clean_job, "--workers", 0, "--home", home)
    assert said.code == 3
    assert "maintenance" in said.err
    assert f"dataflow resume --home {home} {run_id}" in said.err
    assert "is PAUSED" in dataflow("status", "--home", home).out
    assert dataflow("run", clean_job, "--workers", 0, "--home", home, "--json").json["state"] == "PAUSED"
    resumed = dataflow("resume", "--workers", 0, "--home", home)
    assert resumed.code == 0
    assert resumed.out.startswith("Version v1-full-")
    over = dataflow("pause", "--home", home, "--json")
    assert (over.code, "nothing to pause" in over.err) == (2, True)
    assert dataflow("pause", "nobody", "--home", home).code == 2
    assert dataflow("resume", "nobody", "--home", home).code == 2


def test_a_run_with_dead_letters_ends_with_4(dataflow: Dataflow, job: Path, home: Path) -> None:
    said = dataflow("run", job, "--workers", 0, "--home", home)
    assert said.code == 4
    assert f"1 dead letter(s) wait: dataflow dead-letters list --home {home}" in said.out
