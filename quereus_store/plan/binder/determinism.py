"""Determinism: what makes an expression or a plan give different answers to the same question.

DEFAULT, CHECK and GENERATED expressions, index parts and materialized bodies must
be deterministic (queries, section 16).
"""

from __future__ import annotations

from collections.abc import Iterator

from quereus_store.plan.expressions import AggregateCall, BoundExpression, Call, subplans, walk
from quereus_store.plan.nodes import MutationScan, PlanNode, TableFunctionScan, expressions, walk_plan


def non_deterministic_in(expression: BoundExpression) -> str | None:
    """The name of the first thing in an expression that is not deterministic; None if all is."""
    return next(_in_expression(expression), None)


def _in_expression(expression: BoundExpression) -> Iterator[str]:
    for part in walk(expression):
        if isinstance(part, Call | AggregateCall) and not part.function.deterministic:
            yield part.function.name
    for plan in subplans(expression):
        yield from _in_plan(plan)


def _in_plan(plan: PlanNode) -> Iterator[str]:
    for node in walk_plan(plan):
        if isinstance(node, MutationScan):
            yield "data modification"
        elif isinstance(node, TableFunctionScan) and not node.function.deterministic:
            yield node.function.name
        for expression in expressions(node):
            yield from _in_expression(expression)
