"""What every database must answer about turns: filters, pages by key, sums, dialogues, changes, uploads."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
import sqlalchemy as sa

from dataflow_ops.errors import ConfigError, IllegalMove
from dataflow_ops.state.sample_tables import sample
from dataflow_ops.state.samples.query import BANDS, Filter, filter_of
from dataflow_ops.state.samples.store import SampleStore
from tests.state.samples.sample_case import SampleCase, put_file

TEXTS = ("", "x", "100% 水", "a_b", "50%", "y" * 49, "z" * 50, "水" * 10_001, "It's \\ here")


class QueryContract(SampleCase):
    def _fill(self, store: SampleStore) -> list[dict[str, Any]]:
        """Two files, ids of which the second's are lower; every kind of turn."""
        rows = []
        kinds = itertools.cycle(
            itertools.product(("user", "assistant", "system"), ("NEW", "KEPT", "REJECTED"), (None, 1.5))
        )
        for file, start in (("fa", 500), ("fb", 100)):
            put_file(store, file)
            for n in range(90):
                role, status, deleted = next(kinds)
                text = TEXTS[n % len(TEXTS)]
                rows.append(
                    {
                        "id": start + n,
                        "dataset_file_id": file,
                        "row_identifier": n // 3,
                        "turn_taking": n % 3,
                        "data_role": role,
                        "data_content": text,
                        "data_length": len(text),
                        "data_meta": None,
                        "status": status,
                        "status_rule": "short" if status == "REJECTED" else None,
                        "created_at": 0.0,
                        "updated_at": 0.0,
                        "deleted_at": deleted,
                    }
                )
        with store.write() as connection:
            connection.execute(sa.insert(sample), rows)
        return rows

    @pytest.mark.parametrize(
        "only",
        [
            {},
            {"deleted": None},
            {"deleted": True},
            {"roles": ("user", "system")},
            {"statuses": ("REJECTED",)},
            {"rule": "short", "deleted": None},
            {"contains": "0%"},
            {"contains": "_"},
            {"contains": "水"},
            {"contains": "X"},
            {"contains": "'s \\"},
            {"shortest": 49, "longest": 50, "deleted": None},
            {"records": (3, 7), "deleted": None},
            {
                "roles": ("user",),
                "statuses": ("NEW", "KEPT"),
                "shortest": 1,
                "contains": "a",
                "deleted": None,
            },
        ],
    )
    def test_filters_against_a_plain_loop(self, store: SampleStore, only: dict[str, Any]) -> None:
        rows = self._fill(store)
        wanted = Filter(files=("fa", "fb"), **only)
        expected = [row["id"] for row in rows if _meets(row, wanted)]
        assert expected or only.get("contains") == "X"
        found: list[int] = []
        after: int | None = None
        while page := store.page(wanted, after, limit=7):
            found += [turn["id"] for turn in page]
            after = page[-1]["id"]
        assert found == expected
        sums = store.aggregates(wanted)
        assert sum(row["turns"] for row in sums) == len(expected)
        for row in sums:
            alike = [r for r in rows if _meets(r, wanted) and _group(r) == tuple(row[k] for k in _GROUP)]
            assert row["turns"] == len(alike)
            assert row["characters"] == sum(r["data_length"] for r in alike)
            assert row["dialogues"] == sum(r["turn_taking"] == 0 for r in alike)

    def test_a_filter_comes_back_as_it_was_stored(self) -> None:
        only = Filter(("a",), ("user",), (), "r", "x", 1, None, (1, 2), None)
        assert filter_of(only.as_json()) == only
        assert not only.is_open
        assert Filter(("a",), deleted=None).is_open
        with pytest.raises(ConfigError, match="GONE"):
            Filter(("a",), statuses=("GONE",))

    def test_pages_that_can_not_be(self, store: SampleStore) -> None:
        self._fill(store)
        for limit in (0, 1001):
            with pytest.raises(ConfigError, match="1 to 1,000"):
                store.page(Filter(("fa",)), limit=limit)
        with pytest.raises(ConfigError, match="none of the files"):
            store.page(Filter(("fa",)), after=100)
        with pytest.raises(ConfigError, match="none of the files"):
            store.page(Filter(("fa",)), after=99_999)

    def test_a_preview_is_the_beginning(self, store: SampleStore) -> None:
        rows = {row["id"]: row for row in self._fill(store)}
        for turn in store.page(Filter(("fa", "fb"), deleted=None), limit=1000, preview=3):
            whole = rows[turn["id"]]
            assert turn == {**whole, "data_content": whole["data_content"][:3]}

    def test_a_page_goes_on_though_its_last_turn_was_deleted_meanwhile(self, store: SampleStore) -> None:
        self._fill(store)
        only = Filter(("fa", "fb"))
        first, whole = store.page(only, limit=5), store.page(only, limit=50)
        with store.write() as connection:
            connection.execute(sa.update(sample).where(sample.c.id == first[-1]["id"]).values(deleted_at=1.0))
        assert store.page(only, first[-1]["id"], limit=45) == whole[5:]

    def test_a_dialogue_whole(self, store: SampleStore) -> None:
        rows = self._fill(store)
        turns = store.dialogue("fb", 2)
        assert [turn["id"] for turn in turns] == [r["id"] for r in rows[96:99]]
        assert any(turn["deleted_at"] for turn in turns)
        assert store.dialogue("fb", 99) == []
        assert store.turn(rows[0]["id"]) is not None
        assert store.turn(1) is None

    # Deleting and restoring

    def test_deleting_and_restoring_leave_a_trace(self, store: SampleStore) -> None:
        self._fill(store)
        task = store.create_task("d1", "chat", "delete", {}, ["fa"], "ann")
        before = [turn["deleted_at"] for turn in store.dialogue("fa", 0)]
        with store.write() as connection:
            assert store.set_deleted(connection, task.task_id, "fa", 9999, [0, 1], True) == before.count(
                None
            ) + sum(turn["deleted_at"] is None for turn in store.dialogue("fa", 1))
        after = store.dialogue("fa", 0)
        assert all(turn["deleted_at"] is not None for turn in after)
        for turn, was in zip(after, before, strict=True):
            changes = store.history(turn["id"])
            if was is not None:
                assert changes == []  # it was deleted before, by somebody else
                continue
            (change,) = changes
            assert (change["who"], change["kind"], change["rule"]) == ("ann", "delete", "delete")
            assert (change["field"], change["before"]) == ("deleted_at", None)
            assert float(change["after"]) == turn["deleted_at"]
        store.create_task("r1", "chat", "restore", {}, ["fa"], "bob")
        with store.write() as connection:
            assert store.set_deleted(connection, "r1", "fa", 9999, [0], False) == 3
        assert all(turn["deleted_at"] is None for turn in store.dialogue("fa", 0))
        assert [c["who"] for c in store.history(after[0]["id"])] == ["ann", "bob"]

    def test_turns_above_the_snapshot_stay(self, store: SampleStore) -> None:
        rows = self._fill(store)
        with store.write() as connection:
            connection.execute(sa.update(sample).values(deleted_at=None))
        highest = rows[1]["id"]
        store.create_task("d1", "chat", "delete", {}, ["fa"], "ann")
        assert store.matching_records("fa", 0, highest, 10, False, []) == ([0], 2)
        with store.write() as connection:
            assert store.set_deleted(connection, "d1", "fa", highest, [0, 1], True) == 2
        assert [t["deleted_at"] is None for t in store.dialogue("fa", 0)] == [False, False, True]

    # Uploads

    def test_an_upload_moves_only_from_where_it_is(self, store: SampleStore) -> None:
        begun = store.begin_upload("chat", "a.jsonl", 10, None, "ann")
        assert (begun.received, begun.state) == (0, "OPEN")
        store.advance_upload(begun.upload_id, 0, 4)
        with pytest.raises(IllegalMove, match="go on from there"):
            store.advance_upload(begun.upload_id, 0, 9)
        assert store.upload(begun.upload_id).received == 4
        store.end_upload(begun.upload_id, "DONE")
        for move in (
            lambda: store.end_upload(begun.upload_id, "ABORTED"),
            lambda: store.advance_upload(begun.upload_id, 4, 5),
        ):
            with pytest.raises(IllegalMove):
                move()
        assert store.uploads("chat") == []
        assert [u.upload_id for u in store.uploads("chat", "DONE")] == [begun.upload_id]
        with pytest.raises(ConfigError, match="no upload"):
            store.upload("none")


_GROUP = ("file", "role", "status", "band")


def _group(row: dict[str, Any]) -> tuple[Any, ...]:
    band = max(start for start in BANDS if row["data_length"] >= start)
    return row["dataset_file_id"], row["data_role"], row["status"], band


def _meets(row: dict[str, Any], only: Filter) -> bool:
    told = dataclasses.asdict(only)
    return all(
        (
            not told["roles"] or row["data_role"] in told["roles"],
            not told["statuses"] or row["status"] in told["statuses"],
            told["rule"] is None or row["status_rule"] == told["rule"],
            told["contains"] in row["data_content"],
            told["shortest"] is None or row["data_length"] >= told["shortest"],
            told["longest"] is None or row["data_length"] <= told["longest"],
            not told["records"] or row["row_identifier"] in told["records"],
            told["deleted"] is None or (row["deleted_at"] is not None) == told["deleted"],
        )
    )
