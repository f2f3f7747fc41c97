"""NaN has one place in the order of numbers, wherever it is asked for: it equals itself, above all others.

Each query is run over a column ``v`` of numbers and over ``w``, whole numbers in the same order; both must
find the same rows, with and without an index, in memory and in the store, with and without a memory limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quereus_store as q

VALUES = [3.0, math.nan, None, -math.inf, math.inf, math.nan, 0.5, -2.0, 7.0]
PLACES = [3, 6, None, 0, 5, 6, 2, 1, 4]
BINDINGS = [(math.nan, 6), (3.0, 3), (math.inf, 5)]

QUERIES = [
    *(
        f"select id from t where {{v}} {operator} ? order by id"
        for operator in ("=", "<>", "<", "<=", ">", ">=")
    ),
    *(
        f"select id from t where not {{v}} {operator} ? order by id"
        for operator in ("=", "<", "<=", ">", ">=")
    ),
    *(f"select id from t where ? {operator} {{v}} order by id" for operator in ("=", "<", "<=", ">", ">=")),
    "select id from t where {v} > {c} order by id",
    "select id from t where {v} >= {c} order by id",
    "select id from t where {v} < {c} order by id",
    "select id from t where {c} < {v} order by id",
    "select id from t where not {v} <= {c} order by id",
    "select id from t where {v} between {c} and ? order by id",
    "select id from t where {v} between ? and {c} order by id",
    "select id from t where {v} in (?, {c}) order by id",
    "select id from t where {v} not in (?, {c}) order by id",
    "select id from t where {v} in (?, ?) order by id",
    "select id from t where {v} is ? order by id",
    "select id from t where {v} is not ? order by id",
    "select id from t where ({v}, id) > (?, 1) order by id",
    "select id, case {v} when ? then 1 else 0 end, nullif({v}, ?) is null from t order by id",
    "select id, {v} = ?, {v} < ?, {v} > ?, {v} = {v}, {v} < {v}, {v} <> {v}, {v} >= {v} from t order by id",
    *(
        f"select a.id, b.id from t a join t b on a.{{v}} {operator} b.{{v}} order by 1, 2"
        for operator in ("=", "<>", "<", "<=", ">", ">=")
    ),
    "select a.id from t a where exists (select 1 from t b where b.{v} = a.{v} and b.id <> a.id) order by 1",
    "select id from t a where not exists (select 1 from t b where b.{v} = a.{v} and b.id <> a.id) order by 1",
    "select id from t where {v} in (select {v} from t where id in (1, 2)) order by id",
    "select id from t where {v} > all (select {v} from t where id in (1, 9)) order by id",
    "select id from t where {v} >= any (select {v} from t where id = 2) order by id",
    "select id from t order by {v}, id",
    "select id from t order by {v} desc, id",
    "select id from t order by {v} nulls last, id limit 7",
    "select id from t where {v} = (select max({v}) from t) order by id",
    "select id from t where greatest({v}, {c}) = {v} order by id",
    "select count(*), min(id) from t group by {v} order by {v}",
    "select count(*) from (select distinct {v} from t)",
    "select count(distinct {v}) from t",
    "select count(*) from (select {v} from t union select {v} from t)",
    "select count(*) from (select {v} from t except select ?)",
    "select id, rank() over (order by {v}), count(*) over (partition by {v}) from t order by id",
]

Databases = dict[tuple[str, bool, str, bool], q.Connection]


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    made: Databases = {}
    for kind in ("real", "any"):
        for stored in (False, True):
            for index in ("", "create index by_v on t (v)", "create index by_v on t (v desc)"):
                for limited in (False, True):
                    path = str(tmp_path_factory.mktemp("nan") / "t.qdb") if stored else ":memory:"
                    made[kind, stored, index, limited] = con = q.connect(path)
                    con.execute(f"create table t (id integer primary key, v {kind} null, w integer null)")
                    con.execute(index or "select 1")
                    rows = [(at, v, w) for at, (v, w) in enumerate(zip(VALUES, PLACES, strict=True), 1)]
                    con.executemany("insert into t values (?, ?, ?)", rows)
                    con.execute(f"pragma memory_limit = {100_000 if limited else 0}")
    yield made
    for con in made.values():
        con.close()


@pytest.mark.parametrize("query", QUERIES)
def test_every_comparison_agrees(databases: Databases, query: str) -> None:
    for v, w in BINDINGS:
        slots = query.count("?")
        for way, con in databases.items():
            expected = con.execute(query.format(v="w", c="3"), (w,) * slots).fetchall()
            assert con.execute(query.format(v="v", c="3.0"), (v,) * slots).fetchall() == expected, (way, v)


@pytest.mark.parametrize("module", ["memory", "store"])
@pytest.mark.parametrize("kind", ["real", "any"])
def test_nan_is_one_key(tmp_path: Path, module: str, kind: str) -> None:
    con = q.connect(str(tmp_path / "t.qdb"))
    con.execute(f"create table parent (k {kind} primary key, n integer) using {module}")
    con.execute(f"create table unique_ (id integer primary key, k {kind} null unique) using {module}")
    con.execute(f"create table child (id integer primary key, k {kind} references parent (k)) using {module}")
    con.execute("insert into parent values (?, 1), (1e400, 2)", (math.nan,))
    con.execute("insert into unique_ values (1, ?)", (math.nan,))
    con.execute("insert into child values (1, ?)", (math.nan,))
    for statement in (
        "insert into parent values (?, 3)",
        "insert into unique_ values (2, ?)",
        "delete from parent where k = ?",
    ):
        with pytest.raises(q.IntegrityError):
            con.execute(statement, (math.nan,))
    con.execute("insert into parent values (?, 5) on conflict (k) do update set n = excluded.n", (math.nan,))
    con.executemany("update parent set n = n + 1 where k = ?", [(math.nan,), (math.inf,)])
    assert con.execute("select n from parent order by k").fetchall() == [(3,), (6,)]
    assert con.execute("select n from parent where k > 1e400").fetchall() == [(6,)]
    con.execute("analyze")
    assert con.execute("select n from parent where k >= ?", (math.nan,)).fetchall() == [(6,)]


@pytest.mark.parametrize("kind", ["real", "any"])
def test_nan_is_not_true(kind: str) -> None:
    con = q.connect(":memory:")
    con.execute(f"create table t (id integer primary key, v {kind} null)")
    con.execute("insert into t values (1, ?), (2, 0.0), (3, null), (4, 0.5)", (math.nan,))
    assert con.execute("select id from t where v").fetchall() == [(4,)]
    assert con.execute("select id from t where not v").fetchall() == [(1,), (2,)]
    assert con.execute("select id from t where -v").fetchall() == [(4,)]
    found: list[Any] = con.execute(
        "select iif(v, 1, 0), v and true, v + 1, v - v from t where id = 1"
    ).fetchall()
    assert found == [(0, False, None, None)]
