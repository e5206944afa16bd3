"""What a waiting task asks of our state."""

from __future__ import annotations

from pathlib import Path

from dataflow_ops.airflow.waits import may_go_on
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.state.store import StateStore
from tests.state.store_case import spec


def test_a_run_whose_worker_was_killed_under_a_pause_is_paused_once_its_lease_is_over(tmp_path: Path) -> None:
    home = tmp_path / "home"
    key = spec("t").key
    with StateStore(open_home(home).state_url) as state:
        state.create_run("r1", "web", "job", "full", "{}", "2026-01-01")
        state.set_run_state("r1", "start")
        state.enqueue("r1", [spec("t")])
        assert may_go_on(str(home), "web", "r1", turn=False)
        assert state.claim(key, "killed:1") is not None
        state.set_pause("run", "r1")

        def looked() -> str:
            assert not may_go_on(str(home), "web", "r1", turn=False)
            row = state.get_run("r1")
            assert row is not None
            return row.state

        assert looked() == "RUNNING"  # as far as anybody knows, it works
        assert state.expire_leases("killed:1") == 1
        assert looked() == "PAUSED"
        assert state.clear_pause("run", "r1")
        assert may_go_on(str(home), "web", "r1", turn=False)
