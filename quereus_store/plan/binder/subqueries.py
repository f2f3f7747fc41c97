"""Subqueries in expressions: scalar, EXISTS, IN, ANY and ALL (queries, section 12).

Correlation needs nothing here: the subquery's scope has the expression's scope
around it, and a name found there is a column number that the inner plan does not
produce.
"""

from __future__ import annotations

from collections.abc import Sequence

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.plan.binder import queries
from quereus_store.plan.binder.comparisons import cast_to, check_width, compare_rows, negation
from quereus_store.plan.binder.expressions import ExpressionBinder, binds, is_row, scalar
from quereus_store.plan.binder.grouping import GroupedAliasScope
from quereus_store.plan.expressions import (
    BoundExpression,
    Exists,
    InSubquery,
    Literal,
    Quantified,
    reference,
)
from quereus_store.plan.nodes import Limit, PlanNode, Project
from quereus_store.sql import nodes
from quereus_store.types import BOOLEAN, INTEGER, comparison_plan, resolve_comparison_collation

_ONE = Literal(INTEGER, False, None, 1)


def _plan(binder: ExpressionBinder, query: nodes.Query | nodes.DataModification) -> PlanNode:
    scope = binder.scope
    if isinstance(scope, GroupedAliasScope):
        scope = scope.inside_subquery()
    return queries.bind_query_in(binder.environment.nested(), query, scope)


@binds(nodes.Subquery)
def _scalar(binder: ExpressionBinder, node: nodes.Subquery) -> BoundExpression:
    plan = _plan(binder, node.query)
    if len(plan.columns) != 1:
        raise sql_error(StatusCode.ERROR, "Scalar subquery must return exactly one column", node.position)
    if not isinstance(node.query, nodes.Query):
        plan = Limit(plan.columns, plan, _ONE)
    return scalar(plan, node.position)


@binds(nodes.Exists)
def _exists(binder: ExpressionBinder, node: nodes.Exists) -> BoundExpression:
    return Exists(BOOLEAN, False, None, _plan(binder, node.query))


@binds(nodes.InSubquery)
def _in_subquery(binder: ExpressionBinder, node: nodes.InSubquery) -> BoundExpression:
    plan = _plan(binder, node.query)
    operands = binder.bind_row(node.operand)
    if not is_row(node.operand) and len(plan.columns) != 1:
        raise sql_error(StatusCode.ERROR, "IN subquery must return exactly one column", node.position)
    return _member_of(binder, operands, plan, node.position)


def _member_of(
    binder: ExpressionBinder,
    operands: Sequence[BoundExpression],
    plan: PlanNode,
    position: SourcePosition | None,
) -> InSubquery:
    check_width(len(operands), len(plan.columns), position)
    probes, plan, using = _coerced(binder, operands, plan, position)
    nullable = any(probe.nullable for probe in probes) or any(column.nullable for column in plan.columns)
    return InSubquery(BOOLEAN, nullable, None, probes, plan, using)


def _coerced(
    binder: ExpressionBinder,
    operands: Sequence[BoundExpression],
    plan: PlanNode,
    position: SourcePosition | None,
) -> tuple[tuple[BoundExpression, ...], PlanNode, tuple[str, ...]]:
    """Operands and plan columns coerced to each other, and the collation of each pair."""
    probes: list[BoundExpression] = []
    outputs: list[BoundExpression] = []
    using: list[str] = []
    for operand, column in zip(operands, plan.columns, strict=True):
        own: BoundExpression = reference(column)
        using.append(resolve_comparison_collation(operand.collation, column.collation, position))
        if operand.type is not column.type:
            coercion = comparison_plan(operand.type, column.type)
            operand, own = cast_to(operand, coercion.left_cast), cast_to(own, coercion.right_cast)
        probes.append(operand)
        outputs.append(own)
    if any(output.type is not column.type for output, column in zip(outputs, plan.columns, strict=True)):
        columns = tuple(
            [
                column
                if output.type is column.type
                else binder.environment.column(column.name, output.type, True, column.collation)
                for output, column in zip(outputs, plan.columns, strict=True)
            ]
        )
        plan = Project(columns, plan, tuple(outputs))
    return tuple(probes), plan, tuple(using)


_OPERATORS = {
    nodes.BinaryOperator.EQUAL: "=",
    nodes.BinaryOperator.DOUBLE_EQUAL: "=",
    nodes.BinaryOperator.NOT_EQUAL: "!=",
    nodes.BinaryOperator.LESS: "<",
    nodes.BinaryOperator.LESS_EQUAL: "<=",
    nodes.BinaryOperator.GREATER: ">",
    nodes.BinaryOperator.GREATER_EQUAL: ">=",
}


@binds(nodes.QuantifiedComparison)
def _quantified(binder: ExpressionBinder, node: nodes.QuantifiedComparison) -> BoundExpression:
    plan = _plan(binder, node.query)
    operands = binder.bind_row(node.operand)
    operator = _OPERATORS[node.operator]
    every = node.quantifier is nodes.Quantifier.ALL
    if operator == "=" and not every:
        return _member_of(binder, operands, plan, node.position)
    if operator == "!=" and every:
        return negation(_member_of(binder, operands, plan, node.position))
    if len(operands) != 1 or len(plan.columns) != 1:
        raise sql_error(StatusCode.ERROR, "Quantified subquery must return exactly one column", node.position)
    probes, plan, using = _coerced(binder, operands, plan, node.position)
    nullable = probes[0].nullable or plan.columns[0].nullable
    return Quantified(BOOLEAN, nullable, None, operator, every, probes[0], plan, using[0])


def compare_with_row_subquery(
    binder: ExpressionBinder,
    operator: str,
    row: nodes.Expression,
    subquery: nodes.Subquery,
    position: SourcePosition | None,
) -> BoundExpression:
    """``(a, b) = (select c, d …)``: the comparison is made inside the subquery, for its only row."""
    plan = _plan(binder, subquery.query)
    operands = binder.bind_row(row)
    check_width(len(operands), len(plan.columns), position)
    condition = compare_rows(operator, operands, list(map(reference, plan.columns)), position)
    column = binder.environment.column("row", BOOLEAN, condition.nullable)
    return scalar(Project((column,), plan, (condition,)), subquery.position or position)
