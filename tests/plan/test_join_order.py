"""Which order joins are put in, that planning stays quick, and what keeps its place."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import quereus_store


@pytest.fixture
def connection() -> Iterator[quereus_store.Connection]:
    with quereus_store.connect(":memory:") as opened:
        opened.execute("create table big (id integer primary key, a integer, b integer, c integer)")
        opened.executemany(
            "insert into big values (?, ?, ?, ?)", [(i, i % 50, i % 40, i % 30) for i in range(3000)]
        )
        for name, rows in (("a", 50), ("b", 40), ("c", 30)):
            opened.execute(f"create table {name} (id integer primary key, name text)")
            opened.executemany(f"insert into {name} values (?, ?)", [(i, f"n{i % 10}") for i in range(rows)])
        yield opened


def tables(connection: quereus_store.Connection, sql: str) -> list[str]:
    """The tables of a plan, in the order in which the outermost pipeline meets them."""
    return [
        name
        for (name,) in connection.execute("select object_name from query_plan(?)", [sql])
        if name is not None
    ]


def has_pairwise_join(connection: quereus_store.Connection, sql: str) -> bool:
    rows = connection.execute("select node_type from query_plan(?)", [sql])
    return any(kind == "NestedLoopJoin" for (kind,) in rows)


STAR = """
select count(*) from a, b, c, big
where a.id = big.a and b.id = big.b and c.id = big.c and c.name = 'n1' and b.id < 4
"""


def test_a_star_is_not_a_product_of_its_points(connection: quereus_store.Connection) -> None:
    assert not has_pairwise_join(connection, STAR)
    assert connection.execute(STAR).fetchone() == (sum(i % 30 % 10 == 1 and i % 40 < 4 for i in range(3000)),)


def test_the_most_selective_join_comes_first(connection: quereus_store.Connection) -> None:
    assert tables(connection, STAR)[:2] in (["big", "c"], ["big", "b"])
    assert tables(connection, STAR)[-1] == "a"


def test_columns_come_as_written(connection: quereus_store.Connection) -> None:
    cursor = connection.execute(
        "select * from a, b, c, big where a.id = big.a and b.id = big.b and c.id = big.c"
    )
    assert [column[0] for column in cursor.description or ()][:4] == ["id", "name", "id:1", "name:1"]
    row = cursor.fetchone()
    assert row is not None
    assert len(row) == 10
    assert (row[0], row[2], row[4]) == (row[7], row[8], row[9])


def test_outer_joins_keep_their_sides(connection: quereus_store.Connection) -> None:
    sql = """
    select count(*), count(b.id) from a join big on a.id = big.a left join b on b.id = big.b and b.id < 4
    join c on c.id = big.c where c.id = 3
    """
    rows = [i for i in range(3000) if i % 30 == 3]
    assert connection.execute(sql).fetchone() == (len(rows), sum(i % 40 < 4 for i in rows))


def test_what_nothing_connects_is_joined_last(connection: quereus_store.Connection) -> None:
    sql = "select count(*) from a cross join c join big on big.a = a.id cross join b"
    sql += " where b.id = 1 and big.id < 9"
    assert connection.execute(sql).fetchone() == (9 * 30,)


CHAIN = "select count(*) from t0 " + " ".join(f"join t{i} on t{i}.id = t{i - 1}.next" for i in range(1, 10))
SPOKES = "select count(*) from " + ", ".join(f"t{i}" for i in range(10))
SPOKES += " where " + " and ".join(f"t{i}.id = t0.k{i}" for i in range(1, 10))
CLIQUE = "select count(*) from " + ", ".join(f"t{i}" for i in range(10))
CLIQUE += " where " + " and ".join(f"t{i}.id = t{j}.next" for i in range(10) for j in range(i))


@pytest.mark.parametrize("sql", [CHAIN, SPOKES, CLIQUE], ids=["chain", "star", "clique"])
def test_ten_tables_are_planned_quickly(sql: str) -> None:
    """The limit is ten times what it takes, for machines that do something else as well."""
    keys = ", ".join(f"k{i} integer" for i in range(1, 10))
    with quereus_store.connect(":memory:") as connection:
        for number in range(10):
            connection.execute(f"create table t{number} (id integer primary key, next integer, {keys})")
            row = ", ".join("?" * 11)
            connection.executemany(
                f"insert into t{number} values ({row})", [(i, *[i] * 10) for i in range(50 + 10 * number)]
            )
        connection.execute("explain select 1")
        started = time.process_time()
        connection.execute(f"explain {sql}").fetchall()
        assert time.process_time() - started < 0.5
        assert connection.execute(sql).fetchone() == (50,)
