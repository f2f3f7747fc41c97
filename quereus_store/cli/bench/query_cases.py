"""One case for each family of the query language."""

from __future__ import annotations

from itertools import count
from typing import Any

from quereus_store.cli.bench.case import Case, cold, query
from quereus_store.cli.bench.data import Data
from quereus_store.cli.bench.engines import Database

_RECURSION = "with recursive step (n) as (select 1 union all select n + 1 from step where n < 100000)"
_NO_LIMIT = " option (maxrecursion 0)"
"""Our dialect stops a recursion after 10,000 rounds unless told otherwise; others have no such clause."""


def _recursion(database: Database, data: Data) -> Any:
    limit = "" if database.engine.rival is None else _NO_LIMIT
    return database.connection.execute(f"{_RECURSION}{limit} select count(*), sum(n) from step").fetchall()


_PREPARED = 50
_TEN_LINES = """select g.name, count(*) as n, sum(i.price) as total, avg(i.price) as mean
from grp g
join item i on i.grp = g.id
left join probe p on p.id = i.id
where i.price > {number} and g.region <> 'nowhere'
  and exists (select 1 from journal j where j.grp = g.id and j.code = 'web')
group by g.name
having count(*) > 3
order by total desc
limit 0"""
_numbers = count()
"""So that no text is met twice, in no round."""


def _prepare(database: Database, data: Data) -> None:
    for _ in range(_PREPARED):
        database.connection.execute(_TEN_LINES.format(number=next(_numbers))).fetchall()


QUERY_CASES: tuple[Case, ...] = (
    query(
        "sums of arithmetic",
        "select grp, sum(price), avg(price), sum(price * (1 - 0.5 * grp)), sum(price * 1.25), count(*)"
        " from item group by grp",
    ),
    query(
        "or of joins",
        "select count(*), sum(i.price) from item i, grp g where (i.grp = g.id and g.id < 5 and i.price < 2e4)"
        " or (i.grp = g.id and g.id between 40 and 45 and i.price > 3e4)",
        memory=1.0,
        lmdb=1.0,
    ),
    query(
        "exists, few rows",
        "select count(*) from probe p"
        " where p.id < 200 and exists (select 1 from item i where i.code = p.code)",
    ),
    query(
        "hash join",
        "select count(*), sum(i.price) from item i join grp g on g.name = 'group ' || i.grp",
        memory=1.0,
        lmdb=1.0,
    ),
    query(
        "index join",
        "select p.id, i.id, i.price from probe p join item i on i.code = p.code",
        memory=1.0,
        lmdb=1.0,
    ),
    query(
        "correlated subquery",
        "select g.id, (select max(i.price) from item i where i.grp = g.id) from grp g",
        memory=1.0,
        lmdb=1.0,
    ),
    query(
        "window",
        "select id, sum(price) over (partition by grp order by id) from item",
        memory=1.0,
        lmdb=1.0,
    ),
    query("text order", "select id, code from item order by upper(code), id", memory=1.0, lmdb=1.0),
    query("distinct", "select distinct grp, price from item", memory=1.0, lmdb=1.0),
    query("like", "select id from item where code like '%42%'", memory=1.0, lmdb=1.0),
    query("top 10", "select * from item order by price desc, id limit 10", memory=1.0, lmdb=1.0),
    query(
        "json extraction",
        "select sum(json_extract(body, '$.size')), count(json_extract(body, '$.place.shelf')) from document",
        memory=1.0,
        lmdb=1.0,
    ),
    Case(
        "recursion",
        f"{_RECURSION} select count(*), sum(n) from step",
        _recursion,
        goals={"memory": 0.3, "lmdb": 0.3},
    ),
    Case(
        "preparing",
        f"{_PREPARED} × a new text of ten lines that joins four tables; it reads no row",
        _prepare,
        operations=_PREPARED,
        microseconds=3000.0,
    ),
)

COLD_CASES: tuple[Case, ...] = tuple(
    [cold(case, lmdb=0.8) for case in QUERY_CASES if case.name not in ("recursion", "preparing")]
)
"""The same with a cold cache; these two read no rows."""
