"""Projection pushdown: what no operator above reads is not carried along.

A scan hands out whole rows whatever is read of them, so there is nothing to
save in a pipeline that runs from a table to the result.  It is the breakers
(sorts, hash tables, unions) that keep rows, and below these an operator that
computes columns, or joins rows, loses the ones nobody reads.
"""

from __future__ import annotations

from dataclasses import replace

from quereus_store.plan import nodes
from quereus_store.plan.optimizer import RuleContext


def prune_columns(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Drop unread columns below the top."""
    computing: set[int] = set()
    _note_computing(plan, computing)
    return _prune(plan, _ids(plan), computing)


def _note_computing(node: nodes.PlanNode, found: set[int]) -> bool:
    """Add the identities of nodes that make rows or stand over one that does: only there columns may go."""
    below = [_note_computing(child, found) for child in nodes.inputs(node)]
    computes = isinstance(node, _MAKING) or True in below
    if computes:
        found.add(id(node))
    return computes


def _prune(node: nodes.PlanNode, needed: frozenset[int], computing: set[int]) -> nodes.PlanNode:
    if id(node) not in computing:
        return node
    if isinstance(node, nodes.Project):
        kept = [
            (column, expression)
            for column, expression in zip(node.columns, node.expressions, strict=True)
            if column.id in needed
        ]
        if len(kept) < len(node.columns):
            node = replace(
                node,
                columns=tuple([column for column, _ in kept]),
                expressions=tuple([expression for _, expression in kept]),
            )
    used = set(needed)
    for expression in nodes.expressions(node):
        used |= nodes.referenced_columns(expression)
    if isinstance(node, _POSITIONAL):
        return nodes.map_inputs(node, lambda child: _prune(child, _ids(child), computing))
    if isinstance(node, nodes.IndexJoin):
        # The look-up reads columns of the left side.
        for expression in nodes.expressions(node.inner):
            used |= nodes.referenced_columns(expression)
    if isinstance(node, nodes.Join) and node.lateral:
        used |= nodes.free_columns(node.right)
    wanted = frozenset(used)
    pruned = nodes.map_inputs(node, lambda child: _prune(child, wanted, computing))
    return _narrowed(pruned, needed)


def _ids(plan: nodes.PlanNode) -> frozenset[int]:
    return frozenset([column.id for column in plan.columns])


_POSITIONAL = (nodes.SetOperation, nodes.Distinct, nodes.Window, nodes.With, nodes.Recursion)


def _narrowed(node: nodes.PlanNode, needed: frozenset[int]) -> nodes.PlanNode:
    """The node with the columns that its inputs still have, a join with those that are needed."""
    if isinstance(node, _JOINS):
        kept = tuple(column for column in node.columns if column.id in needed)
        return replace(node, columns=kept) if len(kept) < len(node.columns) else node
    if isinstance(node, _PASSING):
        available = {column.id for child in nodes.inputs(node) for column in child.columns}
        kept = tuple(column for column in node.columns if column.id in available)
        if len(kept) < len(node.columns):
            return replace(node, columns=kept)
    return node


_JOINS = (nodes.Join, nodes.HashJoin, nodes.MergeJoin, nodes.IndexJoin)
_PASSING = (nodes.Filter, nodes.Sort, nodes.TopN, nodes.Limit, nodes.SingleRow)
_MAKING = (nodes.Project, *_JOINS)
