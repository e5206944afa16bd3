from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow_ops.console import actions
from dataflow_ops.console.layers_view import layers
from dataflow_ops.console.parameters_view import flat, parameters
from dataflow_ops.console.place import Place
from dataflow_ops.console.run_view import summary
from dataflow_ops.console.shown_layers import LAYER_OF, SHOWN
from dataflow_ops.console.work import StepWork, seconds_left, share_of_run, share_of_tasks, work_of
from dataflow_ops.errors import ConfigError
from dataflow_ops.state.totals import StepTotals
from dataflow_ops.values import Counts, TaskSpec
from tests.console.run_home import Made, begin, link, make, opened, plan


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("summary"))


@pytest.fixture
def place(made: Made, tmp_path: Path) -> Iterator[Place]:
    with opened(made.copy(tmp_path / "home")) as place:
        yield place


def test_a_finished_run_says_what_waits_for_a_person(made: Made, place: Place) -> None:
    found = summary(place, made.run)
    assert (found["state"], found["layer"], found["progress"], found["eta"]) == (
        "SUCCEEDED_WITH_DEAD",
        None,
        1.0,
        None,
    )
    assert [d["kind"] for d in found["decisions"]] == ["dead_letters"]
    assert found["decisions"][0]["count"] == 1
    assert found["current"]
    assert found["report"].startswith("dataflow/api/run/report?run=")
    assert set(found["tasks"]) == {"SUCCESS"}
    assert found["cli"]["approve"] == f"dataflow versions approve {found['version']}"
    place.state.set_version_state("tiny", found["version"], "AWAITING_APPROVAL")
    begin(place, "older", made.run)  # a version that waits has no pointer
    assert summary(place, "older")["version"] is None


def test_a_run_on_its_way_says_where_and_until_when(made: Made, place: Place) -> None:
    begin(place, "now", made.run)
    first = summary(place, "now")
    assert (first["layer"], first["layer_tasks"], first["progress"], first["tasks"]) == (
        "ingest",
        None,
        0.0,
        {},
    )
    link(place, "now", made.run, "discover", "fetch", "parse")
    specs = plan(place, "now", made.run, "filter")
    for spec in specs[:3]:
        claim = place.state.claim(spec.key, "host:1:2")
        assert claim is not None
        if spec is not specs[2]:
            place.state.commit(claim, [], Counts(10, 4, 6), {}, {}, [], 2.0)
    found = summary(place, "now")
    assert (found["layer"], found["layer_done"], found["layer_tasks"]) == ("filter", 2, len(specs))
    assert found["progress"] == pytest.approx(2 / len(specs))
    assert found["workers"] == 1
    assert found["tasks"]["RUNNING"] == 1
    # Steps to come cost what they cost in the run before: the end can be told.
    assert found["eta"] > time.time()
    assert 0 < found["run_progress"] < 1
    assert found["documents_per_s"] > 0


def test_a_pause_shows_how_far_it_has_come(made: Made, place: Place) -> None:
    begin(place, "now", made.run)
    link(place, "now", made.run, "discover", "fetch")
    specs = plan(place, "now", made.run, "parse")
    claims = [place.state.claim(spec.key, "me") for spec in specs[:3]]
    assert summary(place, "now")["tasks"]["RUNNING"] == 3
    actions.pause(place, "now", "run", "ann", "the disk is full")
    assert claims[0] is not None
    place.state.pause_task(claims[0], 1)  # sums are kept for seconds; this is counted afresh
    found = summary(place, "now")
    assert found["pause"] | {"since": 0} == {
        "scope": "run",
        "target": "now",
        "who": "ann",
        "why": "the disk is full",
        "since": 0,
        "tasks_paused": 1,
        "tasks_open": 3,
    }
    assert found["eta"] is None
    assert found["cli"]["resume"] == "dataflow resume now"
    actions.resume(place, "now", "run", "ann")
    assert summary(place, "now")["pause"] is None
    actions.pause(place, "now", "dataset", "bob", "")
    assert summary(place, "now")["cli"]["resume"] == "dataflow resume --dataset tiny"
    with pytest.raises(ConfigError, match="nothing to pause"):
        actions.pause(place, made.run, "run", "ann", "")
    with pytest.raises(ConfigError, match="use one of"):
        actions.pause(place, "now", "planet", "ann", "")


def test_urgent_and_back(made: Made, place: Place) -> None:
    begin(place, "now", made.run)
    actions.hurry(place, "now", True, "ann")
    found = summary(place, "now")
    assert (found["urgent"], found["cli"]["urgent"]) == (True, "dataflow urgent now --off")
    actions.hurry(place, "now", False, "ann")
    assert not summary(place, "now")["urgent"]


def test_the_last_step_has_one_worker_however_many_there_are() -> None:
    wide = StepWork("parse", 10, 20, 100.0)
    last = StepWork("unite", 0, 1, 50.0)
    assert seconds_left([wide, last], workers=5) == 100 / 5 + 50
    assert seconds_left([wide, last], workers=5, begun_s=20) == 80 / 5 + 50
    assert seconds_left([wide, last], workers=0) is None
    assert seconds_left([StepWork("score", 0, 3, None)], 5) is None, "nobody has measured it"


def test_bundles_that_have_not_begun_count_as_well(made: Made, place: Place) -> None:
    """An orchestrator links a step's tasks bundle by bundle: what is there is not all there will be."""
    begin(place, "now", made.run)
    link(place, "now", made.run, "discover")
    steps = {step: len(place.state.records_of_step(made.run, step)) for step in LAYER_OF}
    listed = summary(place, "now")
    assert (listed["layer"], listed["layer_done"], listed["layer_tasks"]) == ("ingest", 1, 1 + steps["fetch"])
    done = [listed["progress"]]
    run = [listed["run_progress"]]
    for step in LAYER_OF:
        if step == "discover":
            continue
        records = list(place.state.records_of_step(made.run, step).values())
        for few in (records[:1], records):
            place.state.enqueue("now", [TaskSpec(t.key, t.step, t.layer, t.partition) for t in few])
            place.sums.forget("now")
            found = summary(place, "now")
            run.append(found["run_progress"])
            if found["layer"] == LAYER_OF[step]:
                mine = [one for one in LAYER_OF if LAYER_OF[one] == LAYER_OF[step]]
                assert found["layer_tasks"] == sum(steps[one] for one in mine), step
                assert found["progress"] == pytest.approx(found["layer_done"] / found["layer_tasks"])
                shown = {one["layer"]: one for one in layers(place, "now")["layers"]}[found["layer"]]
                assert (shown["done"], shown["tasks"]) == (found["layer_done"], found["layer_tasks"])
            done.append(list(dict(SHOWN)).index(found["layer"]) + found["progress"])
    assert done == sorted(done), "a layer never goes back"
    assert run == sorted(run), "nor does the run"
    assert run[-1] == pytest.approx(1.0)


def test_what_a_step_counts_for_does_not_change_on_the_way() -> None:
    cheap = StepWork("fetch", 4, 4, 0.0, 10.0)
    dear = StepWork("parse", 1, 9, 720.0, 90.0)
    assert share_of_run([cheap, dear]) == pytest.approx((10 + 90 / 9) / 100), "not by what it costs now"
    assert share_of_run([cheap, StepWork("parse", 0, 9, None)]) == pytest.approx(0.5), "a first run"
    assert share_of_run([]) == 0.0
    assert share_of_tasks([cheap, dear]) == pytest.approx(5 / 13)
    assert share_of_tasks([cheap, StepWork("parse", 0, None, None)]) == 0.0


def test_what_is_not_planned_yet_costs_what_it_did_before() -> None:
    def total(step: str, **tasks: int) -> StepTotals:
        return StepTotals(step, "", tasks, seconds=10.0 * tasks.get("SUCCESS", 0))

    now = {"fetch": total("fetch", SUCCESS=4), "parse": total("parse", SUCCESS=1, PENDING=3)}
    before = {name: total(name, SUCCESS=2) for name in ("fetch", "parse", "filter", "exact")}
    work = {one.step: one for one in work_of(now, before, None, {"filter": 4})}
    assert (work["fetch"].left_s, work["parse"].left_s) == (0.0, 30.0)
    assert (work["filter"].left, work["filter"].left_s) == (4, 40.0), "as many as are planned"
    assert (work["exact"].left, work["exact"].left_s) == (2, 20.0), "as many as before"
    assert work["match"].left_s is None


def test_settings_are_shown_against_the_run_before(made: Made, place: Place) -> None:
    row = place.state.get_run(made.run)
    assert row is not None
    text = row.settings.replace('"max_dead_share":0.5', '"max_dead_share":0.25')
    place.state.create_run("now", "tiny", "tiny", "full", text, None)
    found = parameters(place, "now")
    assert found["previous"] == made.run
    changed = [one for one in found["rows"] if one["changed"]]
    assert changed == [{"key": "run.max_dead_share", "value": 0.25, "previous": 0.5, "changed": True}]
    assert found["rows"][0] == changed[0]
    first = parameters(place, made.run)
    assert first["previous"] is None
    assert not any(one["changed"] for one in first["rows"])


def test_one_more_source_moves_no_other() -> None:
    a, b = {"source_id": "a", "path": "x"}, {"source_id": "b", "path": "y"}
    old, new = dict(flat({"sources": [b]})), dict(flat({"sources": [a, b], "empty": {}}))
    assert old == {"sources.b.source_id": "b", "sources.b.path": "y"}
    assert {k: v for k, v in new.items() if k not in old} == {
        "sources.a.source_id": "a",
        "sources.a.path": "x",
        "empty": {},
    }
