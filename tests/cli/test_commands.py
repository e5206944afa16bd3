"""Every command on a small finished run: for people, for programs, with its exit code."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Dataflow

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture
def own_home(home: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    return copy


@pytest.fixture(scope="session")
def document(home: Path) -> str:
    """Id of an exported document."""
    shard = sorted((home / "versions").glob("*/domain=*/*.parquet"))[0]
    return str(pq.read_table(shard, columns=["id"])["id"][0].as_py())


def test_status(dataflow: Dataflow, home: Path) -> None:
    said = dataflow("status", "--home", home)
    assert said.code == 0
    assert "is SUCCEEDED_WITH_DEAD" in said.out
    assert f"dataflow dead-letters list --home {home}" in said.out
    found = dataflow("status", "--home", home, "--json").json
    assert [row["step"] for row in found["steps"]][:3] == ["discover", "fetch", "parse"]
    assert all(row["done"] == row["tasks"] for row in found["steps"])
    counted = {name for row in found["steps"] for name in row["counted"]}
    assert {"exact_groups", "exact_copies", "buckets", "components", "confirm_compared"} <= counted
    [verify] = [row["counted"] for row in found["steps"] if row["step"] == "verify"]
    assert 0 <= verify["pairs_verified"] <= verify["pairs_compared"]
    wrong = dataflow("status", "nobody", "--home", home)
    assert (wrong.code, found["run"] in wrong.err) == (2, True), "an unknown run: the known ones are named"


def test_lineage(dataflow: Dataflow, home: Path, document: str) -> None:
    said = dataflow("lineage", document, "--home", home)
    assert said.code == 0
    assert document in said.out
    found = dataflow("lineage", document, "--home", home, "--json").json
    assert found
    assert document in json.dumps(found)
    assert dataflow("lineage", document[:12], "--home", home, "--json").json == found
    for unknown in ("zz", "0" * 32):
        assert dataflow("lineage", unknown, "--home", home).code == 2


def test_an_audit_of_nothing_names_the_run(dataflow: Dataflow, home: Path) -> None:
    (newest,) = dataflow("runs", "--limit", 1, "--home", home, "--json").json
    said = dataflow("audit", "--rule", "language", "--home", home)
    assert said.code == 0
    assert f"Run {newest['run']} removed nothing by rule 'language'" in said.out.replace("\n", " ")


def test_audit(dataflow: Dataflow, home: Path, tmp_path: Path) -> None:
    said = dataflow("audit", "-n", 5, "--home", home)
    assert said.code == 0
    rows = dataflow("audit", "-n", 5, "--home", home, "--json").json
    assert len(rows) == 5
    assert all(row["rule"] for row in rows)
    again = dataflow("audit", "-n", 5, "--home", home, "--json").json
    assert rows == again, "the same seed draws the same documents"
    table = dataflow("audit", "-n", 5, "--csv", "-", "--home", home).out
    assert len(list(csv.DictReader(io.StringIO(table)))) == 5
    dataflow("audit", "-n", 5, "--csv", tmp_path / "a.csv", "--home", home)
    assert (tmp_path / "a.csv").read_bytes().decode() == table
    exact = dataflow("audit", "--rule", "exact", "--home", home, "--json").json
    assert exact
    assert {row["rule"] for row in exact} == {"exact"}


def test_report(dataflow: Dataflow, home: Path) -> None:
    said = dataflow("report", "--home", home)
    assert Path(said.out.strip()).read_text(encoding="utf-8").startswith("<!")
    assert dataflow("report", "--home", home, "--json").json == {"report": said.out.strip()}


def test_doctor(dataflow: Dataflow, home: Path) -> None:
    assert dataflow("doctor", "--home", home).code == 0
    found = {row["check"]: row["ok"] for row in dataflow("doctor", "--home", home, "--json").json}
    assert found["python"]
    assert found["state"]
    assert "versions" in found


def test_version(dataflow: Dataflow) -> None:
    assert dataflow("version", "--json").json == {"version": dataflow("version").out.strip()}


def test_versions(dataflow: Dataflow, home: Path) -> None:
    [row] = dataflow("versions", "list", "--home", home, "--json").json
    assert row["current"] is True
    assert row["version"] in dataflow("versions", "list", "--home", home).out
    shown = dataflow("versions", "show", "--home", home, "--json").json
    assert {k: shown[k] for k in ("version", "current", "documents")}.items() <= row.items()
    assert sum(shown["fates"].values()) > shown["documents"] == shown["fates"]["exported"]
    assert "docs" in dataflow("versions", "show", row["version"][:6], "--home", home).out
    assert dataflow("versions", "verify", "--home", home).code == 0
    assert dataflow("versions", "verify", "--home", home, "--json").json["ok"] is True
    wrong = dataflow("versions", "show", "v9", "--home", home)
    assert wrong.code == 1
    assert wrong.err.startswith("error: 'v9' is no version here; there are " + row["version"])


def test_verify_finds_damage_and_rollback_refuses_it(dataflow: Dataflow, own_home: Path) -> None:
    shard = sorted((own_home / "versions").glob("*/domain=*/*.parquet"))[0]
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.unlink()
    shard.write_bytes(data)
    said = dataflow("versions", "verify", "--home", own_home, "--json")
    assert said.code == 1
    assert said.json["ok"] is False
    assert shard.name in said.json["output"]
    [row] = dataflow("versions", "list", "--home", own_home, "--json").json
    refused = dataflow("versions", "rollback", row["version"], "--home", own_home)
    assert (refused.code, "is damaged" in refused.err) == (1, True)


def test_overrides_wait_for_approval_and_rollback_goes_back(
    dataflow: Dataflow, own_home: Path, job: Path
) -> None:
    [first] = dataflow("versions", "list", "--home", own_home, "--json").json
    strict = ("--set", "clean.boilerplate_filter.min_text_len=3000", "--set", "drift.max_domain_shift=1")
    strict += ("--set", "drift.max_language_shift=1", "--workers", 0, "--home", own_home)
    said = dataflow("run", job, *strict)
    assert said.code == 4
    assert "not current, because it was run with --set" in said.out
    second = dataflow("run", job, *strict, "--json").json
    assert second["current"] is False
    shown = dataflow("versions", "list", "--home", own_home, "--json").json
    assert {r["version"] for r in shown if r["current"]} == {first["version"]}
    told = dataflow("versions", "history", "--home", own_home).out
    assert ("built, waits" in told, "published" in told) == (True, True), "the first one became current"
    done = dataflow("versions", "approve", second["version"], "--home", own_home, "--json").json
    assert done == {"current": second["version"], "event": "no_airflow", "lacking": []}
    back = dataflow("versions", "rollback", first["version"], "--home", own_home)
    assert (back.code, first["version"] in back.out) == (0, True)
    again = dataflow("run", job, *strict, "--promote", "--json").json
    assert again["current"] is False, "a run undoes no rollback"
    assert f"versions rollback --home {own_home} {second['version']}" in again["message"]
    other = ("--set", "clean.boilerplate_filter.min_text_len=2900", *strict[2:])
    promoted = dataflow("run", job, *other, "--promote", "--json").json
    assert promoted["current"] is True


def test_dead_letters(dataflow: Dataflow, own_home: Path) -> None:
    found = dataflow("dead-letters", "list", "--home", own_home, "--json").json
    assert sum(found["groups"].values()) == len(found["letters"]) == 1
    letter = found["letters"][0]
    assert letter["path"].endswith("broken.jsonl")
    assert letter["error"] in dataflow("dead-letters", "list", "--home", own_home).out
    assert dataflow("dead-letters", "drop", "--home", own_home).code == 2
    assert dataflow("dead-letters", "retry", "ffffffffffff", "--home", own_home).code == 2
    put_back = dataflow("dead-letters", "retry", letter["id"], "--home", own_home, "--json").json
    assert put_back == {"letters": 1}
    assert "No open dead letters" in dataflow("dead-letters", "list", "--home", own_home).out
    assert dataflow("dead-letters", "drop", "--all", "--home", own_home, "--json").json == {"letters": 0}
