"""ADD COLUMN (alter-and-ddl-lifecycle, section 8).

The new column comes last, so that nothing else moves.  Rows that are there already get a
value as they stream past: the converted literal DEFAULT, NULL, or, for any other DEFAULT and every
generated column, what its expression gives for the row.  Inline constraints are then judged
over these rows: CHECKs, UNIQUE, FOREIGN KEYs.

A table that declares no key keeps the key that it has, which from now on is a declared one: the
rows that it tells apart stay told apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import add
from typing import Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.dml.violations import check_violation, violation
from quereus_store.execute.statements.alter.alteration import Alteration, Transform
from quereus_store.execute.statements.alter.constraints import with_unique
from quereus_store.execute.statements.alter.programs import RowProgram
from quereus_store.execute.statements.alter.references import check_key, check_orphans
from quereus_store.execute.statements.definitions import (
    check_expressions,
    table_settings,
    table_surroundings,
)
from quereus_store.plan.binder.rows import bind_check, bind_default, bind_generated, new_row
from quereus_store.plan.binder.scopes import RowImage, image_of
from quereus_store.plan.expressions import BoundExpression, ColumnRef, Literal, subplans, walk
from quereus_store.schema.builder import build_column
from quereus_store.schema.clauses import check_constraint, foreign_key, unique_constraint
from quereus_store.schema.constraints import (
    IndexChange,
    check_constraint_name,
    constraint_names,
    number_checks,
)
from quereus_store.schema.expressions import (
    check_check,
    check_default,
    default_value,
    generation_order,
)
from quereus_store.schema.objects import (
    CheckConstraint,
    ColumnSchema,
    ForeignKey,
    Operation,
    TableSchema,
    UniqueConstraint,
    fold,
)
from quereus_store.schema.tags import TagSite, check_tags
from quereus_store.sql import nodes
from quereus_store.types import convert_column

_NAMED = (nodes.CheckConstraint, nodes.ColumnUnique, nodes.ColumnReferences)


@dataclass(frozen=True, slots=True)
class _Addition:
    """A table with its new column, and the constraints that came with it."""

    table: TableSchema
    checks: tuple[CheckConstraint, ...]
    uniques: tuple[UniqueConstraint, ...]
    keys: tuple[ForeignKey, ...]

    @property
    def column(self) -> ColumnSchema:
        """The new column."""
        return self.table.columns[-1]


def add_column(alteration: Alteration, action: nodes.AddColumn) -> None:
    """Add a column at the end, fill it for the rows that are there, judge its constraints."""
    definition = action.definition
    _check_tags(alteration, definition)
    addition = _addition(alteration, definition)
    _check_expressions(alteration, addition)
    table = addition.table
    empty = alteration.is_empty()
    value, transform = (None, None) if empty else _backfill(alteration, addition)
    changes = IndexChange(table)
    for unique in addition.uniques:
        change = with_unique(changes.table, unique, _unique_label(table, unique))
        changes = IndexChange(change.table, (*changes.build, *change.build))
    if transform is None:
        stored = alteration.append_column(table, value)
    else:
        stored = alteration.rewrite(table, transform)
    _judge(alteration, stored, addition, transform is not None)
    alteration.publish(alteration.carry_out(stored, changes))
    for key in addition.keys:
        check_orphans(alteration, table, key)


# --- definition -------------------------------------------------------------------------------------------


def _check_tags(alteration: Alteration, definition: nodes.ColumnDefinition) -> None:
    check_tags(definition.tags, TagSite.COLUMN, alteration.position)
    for constraint in definition.constraints:
        check_tags(constraint.tags, TagSite.CONSTRAINT, alteration.position)


def _addition(alteration: Alteration, definition: nodes.ColumnDefinition) -> _Addition:
    table = alteration.table
    if table.column_index(definition.name) is not None:
        raise alteration.error(
            StatusCode.ERROR, f"Column '{definition.name}' already exists in table '{table.name}'"
        )
    if any(isinstance(constraint, nodes.ColumnPrimaryKey) for constraint in definition.constraints):
        raise alteration.error(StatusCode.ERROR, "Cannot add a PRIMARY KEY column via ALTER TABLE")
    session, transaction = alteration.session, alteration.transaction
    column = build_column(definition, table_settings(session), table_surroundings(session, transaction))
    new = replace(
        table,
        columns=(*table.columns, column),
        primary_key=replace(table.primary_key, declared=True),
    )
    checks, uniques, keys = _constraints(alteration, new, definition)
    new = replace(
        new,
        checks=number_checks((*table.checks, *checks)),
        foreign_keys=(*table.foreign_keys, *keys),
    )
    return _Addition(new, checks, uniques, keys)


def _constraints(
    alteration: Alteration, table: TableSchema, definition: nodes.ColumnDefinition
) -> tuple[tuple[CheckConstraint, ...], tuple[UniqueConstraint, ...], tuple[ForeignKey, ...]]:
    """The column's inline constraints, under names that are free."""
    position = len(table.columns) - 1
    _check_arity(alteration, definition)
    seen: set[str] = set()
    for constraint in definition.constraints:
        if isinstance(constraint, _NAMED) and constraint.name is not None:
            check_constraint_name(table, constraint.name, seen)
            seen.add(fold(constraint.name))
    taken = constraint_names(table) | seen
    checks, uniques, keys = [], [], []
    for constraint in definition.constraints:
        match constraint:
            case nodes.CheckConstraint():
                checks.append(check_constraint(table, constraint, position, taken))
            case nodes.ColumnUnique():
                uniques.append(unique_constraint(table, constraint, position))
            case nodes.ColumnReferences():
                keys.append(foreign_key(table, constraint, position, taken))
    return tuple(checks), tuple(uniques), tuple(keys)


def _check_arity(alteration: Alteration, definition: nodes.ColumnDefinition) -> None:
    for constraint in definition.constraints:
        if not isinstance(constraint, nodes.ColumnReferences) or len(constraint.reference.columns) in (0, 1):
            continue
        name = f" '{constraint.name}'" if constraint.name is not None else ""
        raise alteration.error(
            StatusCode.ERROR,
            f"FOREIGN KEY{name} on ADD COLUMN '{definition.name}': child column count (1) does not match"
            f" parent column count ({len(constraint.reference.columns)})",
        )


def _unique_label(table: TableSchema, unique: UniqueConstraint) -> str:
    column = table.columns[-1].name
    what = f"constraint '{unique.name}' column" if unique.named else "UNIQUE column"
    return f"add {what} '{column}' to table '{table.name}'"


def _check_expressions(alteration: Alteration, addition: _Addition) -> None:
    """The rules of the new expressions, as at CREATE TABLE."""
    table, column = addition.table, addition.column
    generation_order(table)
    check_default(table, column)
    for check in addition.checks:
        check_check(table, check.name, check.expression)
    check_expressions(alteration.session, alteration.transaction, replace(table, checks=addition.checks))
    default_value(column)
    for key in addition.keys:
        check_key(alteration, table, key)


# --- values for the rows that are there -------------------------------------------------------------------


def _backfill(alteration: Alteration, addition: _Addition) -> tuple[Any, Transform | None]:
    """The value that all rows get, or else what extends each by a value computed from it."""
    column = addition.column
    is_literal, value = default_value(column)
    if column.generated is None and (column.default is None or is_literal):
        if value is None and not column.nullable:
            raise _no_value(alteration, addition)
        return value, None
    expression, program = _row_source(alteration, addition)
    if column.generated is None and not column.nullable and _is_null(expression, program):
        raise _no_value(alteration, addition)
    return None, _append_computed(addition, expression, program)


def _no_value(alteration: Alteration, addition: _Addition) -> Error:
    return alteration.error(
        StatusCode.CONSTRAINT,
        f"NOT NULL constraint failed for column '{addition.column.name}' added to"
        f" {addition.table.qualified_name} — column has no DEFAULT and existing rows cannot be backfilled",
    )


def _row_source(alteration: Alteration, addition: _Addition) -> tuple[BoundExpression, RowProgram]:
    """The column's expression over a row as it was, and its program."""
    table = addition.table
    session, transaction = alteration.session, alteration.transaction
    context = session.bind_context(transaction, {})
    row = new_row(context, table)
    if addition.column.generated is not None:
        expression = bind_generated(context, table, len(row) - 1, row)
    else:
        variables = absent_variables(table)
        expression = bind_default(context, table, addition.column, image_of(row[:-1]), variables)
    return expression, RowProgram(session, transaction, context, row[:-1], (expression,))


def absent_variables(table: TableSchema) -> RowImage:
    """The mutation context where no statement gives one: NULL, or an error where a value is needed."""
    return {
        fold(variable.name): Literal(variable.type, True, None, None)
        if variable.nullable
        else sql_error(
            StatusCode.ERROR,
            f"table '{table.qualified_name}' requires mutation context variable '{variable.name}';"
            f" supply it with `with context {variable.name} = …`",
        )
        for variable in table.context
    }


def _is_null(expression: BoundExpression, program: RowProgram) -> bool:
    """Whether an expression is NULL whatever the row."""
    if any(isinstance(part, ColumnRef) for part in walk(expression)) or any(
        True for _ in subplans(expression)
    ):
        return False
    return program([()])[0][0] is None


def _append_computed(addition: _Addition, expression: BoundExpression, program: RowProgram) -> Transform:
    table, column = addition.table, addition.column

    def transform(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        values = [value for (value,) in program(rows)]
        values = convert_column(values, column.type, column.name, expression.type)
        if not column.nullable and None in values:
            message = (
                f"NOT NULL constraint failed: backfilling column '{table.name}.{column.name}' produced NULL"
                " for an existing row"
            )
            raise violation(message, table, "not null", [len(table.columns) - 1])
        return list(map(add, rows, zip(values, strict=True)))

    return transform


# --- constraints over the rows that are there -------------------------------------------------------------


def _judge(alteration: Alteration, stored: TableSchema, addition: _Addition, filled_by_row: bool) -> None:
    """Raise CONSTRAINT for a row that an inline CHECK refuses."""
    for check, program in _violations(alteration, stored, addition.checks):
        for batch in alteration.batches(stored):
            if not any(fails for (fails,) in program(batch)):
                continue
            if filled_by_row:
                raise check_violation(stored, check).located(alteration.position)
            message = (
                f"CHECK constraint '{check.name}' violated by backfilled rows in ALTER TABLE ADD COLUMN on"
                f" '{stored.name}'"
            )
            error = violation(message, stored, "check", [len(stored.columns) - 1], check.name)
            raise error.located(alteration.position)


def _violations(
    alteration: Alteration, table: TableSchema, checks: tuple[CheckConstraint, ...]
) -> Iterator[tuple[CheckConstraint, RowProgram]]:
    """The checks that judge new rows, each with a program that says of every row whether it fails."""
    for check in checks:
        if Operation.INSERT not in check.operations and Operation.UPDATE not in check.operations:
            continue
        context = alteration.context(table)
        row, old = new_row(context, table), new_row(context, table)
        negated = nodes.UnaryOperation(nodes.UnaryOperator.NOT, check.expression)
        failing = bind_check(
            context,
            table,
            replace(check, expression=negated),
            Operation.INSERT,
            row,
            old,
            absent_variables(table),
        )
        yield check, RowProgram(alteration.session, alteration.transaction, context, row, (failing,))
