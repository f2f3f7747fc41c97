"""Declared foreign keys resolved against the catalog.

A key may name a parent that does not exist yet, and may leave the parent's
columns out (its primary key, whatever that is when the key is used), so keys
are resolved whenever a statement is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quereus_store.errors import StatusCode, sql_error
from quereus_store.schema.objects import Catalog, ForeignKey, TableSchema, fold


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key between two tables that exist; the column positions correspond."""

    key: ForeignKey
    child: TableSchema
    parent: TableSchema
    child_columns: tuple[int, ...]
    parent_columns: tuple[int, ...]

    @property
    def self_referencing(self) -> bool:
        """Whether child and parent are one table."""
        return same_table(self.child, self.parent)

    def parent_names(self) -> list[str]:
        """The names of the referenced columns."""
        return [self.parent.columns[column].name for column in self.parent_columns]


def same_table(one: TableSchema, other: TableSchema) -> bool:
    """Whether two schemas are of the same table."""
    return fold(one.name) == fold(other.name) and fold(one.schema) == fold(other.schema)


def parent_name(child: TableSchema, key: ForeignKey) -> tuple[str, str]:
    """Schema and name of the parent; an unqualified one is in the child's schema."""
    return key.parent_schema or child.schema, key.parent_table


def resolve(catalog: Catalog, child: TableSchema, key: ForeignKey) -> Reference | None:
    """The key with its parent, None while that does not exist; raises ERROR for a key that does not fit."""
    schema, name = parent_name(child, key)
    parent = child if _is(child, schema, name) else catalog.table(schema, name)
    if parent is None:
        return None
    if key.parent_columns is None:
        columns = tuple([part.column for part in parent.primary_key.parts])
        if len(columns) != len(key.columns):
            raise sql_error(
                StatusCode.ERROR,
                f"Foreign key '{key.name}' on table '{child.qualified_name}': {len(key.columns)} column(s)"
                f" reference the primary key of '{parent.qualified_name}', which has {len(columns)}"
                " column(s).",
            )
    else:
        columns = _positions(child, key, parent, key.parent_columns)
    return Reference(key, child, parent, key.columns, columns)


def _is(table: TableSchema, schema: str, name: str) -> bool:
    return fold(table.name) == fold(name) and fold(table.schema) == fold(schema)


def _positions(
    child: TableSchema, key: ForeignKey, parent: TableSchema, names: Sequence[str]
) -> tuple[int, ...]:
    if len(names) != len(key.columns):
        raise sql_error(
            StatusCode.ERROR,
            f"FK constraint '{key.name}' on table '{child.name}': child column count ({len(key.columns)})"
            f" does not match parent column count ({len(names)})",
        )
    positions: list[int] = []
    for name in names:
        found = parent.column_index(name)
        if found is None:
            raise sql_error(
                StatusCode.ERROR, f"Referenced column '{name}' not found in table '{parent.name}'"
            )
        positions.append(found)
    return tuple(positions)


def references_to(catalog: Catalog, parent: TableSchema) -> Iterator[Reference]:
    """The keys of all tables that refer to a table, in the order of the catalog."""
    for schema in catalog.schemas.values():
        for child in schema.tables.values():
            for key in child.foreign_keys:
                if _is(parent, *parent_name(child, key)):
                    found = resolve(catalog, child, key)
                    assert found is not None
                    yield found
