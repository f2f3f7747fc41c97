"""Schema changes of a table with rows, to be interrupted; a row tells of each in the same transaction.

The changes go round: after the last the table has its first shape again, so a change's number says
which columns, indexes and values must be there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quereus_store import Connection

ROWS = 150

SCHEMA = """
create table item (id integer primary key, a integer, b text, c integer);
create table made (change integer primary key);
"""

CHANGES = (
    "create index by_a on item (a, b)",
    "create unique index by_c on item (c)",
    "alter table item add column extra integer default 7",
    "alter table item rename column b to label",
    "alter table item alter column a set data type text",
    "alter table item alter primary key (c)",
    "drop index by_c",
    "alter table item rename to thing",
    "alter table thing drop column extra",
    "alter table thing alter primary key (id)",
    "alter table thing rename column label to b",
    "alter table thing rename to item",
    "alter table item alter column a set data type integer",
    "drop index by_a",
    "alter table item add column doubled integer generated always as (a * 2) stored",
    "alter table item drop column doubled",
)


def rows(count: int = ROWS) -> list[tuple[Any, ...]]:
    """The rows as they are at first."""
    return [(number, number % 9, f"item {number}", count - number) for number in range(count)]


def fill(connection: Connection, count: int = ROWS) -> None:
    """Make the tables."""
    connection.executescript(SCHEMA)
    connection.executemany("insert into item values (?, ?, ?, ?)", rows(count))


def change(connection: Connection, number: int) -> None:
    """Make the change of this number."""
    with connection.transaction():
        connection.execute(CHANGES[number % len(CHANGES)])
        connection.execute("insert into made values (?)", (number,))


def shape(changes: int, count: int = ROWS) -> tuple[str, tuple[str, ...], set[str], list[tuple[Any, ...]]]:
    """Table name, column names, indexes and rows (in the order of ``id``) after so many changes."""
    done = changes % len(CHANGES)
    is_between = lambda first, last: first < done <= last  # noqa: E731
    name = "thing" if is_between(7, 11) else "item"
    label = "label" if is_between(3, 10) else "b"
    doubled = is_between(14, 15)
    columns = ("id", "a", label, "c", *(("extra",) if is_between(2, 8) else ()))
    columns += ("doubled",) if doubled else ()
    indexes = {
        *(("by_a",) if is_between(0, 13) else ()),
        *(("by_c",) if is_between(1, 6) else ()),
    }
    content: Iterable[tuple[Any, ...]] = rows(count)
    if is_between(4, 12):
        content = [(row[0], str(row[1]), *row[2:]) for row in content]
    if "extra" in columns:
        content = [(*row, 7) for row in content]
    if doubled:
        content = [(*row, row[1] * 2) for row in content]
    return name, columns, indexes, list(content)
