"""What people decide about versions, and what is written down of it."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.versions import VersionBook
from tests.cases.product import Product, dataflow
from tests.pipeline.test_days import put

pytestmark = pytest.mark.xdist_group("decisions")


def two_domains(tmp_path: Path, **settings: Any) -> Product:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    put(tmp_path / "one", "a.txt")
    sources = [{"source_id": n, "path": str(tmp_path / n), "domain": n} for n in ("one", "two")]
    return Product(tmp_path, sources, settings)


def report_of(made: Product, version: str) -> str:
    return (made.home / "versions" / version / "report.html").read_text("utf-8")


def test_a_rejected_version_stays_refused_until_it_is_approved_after_all(tmp_path: Path) -> None:
    made = two_domains(tmp_path)
    first = made.run().data["version"]
    put(tmp_path / "two", "b.txt", mark="q")
    second = made.run().data
    assert second["state"] == "AWAITING_APPROVAL"
    said = made.ask("versions", "reject", "--note", "'two' came by mistake")
    assert said == {"rejected": second["version"]}
    assert "rejected by a person" in report_of(made, second["version"])
    again = dataflow("versions", "reject", second["version"], "--home", made.home)
    assert (again.code, "was rejected before" in again.err) == (2, True)
    refused = dataflow("versions", "rollback", second["version"], "--home", made.home)
    assert (refused.code, f"versions approve --home {made.home} {second['version']}" in refused.err) == (
        1,
        True,
    )
    nothing = dataflow("versions", "approve", "--home", made.home)
    assert (nothing.code, "no version waits" in nothing.err) == (2, True)

    third = made.run()
    assert (third.code, third.data["version"], third.data["current"]) == (0, second["version"], False)
    assert (third.data["state"], third.data["waits"]) == ("SUCCEEDED", [])
    assert f"{getpass.getuser()} rejected it: 'two' came by mistake" in third.data["message"]
    states = {v["version"]: v["state"] for v in made.ask("versions", "list")}
    assert states == {first: "PUBLISHED", second["version"]: "REJECTED"}

    with VersionBook(open_home(made.home)) as book:
        assert book.approve(second["version"], who="ann", note="it did not") == second["version"]
        found = [(e["version"], e["action"], e["who"], e["note"]) for e in book.events("cases")]
        with pytest.raises(ConfigError, match="is current already"):
            book.approve(second["version"], who="ann")
    assert found[:2] == [
        (second["version"], "approved", "ann", "it did not"),
        (second["version"], "rejected", getpass.getuser(), "'two' came by mistake"),
    ]
    assert [(v, a) for v, a, _, _ in found[2:]] == [(second["version"], "published"), (first, "published")]
    assert found[3][3] == "became current"
    assert "share of domain 'two'" in found[2][3]


def test_the_current_version_can_t_be_rejected(tmp_path: Path) -> None:
    made = two_domains(tmp_path)
    version = made.run().data["version"]
    refused = dataflow("versions", "reject", version, "--home", made.home)
    assert (refused.code, "go back to another one first" in refused.err) == (1, True)
    assert [e["action"] for e in made.ask("versions", "history")] == ["published"]


def test_reports_say_how_their_versions_stand_after_each_decision(tmp_path: Path) -> None:
    made = two_domains(tmp_path)
    first = made.run().data["version"]
    put(tmp_path / "two", "b.txt", mark="q")
    second = made.run().data["version"]
    assert "NOT current." in report_of(made, second)
    assert "current version" in report_of(made, first)
    made.ask("versions", "approve", second, "--note", "wanted")
    assert "NOT current." not in report_of(made, second)
    assert made.report()["state"] == "SUCCEEDED"
    assert "not the current version any more" in report_of(made, first)
    assert "versions approve" not in report_of(made, first), "nothing waits for a person there"
    made.ask("versions", "rollback", first, "--note", "second thoughts")
    assert "not the current version any more" in report_of(made, second)
    assert "not the current version any more" not in report_of(made, first)
    assert made.ask("versions", "history")[0]["action"] == "rolled_back"


def test_a_run_does_not_undo_a_rollback(tmp_path: Path) -> None:
    made = two_domains(tmp_path)
    first = made.run().data["version"]
    put(tmp_path / "one", "b.txt", mark="q")
    second = made.run().data
    assert second["current"]
    made.ask("versions", "rollback", first, "--note", "losses spike")
    again = made.run()
    assert (again.code, again.data["version"], again.data["current"]) == (0, second["version"], False)
    assert f"chose {first} instead of it: losses spike" in again.data["message"]
    assert made.ask("versions", "history")[0]["action"] == "rolled_back"
    made.ask("versions", "rollback", second["version"], "--note", "it was the loader")
    assert made.run().data["current"]
    put(tmp_path / "one", "c.txt", mark="r")
    assert made.run().data["current"], "what nobody has seen yet is none of the choices"


def test_a_full_version_is_compared_with_the_last_full_one_never_with_a_day(tmp_path: Path) -> None:
    made = two_domains(tmp_path)
    for name in ("b.txt", "c.txt"):
        put(tmp_path / "one", name, mark=name[0])
    assert made.run().data["current"]
    put(tmp_path / "two", "d.txt", mark="d")
    day = made.run("--mode", "incremental")
    assert (day.code, day.data["state"], day.data["documents"]) == (0, "SUCCEEDED", 4)
    assert made.report()["drift"] == [], "all of the day is of domain 'two', and that is no drift"
    full = made.run()
    assert "share of domain 'two' by documents moved from 0.0% to 25.0%" in full.data["waits"]
    made.job.write_text(made.job.read_text() + "drift: {max_domain_shift: 0.9, max_language_shift: 0.9}\n")
    assert made.run().data["current"], "the thresholds are the job's"
