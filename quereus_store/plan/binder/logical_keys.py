"""Who keeps a key of a logical table (view-updates-and-lenses, section 14).

==============  ==========================================================================
class           the key is kept
==============  ==========================================================================
PROVED          by a key of the basis table that its columns contain
ROW_TIME        by a UNIQUE of the basis, which a fresh materialized view covers
COMMIT_TIME     by a check when the transaction commits
==============  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from quereus_store.plan.binder.logical_lineage import LogicalLineage
from quereus_store.schema.manager import tables_of
from quereus_store.schema.objects import Catalog, ConflictAction, TableSchema, fold
from quereus_store.sql import nodes


class KeyClass(Enum):
    """Who keeps a logical key."""

    PROVED = auto()
    ROW_TIME = auto()
    COMMIT_TIME = auto()


@dataclass(frozen=True, slots=True)
class LogicalKey:
    """A primary key or UNIQUE of a logical table, with who keeps it.

    ``label`` is what reports call it, ``name`` what its violation is called.  ``basis``
    are the columns of the basis table behind it, ``governing`` the basis key that
    keeps it, ``action`` what that does to a conflict; ``covering`` names a
    materialized view.
    """

    label: str
    name: str
    constraint: str | None
    columns: tuple[int, ...]
    conflict: ConflictAction | None
    kind: KeyClass
    basis: tuple[int, ...] | None = None
    governing: tuple[int, ...] | None = None
    action: ConflictAction | None = None
    covering: str | None = None


def logical_keys(catalog: Catalog, table: TableSchema, lineage: LogicalLineage) -> tuple[LogicalKey, ...]:
    """The keys that a logical table declares."""
    keys: list[LogicalKey] = []
    primary = table.primary_key
    if primary.declared:
        columns = tuple([part.column for part in primary.parts])
        keys.append(_classified(catalog, lineage, "primary key", "lens:pk", None, columns, primary.conflict))
    for unique in table.unique_constraints:
        name = f"lens:unique:{unique.name}" if unique.named else "lens:unique"
        own = unique.name if unique.named else None
        keys.append(_classified(catalog, lineage, "unique", name, own, unique.columns, unique.conflict))
    return tuple(keys)


def _classified(
    catalog: Catalog,
    lineage: LogicalLineage,
    label: str,
    name: str,
    constraint: str | None,
    columns: tuple[int, ...],
    conflict: ConflictAction | None,
) -> LogicalKey:
    basis = lineage.basis_columns(columns)
    table = lineage.spine
    kind, governing, action, covering = KeyClass.COMMIT_TIME, None, None, None
    if basis is not None and table is not None:
        for key, own_action in strict_keys(table):
            if set(key) <= set(basis) | lineage.pinned:
                kind, governing, action = KeyClass.PROVED, key, own_action
                break
        else:
            for key, own_action in _nullable_keys(table):
                found = covering_view(catalog, table, key) if set(key) == set(basis) else None
                if found is not None:
                    kind, governing, action, covering = KeyClass.ROW_TIME, key, own_action, found
                    break
    return LogicalKey(label, name, constraint, columns, conflict, kind, basis, governing, action, covering)


def strict_keys(table: TableSchema) -> Iterator[tuple[tuple[int, ...], ConflictAction | None]]:
    """The keys of a table that hold for every row: the primary key, and UNIQUE over NOT NULL columns."""
    yield tuple([part.column for part in table.primary_key.parts]), table.primary_key.conflict
    for columns, action in _uniques(table):
        if not any(table.columns[column].nullable for column in columns):
            yield columns, action


def _nullable_keys(table: TableSchema) -> Iterator[tuple[tuple[int, ...], ConflictAction | None]]:
    for columns, action in _uniques(table):
        if any(table.columns[column].nullable for column in columns):
            yield columns, action


def _uniques(table: TableSchema) -> Iterator[tuple[tuple[int, ...], ConflictAction | None]]:
    for unique in table.unique_constraints:
        index = table.index(unique.index)
        if index is None or index.where is None:
            yield unique.columns, unique.conflict
    for index in table.indexes:
        columns = tuple([part.column for part in index.parts if part.column is not None])
        if index.unique and index.where is None and not index.hidden and len(columns) == len(index.parts):
            yield columns, None


# --- covering views -----------------------------------------------------------------------------------------


def covering_view(catalog: Catalog, table: TableSchema, key: tuple[int, ...]) -> str | None:
    """A fresh maintained table ``select key, pk from t [where key is not null] order by key``."""
    for candidate in tables_of(catalog):
        if candidate.derivation is None or candidate.derivation.stale:
            continue
        if _covers(candidate.schema, candidate.derivation.query, table, key):
            return candidate.qualified_name
    return None


def _covers(schema: str, query: nodes.Query, table: TableSchema, key: tuple[int, ...]) -> bool:
    select = query.body
    if not isinstance(select, nodes.Select) or not isinstance(select.source, nodes.TableReference):
        return False
    if select.group_by or select.distinct or select.having or query.limit or query.offset:
        return False
    source = select.source
    if fold(source.name) != fold(table.name) or fold(source.schema or schema) != fold(table.schema):
        return False
    shown = [
        _position(table, item.expression) for item in select.items if isinstance(item, nodes.ResultColumn)
    ]
    primary = {part.column for part in table.primary_key.parts}
    if len(shown) != len(select.items) or set(shown[: len(key)]) != set(key) or not primary <= set(shown):
        return False
    ordered = [_position(table, term.expression) for term in query.order_by]
    if set(ordered[: len(key)]) != set(key):
        return False
    nullable = {column for column in key if table.columns[column].nullable}
    tested = set(_not_null_tests(table, select.where))
    return nullable <= tested if select.where is not None else not nullable


def _position(table: TableSchema, expression: nodes.Expression) -> int | None:
    return table.column_index(expression.column) if isinstance(expression, nodes.ColumnReference) else None


def _not_null_tests(table: TableSchema, where: nodes.Expression | None) -> Iterator[int]:
    if isinstance(where, nodes.BinaryOperation) and where.operator is nodes.BinaryOperator.AND:
        yield from _not_null_tests(table, where.left)
        yield from _not_null_tests(table, where.right)
    elif isinstance(where, nodes.IsTest) and where.negated and where.target is nodes.IsTarget.NULL:
        position = _position(table, where.operand)
        if position is not None:
            yield position
