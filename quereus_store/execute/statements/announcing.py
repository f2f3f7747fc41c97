"""What schema statements announce: one event each, for tables, indexes and columns.

Silent are views, assertions and tags, and the attaching and detaching of derivations.  A materialized view
is a table, whichever form made it.  An ALTER TABLE announces its own text, canonical, with the table's
name as it was before, qualified outside of ``main``.

Chapter: store-and-modules, section 11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from quereus_store.execute.notification.events import SchemaEvent
from quereus_store.execute.transactions import Transaction
from quereus_store.schema.manager import MAIN
from quereus_store.schema.objects import IndexSchema, TableSchema, fold
from quereus_store.sql import nodes, render

_Names = Mapping[str, Any]
_Describe = Callable[[TableSchema, Any], tuple[str, str, _Names]]


def announce_table(transaction: Transaction, what: Literal["create", "drop"], table: TableSchema) -> None:
    """CREATE and DROP of a table or materialized view."""
    transaction.announced.append(SchemaEvent(what, "table", table.module, fold(table.schema), table.name))


def announce_index(
    transaction: Transaction, what: Literal["create", "drop"], table: TableSchema, index: IndexSchema
) -> None:
    """CREATE INDEX and DROP INDEX."""
    transaction.announced.append(SchemaEvent(what, "index", table.module, fold(table.schema), index.name))


def announce_alteration(transaction: Transaction, table: TableSchema, statement: nodes.AlterTable) -> None:
    """ALTER TABLE, if its form is one that is announced; ``table`` is the table before."""
    describe = _ALTERATIONS.get(type(statement.action))
    if describe is None:
        return
    what, kind, names = describe(table, statement.action)
    schema = None if fold(table.schema) == MAIN else table.schema
    text = render(replace(statement, name=nodes.ObjectName(table.name, schema)))
    details = {"object_name": table.name, **names}
    transaction.announced.append(
        SchemaEvent(what, kind, table.module, fold(table.schema), ddl=text, **details)  # type: ignore[arg-type]
    )


def _table(table: TableSchema, action: Any) -> tuple[str, str, _Names]:
    return "alter", "table", {}


def _renamed_table(table: TableSchema, action: nodes.RenameTable) -> tuple[str, str, _Names]:
    return "alter", "table", {"object_name": action.new_name, "old_object_name": table.name}


def _renamed_column(table: TableSchema, action: nodes.RenameColumn) -> tuple[str, str, _Names]:
    old = _stored(table, action.old_name)
    return "alter", "column", {"column_name": action.new_name, "old_column_name": old}


def _added_column(table: TableSchema, action: nodes.AddColumn) -> tuple[str, str, _Names]:
    return "alter", "column", {"column_name": action.definition.name}


def _dropped_column(table: TableSchema, action: nodes.DropColumn) -> tuple[str, str, _Names]:
    return "drop", "column", {"column_name": _stored(table, action.column)}


def _altered_column(table: TableSchema, action: Any) -> tuple[str, str, _Names]:
    return "alter", "column", {"column_name": _stored(table, action.column)}


def _stored(table: TableSchema, name: str) -> str:
    """A column's name as the table spells it."""
    position = table.column_index(name)
    return name if position is None else table.columns[position].name


_ALTERATIONS: Mapping[type[nodes.AlterAction], _Describe] = MappingProxyType(
    {
        nodes.RenameTable: _renamed_table,
        nodes.RenameColumn: _renamed_column,
        nodes.AddColumn: _added_column,
        nodes.DropColumn: _dropped_column,
        nodes.SetNotNull: _altered_column,
        nodes.DropNotNull: _altered_column,
        nodes.SetDataType: _altered_column,
        nodes.SetDefault: _altered_column,
        nodes.DropDefault: _altered_column,
        nodes.SetCollation: _altered_column,
        nodes.AlterPrimaryKey: _table,
        nodes.AddConstraint: _table,
        nodes.DropConstraint: _table,
        nodes.RenameConstraint: _table,
    }
)
