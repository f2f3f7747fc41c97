"""Statements of many parts: preparing four times as many takes about four times the work.

Work is counted in calls of functions, the same on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import quereus_store as q

COLUMNS = 400


def numbered(count: int, text: str, between: str) -> str:
    """The text with each number in the place of ``#``."""
    return between.join(text.replace("#", str(number)) for number in range(count))


SHAPES: dict[str, tuple[int, Callable[[int], str]]] = {
    "common tables": (
        60,
        lambda n: f"with {numbered(n, 'c# as (select id, v + # as v from t)', ', ')} select 1",
    ),
    "common tables, each read once": (
        60,
        lambda n: (
            f"with {numbered(n, 'c# as (select # as a)', ', ')} "
            f"select {numbered(n, '(select a from c#)', ', ')}"
        ),
    ),
    "common tables, each reading the one before": (
        60,
        lambda n: (
            "with c as (select id, v from t), "
            + ", ".join(f"c{i} as (select id, v from c{i - 1 if i else ''} where v > {i})" for i in range(n))
            + f" select * from c{n - 1}"
        ),
    ),
    "result columns": (100, lambda n: f"select {numbered(n, 'c# + 1 as d#', ', ')} from wide where c1 = 5"),
    "values of a row": (
        100,
        lambda n: f"insert into wide (id, {numbered(n, 'c#', ', ')}) values (7, {numbered(n, '#', ', ')})",
    ),
    "assignments": (100, lambda n: f"update wide set {numbered(n, 'c# = c# + 1', ', ')}"),
    "rows of VALUES": (250, lambda n: f"insert into t (id, v) values {numbered(n, '(#, 1)', ', ')}"),
    "members of IN": (1000, lambda n: f"select * from t where v in ({numbered(n, '#', ', ')})"),
    "keys in IN": (1000, lambda n: f"select * from t where id in ({numbered(n, '#', ', ')})"),
    "computed members of IN": (100, lambda n: f"select * from t where v in ({numbered(n, '# + id', ', ')})"),
    "operands of AND": (500, lambda n: f"select * from t where {numbered(n, 'v <> #', ' and ')}"),
    "operands of OR": (500, lambda n: f"select * from t where {numbered(n, 'v > #', ' or ')}"),
    "pairs in OR": (100, lambda n: f"select * from t where {numbered(n, 'v = # and id > #', ' or ')}"),
    "legs of UNION ALL": (30, lambda n: numbered(n, "select id, # as k from t", " union all ")),
    "branches of CASE": (100, lambda n: f"select case {numbered(n, 'when v = # then #', ' ')} end from t"),
    "aggregates": (50, lambda n: f"select {numbered(n, 'sum(v + #)', ', ')} from t group by id"),
    "window calls": (50, lambda n: f"select {numbered(n, 'sum(v + #) over (partition by id)', ', ')} from t"),
    "terms of ORDER BY": (50, lambda n: f"select * from t order by {numbered(n, 'v + #', ', ')}"),
    "subqueries": (
        25,
        lambda n: f"select {numbered(n, '(select max(v) + # from t x where x.id = t.v)', ', ')} from t",
    ),
}


def calls_to_run(sql: str) -> int:
    """How many functions are called for a statement over empty tables."""
    con = q.connect(":memory:")
    con.execute("create table t (id integer primary key, v integer)")
    con.execute(f"create table wide (id integer primary key, {numbered(COLUMNS, 'c# integer null', ', ')})")
    count = 0

    def counted(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        con.execute(sql).close()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_with_the_parts(shape: str) -> None:
    few, write = SHAPES[shape]
    calls_to_run(write(2))
    assert calls_to_run(write(4 * few)) < 4.6 * calls_to_run(write(few))


def test_a_thousand_common_tables_each_reading_the_one_before() -> None:
    con = q.connect(":memory:")
    members = [
        "c0 as (select 0 as v)",
        *(f"c{i} as (select v + 1 as v from c{i - 1})" for i in range(1, 1000)),
    ]
    assert con.execute(f"with {', '.join(members)} select v from c999").fetchall() == [(999,)]


def test_views_over_views_end_in_an_error_of_their_own() -> None:
    con = q.connect(":memory:")
    con.execute("create view w0 as select 1 as v")
    views = [f"create view w{number} as select v from w{number - 1}" for number in range(1, 2000)]
    with pytest.raises(q.DataError, match="Statement is nested too deeply"):
        con.executescript(";".join(views))
    assert con.execute("select v from w50").fetchall() == [(1,)]
