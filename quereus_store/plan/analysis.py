"""Properties of plans and expressions that several rules ask for."""

from __future__ import annotations

from collections.abc import Sequence

from quereus_store.plan import nodes
from quereus_store.plan.expressions import (
    AggregateCall,
    BoundExpression,
    Call,
    ColumnRef,
    subplans,
    walk,
)


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


def holds_primary_key(plan: nodes.PlanNode, keys: Sequence[BoundExpression], using: Sequence[str]) -> bool:
    """Whether key expressions over a (filtered) table hold its whole primary key: no two rows share them."""
    scan = plan.input if isinstance(plan, nodes.Filter) else plan
    if not isinstance(scan, nodes.TableScan | nodes.IndexAccess):
        return False
    positions = {column.id: position for column, position in zip(scan.columns, scan.positions, strict=True)}
    held = {
        (positions[key.id], collation)
        for key, collation in zip(keys, using, strict=True)
        if isinstance(key, ColumnRef) and key.id in positions
    }
    parts = scan.table.primary_key.parts
    return bool(parts) and all((part.column, part.collation) in held for part in parts)
