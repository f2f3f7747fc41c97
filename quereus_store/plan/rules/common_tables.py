"""A common table that is read once, and not asked to be materialized, moves to its reader.

There the filters around it reach its tables.  One that is read in a subquery
stays shared, since a subquery may run many times.
"""

from __future__ import annotations

from dataclasses import replace

from quereus_store.plan import nodes
from quereus_store.plan.analysis import is_deterministic
from quereus_store.plan.expressions import reference
from quereus_store.plan.optimizer import RuleContext


def inline_common_tables(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Inline what may be inlined in every WITH."""
    return nodes.bottom_up(plan, _inline)


def _inline(node: nodes.PlanNode) -> nodes.PlanNode:
    if not isinstance(node, nodes.With):
        return node
    kept: list[nodes.CommonTable] = []
    body = node.body
    remaining = list(node.tables)
    while remaining:
        table = remaining.pop()
        if _may_move(table) and _mentions(body, remaining, kept, table.id) == (1, 0):
            body = _put(body, table)
        else:
            kept.insert(0, table)
    if not kept:
        return body
    return replace(node, tables=tuple(kept), body=body)


def _may_move(table: nodes.CommonTable) -> bool:
    return (
        not table.materialized
        and not table.shared
        and not isinstance(table.plan, nodes.Recursion)
        and is_deterministic(table.plan)
    )


def _mentions(
    body: nodes.PlanNode, earlier: list[nodes.CommonTable], later: list[nodes.CommonTable], table_id: int
) -> tuple[int, int]:
    """How often a table is read directly in the body, and how often elsewhere."""
    direct = _direct(body, table_id)
    return direct, nodes.count_readers(body, table_id) - direct + sum(
        nodes.count_readers(table.plan, table_id) for table in (*earlier, *later)
    )


def _direct(body: nodes.PlanNode, table_id: int) -> int:
    """Mentions that run once: not those within a recursion's step or a lateral side."""
    if isinstance(body, nodes.CommonTableScan):
        return int(body.table_id == table_id)
    if isinstance(body, nodes.Recursion):
        return _direct(body.seed, table_id)
    if isinstance(body, nodes.Join) and body.lateral:
        return _direct(body.left, table_id)
    return sum(_direct(child, table_id) for child in nodes.inputs(body))


def _put(body: nodes.PlanNode, table: nodes.CommonTable) -> nodes.PlanNode:
    def place(node: nodes.PlanNode) -> nodes.PlanNode:
        if isinstance(node, nodes.CommonTableScan) and node.table_id == table.id:
            references = tuple(map(reference, table.plan.columns))
            return nodes.Project(node.columns, table.plan, references)
        return node

    return nodes.bottom_up(body, place)
