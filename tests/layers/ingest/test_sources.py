from __future__ import annotations

import gzip
import os
import subprocess
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops import media
from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.ingest.sources import KINDS, open_path
from dataflow_ops.layers.ingest.sources.listed import SourceFile
from dataflow_ops.layers.ingest.sources.names import escape, unescape
from dataflow_ops.source_settings import SourceSettings


def listed(kind: str, path: Path | str, **more: object) -> tuple[list[SourceFile], Counter[str]]:
    source = SourceSettings.model_validate({"kind": kind, "path": str(path), "source_id": "s", **more})
    left_out: Counter[str] = Counter()
    return sorted(KINDS[kind](source, left_out), key=lambda f: f.path), left_out


def paths(kind: str, path: Path | str, **more: object) -> list[str]:
    return [f.path for f in listed(kind, path, **more)[0]]


def make(root: Path, *names: str, data: bytes = b"text\n") -> Path:
    for name in names:
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return root


def test_files_takes_what_can_be_parsed(tmp_path: Path) -> None:
    make(tmp_path, "a.html", "b/c.md", "b/d.py", "b/noext")
    make(tmp_path, "b/picture.png", data=b"\x89PNG\r\n\x1a\n\x00\x00")
    found, left_out = listed("files", tmp_path)
    assert [(f.path, f.media_type) for f in found] == [
        ("a.html", media.HTML),
        ("b/c.md", media.MARKDOWN),
        ("b/d.py", media.CODE),
        ("b/noext", media.TEXT),
    ]
    status = (tmp_path / "a.html").stat()
    assert (found[0].size, found[0].mtime_ns) == (5, status.st_mtime_ns)
    assert left_out == {"unknown_type": 1}


def test_hidden_is_skipped_unless_named(tmp_path: Path) -> None:
    make(tmp_path, "a.md", ".git/x.md", ".venv/y.py", "p/__pycache__/z.py", ".env", ".github/ci.md")
    found, left_out = listed("files", tmp_path)
    assert [f.path for f in found] == ["a.md"]
    assert left_out == {"hidden": 5}
    assert paths("files", tmp_path, include=[".github/**"]) == [".github/ci.md"]


def test_include_and_exclude(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "docs/b.md", "docs/x/c.md", "docs/x/c.txt", "other/d.md")
    assert paths("files", tmp_path, include=["docs/**/*.md"]) == ["docs/b.md", "docs/x/c.md"]
    assert paths("files", tmp_path, include=["*.md"], exclude=["/docs/"]) == ["a.md", "other/d.md"]
    assert paths("files", tmp_path, include=["/*.md"]) == ["a.md"]
    _, left_out = listed("files", tmp_path, include=["*.md"], exclude=["/docs/"])
    assert left_out == {"excluded": 2, "not_included": 1}


def test_single_file_and_glob(tmp_path: Path) -> None:
    make(tmp_path, "in/a.md", "in/b/c.md", "in/b/d.txt", "out.md")
    assert paths("files", tmp_path / "in/b/d.txt") == ["d.txt"]
    assert paths("files", tmp_path / "in/*.md") == ["a.md"]
    assert paths("files", tmp_path / "in/**/*.md") == ["a.md", "b/c.md"]
    assert paths("files", tmp_path / "in/[ab]*") == ["a.md", "b/c.md", "b/d.txt"]
    make(tmp_path, "odd[1].md")
    assert paths("files", tmp_path / "odd[1].md") == ["odd[1].md"]


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("name", ["missing", "missing/*.md"])
def test_a_path_that_does_not_exist_is_named(tmp_path: Path, kind: str, name: str) -> None:
    with pytest.raises(ConfigError, match="missing does not exist"):
        listed(kind, tmp_path / name)


@pytest.mark.parametrize("kind", ["files", "jsonl", "parquet", "warc"])
def test_an_empty_folder_is_no_error(tmp_path: Path, kind: str) -> None:
    assert listed(kind, tmp_path) == ([], Counter())


def test_links(tmp_path: Path) -> None:
    make(tmp_path, "root/a.md", "root/d/b.md", "outside/secret.md")
    root = tmp_path / "root"
    (root / "inside.md").symlink_to(root / "a.md")
    (root / "outside.md").symlink_to(tmp_path / "outside/secret.md")
    (root / "broken.md").symlink_to(root / "nothing")
    (root / "circle").symlink_to(root)
    os.mkfifo(root / "pipe.md")
    found, left_out = listed("files", root)
    assert [f.path for f in found] == ["a.md", "d/b.md", "inside.md"]
    assert left_out == {"symlink_outside": 1, "symlink_broken": 1, "symlink_folder": 1, "special": 1}


def test_unreadable_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.md", "locked/b.md")
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    # The tests run as root, whom no permission stops.
    monkeypatch.setattr(os, "scandir", scandir)
    found, _ = listed("files", tmp_path)
    assert [(f.path, f.problem) for f in found] == [
        ("a.md", ""),
        ("locked", "the folder can't be listed: Permission denied"),
    ]


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/caf\xe9 100%.md"
    with open(raw, "wb") as file:
        file.write(b"x")
    (found,), _ = listed("files", tmp_path)
    assert found.path == "caf%E9 100%25.md"
    found.path.encode("utf-8")
    source = SourceSettings(path=str(tmp_path), source_id="s")
    with open_path(source, found.path) as file:
        assert file.read() == b"x"


@given(st.binary(min_size=1, max_size=30).filter(lambda b: b"/" not in b and b"\0" not in b))
def test_escaping_is_reversible(raw: bytes) -> None:
    name = os.fsdecode(raw)
    escape(name).encode("utf-8")
    assert os.fsencode(unescape(escape(name))) == raw


@given(st.lists(st.binary(min_size=1, max_size=6), min_size=2, max_size=2, unique=True))
def test_escaping_keeps_names_apart(names: list[bytes]) -> None:
    assert escape(os.fsdecode(names[0])) != escape(os.fsdecode(names[1]))


def test_paths_stay_inside(tmp_path: Path) -> None:
    make(tmp_path, "in/a.md", "secret.md")
    source = SourceSettings(path=str(tmp_path / "in"), source_id="s")
    for path in ("../secret.md", "/etc/passwd", "x/../../secret.md"):
        with pytest.raises(ConfigError, match="outside"):
            open_path(source, path)


def test_framed_kinds_take_their_format(tmp_path: Path) -> None:
    make(tmp_path, "a.jsonl", "b.ndjson", "d.txt", "e.json", "w.warc", data=b"{}\n")
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(b"{}\n"))
    (tmp_path / "w.warc.gz").write_bytes(gzip.compress(b"WARC/1.0\r\n"))
    pq.write_table(pa.table({"text": ["x"]}), tmp_path / "p.parquet")
    found, left_out = listed("jsonl", tmp_path)
    assert [(f.path, f.media_type) for f in found] == [
        ("a.jsonl", media.JSONL),
        ("b.ndjson", media.JSONL),
        ("c.jsonl.gz", media.JSONL),
        ("e.json", media.JSON),
    ]
    assert left_out == {"unknown_type": 4}
    assert paths("parquet", tmp_path) == ["p.parquet"]
    assert paths("warc", tmp_path) == ["w.warc", "w.warc.gz"]
    (named,), _ = listed("jsonl", tmp_path / "d.txt")
    assert named.media_type == media.JSONL
    (included,), _ = listed("jsonl", tmp_path, include=["d.txt"])
    assert included.media_type == media.JSONL


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_git_takes_tracked_files(tmp_path: Path) -> None:
    library = make(tmp_path / "library", "l.py")
    git(library, "init", "-q")
    git(library, "add", ".")
    git(library, "commit", "-qm", "x")
    root = make(
        tmp_path / "repo",
        "a.py",
        "sub/ü b.md",
        "node_modules/m/i.js",
        "third_party/t.c",
        "web/app.min.js",
        "package-lock.json",
        "gone.py",
        ".github/ci.yml",
    )
    make(root, "logo.png", data=b"\x89PNG\0")
    (root / "link.py").symlink_to("a.py")
    git(root, "init", "-q")
    git(root, "submodule", "--quiet", "add", str(library), "mod")
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    make(root, "untracked.py")
    (root / "gone.py").unlink()
    found, left_out = listed("git", root)
    assert [f.path for f in found] == [".github/ci.yml", "a.py", "sub/ü b.md"]
    assert left_out == {
        "vendored": 4,
        "submodule": 1,
        "symlink": 1,
        "deleted_in_tree": 1,
        "hidden": 1,  # .gitmodules
        "unknown_type": 1,
    }
    assert paths("git", root, include=["third_party/**"]) == ["third_party/t.c"]
    assert paths("git", root / "sub") == ["ü b.md"]


def test_git_needs_a_working_tree(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    with pytest.raises(ConfigError, match=r"not a git working tree.*use kind: files"):
        listed("git", tmp_path)
    with pytest.raises(ConfigError, match="needs the folder"):
        listed("git", tmp_path / "a.py")


def test_url_list(tmp_path: Path) -> None:
    urls = tmp_path / "urls.txt"
    urls.write_text(
        "\ufeff# a comment\n\nhttps://example.org/a?q=1#sha256=AB\n http://example.org/b \n"
        "https://example.org/a?q=1\nftp://example.org/c\nhttp://[broken\nhttps://me:secret@example.org/d\n",
        encoding="utf-8",
    )
    found, left_out = listed("http", urls)
    assert [(f.path, f.etag, f.url) for f in found if not f.problem] == [
        ("http://example.org/b", "", "http://example.org/b"),
        ("https://example.org/a?q=1", "sha256=AB", "https://example.org/a?q=1"),
    ]
    assert [f.problem for f in found if f.problem] == [
        "line 6 is not an http or https URL",
        "line 7 is not an http or https URL",
        "line 8 holds a user name or password; take it out",
    ]
    assert "secret" not in repr(found)
    assert left_out == {"listed_twice": 1}
    with pytest.raises(ConfigError, match="one URL a line"):
        listed("http", tmp_path)
