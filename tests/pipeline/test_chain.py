"""A version that builds on others, looked at: pages, commands, and the proof that it carries."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataflow_ops.console.document import document
from dataflow_ops.console.search import search_home
from dataflow_ops.pipeline.audited import audit_of
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.look import lineage_of
from tests.pipeline.compacting import rows, totals
from tests.pipeline.growing import TEXTS, Growing, first_day, second_day

pytestmark = pytest.mark.xdist_group("incremental")


def test_pages_and_commands_look_through_the_chain(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    full = first_day(made)
    second_day(made)
    two = made.day(2)
    ids = {path: doc for path, (_, _, doc) in made.fates(two.version_id).items()}
    rows = {row["path"]: row for row in search_home(made.home, TEXTS[0])["results"]}
    assert (rows["d00.md"]["version"], rows["d00.md"]["status"]) == (full, "kept")
    assert (rows["exact-0.md"]["version"], rows["exact-0.md"]["survivor"]) == (two.version_id, ids["d00.md"])
    found = search_home(made.home, ids["d02.md"])["results"]
    assert [row["version"] for row in found] == [two.version_id], "the replaced one is not shown"
    assert not [row for row in search_home(made.home, TEXTS[2])["results"] if row["path"] == "d02.md"]

    home = open_home(made.home)
    with made.state() as state:
        near_1 = document(home, state, ids["near-1.md"], version=two.version_id)
        assert (near_1["survivor"], near_1["survivor_detail"]["file"]) == (ids["d01.md"], "d01.md")
        assert document(home, state, ids["d03.md"], version=two.version_id)["version"] == full
    text, told = lineage_of(made.home, two.run_id, ids["near-1.md"])
    assert told["survivor"]["path"] == "d01.md"
    assert "the survivor is of a version below" in text
    assert lineage_of(made.home, two.run_id, ids["d03.md"])[1]["path"] == "d03.md"
    drawn = {row.path: row for row in audit_of(made.home, two.run_id, "near", 10, 0)}
    assert drawn["near-1.md"].survivor_path == "d01.md"
    assert drawn["near-1.md"].survivor_text[:40] == TEXTS[1][:40]


def test_the_proof_of_a_version_looks_below_it(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    full = first_day(made)
    second_day(made)
    two = made.day(2)
    said = made.verify(two.version_id)
    assert said.index(full) < said.index(f"grows: {two.version_id}")
    assert "base: tombstones name its documents, totals add up" in said
    folder = made.home / "versions" / two.version_id
    only = subprocess.run(
        [sys.executable, folder / "verify.py", "--only-this"], check=True, capture_output=True, text=True
    )
    assert full not in only.stdout

    def broken() -> str:
        done = subprocess.run(
            [sys.executable, folder / "verify.py", "--only-this"], check=False, capture_output=True, text=True
        )
        assert done.returncode == 1, done.stdout
        return done.stdout

    stones = pq.read_table(folder / "tombstones.parquet")
    manifest = json.loads((folder / "manifest.json").read_text())
    moved = stones.set_column(
        1, "doc_id", pa.array([b"x" * 16] * stones.num_rows, stones.schema.field(1).type)
    )
    pq.write_table(moved, folder / "tombstones.parquet")
    assert "tombstones.parquet" in broken()
    data = (folder / "tombstones.parquet").read_bytes()
    manifest["tombstones"] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "not there, or of another fate" in broken()
    manifest["base"]["manifest_sha256"] = "0" * 64
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert f"{full} is not the version that {two.version_id} builds on" in broken()
    (made.home / "versions" / full).rename(made.home / "elsewhere")
    assert "can't be read" in broken()


def test_tokens_of_replaced_documents_are_counted_in_every_shard_that_repeats_them(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    for number in range(8):
        made.put(f"{number}.txt", TEXTS[number])
    drawn = made.run(
        set=["mixing.target_tokens=60000", "mixing.max_repetition=4", "output.shards=3"], promote=True
    )
    manifest = made.home / "versions" / drawn.version_id / "manifest.json"
    shards = json.loads(manifest.read_text())["shards"]
    assert sum(s["rows"] for s in shards) > sum(s["documents"] for s in shards), (
        "some are drawn more than once"
    )
    assert len(shards) > 1
    made.put("3.txt", TEXTS[9])
    day = made.day(2)
    said = totals(made, day.version_id)
    found = rows(made, day.version_id)
    assert said["tokens"] == sum(row["tokens"] for row in found)
