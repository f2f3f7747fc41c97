"""The key that is proved for a body, and the physical key that its rows are stored under."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quereus_store

TABLES = """
create table t (id integer primary key, a integer not null, b text not null, u text not null unique);
create table p (id integer primary key, name text not null);
create table pair (a integer, b integer, v integer, primary key (a, b));
create table back (id integer primary key desc, v integer);
create table link (t integer not null, p integer not null, primary key (t, p));
"""

KEYS = {
    "select id, a from t": ["id"],
    "select a, id as number from t": ["number"],
    "select id + 1 as next, a from t": ["next"],
    "select u, a from t": ["u"],
    "select u, id from t": ["id"],
    "select b, a from pair": ["a", "b"],
    "select v, b from pair where a = 3": ["b"],
    "select a, id from t where id = 2": [],
    "select count(*) as n from t": [],
    "select id, v from back": ["id desc"],
    "select a, id from t order by a desc": ["a desc", "id"],
    "select a, b, count(*) as n from t group by a, b": ["a", "b"],
    "select count(*) as n, b from t group by b order by n": ["n", "b"],
    "select distinct a, b from t": ["a", "b"],
    "select distinct id, b from t": ["id"],
    "select a from t union select id from p": ["a"],
    "select id, a from t except select id, id from p": ["id"],
    "select t.id, p.name from t join p on p.id = t.a": ["id"],
    "select p.name, t.id from p join t on t.a = p.id": ["id"],
    "select t.id, p.id as pid from t cross join p": ["id", "pid"],
    "select t.id, p.name from t left join p on p.id = t.a": ["id"],
    "select t.id, link.p from t left join link on link.t = t.id": ["id", "p"],
    "select t.id, p.id as pid from t full join p on p.id = t.a": ["id", "pid"],
    "select l.t, p.name, l.p from link l join p on p.id = l.p": ["t", "p"],
    "select id, row_number() over (order by id) as r from t": ["id"],
    "with x as (select id, a from t) select a, id from x": ["id"],
    "select id, (select max(v) from pair) as m from t": ["id"],
    # What holds of a lateral side holds for each row of the left by itself.
    "select t.id, z.v from t join lateral (select v from pair where a = t.id order by b limit 1) z on true": [
        "id"
    ],
    "select t.id, z.n from t join lateral (select count(*) as n from pair where a = t.id) z on true": ["id"],
    "select t.id, z.v from t left join lateral (select v from pair where a = t.id limit 1) z on true": ["id"],
    "select z.v, z.a, z.b from t join lateral (select * from pair where a = t.id) z on true": ["a", "b"],
    "select t.id, z.b from t left join lateral (select a, b from pair where a = t.id) z on true": ["id", "b"],
}

BAGS = [
    "select a from t",
    "select b from pair",
    "select id from t union all select id from p",
    "select t.id, t.a from t join link on link.t = t.id",
    "select a, count(*) as n from t group by grouping sets ((a), ())",
    "select id % 2 as h from t",
    "select z.v from t join lateral (select v from pair where a = t.id limit 1) z on true",
    "select z.n from t join lateral (select count(*) as n from pair where a = t.id) z on true",
    "select z.b, z.n from t join lateral (select b, count(*) as n from pair where a < t.id group by b) z"
    " on true",
    "select z.a, z.b from t left join lateral (select a, b from pair where a = t.id) z on true",
    "select z.next from t join lateral (select t.a + 1 as next) z on true",
]


def columns(con: Any, name: str) -> list[str]:
    table = con.database.catalog.table("main", name)
    return [
        table.columns[part.column].name + (" desc" if part.descending else "")
        for part in table.primary_key.parts
    ]


@pytest.fixture
def con() -> Any:
    connection = quereus_store.connect(":memory:")
    connection.executescript(TABLES)
    return connection


@pytest.mark.parametrize(("body", "key"), KEYS.items())
def test_the_key_of_a_body(con: Any, body: str, key: list[str]) -> None:
    con.execute(f"create materialized view v as {body}")
    assert columns(con, "v") == key


@pytest.mark.parametrize("body", BAGS)
def test_bags_are_refused(con: Any, body: str) -> None:
    with pytest.raises(quereus_store.NotSupportedError, match="no provable unique key"):
        con.execute(f"create materialized view v as {body}")


# --- a key that is proved is one --------------------------------------------------------------------------

COLLATED = """
create table x (name text, tag text collate nocase, n integer, primary key (name, tag));
create table y (word text primary key collate nocase, name text, n integer);
create table z (code text primary key collate rtrim, n integer);
"""
COLLATIONS = ("binary", "nocase", "rtrim")
texts = st.sampled_from(["a", "A", "a ", "b", "B ", "c"])
rows = st.one_of(
    st.tuples(st.just("insert or ignore into x values (?, ?, ?)"), texts, texts, st.integers(0, 2)),
    st.tuples(st.just("insert or ignore into y values (?, ?, ?)"), texts, texts, st.integers(0, 2)),
    st.tuples(st.just("insert or ignore into z values (?, ?)"), texts, st.integers(0, 2)),
)


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Joins, filters, groups and sets over texts that are compared in all ways."""

    def text() -> str:
        column = draw(st.sampled_from(["x.name", "x.tag", "y.word", "y.name", "z.code"]))
        used.add(column[0])
        bare = draw(st.integers(0, 2)) == 0
        return column if bare else f"{column} collate {draw(st.sampled_from(COLLATIONS))}"

    used: set[str] = set()
    shown = [text() for _ in range(draw(st.integers(1, 3)))]
    conditions = [f"{text()} = {text()}" for _ in range(draw(st.integers(0, 2)))]
    conditions += [f"{text()} = '{draw(texts)}'" for _ in range(draw(st.integers(0, 1)))]
    listed = ", ".join(f"{expression} as c{place}" for place, expression in enumerate(shown))
    where = f" where {' and '.join(conditions)}" if conditions else ""
    kind = draw(st.sampled_from(["", "", "distinct ", "group"]))
    if kind == "group":
        keys = ", ".join(dict.fromkeys(draw(st.lists(st.sampled_from(shown), min_size=1))))
        shown_keys = ", ".join(f"{key} as k{place}" for place, key in enumerate(keys.split(", ")))
        return f"select {shown_keys}, count(*) as n from {', '.join(sorted(used))}{where} group by {keys}"
    return f"select {kind}{listed} from {', '.join(sorted(used))}{where}"


@settings(max_examples=100, deadline=None)
@given(body=bodies(), filled=st.lists(rows, max_size=25))
def test_no_two_rows_meet_under_a_key_that_is_proved(body: str, filled: list[Any]) -> None:
    con = quereus_store.connect(":memory:")
    con.executescript(COLLATED)
    try:
        con.execute(f"create materialized view v as {body}")
    except quereus_store.Error:
        con.close()
        return
    for statement, *values in filled:
        con.execute(statement, values)
    if not con.database.events.row_merges:
        assert con.database.check() == []
    con.close()
