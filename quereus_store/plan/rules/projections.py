"""Projections that do nothing are dropped; one over literal rows becomes literal rows.

``select id, name from t`` over a table of just these columns hands out the
table's own rows, ``select 1 + 1`` is one row that exists before anything runs.
"""

from __future__ import annotations

from quereus_store.plan import nodes
from quereus_store.plan.expressions import Column
from quereus_store.plan.optimizer import RuleContext


def drop_projections(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Simplify every projection of a plan."""
    return nodes.bottom_up(plan, _simplify)


def _simplify(node: nodes.PlanNode) -> nodes.PlanNode:
    if not isinstance(node, nodes.Project):
        return node
    if _shape(node.columns) == _shape(node.input.columns):
        return node.input
    source = node.input
    if isinstance(source, nodes.Values) and not source.columns and len(source.rows) == 1:
        return nodes.Values(node.columns, (node.expressions,))
    return node


def _shape(columns: tuple[Column, ...]) -> list[tuple[int, str]]:
    return [(column.id, column.name) for column in columns]
