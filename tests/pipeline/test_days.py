"""Incremental runs: a day's files and no others, under the identity that a full run gives them."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.cli.console import ConsoleReporter
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.bundles import finish_run, run_bundle, start_run
from dataflow_ops.pipeline.flow import STEPS
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.run import run_job
from dataflow_ops.pipeline.session import create_run
from tests.cases.product import CASES, Product, dataflow

pytestmark = pytest.mark.xdist_group("days")

PROSE = ("en_prose_ok.txt", "zh_prose_ok.txt")


def put(folder: Path, name: str, text: str = PROSE[0], mark: str = "") -> None:
    """A document that no other is a duplicate of."""
    folder.mkdir(parents=True, exist_ok=True)
    body = (CASES / "text" / text).read_text("utf-8")
    # Each mark gives other words, so that near-duplicate removal has nothing to find.
    words = [f"{word}{mark}" for word in body.split(" ")] if mark else [body]
    (folder / name).write_text(" ".join(words), encoding="utf-8")


def dated(tmp_path: Path, path: str = "in/{date}/*.txt", **settings: Any) -> Product:
    source = {
        "source_id": "crawl",
        "kind": "files",
        "path": f"{tmp_path}/{path}",
        "domain": "web",
        **settings,
    }
    (tmp_path / "in").mkdir(exist_ok=True)
    return Product(tmp_path, [source], {"drift": {"max_domain_shift": 1, "max_language_shift": 1}})


def names(product: Product) -> dict[str, str]:
    """Path → id of the newest version's documents."""
    return {row["path"]: row["id"] for row in product.exported()}


def incremental(product: Product, day: str, *options: object) -> Any:
    said = product.run("--mode", "incremental", "--date", day, *options)
    assert said.code == 0, said.err
    return said.data


def test_a_day_builds_on_the_current_version_with_the_ids_of_the_full_run(tmp_path: Path) -> None:
    made = dated(tmp_path)
    put(tmp_path / "in/2026-11-29", "a.txt")
    put(tmp_path / "in/2026-11-30", "b.txt", PROSE[1])
    put(tmp_path / "in/latest", "c.txt", mark="q")
    full = made.run()
    assert (full.code, full.data["current"], full.data["increment"]) == (0, True, False)
    everything = names(made)
    assert sorted(everything) == ["2026-11-29/a.txt", "2026-11-30/b.txt"], "'latest' is no day"

    day = incremental(made, "2026-11-30")
    assert (day["state"], day["current"], day["increment"], day["waits"]) == ("SUCCEEDED", True, False, [])
    assert (day["base"], day["documents"]) == (full.data["version"], 2)
    assert f"builds on {full.data['version']}: 1 new documents in 1 shards, 1 replaced" in day["message"]
    assert names(made) == {"2026-11-30/b.txt": everything["2026-11-30/b.txt"]}
    assert made.manifest()["base"]["version"] == full.data["version"]
    assert made.verify()
    assert made.report()["drift"] == [], "one day is compared with nothing"

    listed = {v["version"]: v for v in made.ask("versions", "list")}
    assert listed[day["version"]]["holds"] == f"{full.data['version']} and 2026-11-30"
    assert listed[day["version"]]["current"]
    assert listed[full.data["version"]]["state"] == "PUBLISHED"
    shown = made.ask("versions", "show", day["version"])
    assert [Path(folder).name for folder in shown["folders"]] == [full.data["version"], day["version"]]
    again = made.run()
    assert (again.data["version"], again.data["current"]) == (full.data["version"], True)
    history = [(e["version"], e["action"]) for e in made.ask("versions", "history")]
    assert history == [
        (full.data["version"], "promoted"),
        (day["version"], "published"),
        (full.data["version"], "published"),
    ]


def test_without_a_version_below_a_day_is_an_increment(tmp_path: Path) -> None:
    made = dated(tmp_path)
    put(tmp_path / "in/2026-11-30", "b.txt", PROSE[1])
    day = incremental(made, "2026-11-30")
    assert (day["state"], day["current"], day["increment"], day["waits"]) == ("SUCCEEDED", False, True, [])
    assert "an increment of 2026-11-30" in day["message"]
    assert made.manifest()["increment"] is True
    assert made.verify()
    [listed] = made.ask("versions", "list")
    assert (listed["holds"], listed["state"]) == ("increment of 2026-11-30", "PUBLISHED")
    shown = dataflow("versions", "show", day["version"], "--home", made.home)
    assert "increment of 2026-11-30; the next full run makes a version that contains it" in shown.out
    for command in ("rollback", "approve"):
        refused = dataflow("versions", command, day["version"], "--home", made.home)
        assert refused.code in (1, 2)
        assert "it is an increment" in refused.err, refused.err


def test_empty_days_without_a_version_below_share_one_version(tmp_path: Path) -> None:
    made = dated(tmp_path)
    one = incremental(made, "2026-12-01")
    (tmp_path / "in/2026-12-02").mkdir()
    two = incremental(made, "2026-12-02")
    assert (one["state"], one["documents"], one["waits"]) == ("SUCCEEDED", 0, [])
    assert (two["state"], two["documents"], two["waits"]) == ("SUCCEEDED", 0, [])
    assert one["version"] == two["version"]
    assert "with the same content as before" in two["message"]
    assert made.verify()
    states = {v["version"]: (v["state"], v["current"]) for v in made.ask("versions", "list")}
    assert states == {one["version"]: ("PUBLISHED", False)}


def test_an_empty_day_holds_what_is_below_it(tmp_path: Path) -> None:
    made = dated(tmp_path)
    put(tmp_path / "in/2026-11-29", "a.txt")
    full = made.run().data
    one = incremental(made, "2026-12-01")
    assert (one["state"], one["documents"], one["tokens"]) == ("SUCCEEDED", 1, full["tokens"])
    assert (one["current"], one["waits"], one["base"]) == (True, [], full["version"])
    two = incremental(made, "2026-12-02")
    assert (two["documents"], two["base"], two["current"]) == (1, one["version"], True)
    assert made.verify()


def test_two_runs_that_end_at_once_with_one_content_are_one_version(tmp_path: Path) -> None:
    made = dated(tmp_path)
    put(tmp_path / "in/2026-11-29", "a.txt")

    class OtherFirst:
        def reached(self, point: str) -> None:
            if point == "before commit publish":
                assert made.run("--set", "output.version=other", "--promote").data["current"]

    done = run_job(
        load_job(made.job), made.home, workers=0, reporter=ConsoleReporter(quiet=True), hooks=OtherFirst()
    )
    (version,) = (v["version"] for v in made.ask("versions", "list"))
    assert version.startswith("other-full-")
    assert (done.state, done.version_id, done.current) == ("SUCCEEDED", version, True)
    folders = [p.name for p in (made.home / "versions").iterdir() if any(f.is_file() for f in p.rglob("*"))]
    assert folders == [version]
    assert made.verify()


def test_late_days_bring_the_days_before(tmp_path: Path) -> None:
    made = dated(tmp_path, "in/{date:%Y/%m/%d}", late_days=1)
    for day, mark in (("2026/11/28", "x"), ("2026/11/29", "y"), ("2026/11/30", "z")):
        put(tmp_path / "in" / day, "a.txt", mark=mark)
    incremental(made, "2026-11-30")
    assert sorted(names(made)) == ["2026/11/29/a.txt", "2026/11/30/a.txt"]


def test_what_full_has_and_lost_folders_are_told_apart(tmp_path: Path) -> None:
    made = dated(tmp_path)
    (tmp_path / "in").rmdir()
    said = made.run("--mode", "incremental", "--date", "2026-11-30")
    assert (said.code, "does not exist" in said.err) == (2, True), "a lost mount is no empty day"
    assert not made.home.exists()


def test_without_a_date_the_files_of_the_versions_below_are_left_out(tmp_path: Path) -> None:
    source = {"source_id": "docs", "path": str(tmp_path / "docs"), "domain": "web"}
    made = Product(tmp_path, [source], {"drift": {"max_domain_shift": 1, "max_language_shift": 1}})
    put(tmp_path / "docs", "old.txt")
    put(tmp_path / "docs", "changed.txt", mark="c")
    base = incremental(made, "2026-11-28")
    assert sorted(names(made)) == ["changed.txt", "old.txt"], "without a full version everything is new"
    full = made.run()
    ids = names(made)
    assert base["version"] != full.data["version"], "an increment is never taken for a full version"

    put(tmp_path / "docs", "new.txt", mark="n")
    put(tmp_path / "docs", "changed.txt", mark="d")
    listed = dataflow(
        "run", made.job, "--home", made.home, "--mode", "incremental", "--dry-run", "--json"
    ).data
    assert listed["sources"][0]["files"] == 2
    day = incremental(made, "2026-11-29")
    found = names(made)
    assert sorted(found) == ["changed.txt", "new.txt"]
    assert found["changed.txt"] == ids["changed.txt"]
    assert day["documents"] == 3, "the changed one takes its own place"
    incremental(made, "2026-11-30")
    assert names(made) == {}, "the day before has them"
    put(tmp_path / "docs", "changed.txt", mark="c")
    os.utime(tmp_path / "docs" / "changed.txt", ns=(10**18, 10**18))
    incremental(made, "2026-12-01")
    assert sorted(names(made)) == ["changed.txt"]
    assert made.verify()


def test_a_run_keeps_the_base_that_it_began_with(tmp_path: Path) -> None:
    source = {"source_id": "docs", "path": str(tmp_path / "docs"), "domain": "web"}
    made = Product(tmp_path, [source], {"drift": {"max_domain_shift": 1, "max_language_shift": 1}})
    put(tmp_path / "docs", "old.txt")
    made.run()
    put(tmp_path / "docs", "new.txt", mark="n")
    settings = load_job(made.job)
    run_id = create_run(open_home(made.home), settings, "incremental", data_date="2026-11-30", job_name="job")
    assert made.run().data["current"], "a full run beside it takes the new file too"
    assert (
        create_run(open_home(made.home), settings, "incremental", data_date="2026-11-30", job_name="job")
        == run_id
    ), "asked for twice, it is one run"
    other = create_run(open_home(made.home), settings, "incremental", data_date="2026-12-01", job_name="job")
    assert other != run_id, "another day is another run"
    said = dataflow("resume", run_id, "--home", made.home, "--workers", 0, "--json")
    assert (said.code, said.data["run"]) == (0, run_id)
    with made.state() as state:
        version = next(v for v in state.versions() if v.run_id == run_id)
    assert version.data_date == "2026-11-30"
    assert list(names(made)) == ["new.txt"], "its list is of then, though the full version has it now"
    assert said.data["documents"] == 2, "which it builds on: the file takes its own place"
    said = dataflow("resume", other, "--home", made.home, "--workers", 0, "--json")
    assert names(made) == {}, "that one began after the full version was current"
    assert said.data["documents"] == 2


def orchestrated(made: Product, run_id: str, **options: Any) -> dict[str, Any]:
    started = start_run(made.job, made.home, run_id=run_id, log=lambda _: None, **options)
    for step, _, by in STEPS[1:]:
        for index in range(started.bundles[by]):
            bundle = {"run_id": run_id, "until": started.until, "index": index, "of": started.bundles[by]}
            run_bundle(made.home, step, bundle, 1, log=lambda _: None)
    return finish_run(made.home, run_id, started.until, promote=started.promote, log=lambda _: None)


def test_an_orchestrator_s_run_says_what_it_did(tmp_path: Path) -> None:
    made = dated(tmp_path)
    made.job.write_text(made.job.read_text().replace("id: cases", "id: cases\n  timezone: Asia/Shanghai"))
    put(tmp_path / "in/2026-12-01", "a.txt")
    moment = dt.datetime(2026, 11, 30, 18, tzinfo=dt.UTC)
    looked = start_run(
        made.job, made.home, mode="incremental", run_id="r", moment=moment, dry_run=True, log=lambda _: None
    )
    assert (looked.dry_run, set(looked.bundles.values())) == (True, {0})
    assert looked.found["sources"][0]["files"] == 1, "18:00 in UTC is the next day in Shanghai"
    assert not made.home.exists()
    origin = {"kind": "airflow", "dag_id": "cases__incremental", "run_id": "x"}
    done = orchestrated(made, "r", mode="incremental", moment=moment, origin=origin, urgent=True)
    assert {
        k: done[k] for k in ("state", "current", "waits", "documents", "dataset", "mode", "data_date")
    } == {
        "state": "SUCCEEDED",
        "current": False,
        "waits": [],
        "documents": 1,
        "dataset": "cases",
        "mode": "incremental",
        "data_date": "2026-12-01",
    }
    assert done["dead_letters"] == 0
    with made.state() as state:
        row = state.get_run("r")
    assert row is not None
    assert (row.urgent, row.until_layer, '"dag_id": "cases__incremental"' in (row.origin or "")) == (
        True,
        None,
        True,
    )
    stopped = orchestrated(made, "s", mode="full", until="parse", data_date="2026-12-01")
    assert (stopped["version"], stopped["documents"], stopped["state"]) == ("", 0, "SUCCEEDED")


def test_a_bad_day_waits_and_is_published_by_a_person(tmp_path: Path) -> None:
    made = dated(tmp_path, "in/{date}/*", kind="files")
    put(tmp_path / "in/2026-11-30", "a.txt")
    (tmp_path / "in/2026-11-30/broken.jsonl").write_text('{"text": "cut\n')
    said = made.run("--mode", "incremental", "--date", "2026-11-30")
    assert (said.code, said.data["state"]) == (4, "AWAITING_APPROVAL")
    assert "NOT published, a person must look" in said.data["message"]
    done = made.ask("versions", "approve", said.data["version"], "--note", "one line of two")
    assert done == {"published": said.data["version"], "increment": True, "event": "no_airflow"}
    listed = {v["version"]: v for v in made.ask("versions", "list")}
    assert (listed[said.data["version"]]["state"], listed[said.data["version"]]["current"]) == (
        "PUBLISHED",
        False,
    )
    assert made.report()["stands"] == "increment"
    event = made.ask("versions", "history")[0]
    assert (event["action"], event["note"]) == ("approved", "one line of two")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--mode", "daily"), "there is no such mode"),
        (("--mode", "incremental", "--date", "yesterday"), "not a date"),
    ],
)
def test_what_can_t_be_a_run_is_said(tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    made = dated(tmp_path)
    said = made.run(*options)
    assert (said.code, told in said.err) == (2, True)


def test_links_to_a_day_are_left_out_in_both_modes(tmp_path: Path) -> None:
    made = dated(tmp_path)
    put(tmp_path / "elsewhere", "a.txt")
    os.symlink(tmp_path / "elsewhere", tmp_path / "in/2026-11-30")
    shutil.copytree(tmp_path / "elsewhere", tmp_path / "in/2026-11-29")
    assert incremental(made, "2026-11-30")["documents"] == 0
    assert made.run().data["documents"] == 1
