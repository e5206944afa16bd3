"""Corpora of several times the size: whatever their ids are, and never fewer parts than asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.scaling import copies, sizes

IDS: dict[str, list[Any]] = {
    "text": ["a", "b", "ü"],
    "numbers": [0, 1, 2],
    "large numbers": [7, 5_000_000_000, 6_000_000_000],
    "bytes": [b"\xff\x00", b"b", b"c"],
}
TEXTS = [f"The {word} report was written by seven people who had never met, and said so." for word in IDS]


def corpus(folder: Path, ids: list[Any], name: str = "one.parquet") -> Path:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": ids, "text": TEXTS[: len(ids)], "more": [1.5] * len(ids)}), folder / name)
    return folder


def call(monkeypatch: pytest.MonkeyPatch, main: Any, *arguments: Any) -> int:
    monkeypatch.setattr(sys, "argv", ["bench", *map(str, arguments)])
    return int(main())


@pytest.mark.parametrize("kind", list(IDS))
def test_documents_of_copies_have_ids_of_their_own(tmp_path: Path, kind: str) -> None:
    docs = corpus(tmp_path / "docs", IDS[kind])
    known = copies.frequent([docs / "one.parquet"])
    found = list(IDS[kind])
    for copy in (1, 2):
        copies.write_copy(docs / "one.parquet", tmp_path / "out", copy, known)
        table = pq.read_table(tmp_path / f"out/copy-{copy}/one.parquet")
        assert table.column_names == ["id", "text", "more"]
        assert not set(table["text"].to_pylist()) & set(TEXTS)
        found += table["id"].to_pylist()
    assert len(set(found)) == 9
    assert all(isinstance(one, int) for one in found) == (kind == "numbers")


def test_files_without_the_columns_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = corpus(tmp_path / "docs", IDS["text"])
    pq.write_table(pa.table({"text": ["x"]}), docs / "two.parquet")
    with pytest.raises(SystemExit):
        call(monkeypatch, copies.main, docs, tmp_path / "out")
    assert "two.parquet has no column id" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "have", "told"),
    [
        (("--sizes", "1,2,4"), 0, "copy-1 is missing 1 of 1 file(s); 3 whole copies are needed"),
        (("--sizes", "1,4"), 2, "copy-3 is missing 1 of 1"),
        (("--sizes", "2", "--day"), 1, "copy-2 is missing 1 of 1 file(s); 2 whole copies are needed"),
    ],
)
def test_a_size_with_too_few_copies_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    have: int,
    told: str,
) -> None:
    docs = corpus(tmp_path / "docs", IDS["text"])
    for number in range(1, have + 1):
        (tmp_path / "copies").mkdir(exist_ok=True)
        corpus(tmp_path / f"copies/copy-{number}", IDS["text"])
    monkeypatch.setattr(sizes, "run", lambda *_: pytest.fail("nothing must be measured"))
    with pytest.raises(SystemExit) as ended:
        call(monkeypatch, sizes.main, docs, tmp_path / "copies", *options)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert told in said
    assert "python -m bench.scaling.copies" in said


def test_as_many_folders_as_asked_for(tmp_path: Path) -> None:
    docs = corpus(tmp_path / "docs", IDS["text"])
    (tmp_path / "copies").mkdir()
    for number in range(1, 13):
        corpus(tmp_path / f"copies/copy-{number}", IDS["text"])
    found = sizes.parts_of(docs, tmp_path / "copies", 11)
    assert [path.name for path in found] == ["docs", *(f"copy-{n}" for n in range(1, 11))]
