"""``lineage`` names a shard that is there, with its version, and the document is in it."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest

from dataflow_ops.pipeline.look import lineage_of
from tests.pipeline.compacting import chain, compacted, current, later
from tests.pipeline.growing import TEXTS, Growing, first_day

pytestmark = pytest.mark.xdist_group("compact")


def _exported(made: Growing, version: str, run: str | None = None) -> set[str]:
    """Looks every exported document and survivor of a version up; the versions that are named."""
    named = set()
    for fate, survivor, doc in made.fates(version).values():
        if fate == "exported":
            named.add(_held(made, lineage_of(made.home, run, doc)[1]))
        elif survivor:
            told = lineage_of(made.home, run, doc)[1]["survivor"]
            if told["fate"] == "exported":
                named.add(_held(made, told))
    return named


def _held(made: Growing, told: dict[str, Any]) -> str:
    path = made.home / "versions" / told["version"] / told["shard"]
    assert told["doc_id"] in pq.read_table(path, columns=["id"])["id"].to_pylist()
    return str(told["version"])


def test_the_shard_that_is_named_holds_the_document_before_and_after_a_compaction(tmp_path: Any) -> None:
    made = chain(tmp_path)
    old = current(made)
    before = _exported(made, old)
    assert len(before) == 4, "each version of the chain has documents"
    done = compacted(made)
    assert _exported(made, done.version_id) == {done.version_id}
    text, told = lineage_of(made.home, None, made.fates(done.version_id)["d00.md"][2])
    assert f"exported to {told['shard']} of version {done.version_id}\n" in text
    later(made)
    day = made.day(5)
    assert _exported(made, day.version_id) == {done.version_id, day.version_id}
    # What was replaced since stands in the version that its run made, and not in the compacted one.
    with made.state() as state:
        first = next(v for v in state.versions("grows") if v.mode == "full")
    _, told = lineage_of(made.home, first.run_id, made.fates(first.version_id)["d02.md"][2])
    assert _held(made, told) == first.version_id


def test_a_run_that_found_everything_made_names_the_version_that_was_there(tmp_path: Any) -> None:
    made = Growing(tmp_path)
    first = first_day(made)
    again = made.run()
    assert (again.version_id, _exported(made, first, again.run_id)) == (first, {first})
    made.put("more.md", TEXTS[20])
    stopped = made.run(until="dedup")
    _, told = lineage_of(made.home, stopped.run_id, made.fates(first)["d00.md"][2])
    assert (told["fate"], told.get("version")) == ("kept", None)
