"""YAML within bounds: nothing that people write is refused, nothing that takes for ever is read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import load_job
from dataflow_ops.plain_yaml import MAX_BYTES, MAX_DEPTH, MAX_VALUES, Unreadable, read_yaml

LETTERS = "abcdefghi"
BOMB = f"a: &a [{','.join('x' * 10)}]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in pairwise(LETTERS)
)


@pytest.mark.parametrize(
    "text",
    ids=["job", "merge", "deep", "empty"],
    argvalues=[
        "dataset: {id: web, about: 网页}\nsources:\n- path: x\n  include: ['*.txt', 1, 2.5, null, yes]\n",
        "base: &b {low: 1}\none: *b\ntwo: {<<: *b, high: 2}\n",
        "[" * MAX_DEPTH + "]" * MAX_DEPTH,
        "",
    ],
)
def test_what_people_write_is_read_as_ever(text: str) -> None:
    assert read_yaml(text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "told"),
    ids=lambda value: value[:20],
    argvalues=[
        (BOMB, "more than 100,000 values"),
        ("[" + "x," * MAX_VALUES + "]", "more than 100,000 values"),
        ("".join(f"a{i}: &a{i} [{f'*a{i - 1}' if i else 'x'}]\n" for i in range(60)), "levels deep"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "levels deep"),
        ("- " * 20_000 + "x", "levels deep"),
        ("a: &a [*a]", "stands inside of what it stands for"),
        ("a: *nowhere", "undefined alias"),
        ("#" * (MAX_BYTES + 1), "1,048,577 bytes"),
        ("a: " + "1" * 5000, "can't be read"),
        ("a: 2026-99-99", "can't be read"),
        ('a: "b\\0c"', "NUL"),
        ("a: [", "line 2"),
        ("? [a]\n: 1", "unhashable"),
    ],
)
def test_what_would_take_for_ever_or_break_a_reader_is_refused(text: str, told: str) -> None:
    with pytest.raises(Unreadable, match=told):
        read_yaml(text)


def test_a_job_file_says_what_is_wrong_and_where(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(BOMB, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"job\.yaml: not valid YAML: line 5: more than"):
        load_job(job)
    job.write_bytes(b"dataset: {id: web}\n#" + "é".encode() * MAX_BYTES)
    with pytest.raises(ConfigError, match="are the most"):
        load_job(job)
    job.write_text("dataset: {id: [" + "x, " * 50_000 + "]}", encoding="utf-8")
    with pytest.raises(ConfigError) as met:
        load_job(job)
    assert len(str(met.value)) < 1000


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "job.yaml")
    with pytest.raises(ConfigError, match="not a file"):
        load_job(tmp_path / "job.yaml")


@pytest.mark.parametrize("zone", ["Mars/Base", "Asia/Bejing", "../etc/passwd", "/etc/localtime", "Asia", ""])
def test_a_time_zone_that_is_none_is_refused_by_name(tmp_path: Path, zone: str) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(f"dataset: {{id: web, timezone: '{zone}'}}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"dataset\.timezone: no time zone .* Asia/Shanghai"):
        load_job(job)
