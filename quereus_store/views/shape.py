"""The shape of a maintained table: its columns and its physical key, as the body gives them.

The *physical key* is what the body orders its rows by, followed by the rest of its
logical key; so reading the table without ORDER BY gives the order of the body.  A body
over one source that does not sort has the order of the source's key.

Chapter: views-and-maintained-tables, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.plan.expressions import Column
from quereus_store.schema.objects import (
    CollationRank,
    ColumnSchema,
    KeyPart,
    PrimaryKey,
    TableSchema,
)
from quereus_store.types import ANY, NULL
from quereus_store.types import CollationRank as Rank
from quereus_store.views.body import Body, scans
from quereus_store.views.coarsening import keeps_coarsened_key
from quereus_store.views.facts import output_for


def body_columns(body: Body, names: Sequence[str] | None) -> tuple[ColumnSchema, ...]:
    """The columns of a table that holds a body's rows, under its own names or these."""
    given = names or [column.name for column in body.plan.columns]
    return tuple([_column(column, name) for column, name in zip(body.plan.columns, given, strict=True)])


def distinct_columns(body: Body, names: Sequence[str] | None) -> tuple[ColumnSchema, ...]:
    """The same for a table that is going to be made or reshaped; raises ERROR for a name that comes twice."""
    columns = body_columns(body, names)
    known: set[str] = set()
    for column in columns:
        if column.name.lower() in known:
            raise sql_error(StatusCode.ERROR, f"Duplicate column name: {column.name}")
        known.add(column.name.lower())
    return columns


def _column(column: Column, name: str) -> ColumnSchema:
    logical_type = ANY if column.type is NULL else column.type
    collation, rank = "BINARY", CollationRank.DEFAULT
    if column.collation is not None and (logical_type.is_textual or logical_type is ANY):
        collation = column.collation.name
        if column.collation.rank is not Rank.DEFAULT:
            rank = CollationRank.DECLARED
    return ColumnSchema(name, logical_type, logical_type.name, column.nullable, collation, rank)


def physical_key(body: Body, columns: Sequence[ColumnSchema]) -> PrimaryKey:
    """The key under which the rows are stored; for a bag, all columns."""
    parts: dict[int, KeyPart] = {}
    for position, descending in _seed(body, columns):
        parts.setdefault(position, KeyPart(position, descending, columns[position].collation))
    rest = range(len(columns)) if body.key is None else body.key
    for position in rest:
        parts.setdefault(position, KeyPart(position, False, columns[position].collation))
    return PrimaryKey(tuple(parts.values()))


def _seed(body: Body, columns: Sequence[ColumnSchema]) -> list[tuple[int, bool]]:
    """The leading columns of the body's own order, as far as they are output columns."""
    facts = body.facts
    outputs = [column.id for column in body.plan.columns]
    if not facts.order or body.is_coarsened or (body.key == () and len(list(scans(body.plan))) == 1):
        return []
    constant = facts.closure(())
    seed = []
    for column, descending, collation in facts.order:
        if column in constant:
            continue
        output = output_for(facts, column, outputs)
        if output is None:
            break
        position = outputs.index(output)
        if columns[position].type.is_textual and columns[position].collation != collation:
            break
        seed.append((position, descending))
    return seed


def with_key_collation(
    columns: tuple[ColumnSchema, ...], key: PrimaryKey, arguments: Mapping[str, Any]
) -> tuple[tuple[ColumnSchema, ...], PrimaryKey]:
    """Text key columns that no collation was asked for take the one that USING names."""
    wanted = arguments.get("collation")
    if not isinstance(wanted, str):
        return columns, key
    name = wanted.upper()
    implicit = {
        part.column
        for part in key.parts
        if columns[part.column].type.is_textual
        and columns[part.column].collation_rank is CollationRank.DEFAULT
    }
    changed = tuple(
        [
            ColumnSchema(column.name, column.type, column.declared_type, column.nullable, name)
            if position in implicit
            else column
            for position, column in enumerate(columns)
        ]
    )
    parts = [KeyPart(part.column, part.descending, changed[part.column].collation) for part in key.parts]
    return changed, PrimaryKey(tuple(parts))


def seeded(table: TableSchema, body: Body) -> frozenset[int]:
    """The columns that ORDER BY alone has put into the key, which are NOT NULL although the body's are not.

    They were NOT NULL when the table was made and stay so: a NULL fails the change that brings it
    (views-and-maintained-tables, section 4).
    """
    if len(table.columns) != len(body.plan.columns):
        return frozenset()
    return frozenset(
        [
            part.column
            for part in table.primary_key.parts
            if part.column not in (body.key or ())
            and not table.columns[part.column].nullable
            and body.plan.columns[part.column].nullable
        ]
    )


def same_shape(table: TableSchema, body: Body, not_null: frozenset[int] = frozenset()) -> bool:
    """Whether a table has the columns that a body gives; of some it is known that they stay NOT NULL."""
    names = [column.name for column in table.columns]
    if len(names) != len(body.plan.columns):
        return False
    assert table.derivation is not None
    given = table.derivation.columns or [column.name for column in body.plan.columns]
    columns, _ = with_key_collation(body_columns(body, given), table.primary_key, table.module_arguments)
    columns = keeping_not_null(columns, not_null)
    return [_outline(column) for column in columns] == [_outline(column) for column in table.columns]


def keeping_not_null(
    columns: tuple[ColumnSchema, ...], positions: frozenset[int]
) -> tuple[ColumnSchema, ...]:
    """The columns, some of which stay NOT NULL."""
    if not positions:
        return columns
    return tuple(
        [
            replace(column, nullable=False) if position in positions else column
            for position, column in enumerate(columns)
        ]
    )


def _outline(column: ColumnSchema) -> tuple[object, ...]:
    return column.name, column.type, column.nullable, column.collation


def keeps_key(table: TableSchema, body: Body) -> bool:
    """Whether the stored key still is a key of the body's rows."""
    ids = [column.id for column in body.plan.columns]
    return body.facts.is_key([ids[part.column] for part in table.primary_key.parts]) or keeps_coarsened_key(
        table, body
    )
