"""Many deletes by key need not read the rows; who wants to see them does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store import Connection
from quereus_store.codec import rows as codec_rows
from quereus_store.store.table import StoreTable
from tests.connecting import STORAGES, connected

ROWS = [(n, f"row {n}") for n in range(5000)]
DELETE = "delete from t where id = ?"


@pytest.fixture(params=STORAGES)
def con(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    with connected(request.param, tmp_path) as connection:
        connection.execute("create table t (id integer primary key, v text)")
        connection.executemany("insert into t values (?, ?)", ROWS)
        yield connection


def left(con: Connection) -> list[tuple[Any, ...]]:
    return con.execute("select * from t").fetchall()


def test_keys_that_are_not_there_or_there_twice(con: Connection) -> None:
    keys = [(4,), (9999,), (4,), (None,), (7.0,), (0,), (9999,), (4999,)]
    assert con.executemany(DELETE, keys).rowcount == 4
    assert left(con) == [row for row in ROWS if row[0] not in (4, 7, 0, 4999)]
    assert con.execute("select count(*) from t").fetchone() == (4996,)
    assert con.database.check() == []


def test_they_are_undone(con: Connection) -> None:
    con.execute("alter table t add column w integer default 3")
    con.execute("update t set w = 4 where id = 100")
    before = left(con)
    con.execute("begin")
    con.execute("delete from t where id = 1")
    con.execute("savepoint s")
    assert con.executemany(DELETE, [(n,) for n in range(0, 5000, 2)]).rowcount == 2500
    assert len(left(con)) == 2499
    con.execute("rollback to s")
    assert left(con) == [row for row in before if row[0] != 1]
    con.execute("rollback")
    assert left(con) == before
    assert con.database.check() == []


@pytest.mark.parametrize(
    "wish",
    [
        "create index by_v on t (v)",
        "create table child (id integer primary key, t integer references t (id))",
        "create materialized view n as select count(*) as n from t",
        "create assertion some check ((select count(*) from t) > 5)",
        "alter table t add constraint stays check on delete (id <> -1)",
    ],
)
def test_what_needs_the_rows_gets_them(con: Connection, wish: str) -> None:
    con.execute(wish)
    assert con.executemany(DELETE, [(n,) for n in range(100)]).rowcount == 100
    assert left(con) == ROWS[100:]
    if "view" in wish:
        assert con.execute("select n from n").fetchone() == (4900,)
    assert con.database.check() == []


def test_a_listener_is_told_of_the_rows(con: Connection) -> None:
    told: list[Any] = []
    con.executemany(DELETE, [(1,), (2,)])
    con.database.on_data_change(told.append)
    con.executemany(DELETE, [(3,), (4,)])
    assert [event.old_row for event in told] == [ROWS[3], ROWS[4]]


def test_no_row_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with quereus_store.connect(tmp_path / "db", cache_size=0) as con:
        con.execute("create table t (id integer primary key, v text)")
        con.executemany("insert into t values (?, ?)", ROWS)
        con.executemany(DELETE, [(1,)])
        monkeypatch.setattr(codec_rows, "unpackb", None)
        monkeypatch.setattr(StoreTable, "points", None)
        assert con.executemany(DELETE, [(n,) for n in range(5000)]).rowcount == 4999
