"""Rules for the expressions in definitions: DEFAULT, CHECK, generated columns, index predicates.

Here are the rules that look at the tree alone.  What needs the binder (unknown functions,
determinism, names inside subqueries) is checked by whoever executes the CREATE statement, through
the ``check_expressions`` hook of :func:`quereus_store.schema.builder.build_table`.

A table's own columns may be written bare, as ``table.column``, and as ``new.column`` (in a CHECK
also ``old.column``).  Names inside a subquery may belong to its sources, so these rules leave them
alone.  Chapter: alter-and-ddl-lifecycle, sections 3 (rows 9 to 12) and 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quereus_store.errors import StatusCode, sql_error
from quereus_store.schema.objects import ColumnSchema, TableSchema, fold
from quereus_store.sql import nodes
from quereus_store.sql.clock import clock_call
from quereus_store.sql.traversal import children, parameters
from quereus_store.types.conversion import convert
from quereus_store.types.values import Value

_OUTSIDE_A_ROW: Mapping[type[nodes.Node], str] = {
    nodes.Subquery: "subquery",
    nodes.Exists: "exists",
    nodes.InSubquery: "in",
    nodes.QuantifiedComparison: "subquery",
    nodes.WindowCall: "window function",
    nodes.Parameter: "parameter",
    nodes.DefaultValue: "default",
}


def row_nodes(expression: nodes.Node) -> Iterator[nodes.Node]:
    """An expression's nodes without those inside its subqueries."""
    stack = [expression]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(
            child for child in reversed(tuple(children(current))) if not isinstance(child, nodes.Statement)
        )


def row_references(expression: nodes.Node) -> list[nodes.ColumnReference]:
    """The column references of an expression outside its subqueries, in the order of the text."""
    return [node for node in row_nodes(expression) if isinstance(node, nodes.ColumnReference)]


def literal_of(expression: nodes.Expression) -> nodes.Literal | None:
    """The literal that an expression is, a signed number included."""
    if isinstance(expression, nodes.Literal):
        return expression
    if isinstance(expression, nodes.UnaryOperation) and isinstance(expression.operand, nodes.Literal):
        value = expression.operand.value
        if type(value) in (int, float):
            number: int | float = value  # type: ignore[assignment]
            if expression.operator is nodes.UnaryOperator.MINUS:
                return nodes.Literal.of(-number)
            if expression.operator is nodes.UnaryOperator.PLUS:
                return expression.operand
    return None


def check_default(table: TableSchema, column: ColumnSchema) -> None:
    """The rules of a DEFAULT that its tree shows."""
    expression = column.default
    if expression is None:
        return
    subject = f"DEFAULT for column '{column.name}' in table '{table.name}'"
    if parameters(expression):
        raise sql_error(
            StatusCode.ERROR, f"{subject} may not reference bind parameters.", expression.position
        )
    context = {fold(variable.name) for variable in table.context}
    for reference in row_references(expression):
        if clock_call(reference) is not None and table.column_index(reference.column) is None:
            continue
        if reference.table is None and fold(reference.column) not in context:
            raise sql_error(
                StatusCode.ERROR,
                f"{subject} may not reference a bare column; use 'new.<column>' to read a value supplied"
                " by the INSERT, or a generated column instead.",
                reference.position,
            )


def default_value(column: ColumnSchema) -> tuple[bool, Value]:
    """Whether a DEFAULT is a literal, and then its value in the column's type.

    Raises MISMATCH when a literal does not convert; NULL passes.
    """
    literal = None if column.default is None else literal_of(column.default)
    if literal is None:
        return False, None
    return True, convert(literal.value, column.type, column.name)


def check_literal_default(column: ColumnSchema) -> None:
    """A literal DEFAULT has to fit the column's type (MISMATCH)."""
    default_value(column)


def check_check(table: TableSchema, name: str, expression: nodes.Expression) -> None:
    """The rules of a CHECK that its tree shows."""
    if parameters(expression):
        raise sql_error(
            StatusCode.ERROR,
            f"CHECK constraint '{name}' on table '{table.name}' may not reference bind parameters.",
            expression.position,
        )


# --- generated columns ------------------------------------------------------------------------------------


def generated_sources(table: TableSchema, column: ColumnSchema) -> frozenset[int]:
    """Positions of the columns that a generated column's expression reads; raises ERROR for others."""
    assert column.generated is not None
    own = {fold(table.name), "new"}
    sources = set()
    for reference in row_references(column.generated):
        if reference.table is not None and fold(reference.table) not in own:
            raise sql_error(
                StatusCode.ERROR,
                f"'{reference.table}.{reference.column}' referenced by generated column '{column.name}' in"
                f" table '{table.name}' binds nothing: a generated expression computes from the row being"
                f" written, so it may only name this table's own columns (bare, '{table.name}.', or 'new.')"
                " or columns of a source it selects from",
                reference.position,
            )
        position = table.column_index(reference.column)
        if position is None:
            raise sql_error(
                StatusCode.ERROR,
                f"Column '{reference.column}' referenced by generated column '{column.name}' not found in"
                f" table '{table.name}'",
                reference.position,
            )
        sources.add(position)
    return frozenset(sources)


def generation_order(table: TableSchema) -> tuple[int, ...]:
    """The generated columns in an order in which each can be computed; raises ERROR for a cycle."""
    waiting = {
        position: generated_sources(table, column)
        for position, column in enumerate(table.columns)
        if column.generated is not None
    }
    order: list[int] = []
    while waiting:
        ready = [position for position, sources in waiting.items() if sources.isdisjoint(waiting)]
        if not ready:
            names = ", ".join(f"'{table.columns[position].name}'" for position in sorted(_cycle(waiting)))
            raise sql_error(StatusCode.ERROR, f"Cyclic dependency in generated columns: {names}")
        for position in ready:
            del waiting[position]
        order += ready
    return tuple(order)


def _cycle(waiting: Mapping[int, frozenset[int]]) -> set[int]:
    """One cycle among columns that all wait for each other."""
    path = [next(iter(waiting))]
    while True:
        following = next(source for source in sorted(waiting[path[-1]]) if source in waiting)
        if following in path:
            return set(path[path.index(following) :])
        path.append(following)


# --- indexes ----------------------------------------------------------------------------------------------


def check_predicate(table: TableSchema, expression: nodes.Expression) -> None:
    """A partial index's predicate reads the one row that it decides about, and nothing else."""
    for node in row_nodes(expression):
        if type(node) in _OUTSIDE_A_ROW:
            raise sql_error(
                StatusCode.ERROR,
                f"Unsupported expression in partial-index predicate: {_OUTSIDE_A_ROW[type(node)]}",
                node.position,
            )
        if not isinstance(node, nodes.ColumnReference):
            continue
        if node.table is not None and fold(node.table) != fold(table.name):
            raise sql_error(
                StatusCode.ERROR,
                f"Partial-index predicate cannot reference column '{node.table}.{node.column}' of a"
                f" different table (predicate is scoped to '{table.name}')",
                node.position,
            )
        if table.column_index(node.column) is None:
            raise sql_error(
                StatusCode.ERROR,
                f"Partial-index predicate references unknown column '{node.column}'",
                node.position,
            )


def check_index_expression(table: TableSchema, expression: nodes.Expression) -> None:
    """An indexed expression is computed from the row alone."""
    for node in row_nodes(expression):
        if type(node) in _OUTSIDE_A_ROW:
            raise sql_error(
                StatusCode.ERROR,
                f"Unsupported expression in index: {_OUTSIDE_A_ROW[type(node)]}",
                node.position,
            )
        if isinstance(node, nodes.ColumnReference) and (
            table.column_index(node.column) is None
            or (node.table is not None and fold(node.table) != fold(table.name))
        ):
            raise sql_error(
                StatusCode.ERROR,
                f"Column '{node.column}' not found in table '{table.name}'",
                node.position,
            )
