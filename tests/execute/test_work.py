"""How much work operators do, counted in calls, rows and steps rather than by the clock."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

import quereus_store
from quereus_store import Connection
from quereus_store.execute.codegen.kernels import top_rows
from quereus_store.functions.windows import Frames, aggregation
from tests.counting import Counter

ROWS = 20_000


@pytest.fixture
def counter() -> Counter:
    return Counter()


@pytest.fixture
def con(counter: Counter) -> Iterator[Connection]:
    with quereus_store.connect() as connection:
        connection.create_function("counted", 1, counter, deterministic=True)
        connection.execute("create table t (id integer primary key, k integer, v integer)")
        connection.executemany(
            "insert into t values (?, ?, ?)", [(n, n // 10, n * 7919 % 10_007) for n in range(ROWS)]
        )
        yield connection


# --- groups, sorts ------------------------------------------------------------------------------------------


def test_groups_in_the_order_of_the_key_come_while_rows_are_read(con: Connection, counter: Counter) -> None:
    groups = con.execute("select id / 10, count(counted(v)) from t group by id limit 3").fetchall()
    assert len(groups) == 3
    assert counter.calls < ROWS / 4


def test_the_first_rows_in_order_are_found_without_sorting_all() -> None:
    """Worst of all is an input in which every row belongs to the first ones met so far."""
    sorted_rows: list[int] = []

    def sort(rows: list[Any]) -> list[Any]:
        sorted_rows.append(len(rows))
        return sorted(rows, reverse=True)

    batches = [[(n,) for n in range(start, start + 1000)] for start in range(0, ROWS, 1000)]
    assert top_rows(batches, sort, None, 10) == [(n,) for n in range(ROWS - 1, ROWS - 11, -1)]
    assert max(sorted_rows) < 3000
    assert sum(sorted_rows) < 2 * ROWS


def test_the_first_rows_in_order_do_not_hold_all(con: Connection) -> None:
    def peak(sql: str) -> int:
        con.execute(sql).fetchall()
        tracemalloc.start()
        con.execute(sql).fetchall()
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return held

    rows = "select value, 'text ' || value from generate_series(1, 20000) order by"
    assert peak(f"{rows} -value limit 10") < peak(f"{rows} -value limit 20000") / 4


# --- common tables ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hint", "evaluations"), [("", 1), ("materialized", 1), ("not materialized", 2)])
def test_a_common_table_is_evaluated_once_unless_told_otherwise(
    con: Connection, counter: Counter, hint: str, evaluations: int
) -> None:
    sql = f"with c as {hint} (select id, counted(v) as v from t where id < 100)"
    sql += " select count(*) from c a join c b on a.id + 1 = b.id where a.v >= 0 and b.v >= 0"
    assert con.execute(sql).fetchone() == (99,)
    assert counter.calls == 100 * evaluations


def test_each_round_of_a_recursion_works_on_the_rows_of_the_last_one_alone(
    con: Connection, counter: Counter
) -> None:
    sql = "with recursive n (i) as (select 1 union select counted(i) + 1 from n where i < 2000)"
    assert con.execute(f"{sql} select count(*) from n").fetchone() == (2000,)
    assert counter.calls == 1999


def test_an_outer_limit_ends_an_endless_recursion(con: Connection, counter: Counter) -> None:
    sql = "with recursive n (i) as (select 1 union all select counted(i) + 1 from n)"
    assert con.execute(f"{sql} select i from n limit 50").fetchall() == [(i,) for i in range(1, 51)]
    assert counter.calls < 200


# --- windows ------------------------------------------------------------------------------------------------

WINDOWS = {
    "running sum": "sum(v) over (order by id)",
    "running sum of fractions": "sum(v / 3.0) over (order by id)",
    "running text": "max(cast(v as text)) over (order by id)",
    "sliding sum": "sum(v) over (order by id rows between {half} preceding and current row)",
    "sliding sum of fractions": "sum(v / 3.0) over (order by id rows {half} preceding)",
    "sliding extremes": "max(v) over (order by id rows between {half} preceding and {half} following)",
    "sliding variance": "var_pop(v) over (order by id rows between {half} preceding and current row)",
    "distances": "count(*) over (order by v range between {half} preceding and current row)",
    "groups": "sum(v) over (order by k groups between 50 preceding and current row)",
    "all but the row itself": "sum(v) over (order by id rows between unbounded preceding and"
    " unbounded following exclude current row)",
    "all but peers": "min(v) over (order by k rows between unbounded preceding and"
    " unbounded following exclude ties)",
    "to the end": "avg(v) over (order by id rows between current row and unbounded following)",
    "ranks": "rank() over (order by v), percent_rank() over (order by v), ntile(10) over (order by v)",
    "other rows": "lag(v, {half}) over (order by id), lead(v) over (order by id)",
    "rows of the frame": "nth_value(v, 3) over (order by id rows between {half} preceding and current row)",
    "many partitions": "sum(v) over (partition by k order by id)",
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_take_no_more_than_n_log_n_steps(
    con: Connection, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four times the rows and four times the width of the frame: a quadratic way would take sixteen times."""
    looked_at = 0
    evaluated = aggregation._evaluated

    def counting(function: Any, frames: Frames, row: int, columns: Any, key: Any) -> Any:
        nonlocal looked_at
        looked_at += sum(ends[row] - starts[row] for starts, ends in frames.parts)
        return evaluated(function, frames, row, columns, key)

    monkeypatch.setattr(aggregation, "_evaluated", counting)

    def steps(rows: int) -> int:
        nonlocal looked_at
        looked_at = 0
        call = WINDOWS[name].format(half=rows // 2)
        sql = f"select {call} from t where id < {rows}"
        return _steps(lambda: con.execute(sql).fetchall()) + looked_at

    steps(10)  # So that both are compiled and all imports are done.
    assert steps(2000) < 6 * steps(500)


def _steps(action: Callable[[], Any]) -> int:
    """How many instructions of Python run."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += 1
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(previous)
    return count


# --- the texts of queries -----------------------------------------------------------------------------------


def test_a_cached_statement_is_neither_parsed_nor_planned(
    con: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "select v from t where id = ?"
    con.execute(sql, (1,)).fetchall()

    def refuse(*_: Any) -> Any:
        raise AssertionError("prepared again")

    monkeypatch.setattr("quereus_store.execute.session.prepare", refuse)
    assert con.execute(sql, (2,)).fetchall() == [(2 * 7919 % 10_007,)]


TEN_LINES = """
select c.name, count(*) as n, sum(o.amount) as total, avg(o.amount) as mean
from customer c
join orders o on o.customer = c.id
left join region r on r.id = c.region
where o.placed >= '2024-01-01' and c.active
  and exists (select 1 from visit v where v.customer = c.id and v.kind = 'web')
group by c.name
having count(*) > {least}
order by total desc
limit 10"""


@pytest.fixture
def shop() -> Iterator[Connection]:
    with quereus_store.connect(cached_statements=0) as connection:
        connection.executescript(
            """
            create table customer (id integer primary key, name text, region integer, active boolean);
            create table orders (id integer primary key, customer integer, amount real, placed text);
            create table region (id integer primary key, name text);
            create table visit (id integer primary key, customer integer, kind text);
            create index visit_customer on visit (customer);
            """
        )
        connection.execute(TEN_LINES.format(least=0))
        yield connection


def test_preparing_a_query_takes_some_thousand_calls(shop: Connection) -> None:
    """What takes the time is calls, a microsecond for every one or two: under 5,000 it stays within 3 ms."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        shop.execute(TEN_LINES.format(least=3))
    finally:
        sys.setprofile(None)
    assert calls < 5000


def test_preparing_a_statement_leaves_nothing_for_the_garbage_collector(shop: Connection) -> None:
    """A function that refers to itself would keep all that was thought about a statement alive."""
    statements = (
        TEN_LINES.format(least=1),
        "insert into region select id + 1, name from region",
        "update customer set name = upper(name) where id in (select customer from visit)",
        "delete from orders where amount < 1.0",
    )
    for statement in statements:
        shop.execute(statement)
    gc.collect()
    gc.disable()
    try:
        for statement in statements:
            shop.execute(statement)
            assert gc.collect() == 0, statement
    finally:
        gc.enable()


def test_programs_of_one_text_are_compiled_once(shop: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr("builtins.compile", refuse)
    shop.execute(TEN_LINES.format(least=0))
