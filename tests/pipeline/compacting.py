"""Chains of versions, and what somebody who reads them sees."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dataflow_ops.layers.export.exporters import EXPORTERS
from dataflow_ops.pipeline.compact import Compacted, compact
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.versions import VersionBook
from tests.pipeline.growing import TEXTS, Growing, first_day, near, second_day
from tests.pipeline.harness import ROOT
from tests.pipeline.inside import Notes


def chain(root: Path, fmt: str = "") -> Growing:
    """A full version and three days: copies, changed files, a file read again twice."""
    made = Growing(root)
    if fmt:
        job = made.job.read_text(encoding="utf-8").replace("shards: 2", f"shards: 2, format: {fmt}")
        made.job.write_text(job, encoding="utf-8")
    first_day(made)
    second_day(made)
    made.day(2)
    made.put("new-c.md", TEXTS[30])
    made.put("new-a.md", TEXTS[31])
    made.day(3)
    made.put("d04.md", near(TEXTS[4], "changed again"))
    assert made.day(4).current
    return made


def later(made: Growing) -> None:
    """A day after it: copies of documents of every version, and files of every version read again."""
    made.put("copy-of-c.md", TEXTS[30])
    made.put("near-of-5.md", near(TEXTS[5], "x"))
    made.put("near-of-b.md", near(TEXTS[21], "y"))
    made.put("again-replaced.md", TEXTS[4])
    made.put("fresh.md", TEXTS[40])
    made.put("d06.md", TEXTS[41])
    made.put("new-c.md", near(TEXTS[30], "changed"))


def twin(made: Growing, name: str = "twin") -> Growing:
    """The same sources with a copy of the home."""
    other = Growing(made.root)
    other.home = made.root / name
    shutil.copytree(made.home, other.home)
    return other


def compacted(made: Growing, version: str | None = None, **more: Any) -> Compacted:
    return compact(made.home, version, more.pop("workers", 0), more.pop("notes", Notes()), **more)


def rows(made: Growing, version: str) -> list[dict[str, Any]]:
    """Rows as docs/days.md tells people to read them, in the order that a compaction keeps."""
    found: list[tuple[str, int, str, list[dict[str, Any]]]] = []
    folders = [made.home / "versions" / version]
    while base := json.loads((folders[0] / "manifest.json").read_text())["base"]:
        folders.insert(0, folders[0].parent / base["version"])
    stones = [pq.read_table(f / "tombstones.parquet").to_pylist() for f in folders[1:]]
    for part, folder in enumerate(folders):
        gone = {row["doc_id"].hex() for t in stones for row in t if row["part"] == part}
        for shard in json.loads((folder / "manifest.json").read_text())["shards"]:
            fmt = "parquet" if shard["path"].endswith("parquet") else "jsonl.zst"
            tables = EXPORTERS[fmt].read(folder / shard["path"])
            living = [row for table in tables for row in table.to_pylist() if row["id"] not in gone]
            found.append((shard["path"].rpartition("/")[0], part, shard["path"], living))
    found.sort(key=lambda one: one[:3])
    return [row for *_, living in found for row in living]


def totals(made: Growing, version: str) -> dict[str, Any]:
    with VersionBook(open_home(made.home, create=False)) as book:
        shown = book.show(version)
    return {key: shown[key] for key in ("documents", "tokens", "domains")}


def current(made: Growing) -> str:
    with made.state() as state:
        found = state.current("grows")
    assert found is not None
    return found.version_id


def once(home: Path, expect: int = 0, **options: Any) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.pipeline.compact_once", str(home), json.dumps(options)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == expect, done.stderr[-4000:]
    return json.loads(done.stdout) if expect == 0 else {}
