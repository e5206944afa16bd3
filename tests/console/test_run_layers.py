from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.console.layers_view import layers, parts_of, tokens_per_document
from dataflow_ops.console.place import NotThere, Place
from dataflow_ops.console.shown_layers import SHOWN
from dataflow_ops.pipeline.flow import ONLY_ABOVE, STEP_NAMES
from dataflow_ops.state.totals import StepTotals
from dataflow_ops.values import Counts
from tests.console.run_home import Made, begin, link, make, opened, plan


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("layers"))


@pytest.fixture
def place(made: Made, tmp_path: Path) -> Iterator[Place]:
    with opened(made.copy(tmp_path / "home")) as place:
        yield place


def _by_name(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["layer"]: one for one in found["layers"]}


def test_what_one_layer_keeps_comes_into_the_next(made: Made, place: Place) -> None:
    found = layers(place, made.run)
    assert [one["layer"] for one in found["layers"]] == [name for name, _ in SHOWN]
    shown = _by_name(found)
    for before, after in (("filter", "dedup"), ("dedup", "mix"), ("mix", "export")):
        assert shown[before]["kept"] == shown[after]["in"], (before, after)
    for one in shown.values():
        assert one["removed"] == one["in"] - one["kept"]
        assert one["removed_share"] == pytest.approx(one["removed"] / one["in"])
        assert one["state"] == "done"
        assert one["documents_per_s"] > 0
    (version,) = (made.home / "versions").glob("t-full-*")
    manifest = json.loads((version / "manifest.json").read_text())
    assert shown["export"]["kept"] == manifest["totals"]["documents"]
    steps = {one["step"]: one for layer in shown.values() for one in layer["steps"]}
    assert set(steps) == set(STEP_NAMES) - set(ONLY_ABOVE)
    for name, counts in place.state.metrics_of_run(made.run).items():
        one = steps[name]
        assert (one["in"], one["kept"], one["rejected"]) == (
            counts.counts.documents_in,
            counts.counts.kept,
            counts.counts.rejected,
        )
        assert one["left_out"] == sum(counts.counts.skipped.values())
    assert found["complete"]
    assert found["previous_run"] is None


def test_a_run_on_its_way_is_compared_with_the_full_run_before(made: Made, place: Place) -> None:
    begin(place, "now", made.run)
    assert {one["state"] for one in layers(place, "now")["layers"]} == {"waiting"}
    link(place, "now", made.run, "discover", "fetch", "parse")
    specs = plan(place, "now", made.run, "filter")
    claim = place.state.claim(specs[0].key, "me")
    assert claim is not None
    place.state.commit(claim, [], Counts(1000, 400, 600), {}, {"length": 600}, [], 1.0)
    found = layers(place, "now")
    shown, before = _by_name(found), _by_name(layers(place, made.run))
    assert found["previous_run"] == made.run
    assert [shown[name]["state"] for name in ("ingest", "parse", "filter", "dedup")] == [
        "done",
        "done",
        "running",
        "waiting",
    ]
    now = shown["filter"]
    assert (now["in"], now["kept"], now["done"], now["tasks"]) == (1000, 400, 1, len(specs))
    was = before["filter"]
    assert now["previous"] == {key: was[key] for key in ("in", "kept", "removed_share")}
    assert now["change"] == pytest.approx((1 - 0.6) - (1 - was["removed_share"]))
    assert now["documents_per_s"] > 0
    assert shown["parse"]["documents_per_s"] is None, "this run did none of it itself"
    assert shown["parse"]["change"] == 0
    place.state.set_pause("run", "now", "ann", "")
    assert _by_name(layers(place, "now"))["filter"]["state"] == "paused"
    place.state.set_run_state("now", "fail")
    assert _by_name(layers(place, "now"))["filter"]["state"] == "failed"


def test_a_handful_of_documents_is_not_set_against_a_whole_run(made: Made, place: Place) -> None:
    begin(place, "now", made.run)
    link(place, "now", made.run, "discover", "fetch", "parse")
    claim = place.state.claim(plan(place, "now", made.run, "filter")[0].key, "me")
    assert claim is not None
    place.state.commit(claim, [], Counts(10, 0, 10), {}, {"length": 10}, [], 1.0)
    now = _by_name(layers(place, "now"))["filter"]
    assert (now["removed_share"], now["previous"] is not None, now["change"]) == (1, True, None)


def test_nobody_says_what_dedup_keeps_before_it_is_done(made: Made, place: Place) -> None:
    begin(place, "now", made.run)
    steps = STEP_NAMES[: STEP_NAMES.index("unite")]
    link(place, "now", made.run, *steps)
    now, was = (_by_name(layers(place, run))["dedup"] for run in ("now", made.run))
    assert (now["in"], now["kept"], now["removed"], now["state"]) == (was["in"], None, None, "running")


def test_a_run_up_to_a_layer_leaves_the_others_waiting(made: Made, place: Place) -> None:
    begin(place, "short", made.run, until="filter")
    link(place, "short", made.run, "discover", "fetch", "parse", "filter")
    place.state.set_run_state("short", "succeed")
    states = [one["state"] for one in layers(place, "short")["layers"]]
    assert states == ["done", "done", "done", "waiting", "waiting", "waiting"]


def test_a_run_that_is_not_there(place: Place) -> None:
    with pytest.raises(NotThere, match="not started"):
        layers(place, "none")


def test_a_queued_run_names_the_one_before_it(place: Place) -> None:
    """Airflow runs one full run of a data set at a time; ours says which one is in the way, and why."""
    own, asked = "airflow-tiny__full-r1", "airflow-tiny__full-r2"
    place.state.create_run(own, "tiny", "job", "full", "{}", "2026-11-30")
    for state, told in (("RUNNING", "queued_behind"), ("AWAITING_APPROVAL", "queued_approval")):
        place.state.set_run_state(own, state)
        with pytest.raises(NotThere, match=own) as error:
            layers(place, asked)
        assert error.value.said == (told, {"run": own})
        with pytest.raises(NotThere) as error:
            layers(place, "airflow-tiny__incremental-r2")
        assert error.value.said == ("not_started", {})
    place.state.set_run_state(own, "SUCCEEDED")
    with pytest.raises(NotThere) as error:
        layers(place, asked)
    assert error.value.said == ("not_started", {})


def test_tokens_are_estimated_before_any_were_counted() -> None:
    read = StepTotals("filter", "filter", documents_in=100, bytes_in=40_600)
    label = StepTotals("label", "mix", kept=10, tokens_out=700)
    assert tokens_per_document({}, {}) is None
    assert tokens_per_document({"filter": read}, {}) == pytest.approx(100)
    assert tokens_per_document({"filter": read}, {"label": label}) == 70
    assert tokens_per_document({"filter": read, "label": label}, {}) == 70


def test_parts_of_long_texts_are_told() -> None:
    parse = StepTotals("parse", "parse", documents_in=10, kept=9, rejected=1, documents_out=12)
    assert parts_of([parse, StepTotals("filter", "filter", kept=1)]) == 3
