"""ORDER BY and LIMIT (queries, section 9).

A term of a SELECT's ORDER BY is bound after its select list.  Unqualified names are
output names first, then columns of the sources.  Terms that only use outputs sort
the projected rows; any other term becomes a hidden column of the projection, is
sorted by and dropped again.
"""

from __future__ import annotations

from collections.abc import Sequence

from quereus_store.errors import StatusCode, sql_error
from quereus_store.plan.binder.calls import sort_term
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.scopes import AliasScope, Scope
from quereus_store.plan.binder.syntax import ordinal_of
from quereus_store.plan.expressions import BoundExpression, Column, SortTerm, reference
from quereus_store.plan.nodes import Limit, PlanNode, Sort
from quereus_store.schema.objects import fold
from quereus_store.sql import nodes
from quereus_store.types.values import int_to_text


def ordinal_column(term: nodes.OrderingTerm, columns: Sequence[Column]) -> BoundExpression | None:
    """The output that a term names by position; raises ERROR for a position out of range."""
    position = ordinal_of(term.expression)
    if position is None:
        return None
    if not 1 <= position <= len(columns):
        raise sql_error(
            StatusCode.ERROR,
            f"ORDER BY position {int_to_text(position)} is not in the SELECT list (1..{len(columns)})",
            term.expression.position or term.position,
        )
    return reference(columns[position - 1])


def output_names(columns: Sequence[Column]) -> dict[str, BoundExpression]:
    """Outputs by folded name, the first of each."""
    names: dict[str, BoundExpression] = {}
    for column in columns:
        names.setdefault(fold(column.name), reference(column))
    return names


def order_outputs(
    environment: Environment,
    plan: PlanNode,
    order_by: Sequence[nodes.OrderingTerm],
    outer: Scope | None,
    names: Sequence[str] = (),
) -> PlanNode:
    """Sort a compound query or VALUES, whose terms see its output names only.

    ``names`` are other names for the first outputs, which win over their own.
    """
    if not order_by:
        return plan
    others = {fold(name): reference(column) for name, column in zip(names, plan.columns, strict=False)}
    visible = {**output_names(plan.columns), **others}
    binder = ExpressionBinder(environment, AliasScope(visible, outer))
    terms: list[SortTerm] = []
    for term in order_by:
        expression = ordinal_column(term, plan.columns)
        terms.append(sort_term(expression or binder.bind(term.expression), term))
    return Sort(plan.columns, plan, tuple(terms))


def limit(
    environment: Environment,
    plan: PlanNode,
    count: nodes.Expression | None,
    offset: nodes.Expression | None,
    outer: Scope | None,
) -> PlanNode:
    """LIMIT and OFFSET; their expressions see no column of the query."""
    if count is None and offset is None:
        return plan
    bound_count, bound_offset = bind_limit(environment, count, offset, outer)
    return Limit(plan.columns, plan, bound_count, bound_offset)


def bind_limit(
    environment: Environment,
    count: nodes.Expression | None,
    offset: nodes.Expression | None,
    outer: Scope | None,
) -> tuple[BoundExpression | None, BoundExpression | None]:
    """The expressions of LIMIT and OFFSET."""
    binder = ExpressionBinder(environment, outer)
    return (
        None if count is None else binder.bind(count),
        None if offset is None else binder.bind(offset),
    )
