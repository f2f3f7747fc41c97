"""Scans, look-ups, loads and single-row statements: what every program does."""

from __future__ import annotations

from typing import Any

from quereus_store.cli.bench.case import INSERT_ITEM, ITEM_COLUMNS, Case, begin, query, rollback
from quereus_store.cli.bench.data import Data
from quereus_store.cli.bench.engines import Database

AUTOCOMMITS = 100
_STATEMENTS = 10_000


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
        execute(INSERT_ITEM, (number, 1, "new", 1.5))


def _updates(database: Database, data: Data) -> None:
    execute = database.connection.execute
    for number in data.ids[:_STATEMENTS]:
        execute("update item set price = price + 1.0 where id = ?", (number,))


def _cold_scan(database: Database, data: Data) -> Any:
    return database.connection.execute("select * from item").fetchall()


FOUNDATION_CASES: tuple[Case, ...] = (
    query("full scan", "select * from item", memory=3.0, lmdb=1.0),
    Case(
        "full scan, just opened",
        "select * from item, the first statement after opening the file",
        _cold_scan,
        before=lambda database, data: database.reopen(),
        only_durable=True,
    ),
    query("filtered scan", "select id, code from item where price > 500.0 and grp < 50", memory=2.0),
    query("grouped aggregate", "select grp, count(*), sum(price) from item group by grp", memory=1.5),
    query("order by", "select * from item order by price, id", memory=1.0, lmdb=1.0),
    query("join", "select i.id, g.name from item i join grp g on g.id = i.grp where g.region = 'north'"),
    query(
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
        raw_times=2.0,
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
        before=begin,
        after=rollback,
        operations=_STATEMENTS,
        microseconds=15.0,
    ),
    Case(
        "single-row updates",
        f"{_STATEMENTS:,} × update … where id = ? within a transaction",
        _updates,
        before=begin,
        after=rollback,
        operations=_STATEMENTS,
        microseconds=15.0,
    ),
)
