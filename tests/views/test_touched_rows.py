"""A change costs what it touches: how many stored rows are read for one, whatever the sources hold.

The sources hold two thousand rows in a hundred groups of twenty.  For each class of maintenance program the
strategy is named and the rows that are read for one statement are counted, at the tables themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import quereus_store
from quereus_store.modules.memory.table import MemoryTable

ROWS, GROUPS = 2000, 100
IN_GROUP = ROWS // GROUPS

TABLES = """
create table t (id integer primary key, g text not null, p integer not null, x integer not null, y real null);
create table p (id integer primary key, name text not null, size integer not null);
create index t_g on t (g);
create index t_p on t (p);
create index t_x on t (x);
create index p_name on p (name);
create index p_size on p (size);
"""

INSERT = "insert into t values (9999, 'g7', 7, 7, 0.5)"
DELETE = "delete from t where id = 107"
UPDATE = "update t set x = x + 1, y = 2.0 where id = 107"
MOVE = "update t set g = 'g8', p = 8 where id = 107"
OF_P = "update p set name = 'other', size = 9 where id = 7"

# What a body is, which strategy serves a change of which source, and how many groups a change reads, about.
CASES: list[tuple[str, str, str, list[str], float]] = [
    ("select id, x + 1 as n from t where x > 2", "t", "delta", [INSERT, DELETE, UPDATE, MOVE], 0),
    ("select t.id, p.name from t join p on p.id = t.p", "t", "delta", [INSERT, DELETE, UPDATE, MOVE], 0),
    ("select t.id, p.name from t join p on p.id = t.p", "p", "delta", [OF_P], 2),
    ("select t.id, p.name from t left join p on p.id = t.p", "t", "delta", [INSERT, DELETE, UPDATE, MOVE], 0),
    ("select t.id, p.name from t left join p on p.id = t.p", "p", "touched keys", [OF_P], 5),
    (
        "select p.id, count(t.id) as c, sum(t.x) as s from p left join t on t.p = p.id group by p.id",
        "t",
        "touched keys",
        [INSERT, DELETE, UPDATE, MOVE],
        5,
    ),
    (
        "select g, count(*) as n, sum(x) as s, avg(x) as m from t group by g",
        "t",
        "merge",
        [INSERT, DELETE, UPDATE, MOVE],
        0,
    ),
    (
        "select g, count(*) as n, min(id) as lo, max(id) as hi from t group by g",
        "t",
        "merge",
        [INSERT, DELETE],
        0,
    ),
    ("select g, min(id) as lo from t group by g", "t", "merge", ["delete from t where id = 7"], 1),
    (
        "select g, avg(y) as m, sum(y) as s from t group by g",
        "t",
        "states",
        [INSERT, DELETE, UPDATE, MOVE],
        0,
    ),
    (
        "select g, count(*) as n from t group by g having count(*) > 2",
        "t",
        "states",
        [INSERT, DELETE, MOVE],
        0,
    ),
    ("select g, product(x) as l from t group by g", "t", "states", [INSERT, DELETE, UPDATE, MOVE], 0),
    (
        "select g, length(x) as l, count(*) as c from t group by g",
        "t",
        "merge",
        [INSERT, DELETE, UPDATE, MOVE],
        0,
    ),
    (
        "select g, count(distinct x) as n from t group by g",
        "t",
        "touched keys",
        [INSERT, DELETE, UPDATE, MOVE],
        3,
    ),
    (
        "select g, group_concat(id) as l from t group by g",
        "t",
        "touched keys",
        [INSERT, DELETE, UPDATE, MOVE],
        3,
    ),
    ("select distinct g, p from t", "t", "touched keys", [INSERT, DELETE, UPDATE, MOVE], 5),
    ("select g from t union select name from p", "t", "touched keys", [INSERT, DELETE, UPDATE, MOVE], 5),
    ("select g from t union select name from p", "p", "touched keys", [OF_P], 5),
    ("select x from t intersect select size from p", "t", "touched keys", [INSERT, DELETE, UPDATE], 5),
    ("select x from t except select size from p", "p", "touched keys", [OF_P], 5),
    (
        "select k, count(*) as n from (select g as k from t union all select name from p) u group by k",
        "t",
        "merge",
        [INSERT, DELETE, UPDATE, MOVE],
        0,
    ),
    (
        "select id, g, rank() over (partition by g order by x, id) as r from t",
        "t",
        "touched keys",
        [INSERT, DELETE, UPDATE, MOVE],
        5,
    ),
    (
        "select id, g, r from (select id, g, row_number() over (partition by g order by x desc, id) as r"
        " from t) q where r <= 2",
        "t",
        "touched keys",
        [INSERT, DELETE, UPDATE, MOVE],
        5,
    ),
]


@pytest.fixture
def con() -> Iterator[Any]:
    connection = quereus_store.connect(":memory:")
    add = {"deterministic": True, "returns": "integer"}
    connection.database.create_aggregate(
        "product", 1, lambda s, v: s * v, int, 1, inverse=lambda s, v: s // v, merge=lambda a, b: a * b, **add
    )
    connection.database.create_aggregate(
        *("length", 1, lambda s, v: s + len(str(v)), int, 0),
        inverse=lambda s, v: s - len(str(v)),
        merge=lambda a, b: a + b,
        decode=int,
        decode_exact=True,
        **add,
    )
    connection.executescript(TABLES)
    connection.executemany(
        "insert into t values (?, ?, ?, ?, ?)",
        [(n, f"g{n % GROUPS}", n % GROUPS, n % GROUPS + 1, n / 8) for n in range(ROWS)],
    )
    connection.executemany("insert into p values (?, ?, ?)", [(n, f"name {n}", n + 1) for n in range(GROUPS)])
    yield connection
    connection.close()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows that each look into a table gave, of whatever kind it was."""
    counts: list[int] = []

    def counted(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            counts.append(len(batch))
            yield batch

    def single(row: Any) -> Any:
        counts.append(row is not None)
        return row

    def listed(rows: list[Any]) -> list[Any]:
        counts.append(sum(row is not None for row in rows))
        return rows

    def grouped(groups: list[Any]) -> list[Any]:
        counts.extend(map(len, groups))
        return groups

    kinds = {"scan": counted, "range": counted, "point": single, "points": listed, "ranges": grouped}
    for name, kind in kinds.items():
        plain = getattr(MemoryTable, name)

        def counting(*given: Any, _plain: Any = plain, _kind: Any = kind, **named: Any) -> Any:
            return _kind(_plain(*given, **named))

        monkeypatch.setattr(MemoryTable, name, counting)
    return counts


@pytest.mark.parametrize(("body", "source", "strategy", "statements", "groups"), CASES)
def test_only_what_is_touched_is_read(
    con: Any, read: list[int], body: str, source: str, strategy: str, statements: list[str], groups: float
) -> None:
    con.execute(f"create materialized view v as {body}")
    found = dict(con.execute("select source, strategy from maintenance_info('v')").fetchall())
    assert found[source] == strategy
    if strategy == "states":
        con.execute("update t set y = 3.0 where id = 0")  # they are made by the first change
    if "partition by g" in body:
        con.execute("create index v_g on v (g)")  # the view's rows are found by it; its key is t's
    for statement in statements:
        assert f"MAINTAIN main.v by {strategy}" in [
            line for (line,) in con.execute(f"explain query plan {statement}").fetchall()
        ]
        con.execute("begin")
        read.clear()
        con.execute(statement)
        # Twenty for the statement's own look-ups and those of a few rows and groups.
        assert sum(read) <= 20 + groups * IN_GROUP, (statement, read)
        con.execute("pragma answer_from_views = false")
        stored = con.execute("select * from v").fetchall()
        assert sorted(map(repr, stored)) == sorted(map(repr, con.execute(body).fetchall()))
        con.execute("rollback")


@pytest.mark.parametrize(
    "body",
    [
        "select id, y from t order by y limit 3",
        "with recursive down(k) as (select max(x) from t union select k - 1 from down where k > 0)"
        " select k from down",
        "select id, rank() over (order by x, id) as r from t",
    ],
)
def test_what_has_no_program_is_computed_anew(con: Any, read: list[int], body: str) -> None:
    con.execute(f"create materialized view v as {body}")
    assert con.execute("select strategy from maintenance_info('v')").fetchall() == [("rebuild",)]
    read.clear()
    con.execute(UPDATE)
    assert sum(read) >= ROWS
    assert (
        con.execute("select * from v order by 1").fetchall()
        == con.execute(f"select * from ({body}) q order by 1").fetchall()
    )


def test_a_change_of_most_groups_is_computed_anew_once(con: Any, read: list[int]) -> None:
    """Reading group after group would read everything, and by index: the whole body is cheaper then."""
    con.execute("create materialized view v as select g, group_concat(id) as l from t group by g")
    read.clear()
    con.execute("update t set x = x + 1")
    assert sum(read) <= 3 * ROWS + 2 * GROUPS
