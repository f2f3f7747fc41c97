"""Disjunctions give up what all their branches share, and tell each table what they imply for it.

``(a.id = b.id and p) or (a.id = b.id and q)`` is ``a.id = b.id and (p or q)``, in three-valued logic as
well; only so do the join rules find the equality.  What is left of a condition over several tables implies
a condition on one of them, if each branch says something of that table alone: ``(a.x = 1 and b.y = 2) or
(a.x = 3 and b.y = 4)`` implies ``a.x = 1 or a.x = 3``.  That is added to it and pushed down, and keeps rows
out of the join.

A branch may guard a part that fails for other rows (``kind = 'n' and number_of(text) > 4``), so what can
raise stays where it is, and with it the branch: the disjunction is kept whole beside what its branches share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quereus_store.plan import nodes
from quereus_store.plan.analysis import is_deterministic_expression, may_raise
from quereus_store.plan.conditions import MIRRORED, conjunction, conjuncts
from quereus_store.plan.expressions import (
    BoundExpression,
    Cast,
    Comparison,
    Disjunction,
    walk,
)
from quereus_store.plan.optimizer import RuleContext
from quereus_store.types import BOOLEAN

_WORTH_TESTING = 0.7
"""An implied condition that lets more rows through than this share is not added."""

_Branches = list[list[BoundExpression]]


def factor_disjunctions(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Rewrite the disjunctions in the filters and join conditions of a plan."""

    def rewrite(node: nodes.PlanNode) -> nodes.PlanNode:
        if isinstance(node, nodes.Filter):
            predicate = _rewritten(node.predicate, node.input, context)
            return node if predicate is None else replace(node, predicate=predicate)
        if isinstance(node, nodes.Join) and node.condition is not None:
            condition = _rewritten(node.condition, node, context)
            return node if condition is None else replace(node, condition=condition)
        return node

    return nodes.bottom_up(plan, rewrite)


def _rewritten(
    predicate: BoundExpression, over: nodes.PlanNode, context: RuleContext
) -> BoundExpression | None:
    """The predicate over a plan's rows with its disjunctions rewritten; None if there is nothing to do."""
    whole = conjuncts(predicate)
    if not any(isinstance(part, Disjunction) for part in whole):
        return None
    parts: list[BoundExpression] = []
    for part in whole:
        parts += _factored(part, over, context) if isinstance(part, Disjunction) else [part]
    return None if parts == whole else conjunction(parts)


def _factored(disjunction: Disjunction, over: nodes.PlanNode, context: RuleContext) -> list[BoundExpression]:
    branches = [conjuncts(operand) for operand in disjunction.operands]
    shared = [
        part
        for part in branches[0]
        if _may_be_moved(part) and all(_holds(branch, part) for branch in branches[1:])
    ]
    if shared:
        branches = [[part for part in branch if not _holds(shared, part)] for branch in branches]
        if not all(branches):
            # A branch that says nothing more is true with what is shared.
            return shared
    guarded = any(may_raise(part) for branch in branches for part in branch)
    rest = _any_of(branches) if shared and not guarded else disjunction
    return [*shared, rest, *_implied(branches, over, context)]


def _may_be_moved(part: BoundExpression) -> bool:
    """Whether a condition is the same, and raises nothing, whatever is asked before it."""
    if any(isinstance(each, Cast) for each in walk(part)):
        return False
    return is_deterministic_expression(part) and not may_raise(part)


def _holds(parts: Sequence[BoundExpression], wanted: BoundExpression) -> bool:
    """Whether a condition is among these, perhaps with its sides exchanged."""
    if wanted in parts:
        return True
    if not isinstance(wanted, Comparison) or wanted.operator not in MIRRORED:
        return False
    turned = replace(wanted, operator=MIRRORED[wanted.operator], left=wanted.right, right=wanted.left)
    return turned in parts


def _any_of(branches: _Branches) -> BoundExpression:
    operands = [operand for branch in branches if (operand := conjunction(branch)) is not None]
    return Disjunction(BOOLEAN, any(operand.nullable for operand in operands), None, tuple(operands))


def _implied(branches: _Branches, over: nodes.PlanNode, context: RuleContext) -> list[BoundExpression]:
    """The conditions on single inputs of joins that follow from some branch being true."""
    inputs = _joined(over)
    if len(inputs) < 2:
        return []
    reads = [[nodes.referenced_columns(part) for part in branch] for branch in branches]
    found = []
    for side in inputs:
        own = frozenset([column.id for column in side.columns])
        of_side = [
            [
                part
                for part, columns in zip(branch, read, strict=True)
                if columns and columns <= own and _may_be_moved(part)
            ]
            for branch, read in zip(branches, reads, strict=True)
        ]
        if not all(of_side) or of_side == branches:
            continue
        context.estimates.rows(side)
        condition = _any_of(of_side)
        if context.estimates.selectivity(condition) <= _WORTH_TESTING:
            found.append(condition)
    return found


def _joined(plan: nodes.PlanNode) -> list[nodes.PlanNode]:
    """The inputs of the joins at the top of a plan."""
    if isinstance(plan, nodes.Join):
        return [*_joined(plan.left), *_joined(plan.right)]
    if isinstance(plan, nodes.Filter) and isinstance(plan.input, nodes.Join):
        return _joined(plan.input)
    return [plan]
