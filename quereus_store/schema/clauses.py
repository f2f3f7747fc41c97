"""Clauses of a definition to parts of schema objects: keys, CHECK, UNIQUE, FOREIGN KEY, tags, arguments.

Used by CREATE TABLE and by ALTER TABLE alike.  Chapter: alter-and-ddl-lifecycle, sections 3 and 4.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.schema.constraints import (
    backing_name,
    column_check_name,
    foreign_key_name,
    is_minted,
    mint,
)
from quereus_store.schema.objects import (
    NO_TAGS,
    CheckConstraint,
    ColumnSchema,
    ConflictAction,
    ForeignKey,
    KeyPart,
    Operation,
    PrimaryKey,
    ReferentialAction,
    TableSchema,
    Tags,
    UniqueConstraint,
    fold,
)
from quereus_store.sql import nodes
from quereus_store.types.json import render_json

_ALWAYS = frozenset((Operation.INSERT, Operation.UPDATE))


def tags_of(tags: Iterable[nodes.Tag]) -> Tags:
    """Tags as a mapping; of a repeated key the last one counts."""
    found = {tag.key: tag.value.value for tag in tags}
    return MappingProxyType(found) if found else NO_TAGS


def key_parts(written: Sequence[nodes.KeyColumn], columns: Sequence[ColumnSchema]) -> tuple[KeyPart, ...]:
    """The parts of a table-level PRIMARY KEY; raises ERROR for unknown and repeated columns."""
    positions = {fold(column.name): position for position, column in enumerate(columns)}
    parts: list[KeyPart] = []
    for part in written:
        position = positions.get(fold(part.name))
        if position is None:
            raise sql_error(
                StatusCode.ERROR,
                f"PRIMARY KEY column '{part.name}' not found in table definition",
                part.position,
            )
        if any(other.column == position for other in parts):
            raise sql_error(
                StatusCode.ERROR,
                f"Duplicate column '{part.name}' in PRIMARY KEY definition",
                part.position,
            )
        collation = part.collation.upper() if part.collation else columns[position].collation
        parts.append(KeyPart(position, part.descending, collation))
    return tuple(parts)


def all_columns_key(columns: Sequence[ColumnSchema]) -> PrimaryKey:
    """The key of a table that declares none."""
    parts = tuple(KeyPart(position, False, column.collation) for position, column in enumerate(columns))
    return PrimaryKey(parts, declared=False)


def check_constraint(
    table: TableSchema, node: nodes.CheckConstraint, position: int | None, taken: set[str]
) -> CheckConstraint:
    """A CHECK; ``position`` is the column it stands on, ``taken`` the names that a minted one avoids."""
    name = node.name
    if name is None and position is not None:
        name = mint(column_check_name(table.columns[position].name), taken)
    operations = frozenset(Operation(operation.value) for operation in node.operations) or _ALWAYS
    return CheckConstraint(
        name or "",
        node.expression,
        operations,
        named=name is not None and not is_minted(name),
        positional=name is None,
        conflict=conflict_of(node.conflict_action),
        tags=tags_of(node.tags),
    )


def unique_constraint(
    table: TableSchema, node: nodes.ColumnUnique | nodes.UniqueConstraint, position: int | None
) -> UniqueConstraint:
    """A UNIQUE that leans on a hidden index; raises ERROR for unknown columns."""
    if isinstance(node, nodes.UniqueConstraint):
        columns = tuple(
            column_position(table, name, f"UNIQUE constraint column '{name}' not found", node.position)
            for name in node.columns
        )
    else:
        assert position is not None
        columns = (position,)
    name = node.name or backing_name(table.columns[column].name for column in columns)
    return UniqueConstraint(
        name,
        columns,
        name,
        named=node.name is not None,
        conflict=conflict_of(node.conflict_action),
        tags=tags_of(node.tags),
    )


def foreign_key(
    table: TableSchema,
    node: nodes.ColumnReferences | nodes.ForeignKeyConstraint,
    position: int | None,
    taken: set[str],
) -> ForeignKey:
    """A FOREIGN KEY; raises ERROR for unknown columns and when the numbers of columns differ."""
    if isinstance(node, nodes.ForeignKeyConstraint):
        columns = tuple(
            column_position(
                table, name, f"FK column '{name}' not found in table '{table.name}'", node.position
            )
            for name in node.columns
        )
    else:
        assert position is not None
        columns = (position,)
    reference = node.reference
    name = node.name or mint(
        foreign_key_name(table.name, (table.columns[column].name for column in columns)), taken
    )
    if reference.columns and len(reference.columns) != len(columns):
        raise sql_error(
            StatusCode.ERROR,
            f"FK constraint '{name}' on table '{table.name}': child column count ({len(columns)}) does not"
            f" match parent column count ({len(reference.columns)})",
            node.position,
        )
    parent_schema = reference.table.schema
    if parent_schema is not None and fold(parent_schema) == fold(table.schema):
        parent_schema = None
    return ForeignKey(
        name,
        columns,
        parent_schema,
        reference.table.name,
        reference.columns or None,
        on_delete=_action(reference.on_delete),
        on_update=_action(reference.on_update),
        named=not is_minted(name),
        deferred=bool(reference.initially_deferred),
        tags=tags_of(node.tags),
    )


def column_position(table: TableSchema, name: str, message: str, where: SourcePosition | None) -> int:
    """The place of a column; raises ERROR with this message where the table has none of the name."""
    position = table.column_index(name)
    if position is None:
        raise sql_error(StatusCode.ERROR, message, where)
    return position


def _action(action: nodes.ReferentialAction | None) -> ReferentialAction:
    return ReferentialAction(action.value) if action else ReferentialAction.RESTRICT


def conflict_of(action: nodes.ConflictAction | None) -> ConflictAction | None:
    """A written conflict clause; ABORT is what happens anyway."""
    if action is None or action is nodes.ConflictAction.ABORT:
        return None
    return ConflictAction(action.value)


def module_arguments(clause: nodes.ModuleClause) -> Mapping[str, Any]:
    """The arguments of USING by name; those without one are numbered, ``"0"``, ``"1"``, ..."""
    unnamed = itertools.count()
    arguments = {
        str(next(unnamed)) if argument.name is None else argument.name: argument.value.value
        for argument in clause.arguments
    }
    return MappingProxyType(arguments) if arguments else NO_TAGS


def plain_arguments(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Arguments out of a JSON object as a statement can say them: arrays and objects as their JSON text."""
    return {
        name: render_json(value) if isinstance(value, list | dict) else value
        for name, value in arguments.items()
    }


def type_text(spelled: nodes.TypeName | None) -> str | None:
    """A type as written."""
    if spelled is None:
        return None
    return f"{spelled.name}({', '.join(spelled.arguments)})" if spelled.arguments else spelled.name
