"""EXPLAIN ANALYZE: the plan of EXPLAIN QUERY PLAN with the rows and times that a run measured."""

from __future__ import annotations

from typing import Any

import pytest

import quereus_store
from quereus_store import Connection, NotSupportedError
from quereus_store.plan.tree import PlanStep
from tests.differential.choices import Choices
from tests.differential.extended import ExtendedQueries
from tests.differential.queries import Queries
from tests.differential.worlds import open_world


@pytest.fixture
def con() -> Connection:
    connection = quereus_store.connect()
    connection.executescript("""
        create table ship (name text primary key, tons integer);
        insert into ship values ('Ark', 30), ('Bee', 10), ('Cat', 20);
        create table crew (id integer primary key, nick text, ship text null);
        insert into crew values (1, 'Ann', 'Ark'), (2, 'Bo', 'Ark'), (3, 'Cy', 'Cat'), (4, 'Di', null);
        create index crew_ship on crew (ship);
    """)
    return connection


def table(con: Connection, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
    """EXPLAIN ANALYZE without the times, which no two runs have in common."""
    cursor = con.execute(f"explain analyze {sql}", parameters)
    assert [column[0] for column in cursor.description or ()] == [
        *("detail", "estimated_rows", "rows", "runs", "milliseconds")
    ]
    rows = cursor.fetchall()
    assert all(row[4] is None or 0 <= row[4] < 60_000 for row in rows)
    return [row[:4] for row in rows]


def test_rows_of_each_operator(con: Connection) -> None:
    sql = "select nick from crew where id > ? order by nick desc"
    assert table(con, sql, (1,)) == [
        ("SORT nick desc", 1, 3, 1),
        ("  PROJECT nick", 1, 3, 1),
        ("    SEEK main.crew by primary key (id > ?1)", 1, 3, 1),
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "select * from crew join ship on ship.name = crew.ship where tons > 5",
        "select nick, (select tons from ship where name = ship) from crew where exists (select 1 from ship)",
        "select ship, count(*) from crew group by rollup (ship)",
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5) select * from n",
        "select * from crew c, lateral (select tons + c.id from ship where name = c.ship) order by 1 limit 2",
        "select nick, row_number() over (order by nick) from crew union all select 'x', 0",
        "update crew set nick = upper(nick) where ship = 'Ark'",
        "delete from crew where ship is null returning id",
    ],
)
def test_the_plan_is_the_one_that_explain_shows(con: Connection, sql: str) -> None:
    planned = [line for (line,) in con.execute(f"explain query plan {sql}")]
    assert [row[0] for row in table(con, sql)] == planned


def test_operators_that_run_once_a_row(con: Connection) -> None:
    """The right side of a lateral join is started for each left row."""
    sql = "select * from ship, lateral (select count(*) as n from crew where crew.ship = ship.name) as c"
    (scan,) = [row for row in table(con, sql) if "crew" in row[0] and row[3] is not None]
    assert scan[2:] == (3, 3)


def test_a_change_is_made_and_counted(con: Connection) -> None:
    rows = table(con, "insert into ship select name || '2', tons from ship where tons >= 20")
    assert rows[0][0] == "INSERT main.ship"
    assert rows[0][2:] == (2, 1)
    assert [row[2] for row in rows if row[0].endswith("SCAN main.ship")] == [3]
    assert con.execute("select changes()").fetchone() == (2,)
    assert con.execute("select count(*) from ship").fetchone() == (5,)


def test_a_change_that_fails_leaves_nothing(con: Connection) -> None:
    with pytest.raises(quereus_store.IntegrityError):
        con.execute("explain analyze insert into ship select name || iif(tons > 10, '2', ''), 1 from ship")
    assert con.execute("select count(*) from ship").fetchone() == (3,)


def test_within_a_transaction(con: Connection) -> None:
    with con.transaction():
        con.execute("delete from crew where id = 1")
        assert table(con, "select nick from crew")[-1][2] == 3


def test_what_cannot_be_analyzed(con: Connection) -> None:
    with pytest.raises(NotSupportedError, match="EXPLAIN ANALYZE"):
        con.execute("explain analyze create table t (id integer primary key)")


def test_normal_programs_have_no_counters(con: Connection) -> None:
    code = "\n".join(line for (line,) in con.execute("explain code select nick from crew where id > 1"))
    assert "profile" not in code


def test_the_tree_in_python(con: Connection) -> None:
    tree = con.explain("select nick from crew where id > ?", (1,))
    assert str(tree) == "PROJECT nick\n  SEEK main.crew by primary key (id > ?1)"
    assert (tree.rows, tree.milliseconds, tree.total_milliseconds) == (None, None, None)
    measured = con.explain("select nick from crew where id > ?", (1,), analyze=True)
    assert (measured.rows, measured.children[0].rows) == (3, 3)
    assert measured.total_milliseconds is not None
    assert measured.total_milliseconds >= measured.children[0].total_milliseconds > 0  # type: ignore[operator]
    assert measured.estimated_cost == sum(step.estimated_rows or 0 for step, _ in measured.walk())
    assert measured.as_dict()["children"][0]["rows"] == 3


def test_measuring_changes_no_result() -> None:
    """Random queries: the topmost operator gives as many rows as the query does."""
    world = open_world(Choices(11), None, counts=(30,))
    con = world.connections["memory, indexes"]
    for number in range(60):
        queries = (Queries if number % 2 else ExtendedQueries)(Choices(31_000 + number))
        query = queries.query()
        rows = con.execute(query.quereus, query.parameters).fetchall()
        tree = con.explain(query.quereus, query.parameters, analyze=True)
        assert tree.rows == len(rows), query.quereus
        assert all(step.milliseconds is None or step.milliseconds >= 0 for step, _ in tree.walk())
    world.close()


def test_steps_are_plain_values() -> None:
    step = PlanStep("SCAN", "main.t", 3.0)
    assert PlanStep("FILTER", "a > 1", 1.0, children=(step,)).estimated_cost == 4.0


def test_what_follows_a_change_is_told_below_it(con: Connection) -> None:
    con.execute("create table reading (id integer primary key, place text)")
    con.execute("create materialized view places as select place, count(*) as n from reading group by place")
    root = con.explain("insert into reading values (1, 'roof')", analyze=True)
    assert [(depth, step.operator) for step, depth in root.walk()] == [
        (0, "INSERT"),
        (1, "VALUES"),
        (1, "MAINTAIN"),
        (2, "PROJECT"),
        (3, "CHANGES"),
    ]
