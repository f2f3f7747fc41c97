"""Maintained tables: what a change costs with views over its table, and what reading them saves.

On ``sqlite3`` the same views are tables that hand-written triggers keep.  Each case makes its views
anew over all items, lets one row come and go, so that whatever a view keeps in memory is there, and
takes back afterwards what it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quereus_store.cli.bench.case import INSERT_ITEM, Case, begin, rollback
from quereus_store.cli.bench.data import GROUPS, Data
from quereus_store.cli.bench.engines import Database

STATEMENTS = 2000
BATCH = 10_000
READS = 100


@dataclass(frozen=True, slots=True)
class View:
    """A view's body, and the table and trigger that stand for it in ``sqlite3``."""

    name: str
    body: str
    table: str
    trigger: str


PER_GROUP = View(
    "per_group",
    "select grp, count(*) as items, sum(price) as total, max(price) as dearest from item group by grp",
    "(grp integer primary key, items integer, total real, dearest real)",
    "insert into per_group values (new.grp, 1, new.price, new.price) on conflict (grp) do update set "
    "items = items + 1, total = total + excluded.total, dearest = max(dearest, excluded.dearest)",
)
NAMED = View(
    "named",
    "select i.id, g.name, g.region, i.price from item i join grp g on g.id = i.grp",
    "(id integer primary key, name text, region text, price real)",
    "insert into named select new.id, g.name, g.region, new.price from grp g where g.id = new.grp",
)
PER_REGION = View(
    "per_region",
    "select g.region, count(*) as items, sum(i.price) as total from item i join grp g on g.id = i.grp "
    "group by g.region",
    "(region text primary key, items integer, total real)",
    "insert into per_region select g.region, 1, new.price from grp g where g.id = new.grp "
    "on conflict (region) do update set items = items + 1, total = total + excluded.total",
)


def _make(views: Sequence[View]) -> Callable[[Database, Data], None]:
    def before(database: Database, data: Data) -> None:
        execute = database.connection.execute
        for view in views:
            if database.engine.rival is not None:
                execute(f"create materialized view {view.name} as {view.body}")
                continue
            execute(f"create table {view.name} {view.table}")
            execute(f"insert into {view.name} {view.body}")
            execute(f"create trigger keep_{view.name} after insert on item begin {view.trigger}; end")
        if database.engine.rival is not None:
            execute(INSERT_ITEM, (-1, 1, "new", 1.5))
            execute("delete from item where id = -1")

    return before


def _drop(views: Sequence[View]) -> Callable[[Database, Data], None]:
    def after(database: Database, data: Data) -> None:
        execute = database.connection.execute
        for view in views:
            if database.engine.rival is not None:
                execute(f"drop materialized view {view.name}")
                continue
            execute(f"drop trigger keep_{view.name}")
            execute(f"drop table {view.name}")

    return after


def _singles(database: Database, data: Data) -> None:
    execute = database.connection.execute
    for number in range(-STATEMENTS - 1, -1):
        execute(INSERT_ITEM, (number, number % GROUPS, "new", 1.5))


def _batch(database: Database, data: Data) -> None:
    rows = [
        (-BATCH - 1 + place, group, code, price)
        for place, (_, group, code, price) in enumerate(data.items[:BATCH])
    ]
    database.connection.executemany(INSERT_ITEM, rows)


def _change(
    name: str,
    what: str,
    views: Sequence[View],
    run: Callable[[Database, Data], None],
    operations: int,
    *,
    plain: str = "",
    at_most: float = 0.0,
    goals: Mapping[str, float] | None = None,
) -> Case:
    make, drop = _make(views), _drop(views)

    def before(database: Database, data: Data) -> None:
        make(database, data)
        begin(database, data)

    def after(database: Database, data: Data) -> None:
        rollback(database, data)
        drop(database, data)

    return Case(name, what, run, before, after, operations, goals=goals or {}, plain=plain, at_most=at_most)


def _read(name: str, sql: str, *, plain: str = "", at_most: float = 0.0) -> Case:
    def run(database: Database, data: Data) -> Any:
        execute = database.connection.execute
        rows: Any = None
        for _ in range(READS if plain else 1):
            rows = execute(sql).fetchall()
        return rows

    views = (PER_GROUP,) if plain else ()
    make, drop = _make(views), _drop(views)

    def before(database: Database, data: Data) -> None:
        make(database, data)
        _answer_from_views(database, False)

    def after(database: Database, data: Data) -> None:
        _answer_from_views(database, True)
        drop(database, data)

    return Case(name, sql, run, before, after, READS if plain else 1, plain=plain, at_most=at_most)


def _answer_from_views(database: Database, answer: bool) -> None:
    """Whether the body of a view may be answered by reading the view."""
    if database.engine.rival is not None:
        database.connection.execute(f"pragma answer_from_views = {str(answer).lower()}")


_SINGLES = f"{STATEMENTS:,} × insert within a transaction"
_BATCH_OF = f"executemany of {BATCH:,} rows"
_AT_LEAST_SQLITE = {"memory": 1.0, "lmdb": 1.0}

VIEW_CASES: tuple[Case, ...] = (
    _change("no view, single rows", f"{_SINGLES}, no view", (), _singles, STATEMENTS),
    _change(
        "view of groups, single rows",
        f"{_SINGLES}, with a view of groups",
        (PER_GROUP,),
        _singles,
        STATEMENTS,
        plain="no view, single rows",
        at_most=3.0,
    ),
    _change(
        "view of a join, single rows",
        f"{_SINGLES}, with a view that joins two tables",
        (NAMED,),
        _singles,
        STATEMENTS,
        plain="no view, single rows",
        at_most=4.0,
    ),
    _change("no view, batch", f"{_BATCH_OF}, no view", (), _batch, BATCH),
    _change(
        "three views, batch",
        f"{_BATCH_OF}, with views of groups, of a join, and of groups over a join",
        (PER_GROUP, NAMED, PER_REGION),
        _batch,
        BATCH,
        plain="no view, batch",
        at_most=2.5,
        goals=_AT_LEAST_SQLITE,
    ),
    _read("the body of a view", PER_GROUP.body),
    _read("reading a view", "select * from per_group", plain="the body of a view", at_most=0.01),
)
