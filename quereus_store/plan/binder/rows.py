"""Expressions over one row: CHECK, DEFAULT, GENERATED, index parts and predicates.

They are kept as syntax trees and bound where they are used, each time over the row
at hand (dml-transactions-constraints, sections 9 and 10).  They see the names of
their own table's row and, inside subqueries, those of their own schema; nothing of
the statement that fires them.  The functions here serve the statement that writes,
the statement that declares (which binds only to find mistakes) and modules that
index expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.plan.binder.context import BindContext, Environment
from quereus_store.plan.binder.determinism import non_deterministic_in
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.relations import row_columns
from quereus_store.plan.binder.scopes import RowImage, RowScope, image_of, null_image
from quereus_store.plan.expressions import BoundExpression, Column, Literal
from quereus_store.schema.objects import CheckConstraint, ColumnSchema, Operation, TableSchema, fold
from quereus_store.sql import nodes, traversal
from quereus_store.sql.renderer import canonical_text
from quereus_store.types import INTEGER

NO_VARIABLES: RowImage = {}
_ORDINAL = "mutation_ordinal()"
_FIRST = Literal(INTEGER, False, None, 1)


def new_row(context: BindContext, table: TableSchema) -> tuple[Column, ...]:
    """New columns for a row of a table, in column order."""
    return row_columns(Environment.of(context), table)


def bind_row_expression(
    context: BindContext,
    table: TableSchema,
    expression: nodes.Expression,
    *,
    row: tuple[Column, ...] | None = None,
    images: Mapping[str, RowImage] | None = None,
    unknown: Callable[[nodes.ColumnReference], Error] | None = None,
) -> tuple[BoundExpression, tuple[Column, ...]]:
    """Bind an expression over a row of a table; gives it and the row's columns.

    Bare and table-qualified names read ``row`` (new columns if None).  ``images``
    adds or replaces qualifiers (see :class:`~quereus_store.plan.binder.scopes.RowScope`).
    """
    columns = new_row(context, table) if row is None else row
    own: RowImage = image_of(columns)
    scope = RowScope(
        {"": own, fold(table.name): own, **(images or {})},
        schema=table.schema,
        unknown=unknown,
    )
    environment = Environment.of(context).inside_stored_body(table.schema)
    return ExpressionBinder(environment, scope).bind(expression), columns


# --- CHECK --------------------------------------------------------------------------------------------------


def bind_check(
    context: BindContext,
    table: TableSchema,
    check: CheckConstraint,
    operation: Operation,
    new: tuple[Column, ...],
    old: tuple[Column, ...],
    variables: RowImage = NO_VARIABLES,
) -> BoundExpression:
    """A CHECK as it judges an operation: bare names are the new row, on DELETE the old one.

    The image that the operation does not have is NULL in every column; ``variables``
    are the mutation context's, in front of bare columns.
    """
    place = f"CHECK constraint '{check.name}' on table '{table.name}'"
    _refuse_parameters(check.expression, place)
    new_image = null_image(new) if operation is Operation.DELETE else image_of(new)
    old_image = null_image(old) if operation is Operation.INSERT else image_of(old)
    own = old_image if operation is Operation.DELETE else new_image
    bound, _ = bind_row_expression(
        context,
        table,
        check.expression,
        row=new,
        images={
            "": {**own, **variables},
            fold(table.name): own,
            "new": new_image,
            "old": old_image,
            "context": variables,
        },
    )
    _require_deterministic(context, bound, place)
    return bound


def checks_for(table: TableSchema, operation: Operation) -> list[CheckConstraint]:
    """The checks that judge an operation, in the order in which they run."""
    return [check for check in table.checks if operation in check.operations]


# --- DEFAULT ------------------------------------------------------------------------------------------------


def bind_default(
    context: BindContext,
    table: TableSchema,
    column: ColumnSchema,
    supplied: RowImage,
    variables: RowImage = NO_VARIABLES,
    ordinal: BoundExpression = _FIRST,
) -> BoundExpression:
    """A column's DEFAULT: ``new.`` reads the ``supplied`` values, bare names only context variables.

    ``ordinal`` stands for ``mutation_ordinal()``.
    """
    assert column.default is not None
    place = f"DEFAULT for column '{column.name}' in table '{table.name}'"
    _refuse_parameters(column.default, place)
    bare = sql_error(
        StatusCode.ERROR,
        f"{place} may not reference a bare column; use 'new.<column>' to read a value supplied by the INSERT,"
        " or a generated column instead.",
    )
    refused: dict[str, BoundExpression | Error] = {fold(own.name): bare for own in table.columns}
    bound, _ = bind_row_expression(
        context,
        table,
        _with_ordinal(column.default),
        row=(),
        images={
            "": {**refused, **variables},
            "new": supplied,
            "context": {**variables, _ORDINAL: ordinal},
        },
    )
    _require_deterministic(context, bound, place, column.default)
    return bound


def uses_ordinal(expression: nodes.Expression | None) -> bool:
    """Whether ``mutation_ordinal()`` is called in an expression."""
    return expression is not None and any(map(_is_ordinal, traversal.walk(expression)))


def _is_ordinal(node: nodes.Node) -> bool:
    return isinstance(node, nodes.FunctionCall) and not node.arguments and fold(node.name) == _ORDINAL[:-2]


def _with_ordinal(expression: nodes.Expression) -> nodes.Expression:
    """The expression with ``mutation_ordinal()`` turned into a name that only this module can make."""
    if not uses_ordinal(expression):
        return expression
    changed = traversal.transform(
        expression,
        lambda node: nodes.ColumnReference(_ORDINAL, "context") if _is_ordinal(node) else node,
    )
    assert isinstance(changed, nodes.Expression)
    return changed


# --- GENERATED ----------------------------------------------------------------------------------------------


def bind_generated(
    context: BindContext, table: TableSchema, position: int, row: tuple[Column, ...]
) -> BoundExpression:
    """The expression of a generated column over a row."""
    column = table.columns[position]
    assert column.generated is not None
    place = f"GENERATED ALWAYS AS for column '{column.name}' in table '{table.name}'"
    _refuse_parameters(column.generated, place)
    bound, _ = bind_row_expression(
        context,
        table,
        column.generated,
        row=row,
        images={"new": image_of(row)},
        unknown=lambda name: _unbound(table, column, name),
    )
    _require_deterministic(context, bound, place)
    return bound


def generated_order(table: TableSchema) -> tuple[int, ...]:
    """The generated columns' positions, each after those it reads; raises ERROR for a cycle."""
    needs = {
        position: _generated_reads(table, column)
        for position, column in enumerate(table.columns)
        if column.generated is not None
    }
    ordered: list[int] = []
    waiting = dict(needs)
    while waiting:
        ready = [position for position, reads in waiting.items() if not (reads & waiting.keys())]
        if not ready:
            names = ", ".join(f"'{table.columns[position].name}'" for position in sorted(waiting))
            raise sql_error(StatusCode.ERROR, f"Cyclic dependency in generated columns: {names}")
        for position in ready:
            del waiting[position]
        ordered += ready
    return tuple(ordered)


def _generated_reads(table: TableSchema, column: ColumnSchema) -> set[int]:
    """The positions that a generated column reads; raises ERROR for a name that is no column."""
    assert column.generated is not None
    reads: set[int] = set()
    for name in _own_names(column.generated):
        found = table.column_index(name.column)
        if found is None or (name.table is not None and fold(name.table) not in ("new", fold(table.name))):
            raise _unbound(table, column, name)
        reads.add(found)
    return reads


def _unbound(table: TableSchema, column: ColumnSchema, name: nodes.ColumnReference) -> Error:
    """The error for a name in a generated column that is none of the row's columns."""
    if name.table is None or fold(name.table) in ("new", fold(table.name)):
        return sql_error(
            StatusCode.ERROR,
            f"Column '{name.column}' referenced by generated column '{column.name}'"
            f" not found in table '{table.name}'",
            name.position,
        )
    return sql_error(
        StatusCode.ERROR,
        f"'{name.table}.{name.column}' referenced by generated column '{column.name}' in table"
        f" '{table.name}' binds nothing: a generated expression computes from the row being written,"
        f" so it may only name this table's own columns (bare, '{table.name}.', or 'new.') or columns"
        " of a source it selects from",
        name.position,
    )


def _own_names(expression: nodes.Expression) -> Iterable[nodes.ColumnReference]:
    """The column names in an expression outside its subqueries."""
    pending: list[nodes.Node] = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, nodes.ColumnReference):
            yield node
        elif not isinstance(node, nodes.Query):
            pending.extend(traversal.children(node))


# --- refusals -----------------------------------------------------------------------------------------------


def _refuse_parameters(expression: nodes.Expression, place: str) -> None:
    for parameter in traversal.parameters(expression):
        raise sql_error(StatusCode.ERROR, f"{place} may not reference bind parameters.", parameter.position)


def _require_deterministic(
    context: BindContext, bound: BoundExpression, place: str, shown: nodes.Expression | None = None
) -> None:
    if context.options.get("nondeterministic_schema"):
        return
    culprit = non_deterministic_in(bound)
    if culprit is None:
        return
    if shown is None:
        what = f"Function '{culprit}' is not deterministic"
    else:
        what = f"Expression: {canonical_text(shown)}"
    raise sql_error(
        StatusCode.ERROR,
        f"Non-deterministic expression not allowed in {place}. {what}. Use mutation context to pass"
        " non-deterministic values (e.g., WITH CONTEXT (timestamp = datetime('now'))).",
    )
