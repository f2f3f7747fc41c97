"""One thing that is timed, and the tables that the cases share.

``run`` is timed, ``before`` and ``after`` are not.  With ``operations`` the figure is microseconds
for each of them, else milliseconds for the whole.  ``goals`` are the ratios to reach.

``microseconds`` is what an operation may take at most on storages of ours, whatever ``sqlite3`` takes;
``raw_times`` how many times the raw cost of LMDB the case may take there.

A case may be compared with a ``plain`` one on the same engine: each of its operations is to take
``at_most`` so many times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from quereus_store.cli.bench.data import Data
from quereus_store.cli.bench.engines import Database

Action = Callable[[Database, Data], Any]

ITEM_COLUMNS = "(id integer primary key, grp integer not null, code text not null, price real not null)"
INSERT_ITEM = "insert into item values (?, ?, ?, ?)"
_SCHEMA = (
    "create table grp (id integer primary key, name text not null, region text not null)",
    f"create table item {ITEM_COLUMNS}",
    "create index item_code on item (code)",
    f"create table journal {ITEM_COLUMNS}",
    "create table probe (id integer primary key, code text not null)",
    "create table document (id integer primary key, body json not null)",
)
_FILL = {
    "insert into grp values (?, ?, ?)": "groups",
    INSERT_ITEM: "items",
    "insert into probe values (?, ?)": "probes",
    "insert into document values (?, ?)": "documents",
}


def nothing(database: Database, data: Data) -> None:
    """What comes before or after a case that needs no preparing."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the benchmark."""

    name: str
    what: str
    run: Action
    before: Action = nothing
    after: Action = nothing
    operations: int = 0
    goals: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    only_durable: bool = False
    plain: str = ""
    at_most: float = 0.0
    microseconds: float = 0.0
    raw_times: float = 0.0


def set_up(database: Database, data: Data) -> None:
    """Create the tables and fill them."""
    connection = database.connection
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute("begin")
    for insert, rows in _FILL.items():
        connection.executemany(insert, getattr(data, rows))
    connection.execute("commit")


def query(name: str, sql: str, *, memory: float | None = None, lmdb: float | None = None) -> Case:
    """A query whose rows are all fetched."""
    goals = {engine: goal for engine, goal in (("memory", memory), ("lmdb", lmdb)) if goal is not None}
    return Case(name, sql, lambda database, data: database.connection.execute(sql).fetchall(), goals=goals)


def cold(case: Case, *, lmdb: float) -> Case:
    """The same query over a file that was opened anew: its catalog is known, none of its rows are cached."""

    def before(database: Database, data: Data) -> None:
        database.reopen()
        database.connection.execute("select count(*) from journal").fetchall()

    return replace(
        case,
        name=f"{case.name}, cold",
        what=f"{case.what}, after opening the file anew",
        before=before,
        goals={"lmdb": lmdb},
        only_durable=True,
    )


def begin(database: Database, data: Data) -> None:
    """Open a transaction."""
    database.connection.execute("begin")


def rollback(database: Database, data: Data) -> None:
    """Take everything back."""
    database.connection.execute("rollback")
