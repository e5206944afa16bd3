"""``{date}`` in a source's path: what it takes, what it leaves, and under which names."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.dates import check_template, of_any_day, of_day, root_and_template
from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import load_job, parse_job
from dataflow_ops.layers.ingest.listing import SAME_FILE, left_out_of, list_sources, without
from dataflow_ops.settings import JobSettings

DAY = dt.date(2026, 11, 30)


def job(path: str, day: str | None = None, **source: Any) -> JobSettings:
    raw: dict[str, Any] = {"dataset": {"id": "d"}, "sources": [{"source_id": "s", "path": path, **source}]}
    return parse_job({**raw, "interval": {"day": day} if day else None})


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def listed(settings: JobSettings) -> Sequence[str]:
    found: Sequence[str] = list_sources(settings)["path"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("template", "files", "of_the_day"),
    [
        ("{date}", ["2026-11-30/a.txt", "2026-11-30/b/c.txt"], ["2026-11-30/a.txt", "2026-11-30/b/c.txt"]),
        ("{date}/a*.txt", ["2026-11-30/a1.txt", "2026-11-30/b.txt"], ["2026-11-30/a1.txt"]),
        ("dump-{date:%Y%m%d}.txt", ["dump-20261130.txt"], ["dump-20261130.txt"]),
        ("{date:%Y/%m/%d}/**/*.txt", ["2026/11/30/x/y.txt"], ["2026/11/30/x/y.txt"]),
        ("*/{date}.txt", ["site/2026-11-30.txt"], ["site/2026-11-30.txt"]),
        ("{date:y=%Y/m=%m/d=%d}", ["y=2026/m=11/d=30/a.txt"], ["y=2026/m=11/d=30/a.txt"]),
    ],
)
def test_a_day_s_files_and_all_days_files(
    tmp_path: Path, template: str, files: list[str], of_the_day: list[str]
) -> None:
    other = [
        name.replace("20261130", "20261201")
        .replace("2026-11-30", "2026-12-01")
        .replace("11/30", "12/01")
        .replace("d=30", "d=29")
        for name in files
    ]
    write(tmp_path, *files, *other, "latest/a.txt", "dump-new.txt", "2026/aa/30/x/y.txt")
    everything = listed(job(f"{tmp_path}/{template}"))
    assert set(of_the_day) < set(everything) <= {*files, *other}, "only what is a day"
    assert listed(job(f"{tmp_path}/{template}", "2026-11-30")) == of_the_day, "under the same names"
    assert listed(job(f"{tmp_path}/{template}", "2026-11-28")) == []


def test_other_days_are_neither_walked_nor_counted(tmp_path: Path) -> None:
    write(tmp_path, "2026-11-30/a.txt", "2026-12-01/b.txt", "2026-11-30/.hidden")
    closed = tmp_path / "2026-12-02"
    closed.mkdir()
    found = list_sources(job(f"{tmp_path}/{{date}}", "2026-11-30"))
    assert left_out_of(found) == {"s": {"hidden": 1}}
    flat = tmp_path / "flat"
    write(flat, "2026-11-30.txt", "2026-12-01.txt", "other.txt")
    assert left_out_of(list_sources(job(f"{flat}/{{date}}.txt", "2026-11-30"))) == {"s": {"not_included": 1}}


def test_patterns_of_include_may_hold_the_day(tmp_path: Path) -> None:
    write(tmp_path, "a/2026-11-30.txt", "a/2026-12-01.txt", "b/x.txt")
    source = {"include": ["{date}.txt"], "late_days": 1}
    assert listed(job(str(tmp_path), **source)) == ["a/2026-11-30.txt", "a/2026-12-01.txt"]
    assert listed(job(str(tmp_path), "2026-11-30", **source)) == ["a/2026-11-30.txt"]
    assert listed(job(str(tmp_path), "2026-12-01", **source)) == ["a/2026-11-30.txt", "a/2026-12-01.txt"]
    assert listed(job(str(tmp_path), "2026-12-02", **source)) == ["a/2026-12-01.txt"]


@pytest.mark.parametrize("template", ["{date}", "{date}/*.txt", "{date}/deep/*.txt"])
def test_a_file_in_the_place_of_a_days_folder_is_named(tmp_path: Path, template: str) -> None:
    write(tmp_path, "2026-11-29/a.txt", "2026-11-30")
    with pytest.raises(ConfigError, match=r"source 's': .*/2026-11-30 is a file; the day's files"):
        list_sources(job(f"{tmp_path}/{template}", "2026-11-30"))
    list_sources(job(f"{tmp_path}/{template}", "2026-11-29"))


def test_a_link_in_the_day_s_place_is_left_out_as_in_a_full_run(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/a.txt")
    os.symlink(tmp_path / "elsewhere", tmp_path / "2026-11-30")
    found = list_sources(job(f"{tmp_path}/{{date}}", "2026-11-30"))
    assert (found.num_rows, left_out_of(found)["s"]["symlink_folder"]) == (0, 1)


def test_days_of_every_month_and_early_years() -> None:
    assert of_day("a/{date:%Y/%m/%d}-{date}", dt.date(33, 4, 5)) == "a/0033/04/05-0033-04-05"
    assert of_any_day("{date:%d.%m.%Y}") == "[0-9][0-9].[0-9][0-9].[0-9][0-9][0-9][0-9]"
    assert root_and_template("/data/x-{date}/y") == ("/data", "x-{date}/y")
    assert root_and_template("{date:%Y/%m/%d}") == (".", "{date:%Y/%m/%d}")
    assert root_and_template("/{date}") == ("/", "{date}")


@pytest.mark.parametrize("text", ["{date", "{dates}", "{date:%Y}", "{date:%Y-%m-%H}", "{date:%Y%m%d*}"])
def test_templates_that_can_t_be_filled_in(text: str) -> None:
    with pytest.raises(ValueError, match="date"):
        check_template(text)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ({"path": "x/{date:%Y}"}, "the format holds %Y, %m and %d"),
        ({"path": "x", "include": ["{date}", "*.md"]}, "has no {date}, as the other patterns have"),
        ({"path": "x/{date}", "kind": "git"}, "kind git takes no {date}"),
        ({"path": "x", "late_days": 2}, "no {date} stands in the path"),
    ],
)
def test_sources_whose_days_can_t_be_told(source: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_job({"dataset": {"id": "d"}, "sources": [source]})


def test_known_files_are_left_out_of_the_sources_that_have_no_days(tmp_path: Path) -> None:
    write(tmp_path, "a/1.txt", "a/2.txt", "b/1.txt")
    raw = {
        "dataset": {"id": "d"},
        "sources": [{"source_id": n, "path": str(tmp_path / n)} for n in ("a", "b")],
    }
    listing = list_sources(parse_job(raw))
    known = listing.select(SAME_FILE)

    def names(found: Any) -> list[tuple[str, str]]:
        return list(zip(found["source_id"].to_pylist(), found["path"].to_pylist(), strict=True))

    assert names(without(listing, known, ["a"])) == [("b", "1.txt")]
    assert names(without(listing, known, ["a", "b"])) == []
    assert names(without(listing, known.slice(0, 0), ["a", "b"])) == names(listing)
    write(tmp_path, "a/0.txt")
    os.utime(tmp_path / "a/2.txt", ns=(1, 1))
    again = list_sources(parse_job(raw))
    assert names(without(again, known, ["a", "b"])) == [("a", "0.txt"), ("a", "2.txt")]
    assert again.schema == without(again, known, ["a"]).schema


def test_the_interval_is_no_key_of_a_job_file(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("dataset: {id: d}\ninterval: {day: 2026-11-30}\n")
    with pytest.raises(ConfigError, match="the day is given with --date"):
        load_job(path)
    path.write_text("dataset: {id: d}\nintervall: 1\n")
    with pytest.raises(ConfigError) as told:
        load_job(path)
    assert "interval" not in str(told.value).partition("known here")[2]


@pytest.mark.parametrize("cron", ["0 3 * * 0", "*/5 1-3,7 1 JAN MON#2", "@daily", None])
def test_schedules_and_retention_never_enter_a_version(cron: str | None) -> None:
    from dataflow_ops.layers.export.manifest import job_settings

    plain = parse_job({"dataset": {"id": "d"}})
    said = parse_job(
        {
            "dataset": {"id": "d"},
            "schedule": {"full": cron, "incremental": cron},
            "output": {"retention": {"versions": 3, "days": 1.5}},
            "interval": {"day": DAY},
        }
    )
    assert job_settings(plain) == job_settings(said)


@pytest.mark.parametrize("cron", ["daily", "0 3 * *", "0 3 * * 0 0", "@fortnightly", "a b c d ;"])
def test_what_is_no_cron_is_said(cron: str) -> None:
    with pytest.raises(ConfigError, match="not a cron expression"):
        parse_job({"dataset": {"id": "d"}, "schedule": {"full": cron}})
