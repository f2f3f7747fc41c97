"""Whole queries: WITH around a body, ORDER BY and LIMIT over it (queries, section 3).

:func:`bind_query` is the entry for a statement, :func:`bind_query_in` the one for
anything that stands inside another: subqueries, derived tables, stored bodies.
"""

from __future__ import annotations

from collections.abc import Sequence

from quereus_store.errors import StatusCode, sql_error
from quereus_store.plan.binder import common_tables, dml, select, set_operations
from quereus_store.plan.binder.context import BindContext, Environment
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.ordering import limit, order_outputs
from quereus_store.plan.binder.scopes import Scope
from quereus_store.plan.expressions import BoundExpression
from quereus_store.plan.nodes import CommonTable, PlanNode, Values, With
from quereus_store.sql import nodes
from quereus_store.types import carry_contributions, merge_types


def bind_query(context: BindContext, query: nodes.Query) -> PlanNode:
    """Bind a query that is a statement of its own; output columns carry their exact names.

    Raises ERROR, NOTFOUND, MISMATCH, SYNTAX or UNSUPPORTED with the position of the mistake.
    """
    return bind_query_in(Environment.of(context, leading=True), query)


def bind_query_in(
    environment: Environment, query: nodes.Query | nodes.DataModification, outer: Scope | None = None
) -> PlanNode:
    """Bind a query that sees the names of ``outer``; a data modification gives its RETURNING rows."""
    if not isinstance(query, nodes.Query):
        return dml.bind_relation(environment, query)
    environment = environment.with_schemas(_schema_path(query.body))
    tables: tuple[CommonTable, ...] = ()
    if query.with_clause is not None:
        environment, tables = common_tables.bind_with(environment, query.with_clause, outer)
    plan = bind_body(environment.nested(), query.body, outer, query.order_by)
    plan = limit(environment.nested(), plan, query.limit, query.offset, outer)
    return With(plan.columns, tables, plan) if tables else plan


def bind_body(
    environment: Environment,
    body: nodes.QueryBody,
    outer: Scope | None,
    order_by: Sequence[nodes.OrderingTerm] = (),
) -> PlanNode:
    """Bind a query body and the ORDER BY that acts on it."""
    if isinstance(body, nodes.Select):
        inner = environment.with_schemas(body.schema_path)
        return select.bind_select(inner, body, outer, order_by)
    if isinstance(body, nodes.Query) and _is_bare(body):
        return bind_body(environment, body.body, outer, order_by)
    if isinstance(body, nodes.Values):
        plan = bind_values(environment, body, outer)
    elif isinstance(body, nodes.SetOperation):
        plan = set_operations.bind_set_operation(environment, body, outer)
    else:
        plan = bind_query_in(environment, body, outer)
    return order_outputs(environment, plan, order_by, outer)


def _is_bare(query: nodes.Query) -> bool:
    """Whether a parenthesised query has no clause of its own around its body."""
    return query.with_clause is None and not query.order_by and query.limit is None and query.offset is None


def _schema_path(body: nodes.QueryBody) -> tuple[str, ...]:
    """WITH SCHEMA of the first operand, which covers the whole query and its WITH."""
    while isinstance(body, nodes.SetOperation):
        body = body.left
    return body.schema_path if isinstance(body, nodes.Select) else ()


def bind_values(environment: Environment, body: nodes.Values, outer: Scope | None) -> PlanNode:
    """VALUES: columns ``column_0``, ``column_1``, …, each of the merged type of its cells."""
    rows = body.rows
    width = len(rows[0])
    for row in rows:
        if len(row) != width:
            raise sql_error(
                StatusCode.SYNTAX,
                "All rows must have the same number of columns",
                next((cell.position for cell in row), body.position) or body.position,
            )
    if width == 0:
        return Values((), ())
    binder = ExpressionBinder(environment, outer)
    bound = [binder.bind_all(row) for row in rows]
    columns = tuple(
        [
            environment.column(
                f"column_{index}",
                merge_types([cell.type for cell in cells]),
                any(cell.nullable for cell in cells),
                carry_contributions([cell.collation for cell in cells]),
            )
            for index, cells in enumerate(_transposed(bound))
        ]
    )
    return Values(columns, tuple(bound))


def _transposed(rows: Sequence[tuple[BoundExpression, ...]]) -> list[tuple[BoundExpression, ...]]:
    return list(zip(*rows, strict=True))
