from __future__ import annotations

import gzip
import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from dataflow_ops import media
from dataflow_ops.layers.ingest.sources import KINDS
from dataflow_ops.layers.ingest.sources.jsonfiles import record_or_document
from dataflow_ops.layers.parse.parsers import record as records_parser
from dataflow_ops.media import media_of
from dataflow_ops.source_settings import SourceSettings

RECORDS = [
    b'{"text": "words"}',
    b'\n[{"id": 1, "text": "words"}, {"id": 2}]',
    b'[{"messages": []}]',
    b'{"conversations": []}\n{"conversations": []}\n',
    b'{"text": "a"}\n{"text": "b"}\n',
    b'[\n  {"id": 1,\n "text": "cut of',
    b'{"id": 1, "text" : "' + b"x" * (2 << 20) + b'"}',
]
DOCUMENTS = [
    b'{"name": "package", "version": "1.0"}',
    b'{"term": {"text": "nested"}}',
    b"[]",
    b"",
    b"null",
    b'["text", "messages"]',
    b'// a comment\n{"compilerOptions": {"strict": true,},}',
    b'{"a": 1}\n{"text": "not the first"}\n'.replace(b"text", b"other"),
    b"[" * 100_000,
    b"\xff\xfe{\x00}\x00",
    b'{"words": "' + b"x" * (2 << 20) + b'"}',
]


def source(kind: str, **more: str) -> SourceSettings:
    return SourceSettings.model_validate({"kind": kind, "path": ".", "source_id": "s", **more})


def media_type(path: Path, data: bytes, kind: str = "files", **more: str) -> str:
    path.write_bytes(data)
    return record_or_document(path, media_of(path.name), source(kind, **more)).media_type


@pytest.mark.parametrize("kind", ["files", "git"])
@pytest.mark.parametrize("data", RECORDS, ids=range(len(RECORDS)))
def test_records(tmp_path: Path, data: bytes, kind: str) -> None:
    assert media_type(tmp_path / "a.json", data, kind) == media.JSON


@pytest.mark.parametrize("kind", ["files", "git"])
@pytest.mark.parametrize("data", DOCUMENTS, ids=range(len(DOCUMENTS)))
def test_documents(tmp_path: Path, data: bytes, kind: str) -> None:
    assert media_type(tmp_path / "a.json", data, kind) == media.CODE


def test_the_sources_own_key_counts(tmp_path: Path) -> None:
    data = b'{"content": "words"}'
    assert media_type(tmp_path / "a.json", data) == media.CODE
    assert media_type(tmp_path / "a.json", data, text_field="content") == media.JSON
    assert media_type(tmp_path / "a.json", b'{"text": "x"}', text_field="content") == media.CODE


def test_lines_are_records_but_for_repositories(tmp_path: Path) -> None:
    data = b'{"content": "words"}\n{"content": "words"}\n'
    assert media_type(tmp_path / "a.jsonl", data) == media.JSONL
    assert media_type(tmp_path / "a.jsonl", data, "git") == media.CODE
    assert media_type(tmp_path / "a.jsonl", data.replace(b"content", b"text"), "git") == media.JSONL


def test_what_cannot_be_looked_into_keeps_its_type(tmp_path: Path) -> None:
    assert (
        record_or_document(tmp_path / "no.json", media_of("no.json"), source("files")).media_type
        == media.JSON
    )
    assert media_type(tmp_path / "a.json.gz", gzip.compress(b"{}")) == media.JSON
    assert media_type(tmp_path / "a.py", b"{}") == media.CODE
    assert media_type(tmp_path / "a.md", b"{}") == media.MARKDOWN


def test_the_keys_of_dialogues_are_those_of_the_parser(tmp_path: Path) -> None:
    for key in ("messages", "conversations"):
        assert media_type(tmp_path / "a.json", json.dumps({key: []}).encode()) == media.JSON
        assert records_parser.is_dialogue({key: []}, records_parser.SourceOptions())


@pytest.mark.parametrize("kind", ["files", "git"])
def test_listing(tmp_path: Path, kind: str) -> None:
    (tmp_path / "package.json").write_text('{"name": "x"}')
    (tmp_path / "rows.json").write_text('[{"text": "x"}]')
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)

    def listed(path: Path) -> dict[str, str]:
        settings = SourceSettings.model_validate({"kind": kind, "path": str(path), "source_id": "s"})
        return {f.path: f.media_type for f in KINDS[kind](settings, Counter())}

    assert listed(tmp_path) == {"package.json": media.CODE, "rows.json": media.JSON}
    if kind == "files":  # a file that the job itself names is meant as records
        assert listed(tmp_path / "package.json") == {"package.json": media.JSON}
