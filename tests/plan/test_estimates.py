"""Estimates before and after ANALYZE, and what they make the planner choose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import quereus_store


@pytest.fixture(params=["memory", "lmdb"])
def connection(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[quereus_store.Connection]:
    path = ":memory:" if request.param == "memory" else str(tmp_path_factory.mktemp("estimates") / "t.db")
    with quereus_store.connect(path) as opened:
        opened.execute(
            "create table item (id integer primary key, few integer, many integer, half integer null,"
            " word text)"
        )
        opened.executemany(
            "insert into item values (?, ?, ?, ?, ?)",
            [(i, i % 4, i % 1000, i if i % 2 else None, f"w{i % 50:02}") for i in range(4000)],
        )
        opened.execute("create index item_few on item (few)")
        opened.execute("create index item_many on item (many)")
        opened.execute("create index item_half on item (half)")
        opened.execute("create index item_word on item (word)")
        yield opened


def rows_of(connection: quereus_store.Connection, sql: str) -> int:
    """The estimate of a query's first operator."""
    [(rows,)] = connection.execute("select est_rows from query_plan(?) where id = 2", [sql]).fetchall()
    return int(rows)


def plan(connection: quereus_store.Connection, sql: str) -> str:
    return "\n".join(line for (line,) in connection.execute(f"explain {sql}"))


def test_rows_of_a_table_are_those_it_has_now(connection: quereus_store.Connection) -> None:
    assert rows_of(connection, "select * from item") == 4000
    connection.execute("delete from item where id >= 1000")
    assert rows_of(connection, "select * from item") == 1000


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("few = 1", 1000),
        ("many = 7", 4),
        ("many <> 7", 3996),
        ("few = 99", 1),
        ("half is null", 2000),
        ("half is not null", 2000),
        ("many < 250", 1000),
        ("many >= 250 and many < 500", 1000),
        ("word >= 'w25'", 2000),
        ("word = 'w07'", 80),
        ("few in (1, 2)", 2000),
        ("not few = 1", 3000),
        ("few = 1 or few = 2", 1750),
    ],
)
def test_shares_by_statistics(connection: quereus_store.Connection, condition: str, rows: int) -> None:
    connection.execute("analyze")
    assert rows_of(connection, f"select * from item where {condition}") == pytest.approx(rows, rel=0.1, abs=1)


def test_the_better_of_two_indexes(connection: quereus_store.Connection) -> None:
    sql = "select * from item where few = 1 and many = 7"
    connection.execute("analyze item")
    assert "item_many" in plan(connection, sql)
    assert rows_of(connection, sql) <= 4


def test_an_unselective_index_is_not_used_for_a_join(connection: quereus_store.Connection) -> None:
    """Two thousand of four thousand rows for each key: hashing reads them once."""
    connection.execute("create table pick (id integer primary key, few integer)")
    connection.executemany("insert into pick values (?, ?)", [(i, i % 4) for i in range(10)])
    sql = "select count(*) from pick p join item i on i.few = p.few"
    connection.execute("analyze")
    assert "INDEX JOIN" not in plan(connection, sql)
    assert "INDEX JOIN" in plan(connection, sql.replace("i.few", "i.many"))


def test_statistics_go_on_counting_with_the_table(connection: quereus_store.Connection) -> None:
    """Values that nearly every row has for itself grow with the table, few values stay few."""
    connection.execute("analyze")
    connection.executemany(
        "insert into item values (?, ?, ?, ?, ?)", [(i, i % 4, i, None, "w00") for i in range(4000, 8000)]
    )
    assert rows_of(connection, "select * from item where few = 1") == 2000


def test_statistics_outlive_the_connection(tmp_path: Path) -> None:
    """What ANALYZE found decides between two indexes in a process that never ran it."""
    sql = "select * from item where few = 1 and many = 7"
    with quereus_store.connect(tmp_path / "kept.qdb") as opened:
        opened.execute("create table item (id integer primary key, many integer, few integer)")
        opened.executemany("insert into item values (?, ?, ?)", [(i, i % 500, i % 2) for i in range(4000)])
        opened.execute("create index item_few on item (few)")
        opened.execute("create index item_many on item (many)")
    with quereus_store.connect(tmp_path / "kept.qdb") as opened:
        assert rows_of(opened, "select * from item where few = 1") != 2000
        opened.execute("analyze")
    with quereus_store.connect(tmp_path / "kept.qdb") as opened:
        assert rows_of(opened, "select * from item where few = 1") == 2000
        assert rows_of(opened, "select * from item") == 4000
        assert "item_many" in plan(opened, sql)


def test_rows_are_counted_without_analyze(tmp_path: Path) -> None:
    """Those that are committed, whatever was rolled back and however often the file is opened."""
    with quereus_store.connect(tmp_path / "counted.qdb") as opened:
        opened.execute("create table item (id integer primary key)")
        opened.executemany("insert into item values (?)", [(i,) for i in range(100)])
        opened.execute("begin")
        opened.execute("delete from item where id < 40")
        opened.execute("rollback")
        assert rows_of(opened, "select * from item") == 100
        opened.execute("delete from item where id < 10")
    with quereus_store.connect(tmp_path / "counted.qdb") as opened:
        assert rows_of(opened, "select * from item") == 90
