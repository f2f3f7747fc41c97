"""``executemany`` against ``execute`` for each set: the same rows, counts, RETURNING rows and errors."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quereus_store
from quereus_store import Connection, Error
from quereus_store.execute import batches

SCHEMA = """
create table team (id integer primary key, code text null unique);
create table t (
    id integer primary key, n integer null, r real null, s text collate nocase default 'd', x any null,
    team integer null references team (id) on delete cascade,
    twice integer null generated always as (n * 2) stored,
    check (n is null or n < 50),
    unique (s, n)
);
create table part (t integer references t (id) on delete cascade, line integer, primary key (t, line));
create table tree (id integer primary key, up integer null references tree (id) on delete set null);
insert into team values (1, 'a'), (2, null), (3, 'c');
insert into t (id, n, r, s, x, team)
    values (1, 1, 1.5, 'a', 1, 1), (2, null, null, 'b', 'x', 2), (3, 3, 3.0, 'C', null, null),
        (4, 4, 0.5, 'd', 1.5, 1);
insert into part values (1, 1), (1, 2), (3, 1);
insert into tree values (1, null), (2, 1), (3, 2);
"""
TABLES = ("team", "t", "part", "tree")

BATCHED = (
    "insert into t (id, n, r, s, x) values (?1, ?2, ?3, ?4, ?5)",
    "insert into t (id, n, r, s, x) values (?1, ?2, ?3, ?4, ?5) returning id, n, x, twice",
    "insert into t (id, n, r) values (?1, ?2, ?3) on conflict (id) do update set r = excluded.r, n = n + 1",
    "insert into t (id, n, r, s) values (?1, ?2, ?3, ?4) on conflict do nothing returning *",
    "insert or ignore into t (id, n, r, s, team) values (?1, ?2, ?3, ?4, ?2)",
    "insert or replace into t (id, n, r, s) values (?1, ?2, ?3, ?4)",
    "update t set n = ?2, r = ?3, x = ?5 where id = ?1",
    "update t set n = n + ?2, s = ?4 where id = ?1 returning id, n, old.n, twice, s",
    "update t set team = ?2 where id = ?1 and r < ?3",
    "update part set line = ?2 where t = ?1 and line = ?2",
    "update team set id = ?2 where id = ?1",
    "update tree set up = ?2 where id = ?1",
    "delete from t where id = ?1 returning *",
    "delete from t where id = ?1 and n > ?2",
    "delete from team where id = ?1",
    "delete from part where t = ?1 and line = ?2",
    "delete from tree where id = ?1",
    "delete from t where s = ?4",
)

number = st.sampled_from((None, 1, 2, 3, 4, 5, 6, 7))
parameters = st.tuples(
    st.one_of(st.integers(1, 8), st.sampled_from((None, 2.0, "3", "no"))),
    st.one_of(number, st.sampled_from((1.5, "4", 60, True))),
    st.one_of(number, st.sampled_from((1.5, 2.5, "7.5"))),
    st.sampled_from(("a", "A", "b", "e", "f", None, 5)),
    st.sampled_from((None, 1, 1.5, "x", True, b"b")),
)
plain = st.tuples(
    st.integers(1, 8), st.integers(1, 5), st.sampled_from((1, 1.5, None)), st.text("abcd"), number
)


def outcome(connection: Connection, sql: str, sets: list[tuple[Any, ...]], together: bool) -> Any:
    """Count and RETURNING rows, or the error; then all rows.  A failure leaves nothing of any set."""
    result: Any
    try:
        if together:
            cursor = connection.executemany(sql, sets)
            result = cursor.rowcount, cursor.fetchall()
        else:
            with connection.transaction():
                count, rows = 0, []
                for one in sets:
                    cursor = connection.execute(sql, one)
                    count += cursor.rowcount
                    rows += cursor.fetchall()
                result = count, rows
    except Error as error:
        result = error.code
    return result, [connection.execute(f"select * from {table}").fetchall() for table in TABLES]


@settings(max_examples=120, deadline=None)
@given(
    sql=st.sampled_from(BATCHED),
    sets=st.one_of(st.lists(plain, max_size=6), st.lists(parameters, max_size=6)),
)
def test_a_batch_is_what_its_sets_are_one_by_one(sql: str, sets: list[tuple[Any, ...]]) -> None:
    outcomes = []
    for together in (True, False):
        with quereus_store.connect(":memory:") as connection:
            connection.executescript(SCHEMA)
            outcomes.append(repr(outcome(connection, sql, sets, together)))
    assert outcomes[0] == outcomes[1]


# --- which statements go as one batch -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "sets"),
    [
        ("insert into t (id, r) values (?, ?)", [(5, 1), (6, 2.5), (7, None)]),
        ("insert into t (id, n) values (?, ?)", [(5, 1), (6, 2.0), (7, "3")]),
        ("insert into t (id, x) values (?, ?)", [(5, 1), (6, "x"), (7, None), (8, 2.5)]),
        (
            "insert into t (id, r) values (?, ?) on conflict (id) do update set r = excluded.r",
            [(1, 1), (6, 2.5)],
        ),
        ("update t set r = ? where id = ?", [(1, 1), (2.5, 2), (None, 3), (1.0, 99)]),
        ("update t set n = n + ? where id = ? and r > ?", [(1, 1, 0.5), (2, 4, 0.1)]),
        ("delete from t where id = ?", [(1,), (4,), (1,), (99,)]),
        ("delete from t where id = ?", [(1,), (None,)]),
        ("delete from part where t = ? and line = ? returning *", [(1, 2), (3, 1)]),
    ],
)
def test_no_set_runs_alone(sql: str, sets: list[tuple[Any, ...]]) -> None:
    with quereus_store.connect(":memory:") as connection:
        connection.executescript(SCHEMA)
        with patch.object(batches, "_run_each", side_effect=AssertionError("set by set")):
            connection.executemany(sql, sets)


def test_returning_gives_the_rows_of_all_sets() -> None:
    with quereus_store.connect(":memory:") as connection:
        connection.executescript(SCHEMA)
        cursor = connection.executemany("delete from part where t = ? returning t, line", [(1,), (3,)])
        assert [column[0] for column in cursor.description or ()] == ["t", "line"]
        assert cursor.rowcount == 3
        assert cursor.fetchall() == [(1, 1), (1, 2), (3, 1)]
