"""Projection pushdown: what no operator above reads is not carried along.

A scan hands out whole rows whatever is read of them, so there is nothing to
save in a pipeline that runs from a table to the result.  It is the breakers
(sorts, hash tables, unions) that keep rows, and below these an operator that
computes columns loses the ones nobody reads.
"""

from __future__ import annotations

from dataclasses import replace

from quereus_store.plan import nodes
from quereus_store.plan.optimizer import RuleContext


def prune_columns(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Drop unread columns below the top."""
    below = plan
    while isinstance(below, _WHOLE):
        below = below.input
    if isinstance(below, nodes.Project):
        below = below.input
    if not any(isinstance(node, nodes.Project) for node in nodes.walk_plan(below)):
        return plan
    return _prune(plan, frozenset([column.id for column in plan.columns]))


_WHOLE = (nodes.Filter, nodes.Limit, nodes.Sort, nodes.TopN)
"""What reads no more of the rows below it than it gives: the whole of them, at the top."""


def _prune(node: nodes.PlanNode, needed: frozenset[int]) -> nodes.PlanNode:
    if isinstance(node, nodes.Project):
        kept = [
            (column, expression)
            for column, expression in zip(node.columns, node.expressions, strict=True)
            if column.id in needed
        ]
        if len(kept) < len(node.columns):
            node = replace(
                node,
                columns=tuple(column for column, _ in kept),
                expressions=tuple(expression for _, expression in kept),
            )
    used = set(needed)
    for expression in nodes.expressions(node):
        used |= nodes.referenced_columns(expression)
    if isinstance(node, _POSITIONAL):
        return nodes.map_inputs(node, lambda child: _prune(child, frozenset([c.id for c in child.columns])))
    if isinstance(node, nodes.IndexJoin):
        # The look-up reads columns of the left side.
        for expression in nodes.expressions(node.inner):
            used |= nodes.referenced_columns(expression)
    if isinstance(node, nodes.Join) and node.lateral:
        used |= nodes.free_columns(node.right)
    wanted = frozenset(used)
    pruned = nodes.map_inputs(node, lambda child: _prune(child, wanted))
    return _narrowed(pruned)


_POSITIONAL = (nodes.SetOperation, nodes.Distinct, nodes.Window, nodes.With, nodes.Recursion)


def _narrowed(node: nodes.PlanNode) -> nodes.PlanNode:
    """A node that passes its inputs' columns on lists only those that are left."""
    if isinstance(node, _PASSING):
        available = {column.id for child in nodes.inputs(node) for column in child.columns}
        own = {
            flag for name in ("left_flag", "right_flag") if (flag := getattr(node, name, None)) is not None
        }
        kept = tuple(column for column in node.columns if column.id in available | own)
        if len(kept) < len(node.columns):
            return replace(node, columns=kept)
    return node


_PASSING = (
    nodes.Filter,
    nodes.Sort,
    nodes.TopN,
    nodes.Limit,
    nodes.SingleRow,
    nodes.Join,
    nodes.HashJoin,
    nodes.MergeJoin,
    nodes.IndexJoin,
)
