"""What is timed: one entry a case.

``run`` is timed, ``before`` and ``after`` are not.  With ``operations`` the figure is microseconds
for each of them, else milliseconds for the whole.  ``goals`` are the ratios to reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from quereus_store.cli.bench.data import Data
from quereus_store.cli.bench.engines import Database

Action = Callable[[Database, Data], Any]

ITEM_COLUMNS = "(id integer primary key, grp integer not null, code text not null, price real not null)"
_SCHEMA = (
    "create table grp (id integer primary key, name text not null, region text not null)",
    f"create table item {ITEM_COLUMNS}",
    "create index item_code on item (code)",
    f"create table journal {ITEM_COLUMNS}",
)
_INSERT_ITEM = "insert into item values (?, ?, ?, ?)"
AUTOCOMMITS = 100
_STATEMENTS = 10_000


def _nothing(database: Database, data: Data) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the benchmark."""

    name: str
    what: str
    run: Action
    before: Action = _nothing
    after: Action = _nothing
    operations: int = 0
    goals: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    only_durable: bool = False


def set_up(database: Database, data: Data) -> None:
    """Create the tables and fill them."""
    connection = database.connection
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute("begin")
    connection.executemany("insert into grp values (?, ?, ?)", data.groups)
    connection.executemany(_INSERT_ITEM, data.items)
    connection.execute("commit")


def _query(name: str, sql: str, *, memory: float | None = None, lmdb: float | None = None) -> Case:
    """A query whose rows are all fetched."""
    goals = {engine: goal for engine, goal in (("memory", memory), ("lmdb", lmdb)) if goal is not None}
    return Case(name, sql, lambda database, data: database.connection.execute(sql).fetchall(), goals=goals)


def _begin(database: Database, data: Data) -> None:
    database.connection.execute("begin")


def _rollback(database: Database, data: Data) -> None:
    database.connection.execute("rollback")


def _point_reads(database: Database, data: Data) -> Any:
    execute = database.connection.execute
    return [execute("select * from item where id = ?", (number,)).fetchone() for number in data.ids]


def _index_reads(database: Database, data: Data) -> Any:
    execute = database.connection.execute
    return [execute("select id, price from item where code = ?", (code,)).fetchall() for code in data.codes]


def _empty_table(database: Database, data: Data) -> None:
    execute = database.connection.execute
    execute("drop table if exists loaded")
    execute(f"create table loaded {ITEM_COLUMNS}")
    execute("create index loaded_code on loaded (code)")


def _load(database: Database, data: Data) -> None:
    database.connection.execute("begin")
    database.connection.executemany("insert into loaded values (?, ?, ?, ?)", data.items)
    database.connection.execute("commit")


def _clear_journal(database: Database, data: Data) -> None:
    database.connection.execute("delete from journal")


def _autocommit(database: Database, data: Data) -> None:
    for row in data.items[:AUTOCOMMITS]:
        database.connection.execute("insert into journal values (?, ?, ?, ?)", row)


def _inserts(database: Database, data: Data) -> None:
    execute = database.connection.execute
    for number in range(-_STATEMENTS, 0):
        execute(_INSERT_ITEM, (number, 1, "new", 1.5))


def _updates(database: Database, data: Data) -> None:
    execute = database.connection.execute
    for number in data.ids[:_STATEMENTS]:
        execute("update item set price = price + 1.0 where id = ?", (number,))


def _cold_scan(database: Database, data: Data) -> Any:
    return database.connection.execute("select * from item").fetchall()


CASES: tuple[Case, ...] = (
    _query("full scan", "select * from item", memory=3.0, lmdb=1.0),
    Case(
        "full scan, just opened",
        "select * from item, the first statement after opening the file",
        _cold_scan,
        before=lambda database, data: database.reopen(),
        only_durable=True,
    ),
    _query("filtered scan", "select id, code from item where price > 500.0 and grp < 50", memory=2.0),
    _query("grouped aggregate", "select grp, count(*), sum(price) from item group by grp", memory=1.5),
    _query("order by", "select * from item order by price, id", memory=1.0, lmdb=1.0),
    _query("top 10", "select * from item order by price desc, id limit 10"),
    _query("join", "select i.id, g.name from item i join grp g on g.id = i.grp where g.region = 'north'"),
    _query(
        "join, grouped",
        "select g.region, count(*), sum(i.price) from item i join grp g on g.id = i.grp group by g.region",
    ),
    Case(
        "point reads",
        "10,000 × execute('select * from item where id = ?', (id,)).fetchone()",
        _point_reads,
        operations=10_000,
        goals={"memory": 0.6, "lmdb": 1.0},
    ),
    Case(
        "index reads",
        "1,000 × execute('select id, price from item where code = ?', (code,)).fetchall()",
        _index_reads,
        operations=1000,
    ),
    Case(
        "load",
        "executemany into a table with one secondary index, one transaction",
        _load,
        before=_empty_table,
        goals={"lmdb": 0.6},
    ),
    Case(
        "durable autocommit",
        f"{AUTOCOMMITS} single-row inserts, each committed to disk",
        _autocommit,
        before=_clear_journal,
        operations=AUTOCOMMITS,
        goals={"lmdb": 0.7},
        only_durable=True,
    ),
    Case(
        "single-row inserts",
        f"{_STATEMENTS:,} × insert within a transaction",
        _inserts,
        before=_begin,
        after=_rollback,
        operations=_STATEMENTS,
    ),
    Case(
        "single-row updates",
        f"{_STATEMENTS:,} × update … where id = ? within a transaction",
        _updates,
        before=_begin,
        after=_rollback,
        operations=_STATEMENTS,
    ),
)
