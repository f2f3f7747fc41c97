"""Groups that come one after the other are finished one after the other.

Where the rows of a grouping come ordered by its keys, as from a scan of a table whose primary
key begins with them, a group is complete when the next one begins.  Nothing else is
computed, but finished groups are handed on while reading goes on: memory stays small, a LIMIT stops
early, and the groups are in order.
"""

from __future__ import annotations

from dataclasses import replace

from quereus_store.plan import nodes
from quereus_store.plan.optimizer import RuleContext
from quereus_store.plan.orders import groups_together


def stream_groups(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Mark every grouping whose rows come in the order of its keys."""

    def mark(node: nodes.PlanNode) -> nodes.PlanNode:
        if not isinstance(node, nodes.Aggregate) or not node.keys or node.sets is not None or node.streamed:
            return node
        together = groups_together(node.input, node.keys, node.using, context.services)
        return replace(node, streamed=True) if together else node

    return nodes.bottom_up(plan, mark)
