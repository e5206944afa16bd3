from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from dataflow_ops.layers.export.columns import EXPORTED
from dataflow_ops.layers.export.exporters import EXPORTERS
from tests.layers.export.flow import job, make_chunks, publish, run_flow


def run(root: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-I", str(root / "verify.py"), *options], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module", params=["parquet", "jsonl.zst"])
def version(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verify")
    settings = job(
        output={"format": request.param, "shards": 6},
        mixing={"target_tokens": 6000, "sampling": {"web": 0.5, "code": 0.5}, "max_repetition": 3},
    )
    return publish(run_flow(settings, make_chunks(), folder / "work"), folder / "version")


@pytest.fixture
def broken(version: Path, tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(version, tmp_path / "copy"))


def edit_manifest(root: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = root / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def edit_lineage(root: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change fates and correct the manifest, as somebody would who wants to hide it."""
    manifest = json.loads((root / "manifest.json").read_text())
    for entry in manifest["lineage"]:
        path = root / entry["path"]
        table = pq.read_table(path, partitioning=None)
        rows = table.to_pylist()
        change(rows)
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
        data = path.read_bytes()
        entry.update(rows=len(rows), bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    (root / "manifest.json").write_text(json.dumps(manifest))


def first_shard(root: Path) -> Path:
    return root / json.loads((root / "manifest.json").read_text())["shards"][0]["path"]


def test_a_whole_version_is_well(version: Path) -> None:
    code, text = run(version)
    assert code == 0, text
    assert "All is well." in text
    assert "FAILED" not in text
    assert "duplicate" in text


def test_many_passes_find_the_same(version: Path) -> None:
    once, many = run(version), run(version, "--ids-per-pass", "10")
    assert once == many


def test_a_flipped_byte(broken: Path) -> None:
    path = first_shard(broken)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    code, text = run(broken)
    assert code == 1
    assert "SHA-256" in text
    assert path.name in text


def test_a_missing_shard(broken: Path) -> None:
    path = first_shard(broken)
    path.unlink()
    code, text = run(broken)
    assert code == 1
    assert "missing" in text


@pytest.mark.parametrize("key", ["rows", "tokens", "documents"])
def test_a_wrong_count_of_a_shard(broken: Path, key: str) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["shards"][0][key] += 1
        manifest["totals"][key] += 1

    edit_manifest(broken, change)
    code, text = run(broken)
    assert code == 1
    assert f"{key}, not" in text


def test_a_step_that_lost_a_record(broken: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        [step] = [s for s in manifest["steps"] if s["name"] == "label"]
        step["in"] += 1

    edit_manifest(broken, change)
    code, text = run(broken)
    assert code == 1
    assert "label:" in text


def test_rejects_of_parse_that_never_reached_lineage(broken: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        [step] = [s for s in manifest["steps"] if s["name"] == "parse"]
        step["in"] += 1
        step["rejected"] += 1

    edit_manifest(broken, change)
    code, text = run(broken)
    assert code == 1
    assert "scatter: 246 records in, but parse handed on 247" in text
    edit_manifest(broken, lambda m: m.update(dead_letters=1))  # a chunk was given up: it may be short
    assert run(broken)[0] == 0


def test_a_missing_survivor(broken: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row["fate"] == "duplicate":
                row["survivor_id"] = b"\xff" * 16

    edit_lineage(broken, change)
    code, text = run(broken)
    assert code == 1
    assert "is not in lineage" in text


def test_a_survivor_that_is_a_duplicate(broken: Path) -> None:
    survivors: set[bytes] = set()

    def change(rows: list[dict[str, Any]]) -> None:
        duplicates = [r for r in rows if r["fate"] == "duplicate"]
        for row in duplicates:
            survivors.add(row["doc_id"])
            row["survivor_id"] = duplicates[0]["doc_id"]

    edit_lineage(broken, change)
    code, text = run(broken)
    assert code == 1
    assert "is a duplicate itself" in text


def test_a_document_dropped_from_lineage(broken: Path) -> None:
    edit_lineage(broken, lambda rows: rows.pop() and None if rows else None)
    code, text = run(broken)
    assert code == 1
    assert "scatter: in" in text


def test_a_document_twice_in_lineage(broken: Path) -> None:
    edit_lineage(broken, lambda rows: rows.append(rows[0]) if rows else None)
    code, text = run(broken)
    assert code == 1
    assert "twice in lineage" in text


def test_an_exported_document_called_not_sampled(broken: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row["fate"] == "exported":
                row["fate"] = "not_sampled"
                return

    edit_lineage(broken, change)
    code, text = run(broken)
    assert code == 1
    assert "its fate is: not_sampled" in text


def test_it_stands_alone() -> None:
    """Only the standard library, pyarrow and zstandard; no syntax newer than Python 3.9."""
    from dataflow_ops.layers.export.verify import verify_script

    tree = ast.parse(verify_script(), feature_version=(3, 9))
    names = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    assert names - set(sys.stdlib_module_names) == {"pyarrow", "zstandard"}
    kinds = {type(n).__name__ for n in ast.walk(tree)}
    assert "Match" not in kinds
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg == "strict"]


def test_a_document_in_another_shard_than_lineage_says(broken: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row["fate"] == "exported":
                row["shard"] = "elsewhere"

    edit_lineage(broken, change)
    code, text = run(broken)
    assert code == 1
    assert "lineage says elsewhere" in text


def test_a_missing_repetition(broken: Path) -> None:
    """Counts and hashes are right: only the gap in a document's repetitions tells."""
    manifest = json.loads((broken / "manifest.json").read_text())
    exporter = EXPORTERS["jsonl.zst" if manifest["shards"][0]["path"].endswith("zst") else "parquet"]
    for entry in manifest["shards"]:
        path = broken / entry["path"]
        table = pa.concat_tables([t.select(EXPORTED.names).cast(EXPORTED) for t in exporter.read(path)])
        changed = pc.if_else(pc.equal(table["repetition"], 1), 5, table["repetition"]).cast(pa.int32())
        table = table.set_column(table.schema.get_field_index("repetition"), "repetition", changed)
        exporter.write(path, iter([table]), EXPORTED)
        data = path.read_bytes()
        manifest["totals"]["bytes"] += len(data) - entry["bytes"]
        entry.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    (broken / "manifest.json").write_text(json.dumps(manifest))
    code, text = run(broken)
    assert code == 1
    assert "a repetition is missing" in text


@pytest.mark.parametrize("module", ["pyarrow", "zstandard"])
def test_a_missing_package_is_named_with_the_command(version: Path, module: str) -> None:
    needed = module == "pyarrow" or any(version.rglob("*.jsonl.zst"))
    # None in sys.modules: importing it fails as where it is not installed.
    script = (
        "import runpy, sys\n"
        f"sys.modules[{module!r}] = None\n"
        f"sys.argv = ['verify.py', {str(version)!r}]\n"
        f"runpy.run_path({str(version / 'verify.py')!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == (1 if needed else 0)
    assert "Traceback" not in done.stderr
    assert (f"pip install {module}" in done.stderr) is needed
