"""ALTER COLUMN: nullability, type, default, collation (alter-and-ddl-lifecycle, section 11).

What an index or key knows of a column (type, nullability, collation) changes with the column.
Values that a form rewrites are followed by the generated columns that are computed from them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quereus_store.errors import StatusCode
from quereus_store.execute.dml.checks import current_table
from quereus_store.execute.dml.violations import not_null_violation, violation
from quereus_store.execute.statements.alter.alteration import Alteration, Transform
from quereus_store.execute.statements.alter.programs import RowProgram
from quereus_store.execute.statements.definitions import check_expressions
from quereus_store.execute.transactions import Transaction
from quereus_store.plan.binder.rows import bind_generated, new_row
from quereus_store.schema.clauses import type_text
from quereus_store.schema.expressions import (
    check_default,
    default_value,
    generated_sources,
    generation_order,
)
from quereus_store.schema.objects import (
    CollationRank,
    ColumnSchema,
    IndexPart,
    KeyPart,
    TableSchema,
)
from quereus_store.sql import nodes
from quereus_store.types import convert_column, honours_collation, retype_column


def set_not_null(alteration: Alteration, action: nodes.SetNotNull) -> None:
    """Forbid NULL; rows that have it take a literal DEFAULT."""
    position, column = alteration.column(action.column)
    is_literal, value = default_value(column)
    new = with_column(alteration.table, position, replace(column, nullable=False))
    if is_literal and value is not None:
        _rewrite_values(alteration, new, position, lambda values: _filled(values, value))
        return
    for batch in alteration.batches(alteration.table):
        if None in [row[position] for row in batch]:
            message = f"column {column.name} contains NULL values"
            raise violation(message, alteration.table, "not null", [position]).located(alteration.position)
    alteration.publish(alteration.rewrite(new))


def _filled(values: list[Any], value: Any) -> list[Any]:
    return [value if found is None else found for found in values]


def drop_not_null(alteration: Alteration, action: nodes.DropNotNull) -> None:
    """Admit NULL, in key columns too."""
    position, column = alteration.column(action.column)
    if column.nullable:
        return
    new = with_column(alteration.table, position, replace(column, nullable=True, not_null_conflict=None))
    alteration.publish(alteration.rewrite(new))


def set_data_type(alteration: Alteration, action: nodes.SetDataType) -> None:
    """Convert every value to another type; another name of the same type changes the schema only."""
    table = alteration.table
    position, column = alteration.column(action.column)
    if any(part.column == position for part in table.primary_key.parts):
        raise alteration.error(
            StatusCode.CONSTRAINT, f"Cannot SET DATA TYPE on PRIMARY KEY column '{column.name}'"
        )
    engine = alteration.engine
    new_type = engine.types.resolve(action.type_name.name)
    engine.collations.check_column(column.collation, new_type, column.name, alteration.position)
    written = type_text(action.type_name)
    retyped = replace(column, type=new_type, declared_type=written)
    default_value(retyped)
    new = with_column(table, position, retyped)
    if new_type is column.type:
        alteration.publish(new)
        return
    name = written or new_type.name
    _rewrite_values(
        alteration, new, position, lambda values: retype_column(values, new_type, column.name, name)
    )


def set_default(alteration: Alteration, action: nodes.SetDefault) -> None:
    """Another DEFAULT for rows to come; raises ERROR for a generated column."""
    position, column = alteration.column(action.column)
    if column.generated is not None:
        raise alteration.error(
            StatusCode.ERROR,
            f"Column '{column.name}' cannot have both DEFAULT and GENERATED ALWAYS AS",
        )
    changed = replace(column, default=action.expression)
    new = with_column(alteration.table, position, changed)
    check_default(new, changed)
    only = tuple(
        other if place == position else replace(other, default=None)
        for place, other in enumerate(new.columns)
    )
    check_expressions(alteration.session, alteration.transaction, replace(new, columns=only, checks=()))
    default_value(changed)
    alteration.publish(new)


def drop_default(alteration: Alteration, action: nodes.DropDefault) -> None:
    """No DEFAULT any more."""
    position, column = alteration.column(action.column)
    if column.default is not None:
        alteration.publish(with_column(alteration.table, position, replace(column, default=None)))


def set_collation(alteration: Alteration, action: nodes.SetCollation) -> None:
    """Compare a column otherwise: its key, its UNIQUEs and all indexes over it are sorted anew."""
    position, column = alteration.column(action.column)
    name = alteration.engine.collations.check_column(
        action.collation, column.type, column.name, alteration.position
    )
    changed = replace(column, collation=name, collation_rank=CollationRank.DECLARED)
    new = with_column(alteration.table, position, changed)
    if not honours_collation(column.type):
        alteration.publish(new)
        return
    stored = alteration.rewrite(new)
    alteration.publish(stored)
    _judge_at_commit(alteration, stored)


# --- a column and what knows of it ------------------------------------------------------------------------


def with_column(table: TableSchema, position: int, column: ColumnSchema) -> TableSchema:
    """The table with another column at a position, and what keys and indexes know of it."""
    old = table.columns[position]
    recollated = column.collation != old.collation
    columns = (*table.columns[:position], column, *table.columns[position + 1 :])

    def key_part(part: KeyPart) -> KeyPart:
        if part.column != position or not recollated:
            return part
        return replace(part, collation=column.collation)

    def index_part(part: IndexPart) -> IndexPart:
        if part.column != position:
            return part
        part = replace(part, type=column.type, nullable=column.nullable)
        return replace(part, collation=column.collation) if recollated else part

    return replace(
        table,
        columns=columns,
        primary_key=replace(table.primary_key, parts=tuple(map(key_part, table.primary_key.parts))),
        indexes=tuple(replace(index, parts=tuple(map(index_part, index.parts))) for index in table.indexes),
    )


# --- values -----------------------------------------------------------------------------------------------


def _rewrite_values(alteration: Alteration, new: TableSchema, position: int, change: Any) -> None:
    """Give a column new values, and the generated columns that read it what follows from them."""

    def changed(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        values = [row[position] for row in rows]
        return [
            (*row[:position], value, *row[position + 1 :])
            for row, value in zip(rows, change(values), strict=True)
        ]

    followers = [_recomputed(alteration, new, place) for place in dependents(new, position)]

    def transform(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        rows = changed(rows)
        for follower in followers:
            rows = follower(rows)
        return rows

    stored = alteration.rewrite(new, transform)
    alteration.publish(stored)
    _judge_at_commit(alteration, stored)


def _judge_at_commit(alteration: Alteration, table: TableSchema) -> None:
    """Let the assertions that read the table have their say: its values are others, or compare otherwise."""
    guard = alteration.session.assertions

    def judge(transaction: Transaction) -> None:
        now = current_table(transaction.catalog, table)
        if now is not None and transaction.catalog.has_assertions:
            guard.check_readers(transaction, now)

    alteration.transaction.deferred.append(judge)


def dependents(table: TableSchema, position: int) -> tuple[int, ...]:
    """The generated columns that read a column, directly or not, in the order of their computation."""
    reached = {position}
    found = []
    for place in generation_order(table):
        if place != position and not reached.isdisjoint(generated_sources(table, table.columns[place])):
            reached.add(place)
            found.append(place)
    return tuple(found)


def _recomputed(alteration: Alteration, table: TableSchema, position: int) -> Transform:
    """Rows with a generated column computed anew."""
    column = table.columns[position]
    context = alteration.session.bind_context(alteration.transaction, {})
    row = new_row(context, table)
    expression = bind_generated(context, table, position, row)
    program = RowProgram(alteration.session, alteration.transaction, context, row, (expression,))

    def transform(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        values = convert_column([value for (value,) in program(rows)], column.type, column.name)
        if not column.nullable and None in values:
            raise not_null_violation(table, position).located(alteration.position)
        return [
            (*row[:position], value, *row[position + 1 :]) for row, value in zip(rows, values, strict=True)
        ]

    return transform
