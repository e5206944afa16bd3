from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow_ops.console.place import Place
from dataflow_ops.console.where_view import FILE_SHIFT, where, worker
from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.parse import step as parse_step
from tests.console.run_home import Made, begin, link, make, opened, plan


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("where"))


@pytest.fixture
def place(made: Made, tmp_path: Path) -> Iterator[Place]:
    with opened(made.copy(tmp_path / "home")) as place:
        yield place


def test_a_task_at_work_says_which_file_and_row(made: Made, place: Place) -> None:
    assert FILE_SHIFT == parse_step.FILE_SHIFT
    begin(place, "now", made.run)
    link(place, "now", made.run, "discover", "fetch")
    files = place.state.outputs_of_step(made.run, "fetch", "files")
    chunk = next(name for name, output in sorted(files.items()) if output.rows > 2)
    spec = next(s for s in plan(place, "now", made.run, "parse") if s.partition == chunk)
    claim = place.state.claim(spec.key, "worker-3:77:1000")
    assert claim is not None
    place.state.heartbeat(claim, {"rows": 2, "position": (2 << FILE_SHIFT) | 1})
    (task,) = where(place, "now")["running"]
    from dataflow_ops.console.glances import files_of_chunk

    listed = files_of_chunk(place, made.run, chunk)
    assert (task["file"], task["row"], task["rows"]) == (listed[2], 2, None)
    assert (task["worker"], task["attempt"], task["layer"]) == ("worker-3:77", 1, "parse")
    assert task["source"] in ("code", "docs", "rows", "pages")
    assert 0 <= task["heartbeat_age_s"] < 60
    # What was staged counts where the heartbeat has not spoken yet.
    place.state.heartbeat(claim, {})
    place.state.checkpoint(claim, (1 << FILE_SHIFT) | 1, 3)
    (task,) = where(place, "now", "parse")["running"]
    assert (task["file"], task["row"]) == (listed[1], 3)
    assert where(place, "now", "filter")["running"] == []


def test_a_step_after_parse_knows_how_many_rows_there_are(made: Made, place: Place) -> None:
    begin(place, "now", made.run)
    link(place, "now", made.run, "discover", "fetch", "parse")
    spec = plan(place, "now", made.run, "filter")[0]
    assert place.state.claim(spec.key, "me:1:1") is not None
    (task,) = where(place, "now")["running"]
    rows = place.state.outputs_of_step(made.run, "parse", "text")[spec.partition].rows
    assert (task["file"], task["row"], task["rows"]) == (None, 0, rows)


def test_failures_have_a_denominator(made: Made, place: Place) -> None:
    found = where(place, made.run)
    kinds = {one["name"]: one for one in found["failures"]["media_type"]}
    counts = place.state.metrics_of_run(made.run)["parse"].counts
    assert kinds["application/x-ndjson"]["failed"] == 1
    assert kinds["application/x-ndjson"]["share"] == pytest.approx(
        1 / kinds["application/x-ndjson"]["documents"]
    )
    assert sum(one["documents"] for one in kinds.values()) == counts.kept + counts.dead
    assert found["failures"]["chunks"] == found["failures"]["of_chunks"] == 7
    assert found["complete"]


def test_the_slowest_and_the_broken(made: Made, place: Place) -> None:
    found = where(place, made.run, "filter")["slowest"]
    records = place.state.records_of_step(made.run, "filter").values()
    assert found[0]["seconds"] == max(r.seconds or 0.0 for r in records)
    assert [one["seconds"] for one in found] == sorted((one["seconds"] for one in found), reverse=True)
    begin(place, "now", made.run)
    link(place, "now", made.run, "discover", "fetch")
    spec = plan(place, "now", made.run, "parse")[0]
    claim = place.state.claim(spec.key, "me:1:1")
    assert claim is not None
    place.state.fail(claim, "ParserFailed", "bad", "the stack", 5)
    (task,) = where(place, "now")["error_tasks"]
    assert (task["state"], task["error_type"], task["trace"]) == ("FAILED", "ParserFailed", "the stack")


def test_no_such_layer(made: Made, place: Place) -> None:
    with pytest.raises(ConfigError, match="there are ingest, parse"):
        where(place, made.run, "cellar")


def test_the_owner_of_a_lease_is_shown_without_its_start_time() -> None:
    assert worker("host:12:3456") == "host:12"
    assert worker("somebody") == "somebody"
    assert worker(None) == ""
