"""Changes of many rows: loads through constraints, set-wise updates and deletes, cascades.

Each case runs in one transaction that is rolled back afterwards, so that every round finds the same rows.
"""

from __future__ import annotations

from collections.abc import Callable

from quereus_store.cli.bench.case import INSERT_ITEM, ITEM_COLUMNS, Case, begin, rollback
from quereus_store.cli.bench.data import Data
from quereus_store.cli.bench.engines import Database

CHILDREN = 10_000
_GOALS_OF_LOADS = {"lmdb": 0.6}
_GOALS_OF_CHANGES = {"lmdb": 0.3}
_CHECKED = (
    "(id integer primary key, grp integer not null references grp (id), "
    "code text not null, price real not null check (price >= 0))"
)


def _with_table(declaration: str) -> Callable[[Database, Data], None]:
    def before(database: Database, data: Data) -> None:
        execute = database.connection.execute
        execute("pragma foreign_keys = on")
        execute("drop table if exists target")
        execute(f"create table target {declaration}")
        begin(database, data)

    return before


def _load(database: Database, data: Data) -> None:
    database.connection.executemany("insert into target values (?, ?, ?, ?)", data.items)


def _upsert(database: Database, data: Data) -> None:
    upsert = f"{INSERT_ITEM} on conflict (id) do update set price = excluded.price"
    database.connection.executemany(upsert, data.changed_items)


_MIXED = (
    "(id integer primary key, grp integer null, code text null, price real null, "
    "note text null default 'new')"
)


def _load_mixed(database: Database, data: Data) -> None:
    rows = [
        (number, None if number % 7 == 0 else group, code, int(price) if number % 3 else price)
        for number, group, code, price in data.items
    ]
    insert = "insert into target (id, grp, code, price) values (?, ?, ?, ?)"
    database.connection.executemany(insert, rows)


def _update_many(database: Database, data: Data) -> None:
    rows = [
        (price, None if group == 1 else group, number) for number, group, _code, price in data.changed_items
    ]
    database.connection.executemany("update target set price = ?, grp = ? where id = ?", rows)


def _delete_many(database: Database, data: Data) -> None:
    keys = [(number,) for number, *_ in data.items[::2]]
    database.connection.executemany("delete from target where id = ?", keys)


def _with_loaded(database: Database, data: Data) -> None:
    _with_table(_MIXED)(database, data)
    insert = "insert into target (id, grp, code, price) values (?, ?, ?, ?)"
    database.connection.executemany(insert, data.items)
    database.connection.execute("commit")
    begin(database, data)


def _with_children(database: Database, data: Data) -> None:
    execute = database.connection.execute
    execute("pragma foreign_keys = on")
    execute("drop table if exists child")
    execute("drop table if exists parent")
    execute("create table parent (id integer primary key)")
    execute(
        "create table child (id integer primary key, "
        "parent integer not null references parent (id) on delete cascade)"
    )
    execute("create index child_parent on child (parent)")
    begin(database, data)
    database.connection.executemany("insert into parent values (?)", [(1,), (2,)])
    children = [(number, 1 + number % 2) for number in range(2 * CHILDREN)]
    database.connection.executemany("insert into child values (?, ?)", children)
    execute("commit")
    begin(database, data)


def _statement(name: str, sql: str, before: Callable[[Database, Data], None] = begin) -> Case:
    def run(database: Database, data: Data) -> None:
        database.connection.execute(sql)

    return Case(name, sql, run, before=before, after=rollback, goals=_GOALS_OF_CHANGES)


WRITE_CASES: tuple[Case, ...] = (
    Case(
        "load, plain",
        "executemany into a table without indexes",
        _load,
        before=_with_table(ITEM_COLUMNS),
        after=rollback,
        goals=_GOALS_OF_LOADS,
    ),
    Case(
        "load, checked",
        "executemany through a CHECK and a foreign key",
        _load,
        before=_with_table(_CHECKED),
        after=rollback,
        goals=_GOALS_OF_LOADS,
    ),
    Case(
        "upsert",
        "executemany of insert … on conflict do update over rows that exist",
        _upsert,
        before=begin,
        after=rollback,
        goals=_GOALS_OF_LOADS,
    ),
    Case(
        "load, mixed",
        "executemany with NULLs, and integers among the values of a REAL column",
        _load_mixed,
        before=_with_table(_MIXED),
        after=rollback,
        goals=_GOALS_OF_LOADS,
    ),
    Case(
        "update, many",
        "executemany of update … set price = ?, grp = ? where id = ?, some NULL",
        _update_many,
        before=_with_loaded,
        after=rollback,
        goals=_GOALS_OF_LOADS,
    ),
    Case(
        "delete, many",
        "executemany of delete … where id = ? for every other row",
        _delete_many,
        before=_with_loaded,
        after=rollback,
        goals=_GOALS_OF_LOADS,
    ),
    _statement("update by scan", "update item set price = price + 1.0 where grp < 50"),
    _statement(
        "update by index", "update item set price = price + 1.0 where code >= 'code-' and code < 'code-001'"
    ),
    _statement("delete by range", "delete from item where id between 1000 and 20999"),
    _statement("cascade", "delete from parent where id = 1", _with_children),
)
