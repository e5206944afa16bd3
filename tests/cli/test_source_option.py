"""``--source``: what a name on the command line becomes, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.cli.source_option import parse_source, safe_id
from dataflow_ops.errors import ConfigError
from tests.cli.conftest import Dataflow

pytestmark = pytest.mark.xdist_group("cli")


@given(st.text(min_size=1))
def test_every_name_gives_an_id_that_a_source_may_have(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", safe_id(name))
    assert safe_id(name) == safe_id(name)


def test_names_that_differ_outside_ascii_stay_apart() -> None:
    assert safe_id("my data") == "my-data"
    assert safe_id("part-0") == "part-0"
    assert safe_id("数据") != safe_id("資料")


@pytest.mark.parametrize(
    ("text", "kind", "path", "domain"),
    [
        ("rows.jsonl", "jsonl", "rows.jsonl", "web"),
        ("rows.jsonl@code", "jsonl", "rows.jsonl", "code"),
        ("git:repo@code", "git", "repo", "code"),
        ("a@b/c", "files", "a@b/c", "web"),
        ("http:urls.txt@news", "http", "urls.txt", "news"),
        ("s3://bucket/crawl@news", "s3", "s3://bucket/crawl", "news"),
        ("s3://bucket/lines.jsonl", "s3", "s3://bucket/lines.jsonl", "web"),
        ("s3:s3://bucket/x", "s3", "s3://bucket/x", "web"),
    ],
)
def test_kind_path_and_domain(text: str, kind: str, path: str, domain: str) -> None:
    found = parse_source(text)
    assert (found.kind, found.path, found.domain) == (kind, path, domain)


def test_a_file_of_that_very_name_is_no_domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail@home").mkdir()
    found = parse_source("mail@home")
    assert (found.path, found.domain, found.source_id) == ("mail@home", "web", "mail-home")


@pytest.mark.parametrize("text", ["", "  ", "files:", "jsonll:nowhere"])
def test_what_names_no_source_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"names no path|no kind 'jsonll'; kinds are files"):
        parse_source(text)


def test_a_table_needs_more_than_a_path() -> None:
    with pytest.raises(ConfigError, match="a table needs a key, too: write it into the job file's sources"):
        parse_source("sql:sqlite:///x.db")


def test_a_job_that_mixes_wants_the_domain_said(dataflow: Dataflow, tmp_path: Path) -> None:
    job, data = tmp_path / "job.yaml", tmp_path / "my data"
    data.mkdir()
    (data / "a.txt").write_text("one")
    job.write_text("dataset: {id: mix}\nmixing: {sampling: {web: 0.5, code: 0.5}}\n")
    said = dataflow("run", job, "--dry-run", "--source", data)
    assert (said.code, "@DOMAIN" in said.err, "one of web, code" in said.err) == (2, True, True)
    found = dataflow("run", job, "--dry-run", "--json", "--source", f"{data}@code").json
    [row] = found["sources"]
    assert (row["source"], row["domain"], row["files"]) == ("my-data", "code", 1)


def test_a_dry_run_refuses_what_the_run_refuses(dataflow: Dataflow, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(f"dataset: {{id: dry}}\nsources: [{{path: {tmp_path}}}]\n")
    rules = "clean.quality_rules.rules"
    for arguments, told in (
        (("--until", "foo"), "no such layer"),
        (("--set", f"{rules}.zlib_rato.low=1"), "unknown rule 'zlib_rato'; did you mean zlib_ratio?"),
        (
            ("--set", f"{rules}.zlib_ratio.lo=1"),
            f"--set {rules}.zlib_ratio.lo=1:\n  {rules}.zlib_ratio.lo: unknown key; did you mean low?"
            " known here: high, low",
        ),
        (("--set", "dedup.minhash.band=x"), "error: --set dedup.minhash.band=x:\n"),
    ):
        said = dataflow("run", job, "--dry-run", *arguments)
        assert (said.code, told in said.err) == (2, True), said.err


def test_a_wrong_source_is_called_by_its_name(dataflow: Dataflow, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "dataset: {id: x}\nsources: [{source_id: rows, path: ., knd: files}, {path: a, kind: b}]\n"
    )
    said = dataflow("run", job, "--dry-run")
    assert said.code == 2
    assert said.err.startswith(f"error: {job}:\n  source 'rows' knd: unknown key; did you mean kind?")
    assert "source 'a' kind: " in said.err
