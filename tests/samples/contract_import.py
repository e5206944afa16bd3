"""What an import must do on every database. Subclasses supply ``url``: a fresh, migrated database."""

from __future__ import annotations

import gzip
import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
import zstandard

from dataflow_ops.control.pause import PauseWatch
from dataflow_ops.errors import (
    ConfigError,
    IllegalMove,
    LeaseLost,
    MissingPrimaryKey,
    SourceChanged,
    StateError,
)
from dataflow_ops.samples.importing import ImportStep, plan_import
from dataflow_ops.samples.running import run_task
from dataflow_ops.state.sample_tables import sample
from dataflow_ops.state.samples.records import SampleTask
from dataflow_ops.state.samples.store import SampleStore
from tests.state.samples.sample_case import SampleCase, put_file

CASES = Path(__file__).parents[1] / "cases" / "data" / "dialogue"
KEY = (sample.c.row_identifier, sample.c.turn_taking)
IMPORTED = (
    "dataset_file_id",
    "row_identifier",
    "turn_taking",
    "data_role",
    "data_content",
    "data_length",
    "data_meta",
)


def record(number: int, turns: int = 3) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {
        "id": f"u{number % 5}",
        "messages": [{"role": roles[n % 2], "content": f"{number}.{n} 水"} for n in range(turns)],
    }


def write_lines(path: Path, number: int = 40, seed: int = 1) -> Path:
    """Dialogues of one to six turns, with a bad line now and then."""
    random_ = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for n in range(number):
            bad = random_.random() < 0.1
            file.write(("{broken" if bad else json.dumps(record(n, random_.randint(1, 6)))) + "\n\n")
    return path


class ImportContract(SampleCase):
    @pytest.fixture
    def store(self, url: str) -> Iterator[SampleStore]:
        with SampleStore(url) as store:
            yield store

    def _import(self, store: SampleStore, *paths: Path, rows: int = 7, dataset: str = "chat") -> SampleTask:
        wanted = plan_import(store, dataset, [str(p) for p in paths], "ann")
        assert wanted.task_id is not None
        return run_task(store, wanted.task_id, ImportStep(store, batch_rows=rows))

    def _rows(self, store: SampleStore) -> list[tuple[Any, ...]]:
        """All that an import decides, ids aside."""
        key = (sample.c.dataset_file_id, sample.c.row_identifier, sample.c.turn_taking)
        with store.read() as connection:
            query = sa.select(*(sample.c[name] for name in IMPORTED)).order_by(*key)
            return [tuple(row) for row in connection.execute(query)]

    def test_the_cases(self, store: SampleStore) -> None:
        paths = sorted(CASES.glob("*.jsonl"))
        task = self._import(store, *paths)
        assert (task.state, task.counts["refused"]) == ("SUCCESS", 0)
        files = {Path(f.path).name: f for f in store.sample_files("chat")}
        assert {n: (f.format, f.records, f.rows) for n, f in files.items()} == {
            "messages.jsonl": ("messages", 2, 10),
            "sharegpt.jsonl": ("sharegpt", 1, 4),
            "special_tokens.jsonl": ("messages", 1, 2),
        }
        for name, key in (("messages.jsonl", "messages"), ("special_tokens.jsonl", "messages")):
            for n, line in enumerate((CASES / name).read_text("utf-8").splitlines()):
                given = json.loads(line)
                turns = store.dialogue(files[name].id, n)
                assert [(t["data_role"], t["data_content"]) for t in turns] == [
                    (t["role"], t["content"]) for t in given[key]
                ]
                assert json.loads(turns[0]["data_meta"]) == {"record": {"id": given["id"]}}
                assert [t["id"] for t in turns] == sorted(t["id"] for t in turns)

    def test_two_records_with_one_user_id_stay_two(self, store: SampleStore, tmp_path: Path) -> None:
        line = json.dumps(record(1, 2)) + "\n"
        path = tmp_path / "a.jsonl"
        path.write_text(line * 2)
        assert self._import(store, path).counts == {"records": 2, "rows": 4, "refused": 0}

    def test_importing_twice_changes_nothing(self, store: SampleStore, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "a.jsonl")
        self._import(store, path)
        before, files = self._rows(store), store.sample_files()
        moved = path.rename(tmp_path / "b.jsonl")
        again = plan_import(store, "chat", [str(moved)], "bob")
        assert (again.task_id, again.resumed, again.there) == (None, (), (str(moved),))
        assert (self._rows(store), store.sample_files()) == (before, files)
        other = plan_import(store, "other", [str(moved)], "bob")
        assert other.task_id is not None  # another data set has rows of its own

    @pytest.mark.parametrize(
        "suffix", ["jsonl", "jsonl.gz", "jsonl.zst", "json", "array.json", "array.json.gz"]
    )
    def test_containers(self, store: SampleStore, tmp_path: Path, suffix: str) -> None:
        records = [record(n) for n in range(9)]
        lines = "\n".join(json.dumps(r, ensure_ascii=False) for r in records)
        data = (json.dumps(records, indent=1) if "array" in suffix else lines).encode()
        if suffix.endswith("gz"):
            data = gzip.compress(data)
        if suffix.endswith("zst"):
            data = zstandard.compress(data)
        path = tmp_path / f"a.{suffix}"
        path.write_bytes(data)
        assert self._import(store, path).counts == {"records": 9, "rows": 27, "refused": 0}
        assert store.dialogue(store.sample_files()[0].id, 8)[2]["data_content"] == "8.2 水"

    def test_parquet(self, store: SampleStore, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.Table.from_pylist([record(n, 1 + n % 3) for n in range(600)]), path)
        task = self._import(store, path, rows=100)
        assert task.counts == {"records": 600, "rows": 1200, "refused": 0}
        turns = store.dialogue(store.sample_files()[0].id, 599)
        assert [t["data_content"] for t in turns] == ["599.0 水", "599.1 水", "599.2 水"]
        assert json.loads(turns[0]["data_meta"]) == {"record": {"id": "u4"}}

    def test_a_record_that_is_too_large_is_refused(
        self, store: SampleStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("dataflow_ops.samples.reading.MAX_RECORD", 2 << 20)
        path = tmp_path / "a.jsonl"
        large = {"messages": [{"role": "user", "content": "x" * (3 << 20)}]}
        path.write_text("\n".join(json.dumps(r) for r in (record(0), large, record(2))))
        task = self._import(store, path)
        assert task.counts == {"records": 3, "rows": 6, "refused": 1}
        (letter,) = store.sample_letters([store.sample_files()[0].id])
        assert (letter["row_identifier"], letter["message"][:26]) == (1, "the record is above 2 MB: ")

    def test_bad_records_become_letters(self, store: SampleStore, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        good = json.dumps(record(0, 2))
        lines = [good, '{"messages": [', '{"messages": []}', "[1]", '{"text": "t"}', good]
        path.write_bytes("\n".join(lines).encode() + b'\n{"messages": "\xff"}\n')
        task = self._import(store, path, rows=2)
        assert task.counts == {"records": 7, "rows": 4, "refused": 5}
        file = store.sample_files()[0]
        assert (file.records, file.rows, file.refused, file.status) == (7, 4, 5, "READY")
        letters = store.sample_letters([file.id])
        assert [(x["row_identifier"], x["error"]) for x in letters] == [
            (1, "MalformedRecord"),
            (2, "MalformedRecord"),
            (3, "MalformedRecord"),
            (4, "MalformedRecord"),
            (6, "UndecodableText"),
        ]
        assert letters[0]["raw"] == '{"messages": ['
        assert letters[3]["raw"] == '{"text":"t"}'
        assert store.letters_by_error([file.id]) == {"MalformedRecord": 4, "UndecodableText": 1}
        assert store.sample_letters([file.id], 2, (file.id, 2)) == letters[2:4]

    def test_a_file_that_breaks_off_gives_its_whole_records(self, store: SampleStore, tmp_path: Path) -> None:
        lines = "".join(json.dumps({**record(n), "noise": f"{n * 7919}"}) + "\n" for n in range(5000))
        path = tmp_path / "a.jsonl.gz"
        path.write_bytes(gzip.compress(lines.encode())[:-20000])
        task = self._import(store, path, rows=1000)
        assert task.state == "SUCCESS"
        assert task.counts["refused"] <= 2  # the line that was cut, and the file
        (*_, last) = store.sample_letters([store.sample_files()[0].id])
        assert (last["error"], last["row_identifier"]) == ("TruncatedFile", task.counts["records"] - 1)
        assert task.counts["rows"] == 3 * (task.counts["records"] - task.counts["refused"]) > 3000

    def test_repairs_are_counted(self, store: SampleStore, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text(
            '{"messages": [{"role": "user", "content": "a\\u0000b"}, {"role": "user", "content": "\\ud800"}]}'
        )
        task = self._import(store, path)
        assert (task.counts["repaired_nul"], task.counts["repaired_surrogate"]) == (1, 1)
        assert [row[4] for row in self._rows(store)] == ["ab", "�"]

    @pytest.mark.parametrize("rows", [1, 5, 10_000])
    def test_batches_do_not_matter(self, store: SampleStore, tmp_path: Path, rows: int) -> None:
        task = self._import(store, write_lines(tmp_path / "a.jsonl"), rows=rows)
        expected = [
            json.loads(x) for x in (tmp_path / "a.jsonl").read_text().splitlines() if x and x != "{broken"
        ]
        assert [row[4] for row in self._rows(store)] == [
            t["content"] for r in expected for t in r["messages"]
        ]
        assert task.counts["records"] == 40

    @pytest.mark.parametrize("moment", ["before", "written", "committed"])
    @pytest.mark.parametrize("number", [1, 3])
    def test_killed_at_any_moment(self, store: SampleStore, tmp_path: Path, moment: str, number: int) -> None:
        """Two files, killed at a batch: the next one goes on, and nothing is lost or there twice."""
        paths = [write_lines(tmp_path / "a.jsonl"), write_lines(tmp_path / "b.jsonl", seed=2)]
        wanted = plan_import(store, "chat", [str(p) for p in paths], "ann")
        task_id = str(wanted.task_id)
        doomed = subprocess.run(
            [sys.executable, "-m", "tests.samples.doomed", store.url, task_id, "50", moment, str(number)],
            cwd=Path(__file__).parents[2],
        )
        assert doomed.returncode == -signal.SIGKILL
        held = store.sample_task(task_id)
        assert held.state == "RUNNING"
        again = plan_import(store, "chat", [str(p) for p in paths], "ann")
        assert task_id in (again.task_id, *again.resumed)
        done = run_task(store, task_id, ImportStep(store, batch_rows=11))
        assert done.state == "SUCCESS"
        found = self._rows(store)
        for file in store.sample_files():
            path = Path(file.path)
            expected = [json.loads(x) for x in path.read_text().splitlines() if x and x != "{broken"]
            mine = [row for row in found if row[0] == file.id]
            assert [row[4] for row in mine] == [t["content"] for r in expected for t in r["messages"]]
            assert (file.records, file.rows, file.status) == (40, len(mine), "READY")
        assert (done.counts["records"], done.counts["rows"]) == (80, len(found))
        assert done.counts["refused"] == sum(f.refused for f in store.sample_files())

    def test_a_pause_after_one_batch_is_gone_on_from(self, store: SampleStore, tmp_path: Path) -> None:
        """A pause is neither a failure nor a success; the second file begins at 0 after the resumed one."""
        paths = [write_lines(tmp_path / "a.jsonl"), write_lines(tmp_path / "b.jsonl", seed=2)]
        wanted = plan_import(store, "chat", [str(p) for p in paths], "ann")
        task_id = str(wanted.task_id)
        store.set_pause("run", task_id, "ann")
        watch = PauseWatch(store, task_id, "chat", interval_s=1e-9)
        task = run_task(store, task_id, ImportStep(store, batch_rows=9), watch)
        assert (task.state, task.counts, store.sample_cursor(task_id)) == ("PAUSED", {}, None)
        pauses = 0
        while task.state == "PAUSED":
            store.clear_pause("run", task_id)
            step = ImportStep(store, batch_rows=9)
            task = run_task(
                store,
                task_id,
                step,
                PauseWatch(store, task_id, "chat", interval_s=1e-9),
                told=lambda _: store.set_pause("run", task_id, "ann"),
            )
            pauses += task.state == "PAUSED"
            assert task.error_type is None
        assert pauses > 10
        assert (task.state, task.attempt) == ("SUCCESS", 1)
        assert (task.counts["records"], task.counts["rows"]) == (80, len(self._rows(store)))

    def test_two_imports_at_once(self, store: SampleStore, tmp_path: Path) -> None:
        """Two files by two threads, and a third that both bring: rows don't mix, ids come once."""
        paths = [write_lines(tmp_path / f"{name}.jsonl", 200, seed) for seed, name in enumerate("abc")]
        start = threading.Barrier(2)
        lost: list[str] = []

        def bring(mine: Path) -> None:
            start.wait()
            wanted = plan_import(store, "chat", [str(mine), str(paths[2])], "ann")
            for task_id in (*wanted.resumed, *([wanted.task_id] if wanted.task_id else ())):
                try:
                    run_task(store, task_id, ImportStep(store, batch_rows=25))
                except LeaseLost:
                    lost.append(task_id)  # the other one works on it
                except IllegalMove:
                    lost.append(task_id)  # the other one was done with it

        threads = [threading.Thread(target=bring, args=(path,)) for path in paths[:2]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(lost) <= 1
        assert {f.status for f in store.sample_files()} == {"READY"}
        found = self._rows(store)
        for file in store.sample_files():
            lines = [json.loads(x) for x in Path(file.path).read_text().splitlines() if x and x != "{broken"]
            mine = [row[4] for row in found if row[0] == file.id]
            assert mine == [t["content"] for r in lines for t in r["messages"]]
            with store.read() as connection:
                of_file = sa.select(sample.c.id).where(sample.c.dataset_file_id == file.id)
                ids = list(connection.execute(of_file.order_by(*KEY)).scalars())
            assert ids == sorted(ids)

    def test_interrupted_by_a_person(self, store: SampleStore, tmp_path: Path) -> None:
        wanted = plan_import(store, "chat", [str(write_lines(tmp_path / "a.jsonl"))], "ann")

        def interrupt(_: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_task(store, str(wanted.task_id), ImportStep(store, batch_rows=9), told=interrupt)
        assert store.sample_task(str(wanted.task_id)).state == "PAUSED"
        task = run_task(store, str(wanted.task_id), ImportStep(store))
        assert (task.state, task.counts["records"]) == ("SUCCESS", 40)

    def test_a_fault_fails_the_task_and_it_goes_on(self, store: SampleStore, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "a.jsonl")
        wanted = plan_import(store, "chat", [str(path)], "ann")
        data = path.read_bytes()
        path.write_bytes(data + b'{"messages": []}\n')
        with pytest.raises(SourceChanged):
            run_task(store, str(wanted.task_id), ImportStep(store, batch_rows=20))
        task = store.sample_task(str(wanted.task_id))
        assert (task.state, task.error_type) == ("FAILED", "SourceChanged")
        assert store.sample_files()[0].status == "IMPORTING"
        path.write_bytes(data)
        again = run_task(store, str(wanted.task_id), ImportStep(store))
        assert (again.state, again.attempt, again.counts["records"]) == ("SUCCESS", 2, 40)

    def test_a_cancelled_import_taken_up_by_another(self, store: SampleStore, tmp_path: Path) -> None:
        """The rows that are there stay what they are; counts begin anew."""
        path, more = write_lines(tmp_path / "a.jsonl"), write_lines(tmp_path / "b.jsonl", seed=3)
        wanted = plan_import(store, "chat", [str(path)], "ann")

        def cancel(_: int) -> None:
            store.cancel_task(str(wanted.task_id), "ann")

        with pytest.raises(LeaseLost):
            run_task(store, str(wanted.task_id), ImportStep(store, batch_rows=20), told=cancel)
        begun = self._rows(store)
        assert begun
        assert store.sample_task(str(wanted.task_id)).state == "CANCELLED"
        task = self._import(store, path, more)
        assert task.task_id != wanted.task_id
        assert self._rows(store)
        assert {row[:5] for row in begun} <= {row[:5] for row in self._rows(store)}
        assert [f.records for f in store.sample_files()] == [40, 40]

    def test_a_cancelled_import_asked_for_again_goes_on(self, store: SampleStore, tmp_path: Path) -> None:
        paths = [str(write_lines(tmp_path / "a.jsonl")), str(write_lines(tmp_path / "b.jsonl", seed=2))]
        task_id = str(plan_import(store, "chat", paths, "ann").task_id)

        def cancel(done: int) -> None:
            if done > 150:  # in the second file
                store.cancel_task(task_id, "ann")

        with pytest.raises(LeaseLost):
            run_task(store, task_id, ImportStep(store, batch_rows=20), told=cancel)
        again = plan_import(store, "chat", paths, "ann")
        assert (again.task_id, again.resumed) == (None, (task_id,))
        task = run_task(store, task_id, ImportStep(store))
        assert (task.state, task.counts["records"], len(self._rows(store))) == (
            "SUCCESS",
            80,
            task.counts["rows"],
        )

    def test_another_format_comes_only_where_nothing_was_read(
        self, store: SampleStore, tmp_path: Path
    ) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text(json.dumps(record(0)))
        wrong = plan_import(store, "chat", [str(path)], "ann", "sharegpt")
        assert run_task(store, str(wrong.task_id), ImportStep(store)).counts["refused"] == 1
        right = plan_import(store, "chat", [str(path)], "ann", "messages")
        assert run_task(store, str(right.task_id), ImportStep(store)).counts["rows"] == 3
        file = store.sample_files()[0]
        assert (file.format, file.refused, store.sample_letters([file.id])) == ("messages", 0, [])
        with pytest.raises(ConfigError, match="read as messages"):
            plan_import(store, "chat", [str(path)], "ann", "sharegpt")

    def test_what_is_no_file_of_dialogues(self, store: SampleStore, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text('{"text": "no turns"}\n')
        with pytest.raises(ConfigError, match="looks like a dialogue"):
            plan_import(store, "chat", [str(path)], "ann")
        with pytest.raises(ConfigError, match="name the files"):
            plan_import(store, "chat", [], "ann")
        assert store.sample_files() == []

    # Writing by key alone

    def test_ids_are_never_given_twice(self, store: SampleStore) -> None:
        first, second = store.reserve_ids(3), store.reserve_ids(2)
        assert (list(first), list(second)) == ([1, 2, 3], [4, 5])

    def test_turns_without_a_key_are_refused_before_any_sql(self, store: SampleStore) -> None:
        put_file(store, "f")

        def write() -> None:
            with store.write() as connection:
                store.add_turns(connection, "f", 0, 1, [self._turn("f", None)])

        with pytest.raises(MissingPrimaryKey, match=r"table sample.*primary key: id"):
            write()
        assert self._rows(store) == []

    def test_turns_that_others_wrote_are_not_replaced(self, store: SampleStore) -> None:
        put_file(store, "f")
        for id_, content in ((1, "first"), (2, "second")):
            with store.write() as connection:
                store.add_turns(connection, "f", 0, 1, [self._turn("f", id_, content)])
        assert [row[4] for row in self._rows(store)] == ["first"]

        def write() -> None:
            with store.write() as connection:
                store.add_turns(connection, "f", 0, 2, [self._turn("f", 3, turn=1)])

        with pytest.raises(StateError, match="have 2 turns"):
            write()

    def _turn(self, file: str, id_: int | None, content: str = "x", turn: int = 0) -> dict[str, Any]:
        return {
            "id": id_,
            "dataset_file_id": file,
            "row_identifier": 0,
            "turn_taking": turn,
            "data_role": "user",
            "data_content": content,
            "data_length": 1,
            "status": "NEW",
            "created_at": 0.0,
            "updated_at": 0.0,
        }
