from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.errors import StateError
from dataflow_ops.state import cursors
from dataflow_ops.state.cursors import files_to_read
from dataflow_ops.state.records import CursorRecord
from dataflow_ops.state.store import StateStore

FILES = ["f1", "f2", "f3", "f4", "f5"]


def test_after_the_resumed_file_reading_starts_at_the_first_row() -> None:
    assert list(files_to_read(FILES, CursorRecord("f2", 37, 137))) == [
        ("f2", 37),
        ("f3", 0),
        ("f4", 0),
        ("f5", 0),
    ]
    assert list(files_to_read(FILES, None)) == [(f, 0) for f in FILES]


def test_a_file_that_is_gone_is_no_silent_start_from_scratch() -> None:
    with pytest.raises(StateError, match="f9"):
        list(files_to_read(FILES, CursorRecord("f9", 1, 1)))


@given(lengths=st.lists(st.integers(0, 6), min_size=1, max_size=5), stop=st.integers(0, 30))
def test_a_stop_anywhere_loses_and_doubles_no_row(lengths: list[int], stop: int) -> None:
    rows = {f"f{i}": [(i, j) for j in range(n)] for i, n in enumerate(lengths)}
    seen: list[tuple[int, int]] = []
    at: CursorRecord | None = None
    for file, start in files_to_read(list(rows), None):
        for offset in range(start, len(rows[file])):
            if len(seen) == stop:
                break
            seen.append(rows[file][offset])
            at = CursorRecord(file, offset + 1, len(seen))
    for file, start in files_to_read(list(rows), at):
        seen.extend(rows[file][start:])
    assert seen == [row for of_file in rows.values() for row in of_file]


def test_cursors_are_kept_apart_by_task_stage_and_type(sqlite_store: StateStore) -> None:
    db = sqlite_store.db
    with db.write() as connection:
        assert cursors.write(connection, db, "t", "clean", "samples", CursorRecord("f1", 3, 3, {"k": 1}))
        assert not cursors.write(connection, db, "t", "clean", "samples", CursorRecord("f1", 3, 3))
        assert cursors.write(connection, db, "t", "augment", "samples", CursorRecord("f2", 0, 3))
        assert not cursors.write(connection, db, "u", "clean", "samples", CursorRecord(None, 0, 0))
        cursors.delete(connection, "t", "clean", "samples")
    with db.read() as connection:
        assert cursors.read(connection, "t", "clean", "samples") is None
        assert cursors.read(connection, "t", "augment", "samples") == CursorRecord("f2", 0, 3)
