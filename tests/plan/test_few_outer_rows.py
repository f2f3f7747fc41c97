"""Subqueries that few rows ask for: looked up, or run for these, instead of joined with a whole table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import quereus_store
from quereus_store.execute.codegen.lookups import ranges_of_each
from tests.counting import Counter


@pytest.fixture
def counter() -> Counter:
    return Counter()


@pytest.fixture
def connection(counter: Counter) -> Iterator[quereus_store.Connection]:
    with quereus_store.connect(":memory:") as opened:
        opened.create_function("counted", 1, counter, deterministic=True)
        opened.execute("create table ship (id integer primary key, class text, port integer null)")
        opened.execute(
            "create table crew (ship integer, seat integer, pay integer null, primary key (ship, seat))"
        )
        opened.execute("create table visit (id integer primary key, port integer null, fee integer)")
        opened.execute("create index visit_port on visit (port)")
        ships = [(i, "tug" if i % 100 == 0 else "barge", None if i % 7 == 0 else i) for i in range(2000)]
        opened.executemany("insert into ship values (?, ?, ?)", ships)
        crew = [(i, j, None if j == 2 else i + j) for i in range(2000) if i % 3 for j in range(3)]
        opened.executemany("insert into crew values (?, ?, ?)", crew)
        visits = [(i, None if i % 5 == 0 else i % 1900, i) for i in range(6000)]
        opened.executemany("insert into visit values (?, ?, ?)", visits)
        yield opened


FEW = "s.id between 10 and 30 and s.class = 'barge'"

LOOKED_UP = [
    ("exists (select 1 from crew c where c.ship = s.id)", "INDEX JOIN semi"),
    ("exists (select 1 from crew c where c.ship = s.id and c.pay > s.id)", "INDEX JOIN semi"),
    ("not exists (select 1 from crew c where c.ship = s.id)", "INDEX JOIN anti"),
    ("not exists (select 1 from crew c where c.ship = s.id and c.pay <> s.id)", "INDEX JOIN anti"),
    ("not exists (select 1 from visit v where v.port = s.id and v.fee % 2 = 0)", "INDEX JOIN anti"),
    ("s.id in (select v.port from visit v where v.fee > 10)", "INDEX JOIN semi"),
    # What another key could serve is no reason to read all that it finds.
    ("s.id in (select v.port from visit v where v.id > 10)", "INDEX JOIN semi"),
    ("exists (select 1 from visit v where v.port = s.id and v.id between 5 and 5000)", "INDEX JOIN semi"),
    ("not exists (select 1 from crew c where c.ship = s.id and c.ship > 9 and c.pay > 0)", "INDEX JOIN anti"),
]


def _plan(connection: quereus_store.Connection, sql: str) -> str:
    return str(connection.explain(sql))


@pytest.mark.parametrize(("condition", "form"), LOOKED_UP)
def test_matches_of_few_rows_are_looked_up(
    connection: quereus_store.Connection, condition: str, form: str
) -> None:
    few = f"select s.id from ship s where {FEW} and {condition} order by s.id"
    assert form in _plan(connection, few)
    # The same rows as by running the subquery for each.
    by_row = f"select s.id from ship s where {FEW} and case when {condition} then 1 end = 1 order by s.id"
    assert form not in _plan(connection, by_row)
    assert connection.execute(few).fetchall() == connection.execute(by_row).fetchall()


@pytest.mark.parametrize(("condition", "form"), LOOKED_UP)
def test_matches_of_many_rows_are_not(
    connection: quereus_store.Connection, condition: str, form: str
) -> None:
    many = f"select s.id from ship s where {condition} order by s.id"
    assert form not in _plan(connection, many)
    by_row = f"select s.id from ship s where case when {condition} then 1 end = 1 order by s.id"
    assert connection.execute(many).fetchall() == connection.execute(by_row).fetchall()


def test_an_aggregate_runs_for_the_rows_that_other_conditions_leave(
    connection: quereus_store.Connection, counter: Counter
) -> None:
    sql = (
        "select s.id from ship s, crew c"
        " where (select sum(counted(d.pay)) from crew d where d.ship = s.id) > c.pay"
        " and c.ship = s.id and s.id in (11, 13, 21)"
    )
    assert sorted(connection.execute(sql).fetchall()) == [(11,), (11,), (13,), (13,)]
    # Of two ships with a crew, each runs the subquery once over its three rows.
    assert counter.calls <= 2 * 3


def test_a_membership_is_tested_where_joins_have_not_made_more_rows(
    connection: quereus_store.Connection,
) -> None:
    sql = (
        "select s.id, c.seat from ship s, crew c where c.ship = s.id"
        " and s.id in (select v.port from visit v group by v.port having sum(v.fee) > 13000)"
    )
    steps = [(depth, step.operator, step.detail) for step, depth in connection.explain(sql).walk()]
    (inner,) = [depth for depth, operator, detail in steps if "JOIN" in operator and "inner" in detail]
    (semi,) = [depth for depth, operator, detail in steps if "JOIN" in operator and "semi" in detail]
    assert semi > inner
    joined = (
        "select s.id, c.seat from ship s join crew c on c.ship = s.id join"
        " (select v.port from visit v group by v.port having sum(v.fee) > 13000) w on w.port = s.id"
    )
    assert sorted(connection.execute(sql).fetchall()) == sorted(connection.execute(joined).fetchall())


def test_a_membership_stays_above_joins_that_leave_fewer_rows(connection: quereus_store.Connection) -> None:
    sql = (
        "select c.seat from crew c, ship s where c.ship = s.id and s.id = 11"
        " and exists (select 1 from crew d where d.ship = c.ship and d.seat <> c.seat)"
    )
    assert connection.execute(sql).fetchall() == [(0,), (1,), (2,)]
    operators = [step.operator for step, _ in connection.explain(sql).walk()]
    assert "INDEX JOIN" in operators


@pytest.mark.parametrize("backend", ["memory", "lmdb"])
def test_a_key_that_begins_with_few_values_is_not_looked_up(backend: str, tmp_path: Path) -> None:
    path = ":memory:" if backend == "memory" else str(tmp_path / "k.qdb")
    with quereus_store.connect(path) as con:
        con.execute("create table note (tenant integer, id integer, word text, primary key (tenant, id))")
        con.execute("create table line (page integer, id integer, word text, primary key (page, id))")
        rows = [(i, f"w{i}") for i in range(6000)]
        con.executemany("insert into note values (?, ?, ?)", [(i % 3, i, word) for i, word in rows])
        con.executemany("insert into line values (?, ?, ?)", [(i // 3, i, word) for i, word in rows])
        con.execute("create table asked (id integer primary key, number integer)")
        con.executemany("insert into asked values (?, ?)", [(i, i % 4) for i in range(50)])
        sql = "select count(*) from asked a where exists (select 1 from {} where {} = a.number)"
        assert "HASH JOIN semi" in _plan(con, sql.format("note", "tenant"))
        assert "INDEX JOIN semi" in _plan(con, sql.format("line", "page"))
        assert con.execute(sql.format("note", "tenant")).fetchone() == (38,)
        assert con.execute(sql.format("line", "page")).fetchone() == (50,)


def test_equal_keys_of_a_batch_are_looked_up_once() -> None:
    class Ranges:
        def __init__(self) -> None:
            self.asked: list[list[tuple[object, ...]]] = []

        def ranges(self, transaction: object, path: object, keys: list[tuple[object, ...]]) -> list[object]:
            self.asked.append(keys)
            return [[("row", *key)] for key in keys]

    table = Ranges()
    assert ranges_of_each(table, None, None, [(1,), (2,), (1,)]) == [[("row", 1)], [("row", 2)], [("row", 1)]]
    assert table.asked == [[(1,), (2,)]]
    # What has no hash is looked up as it comes.
    assert ranges_of_each(table, None, None, [([1],), ([1],)]) == [[("row", [1])]] * 2


LOOKED_UP_WITH_NULLS = (
    ("select count(*), count(v.id) from ship s left join visit v on v.id = s.port", (300, 256)),
    ("select count(*) from ship s where s.port in (select v.id from visit v)", (256,)),
    ("select count(*) from ship s where not exists (select 1 from visit v where v.id = s.port)", (44,)),
    ("select count(*) from ship s left join crew c on c.ship = s.port and c.seat = s.port % 3", (300,)),
)


@pytest.mark.parametrize("backend", ["memory", "lmdb"])
def test_a_batch_of_keys_may_hold_many_nulls(backend: str, tmp_path: Path) -> None:
    path = ":memory:" if backend == "memory" else str(tmp_path / "k.qdb")
    with quereus_store.connect(path) as con:
        con.execute("create table ship (id integer primary key, port integer null)")
        con.execute("create table visit (id integer primary key)")
        con.execute("create table crew (ship integer, seat integer, primary key (ship desc, seat))")
        con.executemany("insert into ship values (?, ?)", [(i, i * 7 % 2001 or None) for i in range(300)])
        con.executemany("insert into visit values (?)", [(i,) for i in range(9000)])
        con.executemany("insert into crew values (?, ?)", [(i, i % 3) for i in range(9000)])
        con.execute("update ship set port = null where id % 7 = 1")
        for sql, expected in LOOKED_UP_WITH_NULLS:
            assert "INDEX JOIN" in _plan(con, sql)
            assert con.execute(sql).fetchone() == expected


NULLABLE_ON_BOTH_SIDES = (
    ("select s.id, v.id from ship s join visit v on v.port = s.port", "inner"),
    ("select s.id, v.id from ship s left join visit v on v.port = s.port and v.fee = s.fee", "left"),
    ("select s.id, v.id from ship s left join visit v on v.port = s.port and v.id % 2 < 1", "left"),
    ("select s.id, 0 from ship s where exists (select 1 from visit v where v.port = s.port)", "semi"),
    ("select s.id, 0 from ship s where not exists (select 1 from visit v where v.port = s.port)", "anti"),
    ("select s.id, d.size from ship s left join dock d on d.place = s.port", "left"),
    ("select s.id, 0 from ship s where not exists (select 1 from dock d where d.place = s.port)", "anti"),
)


@pytest.mark.parametrize("backend", ["memory", "lmdb"])
def test_a_null_on_both_sides_is_no_match_and_no_hindrance(backend: str, tmp_path: Path) -> None:
    path = ":memory:" if backend == "memory" else str(tmp_path / "k.qdb")
    with quereus_store.connect(path) as con:
        con.execute("create table ship (id integer primary key, port integer null, fee integer null)")
        con.execute("create table visit (id integer primary key, port integer null, fee integer null)")
        con.execute("create index visit_port on visit (port, fee)")
        con.execute("create table dock (place integer null primary key, size integer)")
        ships = [(i, None if i % 4 == 0 else i, None if i % 3 == 0 else i % 5) for i in range(20)]
        con.executemany("insert into ship values (?, ?, ?)", ships)
        visits = [(i, None if i % 2 else i // 200, None if i % 3 == 0 else i % 5) for i in range(4000)]
        con.executemany("insert into visit values (?, ?, ?)", visits)
        con.executemany("insert into dock values (?, ?)", [(i or None, i) for i in range(3000)])
        for sql, form in NULLABLE_ON_BOTH_SIDES:
            hashed = sql.replace("= s.port", "= s.port + 0").replace(".port =", ".port + 0 =")
            hashed = hashed.replace("d.place =", "d.place + 0 =")
            assert f"INDEX JOIN {form}" in _plan(con, sql)
            assert "INDEX JOIN" not in _plan(con, hashed)
            found = sorted(con.execute(sql).fetchall(), key=repr)
            assert found == sorted(con.execute(hashed).fetchall(), key=repr)
            assert found
            con.explain(sql, analyze=True)
