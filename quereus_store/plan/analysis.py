"""Properties of plans and expressions that several rules ask for."""

from __future__ import annotations

from quereus_store.plan import nodes
from quereus_store.plan.expressions import AggregateCall, BoundExpression, Call, subplans, walk


def is_deterministic(plan: nodes.PlanNode) -> bool:
    """Whether a plan gives the same rows whenever it runs within one statement."""
    for node in nodes.walk_plan(plan):
        if isinstance(node, nodes.MutationScan):
            return False
        if isinstance(node, nodes.TableFunctionScan) and not node.function.deterministic:
            return False
        if not all(is_deterministic_expression(expression) for expression in nodes.expressions(node)):
            return False
    return True


def is_deterministic_expression(expression: BoundExpression) -> bool:
    """Whether an expression gives the same value for the same columns within one statement."""
    for part in walk(expression):
        if isinstance(part, Call | AggregateCall) and not part.function.deterministic:
            return False
    return all(is_deterministic(plan) for plan in subplans(expression))


def has_subquery(expression: BoundExpression) -> bool:
    """Whether an expression contains a subquery."""
    return next(subplans(expression), None) is not None
