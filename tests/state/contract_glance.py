"""What every state database must tell at a glance about runs with many tasks."""

from __future__ import annotations

from dataclasses import replace

from dataflow_ops.state.store import StateStore
from dataflow_ops.values import Counts
from tests.state.store_case import StoreCase, letter, output, spec


class GlanceContract(StoreCase):
    def _done(
        self, store: StateStore, name: str, rule: str = "rule", run_id: str = "r1", step: str = "parse"
    ) -> str:
        one = spec(name, step)
        store.enqueue(run_id, [one])
        claim = self._claim(store, one.key)
        counts = Counts(4, 3, 1, 0, {}, 3, 100, 7)
        store.commit(claim, [output("text", f"data/{name}")], counts, {}, {rule: 1}, [], float(len(name)))
        return one.key

    def test_the_newest_tasks_of_a_run_come_first(self, store: StateStore) -> None:
        for name in ("a", "bb", "ccc"):
            self._done(store, name, rule="odd" if name == "bb" else "rule")
        store.create_run("r2", "web", "job", "full", "{}", "2026-01-02")
        self._done(store, "later", run_id="r2")
        newest = store.newest_tasks("r1", "parse", 2)
        assert [t.partition for t in newest] == ["ccc", "bb"]
        assert [t.partition for t in store.newest_tasks("r1", "parse", 5, rule="odd")] == ["bb"]
        assert [t.partition for t in store.newest_tasks("r1", "parse", 2, rule="")] == ["ccc", "bb"]
        until = newest[1].ended_at
        assert [t.partition for t in store.newest_tasks("r1", "parse", 5, until=until)] == ["bb", "a"]
        assert store.newest_tasks("r1", "filter", 5) == []
        assert [t.partition for t in store.slowest_tasks("r1", "parse", 2)] == ["ccc", "bb"]
        assert store.number_of_tasks("r1", "parse") == 3

    def test_tasks_in_rare_states_with_what_they_say_of_themselves(self, store: StateStore) -> None:
        self._done(store, "a")
        running = self._claim(store, self._task(store, "b"))
        store.heartbeat(running, {"rows": 5, "position": 9})
        store.checkpoint(running, 7, 4)
        failed = self._claim(store, self._task(store, "c"))
        store.fail(failed, "ParserFailed", "bad", "stack", 3)
        self._task(store, "d")
        (one,) = store.tasks_in("r1", ("RUNNING",), ["parse"], 10)
        assert (one.partition, one.progress, one.owner) == ("b", {"rows": 5, "position": 9}, "me")
        assert store.cursors_of([one.key]) == {one.key: (7, 4)}
        both = store.tasks_in("r1", ("RUNNING", "FAILED"), ["parse"], 10)
        assert {t.partition for t in both} == {"b", "c"}
        assert [t.error_trace for t in both if t.state == "FAILED"] == ["stack"]
        assert store.tasks_in("r1", ("RUNNING",), ["filter"], 10) == []
        assert store.tasks_in("r0", ("RUNNING",), ["parse"], 10) == []
        assert len(store.tasks_in("r1", ("RUNNING", "FAILED"), ["parse"], 1)) == 1

    def test_outputs_and_rows_of_a_few_partitions(self, store: StateStore) -> None:
        for name in ("a", "b"):
            self._done(store, name)
        ghost = self._done(store, "c")
        store.ghost(ghost)
        found = store.outputs_of_partitions("r1", "parse", "text", ["a", "c", "none"])
        assert found == {"a": store.outputs_of_step("r1", "parse", "text")["a"]}
        assert store.outputs_of_partitions("r1", "parse", "rejects", ["a"]) == {}
        assert store.counts_of_partitions("r1", "parse", ["b"]) == {"b": 3}

    def test_work_of_late(self, store: StateStore) -> None:
        before = store.now()
        self._done(store, "a")
        self._done(store, "bb", step="filter")
        assert store.recent_work("r1", ["parse", "filter"], before - 1) == {
            "parse": (1, 4, 7, 1.0),
            "filter": (1, 4, 7, 2.0),
        }
        assert store.recent_work("r1", ["parse"], store.now() + 60) == {}
        assert store.recent_work("r0", ["parse"], before - 1) == {}

    def test_the_run_before(self, store: StateStore) -> None:
        first = store.get_run("r1")
        assert first is not None
        store.create_run("day", "web", "job", "incremental", "{}", "2026-01-02")
        store.create_run("other", "code", "job", "full", "{}", "2026-01-02")
        now = store.create_run("r2", "web", "job", "full", "{}", "2026-01-03")
        assert store.run_before(first) is None
        assert store.run_before(now) == first
        assert store.run_before(now, finished=True) is None
        done = store.set_run_state("r1", "succeed")
        assert store.run_before(now, finished=True) == done
        before = store.run_before(now, mode="incremental")
        assert before is not None
        assert before.run_id == "day"

    def test_letters_by_what_they_have_in_common(self, store: StateStore) -> None:
        key = self._task(store)
        self._commit(store, self._claim(store, key), [letter("a"), letter("b"), letter("c", "FileError")])
        store.drop_dead_letters([d.id for d in store.dead_letters() if d.letter.path == "b"])
        groups = {(g.error, g.state): g for g in store.letter_groups("r1")}
        assert {key: group.number for key, group in groups.items()} == {
            ("ParserFailed", "open"): 1,
            ("ParserFailed", "dropped"): 1,
            ("FileError", "open"): 1,
        }
        example = groups["FileError", "open"].example
        assert store.letter_places([example]) == {example: ("web", "c", "bad")}
        assert store.letters_of_group("r1", "FileError", "parse", ("open",)) == [example]
        assert len(store.letters_of_group("r1", "ParserFailed", "parse", ("open", "dropped"))) == 2
        assert store.letters_of_group("r1", "ParserFailed", "parse", ("open",), example) == []
        assert store.letters_of_group("r1", "FileError", "parse", ("open",), example) == [example]
        assert store.letter_groups("r0") == []

    def test_letters_of_a_group_a_page_at_a_time(self, store: StateStore) -> None:
        key = self._task(store, "a")
        letters = [letter(name) for name in "abcde"]
        letters[0] = replace(letters[0], message="another")
        self._commit(store, self._claim(store, key), [*letters, letter("f", "FileError")])
        seen: list[str] = []
        pages = []
        while page := store.letter_page("r1", "ParserFailed", "parse", 2, seen[-1] if seen else ""):
            seen += [one.id for one in page]
            pages.append(page)
        assert [len(page) for page in pages] == [2, 2, 1]
        assert seen == store.letters_of_group("r1", "ParserFailed", "parse", ("open",)) == sorted(seen)
        told = {one.path: one for page in pages for one in page}
        assert set(told) == set("abcde")
        assert (told["a"].source, told["a"].message, told["a"].state) == ("web", "another", "open")
        assert store.letter_page("r0", "ParserFailed", "parse", 2) == []
        assert store.messages_of_groups("r1") == {("ParserFailed", "parse"): 2, ("FileError", "parse"): 1}
        assert store.messages_of_groups("r0") == {}
