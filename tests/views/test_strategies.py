"""Which strategy serves which body: what EXPLAIN and maintenance_info() say, and that cost follows."""

from __future__ import annotations

from typing import Any

import pytest

import quereus_store

TABLES = """
create table t (id integer primary key, g text not null, p integer not null, x integer not null, y real null);
create table p (id integer primary key, name text not null);
"""

STRATEGIES = {
    "select id, x + 1 as n from t where x > 2": {"t": "delta"},
    "select t.id, p.name from t join p on p.id = t.p": {"t": "delta", "p": "delta"},
    "select t.id, p.name from t left join p on p.id = t.p": {"t": "delta", "p": "touched keys"},
    "select g, count(*) as n, sum(x) as s, min(x) as lo, avg(x) as m from t group by g": {"t": "merge"},
    "select g, avg(y) as m from t group by g": {"t": "states"},
    "select g, count(*) as n from t group by g having count(*) > 2": {"t": "states"},
    "select g, group_concat(id) as l from t group by g": {"t": "touched keys"},
    "select id, g, rank() over (partition by g order by id) as r from t": {"t": "touched keys"},
    "select id, rank() over (partition by g order by id) as r from t": {"t": "rebuild"},
    "select distinct g from t": {"t": "touched keys"},
    "select g from t union select name from p": {"t": "touched keys", "p": "touched keys"},
    "select id, x from t where x > (select count(*) from p)": {"t": "delta", "p": "rebuild"},
    "select id, x from t order by x limit 3": {"t": "rebuild"},
}


@pytest.fixture
def con() -> Any:
    connection = quereus_store.connect(":memory:")
    connection.executescript(TABLES)
    return connection


@pytest.mark.parametrize(("body", "expected"), STRATEGIES.items())
def test_the_strategy_of_a_body(con: Any, body: str, expected: dict[str, str]) -> None:
    con.execute(f"create materialized view v as {body}")
    rows = con.execute("select source, strategy from maintenance_info('v')").fetchall()
    assert dict(rows) == expected


def test_explain_shows_what_follows_a_change(con: Any) -> None:
    con.execute("create materialized view per_g as select g, sum(x) as s from t group by g")
    con.execute("create materialized view total as select count(*) as n from per_g")
    lines = [line for (line,) in con.execute("explain query plan delete from t where id = 1")]
    assert "MAINTAIN main.per_g by merge" in lines
    assert "MAINTAIN main.total by merge" in lines


def test_small_changes_read_by_index_however_small_the_tables_were(con: Any) -> None:
    con.execute("create materialized view v as select t.id, p.name from t join p on p.id = t.p")
    ((plan,),) = con.execute("select plan from maintenance_info('v') where source = 't'").fetchall()
    assert "SEEK main.p" in plan


def test_an_aggregate_of_the_program_is_not_taken_for_a_built_in_one(con: Any) -> None:
    con.database.create_aggregate(
        *("sum", 1, lambda state, value: state + 2 * value, int, 0),
        inverse=lambda state, value: state - 2 * value,
        merge=lambda left, right: left + right,
        deterministic=True,
        returns="integer",
    )
    con.execute("create materialized view v as select g, count(*) as n, sum(x) as s from t group by g")
    con.execute("insert into t values (1, 'a', 1, 10, null), (2, 'a', 1, 5, null)")
    con.execute("insert into t values (3, 'a', 1, 1, null)")
    assert con.execute("select * from v").fetchall() == [("a", 3, 32)]
    con.execute("delete from t where id = 1")
    assert con.execute("select * from v").fetchall() == [("a", 2, 12)]
