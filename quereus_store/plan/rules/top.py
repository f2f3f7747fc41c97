"""Sort and Limit in one: only the rows that can still be among the first are kept while reading."""

from __future__ import annotations

from dataclasses import replace

from quereus_store.plan import nodes
from quereus_store.plan.optimizer import RuleContext


def keep_top(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Merge a limit with the sort below it, through a projection too."""
    return nodes.bottom_up(plan, _merge)


def _merge(node: nodes.PlanNode) -> nodes.PlanNode:
    if not isinstance(node, nodes.Limit) or node.count is None:
        return node
    below = node.input
    if isinstance(below, nodes.Sort):
        return nodes.TopN(below.columns, below.input, below.terms, node.count, node.offset)
    if isinstance(below, nodes.Project) and isinstance(below.input, nodes.Sort):
        inner = replace(node, columns=below.input.columns, input=below.input)
        return replace(below, input=_merge(inner))
    return node
