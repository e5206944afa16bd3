"""Sources outside of this machine, as a job file names them."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import parse_job
from dataflow_ops.settings import JobSettings
from dataflow_ops.source_settings import SourceSettings

TABLE = {"kind": "sql", "url": "sqlite:///x.db", "table": "t", "key": "id", "source_id": "db"}


def source(**more: Any) -> SourceSettings:
    return parse_job({"dataset": {"id": "t"}, "sources": [more]}).sources[0]


def test_a_run_reads_its_own_settings_again() -> None:
    for one in (TABLE, {"path": "x"}, {"kind": "s3", "path": "s3://b/x"}):
        job = parse_job({"dataset": {"id": "t"}, "sources": [one]})
        assert JobSettings.model_validate_json(job.model_dump_json()) == job


def test_the_environment_is_left_for_who_opens_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", "hush")
    found = source(**{**TABLE, "url": "postgresql://me:${PW}@host/db"})
    assert found.url == "postgresql://me:${PW}@host/db"
    assert source(**{**TABLE, "url": "$DB"}).url == "$DB"


def test_one_column_or_several() -> None:
    assert source(**TABLE).key == ("id",)
    assert source(**{**TABLE, "key": ["a", "b"], "columns": "c"}).key == ("a", "b")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hush@host/db",
        "postgresql://me:hush/hush@host/db",
        "postgresql://me:hu@sh@host/db",
        "postgresql://me:x${PW}hush@host/db",
        "postgresql://host/db?password=hush",
        "postgresql://host/db?sslpassword=hush&x=1",
        "mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BPWD%3Dhush",
    ],
)
def test_a_password_is_refused_and_never_repeated(url: str) -> None:
    for more in ({}, {"range_rows": "many"}, {"keyy": "id"}):
        with pytest.raises(ConfigError) as caught:
            source(**{**TABLE, "url": url, **more})
        assert "hush" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(
        ConfigError, match=r"source 'db': url: a password stands in the job file; write \$\{NAME\}"
    ):
        source(**{**TABLE, "url": url})


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@host/db",
        "postgresql://me:$PW@host/db",
        "postgresql://host/db?password=${PW}&sslmode=require",
        "sqlite:////tmp/a:b@c.db",
        "${DB}",
    ],
)
def test_urls_without_a_password(url: str) -> None:
    assert source(**{**TABLE, "url": url}).url == url


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"url": ""},
            r"url: kind sql needs the database: url: postgresql://reader:\$\{PG_PASSWORD\}@host/name",
        ),
        ({"table": ""}, "kind sql needs either a table or a query"),
        ({"query": "SELECT 1"}, "kind sql needs either a table or a query"),
        ({"key": []}, "key: name the column, or the columns, that tell its rows apart: key: id"),
        ({"key": ["a", "a"]}, "key: name the column"),
        ({"key": [""]}, "key: an empty name"),
        ({"path": "x"}, "kind sql takes no path; it has url"),
        ({"include": ["x"], "id_field": "x"}, "kind sql takes no include, id_field"),
        ({"table": "t_{date}"}, "kind sql takes no {date}: a day takes the rows that changed"),
        ({"range_rows": 0}, "range_rows: Input should be greater than or equal to 1"),
        ({"kind": "files", "path": "x"}, "kind files takes no url, table, key; kind sql does"),
    ],
)
def test_what_a_table_lacks_or_has_too_much(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        source(**{**TABLE, **change})


@pytest.mark.parametrize("path", ["bucket/x", "s3:/bucket", "s3://", "s3:///x", "/s3://b"])
def test_a_bucket_is_named_as_one(path: str) -> None:
    with pytest.raises(ConfigError, match="path: kind s3 needs s3://BUCKET/PREFIX, not"):
        source(kind="s3", path=path)


def test_a_source_lies_somewhere() -> None:
    with pytest.raises(ConfigError, match="path: say where its documents are"):
        source(kind="files")


def test_a_bucket_by_days() -> None:
    assert source(kind="s3", path="s3://b/{date}/*.jsonl", late_days=1).dated
