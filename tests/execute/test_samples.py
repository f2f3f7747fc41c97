"""The optimizer looks at the first rows of tables as committed; a transaction may see other tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quereus_store import Connection, connect

ROWS = [(number // 10, number) for number in range(3000)]
JOINED = "select count(*) from few join many on many.k = few.a"


@pytest.fixture(params=["memory", "lmdb"])
def few(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    with connect(":memory:" if request.param == "memory" else tmp_path / "few.qdb") as con:
        con.execute("create table few (a integer primary key)")
        con.executemany("insert into few values (?)", [(number,) for number in range(5)])
        yield con


def test_a_table_of_the_same_transaction_is_joined(few: Connection) -> None:
    few.execute("begin")
    few.execute("create table many (k integer, b integer, primary key (k, b))")
    few.executemany("insert into many values (?, ?)", ROWS)
    assert few.execute(JOINED).fetchall() == [(50,)]


def test_a_table_with_a_new_column_in_its_key_is_joined(few: Connection) -> None:
    few.execute("create table many (a integer primary key, b integer)")
    few.executemany("insert into many values (?, ?)", [(b, a) for a, b in ROWS])
    few.execute("begin")
    few.execute("alter table many add column k integer default 3")
    few.execute("alter table many alter primary key (k, a)")
    assert few.execute(JOINED).fetchall() == [(3000,)]
    few.execute("rollback")


def test_a_table_that_was_dropped_and_made_anew_is_joined(few: Connection) -> None:
    few.execute("create table many (k text, b integer, primary key (k, b))")
    few.executemany("insert into many values (?, ?)", [(str(a), b) for a, b in ROWS])
    few.execute("begin")
    few.execute("drop table many")
    few.execute("create table many (k integer, primary key (k))")
    few.executemany("insert into many values (?)", [(number,) for number in range(3, 3000)])
    assert few.execute(JOINED).fetchall() == [(2,)]
