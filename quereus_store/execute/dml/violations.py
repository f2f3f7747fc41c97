"""The errors of violated constraints: their texts (section 17) and what they tell a program.

Every one is an IntegrityError with code 19 whose ``details`` name the table, the
columns, the constraint and its kind, and for keys the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.modules.contract import Row
from quereus_store.schema.objects import (
    CheckConstraint,
    ForeignKey,
    IndexSchema,
    TableSchema,
    UniqueConstraint,
    fold,
)
from quereus_store.sql import traversal
from quereus_store.sql.nodes import ColumnReference
from quereus_store.sql.renderer import canonical_text

_LONGEST_SHOWN = 60


def not_null_violation(table: TableSchema, position: int) -> Error:
    """A NULL in a NOT NULL column."""
    column = table.columns[position].name
    return violation(f"NOT NULL constraint failed: {table.name}.{column}", table, "not null", [position])


def check_violation(table: TableSchema, check: CheckConstraint, row: Row | None = None) -> Error:
    """A CHECK that is false; of the row it tells the columns that the expression names."""
    if check.message is not None:
        return violation(check.message, table, "check", (), check.name)
    shown = _shown(canonical_text(check.expression))
    references = [node for node in traversal.walk(check.expression) if isinstance(node, ColumnReference)]
    named = dict.fromkeys(fold(node.column) for node in references if fold(node.table or "") != "old")
    columns = [position for name in named if (position := table.column_index(name)) is not None]
    values = None if row is None else [row[column] for column in columns]
    return violation(
        f"CHECK constraint failed: {check.name}{shown}", table, "check", columns, check.name, values
    )


def primary_key_violation(table: TableSchema, row: Row, moved_in_memory: bool = False) -> Error:
    """A primary key that is taken; ``moved_in_memory`` for a key move on a table that is not persistent."""
    if moved_in_memory:
        message = f"UNIQUE constraint failed on new PK for {table.name}."
    else:
        message = f"UNIQUE constraint failed: {table.name} PK."
    columns = [part.column for part in table.primary_key.parts]
    return violation(message, table, "primary key", columns, None, [row[column] for column in columns])


def unique_violation(table: TableSchema, constraint: UniqueConstraint, row: Row) -> Error:
    """A UNIQUE key that is taken."""
    index = table.index(constraint.index)
    names = [table.columns[column].name for column in constraint.columns]
    if index is not None:
        names = [
            table.columns[part.column].name if part.column is not None else canonical_text(part.expression)  # type: ignore[arg-type]
            for part in index.parts
        ]
    message = f"UNIQUE constraint failed: {table.name} ({', '.join(names)})"
    values = [row[column] for column in constraint.columns]
    return violation(message, table, "unique", constraint.columns, constraint.name, values)


def index_violation(table: TableSchema, index: IndexSchema, row: Row) -> Error:
    """Rows that are there and that a new unique index does not tell apart."""
    names = [
        "<expression>" if part.column is None else table.columns[part.column].name for part in index.parts
    ]
    columns = [part.column for part in index.parts if part.column is not None]
    message = f"UNIQUE constraint failed: {table.name} ({', '.join(names)})"
    return violation(message, table, "unique", columns, index.name, [row[column] for column in columns])


def missing_parent(
    child: TableSchema, key: ForeignKey, values: Sequence[Any], absent_table: str | None = None
) -> Error:
    """A child row without a parent; ``absent_table`` names a parent table that does not exist."""
    message = f"CHECK constraint failed: {key.name}"
    if absent_table is not None:
        message += f" — referenced table '{absent_table}' does not exist"
    return violation(message, child, "foreign key", key.columns, key.name, values)


def restricted(
    verb: str, parent: TableSchema, child: TableSchema, key: ForeignKey, values: Sequence[Any]
) -> Error:
    """A parent row that a RESTRICT child refers to, found for the statement as a whole."""
    message = (
        f"FOREIGN KEY constraint failed: {verb} on '{parent.name}' violates RESTRICT from '{child.name}'"
    )
    return violation(message, child, "foreign key", key.columns, key.name, values)


def restricted_row(
    child: TableSchema, key: ForeignKey, parent_columns: Sequence[str], values: Sequence[Any]
) -> Error:
    """A parent row that a RESTRICT child refers to, found row by row."""
    terms = " and ".join(
        f"{child.name}.{child.columns[position].name} = OLD.{parent}"
        for position, parent in zip(key.columns, parent_columns, strict=True)
    )
    shown = _shown(f"not exists (select 1 from {child.qualified_name} where {terms})")
    message = f"CHECK constraint failed: {key.name}{shown}"
    return violation(message, child, "foreign key", key.columns, key.name, values)


def _shown(expression: str) -> str:
    return f" ({expression})" if len(expression) <= _LONGEST_SHOWN else ""


def violation(
    message: str,
    table: TableSchema,
    kind: str,
    columns: Sequence[int],
    constraint: str | None = None,
    values: Sequence[Any] | None = None,
) -> Error:
    """An error with a message of its own that tells a program what any other of its kind does."""
    error = sql_error(StatusCode.CONSTRAINT, message)
    details: dict[str, Any] = {
        "schema": table.schema,
        "table": table.name,
        "kind": kind,
        "columns": tuple(table.columns[column].name for column in columns),
        "constraint": constraint,
    }
    if values is not None:
        details["values"] = tuple(values)
    error.details = MappingProxyType(details)
    return error
