"""``kind: s3``: objects below a prefix, on servers that speak S3."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dataflow_ops import media
from dataflow_ops.clients import s3_objects
from dataflow_ops.errors import ConfigError, ObjectStoreRefused
from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.ingest.discover import DiscoverStep
from dataflow_ops.layers.ingest.fetch import FetchStep
from dataflow_ops.layers.ingest.listing import check_sources, left_out_of, list_sources
from dataflow_ops.layers.ingest.sources.names import unescape
from dataflow_ops.pipeline.outside import OUTSIDE
from dataflow_ops.settings import JobSettings
from tests.layers.ingest.side import FolderSide
from tests.storage.s3_server import S3Server, moto, moto_url, weed, weed_url  # noqa: F401

ODD = [
    "a b.md",
    "100%.md",
    "%41.md",
    "中文/é.md",
    "a+b=c&d?.md",
    "#x.md",
    "q'\"<>.md",
    "x//y.md",
    "~;:@,$.md",
]


class Store:
    """A bucket that tests fill."""

    def __init__(self, server: S3Server, url: str) -> None:
        self.client = server.client
        self.bucket, _, self.prefix = url.removeprefix("s3://").partition("/")

    def put(self, key: str, body: bytes | str = "some text\n") -> None:
        data = body.encode() if isinstance(body, str) else body
        self.client.put_object(Bucket=self.bucket, Key=key, Body=data)

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=key)

    def job(self, path: str = "in", day: str = "", **more: Any) -> JobSettings:
        source = {"kind": "s3", "path": f"s3://{self.bucket}/{path}", "source_id": "s", **more}
        raw: dict[str, Any] = {"dataset": {"id": "t"}, "sources": [source]}
        return parse_job({**raw, "interval": {"day": day}} if day else raw)

    def paths(self, path: str = "in", day: str = "", **more: Any) -> list[str]:
        found: list[str] = list_sources(self.job(path, day, **more), OUTSIDE)["path"].to_pylist()
        return found


@pytest.fixture
def store(moto: S3Server, moto_url: str) -> Store:  # noqa: F811
    return Store(moto, moto_url)


def fetch(
    job: JobSettings, listing: pa.Table, folder: Path, marks: dict[str, str] | None = None
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]], dict[str, int], FolderSide]:
    """Rows of ``fetch.files`` and ``fetch.dead`` by path, and what was skipped."""
    (found,) = DiscoverStep(job, listing).run(FolderSide(job, folder), 0)
    found.counts.check("discover")
    inputs = {("discover", "files"): found.outputs["files"].drop_columns(["slice"])}
    side = FolderSide(job, folder, inputs, marks={} if marks is None else marks)
    files, dead, skipped = {}, {}, {}
    for result in FetchStep(job, outside=OUTSIDE).run(side, 0):
        result.counts.check("fetch")
        files |= {row["path"]: row for row in result.outputs["files"].to_pylist()}
        dead |= {row["path"]: row for row in result.outputs["dead"].to_pylist()}
        for reason, n in result.counts.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + n
    return files, dead, skipped, side


def test_objects_are_told_by_key_size_and_etag(store: Store) -> None:
    for key in ("in/a.html", "in/b/c.md", "other/d.md", "input.md"):
        store.put(key)
    listing = list_sources(store.job(), OUTSIDE)
    assert listing["path"].to_pylist() == ["a.html", "b/c.md"]
    assert listing["media_type"].to_pylist() == [media.HTML, media.MARKDOWN]
    assert listing["size"].to_pylist() == [10, 10]
    assert set(listing["mtime_ns"].to_pylist()) == {0}
    assert all(listing["etag"].to_pylist())
    store.put("in/a.html", "other tex\n")
    after = list_sources(store.job(), OUTSIDE)
    assert after["etag"][0] != listing["etag"][0]
    assert after["etag"][1] == listing["etag"][1]


def test_2500_objects_are_all_listed(store: Store) -> None:
    for i in range(2500):
        store.put(f"in/{i:05}.md", b"x")
    assert store.paths() == [f"{i:05}.md" for i in range(2500)]


def test_keys_with_odd_characters(store: Store, tmp_path: Path) -> None:
    for name in ODD:
        store.put(f"in/{name}", f"text of {name}")
    job = store.job()
    listing = list_sources(job, OUTSIDE)
    assert sorted(map(unescape, listing["path"].to_pylist())) == sorted(ODD)
    files, dead, skipped, side = fetch(job, listing, tmp_path)
    assert (dead, skipped) == ({}, {})
    for path, row in files.items():
        with side.open_source("s", path, row["location"]) as opened:
            assert opened.read().decode() == f"text of {unescape(path)}"


@pytest.mark.s3
@pytest.mark.xdist_group("s3")
def test_odd_characters_on_a_real_server(weed: S3Server, weed_url: str, tmp_path: Path) -> None:  # noqa: F811
    store = Store(weed, weed_url)
    # It joins two slashes, as a file system does.
    names = [name for name in ODD if "//" not in name]
    for name in names:
        store.put(f"in/{name}", f"text of {name}")
    listing = list_sources(store.job(), OUTSIDE)
    assert sorted(map(unescape, listing["path"].to_pylist())) == sorted(names)
    files, dead, _, _ = fetch(store.job(), listing, tmp_path)
    assert (len(files), dead) == (len(names), {})


TREE = ("a.md", "docs/b.md", "docs/x/c.md", "docs/x/c.txt", "other/d.md", ".git/x.md", "p/__pycache__/z.py")


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("in", {}),
        ("in/", {}),
        ("in", {"include": ["docs/**/*.md"]}),
        ("in", {"include": ["*.md"], "exclude": ["/docs/"]}),
        ("in", {"include": ["/*.md", ".git/**"]}),
        ("in/*.md", {}),
        ("in/**/*.md", {}),
        ("in/[do]*/*.md", {}),
        ("in/docs/x/c.txt", {}),
    ],
)
def test_paths_and_patterns_mean_what_they_mean_for_files(
    store: Store, tmp_path: Path, path: str, more: dict[str, Any]
) -> None:
    for name in TREE:
        store.put(f"in/{name}")
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("some text\n")
    listing = list_sources(store.job(path, **more), OUTSIDE)
    local = list_sources(
        parse_job(
            {
                "dataset": {"id": "t"},
                "sources": [{"kind": "files", "path": f"{tmp_path}/{path}", "source_id": "s", **more}],
            }
        )
    )
    for column in ("path", "size", "media_type"):
        assert listing[column].to_pylist() == local[column].to_pylist()
    assert left_out_of(listing)["s"].get("excluded") == left_out_of(local)["s"].get("excluded")


def test_names_that_look_like_patterns(store: Store) -> None:
    store.put("in[1]/a.md")
    store.put("in1/b.md")
    store.put("x/y[1].md")
    assert store.paths("in[1]") == ["a.md"]
    assert store.paths("in[0-9]/*") == ["in1/b.md"]
    assert store.paths("x/y[1].md") == ["y[1].md"]


def test_the_whole_bucket(store: Store) -> None:
    assert store.paths("") == []
    store.put("a.md")
    store.put("b/c.md")
    assert store.paths("") == ["a.md", "b/c.md"]


def test_days(store: Store) -> None:
    for key in ("2026-11-29/a.md", "2026-11-30/b.md", "2026-11-30.bak/c.md", "latest/d.md"):
        store.put(f"crawl/{key}")
    store.put("flat/2026-11-30-x.md")
    assert store.paths("crawl/{date}") == ["2026-11-29/a.md", "2026-11-30/b.md"]
    assert store.paths("crawl/{date}", "2026-11-30") == ["2026-11-30/b.md"]
    assert store.paths("crawl/{date}", "2026-11-30", late_days=1) == ["2026-11-29/a.md", "2026-11-30/b.md"]
    assert store.paths("crawl/{date}", "2026-11-28") == []
    assert store.paths("crawl/{date}/*.md", "2026-11-29") == ["2026-11-29/a.md"]
    assert store.paths("flat/{date}-*.md", "2026-11-30") == ["2026-11-30-x.md"]
    assert store.paths("crawl", "2026-11-30", include=["{date}/*.md"]) == ["2026-11-30/b.md"]
    assert store.paths("*/{date}/*.md") == ["crawl/2026-11-29/a.md", "crawl/2026-11-30/b.md"]


def test_a_day_lists_no_other_days(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("crawl/2026-11-29/a.md")
    store.put("crawl/2026-11-30/b.md")
    asked: list[str] = []
    real = s3_objects.listed

    def listed(client: Any, bucket: str, prefix: str) -> Any:
        asked.append(prefix)
        return real(client, bucket, prefix)

    monkeypatch.setattr(s3_objects, "listed", listed)
    assert store.paths("crawl/{date}/*.md", "2026-11-30") == ["2026-11-30/b.md"]
    assert asked == ["crawl/", "crawl/2026-11-30/"]


@pytest.mark.parametrize("path", ["nowhere", "nowhere/", "in/a.m", "nowhere/*.md", "nowhere/{date}"])
def test_a_path_where_nothing_lies_is_an_error(store: Store, path: str) -> None:
    store.put("in/a.md")
    with pytest.raises(ConfigError, match=rf"source 's': nothing lies under s3://{store.bucket}/"):
        check_sources(store.job(path), OUTSIDE)


def test_a_bucket_that_is_not_there(store: Store) -> None:
    job = parse_job(
        {
            "dataset": {"id": "t"},
            "sources": [{"kind": "s3", "path": "s3://no-such-bucket/x", "source_id": "s"}],
        }
    )
    with pytest.raises(ObjectStoreRefused, match="make the bucket first, or correct its name"):
        check_sources(job, OUTSIDE)


def test_what_an_object_is_told_as_for_files(store: Store, tmp_path: Path) -> None:
    bodies = {
        "page": b"<!doctype html><p>x",
        "picture.png": b"\x89PNG\r\n\x1a\n\x00\x00",
        "note": b"plain text",
        "records.json": json.dumps([{"text": "a"}]).encode(),
        "package.json": b'{"name": "x"}',
        "lines.jsonl": b'{"name": "x"}\n',
        "more.jsonl.gz": gzip.compress(b'{"text": "x"}\n'),
        "thing.gz": gzip.compress(b"x"),
        "empty.md": b"",
        "large.json": b'{"name": "' + b"x" * (2 << 20) + b'"}',
    }
    (tmp_path / "in").mkdir()
    for name, body in bodies.items():
        store.put(f"in/{name}", body)
        (tmp_path / "in" / name).write_bytes(body)
    files, dead, skipped, _ = fetch(store.job(), list_sources(store.job(), OUTSIDE), tmp_path)
    local = parse_job(
        {
            "dataset": {"id": "t"},
            "sources": [{"kind": "files", "path": str(tmp_path / "in"), "source_id": "s"}],
        }
    )
    listing = list_sources(local)
    expected = dict(zip(listing["path"].to_pylist(), listing["media_type"].to_pylist(), strict=True))
    assert {path: row["media_type"] for path, row in files.items()} == expected
    assert dead == {}
    assert skipped == {"unknown_type": left_out_of(listing)["s"]["unknown_type"]} == {"unknown_type": 2}


def test_a_json_object_that_the_job_names_is_records(store: Store, tmp_path: Path) -> None:
    store.put("in/x.json", b'{"name": "x"}')
    job = store.job("in/x.json")
    files, _, _, _ = fetch(job, list_sources(job, OUTSIDE), tmp_path)
    assert files["x.json"]["media_type"] == media.JSON


def test_an_object_that_vanished_or_was_replaced_is_a_dead_letter(store: Store, tmp_path: Path) -> None:
    for name in ("a.md", "b.md", "c.md", "d.md"):
        store.put(f"in/{name}", f"this is {name}")
    job = store.job()
    listing = list_sources(job, OUTSIDE)
    store.delete("in/a.md")
    store.put("in/b.md", "this is no")  # another size, too
    store.put("in/c.md", "this is z.md")
    files, dead, _, _ = fetch(job, listing, tmp_path)
    assert list(files) == ["d.md"]
    assert {path: row["error"] for path, row in dead.items()} == {
        "a.md": "UnreadableFile",
        "b.md": "SourceChanged",
        "c.md": "SourceChanged",
    }
    assert dead["a.md"]["message"] == "it vanished after it was listed"


def test_an_object_is_fetched_once(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.md", "b.md", "c.json"):
        store.put(f"in/{name}", f'{{"text": "{name}"}}')
    job = store.job()
    first, _, _, side = fetch(job, list_sources(job, OUTSIDE), tmp_path)
    store.put("in/b.md", "another text")
    asked: list[str] = []
    real = s3_objects.read_range

    def read_range(client: Any, bucket: str, key: str, *more: Any) -> bytes:
        asked.append(key)
        return real(client, bucket, key, *more)

    monkeypatch.setattr(s3_objects, "read_range", read_range)
    listing = list_sources(job, OUTSIDE)
    again, _, _, _ = fetch(job, listing, tmp_path, side.marks)
    assert asked == ["in/b.md"]
    assert {path: again[path] == first[path] for path in again} == {
        "a.md": True,
        "b.md": False,
        "c.json": True,
    }

    # Another key makes it a record; the bytes are the same.
    other = store.job(text_field="nothing")
    asked.clear()
    files, _, _, _ = fetch(other, listing, tmp_path, side.marks)
    assert (asked, files["c.json"]["media_type"]) == ([], media.CODE)

    # What rotted, or is gone, comes anew.
    (tmp_path / first["a.md"]["location"]).write_bytes(b"rotten")
    (tmp_path / first["c.json"]["location"]).unlink()
    mended, _, _, _ = fetch(job, listing, tmp_path, side.marks)
    assert asked == ["in/a.md", "in/c.json"]
    assert mended == again


def test_a_large_object_comes_whole(store: Store, tmp_path: Path) -> None:
    body = bytes(range(256)) * (80 << 10)  # 20 MiB
    store.put("in/large.txt", b"text " + body)
    job = store.job()
    files, _, _, side = fetch(job, list_sources(job, OUTSIDE), tmp_path)
    row = files["large.txt"]
    with side.open_source("s", "large.txt", row["location"]) as opened:
        assert opened.read() == b"text " + body
    assert row["size"] == len(body) + 5


def test_large_objects_are_chunks_of_their_own_and_not_cut(store: Store, tmp_path: Path) -> None:
    line = b'{"text": "x"}\n'
    store.put("in/large.jsonl", line * 1000)
    job = store.job().model_copy(update={"ingest": store.job().ingest.model_copy(update={"chunk_mb": 0.001})})
    (found,) = DiscoverStep(job, list_sources(job, OUTSIDE)).run(FolderSide(job, tmp_path), 0)
    (row,) = found.outputs["files"].to_pylist()
    assert (row["start"], row["end"]) == (0, -1)
