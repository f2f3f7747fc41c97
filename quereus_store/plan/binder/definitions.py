"""The expressions of a table's definition, bound once so that what is wrong shows at CREATE TABLE.

A CHECK may name what does not exist yet (it is bound for good at the first
write), so only what can never become right is refused: parameters and
functions that are not deterministic.  The same holds for a DEFAULT that reads
supplied values, context variables or other tables.  Whether such a DEFAULT, or a CHECK that
changes rows, is deterministic, is judged with the statement that evaluates it.

Chapter: alter-and-ddl-lifecycle, section 3 (checks 9 to 11).
"""

from __future__ import annotations

from dataclasses import replace

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.plan.binder.context import BindContext
from quereus_store.plan.binder.rows import (
    bind_check,
    bind_default,
    bind_generated,
    checks_for,
    generated_order,
    new_row,
)
from quereus_store.plan.expressions import Literal
from quereus_store.schema.manager import put_table
from quereus_store.schema.objects import ColumnSchema, Operation, TableSchema, fold
from quereus_store.sql import nodes, traversal
from quereus_store.sql.clock import clock_call
from quereus_store.types import NULL


def check_table_expressions(context: BindContext, table: TableSchema) -> None:
    """Raise what the defaults, generated columns and checks of a table cannot be forgiven."""
    context = replace(context, catalog=put_table(context.catalog, table))
    row = new_row(context, table)
    for position in generated_order(table):
        bind_generated(context, table, position, row)
    _check_defaults(context, table)
    old = new_row(context, table)
    for operation in Operation:
        for check in checks_for(table, operation):
            try:
                bind_check(context, table, check, operation, row, old)
            except Error as failure:
                judged_later = _is_determinism(failure) and _changes_rows(check.expression)
                if not (judged_later or _may_become_right(failure)):
                    raise


def _check_defaults(context: BindContext, table: TableSchema) -> None:
    unknown = Literal(NULL, True, None, None)
    supplied = {fold(column.name): unknown for column in table.columns}
    variables = {fold(variable.name): unknown for variable in table.context}
    for column in table.columns:
        if column.default is None:
            continue
        try:
            bind_default(context, table, column, supplied, variables)
        except Error as failure:
            judged_later = _is_determinism(failure) and _reads_names(column.default)
            if not (judged_later or failure.code is StatusCode.NOTFOUND):
                raise _invalid_default(table, column, failure) from failure


def _invalid_default(table: TableSchema, column: ColumnSchema, cause: Error) -> Error:
    """The error of a DEFAULT, saying which one it is unless it says so itself."""
    place = f"DEFAULT for column '{column.name}' in table '{table.name}'"
    if _is_determinism(cause) or cause.message.startswith(place):
        return cause
    error = sql_error(cause.code, f"{place} is invalid: {cause.message}", cause.position)
    error.details = cause.details
    return error


def _is_determinism(failure: Error) -> bool:
    """Whether a pragma may lift the error; each INSERT that evaluates the expression looks for it again."""
    return failure.message.startswith("Non-deterministic expression")


def _changes_rows(expression: nodes.Expression) -> bool:
    """Whether there is a data-modifying subquery in it."""
    changes = (nodes.Insert, nodes.Update, nodes.Delete)
    return any(isinstance(node, changes) for node in traversal.walk(expression))


def _reads_names(expression: nodes.Expression) -> bool:
    """Whether it depends on what the INSERT supplies, or on rows: it is compiled with each INSERT."""
    return any(
        isinstance(node, nodes.Query)
        or (isinstance(node, nodes.ColumnReference) and clock_call(node) is None)
        for node in traversal.walk(expression)
    )


def _may_become_right(failure: Error) -> bool:
    """Whether an error is only that a name is unknown so far, or that SET COLLATE could mend it."""
    return (
        failure.code is StatusCode.NOTFOUND
        or failure.message.startswith(("Column not found", "ambiguous collation"))
        or failure.message.endswith("isn't a column")
    )
