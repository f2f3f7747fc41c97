"""``stack_trace()``, ``execution_trace()``, ``row_trace()``: what a statement does, operator by operator."""

from __future__ import annotations

import time
from typing import Any

import pytest

import quereus_store
from quereus_store import Connection


@pytest.fixture
def con() -> Connection:
    connection = quereus_store.connect()
    connection.executescript("""
        create table crew (id integer primary key, nick text, photo blob null);
        insert into crew values (1, 'Ann', x'00ff'), (2, 'Bo', null), (3, 'Cy', null);
    """)
    return connection


def rows(con: Connection, function: str, sql: str, columns: str = "*") -> list[tuple[Any, ...]]:
    return con.execute(f"select {columns} from {function}(?)", (sql,)).fetchall()


QUERY = "select nick from crew where length(nick) < 3 order by nick desc"


def test_frames(con: Connection) -> None:
    assert rows(con, "stack_trace", QUERY) == [
        (1, 0, "SORT", "Sort", "SORT nick desc", None, 0),
        (2, 1, "SORT > PROJECT", "Project", "PROJECT nick", None, 0),
        (3, 2, "SORT > PROJECT > FILTER", "Filter", "FILTER length(nick) < 3", None, 0),
        (4, 3, "SORT > PROJECT > FILTER > SCAN", "SeqScan", "SCAN main.crew", "crew", 1),
    ]
    assert rows(con, "stack_trace", "select * from generate_series(1, 2)", "table_or_function, is_virtual")[
        -1
    ] == (
        "generate_series",
        1,
    )


def test_a_run(con: Connection) -> None:
    before = time.time() * 1000 - 1
    traced = rows(con, "execution_trace", QUERY)
    assert [row[:5] for row in traced] == [
        (0, "SORT nick desc", "[1]", '[{"instruction":1,"rows":2}]', '{"rows":2,"runs":1}'),
        (1, "PROJECT nick", "[2]", '[{"instruction":2,"rows":2}]', '{"rows":2,"runs":1}'),
        (2, "FILTER length(nick) < 3", "[3]", '[{"instruction":3,"rows":3}]', '{"rows":2,"runs":1}'),
        (3, "SCAN main.crew", "[]", "[]", '{"rows":3,"runs":1}'),
    ]
    for _, _, _, _, _, duration, programs, error, stamp in traced:
        assert 0 <= duration < 10_000
        assert (programs, error) == (None, None)
        assert before <= stamp <= time.time() * 1000 + 1


def test_subqueries_are_named(con: Connection) -> None:
    sql = "select (select max(id) from crew c where c.id < crew.id) from crew"
    traced = rows(con, "execution_trace", sql, "instruction_index, operation, sub_programs")
    by_number = {row[0]: row[1] for row in traced}
    for _, _, programs in traced:
        for number in [] if programs is None else [int(part) for part in programs.strip("[]").split(",")]:
            assert by_number[number] == "SUBQUERY"


def test_the_rows_of_each_operator(con: Connection) -> None:
    traced = rows(con, "row_trace", QUERY, "instruction_index, operation, row_index, row_data, row_count")
    assert traced == [
        (0, "SORT nick desc", 0, '["Cy"]', 2),
        (0, "SORT nick desc", 1, '["Bo"]', 2),
        (1, "PROJECT nick", 0, '["Bo"]', 2),
        (1, "PROJECT nick", 1, '["Cy"]', 2),
        (2, "FILTER length(nick) < 3", 0, '[2,"Bo",null]', 2),
        (2, "FILTER length(nick) < 3", 1, '[3,"Cy",null]', 2),
        (3, "SCAN main.crew", 0, """[1,"Ann","x'00ff'"]""", 3),
        (3, "SCAN main.crew", 1, '[2,"Bo",null]', 3),
        (3, "SCAN main.crew", 2, '[3,"Cy",null]', 3),
    ]


def test_values_that_json_has_not(con: Connection) -> None:
    data = rows(con, "row_trace", "select photo, 9e999 from crew where id = 1", "row_data")
    assert data[0] == ("""["x'00ff'","Infinity"]""",)


def test_each_computed_column_is_computed_once(con: Connection) -> None:
    calls: list[int] = []
    con.create_function("noted", 1, lambda n: calls.append(n) or n)
    con.execute("select row_data from row_trace('select noted(id) as n from crew order by n')").fetchall()
    assert calls == [1, 2, 3]


def test_changes_are_made(con: Connection) -> None:
    traced = rows(con, "execution_trace", "delete from crew where id > 1", "operation, output_value")
    assert traced[0] == ("DELETE main.crew", '{"rows":2,"runs":1}')
    assert con.execute("select count(*) from crew").fetchone() == (1,)


@pytest.mark.parametrize("sql", ["select nothing", "selec", "select 1; select 2", "pragma foreign_keys"])
def test_failures_are_rows(con: Connection, sql: str) -> None:
    ((operation, message),) = rows(con, "execution_trace", sql, "operation, error_message")
    assert operation == "NO_TRACE_DATA"
    assert message
    assert rows(con, "row_trace", sql, "operation, row_data") == [("NO_ROW_DATA", message)]
    ((operation,),) = rows(con, "stack_trace", sql, "operation")
    assert operation.startswith("Failed to analyze: ")


def test_a_failure_at_run_time(con: Connection) -> None:
    sql = "select * from crew where id = (select id from crew)"
    assert rows(con, "execution_trace", sql, "operation, error_message") == [
        ("NO_TRACE_DATA", "Scalar subquery returned more than one row")
    ]


def test_no_change_within_a_transaction(con: Connection) -> None:
    """The statement that asks is still reading then."""
    con.begin()
    traced = rows(con, "execution_trace", "delete from crew", "operation, error_message")
    assert traced == [("NO_TRACE_DATA", "A change of rows cannot be traced within a transaction")]
    assert len(rows(con, "execution_trace", "select * from crew")) == 1
    con.rollback()


@pytest.mark.parametrize("function", ["stack_trace", "execution_trace", "row_trace"])
def test_they_want_text(con: Connection, function: str) -> None:
    with pytest.raises(quereus_store.Error, match=rf"{function}\(\) requires a SQL string argument"):
        con.execute(f"select * from {function}(1)").fetchall()
