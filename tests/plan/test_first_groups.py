"""Groups of which only the first are wanted come along an index, and no more rows are read than they have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import quereus_store
from tests.counting import Counter

ROWS = 6000


@pytest.fixture
def counter() -> Counter:
    return Counter()


@pytest.fixture(params=["memory", "lmdb"])
def connection(
    request: pytest.FixtureRequest, counter: Counter, tmp_path: Path
) -> Iterator[quereus_store.Connection]:
    path = ":memory:" if request.param == "memory" else str(tmp_path / "k.qdb")
    with quereus_store.connect(path) as opened:
        opened.create_function("counted", 1, counter, deterministic=True)
        opened.execute(
            "create table sale (id integer primary key, customer integer, day text,"
            " region text null collate nocase, price real, weight real)"
        )
        opened.execute("create index sale_customer on sale (customer, day)")
        opened.execute("create index sale_region on sale (region desc)")
        opened.execute("create index sale_price on sale (price)")
        opened.executemany(
            "insert into sale values (?, ?, ?, ?, ?, ?)",
            [
                (
                    i,
                    i * 7919 % 600,
                    f"2024-{i % 12 + 1:02}",
                    None if i % 60 == 0 else f"{'rR'[i % 2]}{i % 500 // 2:03}",
                    (i * 31 % 500 - 1) * (-0.0 if i % 1000 == 500 else 1.0),
                    i * 0.25,
                )
                for i in range(ROWS)
            ],
        )
        yield opened


FIRST_GROUPS = [
    "select customer, min(day), sum(counted(weight)) from sale group by customer limit 5",
    "select day, customer, sum(counted(weight)) from sale group by day, customer limit 5",
    "select customer, sum(counted(weight)) from sale where weight >= 0 group by customer limit 3 offset 2",
    "select region, count(*), sum(counted(weight)) from sale group by region limit 4",
    "select price, sum(counted(weight)) from sale group by price limit 4",
    "select customer, min(day), sum(counted(weight)) from sale group by customer order by customer limit 5",
    "select customer, sum(counted(weight)) from sale group by customer order by 1 desc limit 5 offset 1",
    "select n, s from (select customer n, sum(counted(weight)) s from sale group by customer) limit 5",
    "select c, sum(counted(w)) from (select customer as c, weight as w from sale) group by c limit 5",
]


@pytest.mark.parametrize("sql", FIRST_GROUPS)
def test_first_groups_need_few_rows(connection: quereus_store.Connection, counter: Counter, sql: str) -> None:
    assert "one after the other" in str(connection.explain(sql))
    found = connection.execute(sql).fetchall()
    assert counter.calls < ROWS / 10
    every = connection.execute(sql.partition(" limit")[0]).fetchall()
    assert len(set(found)) == len(found) >= 3
    if "order by" in sql:
        begin = int(sql.partition(" offset ")[2] or 0)
        assert found == every[begin : begin + len(found)]
    elif "region" in sql:
        # Any of the spellings that are equal may stand for the group.
        assert {(row[0] and row[0].lower(), *row[1:]) for row in found} <= {
            (row[0] and row[0].lower(), *row[1:]) for row in every
        }
    else:
        assert set(found) <= set(every)


@pytest.mark.parametrize(
    "sql",
    [
        "select customer, sum(weight) from sale group by customer",
        "select customer, sum(weight) from sale group by customer limit 400",
        "select customer, sum(weight) from sale group by customer having count(*) > 50 limit 5",
        "select customer, sum(weight) from sale group by customer order by 2 limit 5",
        "select weight, count(*) from sale group by weight limit 5",
        "select customer, day, region from sale group by customer, day, region limit 5",
        "select count(*) from sale group by region collate binary limit 4",
        "select customer + 1, count(*) from sale group by customer + 1 limit 4",
    ],
)
def test_many_groups_or_unknown_ones_are_grouped_by_a_scan(
    connection: quereus_store.Connection, sql: str
) -> None:
    assert "one after the other" not in str(connection.explain(sql))


def test_own_changes_are_among_the_first_groups(connection: quereus_store.Connection) -> None:
    sql = "select customer, count(*) from sale group by customer limit 2"
    connection.execute("begin")
    connection.execute(
        "insert into sale values (-1, -5, '2025-01', null, 1, 1), (-2, -5, '2025-02', null, 1, 1)"
    )
    connection.execute("delete from sale where customer = 0")
    assert connection.execute(sql).fetchall() == [(-5, 2), (1, 10)]
    connection.execute("rollback")
    assert connection.execute(sql).fetchall() == [(0, 10), (1, 10)]
