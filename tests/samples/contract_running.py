"""What keeps tasks from running for ever, and from doing anything twice, on every database.

The five faults of a system that came before are here by name, with those of the upsert in tests/state: a
payload without its primary key, an offset that was not reset, a pause written as a failure, an empty string
as a result (tests/samples/augment), the endless reading of one's own writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from dataflow_ops.control.pause import PauseWatch
from dataflow_ops.errors import CommitUnknown, DatabaseUnavailable, EndlessRead, LeaseLost, MissingPrimaryKey
from dataflow_ops.samples.deleting import DeleteStep, ask_deletion, delete_or_restore
from dataflow_ops.samples.running import Batch, run_task
from dataflow_ops.state.cursors import files_to_read
from dataflow_ops.state.sample_tables import sample
from dataflow_ops.state.samples.query import Filter
from dataflow_ops.state.samples.records import Claim
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.state.samples.turns import read_records
from dataflow_ops.state.upsert import upsert
from tests.state.samples.sample_case import SampleCase, put_file, put_turns


class Stage:
    """Reads turns and updates them, as any step does."""

    def __init__(self, store: SampleStore, rows: int = 4) -> None:
        self.store, self.rows = store, rows
        self.seen: list[tuple[str, int]] = []

    def batches(self, claim: Claim) -> Iterator[Batch[list[Any]]]:
        for file, first in files_to_read(claim.task.files, claim.cursor):
            while True:
                with self.store.read() as connection:
                    turns = read_records(connection, file, first, claim.task.highest_id or 0, self.rows)
                if not turns:
                    break
                first = turns[-1][1] + 1
                self.seen += [(file, turn[1]) for turn in turns]
                yield Batch(file, first, len(turns), list(turns))

    def keep(self, connection: sa.Connection, claim: Claim, batch: Batch[list[Any]]) -> Mapping[str, float]:
        rows = [{"id": turn[0], "status": "KEPT"} for turn in batch.content]
        return {"updated": upsert(connection, sample, rows, mode="update").updated}


class RunningContract(SampleCase):
    def _ask(self, store: SampleStore, *files: str, turns: int = 12) -> str:
        for number, file in enumerate(files):
            put_file(store, file)
            put_turns(store, file, range(100 * number + 1, 100 * number + 1 + turns))
        return store.create_task("t", "chat", "clean", {}, files, "ann").task_id

    def test_a_stage_that_reads_and_writes_one_table_ends(self, store: SampleStore) -> None:
        task = run_task(store, self._ask(store, "fa", "fb"), Stage(store))
        assert (task.state, task.counts) == ("SUCCESS", {"updated": 24})

    def test_rows_that_come_meanwhile_are_not_chased(self, store: SampleStore) -> None:
        """Each batch brings as many new rows into another file as it reads: it ends with what there was."""

        class Breeding(Stage):
            def keep(
                self, connection: sa.Connection, claim: Claim, batch: Batch[list[Any]]
            ) -> Mapping[str, float]:
                base = 1000 + 10 * batch.end
                rows = [_new(base + n, "fb", batch.end, n) for n in range(batch.rows)]
                upsert(connection, sample, rows)
                return super().keep(connection, claim, batch)

        task_id = self._ask(store, "fa")
        put_file(store, "fb")
        task = run_task(store, task_id, Breeding(store))
        assert (task.state, task.counts) == ("SUCCESS", {"updated": 12})

    def test_a_stage_whose_updates_become_inserts_is_stopped(self, store: SampleStore) -> None:
        """The old fault: every batch makes new rows of the file that it reads."""

        class Inserting(Stage):
            def keep(
                self, connection: sa.Connection, claim: Claim, batch: Batch[list[Any]]
            ) -> Mapping[str, float]:
                rows = [_new(1000 + turn[0], "fa", 1000 + turn[1], turn[2]) for turn in batch.content]
                return {"inserted": upsert(connection, sample, rows).inserted}

        task_id = self._ask(store, "fa")
        with pytest.raises(EndlessRead, match="an update became an insert"):
            run_task(store, task_id, Inserting(store))
        task = store.sample_task(task_id)
        assert (task.state, task.error_type, task.counts) == ("FAILED", "EndlessRead", {})
        assert self._number(store, sample) == 12

    def test_a_stage_that_reads_past_the_snapshot_is_stopped(self, store: SampleStore) -> None:
        """A reader that begins again and again, as one by offset over rows that move does."""

        class Circling(Stage):
            def batches(self, claim: Claim) -> Iterator[Batch[list[Any]]]:
                while True:
                    yield from super().batches(claim)

        task_id = self._ask(store, "fa")
        with pytest.raises(EndlessRead, match="there were 12"):
            run_task(store, task_id, Circling(store))
        assert store.sample_task(task_id).counts == {"updated": 12}

    def test_an_update_without_its_key_can_not_be_written(self, store: SampleStore) -> None:
        class Keyless(Stage):
            def keep(
                self, connection: sa.Connection, claim: Claim, batch: Batch[list[Any]]
            ) -> Mapping[str, float]:
                rows = [
                    {"dataset_file_id": batch.file_id, "row_identifier": turn[1]} for turn in batch.content
                ]
                upsert(connection, sample, rows, mode="update")
                return {}

        task_id = self._ask(store, "fa")
        with pytest.raises(MissingPrimaryKey, match=r"table sample.*primary key: id"):
            run_task(store, task_id, Keyless(store))
        assert store.sample_cursor(task_id) is None

    def test_the_offset_returns_to_0_after_the_resumed_file(self, store: SampleStore) -> None:
        task_id = self._ask(store, "fa", "fb", "fc")
        step = Stage(store)

        def pause(done: int) -> None:
            if done == 16:  # in the middle of the second file
                store.set_pause("run", task_id, "ann")

        watch = PauseWatch(store, task_id, "chat", interval_s=1e-9)
        assert run_task(store, task_id, step, watch, told=pause).state == "PAUSED"
        at = store.sample_cursor(task_id)
        assert at is not None
        assert (at.file_id, at.offset, at.processed_rows) == ("fb", 2, 16)
        store.clear_pause("run", task_id)
        again = Stage(store)
        assert run_task(store, task_id, again).counts == {"updated": 36}
        assert again.seen[0] == ("fb", 2)
        assert next(record for file, record in again.seen if file == "fc") == 0
        assert len(step.seen + again.seen) == len(set(step.seen + again.seen)) * 2 == 36

    # A database that goes away in the middle of a batch

    @pytest.mark.parametrize("cut", [4, 5], ids=["the last batch", "the end"])
    def test_a_commit_whose_outcome_is_unknown_is_read_and_not_repeated(
        self, store: SampleStore, monkeypatch: pytest.MonkeyPatch, cut: int
    ) -> None:
        task_id = self._ask(store, "fa")
        step = Stage(store)
        real, calls = store.db.write, []

        @contextmanager
        def write() -> Iterator[sa.Connection]:
            with real() as connection:
                yield connection
            calls.append(len(step.seen))
            if len(calls) == cut:  # claim, three batches, end: this one was committed
                raise CommitUnknown("the line is cut")

        monkeypatch.setattr(store.db, "write", write)
        task = run_task(store, task_id, step)
        assert (task.state, task.counts) == ("SUCCESS", {"updated": 12})

    def test_a_batch_that_was_undone_is_written_again(self, store: SampleStore) -> None:
        class Cut(Stage):
            cuts = 2

            def keep(
                self, connection: sa.Connection, claim: Claim, batch: Batch[list[Any]]
            ) -> Mapping[str, float]:
                counts = super().keep(connection, claim, batch)
                if self.cuts:
                    self.cuts -= 1
                    raise DatabaseUnavailable("restarted")
                return counts

        task_id = self._ask(store, "fa")
        store.be_patient(30)
        assert run_task(store, task_id, Cut(store)).counts == {"updated": 12}
        store.be_patient(0)
        with store.write() as connection:
            connection.execute(sa.update(sample).values(status="NEW"))
        other = store.create_task("u", "chat", "clean", {}, ["fa"], "ann").task_id
        with pytest.raises(DatabaseUnavailable):
            run_task(store, other, Cut(store))
        assert store.sample_task(other).counts == {}

    def test_who_lost_the_task_writes_nothing(self, store: SampleStore) -> None:
        task_id = self._ask(store, "fa")

        class Slow(Stage):
            def keep(
                self, connection: sa.Connection, claim: Claim, batch: Batch[list[Any]]
            ) -> Mapping[str, float]:
                raise AssertionError("it is not asked to write")

            def batches(self, claim: Claim) -> Iterator[Batch[list[Any]]]:
                store.cancel_task(task_id, "ann")
                yield from super().batches(claim)

        with pytest.raises(LeaseLost):
            run_task(store, task_id, Slow(store))
        assert store.sample_task(task_id).state == "CANCELLED"

    # Deleting

    def test_deleting_by_a_filter_takes_whole_dialogues(self, store: SampleStore) -> None:
        put_file(store)
        put_turns(store, "f1", range(1, 41))
        only = Filter(("f1",), contains="text 1")  # ten and more of the forty
        task = delete_or_restore(store, "chat", only, "ann", restore=False)
        hit = {n for n in range(1, 41) if f"text {n}".startswith("text 1")}
        dialogues = {(n - 1) // 2 for n in hit}
        assert (task.state, task.kind, task.who) == ("SUCCESS", "delete", "ann")
        assert task.counts == {"dialogues": len(dialogues), "rows": 2 * len(dialogues)}
        left = {turn["row_identifier"] for turn in store.page(Filter(("f1",)), limit=100)}
        assert left == set(range(20)) - dialogues
        again = delete_or_restore(store, "chat", only, "ann", restore=False)
        assert (again.state, again.counts) == ("SUCCESS", {})
        back = delete_or_restore(store, "chat", only, "bob", restore=True)
        assert back.counts == task.counts
        assert len(store.page(Filter(("f1",)), limit=100)) == 40
        assert [c["who"] for c in store.history(min(hit))] == ["ann", "bob"]

    def test_a_deletion_goes_on_where_it_was_paused(self, store: SampleStore) -> None:
        put_file(store)
        put_turns(store, "f1", range(1, 41))
        task_id = ask_deletion(store, "chat", Filter(("f1",)), "ann", restore=False).task_id

        def interrupt(_: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_task(store, task_id, DeleteStep(store, 3), told=interrupt)
        assert store.sample_task(task_id).state == "PAUSED"
        assert len(store.page(Filter(("f1",)), limit=100)) == 34
        task = run_task(store, task_id, DeleteStep(store, 3))
        assert (task.state, task.counts) == ("SUCCESS", {"dialogues": 20, "rows": 40})


def _new(id_: int, file: str, record: int, turn: int) -> dict[str, Any]:
    return {
        "id": id_,
        "dataset_file_id": file,
        "row_identifier": record,
        "turn_taking": turn,
        "data_role": "user",
        "data_content": "x",
        "data_length": 1,
        "status": "NEW",
        "created_at": 0.0,
        "updated_at": 0.0,
    }
