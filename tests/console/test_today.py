"""Today: data sets, what waits for a person, what runs; with and without an orchestrator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dataflow_ops.console import run_view
from dataflow_ops.console.place import NotThere, Place, open_place
from dataflow_ops.console.sums import Sums
from dataflow_ops.console.today import today
from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.refusals import Refusal, refusals_told
from dataflow_ops.state.store import StateStore
from tests.console.product_home import Dags, Product, build
from tests.pipeline import inside

DATASET = {"dataset", "description", "dags", "current", "age_s", "decisions", "live", "last"}
CURRENT = {"version", "published_at", "documents", "tokens", "tokens_estimated", "mode", "data_date"}
DECISION = {"kind", "version", "run", "dag_id", "dag_run_id", "reasons", "count"}
LIVE = {
    "run",
    "dag_id",
    "dag_run_id",
    "mode",
    "state",
    "layer",
    "progress",
    "run_progress",
    "urgent",
    "pause",
}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    return build(tmp_path_factory.mktemp("today"))


@pytest.fixture
def state(product: Product) -> Iterator[StateStore]:
    with product.state() as state:
        yield state


def test_a_data_set_with_its_dags_and_its_letters(product: Product, state: StateStore) -> None:
    record = state.current("tiny")
    assert record is not None
    found = today(product.home, state, Dags(), now=record.created_at + 100)
    assert [row["dataset"] for row in found["datasets"]] == ["tiny", "new"]
    tiny, new = found["datasets"]
    assert set(tiny) == set(new) == DATASET
    assert tiny["description"] == "a small one"
    assert tiny["dags"] == [
        {
            "dag_id": "tiny__full",
            "mode": "full",
            "schedule": "0 4 * * 0",
            "next_run": 2e9,
            "is_paused": False,
        },
        {
            "dag_id": "tiny__incremental",
            "mode": "incremental",
            "schedule": "",
            "next_run": None,
            "is_paused": True,
        },
    ]
    assert set(tiny["current"]) == CURRENT
    assert tiny["current"]["version"] == product.version
    assert (tiny["current"]["mode"], tiny["current"]["tokens_estimated"]) == ("full", True)
    manifest = json.loads((product.home.root / record.manifest_uri).read_text(encoding="utf-8"))
    assert tiny["current"]["documents"] == manifest["totals"]["documents"]
    assert tiny["current"]["tokens"] == manifest["totals"]["tokens"]
    assert tiny["age_s"] == pytest.approx(100)
    [letters] = tiny["decisions"]
    assert set(letters) == DECISION
    assert (letters["kind"], letters["count"], letters["reasons"]) == (
        "dead_letters",
        1,
        ["MalformedRecord: 1"],
    )
    assert tiny["live"] == []
    assert tiny["last"]["state"] == "SUCCEEDED_WITH_DEAD"
    assert tiny["last"]["ended_at"] > 0
    assert (new["current"], new["age_s"], new["last"], new["description"]) == (None, None, None, "never run")


def test_only_what_may_be_read(product: Product, state: StateStore) -> None:
    found = today(product.home, state, Dags(), readable=lambda name: name == "new")
    assert [row["dataset"] for row in found["datasets"]] == ["new"]
    assert [row["dataset"] for row in today(product.home, state)["datasets"]] == ["tiny"]


def test_a_waiting_version_is_a_decision_and_a_pause_is_somebodys_wish(tmp_path: Path) -> None:
    product = build(tmp_path)
    made = inside.run(
        product.job, product.root / "home", set=["clean.boilerplate_filter.min_text_len=200"], promote=False
    )
    with product.state() as state:
        origin = json.dumps({"kind": "airflow", "dag_id": "tiny__full", "run_id": "manual__1"})
        run = state.get_run(made.run_id)
        assert run is not None
        state.create_run(
            "airflow-tiny__full-manual__1",
            "tiny",
            "tiny",
            "full",
            run.settings,
            "2026-01-02",
            urgent=True,
            origin=origin,
        )
        state.set_run_state("airflow-tiny__full-manual__1", "RUNNING")
        state.set_pause("run", "airflow-tiny__full-manual__1", "Li", "look at it")
        [tiny] = today(product.home, state)["datasets"]
        kinds = {row["kind"]: row for row in tiny["decisions"]}
        assert set(kinds) == {"approve", "dead_letters"}
        assert kinds["approve"]["version"] == made.version_id
        assert kinds["approve"]["run"] == made.run_id
        assert kinds["approve"]["reasons"] == ["it was run with --set"]
        assert tiny["current"]["version"] == product.version
        [live] = tiny["live"]
        assert set(live) == LIVE
        assert {key: live["pause"][key] for key in ("who", "why")} == {"who": "Li", "why": "look at it"}
        # Nobody works on it, so the pause has come through at once.
        assert live["state"] in ("RUNNING", "PAUSED")
        assert (live["layer"], live["progress"], live["run_progress"], live["urgent"]) == (
            "ingest",
            0.0,
            0.0,
            True,
        )
        state.set_run_state("airflow-tiny__full-manual__1", "FAILED", "the disk is full")
        [tiny] = today(product.home, state)["datasets"]
        assert {row["kind"] for row in tiny["decisions"]} == {"approve", "failed", "dead_letters"}
        assert tiny["last"]["state"] == "FAILED"


def test_a_live_run_is_as_far_as_its_own_page_says(tmp_path: Path) -> None:
    product = build(tmp_path)
    place = open_place(product.root / "home")
    place.sums.close()
    patient = Place(place.home, place.state, Sums(place.state, patience_s=60))
    seen: list[tuple[str, float]] = []

    def look(_step: str, _outcome: object) -> None:
        [tiny] = today(product.home, place.state)["datasets"]
        (live,) = tiny["live"]
        patient.sums.forget(live["run"])  # the page may remember an older sum for a moment
        page = run_view.summary(patient, live["run"])
        for key in ("layer", "progress", "run_progress"):
            assert live[key] == page[key], key
        seen.append((live["layer"], live["run_progress"]))

    overrides = ["clean.stored_text.lower_case=true"]
    with closing(patient):
        inside.run(product.job, product.root / "home", inside.Notes(on_task=look), set=overrides)
    assert {"filter", "dedup", "mix", "export"} <= {layer for layer, _ in seen}
    assert 0.0 < seen[0][1] < seen[-1][1] <= 1.0


def test_a_run_that_never_began_is_told_until_another_one_begins(tmp_path: Path) -> None:
    product = build(tmp_path)
    asked = Refusal("airflow-tiny__full-r9", "tiny", "job", "full", "tiny__full", "r9")
    with pytest.raises(ConfigError), refusals_told(product.home.path, asked):
        raise ConfigError("dedup.shingle_size: there is no such setting")
    with product.state() as state:
        (row,) = today(product.home, state)["datasets"]
        told = {one["kind"]: one for one in row["decisions"]}
        assert set(told) == {"not_begun", "dead_letters"}, "letters of the run before are still open"
        assert set(told["not_begun"]) == DECISION
        assert told["not_begun"]["reasons"] == ["dedup.shingle_size: there is no such setting"]
        assert (told["not_begun"]["dag_id"], told["not_begun"]["dag_run_id"]) == ("tiny__full", "r9")
        assert (row["last"]["run"], row["last"]["state"]) == ("airflow-tiny__full-r9", "FAILED")
        dry = replace(asked, run_id="airflow-new__full-r1", dataset="new", dry_run=True)
        with pytest.raises(ConfigError), refusals_told(product.home.path, dry):
            raise ConfigError("no such setting")
        assert [one["dataset"] for one in today(product.home, state)["datasets"]] == ["tiny"]
    with closing(open_place(product.home.path)) as place:
        with pytest.raises(NotThere, match="before it began: dedup") as error:
            run_view.summary(place, asked.run_id)
        assert error.value.said == ("not_begun", {"why": "dedup.shingle_size: there is no such setting"})
        with pytest.raises(NotThere) as error:
            run_view.summary(place, "airflow-tiny__full-r10")
        assert error.value.said == ("not_started", {})
    inside.run(product.job, product.root / "home")
    with product.state() as state:
        (row,) = today(product.home, state)["datasets"]
    assert {one["kind"] for one in row["decisions"]} == {"dead_letters"}
    assert row["last"]["state"] == "SUCCEEDED_WITH_DEAD"
