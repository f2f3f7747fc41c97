"""Foreign keys between logical tables (view-updates-and-lenses, section 14).

A logical foreign key refers to a logical table of its own schema, or to whatever table another schema has
under the name.  The child side is a predicate of the child's row; the parent side is found by looking
through all logical tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quereus_store.plan.binder.logical_syntax import ROW, all_of, any_of, column, equal, exists, negated
from quereus_store.schema.manager import find_in_schema, parent_key, views_of
from quereus_store.schema.objects import (
    Catalog,
    ForeignKey,
    Operation,
    ReferentialAction,
    TableSchema,
    ViewSchema,
    fold,
)
from quereus_store.sql import nodes


@dataclass(frozen=True, slots=True)
class Referrer:
    """A foreign key of a logical table, with the columns of both sides in pairs."""

    child: TableSchema
    key: ForeignKey
    child_columns: tuple[str, ...]
    parent_columns: tuple[str, ...]

    def action(self, operation: Operation) -> ReferentialAction:
        """What an operation on the parent does."""
        return self.key.on_delete if operation is Operation.DELETE else self.key.on_update


def parent_table(catalog: Catalog, child: TableSchema, key: ForeignKey) -> TableSchema | None:
    """The (logical) table that a foreign key refers to."""
    found = find_in_schema(catalog, key.parent_schema or child.schema, key.parent_table)
    if isinstance(found, ViewSchema):
        return found.logical.table if found.logical is not None else None
    return found


def referrers(catalog: Catalog, parent: TableSchema) -> list[Referrer]:
    """The foreign keys of logical tables that refer to a logical table."""
    found: list[Referrer] = []
    for view in views_of(catalog):
        if view.logical is None:
            continue
        child = view.logical.table
        for key in child.foreign_keys:
            schema = key.parent_schema or child.schema
            if (fold(schema), fold(key.parent_table)) != (fold(parent.schema), fold(parent.name)):
                continue
            columns = parent_key(parent, key)
            if columns is not None and len(columns) == len(key.columns):
                found.append(Referrer(child, key, _names(child, key.columns), _names(parent, columns)))
    return found


def _names(table: TableSchema, columns: Sequence[int]) -> tuple[str, ...]:
    return tuple([table.columns[position].name for position in columns])


def child_predicate(catalog: Catalog, child: TableSchema, key: ForeignKey) -> nodes.Expression:
    """``a column is null or exists (select 1 from the parent where its key is the row's)``."""
    names = _names(child, key.columns)
    absent = [nodes.IsTest(column(ROW, name), nodes.IsTarget.NULL) for name in names]
    parent = parent_table(catalog, child, key)
    columns = None if parent is None else parent_key(parent, key)
    if parent is None or columns is None or len(columns) != len(names):
        return any_of(absent)
    there = nodes.TableReference(parent.name, parent.schema, "\0parent")
    pairs = [
        equal(column("\0parent", own), column(ROW, name))
        for own, name in zip(_names(parent, columns), names, strict=True)
    ]
    return any_of([*absent, exists(there, all_of(pairs))])


def unreferred_predicate(referrer: Referrer, *, changing: bool) -> nodes.Expression:
    """``no child refers to the old row``; for an UPDATE only where its key changes."""
    there = nodes.TableReference(referrer.child.name, referrer.child.schema, "\0child")
    pairs = [
        equal(column("\0child", own), column("old", name))
        for own, name in zip(referrer.child_columns, referrer.parent_columns, strict=True)
    ]
    free = negated(exists(there, all_of(pairs)))
    if not changing:
        return free
    kept = [
        nodes.IsDistinctFrom(column("old", name), column("new", name), negated=True)
        for name in referrer.parent_columns
    ]
    return any_of([all_of(kept), free])
