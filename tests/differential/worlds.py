"""Random databases: a few tables of different key shapes, their rows, optional indexes.

A world opens the same database several times: in ``sqlite3``, and in Quereus with and
without indexes, in memory and on the durable backends.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import quereus_store
from tests.differential.choices import Choices


@dataclass(frozen=True)
class Column:
    """A column: its name, the family of its values, whether it may be NULL."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """A table: its columns and the key clause."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    def create(self, dialect: str, types: Mapping[str, str] | None = None) -> str:
        """CREATE TABLE in a dialect."""
        types = types or _TYPES[dialect]
        null = " null" if dialect == "quereus" else ""
        parts = [
            f"{column.name} {types[column.type]}{null if column.nullable else ' not null'}"
            for column in self.columns
        ]
        return f"create table {self.name} ({', '.join(parts)}, primary key ({', '.join(self.key)}))"


_TYPES = {
    "quereus": {
        "int": "integer",
        "real": "real",
        "text": "text",
        "bool": "boolean",
        "any": "any",
        "nocase": "text collate nocase",
    },
    "sqlite": {
        "int": "integer",
        "real": "real",
        "text": "text",
        "bool": "integer",
        "any": "",
        "nocase": "text collate nocase",
    },
}

TABLES = (
    Table(
        "t1",
        (
            Column("id", "int", False),
            Column("a", "int"),
            Column("b", "int", False),
            Column("r", "real"),
            Column("s", "text"),
            Column("k", "nocase"),
            Column("f", "bool"),
        ),
        ("id",),
    ),
    Table(
        "t2",
        (
            Column("x", "int", False),
            Column("y", "text", False),
            Column("z", "real"),
            Column("w", "int"),
            Column("v", "any"),
        ),
        ("x", "y desc"),
    ),
    Table(
        "t3",
        (
            Column("name", "text", False),
            Column("a", "int"),
            Column("n", "int", False),
            Column("q", "real", False),
        ),
        ("name desc",),
    ),
    Table(
        "t4",
        (Column("k", "nocase", False), Column("g", "bool", False), Column("m", "int")),
        ("k", "g"),
    ),
)

INDEXES = (
    "create index i1 on t1 (a)",
    "create index i2 on t1 (s desc, b)",
    "create unique index i3 on t1 (b, id)",
    "create index i4 on t1 (k)",
    "create index i5 on t1 (r) where r > 0",
    "create index i6 on t1 (f, a desc, s)",
    "create index i7 on t2 (w desc)",
    "create index i8 on t2 (y, z)",
    "create index i9 on t2 (v)",
    "create index i10 on t3 (a, n desc)",
    "create index i11 on t3 (n)",
    "create index i12 on t4 (m)",
    "create index i13 on t1 (a) where b is not null and s is not null",
    "create index i14 on t4 (g)",
)

VALUES: dict[str, tuple[object, ...]] = {
    "int": (0, 1, 2, -1, 3, 5, -3),
    "real": (0.5, 1.0, -0.5, 2.0, 2.5, 0.0, -2.0),
    "text": ("a", "", "A", "ab", "b", "B_", "a%", "c", "aB"),
    "nocase": ("a", "A", "ab", "b", "B", "AB", "", "c"),
    "bool": (True, False),
    "any": (1, 0, 2.5, "a", "", "b", -1, 1.0),
}


def rows_of(
    table: Table,
    choices: Choices,
    count: int,
    wide: bool = False,
    values: Mapping[str, Sequence[object]] = MappingProxyType({}),
) -> list[tuple[object, ...]]:
    """Random rows with different keys; ``wide`` draws numbers from a larger range."""
    values = {**VALUES, **values}
    keys = {part.split()[0] for part in table.key}
    rows: dict[tuple[object, ...], tuple[object, ...]] = {}
    for number in range(count):
        row = []
        for column in table.columns:
            if column.nullable and choices.chance(22):
                row.append(None)
            elif column.name == "id":
                row.append(number)
            elif wide and column.type == "int":
                row.append(choices.below(count))
            elif wide and column.type == "text":
                row.append(f"{choices.one_of(values['text'])}{choices.below(count)}")
            else:
                row.append(choices.one_of(values[column.type]))
        key = tuple(
            value.lower() if isinstance(value, str) and column.type == "nocase" else repr(value)
            for column, value in zip(table.columns, row, strict=True)
            if column.name in keys
        )
        rows.setdefault(key, tuple(row))
    return list(rows.values())


@dataclass
class World:
    """One database in several systems; ``connections`` maps a label to a Quereus connection."""

    sqlite: sqlite3.Connection
    connections: dict[str, quereus_store.Connection] = field(default_factory=dict)
    indexes: tuple[str, ...] = ()
    rows: dict[str, list[tuple[object, ...]]] = field(default_factory=dict)

    def close(self) -> None:
        """Close everything."""
        for connection in self.connections.values():
            connection.close()
        self.sqlite.close()


def sqlite_connection() -> sqlite3.Connection:
    """SQLite with the settings under which the dialects agree."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("pragma case_sensitive_like = on")
    connection.execute("pragma foreign_keys = on")
    return connection


def open_world(
    choices: Choices, folder: Path | None, counts: Sequence[int] = (0, 3, 6, 9, 14), wide: bool = False
) -> World:
    """A random database, opened everywhere; without a folder in memory only."""
    world = World(sqlite_connection())
    world.connections["memory"] = quereus_store.connect(":memory:")
    world.connections["memory, indexes"] = quereus_store.connect(":memory:")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for backend in ("lmdb", "leveldb"):
            path = str(folder / f"{backend}.qdb")
            world.connections[backend] = quereus_store.connect(path, backend=backend, synchronous="off")
    world.indexes = tuple(index for index in INDEXES if choices.chance(55))
    for table in TABLES:
        rows = world.rows[table.name] = rows_of(table, choices, choices.one_of(counts), wide)
        insert = f"insert into {table.name} values ({', '.join('?' * len(table.columns))})"
        world.sqlite.execute(table.create("sqlite"))
        world.sqlite.executemany(insert, rows)
        for connection in world.connections.values():
            connection.execute(table.create("quereus"))
            connection.executemany(insert, rows)
    analyzed = choices.chance(50)
    for label, connection in world.connections.items():
        if label != "memory":
            for index in world.indexes:
                connection.execute(index)
            if analyzed:
                connection.execute("analyze")
    return world
