"""Versions as a time line, and what people decide about them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow_ops.console.dags import Consumer
from dataflow_ops.console.today import today
from dataflow_ops.console.versions_view import decide, report_text, timeline
from dataflow_ops.errors import ConfigError, VersionError
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.state.store import StateStore
from tests.console.product_home import Dags, Product, build
from tests.pipeline import inside

VERSION = {
    *("version", "state", "current", "mode", "data_date", "run", "dag_id", "dag_run_id", "published_at"),
    *("documents", "tokens", "tokens_estimated", "domains", "drift", "waits", "dead_letters", "report"),
    *("consumers", "cli", "before", "left", "drift_against", "base"),
}


@pytest.fixture
def product(tmp_path: Path) -> Product:
    return build(tmp_path)


@pytest.fixture
def state(product: Product) -> Iterator[StateStore]:
    with product.state() as state:
        yield state


def another(product: Product, least: int = 200) -> str:
    """A version that waits for a person."""
    overrides = [f"clean.boilerplate_filter.min_text_len={least}", "mixing.caps={pool: 300}"]
    return inside.run(product.job, product.root / "home", set=overrides, promote=False).version_id


def test_the_time_line_newest_first(product: Product, state: StateStore) -> None:
    waiting = another(product)
    at = Consumer("train", "asset__1", 12.5, "success")
    found = timeline(product.home, state, "tiny", Dags({product.version: [at]}))
    assert found["current"] == product.version
    assert [row["version"] for row in found["versions"]] == [waiting, product.version]
    new, old = found["versions"]
    assert set(new) == set(old) == VERSION
    assert (new["state"], new["current"]) == ("WAITING", False)
    assert any(reason.startswith("share of domain 'pool' by tokens moved") for reason in new["waits"])
    assert (old["state"], old["current"], old["waits"]) == ("PUBLISHED", True, [])
    assert old["consumers"] == [{"dag_id": "train", "run_id": "asset__1", "at": 12.5, "state": "success"}]
    assert {domain["domain"] for domain in old["domains"]} == {"notes", "pool", "rows"}
    assert sum(domain["share"] for domain in old["domains"]) == pytest.approx(1.0)
    assert sum(domain["documents"] for domain in old["domains"]) == old["documents"]
    assert sum(domain["tokens"] for domain in old["domains"]) == old["tokens"]
    assert old["dead_letters"] == 1
    assert (new["before"], old["before"]) == (product.version, None)
    assert (new["drift_against"], old["drift_against"]) == (product.version, None)
    # The pool gives a third of what it gave: its share moved, and more than a person should miss.
    moved = [one for one in new["drift"] if one["what"] == "domain" and one["name"] == "pool"]
    assert {one["measure"] for one in moved} == {"documents", "tokens"}
    assert all(one["new"] < one["old"] for one in moved)
    assert [(row["version"], row["action"], row["became"]) for row in found["events"]] == [
        (waiting, "published", "waiting"),
        (product.version, "published", "current"),
    ]
    assert timeline(product.home, state, "tiny", limit=1)["total"] == 2


def test_approve_reject_and_rollback_say_who_and_why(product: Product, state: StateStore) -> None:
    home = product.home
    refused = another(product, 201)
    said = decide(home, state, "reject", "tiny", refused, who="Li", note="too little of the pool")
    assert said == {
        "ok": True,
        "code": "rejected_stays",
        "values": {"version": refused, "current": product.version},
        "message": f"{refused} is rejected; {product.version} stays current.",
        "current": product.version,
        "consumers": [],
    }
    second = another(product)
    said = decide(home, state, "approve", "tiny", second, who="Li", note="looked at it")
    assert said["message"] == f"{second} is approved and current."
    consumers = {
        second: [
            Consumer("train", "asset__2", 2.0, "running"),
            Consumer("train", "asset__1", 1.0, "success"),
            Consumer("evaluate", "asset__1", 1.0, "success"),
        ],
        product.version: [Consumer("train", "asset__0", 0.5, "success")],
    }
    back = decide(
        home, state, "rollback", "tiny", product.version, who="Wang", note="worse", dags=Dags(consumers)
    )
    assert back["current"] == product.version
    assert back["message"] == (
        f"{product.version} is current again. These started on {second} and may have to be run again:"
        " evaluate, train (2×)."
    )
    assert [c["run_id"] for c in back["consumers"]] == ["asset__2", "asset__1", "asset__1"]
    found = timeline(home, state, "tiny")
    assert [(e["version"], e["action"], e["who"], e["note"]) for e in found["events"]][:1] == [
        (product.version, "rolled_back", "Wang", "worse")
    ]
    told = {(e["version"], e["action"]): (e["who"], e["note"]) for e in found["events"]}
    assert {e["became"] for e in found["events"] if e["action"] != "published"} == {None}
    assert told[second, "approved"] == ("Li", "looked at it")
    assert told[refused, "rejected"] == ("Li", "too little of the pool")
    rows = {row["version"]: row for row in found["versions"]}
    assert (rows[product.version]["before"], rows[product.version]["left"]) == (None, None)
    left = rows[second]["left"]
    assert (left["who"], left["note"], left["to"]) == ("Wang", "worse", product.version)
    assert (rows[second]["before"], rows[second]["drift_against"]) == (product.version, product.version)
    states = {row["version"]: row["state"] for row in found["versions"]}
    assert states == {refused: "REJECTED", second: "PUBLISHED", product.version: "PUBLISHED"}


def test_an_overtaken_version_is_refused_with_what_to_do_instead(product: Product, state: StateStore) -> None:
    waiting = another(product)
    newer = another(product, 201)
    assert decide(product.home, state, "approve", "tiny", newer, who="Li")["current"] == newer
    with pytest.raises(ConfigError, match="was overtaken") as told:
        decide(product.home, state, "approve", "tiny", waiting, who="Li")
    assert told.value.said is not None
    code, values = told.value.said
    assert (code, values["version"], values["current"]) == ("overtaken", waiting, newer)
    assert (values["lost"], values["instead"]) == (newer, "dataflow run JOB")
    assert values["anyway"] == f"dataflow versions approve {waiting} --anyway"
    row = next(v for v in timeline(product.home, state, "tiny")["versions"] if v["version"] == waiting)
    assert row["waits"][-1] == f"overtaken by {newer}, which doesn't hold it"
    (decision,) = today(product.home, state)["datasets"][0]["decisions"][:1]
    assert (decision["version"], decision["reasons"]) == (waiting, row["waits"])


def test_decisions_need_a_whole_id_and_a_version_that_stands_so(product: Product, state: StateStore) -> None:
    home = product.home
    with pytest.raises(VersionError, match="whole id"):
        decide(home, state, "rollback", "tiny", product.version[:12], who="Li")
    with pytest.raises(VersionError, match="no version of data set 'other'"):
        decide(home, state, "approve", "other", product.version, who="Li")
    with pytest.raises(ConfigError, match="doesn't wait"):
        decide(home, state, "approve", "tiny", product.version, who="Li")
    with pytest.raises(VersionError, match="is current") as told:
        decide(home, state, "reject", "tiny", product.version, who="Li")
    assert told.value.said == ("is_current", {"version": product.version})
    waiting = another(product)
    with pytest.raises(VersionError, match="never been approved"):
        decide(home, state, "rollback", "tiny", waiting, who="Li")


def test_the_report_belongs_to_the_data_set(product: Product, state: StateStore) -> None:
    assert product.version in report_text(product.home, state, "tiny", product.version)
    for dataset, version in (("other", product.version), ("tiny", "../../state.db")):
        with pytest.raises(VersionError):
            report_text(product.home, state, dataset, version)


def test_an_increment_is_not_told_as_waiting(product: Product, state: StateStore) -> None:
    made = inside.run(product.job, product.root / "home", mode="incremental")
    (event,) = [e for e in timeline(product.home, state, "tiny")["events"] if e["version"] == made.version_id]
    assert (event["became"], state.versions("tiny")[0].base) == ("current", product.version)
    row = timeline(product.home, state, "tiny")["versions"][0]
    assert (row["base"], row["current"]) == (product.version, True)
    assert sum(domain["documents"] for domain in row["domains"]) == row["documents"]

    # Where there is nothing to build on.
    made = inside.run(product.job, product.root / "other", mode="incremental")
    home = open_home(product.root / "other", create=False)
    with StateStore(home.state_url) as other:
        (event,) = timeline(home, other, "tiny")["events"]
    assert (event["action"], event["became"], event["note"]) == (
        "published",
        "increment",
        "an increment of 2026-01-01",
    )
