"""What may be cleared away, the history of versions, and what can't become current."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from dataflow_ops.errors import StateError, VersionError
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.tables import metric, rule_hit, run, task
from tests.state.store_case import StoreCase, spec

HOUR = 3600.0


class KeptContract(StoreCase):
    def _age(self, store: StateStore, seconds: float = 10 * HOUR) -> None:
        """Everything happened so long ago."""
        with store.db.write() as connection:
            connection.execute(sa.update(run).values(updated_at=run.c.updated_at - seconds))
            connection.execute(sa.update(task).values(ended_at=task.c.ended_at - seconds))

    def _ran(self, store: StateStore, run_id: str, name: str, mode: str = "full") -> str:
        """A run that has done one task and ended."""
        if store.get_run(run_id) is None:
            store.create_run(run_id, "web", "job", mode, "{}", "2026-01-01")
            store.set_run_state(run_id, "start")
        key = self._task(store, name, run_id)
        self._commit(store, self._claim(store, key))
        store.set_run_state(run_id, "succeed")
        return key

    def test_old_runs_without_a_version_let_go_of_their_tasks(self, store: StateStore) -> None:
        self._ran(store, "r1", "a")
        self._ran(store, "r2", "b")
        self._ran(store, "r3", "c")
        self._ran(store, "i1", "d", "incremental")
        store.add_version("web", "v2", "m2", "u", "r2", "PUBLISHED")
        store.create_run("r4", "web", "job", "full", "{}", None)
        assert store.forgettable_runs(HOUR) == [], "all are recent"
        self._age(store)
        assert store.forgettable_runs(HOUR) == ["r1", "r3"], "r2 has a version, r4 and i1 are the newest"
        assert store.forgettable_runs(20 * HOUR) == []
        store.set_version_state("web", "v2", "REMOVED")
        assert store.forgettable_runs(HOUR) == ["r1", "r2", "r3"]
        assert store.forget_tasks_of("r1", HOUR) == 1
        assert store.forgettable_runs(HOUR) == ["r2", "r3"]

    def test_a_run_that_lives_again_keeps_its_tasks(self, store: StateStore) -> None:
        key = self._ran(store, "r1", "a")
        self._age(store)
        with store.db.write() as connection:
            connection.execute(sa.update(run).values(state="FAILED"))
        store.set_run_state("r1", "start")
        assert store.forget_tasks_of("r1", HOUR) == 0
        assert store.unwanted_tasks(0.0) == []
        assert store.keys_held([key, "else"]) == {key}

    def test_only_what_no_run_holds_is_opened_and_emptied(self, store: StateStore) -> None:
        gone, shared = self._ran(store, "r1", "gone"), self._ran(store, "r2", "shared")
        self._age(store)
        store.enqueue("r1", [spec("shared", partition="other")])
        store.create_run("r3", "web", "job", "full", "{}", None)
        assert store.unwanted_tasks(HOUR) == []
        assert store.unwanted_tasks(HOUR, ["r1"]) == [gone], "a rehearsal; r2 holds the other one"
        store.forget_tasks_of("r1", HOUR)
        assert store.unwanted_tasks(20 * HOUR) == [], "too young"
        assert store.unwanted_tasks(HOUR) == [gone]
        assert store.open_unwanted([gone, shared]) == 1
        assert (self._state(store, gone), self._state(store, shared)) == ("PENDING", "SUCCESS")
        assert store.unwanted_tasks(HOUR) == [gone], "killed here, it is found again"
        with store.emptied_tasks([gone, shared]) as held:
            assert dict(held) == {gone: ["data/parse/x", "data/parse/x"]}
        assert store.records([gone])[gone].outputs == ()
        assert len(store.records([shared])[shared].outputs) == 2
        with store.db.read() as connection:
            for table in (metric, rule_hit):
                assert list(connection.execute(sa.select(table.c.task_key)).scalars()) == [shared]
        assert store.unwanted_tasks(HOUR) == []

    def test_an_error_while_files_are_deleted_leaves_the_rows(self, store: StateStore) -> None:
        key = self._ran(store, "r1", "gone")
        self._age(store)
        store.forget_tasks_of("r1", HOUR)
        store.open_unwanted([key])
        with pytest.raises(RuntimeError), store.emptied_tasks([key]):
            raise RuntimeError
        assert store.unwanted_tasks(HOUR) == [key]

    def test_who_wants_the_task_again_waits_until_its_files_are_gone(self, store: StateStore) -> None:
        key = self._ran(store, "r1", "gone")
        self._age(store)
        store.forget_tasks_of("r1", HOUR)
        store.open_unwanted([key])
        store.create_run("r2", "web", "job", "full", "{}", None)
        told: list[str] = []

        def want() -> None:
            with StateStore(store.url) as other:
                other.enqueue("r2", [spec("gone")])
                assert other.claim(key, "me") is not None
                told.append("claimed")

        thread = threading.Thread(target=want)
        with store.emptied_tasks([key]) as held:
            assert list(held) == [key]
            thread.start()
            thread.join(0.5)
            told.append("deleted")
        thread.join()
        assert told == ["deleted", "claimed"]
        assert store.is_anything_live()

    def test_a_task_that_a_run_has_taken_up_again_is_left_alone(self, store: StateStore) -> None:
        key = self._ran(store, "r1", "gone")
        self._age(store)
        store.forget_tasks_of("r1", HOUR)
        store.create_run("r2", "web", "job", "full", "{}", None)
        store.enqueue("r2", [spec("gone")])
        assert store.open_unwanted([key]) == 0
        with store.emptied_tasks([key]) as held:
            assert dict(held) == {}
        assert self._state(store, key) == "SUCCESS"

    def test_uris_by_the_beginning_of_their_keys(self, store: StateStore) -> None:
        key = self._ran(store, "r1", "a")
        assert store.stored_uris(key[:2]) == {"data/parse/x"}
        other = f"{(int(key[:2], 16) + 1) % 256:02x}"
        assert store.stored_uris(other) == set()
        assert store.stored_uris("ff") == ({"data/parse/x"} if key.startswith("ff") else set())

    def test_what_may_be_moved(self, store: StateStore) -> None:
        old, live = self._ran(store, "r1", "a"), self._ran(store, "r2", "b")
        kinds = [(store.records([old])[old].step, o.kind) for o in store.records([old])[old].outputs]

        def movable(*not_of: str, age: float = HOUR, of: object = None) -> list[str]:
            wanted = kinds if of is None else [of]
            prefixes = {key[:2] for key in (old, live)}
            found = [m for p in sorted(prefixes) for m in store.movable_outputs(p, wanted, age, not_of)]  # type: ignore[arg-type]
            for one in found:
                assert {(o.uri, o.size, o.mtime_ns, o.sha256) for o in store.records([old])[old].outputs} >= {
                    tuple(one)
                }
            return [one.uri for one in found]

        assert movable() == [], "both ended just now"
        self._age(store)
        outputs = len(kinds)
        assert len(movable()) == 2 * outputs
        assert movable(of=("else", "text")) == movable(of=(kinds[0][0], "else")) == []
        assert len(movable("r2")) == outputs
        assert movable("r1", "r2") == []
        store.create_run("r3", "web", "job", "full", "{}", None)
        store.enqueue("r3", [spec("b")])
        assert len(movable()) == outputs, "a live run holds the other one"
        store.ghost(old)
        assert movable() == []

    def test_decisions_have_a_history(self, store: StateStore) -> None:
        store.add_version("web", "v1", "m1", "u", "r1", "AWAITING_APPROVAL")
        assert store.add_version_event("web", "v1", "published", "r1", "first")
        assert not store.add_version_event("web", "v1", "published", "r1", "said again after a kill")
        store.set_current("web", "v1", "ann", "approved", "looked at 资料")
        store.add_version("web", "v2", "m2", "u", "r1", "AWAITING_APPROVAL")
        store.set_version_state("web", "v2", "REJECTED", "rejected", "bob", "too short")
        found = [(e.version_id, e.action, e.who, e.note) for e in store.version_events("web")]
        assert found == [
            ("v2", "rejected", "bob", "too short"),
            ("v1", "approved", "ann", "looked at 资料"),
            ("v1", "published", "r1", "first"),
        ]
        assert store.version_events("code") == []
        with pytest.raises(VersionError):
            store.set_version_state("web", "v1", "REJECTED", "rejected", "bob")
        assert len(store.version_events()) == 3, "what was refused is no decision"

    def test_increments_and_removed_versions_never_become_current(self, store: StateStore) -> None:
        store.create_run("i1", "web", "job", "incremental", "{}", "2026-01-02")
        day = store.add_version("web", "d1", "m1", "u", "i1", "PUBLISHED")
        assert (day.mode, day.data_date) == ("incremental", "2026-01-02")
        with pytest.raises(VersionError, match="increment"):
            store.set_current("web", "d1", "ann", "approved")
        store.add_version("web", "v1", "m2", "u", "r1", "PUBLISHED")
        store.set_version_state("web", "v1", "REMOVED")
        with store.removed_version("web", "v1") as held:
            assert held
        with store.removed_version("web", "d1") as held:
            assert not held
        with pytest.raises(VersionError, match="removed"):
            store.set_current("web", "v1", "ann")
        assert store.current("web") is None
        assert store.version_events() == []

    def test_what_others_build_on_is_not_removed(self, store: StateStore) -> None:
        store.create_run("i1", "web", "job", "incremental", "{}", "2026-01-02")
        store.add_version("web", "v1", "m1", "u", "r1", "PUBLISHED")
        day = store.add_version("web", "d1", "m2", "u", "i1", "PUBLISHED", "v1")
        assert (day.base, day.is_increment) == ("v1", False)
        assert store.set_current("web", "d1", "i1").is_current, "what builds on a version is no increment"
        store.add_version("web", "v2", "m3", "u", "r1", "PUBLISHED")
        store.set_current("web", "v2", "ann")
        with pytest.raises(VersionError, match="d1 builds on it"):
            store.set_version_state("web", "v1", "REMOVED")
        store.set_version_state("web", "d1", "REMOVED")
        store.set_version_state("web", "v1", "REMOVED")
        with pytest.raises(VersionError, match="nothing can build on it"):
            store.add_version("web", "d2", "m4", "u", "i1", "PUBLISHED", "v1")

    def test_a_compacted_version_needs_no_folder_of_others(self, store: StateStore) -> None:
        store.create_run("c1", "web", "job", "compact", "{}", "2026-01-02")
        store.create_run("i1", "web", "job", "incremental", "{}", "2026-01-02")
        store.add_version("web", "v1", "m1", "u", "r1", "PUBLISHED")
        store.add_version("web", "d1", "m2", "u", "i1", "PUBLISHED", "v1")
        made = store.add_version("web", "c1", "m3", "u", "c1", "AWAITING_APPROVAL", "d1")
        assert (made.is_compact, made.is_increment, made.base) == (True, False, "d1")
        store.set_current("web", "d1", "i1")
        with pytest.raises(VersionError, match="d1 of web is current now, not v1"):
            store.set_current("web", "c1", "c1", "published", "no", instead_of="v1")
        assert store.version_events() == [], "nothing happened"
        assert store.set_current("web", "c1", "c1", "published", "yes", instead_of="d1").is_current
        assert [event.note for event in store.version_events()] == ["yes"]
        store.set_version_state("web", "d1", "REMOVED")
        store.set_version_state("web", "v1", "REMOVED")

    def test_a_run_lets_go_of_some_steps_alone(self, store: StateStore) -> None:
        self._ran(store, "r1", "a")
        self._age(store)
        assert store.forget_tasks_of("r1", HOUR, ["export"]) == 0
        assert store.forget_tasks_of("r1", 20 * HOUR, ["parse"]) == 0, "too young"
        assert store.forget_tasks_of("r1", HOUR, ["parse"]) == 1
        assert store.forget_tasks_of("r1", HOUR, ["parse"]) == 0

    def test_settings_of_a_run_change_once(self, store: StateStore) -> None:
        before = store.create_run("i1", "web", "job", "incremental", '{"a": 1}', "2026-01-02").settings
        assert store.change_settings("i1", before, '{"a": 2}').settings == '{"a": 2}'
        assert store.change_settings("i1", before, '{"a": 3}').settings == '{"a": 2}', "others were quicker"
        with pytest.raises(StateError):
            store.change_settings("none", before, "{}")

    def test_contents_are_the_outputs_without_slices(self, store: StateStore) -> None:
        key = self._ran(store, "r1", "a")
        [output] = store.outputs_of_step("r1", "parse", store.records([key])[key].outputs[0].kind).values()
        [content] = store.contents_of_step("r1", "parse", output.kind).values()
        assert (content.sha256, content.rows, content.size) == (output.sha256, output.rows, output.size)
        store.ghost(key)
        assert store.contents_of_step("r1", "parse", output.kind) == {}
