"""Verifying a database: what is stored against what is declared, told in words.

Every check is a query over the database's own introspection, so it needs no knowledge of how a
module stores rows: each table is read to its end, and then no row may break what its declaration
promises (NOT NULL, UNIQUE, CHECK, foreign keys); every view must be answerable.  Before that the storage
compares its tables with their indexes, entry by entry, by itself (``Database.check``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from quereus_store.cli.names import quote
from quereus_store.errors import Error

if TYPE_CHECKING:
    from quereus_store import Connection

_BATCH = 2000
_BOTH = {"insert", "update"}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as declared."""

    place: str
    what: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view by its quoted name for SQL and its plain name for people."""

    schema: str
    name: str

    @property
    def sql(self) -> str:
        """The name for a statement."""
        return f"{quote(self.schema)}.{quote(self.name)}"

    @property
    def title(self) -> str:
        """The name for people; the main schema is not spelled out."""
        return self.name if self.schema == "main" else f"{self.schema}.{self.name}"


def check_database(connection: Connection, stream: TextIO) -> bool:
    """Check everything and print what was looked at and what was found; true when all is in order."""
    rows = connection.execute("select schema, type, name from schema()").fetchall()
    tables = [Relation(schema, name) for schema, kind, name in rows if kind in ("table", "materialized_view")]
    views = [Relation(schema, name) for schema, kind, name in rows if kind == "view"]
    findings = [Finding(found.place, found.what) for found in connection.database.check()]
    stored = "in order" if not findings else f"{len(findings)} problems"
    print(f"storage: rows, keys, indexes and counts {stored}", file=stream)
    for table in tables:
        count, found = check_table(connection, table)
        findings += found
        state = "in order" if not found else f"{len(found)} problem{'s' if len(found) > 1 else ''}"
        print(f"table {table.title}: {count:,} rows, {state}", file=stream)
    for view in views:
        found = list(_readable(connection, view, limit=" limit 1"))
        findings += found
        print(f"view {view.title}: {'in order' if not found else 'not readable'}", file=stream)
    for finding in findings:
        print(f"  {finding.place}: {finding.what}", file=stream)
    print("The database is in order." if not findings else f"{len(findings)} problems found.", file=stream)
    return not findings


def check_table(connection: Connection, table: Relation) -> tuple[int, list[Finding]]:
    """Check one table; returns its number of rows and what is wrong with them."""
    counter = [0]
    findings = list(_readable(connection, table, counter=counter))
    if findings:
        return counter[0], findings
    for check in _CHECKS:
        try:
            findings += check(connection, table)
        except Error as error:
            findings.append(Finding(table.title, f"a check could not be made: {error}"))
    return counter[0], findings


def _readable(
    connection: Connection, relation: Relation, *, limit: str = "", counter: list[int] | None = None
) -> Iterator[Finding]:
    counter = counter if counter is not None else [0]
    try:
        cursor = connection.execute(f"select * from {relation.sql}{limit}")
        while batch := cursor.fetchmany(_BATCH):
            counter[0] += len(batch)
    except Error as error:
        yield Finding(relation.title, f"cannot be read after {counter[0]:,} rows: {error}")


def _not_null(connection: Connection, table: Relation) -> Iterator[Finding]:
    info = connection.execute('select name, "notnull" from table_info(?)', (table.name,)).fetchall()
    names = [name for name, required in info if required]
    if not names:
        return
    counts = ", ".join(f"count(*) - count({quote(name)})" for name in names)
    row = connection.execute(f"select {counts} from {table.sql}").fetchone()
    for name, missing in zip(names, row, strict=True):
        if missing:
            yield Finding(table.title, f"{missing:,} rows have NULL in the NOT NULL column {name}")


def _unique(connection: Connection, table: Relation) -> Iterator[Finding]:
    rows = connection.execute(
        "select id, name, column_name, partial from unique_constraint_info(?) order by id, seq", (table.name,)
    ).fetchall()
    for name, columns in _grouped((row[0], row[1], row[2]) for row in rows if not row[3]):
        names = ", ".join(map(quote, columns))
        known = " and ".join(f"{quote(column)} is not null" for column in columns)
        count = _count(
            connection,
            f"select count(*) from (select {names} from {table.sql} where {known} "
            f"group by {names} having count(*) > 1) as repeated",
        )
        if count:
            yield Finding(table.title, f"{count:,} values of {name or names} stand more than once")


def _checks(connection: Connection, table: Relation) -> Iterator[Finding]:
    rows = connection.execute(
        "select name, expr, operations from check_constraint_info(?)", (table.name,)
    ).fetchall()
    for name, expression, operations in rows:
        text = str(expression)
        is_transition = "old." in text.lower() or "new." in text.lower()
        if is_transition or not set(str(operations).split(",")) >= _BOTH:
            continue  # speaks of a change, not of the rows that are there
        count = _count(connection, f"select count(*) from {table.sql} where not ({text})")
        if count:
            yield Finding(table.title, f"{count:,} rows break the check {name or ''} ({text})")


def _foreign_keys(connection: Connection, table: Relation) -> Iterator[Finding]:
    rows = connection.execute(
        'select id, name, "from", referenced_schema, referenced_table, "to" '
        "from foreign_key_info(?) order by id, seq",
        (table.name,),
    ).fetchall()
    keys: dict[Any, list[Any]] = {}
    for row in rows:
        keys.setdefault(row[0], []).append(row)
    for parts in keys.values():
        _id, name, _from, schema, parent, _to = parts[0]
        target = Relation(schema or table.schema, parent)
        if any(part[5] is None for part in parts):
            yield Finding(table.title, f"the foreign key {name} refers to {target.title}, which is not there")
            continue
        matched = " and ".join(f"p.{quote(part[5])} = c.{quote(part[2])}" for part in parts)
        known = " and ".join(f"c.{quote(part[2])} is not null" for part in parts)
        count = _count(
            connection,
            f"select count(*) from {table.sql} as c left join {target.sql} as p on {matched} "
            f"where {known} and p.{quote(parts[0][5])} is null",
        )
        if count:
            yield Finding(table.title, f"{count:,} rows have no parent in {target.title} ({name})")


_CHECKS: tuple[Callable[[Connection, Relation], Iterator[Finding]], ...] = (
    _not_null,
    _unique,
    _checks,
    _foreign_keys,
)


def _grouped(parts: Iterator[tuple[Any, Any, str]]) -> Iterator[tuple[str | None, list[str]]]:
    """Constraints from one row a column: name and columns of each."""
    constraints: dict[Any, tuple[str | None, list[str]]] = {}
    for identity, name, column in parts:
        constraints.setdefault(identity, (name, []))[1].append(column)
    yield from constraints.values()


def _count(connection: Connection, sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0])
