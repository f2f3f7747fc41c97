"""Queries that are answered from maintained tables: the same rows as without, whatever was changed before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quereus_store
from quereus_store import Connection

TABLES = (
    "create table grp (id integer primary key, name text, region text)",
    "create table item (id integer primary key, grp integer, code text collate nocase, price real, "
    "pieces integer null, size numeric null)",
)
VIEWS = (
    "create materialized view per_pair as select grp, pieces % 3 as kind, count(*) as items, "
    "count(pieces) as known, sum(pieces) as pieces, avg(pieces) as mean, sum(price) as total, "
    "max(price) as dearest, min(pieces) as least from item group by grp, pieces % 3",
    "create materialized view dear as select grp, count(*) as items, "
    "sum(pieces) filter (where id > 100) as p "
    "from item where price > 50.0 group by grp",
    "create materialized view per_code as select code, count(*) as items from item group by code",
    "create materialized view per_size as select size, count(*) as items from item group by size",
    "create materialized view named as select i.id, i.grp, g.name, upper(g.region) as region, i.price "
    "from item i join grp g on g.id = i.grp",
    "create materialized view few as select id, code, price from item where price > 90.0",
    "create materialized view per_region as select g.region, count(*) as items, sum(i.pieces) as pieces "
    "from grp g join item i on i.grp = g.id group by g.region",
    "create materialized view names as select distinct grp, id % 2 as odd from item",
    "create materialized view all_items as select i.id, i.grp, g.name, i.price, coalesce(g.name, '?') as s"
    " from item i left join grp g on g.id = i.grp",
    "create materialized view all_groups as select g.id, g.name, count(i.id) as n, sum(i.pieces) as pieces,"
    " count(*) as lines from grp g left join item i on i.grp = g.id and i.price > 2.0 group by g.id, g.name",
    "create materialized view both as select i.id as item, g.id as grp, g.name, i.price, i.grp as wanted,"
    " case when i.pieces < 3 then null else 'many' end as many"
    " from item i full join grp g on g.id = i.grp and g.region = 'n'",
    "create materialized view everything as select count(*) as items, sum(pieces) as pieces from item",
)


def fill(connection: Connection, rows: int = 700) -> None:
    for statement in TABLES:
        connection.execute(statement)
    groups = [(n, f"group {n}", "ns"[n % 2]) for n in range(8)]
    connection.executemany("insert into grp values (?, ?, ?)", groups)
    items = [
        (n, n % 9, "aAbB"[n % 4], (n % 400) / 4, None if n % 5 == 0 else n % 17, (n % 3, float(n % 3))[n % 2])
        for n in range(rows)
    ]
    connection.executemany("insert into item values (?, ?, ?, ?, ?, ?)", items)
    for statement in VIEWS:
        connection.execute(statement)


@pytest.fixture(scope="module")
def con() -> Iterator[Connection]:
    with quereus_store.connect(":memory:") as connection:
        fill(connection)
        yield connection


def plan_of(connection: Connection, sql: str) -> str:
    return "\n".join(row[0] for row in connection.execute(f"explain query plan {sql}"))


def rows_of(connection: Connection, sql: str, from_views: bool) -> list[str]:
    connection.execute(f"pragma answer_from_views = {str(from_views).lower()}")
    try:
        return sorted(map(repr, connection.execute(sql).fetchall()))
    finally:
        connection.execute("pragma answer_from_views = true")


@pytest.mark.parametrize(
    ("sql", "view"),
    [
        ("select grp, pieces % 3, avg(pieces), max(price) from item group by grp, pieces % 3", "per_pair"),
        ("select grp, count(*), count(pieces), sum(pieces), avg(pieces) from item group by grp", "per_pair"),
        (
            "select pieces % 3, min(pieces) from item where grp between 2 and 5 group by pieces % 3",
            "per_pair",
        ),
        ("select grp + 1, max(price) from item group by grp + 1 having count(*) > 3", "per_pair"),
        ("select count(id) from item", "everything"),
        ("select grp, count(*) from item where price > 50.0 group by grp", "dear"),
        ("select count(*) from item where 50.0 < price and grp = 3", "dear"),
        ("select name, price from grp g, item i where i.grp = g.id and i.price > 10.0", "named"),
        ("select g.name, sum(i.price) from item i join grp g on i.grp = g.id group by g.name", "named"),
        ("select region, count(*) from item i join grp g on g.id = i.grp group by region", "per_region"),
        ("select id from item where price > 90.0 and code = 'B'", "few"),
        ("select * from (select grp, count(*) as n from item group by grp) q where n > 3", "per_pair"),
        ("select distinct grp, pieces % 3 from item", "per_pair"),
        ("select distinct grp from item where pieces % 3 = 1", "per_pair"),
        ("select distinct id % 2, grp from item where grp > 4", "names"),
        ("select id % 2 from item group by id % 2", "names"),
        ("select count(*) from (select distinct id % 2 as odd from item) q", "names"),
        ("select (select count(*) from item i where i.grp = g.id) from grp g", "per_pair"),
        # parts of a query: below windows, sides of outer joins, legs of set operations
        (
            "select grp, sum(pieces), rank() over (order by sum(pieces)) from item group by grp",
            "per_pair",
        ),
        (
            "select grp, r from (select grp, row_number() over (order by count(*) desc, grp) as r"
            " from item group by grp) q where r <= 3",
            "per_pair",
        ),
        ("select name, rank() over (order by i.id) from item i join grp g on g.id = i.grp", "named"),
        (
            "select g.name, q.n from grp g left join (select grp, count(*) as n from item group by grp) q"
            " on q.grp = g.id",
            "per_pair",
        ),
        (
            "select x.id, g.name from grp x left join (item i join grp g on g.id = i.grp) on i.id = x.id",
            "named",
        ),
        ("select x.name, i.price from grp x left join item i on i.code = x.region and i.price > 90.0", "few"),
        (
            "select f.id, p.n from (select id, code from item where price > 90.0) f full join"
            " (select grp, count(*) as n from item group by grp) p on p.grp = f.id",
            "few",
        ),
        ("select grp from item group by grp union select id from grp", "names"),
        ("select grp, count(*) from item group by grp except select id, id from grp", "per_pair"),
        (
            "select id, price from item where price > 90.0 union all"
            " select grp, count(*) from item group by grp",
            "few",
        ),
        (
            "select id, price from item where price > 90.0 union all"
            " select grp, count(*) from item group by grp",
            "per_pair",
        ),
        ("select g.name from item i join grp g on g.id = i.grp intersect select name from grp", "named"),
        ("select id from item where price > 90.0 order by code, id limit 4", "few"),
        # outer joins as a whole, under further conditions on the side that keeps its rows
        ("select g.name, i.price from item i left join grp g on g.id = i.grp", "all_items"),
        ("select coalesce(g.name, '?') from item i left join grp g on g.id = i.grp", "all_items"),
        (
            "select g.name, i.price from grp g right join item i on i.grp = g.id where i.price > 30.0",
            "all_items",
        ),
        (
            "select i.id from item i left join grp g on i.grp = g.id where g.name is null and i.price > 5.0",
            "all_items",
        ),
        (
            "select coalesce(g.name, 'none'), sum(i.id) from item i left join grp g on g.id = i.grp"
            " group by coalesce(g.name, 'none')",
            "all_items",
        ),
        (
            "select g.id, g.name, count(i.id) from grp g left join item i on i.grp = g.id and i.price > 2.0"
            " where g.id > 2 group by g.id, g.name",
            "all_groups",
        ),
        (
            "select g.name, count(*), sum(i.pieces) from grp g left join item i"
            " on i.grp = g.id and i.price > 2.0 group by g.name",
            "all_groups",
        ),
        ("select i.id, g.id, g.name from item i full join grp g on g.id = i.grp and g.region = 'n'", "both"),
        (
            "select i.id, g.name from item i full join grp g on g.id = i.grp and g.region = 'n'"
            " where i.price is null or i.price < 50.0",
            "both",
        ),
    ],
)
def test_a_query_that_follows_reads_the_view(con: Connection, sql: str, view: str) -> None:
    assert f"main.{view}" in plan_of(con, sql)
    assert rows_of(con, sql, True) == rows_of(con, sql, False)


@pytest.mark.parametrize(
    "sql",
    [
        "select grp, sum(price) from item group by grp",  # rounded sums do not add up
        "select code, count(*) from item group by code",  # which spelling stands for 'a' and 'A'
        "select size, count(*) from item group by size",  # 1 and 1.0 are equal
        "select grp, count(*) from item where price > 49.0 group by grp",
        "select grp, count(distinct pieces) from item group by grp",
        "select distinct code from item",  # which spelling
        "select distinct size from item",
        "select id % 2, count(*) from item group by id % 2",  # DISTINCT has not counted
        "select id, price from item where price > 89.0",
        "select id, pieces from item where price > 90.0",
        "select price from item where id = 17",  # by key: nothing could be quicker
        "select count(*) from committed.item",
        "select code, group_concat(id) from item where price > 90.0 group by code",  # in which order
        "select x.name, i.price from grp x left join item i on i.id = x.id and i.price > 90.0 where x.id = 3",
        "select g.region, i.price from item i left join grp g on g.id = i.grp",  # the region is not stored
        "select i.id, g.name from item i left join grp g on g.id = i.grp and g.id > 3",  # other partners
        "select i.id, g.name from item i left join (select * from grp where id > 3) g on g.id = i.grp",
        "select i.id, g.name from grp g left join item i on g.id = i.grp",  # the other side keeps its rows
        # NULL where there is no item; the view has 'many' there
        "select g.name, q.many from (select grp, case when pieces < 3 then null else 'many' end as many"
        " from item) q full join grp g on g.id = q.grp and g.region = 'n'",
        "select count(g.id) from grp g left join item i on i.grp = g.id group by g.region",
    ],
)
def test_what_does_not_follow_reads_the_source(con: Connection, sql: str) -> None:
    assert not any(f"main.{statement.split()[3]}" in plan_of(con, sql) for statement in VIEWS)


def test_a_stale_view_is_not_used() -> None:
    with quereus_store.connect(":memory:") as con:
        fill(con)
        con.execute("alter table item drop column size")
        con.execute("alter table item alter column pieces set data type text")
        sql = "select grp, count(*) from item group by grp"
        assert "main.item" in plan_of(con, sql)
        con.execute("insert into item values (9000, 3, 'x', 1.0, '4')")
        assert rows_of(con, sql, True) == rows_of(con, sql, False)


def test_what_a_query_writes_itself_is_seen(con: Connection) -> None:
    con.execute("begin")
    sql = (
        "with new as (insert into item values (9000, 3, 'x', 1.0, 4, 1) returning id) "
        "select (select count(*) from item), (select count(*) from new)"
    )
    assert con.execute(sql).fetchall() == [(701, 1)]
    con.execute("rollback")


def test_a_view_in_another_module_is_not_used(tmp_path: Path) -> None:
    with quereus_store.connect(str(tmp_path / "a.qdb")) as con:
        con.execute("create table item (id integer primary key, grp integer)")
        con.executemany("insert into item values (?, ?)", [(n, n % 9) for n in range(700)])
        con.execute(
            "create materialized view per_group using memory as "
            "select grp, count(*) as n from item group by grp"
        )
        assert "main.item" in plan_of(con, "select grp, count(*) from item group by grp")


# --- any query, any changes -------------------------------------------------------------------------------

KEYS = ("grp", "id % 2", "pieces % 3", "code", "size", "grp + 1", "price > 50.0", "pieces")
CALLS = (
    "count(*)",
    "count(pieces)",
    "count(grp)",
    "sum(pieces)",
    "sum(price)",
    "avg(pieces)",
    "avg(price)",
    "min(pieces)",
    "max(price)",
    "max(code)",
    "sum(pieces) filter (where id > 100)",
    "count(distinct pieces)",
    "total(pieces)",
)
CONDITIONS = (
    "price > 50.0",
    "grp > 3",
    "pieces % 3 = 1",
    "code = 'a'",
    "id < 300",
    "price > 90.0",
    "grp in (1, 2)",
)
JOINED = ("i.id", "g.name", "upper(g.region)", "i.price", "g.region", "i.grp")
OUTER = (
    "item i left join grp g on g.id = i.grp",
    "grp g right join item i on i.grp = g.id",
    "grp g left join item i on i.grp = g.id and i.price > 2.0",
    "item i full join grp g on g.id = i.grp and g.region = 'n'",
)
ABOVE = ("g.name is null", "g.name is not null", "i.id is null", "coalesce(g.id, 9) > 4", "g.id > 2")


@st.composite
def queries(draw: st.DrawFn) -> str:
    conditions = draw(st.lists(st.sampled_from(CONDITIONS), max_size=2, unique=True))
    if draw(st.integers(0, 3)) == 0:
        columns = draw(st.lists(st.sampled_from(JOINED), min_size=1, max_size=3, unique=True))
        more = [f"i.{condition}" for condition in conditions]
        if draw(st.booleans()):
            join = draw(st.sampled_from(OUTER))
            more += draw(st.lists(st.sampled_from(ABOVE), max_size=1))
            return f"select {', '.join(columns)} from {join} where {' and '.join(['1 = 1', *more])}"
        return f"select {', '.join(columns)} from item i, grp g where {' and '.join(['g.id = i.grp', *more])}"
    where = f" where {' and '.join(conditions)}" if conditions else ""
    if draw(st.integers(0, 4)) == 0:
        return f"select id, code, price from item{where}"
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=2, unique=True))
    if keys and draw(st.integers(0, 3)) == 0:
        return f"select distinct {', '.join(keys)} from item{where}"
    calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3, unique=True))
    group = f" group by {', '.join(keys)}" if keys else ""
    return f"select {', '.join([*keys, *calls])} from item{where}{group}"


AROUND = (
    "{0}",
    "{0}",
    "select q.*, rank() over (order by 1) from ({0}) q",
    "select g.name, q.* from grp g left join ({0}) q on g.id < 2",
    "select q.*, g.region from ({0}) q full join grp g on g.id = 3",
    "select * from ({0}) q union all select * from ({0}) r",
    "select * from ({0}) q except select * from ({0}) r where 1 = 2",
    "select count(*) from ({0}) q",
)
wholes = st.builds(str.format, st.sampled_from(AROUND), queries())
IDS = st.integers(0, 720)
CHANGES = st.one_of(
    st.builds("delete from item where id = {}".format, IDS),
    st.builds("delete from item where grp = {}".format, st.integers(0, 9)),
    st.builds("update item set pieces = {} where id % 50 = {}".format, st.integers(0, 9), st.integers(0, 49)),
    st.builds("update item set price = price + {} where id = {}".format, st.sampled_from([0.5, 60.25]), IDS),
    st.builds("update item set grp = {} where id = {}".format, st.integers(0, 9), IDS),
    st.builds("update grp set region = 'w' where id = {}".format, st.integers(0, 9)),
    st.builds(
        "insert or replace into item values ({}, {}, 'c', 91.5, {}, 2)".format,
        IDS,
        st.integers(0, 9),
        st.sampled_from(["null", "4", "16"]),
    ),
)
STEPS = st.lists(st.one_of(CHANGES, st.sampled_from(["savepoint s", "rollback to s"]), wholes), max_size=8)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, last=wholes)
def test_every_query_gives_the_same(con: Connection, steps: list[str], last: str) -> None:
    con.execute("begin")
    con.execute("savepoint s")
    try:
        for step in [*steps, last]:
            if not step.startswith("select"):
                con.execute(step)
                continue
            assert rows_of(con, step, True) == rows_of(con, step, False), plan_of(con, step)
    finally:
        con.execute("rollback")


def test_statements_are_planned_anew_when_the_option_changes(con: Connection) -> None:
    sql = "select count(*) from item"
    figures: dict[bool, Any] = {}
    for answer in (True, False):
        con.execute(f"pragma answer_from_views = {str(answer).lower()}")
        figures[answer] = plan_of(con, sql)
    con.execute("pragma answer_from_views = true")
    assert "main.everything" in figures[True]
    assert "main.item" in figures[False]
