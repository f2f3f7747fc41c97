"""What subqueries cost: joined ones read their tables once, others run once for each outer value."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import quereus_store
from tests.counting import Counter


@pytest.fixture
def counter() -> Counter:
    return Counter()


@pytest.fixture
def connection(counter: Counter) -> Iterator[quereus_store.Connection]:
    with quereus_store.connect(":memory:") as opened:
        opened.create_function("counted", 1, counter, deterministic=True)
        opened.execute("create table outer_rows (id integer primary key, k integer null)")
        opened.execute("create table inner_rows (id integer primary key, k integer, v integer)")
        opened.executemany("insert into outer_rows values (?, ?)", [(i, i % 100) for i in range(10_000)])
        opened.executemany("insert into inner_rows values (?, ?, ?)", [(i, i, i) for i in range(5)])
        yield opened


@pytest.mark.parametrize(
    "subquery",
    [
        "(select max(counted(i.v)) from inner_rows i where i.k >= o.k - 1000)",
        "(select max(counted(i.v)) from inner_rows i where i.k = o.k or i.v >= 0)",
        "exists (select 1 from inner_rows i where counted(i.v) < o.k - 1000)",
        "(select counted(i.v) from inner_rows i where i.v = o.k or i.id >= 0 order by i.v - o.k limit 1)",
    ],
)
def test_others_run_once_for_each_outer_value(
    connection: quereus_store.Connection, counter: Counter, subquery: str
) -> None:
    """10,000 rows with 100 values: the subquery over five rows runs a hundred times."""
    assert len(connection.execute(f"select id, {subquery} from outer_rows o").fetchall()) == 10_000
    assert counter.calls == 100 * 5


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("exists (select 1 from inner_rows i where i.k = o.k and counted(i.v) >= 0)", 500),
        ("not exists (select 1 from inner_rows i where i.k = o.k and counted(i.v) >= 0)", 9500),
        ("o.k in (select k from inner_rows i where counted(i.v) >= 0)", 500),
        ("o.k in (select k from inner_rows i where i.id = o.k and counted(i.v) >= 0)", 500),
        ("(select sum(counted(i.v)) from inner_rows i where i.k = o.k) >= 0", 500),
    ],
)
def test_joined_subqueries_read_their_table_once(
    connection: quereus_store.Connection, counter: Counter, condition: str, rows: int
) -> None:
    found = connection.execute(f"select count(*) from outer_rows o where {condition}").fetchone()
    assert found == (rows,)
    assert counter.calls == 5


def test_few_rows_of_a_limit_do_not_group_a_whole_table(connection: quereus_store.Connection) -> None:
    """Groups are made where most of them are wanted; a seek for each of three rows is less."""
    connection.execute("create index by_k on outer_rows (k)")
    count = "(select count(*) from outer_rows o where o.k = i.k)"

    def grouped(sql: str) -> bool:
        lines = [line for (line,) in connection.execute(f"explain {sql}")]
        return any("AGGREGATE count(*) by k" in line for line in lines)

    assert not grouped(f"select i.id, {count} from inner_rows i")
    assert not grouped(f"select i.id, {count} from outer_rows i order by i.id limit 3")
    assert grouped(f"select i.id, {count} from outer_rows i")
    assert grouped(f"select i.id, {count} from outer_rows i order by 2 limit 3")


def test_a_subquery_that_is_not_deterministic_stays(connection: quereus_store.Connection) -> None:
    sql = "select count(*) from outer_rows o where k in (select k from inner_rows i where random() = i.k)"
    lines = [line for (line,) in connection.execute(f"explain {sql}")]
    assert not any("JOIN" in line for line in lines)
