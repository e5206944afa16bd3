"""What a task of the samples DAG waits for: flags that are taken back, owners that end or fall silent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow_ops.airflow.samples_waits import SampleTrigger, may_go_on
from dataflow_ops.state.samples.store import SampleStore
from tests.airflow.samples_hand import fires
from tests.samples.cleaning.table import fill

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("airflow-samples")]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SampleStore]:
    with SampleStore(f"sqlite:///{tmp_path / 'state.db'}") as store:
        fill(store, {"f": [[("user", "q")]]})
        store.create_task("t", "d", "clean", {}, ["f"], "ann")
        yield store


def test_a_flag_is_waited_for_whatever_it_covers(store: SampleStore, tmp_path: Path) -> None:
    home = str(tmp_path)
    assert may_go_on(home, "d", "t")
    for scope, target in (("run", "t"), ("dataset", "d"), ("all", "")):
        store.set_pause(scope, target, "li")
        assert not may_go_on(home, "d", "t")
        assert may_go_on(home, "d", "not asked for yet") == (scope == "run")
        store.clear_pause(scope, target)
    assert may_go_on(home, "d", "t")


def test_an_owner_that_is_alive_is_waited_for_and_a_silent_one_is_not(
    store: SampleStore, tmp_path: Path
) -> None:
    home = str(tmp_path)
    claim = store.claim_task("t", "a host that is not ours:1", 60.0)
    assert not may_go_on(home, "d", "t")
    store.beat("t", claim.epoch, 0.0)
    assert may_go_on(home, "d", "t")
    claim = store.claim_task("t", "another:1", 60.0)
    store.set_pause("run", "t", "li")
    store.finish_task(claim)
    assert may_go_on(home, "d", "t"), "it is done: no flag matters"


def test_a_cancelled_task_is_waited_for_no_longer(store: SampleStore, tmp_path: Path) -> None:
    store.set_pause("run", "t", "li")
    assert not fires(SampleTrigger(str(tmp_path), "d", "t"), 0.2)
    store.cancel_task("t", "li")
    assert fires(SampleTrigger(str(tmp_path), "d", "t"), 30)
