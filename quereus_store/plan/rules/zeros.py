"""One zero for each group: 0.0 and -0.0 are equal, and which of them a group shows may not hang on chance.

A group, a row of DISTINCT and a row of a set operation that drops repeats stand for all rows that are equal
to them.  The one met first would show how the rows came in; a maintained table, which meets them in another
order than its body does, could not follow.  So a real zero is shown as 0.0.
"""

from __future__ import annotations

from dataclasses import replace

from quereus_store.functions.registry import ScalarFunction
from quereus_store.plan import nodes
from quereus_store.plan.expressions import BoundExpression, Call, Column, reference
from quereus_store.plan.optimizer import RuleContext
from quereus_store.types import REAL
from quereus_store.types.values import Value


def show_one_zero(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Put a projection over what makes one row of many that are equal, where it has reals among its keys."""

    def over(node: nodes.PlanNode) -> nodes.PlanNode:
        if not any(column.type is REAL for column in _standing_for_many(node)):
            return node
        renamed = {column.id: replace(column, id=context.number()) for column in node.columns}
        flags = {
            name: renamed[flag].id
            for name in ("left_flag", "right_flag")
            if (flag := getattr(node, name, None)) is not None
        }
        inner = replace(node, columns=tuple(renamed.values()), **flags)
        keys = {column.id for column in _standing_for_many(node)}
        shown = [
            one_zero(reference(renamed[column.id]))
            if column.type is REAL and column.id in keys
            else reference(renamed[column.id])
            for column in node.columns
        ]
        return nodes.Project(node.columns, inner, tuple(shown))

    return nodes.bottom_up(plan, over)


def _standing_for_many(node: nodes.PlanNode) -> tuple[Column, ...]:
    if isinstance(node, nodes.Aggregate):
        return node.columns[: len(node.keys)]
    if isinstance(node, nodes.Distinct):
        return node.columns
    if isinstance(node, nodes.SetOperation) and not node.all:
        return node.columns
    return ()


def one_zero(expression: BoundExpression) -> BoundExpression:
    """A real, 0.0 if it is -0.0."""
    return Call(REAL, expression.nullable, None, ONE_ZERO, (expression,))


def _positive(value: Value) -> Value:
    return value + 0.0  # type: ignore[operator]


ONE_ZERO = ScalarFunction("real", _positive, 1, 1, REAL, nullable=False, inline={("REAL",): "{0} + 0.0"})
