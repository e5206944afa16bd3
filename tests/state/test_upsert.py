from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow_ops.errors import MissingPrimaryKey
from dataflow_ops.state.database import create_engine
from dataflow_ops.state.tables import SafeText
from dataflow_ops.state.upsert import UpsertCounts, insert_missing, insert_staged, upsert

metadata = sa.MetaData()
single = sa.Table(
    "single",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("a", sa.String(20)),
    sa.Column("b", sa.Integer),
)
double = sa.Table(
    "double_key",
    metadata,
    sa.Column("x", sa.String(5), primary_key=True),
    sa.Column("y", sa.Integer, primary_key=True),
    sa.Column("a", sa.Integer),
)
said = sa.Table(
    "said",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("place", sa.Integer, unique=True),
    sa.Column("text", SafeText),
    sa.Column("left_out", sa.Integer, nullable=False, server_default="7"),
)
keyless = sa.Table("keyless", metadata, sa.Column("a", sa.Integer))


BATCHES = st.lists(
    st.tuples(
        st.sampled_from(["insert_or_update", "update"]),
        st.lists(
            st.fixed_dictionaries(
                {"x": st.sampled_from("ab"), "y": st.integers(0, 3)}, optional={"a": st.integers(0, 99)}
            ),
            max_size=8,
        ),
    ),
    max_size=4,
)
TEXTS = st.lists(st.none() | st.text(max_size=30), max_size=6)
quick = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def rows_of(engine: sa.Engine, table: sa.Table) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(sa.select(table).order_by(*table.primary_key))]


def acts_as_if_rows_were_written_one_by_one(engine: sa.Engine, batches: list[tuple[Any, list[Any]]]) -> None:
    model: dict[tuple[str, int], int | None] = {}
    with engine.begin() as connection:
        connection.execute(sa.delete(double))
        for mode, rows in batches:
            before = set(model)
            counts = upsert(connection, double, rows, mode=mode)
            for row in rows:
                key = (row["x"], row["y"])
                if mode == "insert_or_update" or key in model:
                    model[key] = row.get("a", model.get(key))
            keys = {(row["x"], row["y"]) for row in rows}
            assert counts.given == len(rows)
            assert counts.updated == len(keys & before)
            fresh = len(keys - before)
            assert (counts.inserted, counts.missing) == ((0, fresh) if mode == "update" else (fresh, 0))
            assert counts.collapsed == len(rows) - len(keys)
    assert rows_of(engine, double) == [(x, y, a) for (x, y), a in sorted(model.items())]


def staged_texts_come_back_as_others_do(engine: sa.Engine, texts: list[str | None], doubles: bool) -> None:
    rows = [{"id": n, "place": n, "text": text} for n, text in enumerate(texts)]
    texts_there = sa.select(said.c.text).order_by(said.c.id)
    with engine.begin() as connection:
        connection.execute(sa.delete(said))
        insert_missing(connection, said, rows)
        expected = connection.execute(texts_there).all()
        connection.execute(sa.delete(said))
        if doubles and rows:
            insert_staged(connection, said, rows[:1])
        insert_staged(connection, said, rows)
        assert connection.execute(texts_there).all() == expected


class UpsertContract:
    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def engine(self, url: str) -> Iterator[sa.Engine]:
        engine = create_engine(url)
        metadata.create_all(engine)
        yield engine
        engine.dispose()

    def test_inserts_and_updates(self, engine: sa.Engine) -> None:
        with engine.begin() as connection:
            assert upsert(connection, single, [{"id": 1, "a": "x", "b": 1}]) == UpsertCounts(1, inserted=1)
            counts = upsert(connection, single, [{"id": 2, "a": "new"}, {"id": 1, "b": 9}])
        assert counts == UpsertCounts(given=2, inserted=1, updated=1)
        assert rows_of(engine, single) == [(1, "x", 9), (2, "new", None)]

    def test_doubles_collapse_to_the_last_and_are_counted(self, engine: sa.Engine) -> None:
        rows = [{"id": 1, "a": "first"}, {"id": 2, "a": "other"}, {"id": 1, "a": "last"}]
        with engine.begin() as connection:
            assert upsert(connection, single, rows) == UpsertCounts(given=3, collapsed=1, inserted=2)
        assert rows_of(engine, single) == [(1, "last", None), (2, "other", None)]

    def test_an_update_never_becomes_an_insert(self, engine: sa.Engine) -> None:
        with engine.begin() as connection:
            upsert(connection, single, [{"id": 1, "a": "x", "b": 1}])
            counts = upsert(connection, single, [{"id": 1, "b": 2}, {"id": 7, "b": 2}], mode="update")
        assert counts == UpsertCounts(given=2, updated=1, missing=1)
        assert rows_of(engine, single) == [(1, "x", 2)]

    @pytest.mark.parametrize("mode", ["insert_or_update", "update"])
    @pytest.mark.parametrize("bad", [{"a": "x"}, {"id": None, "a": "x"}])
    def test_a_payload_without_its_key_is_refused_before_any_sql(
        self, engine: sa.Engine, mode: str, bad: dict[str, object]
    ) -> None:
        statements: list[str] = []
        sa.event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
        with engine.begin() as connection:
            with pytest.raises(MissingPrimaryKey, match=r"table single: row 1 .*\bid\b"):
                upsert(connection, single, [{"id": 1, "a": "ok"}, bad], mode=mode)  # type: ignore[arg-type]
            with pytest.raises(MissingPrimaryKey, match="id"):
                insert_missing(connection, single, [bad])
            with pytest.raises(MissingPrimaryKey, match="id"):
                insert_staged(connection, single, [bad])
        assert [s for s in statements if not s.startswith("BEGIN")] == []
        assert rows_of(engine, single) == []

    def test_a_part_of_the_key_is_not_enough(self, engine: sa.Engine) -> None:
        with engine.begin() as connection:
            with pytest.raises(MissingPrimaryKey, match=r"double_key.*\by\b"):
                upsert(connection, double, [{"x": "a", "a": 1}])
            with pytest.raises(MissingPrimaryKey, match="keyless"):
                upsert(connection, keyless, [{"a": 1}])

    def test_insert_missing_leaves_what_is_there(self, engine: sa.Engine) -> None:
        with engine.begin() as connection:
            upsert(connection, single, [{"id": 1, "a": "x"}])
            insert_missing(connection, single, [{"id": 1, "a": "y"}, {"id": 2, "a": "z"}])
        assert rows_of(engine, single) == [(1, "x", None), (2, "z", None)]

    def test_staged_rows_leave_what_any_unique_key_knows(self, engine: sa.Engine) -> None:
        """Straight where nothing is there, by way of staging where something is; twice in one transaction."""
        with engine.begin() as connection:
            insert_staged(connection, said, [{"id": n, "place": n, "text": "a"} for n in range(5)])
            insert_staged(connection, said, [{"id": n, "place": n, "text": "b"} for n in range(3, 8)])
            insert_staged(connection, said, [{"id": 10 + n, "place": n, "text": "c"} for n in range(6, 10)])
            insert_staged(connection, said, [])
        found = {row[1]: (row[0], row[2], row[3]) for row in rows_of(engine, said)}
        assert found == {n: (n, "a" if n < 5 else "b", 7) if n < 8 else (10 + n, "c", 7) for n in range(10)}

    def test_a_big_batch(self, engine: sa.Engine) -> None:
        rows = [{"x": "k", "y": i, "a": i} for i in range(20_000)]
        with engine.begin() as connection:
            assert upsert(connection, double, rows).inserted == 20_000
            assert upsert(connection, double, rows[::2], mode="update").updated == 10_000

    def test_nothing_is_nothing(self, engine: sa.Engine) -> None:
        with engine.begin() as connection:
            assert upsert(connection, single, []) == UpsertCounts()


class TestSqlite(UpsertContract):
    @pytest.fixture
    def url(self, sqlite_url: str) -> str:
        return sqlite_url

    @quick
    @given(texts=TEXTS, doubles=st.booleans())
    def test_staged_texts(self, engine: sa.Engine, texts: list[str | None], doubles: bool) -> None:
        staged_texts_come_back_as_others_do(engine, texts, doubles)

    @quick
    @given(batches=BATCHES)
    def test_as_if_one_by_one(self, engine: sa.Engine, batches: list[Any]) -> None:
        acts_as_if_rows_were_written_one_by_one(engine, batches)


@pytest.mark.postgres
class TestPostgres(UpsertContract):
    @pytest.fixture
    def url(self, empty_postgres_url: str) -> str:
        return empty_postgres_url

    @quick
    @given(texts=TEXTS, doubles=st.booleans())
    def test_staged_texts(self, engine: sa.Engine, texts: list[str | None], doubles: bool) -> None:
        staged_texts_come_back_as_others_do(engine, texts, doubles)

    @quick
    @given(batches=BATCHES)
    def test_as_if_one_by_one(self, engine: sa.Engine, batches: list[Any]) -> None:
        acts_as_if_rows_were_written_one_by_one(engine, batches)
