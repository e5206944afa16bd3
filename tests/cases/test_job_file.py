"""The job file as users write it."""

from __future__ import annotations

from pathlib import Path

import yaml

from dataflow_ops.job_file import load_job
from tests.cases.product import CASES, CONFIG, dataflow

JOB = CONFIG / "web_corpus_v3.yaml"


def test_it_loads_unchanged() -> None:
    job = load_job(JOB).model_dump(mode="json")

    def contained(given: object, resolved: object) -> bool:
        if isinstance(given, dict):
            return isinstance(resolved, dict) and all(contained(v, resolved[k]) for k, v in given.items())
        return given == resolved

    assert contained(yaml.safe_load(JOB.read_text("utf-8")), job)
    assert job["sources"] == []


def test_without_sources_it_says_how_to_add_them(tmp_path: Path) -> None:
    said = dataflow("run", JOB, "--home", tmp_path / "home")
    assert said.code == 2
    assert "--source PATH" in said.err
    assert "sources:" in said.err
    assert not (tmp_path / "home").exists()


def test_with_a_source_it_runs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    said = dataflow("run", JOB, "--source", f"{CASES / 'text'}@web", "--home", home, "--workers", 0, "--json")
    assert said.code == 0, said.err
    assert said.data["version"].startswith("v3.1-full-")
    assert said.data["current"]
    folder = home / "versions" / said.data["version"]
    assert list(folder.glob("domain=web/quality_level=unscored/*.parquet"))
    audit = dataflow("audit", "--home", home, "--json").data
    short = next(row for row in audit if row["path"] == "short.txt")
    assert (short["rule"], short["bound"]) == ("length", 200)
    assert "All is well." in dataflow("versions", "verify", "--home", home).out


def test_a_source_that_is_not_there_is_told_before_anything_is_made(tmp_path: Path) -> None:
    said = dataflow("run", JOB, "--source", f"{tmp_path}/nowhere@web", "--home", tmp_path / "home")
    assert said.code == 2
    assert "nowhere" in said.err
    assert not (tmp_path / "home").exists()
