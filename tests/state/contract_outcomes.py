"""What every state database must do with dead letters, versions, sums and events."""

from __future__ import annotations

import pytest

from dataflow_ops.errors import (
    ConfigError,
    VersionError,
)
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.tables import cursor, outbox
from dataflow_ops.values import Counts, DeadLetter
from tests.state.store_case import StoreCase, letter, spec


class OutcomesContract(StoreCase):
    def test_dead_letters_can_be_found_counted_retried_and_dropped(self, store: StateStore) -> None:
        key = self._task(store)
        odd = letter("\ud800\0.html", "UndecodableText")
        self._commit(store, self._claim(store, key), [letter("b"), letter("a"), odd])
        assert [d.letter.path for d in store.dead_letters("r1")] == ["a", "b", "\ufffd\ufffd.html"]
        assert store.dead_letters("r2") == []
        assert len(store.dead_letters(dataset="web", error="ParserFailed")) == 2
        assert store.dead_letters(dataset="code") == []
        assert len(store.dead_letters(limit=1)) == 1
        assert store.count_dead_letters("error") == {"ParserFailed": 2, "UndecodableText": 1}
        assert store.count_dead_letters("host", run_id="r1") == {"h": 3}
        with pytest.raises(ConfigError):
            store.count_dead_letters("message")  # type: ignore[arg-type]
        a, b, _ = store.dead_letters()
        assert store.retry_dead_letter([a.id]) == 1
        assert store.retry_dead_letter([a.id]) == 0
        assert store.drop_dead_letters([a.id, b.id]) == 1
        assert len(store.dead_letters()) == 1
        assert [d.id for d in store.dead_letters(state="retried")] == [a.id]

    def test_what_a_person_decided_outlives_a_rerun(self, store: StateStore) -> None:
        key = self._task(store)
        self._commit(store, self._claim(store, key), [letter("a"), letter("b")])
        a, _ = store.dead_letters()
        store.drop_dead_letters([a.id])
        store.ghost(key)
        self._commit(store, self._claim(store, key), [letter("a"), letter("b")])
        assert {d.letter.path: d.state for d in store.dead_letters(state=None)} == {
            "a": "dropped",
            "b": "open",
        }

    def test_a_dropped_letter_stays_dropped_under_a_retried_key(self, store: StateStore) -> None:
        odd = letter("\ud800\0.html")

        def read(key: str, *letters: DeadLetter, run_id: str = "r1", partition: str = "p") -> dict[str, str]:
            """Commit a key of a partition; give the state of its letters by path and error."""
            one = spec(key, partition=partition)
            store.enqueue(run_id, [one])
            self._commit(store, self._claim(store, one.key), letters)
            found = store.dead_letters(state=None)
            return {f"{d.letter.path} {d.letter.error}": d.state for d in found if d.task_key == one.key}

        def ids(path: str, key: str) -> list[str]:
            found = store.dead_letters(state=None)
            return [d.id for d in found if d.letter.path == path and d.task_key == spec(key).key]

        read("first", letter("a"), letter("b"), odd)
        store.drop_dead_letters(ids("a", "first") + ids("\ufffd\ufffd.html", "first"))
        store.retry_dead_letter(ids("b", "first"))
        store.create_run("other", "code", "job", "full", "{}", "2026-01-02")
        assert read("code", letter("a"), run_id="other") == {"a ParserFailed": "open"}, "another data set"
        # The run takes up the retried key and lets go of the first one.
        assert read("second", letter("a"), letter("b"), odd) == {
            "a ParserFailed": "dropped",
            "b ParserFailed": "open",
            "\ufffd\ufffd.html ParserFailed": "dropped",
        }
        store.create_run("r2", "web", "job", "full", "{}", "2026-01-02")
        anew = [letter("a", "UndecodableText"), letter("a", position=8)]
        assert read("third", letter("a"), anew[0], run_id="r2") == {
            "a ParserFailed": "dropped",
            "a UndecodableText": "open",
        }
        assert read("fourth", anew[1], run_id="r2") == {"a ParserFailed": "open"}, "another record"
        assert read("elsewhere", letter("a"), partition="q") == {"a ParserFailed": "dropped"}, "another chunk"
        # What was dropped and then put back is open again: the last word counts.
        store.retry_dead_letter(ids("a", "third"))
        assert read("fifth", letter("a"), run_id="r2") == {"a ParserFailed": "open"}
        store.drop_dead_letters(ids("a", "fifth"))
        assert read("sixth", letter("a"), run_id="r2") == {"a ParserFailed": "dropped"}

    def test_closing_what_was_read_anew_does_not_undo_a_drop(self, store: StateStore) -> None:
        def read(key: str, run_id: str) -> str:
            """Commit a key with one letter; give the letter's id."""
            store.enqueue(run_id, [spec(key)])
            self._commit(store, self._claim(store, spec(key).key), [letter("a")])
            (found,) = (d for d in store.dead_letters(run_id, state=None) if d.task_key == spec(key).key)
            return found.id

        def states() -> list[str]:
            return sorted(d.state for d in store.dead_letters(state=None))

        read("first", "r1")
        store.create_run("day", "web", "job", "incremental", "{}", "2026-01-02")
        assert store.drop_dead_letters([read("of the day", "day")]) == 1
        assert store.letters_read_anew(["r1"], {("web", "a")}) == 1
        assert states() == ["dropped", "retried"]
        store.create_run("r2", "web", "job", "full", "{}", "2026-01-03")
        read("all days", "r2")
        assert states() == ["dropped", "dropped", "retried"]

    def test_letters_of_what_a_later_run_read_anew_are_past(self, store: StateStore) -> None:
        store.create_run("other", "code", "job", "full", "{}", "2026-01-01")
        for name, run_id in (("old", "r1"), ("kept", "r1"), ("code", "other")):
            partition = {"old": "p", "kept": "q", "code": "p"}[name]
            store.enqueue(run_id, [spec(name, partition=partition)])
            self._commit(store, self._claim(store, spec(name).key), [letter(name)])

        def paths() -> list[str]:
            found = [d.letter.path for d in store.dead_letters(newest=True)]
            assert sum(store.count_dead_letters("error", newest=True).values()) == len(found)
            return found

        assert paths() == ["code", "kept", "old"]
        store.create_run("r2", "web", "job", "full", "{}", "2026-01-02")
        store.enqueue("r2", [spec("listing", "discover")])
        assert paths() == ["code", "kept", "old"], "the new run has read nothing yet"
        store.enqueue("r2", [spec("new", partition="p"), spec("kept", partition="q")])
        assert paths() == ["code", "kept"]
        self._commit(store, self._claim(store, spec("new").key), [letter("new")])
        assert paths() == ["code", "kept", "new"]
        store.enqueue("r2", [spec("retried", partition="p")])
        assert paths() == ["code", "kept"], "the partition has a new key"
        assert len(store.dead_letters()) == 4

    def test_retrying_the_letter_of_a_dead_chunk_revives_it(self, store: StateStore) -> None:
        key = self._task(store)
        store.fail(self._claim(store, key), "X", "x", "", 1)
        (dead,) = store.dead_letters()
        assert store.retry_dead_letter([dead.id]) == 1
        assert self._state(store, key) == "PENDING"
        store.fail(self._claim(store, key), "X", "x", "", 1)
        assert [d.id for d in store.dead_letters()] == [dead.id], "dead again is open again"

    # Versions

    def test_versions(self, store: StateStore) -> None:
        first = store.add_version("web", "v1", "m1", "versions/v1", "r1", "PUBLISHED")
        assert (first.version_id, first.is_current) == ("v1", False)
        assert store.add_version("web", "v1b", "m1", "x", "r1", "PUBLISHED") == first
        assert store.add_version("web", "v1", "m1", "x", "r1", "PUBLISHED") == first
        with pytest.raises(VersionError, match="another manifest"):
            store.add_version("web", "v1", "m2", "x", "r1", "PUBLISHED")
        store.add_version("web", "v2", "m2", "versions/v2", "r1", "PUBLISHED")
        store.add_version("code", "v1", "m1", "versions/c1", "r1", "PUBLISHED")
        assert store.current("web") is None
        assert store.set_current("web", "v1", "ann").is_current
        store.set_current("web", "v2", "ann")
        assert [(v.version_id, v.is_current) for v in store.versions("web")] == [("v2", True), ("v1", False)]
        assert len(store.versions()) == 3
        with pytest.raises(VersionError, match="v9"):
            store.set_current("web", "v9")
        current = store.current("web")
        assert current is not None
        assert current.version_id == "v2"
        event = [e for e in store.pending_events() if e.topic == "version.current"][-1]
        assert event.payload == {"version": "v2", "before": "v1", "who": "ann"}

    def test_what_becomes_current_is_published_with_it(self, store: StateStore) -> None:
        store.add_version("web", "v1", "m1", "u", "r1", "AWAITING_APPROVAL")
        assert store.set_current("web", "v1", "r1").state == "PUBLISHED"
        assert [v.state for v in store.versions("web")] == ["PUBLISHED"]
        topics = [e.topic for e in store.pending_events() if e.topic.startswith("version.")]
        assert topics == ["version.added", "version.state", "version.published", "version.current"]
        store.add_version("web", "v2", "m2", "u", "r1", "REJECTED")
        with pytest.raises(VersionError, match="was rejected"):
            store.set_current("web", "v2", "r1")
        assert store.versions("web")[0].state == "REJECTED"

    def test_rollback(self, store: StateStore) -> None:
        for i in (1, 2, 3, 4):
            store.add_version("web", f"v{i}", f"m{i}", "u", "r1", "PUBLISHED")
        with pytest.raises(VersionError, match="no current"):
            store.rollback("web")
        store.set_version_state("web", "v2", "REJECTED")
        store.set_current("web", "v3")
        assert store.rollback("web").version_id == "v1"
        with pytest.raises(VersionError, match="no version before"):
            store.rollback("web")
        store.set_current("web", "v3")
        with pytest.raises(VersionError, match="not older"):
            store.rollback("web", "v4")
        with pytest.raises(VersionError, match="rejected"):
            store.rollback("web", "v2")
        assert store.rollback("web", "v1").version_id == "v1"
        with pytest.raises(VersionError, match="roll back first"):
            store.set_version_state("web", "v1", "REJECTED")

    # Sums

    def test_sums_of_a_run(self, store: StateStore) -> None:
        store.enqueue("r1", [spec("a"), spec("b"), spec("c")])
        store.enqueue("r1", [spec("d", step="filter")])
        for name in ("a", "b"):
            self._commit(store, self._claim(store, spec(name).key))
        sums = store.metrics_of_run("r1")
        assert list(sums) == ["parse", "filter"]
        parse = sums["parse"]
        assert parse.counts == Counts(8, 4, 2, 0, {"later": 2}, 4, 200, 14)
        assert (parse.metrics, parse.seconds) == ({"m": 3.0}, 4.0)
        assert parse.tasks == {"PENDING": 1, "SUCCESS": 2}
        assert parse.first_start is not None
        assert parse.last_end is not None
        assert parse.first_start <= parse.last_end
        assert store.rule_hits_of_run("r1") == {"parse": {"rule": 2}}
        assert store.metrics_of_run("nope") == {}

    # Outbox

    def test_events_are_sent_once_they_are_marked(self, store: StateStore) -> None:
        self._commit(store, self._claim(store, self._task(store)))
        events = store.pending_events()
        assert [e.topic for e in events][-2:] == ["task.running", "task.success"]
        assert events[-1].payload["partition"] == "t"
        store.mark_sent([e.id for e in events[:-1]])
        store.mark_sent([])
        assert [e.id for e in store.pending_events()] == [events[-1].id]
        assert store.prune_events(older_than_s=60) == 0
        # The newest stays, or its id would be given again.
        assert store.prune_events(older_than_s=-60) == len(events) - 1
        assert self._number(store, outbox) == 1
        assert self._number(store, cursor) == 0
