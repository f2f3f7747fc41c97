"""Constant folding: operators over literals are computed once, while planning.

``2 + 3 * rank`` keeps its multiplication but ``rank > 2 + 3`` becomes ``rank >
5``, which an index can serve.  Connectives lose operands that decide nothing,
and a filter that is always true goes away.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quereus_store.plan import nodes
from quereus_store.plan.evaluate import evaluate
from quereus_store.plan.expressions import (
    Arithmetic,
    Between,
    BoundExpression,
    Call,
    Cast,
    ColumnRef,
    Comparison,
    Concat,
    Conjunction,
    Disjunction,
    IsTest,
    Literal,
    Negation,
    Not,
    Parameter,
    children,
    map_children,
)
from quereus_store.plan.optimizer import RuleContext
from quereus_store.types import BOOLEAN, truth

_FOLDABLE = (Arithmetic, Cast, Comparison, Concat, IsTest, Negation, Not)


def fold_constants(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Fold the expressions of every node."""

    def fold_node(node: nodes.PlanNode) -> nodes.PlanNode:
        node = nodes.map_expressions(node, lambda expression: fold(expression, context))
        if isinstance(node, nodes.Filter) and isinstance(node.predicate, Literal):
            if truth(node.predicate.value) is True:
                return node.input
            return nodes.Values(node.columns, ())
        return node

    return nodes.bottom_up(plan, fold_node)


def fold(expression: BoundExpression, context: RuleContext) -> BoundExpression:
    """The expression with constant parts computed; its type and nullability stay announced."""
    if isinstance(expression, ColumnRef | Literal | Parameter):
        return expression
    if isinstance(expression, Between):
        return _fold_between(expression, context)
    expression = map_children(expression, lambda child: fold(child, context))
    if isinstance(expression, Conjunction | Disjunction):
        return _fold_connective(expression)
    if isinstance(expression, Comparison) and _compares_null(expression):
        return Literal(BOOLEAN, True, None, None)
    foldable = isinstance(expression, _FOLDABLE) or (
        isinstance(expression, Call)
        and expression.function.deterministic
        and not expression.function.needs_context
        and expression.arguments
    )
    if not foldable or not all(isinstance(child, Literal) for child in children(expression)):
        return expression
    try:
        value = evaluate(expression, context.services.collation)
    except Exception:
        # What fails must fail when a row asks for it, not before.
        return expression
    if type(value) in (list, dict):
        return expression
    return _literal(expression, value)


def _compares_null(expression: Comparison) -> bool:
    """Whether a comparison has NULL on a side, so that it is NULL whatever the other side is."""
    return expression.operator not in ("is", "is not") and any(
        isinstance(side, Literal) and side.value is None for side in (expression.left, expression.right)
    )


def _literal(expression: BoundExpression, value: Any) -> Literal:
    return Literal(expression.type, value is None, expression.collation, value)


def _fold_between(expression: Between, context: RuleContext) -> BoundExpression:
    low, high = fold(expression.low, context), fold(expression.high, context)
    if isinstance(low, Comparison) and isinstance(high, Comparison):
        return replace(expression, low=low, high=high)
    return _fold_connective(Conjunction(BOOLEAN, expression.nullable, None, (low, high)))


def _fold_connective(expression: Conjunction | Disjunction) -> BoundExpression:
    deciding = isinstance(expression, Disjunction)
    operands = []
    for operand in expression.operands:
        if isinstance(operand, Literal):
            verdict = truth(operand.value)
            if verdict is deciding:
                return Literal(BOOLEAN, False, None, deciding)
            if verdict is (not deciding):
                continue
        operands.append(operand)
    if not operands:
        return Literal(BOOLEAN, False, None, not deciding)
    if len(operands) == len(expression.operands):
        return expression
    if len(operands) == 1 and operands[0].type is BOOLEAN:
        return operands[0]
    if len(operands) == 1:
        return expression
    return type(expression)(BOOLEAN, expression.nullable, None, tuple(operands))
