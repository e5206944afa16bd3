"""Reading somebody else's tables: SQLite files and a PostgreSQL server, for real."""

from __future__ import annotations

import datetime as dt
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow_ops.clients import sql_table, sql_url
from dataflow_ops.clients.sql_table import PAUSES_S, SqlTable
from dataflow_ops.errors import ConfigError, SourceAway
from tests.state.postgres_server import PostgresServer

Rows = Sequence[Sequence[object]]


class Given:
    """A database of ours with tables to be read."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        self.slept: list[float] = []

    def do(self, *statements: str) -> None:
        with self.engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def insert(self, table: str, rows: Rows) -> None:
        marks = ", ".join(f":c{i}" for i in range(len(rows[0]) if rows else 0))
        with self.engine.begin() as connection:
            for row in rows:
                values = {f"c{i}": value for i, value in enumerate(row)}
                connection.execute(sa.text(f"INSERT INTO {table} VALUES ({marks})"), values)

    def table(self, table: str = "t", key: Sequence[str] = ("id",), **more: Any) -> SqlTable:
        more = {"table": table, **more} if "query" not in more else more
        return SqlTable("source 's'", self.url, key, sleep=self.slept.append, **more)


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Given]:
    given_ = Given(f"sqlite:///{tmp_path}/theirs.db")
    yield given_
    given_.engine.dispose()


@pytest.fixture
def postgres(empty_postgres_url: str) -> Iterator[Given]:
    given_ = Given(empty_postgres_url)
    yield given_
    given_.engine.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def theirs(request: pytest.FixtureRequest) -> Given:
    found: Given = request.getfixturevalue({"sqlite": "lite", "postgres": "postgres"}[request.param])
    return found


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_table, "PAGE_ROWS", 7)
    monkeypatch.setattr(sql_table, "_BUFFERED_ROWS", 2)


def fill(theirs: Given, n: int) -> None:
    theirs.do("CREATE TABLE t (id BIGINT PRIMARY KEY, text TEXT)")
    theirs.insert("t", [(i * 3, f"text {i}") for i in range(n)])


def test_all_rows_in_order_whatever_the_pages(theirs: Given) -> None:
    fill(theirs, 50)
    table = theirs.table()
    assert table.names() == ["id", "text"]
    assert table.highest() == (147,)
    expected = [(i * 3, f"text {i}") for i in range(50)]
    assert list(table.rows(["id", "text"], None, (147,))) == expected
    assert list(table.rows(["text", "id"], (30,), (36,))) == [
        ("text 10", 30),
        ("text 11", 33),
        ("text 12", 36),
    ]
    assert list(table.rows(["id"], (31,), (35,))) == [(33,)]
    assert (table.without_key(), table.repeated_key((147,))) == (0, None)
    assert theirs.slept == []
    table.close()


def test_an_empty_table(theirs: Given) -> None:
    fill(theirs, 0)
    table = theirs.table()
    assert (table.names(), table.highest(), table.without_key()) == (["id", "text"], None, 0)


def test_large_and_negative_numbers(theirs: Given) -> None:
    theirs.do("CREATE TABLE t (id BIGINT PRIMARY KEY)")
    keys = [-(2**63), -5, 0, 2**31, 2**40, 2**63 - 1]
    theirs.insert("t", [(key,) for key in keys])
    table = theirs.table()
    assert table.highest() == (keys[-1],)
    for first in keys:
        assert [k for (k,) in table.rows(["id"], (first,), (keys[-1],))] == [k for k in keys if k >= first]


part = st.tuples(
    st.integers(0, 3), st.sampled_from(["", "a", "A", "ab", "b", "Ä", "中", "a'; --", "%s", ":x"])
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=st.lists(part, unique=True, min_size=1, max_size=25), bounds=st.tuples(part, part))
def test_composite_keys_as_the_database_orders_them(
    lite: Given, keys: list[tuple[int, str]], bounds: tuple[tuple[int, str], tuple[int, str]]
) -> None:
    lite.do("DROP TABLE IF EXISTS t", "CREATE TABLE t (a INTEGER, b TEXT)")
    lite.insert("t", keys)
    table = lite.table(key=("a", "b"))
    # SQLite compares texts by their UTF-8 bytes, as Python does by code points.
    first, last = sorted(bounds)
    assert list(table.rows(["a", "b"], first, last)) == [k for k in sorted(keys) if first <= k <= last]
    assert list(table.rows(["a", "b"], None, max(keys))) == sorted(keys)
    assert table.highest() == max(keys)


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("TEXT", ["", "A", "a", "b", "Ä", "中文", "a'b", "%s:x"]),
        ("CHAR(5)", ["a    ", "ab   ", "abcde", "b    "]),
        ("UUID", [uuid.UUID(int=i * 2**120) for i in range(9)]),
        ("TIMESTAMPTZ", [dt.datetime(2026, 11, d, tzinfo=dt.UTC) for d in range(1, 10)]),
        ("TIMESTAMP", [dt.datetime(2026, 11, d, 1, 2, 3, 456) for d in range(1, 10)]),
        ("DATE", [dt.date(2026, 11, d) for d in range(1, 10)]),
        ("INTEGER", list(range(9))),
    ],
)
def test_keys_of_many_types(postgres: Given, kind: str, keys: list[Any]) -> None:
    postgres.do(f"CREATE TABLE t (id {kind} PRIMARY KEY)")
    postgres.insert("t", [(key,) for key in keys])
    table = postgres.table()
    highest = table.highest()
    assert highest is not None
    ordered = [key for (key,) in table.rows(["id"], None, highest)]
    assert sorted(map(str, ordered)) == sorted(map(str, keys))
    for i, key in enumerate(ordered):
        assert [k for (k,) in table.rows(["id"], (key,), highest)] == ordered[i:]


@pytest.mark.postgres
def test_an_order_of_the_databases_own(postgres: Given) -> None:
    """An enumeration: neither its texts' order nor anything that a cast would give."""
    postgres.do("CREATE TYPE size AS ENUM ('small', 'large', 'huge')", "CREATE TABLE t (id size PRIMARY KEY)")
    postgres.do("INSERT INTO t VALUES ('huge'), ('small'), ('large')")
    table = postgres.table()
    assert table.highest() == ("huge",)
    assert list(table.rows(["id"], ("large",), ("huge",))) == [("large",), ("huge",)]


def test_rows_without_a_key_are_counted_and_never_read(theirs: Given) -> None:
    theirs.do("CREATE TABLE t (a INTEGER, b INTEGER, text TEXT)")
    theirs.insert("t", [(1, 1, "x"), (None, 1, "y"), (1, None, "z"), (2, None, "z"), (2, 5, "w")])
    table = theirs.table(key=("a", "b"))
    assert (table.without_key(), table.highest()) == (3, (2, 5))
    assert list(table.rows(["a", "b"], None, (2, 5))) == [(1, 1), (2, 5)]
    assert list(table.rows(["a", "b"], (1, 2), (2, 5))) == [(2, 5)]


def test_a_key_that_two_rows_have(theirs: Given) -> None:
    theirs.do("CREATE TABLE t (id INTEGER, text TEXT)")
    theirs.insert("t", [(1, "x"), (2, "y"), (2, "z"), (9, "a"), (9, "b")])
    assert theirs.table().repeated_key((8,)) == (2,)
    assert theirs.table().repeated_key((1,)) is None
    assert theirs.table(key=("id", "text")).repeated_key((9, "z")) is None


def test_a_key_that_is_one_only_for_the_database(lite: Given) -> None:
    lite.do("CREATE TABLE t (id TEXT COLLATE NOCASE)")
    lite.insert("t", [("a",), ("A",), ("b",)])
    assert lite.table().repeated_key(("b",)) is not None


def test_rows_that_come_meanwhile_are_not_read(theirs: Given) -> None:
    fill(theirs, 20)
    table = theirs.table()
    last = table.highest()
    assert last is not None
    read = []
    for number, (key, _) in enumerate(table.rows(["id", "text"], None, last)):
        read.append(key)
        if theirs.url.startswith("postgres"):  # SQLite has its readers wait for no writer
            theirs.insert("t", [(1_000 + number, "grows with every row that is read")])
    assert read == [i * 3 for i in range(20)]


@pytest.mark.postgres
def test_a_table_that_shrinks_while_it_is_read(postgres: Given) -> None:
    fill(postgres, 40)
    read = []
    for (key,) in postgres.table().rows(["id"], None, (117,)):
        read.append(key)
        if len(read) == 10:
            postgres.do("DELETE FROM t WHERE id < 60 OR id > 90")
    # The second page was on its way; behind it nothing comes twice, and nothing that is gone.
    assert read == sorted(set(read))
    assert set(range(60, 91, 3)) <= set(read) <= {i * 3 for i in range(14)} | set(range(60, 91, 3))


@pytest.mark.postgres
def test_a_connection_that_breaks_is_taken_up_where_it_broke(postgres: Given) -> None:
    fill(postgres, 40)
    read = []
    for (key,) in postgres.table().rows(["id"], None, (117,)):
        read.append(key)
        if len(read) in (3, 10, 11):
            postgres.do(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'dataflow' AND datname = current_database()"
            )
    assert read == [i * 3 for i in range(40)]
    assert postgres.slept, "it waited before it asked again"


@pytest.mark.postgres
def test_a_server_that_is_gone_is_told_without_its_password(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_PASSWORD", "hush/@:hush")
    slept: list[float] = []
    table = SqlTable(
        "source 's'",
        "postgresql://reader:${THEIR_PASSWORD}@127.0.0.1:1/nothing",
        ("id",),
        table="t",
        sleep=slept.append,
    )
    with pytest.raises(SourceAway, match=r"source 's': the database does not answer.*run again") as caught:
        table.highest()
    assert slept == list(PAUSES_S)
    assert "hush" not in str(caught.value)
    assert caught.value.systemic


def test_a_locked_file_is_waited_for(lite: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(lite, 3)
    monkeypatch.setattr(sql_url, "BUSY_S", 0.01)
    writer = sqlite3.connect(lite.engine.url.database or "", isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")

    def sleep(seconds: float) -> None:
        lite.slept.append(seconds)
        if len(lite.slept) == 3:
            writer.execute("COMMIT")

    table = SqlTable("source 's'", lite.url, ("id",), table="t", sleep=sleep)
    assert table.highest() == (6,)
    assert lite.slept == list(PAUSES_S[:3])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"table": "nowhere"}, "source 's': the database says: .*nowhere"),
        ({"key": ("nothing",)}, "source 's': the database says: .*nothing"),
        ({"query": "SELEKT 1"}, "source 's': the database says: .*"),
        ({"query": "DELETE FROM t"}, "source 's': the database says: .*"),
    ],
)
def test_what_no_repeat_mends_is_said_at_once(theirs: Given, change: dict[str, Any], said: str) -> None:
    fill(theirs, 3)
    with pytest.raises(ConfigError, match=said):
        theirs.table(**change).highest()
    assert theirs.slept == []
    assert theirs.table().highest() == (6,), "nothing was deleted"


@pytest.mark.postgres
def test_no_such_database(postgres: Given) -> None:
    table = SqlTable("source 's'", f"{postgres.url}_no", ("id",), table="t", sleep=postgres.slept.append)
    with pytest.raises(ConfigError, match=r"does not exist"):
        table.highest()
    assert postgres.slept == []


def test_a_query_with_colons_and_a_comment_at_its_end(theirs: Given) -> None:
    fill(theirs, 12)
    query = r"SELECT id, '12:30 :x \: 100%' AS text FROM t WHERE id > 3; -- the rest"
    table = theirs.table(query=query.replace("; --", " --"))
    assert table.names() == ["id", "text"]
    assert list(table.rows(["id", "text"], (30,), (33,))) == [
        (30, r"12:30 :x \: 100%"),
        (33, r"12:30 :x \: 100%"),
    ]
    assert theirs.table(query="SELECT id FROM t;").highest() == (33,)


@pytest.mark.postgres
def test_a_table_of_another_schema(postgres: Given) -> None:
    postgres.do('CREATE SCHEMA "Odd"', 'CREATE TABLE "Odd".t (id INT)', 'INSERT INTO "Odd".t VALUES (5)')
    assert postgres.table("Odd.t").highest() == (5,)


def test_text_that_is_not_utf8_comes_through(lite: Given) -> None:
    lite.do("CREATE TABLE t (id INTEGER, text TEXT)", "INSERT INTO t VALUES (1, CAST(x'61ff62' AS TEXT))")
    assert list(lite.table().rows(["text", "id"], None, (1,))) == [("a\udcffb", 1)]


@pytest.mark.postgres
def test_text_of_a_database_without_an_encoding(postgres_server: PostgresServer) -> None:
    name = f"ascii_{uuid.uuid4().hex[:8]}"
    admin = Given(postgres_server.url("postgres"))
    whole = admin.engine.execution_options(isolation_level="AUTOCOMMIT")
    with whole.connect() as connection:
        connection.exec_driver_sql(
            f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        )
    try:
        with psycopg.connect(postgres_server.url(name)) as direct:
            direct.execute("CREATE TABLE t (id TEXT, text TEXT)")
            direct.execute(r"INSERT INTO t VALUES ('k中', E'a\xff')".encode())
        table = SqlTable("source 's'", postgres_server.url(name), ("id",), table="t")
        highest = table.highest()
        assert highest == ("k中",)
        assert list(table.rows(["id", "text"], highest, highest)) == [("k中", "a\udcff")]
        table.close()
    finally:
        with whole.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
        admin.engine.dispose()


def test_a_wrong_file_name_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"source 's': there is no SQLite file .*typo.db"):
        SqlTable("source 's'", f"sqlite:///{tmp_path}/typo.db", ("id",), table="t")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["plain.db", "odd #1?%20é中.db"])
def test_a_file_is_only_read(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE t (id INTEGER)")
        connection.execute("INSERT INTO t VALUES (4)")
    before = file.read_bytes()
    url = sa.URL.create("sqlite", database=str(file)).render_as_string()
    table = SqlTable("source 's'", "${DB}", ("id",), table="t", environment={"DB": url})
    assert table.highest() == (4,)
    assert file.read_bytes() == before


def test_secrets_come_from_the_environment(tmp_path: Path) -> None:
    known = {"PW": "p@ss/wörd:%41", "WHO": "me", "DB": "postgresql://u:s3cret@h/d"}
    url, used = sql_url.resolved("s", "postgresql://${WHO}:$PW@host:5/name?sslmode=require", known)
    assert (url.username, url.password, url.host, url.port, url.database) == (
        "me",
        "p@ss/wörd:%41",
        "host",
        5,
        "name",
    )
    assert url.drivername == "postgresql+psycopg"
    assert set(used) == {"me", "p@ss/wörd:%41"}
    whole, used = sql_url.resolved("s", "${DB}", known)
    assert (whole.password, whole.host) == ("s3cret", "h")
    assert "s3cret" in used


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://${NOBODY_SET_IT}@h/d", "environment variable NOBODY_SET_IT is not set"),
        ("${NOT_A_URL}", "is no database URL"),
        ("nonsense", "is no database URL"),
        ("sqlite://", "no SQLite file"),
        ("oracle+nosuchdriver://h/d", r"no driver for oracle\+nosuchdriver"),
    ],
)
def test_urls_that_lead_nowhere(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        sql_url.engine_for("source 's'", url, {"NOT_A_URL": "tell-nobody"})
    assert "tell-nobody" not in str(caught.value)
    assert caught.value.__cause__ is None
