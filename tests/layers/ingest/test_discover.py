from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataflow_ops import media, schema
from dataflow_ops.errors import ConfigError, UnreadableFile
from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.ingest.discover import CHUNKS, DiscoverStep, list_sources
from dataflow_ops.layers.ingest.fetch import FetchStep
from dataflow_ops.layers.ingest.listing import LISTED
from dataflow_ops.ranges import cuts, range_sha256
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import StepResult
from tests.layers.ingest.side import FolderSide

KB = 1 / 1024


def job(*sources: dict[str, Any], chunk_mb: float = 256) -> JobSettings:
    return parse_job({"dataset": {"id": "t"}, "sources": list(sources), "ingest": {"chunk_mb": chunk_mb}})


def discover(settings: JobSettings, folder: Path) -> StepResult:
    (result,) = DiscoverStep(settings, list_sources(settings)).run(FolderSide(settings, folder), 0)
    result.counts.check("discover")
    return result


def by_chunk(result: StepResult) -> dict[str, list[tuple[str, int, int]]]:
    found: dict[str, list[tuple[str, int, int]]] = {}
    for row in result.outputs["files"].to_pylist():
        found.setdefault(row["slice"], []).append((row["path"], row["start"], row["end"]))
    return found


def fetch(settings: JobSettings, folder: Path, files: pa.Table, start: int = 0) -> list[StepResult]:
    side = FolderSide(settings, folder, {("discover", "files"): files.drop_columns(["slice"])})
    results = list(FetchStep(settings).run(side, start))
    for result in results:
        result.counts.check("fetch")
    return results


def write_files(root: Path, n: int, size: int = 6000) -> Path:
    root.mkdir()
    for i in range(n):
        (root / f"{i:03}.md").write_bytes(b"%06d\n" % i * (size // 7))
    return root


def test_no_sources_says_how_to_add_them() -> None:
    with pytest.raises(ConfigError, match=r"--source PATH(.|\n)*sources:"):
        list_sources(job())


def test_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"source 'a'.*nowhere does not exist"):
        list_sources(job({"path": str(tmp_path / "nowhere"), "source_id": "a"}))


def test_empty_source_gives_no_chunks(tmp_path: Path) -> None:
    result = discover(job({"path": str(tmp_path)}), tmp_path)
    assert result.outputs["files"].num_rows == 0
    assert result.outputs["chunks"].schema.equals(CHUNKS)
    assert result.counts.documents_in == 0


def test_every_file_in_one_chunk_under_its_limit(tmp_path: Path) -> None:
    root = write_files(tmp_path / "in", 60)
    settings = job({"path": str(root), "source_id": "a"}, chunk_mb=64 * KB)
    result = discover(settings, tmp_path)
    chunks = by_chunk(result)
    assert len(chunks) > 4
    assert sorted(p for files in chunks.values() for p, _, _ in files) == [f"{i:03}.md" for i in range(60)]
    for files in chunks.values():
        assert files == sorted(files)
    table = result.outputs["chunks"].to_pylist()
    assert [c["chunk"] for c in table] == sorted(chunks)
    assert all(c["bytes"] <= 64 << 10 and c["files"] == len(chunks[c["chunk"]]) for c in table)
    assert sum(c["bytes"] for c in table) == 60 * 5999
    assert result.outputs["files"].schema.names == [*schema.FILES.names, "slice"]


def test_order_of_the_listing_does_not_matter(tmp_path: Path) -> None:
    root = write_files(tmp_path / "in", 30)
    settings = job({"path": str(root)}, chunk_mb=32 * KB)
    listing = list_sources(settings)
    assert listing["path"].to_pylist() == sorted(listing["path"].to_pylist())
    first = DiscoverStep(settings, listing).fingerprint()
    assert first == DiscoverStep(settings, list_sources(settings)).fingerprint()
    json.dumps(first)
    (root / "000.md").write_bytes(b"other")
    assert DiscoverStep(settings, list_sources(settings)).fingerprint() != first


def test_a_new_file_touches_one_chunk(tmp_path: Path) -> None:
    root = write_files(tmp_path / "in", 60)
    settings = job({"path": str(root)}, chunk_mb=64 * KB)
    before = by_chunk(discover(settings, tmp_path))
    (root / "tiny.md").write_bytes(b"x")
    after = by_chunk(discover(settings, tmp_path))
    differing = {c for c in before.keys() | after.keys() if before.get(c) != after.get(c)}
    assert len(differing) == 1 or (len(differing) == 3 and len(after) == len(before) + 1)


def test_two_sources_do_not_mix(tmp_path: Path) -> None:
    one, two = write_files(tmp_path / "1", 3), write_files(tmp_path / "2", 3)
    result = discover(
        job({"path": str(one), "source_id": "a"}, {"path": str(two), "source_id": "b"}), tmp_path
    )
    assert [
        c["source_id"] for c in sorted(result.outputs["chunks"].to_pylist(), key=lambda c: c["source_id"])
    ] == [
        "a",
        "b",
    ]


def test_what_is_left_out_and_unreadable_is_counted(tmp_path: Path) -> None:
    root = write_files(tmp_path / "in", 2)
    (root / "x.bin").write_bytes(b"\0\1")
    urls = tmp_path / "u.txt"
    urls.write_text("no url\nhttp://localhost/a\n")
    result = discover(
        job({"path": str(root), "source_id": "a"}, {"kind": "http", "path": str(urls), "source_id": "u"}),
        tmp_path,
    )
    assert (result.counts.kept, result.counts.dead, result.counts.skipped) == (3, 1, {"unknown_type": 1})
    assert result.metrics == {"left_out.a.unknown_type": 1.0}
    (dead,) = result.outputs["dead"].to_pylist()
    assert (dead["source_id"], dead["path"], dead["error"]) == ("u", "no url", "UnreadableFile")


def jsonl(lines: int, width: int = 50) -> bytes:
    return b"".join(json.dumps({"text": f"{i}" * (i % width + 1)}).encode() + b"\n" for i in range(lines))


@pytest.mark.parametrize("final_newline", [True, False])
def test_large_jsonl_is_cut_at_lines(tmp_path: Path, final_newline: bool) -> None:
    data = jsonl(3000) if final_newline else jsonl(3000).rstrip(b"\n")
    path = tmp_path / "in.jsonl"
    path.write_bytes(data)
    settings = job({"kind": "jsonl", "path": str(path)}, chunk_mb=32 * KB)
    result = discover(settings, tmp_path)
    parts = sorted((s, e) for files in by_chunk(result).values() for _, s, e in files)
    assert len(parts) == len(by_chunk(result)) > 5
    assert parts[0][0] == 0
    assert parts[-1][1] == -1
    assert [e for _, e in parts[:-1]] == [s for s, _ in parts[1:]]
    for start, _ in parts[1:]:
        assert data[start - 1 : start] == b"\n"
    rows = {
        r["start"]: r
        for result in fetch(settings, tmp_path, result.outputs["files"])
        for r in result.outputs["files"].to_pylist()
    }
    for start, end in parts:
        piece = data[start : None if end < 0 else end]
        assert (rows[start]["sha256"], rows[start]["size"]) == (hashlib.sha256(piece).hexdigest(), len(piece))


def test_appending_keeps_earlier_parts(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    settings = job({"kind": "jsonl", "path": str(path)}, chunk_mb=32 * KB)
    path.write_bytes(jsonl(3000))
    before = by_chunk(discover(settings, tmp_path))
    with open(path, "ab") as file:
        file.write(jsonl(10))
    after = by_chunk(discover(settings, tmp_path))
    assert before == after


def test_a_line_longer_than_a_chunk_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    data = b"a\n" + b"b" * 5000 + b"\n" + b"c\n" * 900
    path.write_bytes(data)
    with open(path, "rb") as file:
        assert cuts(file, "in.jsonl", media.JSONL, len(data), 1000) == [0, 5003, 6001]
    path.write_bytes(b"b" * 5000)
    with open(path, "rb") as file:
        assert cuts(file, "in.jsonl", media.JSONL, 5000, 1000) == [0]


def test_compressed_jsonl_is_one_chunk(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl.gz").write_bytes(random.Random(0).randbytes(100_000))
    result = discover(job({"kind": "jsonl", "path": str(tmp_path)}, chunk_mb=32 * KB), tmp_path)
    assert [files for files in by_chunk(result).values()] == [[("in.jsonl.gz", 0, -1)]]
    assert result.outputs["chunks"]["bytes"].to_pylist() == [400_000]


def test_large_parquet_is_cut_at_row_groups(tmp_path: Path) -> None:
    rng = random.Random(0)
    table = pa.table({"text": [rng.randbytes(40).hex() for _ in range(5000)]})
    path = tmp_path / "in.parquet"
    pq.write_table(table, path, row_group_size=250)
    settings = job({"kind": "parquet", "path": str(path)}, chunk_mb=200 * KB)
    result = discover(settings, tmp_path)
    parts = sorted((s, e) for files in by_chunk(result).values() for _, s, e in files)
    assert len(parts) > 3
    assert [s for s, _ in parts[1:]] == [e for _, e in parts[:-1]]
    assert (parts[0][0], parts[-1][1]) == (0, -1)
    rows = [
        r for f in fetch(settings, tmp_path, result.outputs["files"]) for r in f.outputs["files"].to_pylist()
    ]
    assert len({r["sha256"] for r in rows}) == len(parts)
    # A byte in one part changes the hash of that part alone.
    before = {(r["start"], r["end"]): r["sha256"] for r in rows}
    offset = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[offset + 100] ^= 1
    path.write_bytes(data)
    with open(path, "rb") as file:
        changed = {p for p in parts if range_sha256(file, media.PARQUET, *p)[0] != before[p]}
    assert changed == {parts[0]}


def test_parquet_without_footer_is_a_dead_letter(tmp_path: Path) -> None:
    (tmp_path / "in.parquet").write_bytes(b"PAR1" + bytes(200_000))
    result = discover(job({"kind": "parquet", "path": str(tmp_path)}, chunk_mb=64 * KB), tmp_path)
    assert (result.counts.kept, result.counts.dead) == (0, 1)
    assert "footer" in result.outputs["dead"]["message"][0].as_py()
    with open(tmp_path / "in.parquet", "rb") as file, pytest.raises(UnreadableFile):
        range_sha256(file, media.PARQUET, 0, 1)


def test_fetch_hashes_whole_files_and_isolates_bad_ones(tmp_path: Path) -> None:
    root = write_files(tmp_path / "in", 5)
    settings = job({"path": str(root), "source_id": "a"})
    files = discover(settings, tmp_path).outputs["files"]
    (root / "001.md").unlink()
    (root / "002.md").write_bytes(b"shorter")
    results = fetch(settings, tmp_path, files)
    rows = [r for f in results for r in f.outputs["files"].to_pylist()]
    assert [r["path"] for r in rows] == ["000.md", "003.md", "004.md"]
    for row in rows:
        data = (root / row["path"]).read_bytes()
        assert (row["sha256"], row["size"], row["location"]) == (
            hashlib.sha256(data).hexdigest(),
            len(data),
            "",
        )
    dead = [r for f in results for r in f.outputs["dead"].to_pylist()]
    assert [(d["path"], d["error"], d["level"], d["position"]) for d in dead] == [
        ("001.md", "UnreadableFile", "file", -1),
        ("002.md", "SourceChanged", "file", -1),
    ]
    assert results[-1].cursor == 5


def test_fetch_resumes_at_its_cursor(tmp_path: Path) -> None:
    root = write_files(tmp_path / "in", 5)
    settings = job({"path": str(root)})
    files = discover(settings, tmp_path).outputs["files"]
    rows = [r["path"] for f in fetch(settings, tmp_path, files, 3) for r in f.outputs["files"].to_pylist()]
    assert rows == ["003.md", "004.md"]


def test_a_touched_file_changes_nothing_downstream(tmp_path: Path) -> None:
    root = write_files(tmp_path / "in", 2)
    settings = job({"path": str(root)})
    first = fetch(settings, tmp_path, discover(settings, tmp_path).outputs["files"])
    (root / "000.md").touch()
    second = fetch(settings, tmp_path, discover(settings, tmp_path).outputs["files"])
    assert [r.outputs["files"] for r in first] == [r.outputs["files"] for r in second]


def test_a_worker_without_the_listing_can_be_built() -> None:
    settings = job()
    step = DiscoverStep(settings, schema.FILES.empty_table())
    json.dumps(step.fingerprint())
    assert LISTED.names[0] == "source_id"
