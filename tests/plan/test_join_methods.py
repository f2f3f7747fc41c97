"""Which way of joining is taken follows from the rows of the two sides, not from how the query is written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import quereus_store
from quereus_store import Connection

MODULES = ("memory", "lmdb")


@pytest.fixture(params=MODULES)
def con(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    path = ":memory:" if request.param == "memory" else str(tmp_path_factory.mktemp("joins") / "j.qdb")
    with quereus_store.connect(path) as connection:
        connection.execute("create table part (id integer primary key, code integer, box integer)")
        connection.execute("create index part_code on part (code)")
        connection.execute("create table pick (id integer primary key, code integer, box integer)")
        connection.executemany("insert into part values (?, ?, ?)", [(n, n, n % 50) for n in range(5000)])
        yield connection


def fill(con: Connection, rows: int) -> None:
    con.execute("delete from pick")
    con.executemany("insert into pick values (?, ?, ?)", [(n, n * 7 % 5000, n) for n in range(rows)])


def method(con: Connection, sql: str) -> str:
    """The one join of a plan."""
    (found,) = [
        line.split(" JOIN")[0].split()[-1]
        for (line,) in con.execute(f"explain {sql}")
        if " JOIN" in line or "JOIN" in line.split()
    ]
    return found


SQL = "select count(*) from pick join part on part.code = pick.code"


def test_few_rows_look_their_matches_up_and_many_are_hashed(con: Connection) -> None:
    fill(con, 10)
    assert method(con, SQL) == "INDEX"
    assert con.execute(SQL).fetchone() == (10,)
    fill(con, 5000)
    assert method(con, SQL) == "HASH"
    assert con.execute(SQL).fetchone() == (5000,)


def test_without_an_index_few_rows_are_hashed_too(con: Connection) -> None:
    fill(con, 10)
    sql = SQL.replace("code", "box")
    assert method(con, sql) == "HASH"
    assert con.execute(sql).fetchone() == (1000,)


def test_sides_in_the_order_of_the_key_are_merged_unless_one_is_short(con: Connection) -> None:
    sql = SQL.replace("code", "id")
    fill(con, 4000)
    assert method(con, sql) == "MERGE"
    assert con.execute(sql).fetchone() == (4000,)
    fill(con, 10)
    assert method(con, sql) == "INDEX"
    assert con.execute(sql).fetchone() == (10,)


def test_a_condition_counts_as_fewer_rows(con: Connection) -> None:
    fill(con, 4000)
    assert method(con, SQL) == "HASH"
    assert method(con, f"{SQL} where pick.id in (1, 2, 3)") == "INDEX"


def test_sides_change_places_where_that_is_less_work(con: Connection) -> None:
    """The smaller side is the one that is held, whichever is written first."""
    fill(con, 300)
    con.execute("drop index part_code")
    for sql in (SQL, "select count(*) from part join pick on part.code = pick.code"):
        held = [line for (line,) in con.execute(f"explain {sql}")][-1]
        assert "pick" in held, held


def test_rows_of_a_join_that_are_kept_have_the_columns_that_are_needed() -> None:
    con = quereus_store.connect(":memory:")
    con.execute("create table a (id integer primary key, x text, y text, z text)")
    con.execute("create table b (id integer primary key, a_id integer, u text, v text)")
    con.execute("create table c (id integer primary key, name text, b_id integer)")
    # The sizes make the join of a and b the hashed side.
    con.executemany("insert into a values (?, 'x', 'y', 'z')", [(n,) for n in range(300)])
    con.executemany("insert into b values (?, ?, 'u', 'v')", [(n, n) for n in range(300)])
    con.executemany("insert into c values (?, 'c', ?)", [(n, n % 400) for n in range(5000)])
    sql = "select c.name, a.y from a join b on b.a_id = a.id join c on c.b_id = b.id where a.x = 'x'"
    code = "\n".join(line for (line,) in con.execute(f"explain code {sql}"))
    kept = [line for line in code.splitlines() if "table" in line and "[2]" in line]
    assert len(kept) == 1, code
    assert "[3]" not in kept[0]
    assert len(con.execute(sql).fetchall()) == sum(1 for n in range(5000) if n % 400 < 300)
