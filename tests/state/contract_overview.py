"""What every state database must do when somebody asks which data sets there are."""

from __future__ import annotations

from dataflow_ops.state.store import StateStore
from tests.state.store_case import StoreCase


class OverviewContract(StoreCase):
    def test_data_sets_are_those_of_runs_and_versions_each_once(self, store: StateStore) -> None:
        assert store.datasets() == ["web"]
        store.create_run("r2", "code", "job", "full", "{}", "2026-01-01")
        store.create_run("r3", "web", "job", "full", "{}", "2026-01-02")
        store.add_version("web", "v1", "aa", "versions/v1/manifest.json", "r1", "PUBLISHED")
        store.add_version("books", "v1", "bb", "versions/v2/manifest.json", "r1", "PUBLISHED")
        assert store.datasets() == ["books", "code", "web"]
