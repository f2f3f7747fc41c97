"""``executemany`` over rows of which some hold NULL: one batch, with the rules of single rows."""

from typing import Any

import pytest

import quereus_store

INSERT = "insert into t values (?, ?, ?)"


@pytest.fixture
def con() -> Any:
    with quereus_store.connect(":memory:") as connection:
        connection.execute(
            "create table t (id integer primary key, n integer null, s text check (s != 'bad'))"
        )
        yield connection


def test_nulls_among_values(con: Any) -> None:
    con.executemany(INSERT, [(1, None, "a"), (2, 5, "b"), (3, None, "c")])
    assert con.execute("select * from t").fetchall() == [(1, None, "a"), (2, 5, "b"), (3, None, "c")]


def test_values_convert_where_others_are_null(con: Any) -> None:
    con.executemany(INSERT, [(1, None, "a"), (2, "12", "b")])
    assert con.execute("select n from t").fetchall() == [(None,), (12,)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(1, 1, "a"), (2, None, None)], "NOT NULL constraint failed: t.s"),
        ([(1, 1, None), (2, None, "a")], "NOT NULL constraint failed: t.s"),
        ([(1, "x", "a"), (2, None, "a")], "Cannot convert 'x' to INTEGER"),
        ([(1, None, "a"), (1, 2, "b")], "UNIQUE constraint failed: t PK."),
        ([(1, None, "a"), (2, 2, "bad")], "CHECK constraint failed: _check_s"),
    ],
)
def test_a_row_that_breaks_a_rule_undoes_the_batch(con: Any, rows: list[Any], message: str) -> None:
    with pytest.raises(quereus_store.Error, match=message):
        con.executemany(INSERT, rows)
    assert con.execute("select count(*) from t").fetchone() == (0,)


def test_expressions_see_null_in_a_mixed_column(con: Any) -> None:
    con.executemany("insert into t values (?, ? + 1, coalesce(?, 'none'))", [(1, 1, None), (2, None, "x")])
    assert con.execute("select * from t").fetchall() == [(1, 2, "none"), (2, None, "x")]
