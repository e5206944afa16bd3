"""Samples through Airflow's real app: who sees texts, who changes and sends what."""

from __future__ import annotations

import hashlib
import json

import httpx
import pytest

from tests.ui.conftest import POST, Ui

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(280)]


def test_texts_are_their_own_right(ui: Ui) -> None:
    for path, more in (
        ("turns", {}),
        ("dialogue", {"file": ui.samples.file, "record": 0}),
        ("letters", {}),
        ("history", {"turn": ui.samples.turn}),
    ):
        seen = ui.get("viewer", f"/api/samples/{path}", dataset="tiny", **more)
        assert seen.status_code == 200, (path, seen.text)
        assert "secret" not in seen.text
        assert "{bad" not in seen.text
    assert "secret" in ui.get("texts", "/api/samples/turns", dataset="tiny").text
    assert "{bad" in ui.get("texts", "/api/samples/letters", dataset="tiny").text
    whole = ui.get("texts", "/api/samples/dialogue", dataset="tiny", file=ui.samples.file, record=0).json()
    assert [turn["content"] for turn in whole["turns"]] == ["the secret word", "yes"]


def test_looking_for_words_is_reading_them(ui: Ui) -> None:
    for path in ("turns", "stats"):
        found = ui.get("viewer", f"/api/samples/{path}", dataset="tiny", contains="secret")
        assert found.status_code == 403, found.text
    body = {"dataset": "tiny", "contains": "secret"}
    assert ui.post("hands", "/api/samples/delete", **body).status_code == 403
    found = ui.get("texts", "/api/samples/turns", dataset="tiny", contains="secret").json()
    assert [turn["id"] for turn in found["turns"]] == [ui.samples.turn]


def test_pages_and_sums(ui: Ui) -> None:
    first = ui.get("viewer", "/api/samples/turns", dataset="tiny", file=ui.samples.file, limit=2).json()
    rest = ui.get(
        "viewer", "/api/samples/turns", dataset="tiny", file=ui.samples.file, limit=2, after=first["next"]
    ).json()
    assert (len(first["turns"]), len(rest["turns"]), rest["next"]) == (2, 1, None)
    sums = ui.get("viewer", "/api/samples/stats", dataset="tiny", file=ui.samples.file).json()
    assert (sums["turns"], sums["by_role"]) == (3, {"assistant": 2, "user": 1})
    far = ui.get("viewer", "/api/samples/turns", dataset="tiny", file=ui.samples.file, after=1 << 40)
    assert far.status_code == 400
    assert "begin without it" in far.text  # an id that may be, and is not of this file


def test_deleting_and_restoring_say_by_whom(ui: Ui) -> None:
    body = {"dataset": "tiny", "file": [ui.samples.file], "record": [0]}
    assert ui.post("texts", "/api/samples/delete", **body).status_code == 403
    done = ui.post("user", "/api/samples/delete", **body).json()
    assert (done["state"], done["counts"]["rows"]) == ("SUCCESS", 2)
    asked = {"dataset": "tiny", "file": ui.samples.file}
    assert len(ui.get("viewer", "/api/samples/turns", **asked).json()["turns"]) == 1
    assert len(ui.get("viewer", "/api/samples/turns", **asked, deleted=True).json()["turns"]) == 2
    assert ui.post("user", "/api/samples/restore", **body).json()["counts"]["rows"] == 2
    assert len(ui.get("viewer", "/api/samples/turns", **asked).json()["turns"]) == 3
    changes = ui.get("viewer", "/api/samples/history", dataset="tiny", turn=ui.samples.turn).json()["changes"]
    assert [(c["kind"], c["who"], c["field"]) for c in changes] == [
        ("delete", "user", "deleted_at"),
        ("restore", "user", "deleted_at"),
    ]


def test_an_upload_that_was_cut_goes_on(ui: Ui) -> None:
    turns = [{"role": "user", "content": "水" * 3000}]
    data = (json.dumps({"messages": turns}, ensure_ascii=False) + "\n").encode()
    sha256 = hashlib.sha256(data).hexdigest()
    begun = ui.post(
        "user", "/api/samples/uploads", dataset="tiny", name="d.jsonl", size=len(data), sha256=sha256
    )
    at = {"dataset": "tiny", "upload": begun.json()["upload_id"]}
    path = "/api/samples/upload"
    assert ui.put("user", path, data[:5000], offset=0, **at).json()["received"] == 5000
    assert ui.put("user", path, data[4000:], offset=4000, **at).status_code == 409  # an answer was lost
    here = ui.get("user", path, **at).json()["received"]
    assert here == 5000
    assert ui.put("user", path, b"x", offset=5 << 30, **at).status_code == 409  # as far as large files go
    assert ui.post("user", f"{path}/finish", **at).status_code == 409
    assert ui.put("user", path, data[here:], offset=here, **at).json()["received"] == len(data)
    done = ui.post("user", f"{path}/finish", **at).json()
    assert done["task"].startswith("import-")
    assert ui.post("user", f"{path}/finish", **at).json() == done


def test_who_may_not_act_sends_nothing(ui: Ui) -> None:
    at = {"dataset": "tiny", "upload": ui.samples.spare, "offset": 0}
    for user in ("viewer", "texts", "elsewhere", "nobody"):
        assert ui.put(user, "/api/samples/upload", b"x", **at).status_code == 403, user
    assert ui.put("", "/api/samples/upload", b"x", **at).status_code == 401
    other = {**at, "dataset": "other"}
    assert ui.put("elsewhere", "/api/samples/upload", b"x", **other).status_code == 400
    url = f"{ui.url}/dataflow/api/samples/upload"
    with httpx.Client(cookies={"_token": ui.token("admin")}) as browser:
        plain = {"content-type": "text/plain", **POST}
        assert browser.put(url, params=at, content=b"x", headers=plain).status_code == 403
        bare = {"content-type": "application/octet-stream"}
        assert browser.put(url, params=at, content=b"x", headers=bare).status_code == 403
