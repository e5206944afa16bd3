"""``dataflow versions compact``: what it is given, and what it prints."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from dataflow_ops.pipeline import compact as module
from tests.cli.conftest import Dataflow
from tests.pipeline.compacting import chain, current, once
from tests.pipeline.growing import TEXTS, Growing, first_day


def test_a_job_or_a_version_is_compacted_and_all_commands_work_on_it(
    dataflow: Dataflow, tmp_path: Path
) -> None:
    made = Growing(tmp_path)
    first = first_day(made)
    alone = dataflow("versions", "compact", "--home", made.home, "--json").json
    assert (alone["state"], alone["version"]) == ("SUCCEEDED", first)
    assert "nothing to put together" in alone["message"]
    made.put("new.md", TEXTS[20])
    second = made.day(2)
    day, kept = second.version_id, second.facts["documents"]
    wrong = dataflow("versions", "compact", "v9", "--home", made.home)
    assert (wrong.code, wrong.out) == (1, "")
    assert wrong.err.startswith("error: 'v9' is no version here")
    other = dataflow("versions", "compact", "--dataset", "nope", "--home", made.home)
    assert other.err == "error: data set 'nope' has no version here; there are grows\n"
    absent = dataflow("versions", "compact", "absent.yaml", "--home", made.home)
    assert absent.code != 0
    assert "no job file" in absent.err
    said = dataflow("versions", "compact", made.job, "--home", made.home, "--workers", "0", "--json")
    assert said.code == 0, said.err
    assert (said.json["current"], said.json["from"]) == (True, [first, day])
    name = said.json["version"]
    [row] = [r for r in dataflow("versions", "list", "--home", made.home, "--json").json if r["current"]]
    assert (row["version"], row["holds"], row["compacted_from"]) == (name, f"everything of {day}", day)
    shown = dataflow("versions", "show", "--home", made.home, "--json").json
    assert (shown["documents"], len(shown["folders"]), shown["fates"]["exported"]) == (kept, 1, kept)
    assert "compacted" in dataflow("versions", "history", "--home", made.home).out
    assert dataflow("versions", "verify", "--home", made.home).code == 0
    assert Path(dataflow("report", "--home", made.home).out.strip()).is_file()
    run = dataflow("status", "--home", made.home, "--json").json
    assert [step["step"] for step in run["steps"]] == ["weigh", "pack", "trace"]
    assert dataflow("audit", "--home", made.home, "--json").code == 0
    [found] = dataflow("find", "new.md", "--by", "url", "--home", made.home, "--json").json["results"]
    assert found["version"] == name
    assert (made.home / "versions" / name / found["shard"]).is_file()
    text = dataflow("find", "--file", made.root / "docs" / "new.md", "--home", made.home, "--json").json
    assert [(r["path"], r["exact"]) for r in text["results"]] == [("new.md", True)]
    told = dataflow("lineage", found["doc_id"], "--home", made.home)
    assert told.code == 0
    assert "exported" in told.out
    same = dataflow("diff", day, name, "--home", made.home, "--json").json["documents"]
    assert (same["added"], same["removed"], same["same"]) == (0, 0, kept)
    assert dataflow("versions", "compact", "--home", made.home).out.strip().endswith("to put together.")


def test_interrupted_it_says_a_command_that_goes_on_with_the_same_version(
    dataflow: Dataflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = chain(tmp_path)
    newest = current(made)
    with made.state() as state:
        named = next(v.base for v in state.versions() if v.version_id == newest)
    assert named is not None
    with monkeypatch.context() as patched:

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        patched.setattr(module, "_finish", interrupted)
        assert dataflow("versions", "compact", named, "--home", made.home, "--workers", 0).code == 130
    line = f"dataflow versions compact --home {made.home} {named}"
    told = f"interrupted; `{line}` goes on from there"
    assert told in dataflow("status", "--home", made.home).out
    assert told in dataflow("status", "--home", made.home, "--json").json["sentence"]
    assert told in dataflow("runs", "--home", made.home).out
    [run, *_] = dataflow("runs", "--home", made.home, "--json").json
    assert run["detail"] == told
    done = dataflow(*shlex.split(line)[1:], "--workers", 0, "--json").json
    assert (done["state"], done["from"][-1]) == ("AWAITING_APPROVAL", named)
    assert f"dataflow versions approve --home {made.home} {done['version']} --anyway" in done["message"]


def test_after_a_kill_the_status_names_the_command_that_goes_on(dataflow: Dataflow, tmp_path: Path) -> None:
    made = chain(tmp_path)
    newest = current(made)
    marker = tmp_path / "killed"
    once(made.home, -9, kill="before publish pack", marker=str(marker))
    line = f"dataflow versions compact --home {made.home} {newest}"
    assert (
        f"its process is gone); the same `{line}` goes on from here"
        in (dataflow("status", "--home", made.home, "--json").json["sentence"])
    )
    done = dataflow(*shlex.split(line)[1:], "--workers", 0, "--json").json
    assert (done["current"], done["from"][-1]) == (True, newest)


def test_after_a_rollback_behind_it_it_says_how_to_make_it_current(
    dataflow: Dataflow, tmp_path: Path
) -> None:
    made = chain(tmp_path)
    name = dataflow("versions", "compact", "--home", made.home, "--workers", 0, "--json").json["version"]
    with made.state() as state:
        day, full = (next(v for v in state.versions() if v.is_compact).base, state.versions()[-1].version_id)
    assert dataflow("versions", "rollback", full, "--home", made.home).code == 0
    said = dataflow("versions", "compact", day, "--home", made.home, "--workers", 0)
    assert f"chose {full} instead of it" in said.out
    line = said.out.splitlines()[-1].partition("all the same: ")[2]
    assert line == f"dataflow versions rollback --home {made.home} {name}"
    assert dataflow(*shlex.split(line)[1:], "--json").json["current"] == name
    assert dataflow("versions", "rollback", full, "--home", made.home).code == 0
    assert dataflow("versions", "reject", name, "--home", made.home).code == 0
    said = dataflow("versions", "compact", day, "--home", made.home, "--workers", 0)
    line = said.out.splitlines()[-1].partition("well after all: ")[2]
    assert line == f"dataflow versions approve --home {made.home} {name}"
    assert dataflow(*shlex.split(line)[1:], "--json").json["current"] == name


def test_a_version_past_retention_is_told_as_that(dataflow: Dataflow, tmp_path: Path) -> None:
    made = chain(tmp_path)
    day = current(made)
    with made.state() as state:
        below = next(v.base for v in state.versions() if v.version_id == day)
    name = dataflow("versions", "compact", "--home", made.home, "--workers", 0, "--json").json["version"]
    made.put("more.md", TEXTS[45])
    newest = made.day(5).version_id
    # Two full versions are always kept: the compacted one, and a newer one that somebody went back from.
    assert made.run(date="2026-11-06").current
    assert dataflow("versions", "rollback", newest, "--home", made.home).code == 0
    words = ("maintenance", "--keep-versions", 1, "--grace-hours", 0, "--home", made.home, "--json")
    assert {day, below} <= set(dataflow(*words).json["versions"])
    for version in (day, below):
        for asked in (
            ("diff", version, name),
            ("diff", name, version),
            ("find", "new", "--version", version),
        ):
            said = dataflow(*asked, "--home", made.home)
            assert said.code == 1, asked
            assert said.err.startswith(f"error: {version} can't be read, "), asked
            assert "files were removed after its time of retention; `dataflow versions list" in said.err
    assert dataflow("find", "new", "--version", name, "--home", made.home).code == 0
