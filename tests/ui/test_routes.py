"""Every route of the plugin, through Airflow's real app: who gets in, who does not, what is written down."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from dataflow_ops.state.tables import dead_letter
from tests.ui.conftest import POST, Ui

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(280)]

TEXT = {"/api/run/removed", "/api/run/report", "/api/versions/report", "/api/samples/failure"}
"""Routes that show documents."""
OWN = {"/api/me", "/api/today", "/api/search", "/api/samples/datasets"}
"""Routes that ask for no right on one data set: they tell of the user, or of what they may read."""
LOOKS = {("POST", "/api/search")}
"""A POST that changes nothing: a text may be too long for an address."""

ODD = {"/api/versions/diff": 400}
"""There is one version here, which can't be compared with itself."""


def params(ui: Ui) -> dict[str, str]:
    """Whatever any GET may want, about data set ``tiny``."""
    return {
        "run": ui.run,
        "dataset": "tiny",
        "version": ui.version,
        "a": ui.version,
        "b": ui.version,
        "doc_id": ui.doc_id,
        "q": ui.doc_id,
        "error": "MalformedRecord",
        "step": "parse",
        "file": ui.samples.file,
        "record": "0",
        "turn": str(ui.samples.turn),
        "upload": ui.samples.upload,
        "after": str(ui.samples.turn),
        "task": ui.samples.task,
        "key": ui.samples.failure,
        "dag_run": "manual__1",
    }


def bodies(ui: Ui) -> dict[str, dict[str, Any]]:
    """One body for each POST, in an order in which all of them succeed."""
    letters = {"run": ui.run, "error": "MalformedRecord", "step": "parse"}
    version = {"dataset": "tiny", "version": ui.version, "note": "looked at it"}
    task = {"dataset": "tiny", "task": ui.samples.task}
    return {
        "/api/search": {"q": ui.doc_id, "dataset": "tiny"},
        "/api/run/pause": {"run": ui.live, "scope": "run", "why": "the disk is full"},
        "/api/run/resume": {"run": ui.live, "scope": "run"},
        "/api/run/urgent": {"run": ui.live, "urgent": True},
        "/api/run/cancel": {"run": ui.spare, "why": "a wrong source"},
        "/api/run/review": {"run": ui.run, "doc_id": ui.doc_id, "rule": "captcha", "verdict": "keep"},
        "/api/run/letters/drop": letters,
        "/api/run/letters/retry": letters,
        "/api/versions/approve": version,
        "/api/versions/rollback": version,
        "/api/versions/reject": version,
        "/api/samples/delete": {"dataset": "tiny", "record": [1]},
        "/api/samples/restore": {"dataset": "tiny", "record": [1]},
        "/api/samples/uploads": {"dataset": "tiny", "name": "c.jsonl", "size": 3},
        "/api/samples/upload/finish": {
            "dataset": "tiny",
            "upload": ui.samples.upload,
            "format": "instruction",
        },
        "/api/samples/upload/abort": {"dataset": "tiny", "upload": ui.samples.spare},
        "/api/samples/task/pause": {**task, "scope": "run", "why": "too dear"},
        "/api/samples/task/resume": {**task, "scope": "run"},
        "/api/samples/failure/edit": {
            **task,
            "key": ui.samples.failure,
            "prompt": [{"role": "user", "content": "again"}],
        },
        "/api/samples/failures/requeue": {**task, "key": ui.samples.failure},
        "/api/samples/failures/drop": task,
        "/api/samples/task/cancel": {"dataset": "tiny", "task": ui.samples.other_task},
    }


def test_every_route_is_known_here_and_nothing_else_is_served(ui: Ui) -> None:
    posts = {path for method, path in ui.routes if method == "POST"}
    assert posts == set(bodies(ui))
    assert {method for method, _ in ui.routes} == {"GET", "POST", "PUT", "MOUNT"}
    assert {path for method, path in ui.routes if method == "PUT"} == {"/api/samples/upload"}
    assert [path for method, path in ui.routes if method == "MOUNT"] == ["/static"]
    gets = {path for method, path in ui.routes if method == "GET"}
    assert gets >= TEXT | OWN
    for path in ("/docs", "/redoc", "/openapi.json", "/static/../app.py", "/static/%2e%2e/app.py"):
        assert httpx.get(f"{ui.url}/dataflow{path}").status_code == 404, path


def test_without_signing_in_there_is_only_the_code_of_the_pages(ui: Ui) -> None:
    for method, path in ui.routes:
        if method in ("MOUNT", "PUT"):
            continue
        answer = ui.get("", path, **params(ui)) if method == "GET" else ui.post("", path, **bodies(ui)[path])
        assert answer.status_code == 401, (method, path, answer.text)
    code = httpx.get(f"{ui.url}/dataflow/static/run.js")
    assert code.status_code == 200
    assert code.headers["content-type"].startswith("text/javascript")
    assert (code.headers["cache-control"], "etag" in code.headers) == ("no-cache", True)
    again = httpx.get(str(code.url), headers={"if-none-match": code.headers["etag"]})
    assert again.status_code == 304


def test_a_viewer_reads_numbers_but_no_documents_and_may_not_act(ui: Ui) -> None:
    for method, path in ui.routes:
        if method == "GET":
            answer = ui.get("viewer", path, **params(ui))
            expected = 403 if path in TEXT else ODD.get(path, 200)
        elif method == "POST":
            answer = ui.post("viewer", path, **bodies(ui)[path])
            expected = 200 if (method, path) in LOOKS else 403
        else:
            continue
        assert answer.status_code == expected, (method, path, answer.text)
    found = ui.get("viewer", "/api/document", dataset="tiny", version=ui.version, doc_id=ui.doc_id).json()
    assert found["text"] is None
    found = ui.get("texts", "/api/document", dataset="tiny", version=ui.version, doc_id=ui.doc_id).json()
    assert found["text"]
    with ui.state() as state:
        assert state.pauses() == []
        assert state.reviews_of("tiny") == []


@pytest.mark.parametrize("user", ["elsewhere", "nobody"])
def test_who_has_no_right_on_the_data_set_gets_nothing(ui: Ui, user: str) -> None:
    for method, path in ui.routes:
        if method in ("MOUNT", "PUT") or path in OWN:
            continue
        read = method == "GET"
        answer = ui.get(user, path, **params(ui)) if read else ui.post(user, path, **bodies(ui)[path])
        assert answer.status_code == 403, (method, path, answer.text)
    assert ui.get(user, "/api/me", dataset="tiny").json() == {
        "user": user,
        "read": False,
        "text": False,
        "act": False,
    }
    assert "tiny" not in ui.get(user, "/api/today").text
    assert ui.get(user, "/api/search", q=ui.doc_id).json()["results"] == []
    assert ui.get(user, "/api/search", q=ui.doc_id, dataset="tiny").status_code == 403


def test_naming_two_things_needs_the_rights_on_both(ui: Ui) -> None:
    """Else a right on one data set would open the other."""
    mixed = {**params(ui), "run": ui.other}
    for method, path in ui.routes:
        if method == "GET" and path not in OWN:
            assert ui.get("elsewhere", path, **mixed).status_code == 403, path
    assert ui.get("elsewhere", "/api/run", run=ui.other).status_code == 200
    body = {**bodies(ui)["/api/versions/reject"], "run": ui.other}
    assert ui.post("elsewhere", "/api/versions/reject", **body).status_code == 403


def test_what_does_not_exist_is_told_only_to_who_could_see_it(ui: Ui) -> None:
    for run in ("airflow-tiny__full-scheduled__2", "no-such-run"):
        answer = ui.get("viewer", "/api/run", run=run)
        assert (answer.status_code, answer.json()["detail"][:11]) == (404, "not started")
        assert ui.get("elsewhere", "/api/run", run=run).status_code == 403
    assert ui.get("elsewhere", "/api/run", run="airflow-other__full-x").status_code == 404
    assert ui.get("viewer", "/api/versions", dataset="none").status_code in (200, 404)
    assert ui.get("elsewhere", "/api/versions", dataset="none").status_code == 403


def test_three_rights_are_granted_one_by_one(ui: Ui) -> None:
    rights = {
        user: tuple(
            ui.get(user, "/api/me", dataset="tiny").json()[right] for right in ("read", "text", "act")
        )
        for user in ("admin", "op", "user", "viewer", "texts", "hands")
    }
    everything, nothing_more = (True, True, True), (True, False, False)
    assert rights == {
        "admin": everything,
        "op": everything,
        "user": everything,
        "viewer": nothing_more,
        "texts": (True, True, False),
        "hands": (True, False, True),
    }
    assert ui.get("texts", "/api/run/removed", run=ui.run).status_code == 200
    pause = bodies(ui)["/api/run/pause"]
    assert ui.post("texts", "/api/run/pause", **pause).status_code == 403
    assert ui.get("hands", "/api/run/removed", run=ui.run).status_code == 403
    assert ui.post("hands", "/api/run/review", **bodies(ui)["/api/run/review"]).status_code == 403
    assert ui.post("hands", "/api/run/pause", **pause).status_code == 200
    assert ui.post("hands", "/api/run/resume", run=ui.live).status_code == 200


def test_a_wider_scope_takes_wider_rights(ui: Ui) -> None:
    for scope in ("dataset", "all"):
        answer = ui.post("hands", "/api/run/pause", run=ui.live, scope=scope)
        assert answer.status_code == 403, scope
        assert ui.post("user", "/api/run/pause", run=ui.live, scope=scope, why="x").status_code == 200
        paused = ui.get("viewer", "/api/run", run=ui.live).json()["pause"]
        assert (paused["scope"], paused["who"], paused["why"]) == (scope, "user", "x")
        after = ui.post("user", "/api/run/resume", run=ui.live, scope=scope).json()
        assert after["pause"] is None


def test_another_sites_page_cannot_act(ui: Ui) -> None:
    url = f"{ui.url}/dataflow/api/run/urgent"
    body = {"run": ui.live, "urgent": False}
    cookies = {"_token": ui.token("admin")}
    with httpx.Client(cookies=cookies) as browser:
        assert browser.post(url, json=body).status_code == 403
        assert browser.post(url, data=body, headers=POST).status_code == 403
        plain = {**POST, "content-type": "text/plain"}
        assert browser.post(url, content='{"run": "x", "urgent": true}', headers=plain).status_code == 403
        assert browser.post(url, json=body, headers=POST).status_code == 200
        assert browser.get(f"{ui.url}/dataflow/api/run", params={"run": ui.live}).status_code == 200


def test_every_action_is_in_the_audit_log(ui: Ui) -> None:
    done = []
    for path, body in bodies(ui).items():
        answer = ui.post("admin", path, **body)
        if ("POST", path) in LOOKS:
            assert answer.status_code == 200, answer.text
            continue
        # A version that is current can't be approved again or rejected: the attempt is written down too.
        assert answer.status_code in ((200, 400, 409) if "versions" in path else (200,)), (path, answer.text)
        named = path.removeprefix("/api/").removeprefix("run/").removeprefix("versions/")
        done.append(f"dataflow.{named.replace('/', '.')}")
    headers = {"Authorization": f"Bearer {ui.token('admin')}"}
    asked = {"limit": 200, "owner": "admin"}
    found = httpx.get(f"{ui.url}/api/v2/eventLogs", params=asked, headers=headers).json()["event_logs"]
    logged = {one["event"]: one for one in found if one["event"].startswith("dataflow.")}
    assert set(done) <= set(logged)
    assert {one["dag_id"] for one in logged.values()} == {"tiny__full"}
    pause = logged["dataflow.pause"]
    assert (pause["owner"], pause["run_id"]) == ("admin", "manual__1")
    assert "the disk is full" in pause["extra"]
    with ui.state() as state:
        events = {event.topic: event for event in state.pending_events(10_000)}
    assert events["pause.set"].payload["who"] == "admin"
    assert {"pause.cleared", "run.urgent", "review.set"} <= set(events)


def test_one_letter_is_answered_like_its_group(ui: Ui) -> None:
    with ui.state() as state, state.db.write() as connection:
        connection.execute(sa.update(dead_letter).values(state="open"))
    group = bodies(ui)["/api/run/letters/drop"]
    (letter,) = ui.get("viewer", "/api/run/letters/group", **group).json()["letters"]
    assert letter["path"] == "broken.jsonl"
    one = {**group, "letter": letter["id"]}
    for user in ("viewer", "texts", "elsewhere"):
        assert ui.post(user, "/api/run/letters/drop", **one).status_code == 403, user
    assert ui.post("hands", "/api/run/letters/drop", **{**one, "letter": "none"}).json()["dropped"] == 0
    found = ui.post("hands", "/api/run/letters/drop", **one).json()
    assert (found["dropped"], found["code"], found["values"]) == (1, "letters_dropped", {"count": 1})
    headers = {"Authorization": f"Bearer {ui.token('admin')}"}
    asked = {"limit": 200, "owner": "hands", "event": "dataflow.letters.drop"}
    logged = httpx.get(f"{ui.url}/api/v2/eventLogs", params=asked, headers=headers).json()["event_logs"]
    assert any(letter["id"] in entry["extra"] for entry in logged)


def test_errors_of_ours_are_sentences(ui: Ui) -> None:
    answer = ui.get("admin", "/api/run/where", run=ui.run, layer="cellar")
    assert answer.status_code == 400
    assert "there are ingest, parse" in answer.json()["detail"]
    assert "code" not in answer.json()
    answer = ui.post("admin", "/api/versions/reject", dataset="tiny", version="none", note="x")
    assert answer.status_code == 404
    assert (answer.json()["code"], answer.json()["values"]) == (
        "no_such_version",
        {"version": "none", "dataset": "tiny"},
    )
    answer = ui.get("elsewhere", "/api/run", run=ui.run)
    assert (answer.json()["code"], answer.json()["values"]) == (
        "no_right",
        {"rights": "read", "where": "tiny__full"},
    )
    assert ui.get("admin", "/api/run").status_code == 422
    assert ui.post("admin", "/api/run/pause", run=ui.run).status_code == 400
    assert ui.get("admin", "/api/run/report", run=ui.live).status_code == 404
    assert ui.post("admin", "/api/run/urgent", run=ui.live).status_code == 422


def test_a_run_is_cancelled_once_and_says_by_whom(ui: Ui) -> None:
    ui.post("admin", "/api/run/cancel", run=ui.spare, why="x")  # where no test before has done so
    with ui.state() as state:
        row = state.get_run(ui.spare)
    assert row is not None
    assert (row.state, (row.detail or "")[:18]) == ("CANCELLED", "cancelled by admin")
    again = ui.post("admin", "/api/run/cancel", run=ui.spare)
    assert (again.status_code, again.json()["code"]) == (400, "ended_cancel")


def test_a_character_that_no_text_has_is_refused(ui: Ui) -> None:
    for odd in ("x\0y", "\0"):
        assert ui.get("admin", "/api/run", run=odd).status_code == 422
        assert ui.get("admin", "/api/me", dataset=odd).status_code == 422
        assert ui.get("admin", "/api/search", q=odd).status_code == 422
        asked = {**params(ui), "error": odd}
        assert ui.get("admin", "/api/run/letters/group", **asked).status_code == 422
        answer = ui.post("admin", "/api/run/pause", run=ui.live, why=odd)
        assert (answer.status_code, "'why' holds a character" in answer.json()["detail"]) == (422, True)
    headers = {"Authorization": f"Bearer {ui.token('admin')}", "content-type": "application/json"}
    half = '{"run": "' + ui.live + '", "why": "\\ud800"}'
    url = f"{ui.url}/dataflow/api/run/pause"
    assert httpx.post(url, content=half, headers=headers).status_code == 422


def test_a_report_reaches_nothing_around_it(ui: Ui) -> None:
    answer = ui.get("user", "/api/run/report", run=ui.run)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert policy.startswith("sandbox ")
    assert "allow-same-origin" not in policy
    assert answer.text.startswith("<!DOCTYPE html>") or answer.text.startswith("<!doctype html>")


def test_both_pages_are_announced_to_the_host(ui: Ui) -> None:
    headers = {"Authorization": f"Bearer {ui.token('admin')}"}
    plugins = httpx.get(f"{ui.url}/api/v2/plugins", headers=headers).json()["plugins"]
    (mine,) = [one for one in plugins if one["name"] == "dataflow"]
    apps = {app["destination"]: app for app in mine["react_apps"]}
    assert set(apps) == {"dag_run", "nav"}
    for app in apps.values():
        assert httpx.get(f"{ui.url}/{app['bundle_url']}").status_code == 200
    errors = httpx.get(f"{ui.url}/api/v2/plugins/importErrors", headers=headers).json()
    assert errors["total_entries"] == 0, errors
