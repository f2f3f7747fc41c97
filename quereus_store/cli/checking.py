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
        unit = "row" if count == 1 else "rows"
        print(f"table {table.title}: {count:,} {unit}, {state}", file=stream)
    for view in views:
        found = list(_readable(connection, view))
        findings += found
        print(f"view {view.title}: {'in order' if not found else 'not readable'}", file=stream)
    for finding in findings:
        print(f"  {finding.place}: {finding.what}", file=stream)
    print("The database is in order." if not findings else f"{len(findings)} problems found.", file=stream)
    return not findings


def check_table(connection: Connection, table: Relation) -> tuple[int, list[Finding]]:
    """Check one table; returns its number of rows and what is wrong with them."""
    try:
        count, findings = _rows(connection, table)
    except Error as error:
        return 0, [Finding(table.title, f"cannot be read: {error}")]
    for check in _CHECKS:
        try:
            findings += check(connection, table)
        except Error as error:
            findings.append(Finding(table.title, f"a check could not be made: {error}"))
    return count, findings


def _rows(connection: Connection, table: Relation) -> tuple[int, list[Finding]]:
    """Count the rows, and those that break NOT NULL or a CHECK, in one pass over the table."""
    info = connection.execute('select name, "notnull" from table_info(?)', (table.name,)).fetchall()
    required = [name for name, not_null in info if not_null]
    checks = list(_row_checks(connection, table))
    counts = [
        "count(*)",
        *(f"count(*) - count({quote(name)})" for name in required),
        *(f"count(case when not ({text}) then 1 end)" for _name, text in checks),
    ]
    total, *broken = connection.execute(f"select {', '.join(counts)} from {table.sql}").fetchone()
    rules = [f"have NULL in the NOT NULL column {name}" for name in required]
    rules += [f"break the check {name or ''} ({text})" for name, text in checks]
    found = zip(rules, broken, strict=True)
    return total, [Finding(table.title, f"{count:,} rows {rule}") for rule, count in found if count]


def _row_checks(connection: Connection, table: Relation) -> Iterator[tuple[str | None, str]]:
    """Name and text of the CHECKs that speak of the rows that are there, not of a change."""
    rows = connection.execute(
        "select name, expr, operations from check_constraint_info(?)", (table.name,)
    ).fetchall()
    for name, expression, operations in rows:
        text = str(expression)
        is_transition = "old." in text.lower() or "new." in text.lower()
        if not is_transition and set(str(operations).split(",")) >= _BOTH:
            yield name, text


def _readable(connection: Connection, view: Relation) -> Iterator[Finding]:
    try:
        connection.execute(f"select * from {view.sql} limit 1").fetchall()
    except Error as error:
        yield Finding(view.title, f"cannot be read: {error}")


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
        there = _count(
            connection,
            "select count(*) from schema() where lower(schema) = lower(?) and lower(name) = lower(?) "
            "and type in ('table', 'materialized_view')",
            (target.schema, target.name),
        )
        if not there or any(part[5] is None for part in parts):
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
    _unique,
    _foreign_keys,
)


def _grouped(parts: Iterator[tuple[Any, Any, str]]) -> Iterator[tuple[str | None, list[str]]]:
    """Constraints from one row a column: name and columns of each."""
    constraints: dict[Any, tuple[str | None, list[str]]] = {}
    for identity, name, column in parts:
        constraints.setdefault(identity, (name, []))[1].append(column)
    yield from constraints.values()


def _count(connection: Connection, sql: str, parameters: tuple[Any, ...] = ()) -> int:
    return int(connection.execute(sql, parameters).fetchone()[0])
