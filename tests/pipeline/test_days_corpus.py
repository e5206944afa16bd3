"""Days of a real corpus, side by side: every document has the id that the full run gives it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.pipeline import corpus
from tests.pipeline.harness import ROOT

pytestmark = pytest.mark.xdist_group("days_corpus")
DAYS = ("2026-11-29", "2026-11-30")


def by_day(root: Path) -> Path:
    """The corpus with its code in a folder for each day, its rows in a file for each, and other settings."""
    corpus.build(root, code=24, docs=24)
    for i, path in enumerate(sorted((root / "code").iterdir())):
        (root / "code" / DAYS[i % 2]).mkdir(exist_ok=True)
        path.rename(root / "code" / DAYS[i % 2] / path.name)
    for i, path in enumerate(sorted((root / "rows").glob("part-*"))):
        path.rename(root / "rows" / f"rows_{DAYS[i % 2].replace('-', '')}_{i}.jsonl")
    (root / "rows" / "broken.jsonl").unlink()
    job = root / "days.yaml"
    job.write_text(
        f"""dataset: {{id: tiny}}
sources:
  - {{source_id: code, kind: files, path: "{root}/code/{{date}}", domain: code}}
  - {{source_id: rows, kind: jsonl, path: "{root}/rows/rows_{{date:%Y%m%d}}_*.jsonl", domain: docs}}
ingest: {{chunk_mb: 0.1}}
run: {{max_dead_share: 0.5}}
dedup: {{exact: false, near: false}}
output: {{version: t}}
""",
        encoding="utf-8",
    )
    return job


def begin(job: Path, home: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dataflow_ops.cli.main", "run", str(job), "--home", str(home)]
    return subprocess.Popen(
        [*command, "--json", "--workers", "0", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def end(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=280)
    assert process.returncode == 0, err[-3000:]
    found: dict[str, Any] = json.loads(out)
    return found


def documents(home: Path, version: str) -> dict[str, tuple[str, str]]:
    """Id → (source, path) of every document that was parsed, exported or not."""
    found = {}
    for path in (home / "versions" / version / "lineage").glob("*.parquet"):
        for row in pq.read_table(path).to_pylist():
            found[row["doc_id"]] = (row["source_id"], row["path"])
    return found


def test_two_days_and_a_full_run_side_by_side_agree_on_ids(tmp_path: Path) -> None:
    job, home = by_day(tmp_path), tmp_path / "home"
    full = end(begin(job, home))
    runs = [begin(job, home, "--mode", "incremental", "--date", day) for day in DAYS]
    runs.append(begin(job, home, "--set", "clean.quality_rules.enabled=false"))
    days = [end(process) for process in runs[:2]]
    end(runs[2])
    everything = documents(home, full["version"])
    parts = [documents(home, day["version"]) for day in days]
    assert {**parts[0], **parts[1]} == everything
    assert Counter(len(p) > 10 for p in parts) == {True: 2}
    assert not set(parts[0]) & set(parts[1])
    assert all(DAYS[0] in path or "20261129" in path for _, path in parts[0].values())
    assert {day["state"] for day in days} == {"SUCCEEDED"}
    assert len({day["run"] for day in days}) == 2
