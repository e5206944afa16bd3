"""``dataflow relay …`` as a person calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataflow_ops.state.outbox import emit
from dataflow_ops.state.store import StateStore
from tests.cli.conftest import Dataflow
from tests.pipeline.receiver import SECRET, Receiver

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with three events: two of one subject, one of another."""
    monkeypatch.setenv("DESK_SECRET", SECRET)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("DATAFLOW_WEBHOOKS", raising=False)
    with StateStore(f"sqlite:///{tmp_path / 'state.db'}") as store, store.db.write() as connection:
        for subject in ("bad", "bad", "good"):
            emit(connection, store.db, "note.new", subject, {"text": "坏"})
    return tmp_path


def _name(home: Path, port: int) -> None:
    (home / "webhooks.yaml").write_text(
        f'webhooks: [{{name: desk, url: "http://127.0.0.1:{port}", topics: ["*"], secret_env: DESK_SECRET}}]',
        encoding="utf-8",
    )


def test_from_naming_a_receiver_to_giving_up(dataflow: Dataflow, place: Path) -> None:
    home = ("--home", place)
    assert "No endpoints" in dataflow("relay", "status", *home).out
    said = dataflow("relay", "run", "--once", *home)
    assert said.code == 2
    assert "names no webhooks" in said.err
    with Receiver(lambda event, number: 404 if event["subject"] == "bad" else 204) as receiver:
        _name(place, receiver.port)
        (before,) = dataflow("relay", "status", *home, "--json").json
        assert (before["waiting"], before["dead"], before["configured"]) == (3, 0, True)
        said = dataflow("relay", "run", "--once", *home)
        assert said.code == 4
        assert said.out == "desk: 0 waiting, 1 sent, 0 failed and repeated, 2 dead.\n"
        assert "event 1 (note.new of bad) is dead: answered 404" in said.err
        listed = dataflow("relay", "list", *home)
        assert "1/desk" in listed.out
        assert f"dataflow relay retry --home {place} ID" in listed.out
        assert [row["id"] for row in dataflow("relay", "list", *home, "--json").json] == ["1/desk", "2/desk"]
        assert len(dataflow("relay", "list", "--state", "all", *home, "--json").json) == 3
        doctor = dataflow("doctor", *home)
        assert doctor.code == 1
        assert "webhook desk" in doctor.out
        assert "0 waiting; 2 dead" in doctor.out
        assert dataflow("relay", "drop", "1", *home).out == "1 delivery dropped.\n"
        receiver.script = lambda event, number: 200
        assert dataflow("relay", "retry", "--all", *home, "--json").json == {"deliveries": 1}
        said = dataflow("relay", "run", "--once", *home, "--json")
        assert said.code == 0
        assert said.json["done"] == {"desk": {"sent": 1, "failed": 0, "dead": 0}}
        assert [event["id"] for event in receiver.applied] == [3, 2]
    assert dataflow("doctor", *home).code == 0
    metrics = dataflow("relay", "status", "--prometheus", *home).out
    assert 'dataflow_relay_sent_events{endpoint="desk"} 2\n' in metrics


def test_an_endpoint_that_no_file_names_any_more(dataflow: Dataflow, place: Path) -> None:
    home = ("--home", place)
    with Receiver() as receiver:
        port = receiver.port
    _name(place, port)  # nobody is there
    said = dataflow("relay", "run", "--once", *home)
    assert said.code == 4
    assert "can't be reached" in said.err
    (place / "webhooks.yaml").unlink()
    assert "(in no file)" in dataflow("relay", "status", *home).out
    doctor = dataflow("doctor", *home)
    assert f"dataflow relay drop --home {place} --endpoint desk" in doctor.out
    assert dataflow("relay", "drop", "--endpoint", "desk", *home).out == "3 deliveries dropped.\n"
    assert "webhook" not in dataflow("doctor", *home).out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("retry",), "name ids as"),
        (("retry", "1", "--all"), "name ids as"),
        (("drop",), "--endpoint NAME"),
        (("retry", "x"), "is no delivery"),
        (("drop", "1/"), "is no delivery"),
        (("drop", "1/desk", "--endpoint", "other"), "no delivery to other"),
        (("list", "--state", "GONE"), "use one of PENDING, SENT, DEAD, DROPPED"),
    ],
)
def test_wrong_calls(dataflow: Dataflow, place: Path, arguments: tuple[str, ...], told: str) -> None:
    said = dataflow("relay", *arguments, "--home", place)
    assert said.code == 2
    assert told in said.err
