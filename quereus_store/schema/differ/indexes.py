"""Indexes of two shapes of a table in a form that can be compared: columns by name, not by position."""

from __future__ import annotations

from dataclasses import replace

from quereus_store.schema.differ.text import folded
from quereus_store.schema.objects import IndexPart, IndexSchema, TableSchema, fold
from quereus_store.sql import nodes
from quereus_store.types.logical import ANY, LogicalType


def index_changed(
    declared: IndexSchema, on_declared: TableSchema, actual: IndexSchema, on_actual: TableSchema
) -> bool:
    """Whether an index has other parts, another predicate, or is unique where it was not."""
    one, other = _named_parts(declared, on_declared), _named_parts(actual, on_actual)
    return (one.unique, one.parts, one.where) != (other.unique, other.parts, other.where)


def _named_parts(index: IndexSchema, table: TableSchema) -> IndexSchema:
    """An index with its columns as expressions, so that indexes of two shapes of a table can be compared."""
    where = index.where and folded(index.where)
    return replace(index, parts=tuple(_named_part(part, table) for part in index.parts), where=where)


def _named_part(part: IndexPart, table: TableSchema) -> IndexPart:
    expression = part.expression
    collation = part.collation
    if part.column is not None:
        expression = nodes.ColumnReference(fold(table.columns[part.column].name))
    elif expression is not None:
        expression, collation = folded(expression), "BINARY"
    return IndexPart(None, expression, ANY, True, part.descending, collation)


def any_part(table: TableSchema, expression: nodes.Expression) -> tuple[LogicalType, bool, str]:
    """Expressions of indexes are compared by their trees; what they yield follows from these."""
    return ANY, True, "BINARY"
