"""The product page's routes inside Airflow's own app, for people with and without rights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.console.search import search
from tests.console.product_home import build
from tests.pipeline import inside

ROOT = Path(__file__).resolve().parents[2]
API = "/dataflow/api"


class Asked:
    """Questions put once, in one child; answers by name."""

    def __init__(self, root: Path) -> None:
        self.product = build(root)
        self.second = inside.run(
            self.product.job, self.product.root / "home", set=["mixing.caps={pool: 300}"], promote=False
        ).version_id
        with self.product.state() as state:
            found = search(self.product.home, state, "note-0.txt", by="url")
            self.doc_id = found["results"][0]["doc_id"]
        named = self._questions()
        answers = root / "answers.json"
        questions = root / "questions.json"
        questions.write_text(
            json.dumps({"version": self.product.version, "questions": list(named.values())}), encoding="utf-8"
        )
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "AIRFLOW_HOME": str(root / "airflow"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(root / "no-dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__AUTH_MANAGER": (
                "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
            ),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{root / 'airflow.db'}",
            "AIRFLOW__API_AUTH__JWT_SECRET": "not-a-secret-but-long-enough-for-a-test-of-routes",
            "DATAFLOW_HOME": str(self.product.root / "home"),
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.ui.product_app", str(questions), str(answers)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert answers.is_file(), done.stdout[-3000:] + done.stderr[-6000:]
        found = json.loads(answers.read_text(encoding="utf-8"))
        self.answers = dict(zip(named, found["answers"], strict=True))
        self.log, self.events, self.waits = found["log"], found["events"], found["waits"]

    def _questions(self) -> dict[str, tuple[str, str, str, Any]]:
        """Name -> (role, method, path, body), in the order in which they are asked."""
        first, second = self.product.version, self.second
        text = self.product.texts["note-0.txt"]
        of = "dataset=tiny"
        reads = {
            "today": f"{API}/today",
            "search": f"{API}/search?q=note-0.txt&by=url",
            "document": f"{API}/document?{of}&doc_id={self.doc_id}",
            "versions": f"{API}/versions?{of}",
            "diff": f"{API}/versions/diff?{of}&a={first}&b={second}",
            "rules": f"{API}/rules?{of}",
        }
        decision = {"dataset": "tiny", "version": second, "note": "looked at it"}
        back = {"dataset": "tiny", "version": first, "note": "worse"}
        report = f"{API}/versions/report?{of}&version={first}"
        asked: dict[str, tuple[str, str, str, Any]] = {}
        for name, path in {**reads, "report": report}.items():
            asked[f"nobody {name}"] = ("", "GET", path, None)
        asked["nobody approve"] = ("", "POST", f"{API}/versions/approve", decision)
        asked["nobody search text"] = ("", "POST", f"{API}/search", {"q": text})
        for name, path in reads.items():
            asked[f"viewer {name}"] = ("viewer", "GET", path, None)
        asked["viewer report"] = ("viewer", "GET", report, None)
        for action in ("approve", "reject", "rollback"):
            asked[f"viewer {action}"] = ("viewer", "POST", f"{API}/versions/{action}", decision)
        asked["viewer search text"] = ("viewer", "POST", f"{API}/search", {"q": text})
        for name, path in reads.items():
            asked[f"admin {name}"] = ("admin", "GET", path, None)
        asked["admin report"] = ("admin", "GET", report, None)
        asked["admin search text"] = ("admin", "POST", f"{API}/search", {"q": text})
        asked["unknown version"] = ("admin", "GET", f"{API}/rules?{of}&version=none", None)
        asked["unknown document"] = ("admin", "GET", f"{API}/document?{of}&doc_id={'0' * 32}", None)
        asked["unknown data set"] = ("admin", "GET", f"{API}/rules?dataset=other", None)
        asked["empty search"] = ("admin", "GET", f"{API}/search?q=%20", None)
        asked["approve"] = ("admin", "POST", f"{API}/versions/approve", decision)
        asked["approve again"] = ("admin", "POST", f"{API}/versions/approve", decision)
        asked["rollback"] = ("admin", "POST", f"{API}/versions/rollback", back)
        asked["forth"] = ("admin", "POST", f"{API}/versions/rollback", decision)
        asked["after"] = ("admin", "GET", reads["versions"], None)
        asked["there already"] = ("admin", "POST", f"{API}/versions/rollback", decision)
        asked["reject"] = ("admin", "POST", f"{API}/versions/reject", back)
        asked["after all"] = ("admin", "POST", f"{API}/versions/approve", back)
        return asked

    def status(self, who: str) -> dict[str, int]:
        return {
            name.removeprefix(who + " "): answer["status"]
            for name, answer in self.answers.items()
            if name.startswith(who + " ")
        }

    def body(self, name: str) -> Any:
        answer = self.answers[name]
        assert answer["status"] == 200, answer
        return answer["body"]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return Asked(tmp_path_factory.mktemp("routes"))


def test_nobody_gets_in_without_signing_in(asked: Asked) -> None:
    assert set(asked.status("nobody").values()) == {401}


def test_a_viewer_reads_numbers_but_no_text_and_does_nothing(asked: Asked) -> None:
    found = asked.status("viewer")
    forbidden = {"report", "approve", "reject", "rollback"}
    assert {name for name, status in found.items() if status == 403} == forbidden
    assert {status for name, status in found.items() if name not in forbidden} == {200}
    assert asked.body("viewer document")["text"] is None
    assert [row["act"] for row in asked.body("viewer today")["datasets"]] == [False]
    assert [row["snippet"] for row in asked.body("viewer search text")["results"]] == [None]


def test_an_admin_reads_everything(asked: Asked) -> None:
    assert set(asked.status("admin").values()) == {200}
    assert asked.body("admin document")["text"]
    assert asked.body("admin search text")["results"][0]["exact"]
    assert "<html" in asked.body("admin report").lower()


def test_today_knows_the_dags_of_airflow(asked: Asked) -> None:
    [tiny] = asked.body("admin today")["datasets"]
    assert tiny["act"] is True
    assert [(dag["dag_id"], dag["mode"], dag["is_paused"]) for dag in tiny["dags"]] == [
        ("tiny__full", "full", False),
        ("tiny__incremental", "incremental", True),
    ]
    assert tiny["dags"][0]["schedule"] == "0 2 * * *"
    assert tiny["dags"][0]["next_run"] == 1777600800.0
    assert tiny["dags"][1]["next_run"] is None
    assert "approve" in {decision["kind"] for decision in tiny["decisions"]}


def test_versions_name_their_consumers_and_reports(asked: Asked) -> None:
    rows = {row["version"]: row for row in asked.body("admin versions")["versions"]}
    [consumer] = rows[asked.product.version]["consumers"]
    assert (consumer["dag_id"], consumer["run_id"], consumer["state"]) == ("train", "asset__1", "success")
    assert rows[asked.second]["consumers"] == []
    assert rows[asked.second]["report"].startswith("dataflow/api/versions/report?dataset=tiny&version=")


def test_the_comparison_adds_up(asked: Asked) -> None:
    found = asked.body("viewer diff")
    documents = found["documents"]
    assert documents["same"] + documents["removed"] == documents["a"]
    assert [cause["cause"] for cause in found["causes"]] == ["mixing"]


def test_unknown_things_are_not_there(asked: Asked) -> None:
    for name in ("unknown version", "unknown document", "unknown data set"):
        assert asked.answers[name]["status"] == 404, name
        assert asked.answers[name]["body"]["detail"]
    assert asked.answers["empty search"]["status"] == 400


def test_a_decision_that_makes_a_version_current_is_told_once_each(asked: Asked) -> None:
    first, second = asked.product.version, asked.second
    told = [(event["version"], event["current"]) for event in asked.events]
    assert told == [(second, True), (first, True), (second, True)]
    assert [asked.body(name)["event"] for name in ("approve", "rollback", "forth")] == ["sent"] * 3
    assert "event" not in asked.body("there already")
    assert "event" not in asked.body("reject")
    # The later full version is current: what it brought would leave unseen.
    assert asked.answers["after all"]["status"] == 400
    assert "overtaken" in json.dumps(asked.answers["after all"]["body"])
    with asked.product.state() as state:
        row = state.get_run(state.versions("tiny")[-1].run_id)
    assert row is not None
    one = asked.events[1]
    assert one["manifest"] == f"versions/{first}/manifest.json"
    manifest = json.loads((asked.product.home.root / one["manifest"]).read_text(encoding="utf-8"))
    totals = manifest["totals"]
    assert (one["dataset"], one["mode"], one["data_date"]) == ("tiny", "full", row.data_date)
    assert (one["documents"], one["tokens"]) == (totals["documents"], totals["tokens"])


def test_a_dag_run_that_waits_for_the_decision_tells_by_itself(asked: Asked) -> None:
    assert asked.waits.pop("gone") == ["tiny__incremental", "x"]
    assert [name for name, waits in asked.waits.items() if waits] == ["running-deferred", "running-None"]


def test_decisions_say_who_and_stand_in_the_audit_log(asked: Asked) -> None:
    assert asked.body("approve")["message"].endswith("is approved and current.")
    assert asked.answers["approve again"]["status"] == 400
    assert asked.body("rollback")["message"].startswith(
        f"{asked.product.version} is current again; no DAG run"
    )
    forth = asked.body("forth")
    assert forth["message"].endswith("may have to be run again: train.")
    assert (forth["code"], forth["values"]["used"]) == ("current_again_used", "train")
    assert [consumer["dag_id"] for consumer in forth["consumers"]] == ["train"]
    events = asked.body("after")["events"]
    assert [(e["action"], e["who"]) for e in events[:3]] == [
        ("rolled_back", "the admin"),
        ("rolled_back", "the admin"),
        ("approved", "the admin"),
    ]
    assert events[2]["note"] == "looked at it"
    assert asked.log == [
        ["dataflow.approve", "the admin", "tiny__full"],
        ["dataflow.approve", "the admin", "tiny__full"],
        ["dataflow.rollback", "the admin", "tiny__full"],
        ["dataflow.rollback", "the admin", "tiny__full"],
        ["dataflow.rollback", "the admin", "tiny__full"],
        ["dataflow.reject", "the admin", "tiny__full"],
        ["dataflow.approve", "the admin", "tiny__full"],
    ]
