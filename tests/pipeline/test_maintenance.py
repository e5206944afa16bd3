"""What maintenance takes, what it leaves, and that nothing kept is the worse for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.pipeline.bundles import finish_run, run_bundle, start_run
from dataflow_ops.pipeline.flow import STEPS
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.maintenance import maintain
from dataflow_ops.pipeline.retention import past_retention
from dataflow_ops.state.records import RunRecord, VersionRecord
from dataflow_ops.timing import RetentionSettings
from tests.cases.product import Product, dataflow
from tests.pipeline.test_days import put

pytestmark = pytest.mark.xdist_group("maintenance")
ROOT = Path(__file__).resolve().parents[2]
FREE = {"max_domain_shift": 1, "max_language_shift": 1}


def product(tmp_path: Path, **retention: int) -> Product:
    source = {"source_id": "docs", "path": str(tmp_path / "docs"), "domain": "web"}
    put(tmp_path / "docs", "same.txt")
    return Product(tmp_path, [source], {"drift": FREE, "output": {"retention": retention}})


def version_of(made: Product, tmp_path: Path, mark: str) -> str:
    """A full version whose second document is another one each time."""
    put(tmp_path / "docs", "changing.txt", mark=mark)
    said = made.run()
    assert (said.code, said.data["current"]) == (0, True), said.err
    return str(said.data["version"])


def clean(made: Product, **options: Any) -> dict[str, Any]:
    return maintain(open_home(made.home), **{"grace_hours": 0.0, "log": lambda _: None, **options})


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def runs_nothing(made: Product) -> None:
    """The job again finds everything done that its version needs."""
    reports = made.run_steps()
    assert {name: report.ran for name, report in reports.items() if report.ran} == {}


def test_versions_past_retention_go_and_what_is_kept_is_whole(tmp_path: Path) -> None:
    made = product(tmp_path, versions=1)
    one, two, three, four = (version_of(made, tmp_path, mark) for mark in "abcd")
    before = files(made.home / "data")
    rehearsed = clean(made, dry_run=True)
    assert files(made.home / "data") == before
    done = clean(made)
    assert done["versions"] == rehearsed["versions"] == [one, two]
    assert done["tasks"] == rehearsed["tasks"] > 0
    assert done["files"] == rehearsed["files"] > done["tasks"]
    assert 0 < rehearsed["bytes"] <= done["bytes"], "shards count once their last name goes"
    assert len(done["runs"]) == 2

    for gone in (one, two):
        assert files(made.home / "versions" / gone) == {"manifest.json", "report.json", "report.html"}
        report = json.loads((made.home / "versions" / gone / "report.json").read_text("utf-8"))
        assert report["stands"] == "removed"
        assert "removed" in dataflow("versions", "verify", gone, "--home", made.home).err
        for command in ("approve", "rollback"):
            refused = dataflow("versions", command, gone, "--home", made.home)
            assert (refused.code != 0, "removed" in refused.err) == (True, True)
    listed = {v["version"]: v["state"] for v in made.ask("versions", "list")}
    assert listed == {one: "REMOVED", two: "REMOVED", three: "PUBLISHED", four: "PUBLISHED"}
    for kept in (three, four):
        assert made.ask("versions", "verify", kept)["ok"]
    runs_nothing(made)
    (document,) = (row["id"] for row in made.exported() if row["path"] == "changing.txt")
    assert made.ask("lineage", document)["doc_id"] == document
    summary = json.loads(next((made.home / "runs").iterdir()).read_text("utf-8"))
    assert {s["step"]: s["in"] for s in summary["steps"]}["parse"] == 2

    again = clean(made)
    assert {k: v for k, v in again.items() if v} == {}, "twice is once"
    assert made.ask("versions", "rollback", three)["current"] == three


def test_the_same_content_again_restores_a_removed_version(tmp_path: Path) -> None:
    made = product(tmp_path, versions=1)
    one, *_ = (version_of(made, tmp_path, mark) for mark in "abc")
    clean(made)
    assert version_of(made, tmp_path, "a") == one
    assert made.ask("versions", "verify", one)["ok"]
    assert [e["action"] for e in made.ask("versions", "history")][:2] == ["promoted", "restored"]
    assert clean(made)["versions"] == [], "it is current, and made anew"
    assert made.ask("versions", "verify", one)["ok"]


def test_without_retention_every_version_and_all_that_it_needs_stays(tmp_path: Path) -> None:
    made = product(tmp_path)
    versions = [version_of(made, tmp_path, mark) for mark in "abc"]
    before = files(made.home / "data")
    done = clean(made)
    assert (done["versions"], done["tasks"], done["orphans"]) == ([], 0, 0)
    assert files(made.home / "data") == before
    assert all(made.ask("versions", "verify", v)["ok"] for v in versions)
    assert clean(made, keep_versions=2)["versions"] == versions[:1], "said on the command line"


def test_files_that_no_task_knows_go_after_the_grace_period(tmp_path: Path) -> None:
    made = product(tmp_path)
    version_of(made, tmp_path, "a")
    known = next((made.home / "data/parse").rglob("*.parquet"))
    old, young, foreign = (
        known.with_name(name)
        for name in (
            f"part_x_{known.parent.name}{'0' * 14}.text.parquet",
            f"part_y_{known.parent.name}{'0' * 14}.text.parquet",
            "notes.txt",
        )
    )
    for path in (old, young, foreign):
        path.write_bytes(b"left")
    staged = made.home / "staging" / ("ab" * 32) / "1" / "rows_0_1_00.arrow"
    staged.parent.mkdir(parents=True)
    staged.write_bytes(b"left")
    folder = made.home / "versions" / "never-recorded"
    folder.mkdir()
    (folder / "verify.py").write_bytes(b"left")
    for path in (old, foreign, staged, folder / "verify.py"):
        os.utime(path, (time.time() - 7200, time.time() - 7200))
    done = clean(made, grace_hours=1.0)
    assert (done["orphans"], done["staged"], done["folders"], done["bytes"]) == (1, 1, 1, 12)
    assert files(folder) == set()
    assert [p.exists() for p in (old, young, foreign, staged, known)] == [False, True, True, False, True]
    runs_nothing(made)


def test_a_run_that_has_begun_keeps_what_it_found_and_makes_the_rest_anew(tmp_path: Path) -> None:
    made = product(tmp_path, versions=1)
    one, *_ = (version_of(made, tmp_path, mark) for mark in "abc")
    put(tmp_path / "docs", "changing.txt", mark="a")
    quiet = {"log": lambda _: None}
    started = start_run(made.job, made.home, mode="full", run_id="r", promote=True, **quiet)

    def step(name: str, by: str) -> dict[str, Any]:
        bundles = [
            {"run_id": "r", "until": None, "index": i, "of": started.bundles[by]}
            for i in range(started.bundles[by])
        ]
        done = [run_bundle(made.home, name, bundle, 1, **quiet) for bundle in bundles]
        return done[0]

    todo = [(name, by) for name, _, by in STEPS[1:]]
    first = step(*todo[0]), step(*todo[1])
    assert first[1]["skipped"] == 1, "parse of version one is still there"
    done = clean(made)
    assert (done["versions"], done["tasks"] > 0) == ([one], True)
    for name, by in todo[2:]:
        step(name, by)
    assert finish_run(made.home, "r", **quiet)["version"] == one
    with made.state() as state:
        parse = state.records_of_step("r", "parse").values()
        assert all(record.heartbeat_at is not None for record in parse)
        run = state.get_run("r")
        assert run is not None
        assert all((record.heartbeat_at or 0.0) < run.created_at for record in parse), "not made twice"
    assert made.ask("versions", "verify", one)["ok"]


KILLED = """
import os, signal, sys
from pathlib import Path
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.maintenance import maintain
from dataflow_ops.storage.local import LocalStore
left = [int(sys.argv[2])]
delete = LocalStore.delete
def dying(self, uri):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return delete(self, uri)
LocalStore.delete = dying
maintain(open_home(Path(sys.argv[1])), grace_hours=0.0, log=lambda _: None)
"""


@pytest.mark.parametrize("deletions", [0, 3, 11])
def test_killed_anywhere_the_next_one_goes_on(tmp_path: Path, deletions: int) -> None:
    made = product(tmp_path, versions=1)
    one, *_, three = (version_of(made, tmp_path, mark) for mark in "abc")
    command = [sys.executable, "-c", KILLED, str(made.home), str(deletions)]
    killed = subprocess.run(command, cwd=ROOT, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert killed.returncode == -signal.SIGKILL
    assert made.ask("versions", "verify", three)["ok"]
    runs_nothing(made)
    clean(made)
    assert {k: v for k, v in clean(made).items() if v} == {}
    assert files(made.home / "versions" / one) == {"manifest.json", "report.json", "report.html"}
    runs_nothing(made)
    assert version_of(made, tmp_path, "a") == one, "what was half removed is made again"
    assert made.ask("versions", "verify", one)["ok"]


def test_the_command_says_what_went(tmp_path: Path) -> None:
    made = product(tmp_path, versions=1)
    one, *_ = (version_of(made, tmp_path, mark) for mark in "abc")
    rehearsed = dataflow("maintenance", "--dry-run", "--grace-hours", 0, "--home", made.home)
    assert f"version {one}: past retention" in rehearsed.out
    assert " files would be removed, at least " in rehearsed.out
    said = made.ask("maintenance", "--grace-hours", 0)
    assert (said["dry_run"], said["versions"], said["bytes"] > 0) == (False, [one], True)


def record(name: str, age: int, mode: str = "full", state: str = "PUBLISHED", current: bool = False) -> Any:
    return VersionRecord("d", name, name, "u", f"run-{name}", state, -float(age), current, mode, None)


def live(run_id: str, base: str) -> RunRecord:
    text = json.dumps({"interval": {"day": "2026-11-30", "base": base}} if base else {"interval": None})
    return RunRecord(
        run_id, "d", "j", "full", text, None, True, False, None, None, "RUNNING", None, 0.0, None, None, 0.0
    )


@pytest.mark.parametrize(
    ("retention", "gone"),
    [
        ({}, []),
        ({"versions": 3}, ["f8", "f6", "f4", "i5"]),
        ({"versions": 1}, ["f8", "f6", "f4", "i5", "i3"]),
        ({"days": 5.5}, ["f8", "f6"]),
        ({"days": 4.5, "versions": 1}, ["f8", "f6", "i5"]),
    ],
)
def test_which_versions_are_past_retention(retention: dict[str, float], gone: list[str]) -> None:
    versions = [
        record("f0", 0, state="AWAITING_APPROVAL"),
        record("i1", 1, "incremental"),
        record("f1", 1),
        record("i2", 2, "incremental", "AWAITING_APPROVAL"),
        record("f2", 2),
        record("i3", 3, "incremental"),
        record("f4", 4, state="REJECTED"),
        record("i5", 5, "incremental"),
        record("f6", 6),
        record("f7", 7, current=True),
        record("f8", 8),
        record("f9", 9),
        record("f10", 10),
        record("f11", 11, state="REMOVED"),
    ]
    day = 86_400.0
    found = past_retention(
        versions,
        RetentionSettings(**retention),  # type: ignore[arg-type]
        [live("x", "f9"), live("run-f10", "")],
        {v.version_id: v.created_at * day for v in versions},
        now=0.0,
    )
    assert sorted(v.version_id for v in found) == sorted(gone)
