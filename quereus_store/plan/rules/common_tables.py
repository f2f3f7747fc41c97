"""A common table that is read once, and not asked to be materialized, moves to its reader.

There the filters around it reach its tables.  The reader may be another common table that stays.  One that
is read in a subquery stays shared, since a subquery may run many times.
"""

from __future__ import annotations

from dataclasses import replace

from quereus_store.plan import nodes
from quereus_store.plan.analysis import is_deterministic
from quereus_store.plan.expressions import reference
from quereus_store.plan.optimizer import RuleContext

_DEEP = 60
"""Plans of so many levels do not get deeper: Python follows them no further than its stack goes."""


def inline_common_tables(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Inline what may be inlined in every WITH."""
    return nodes.bottom_up(plan, _inline)


def _inline(node: nodes.PlanNode) -> nodes.PlanNode:
    if not isinstance(node, nodes.With):
        return node
    moving = _moving(node)
    if not moving:
        return node
    plans: dict[int, nodes.PlanNode] = {}

    def place(part: nodes.PlanNode) -> nodes.PlanNode:
        plan = plans.get(part.table_id) if isinstance(part, nodes.CommonTableScan) else None
        if plan is None:
            return part
        return nodes.Project(part.columns, plan, tuple(map(reference, plan.columns)))

    kept = []
    for table in node.tables:
        plan = nodes.bottom_up(table.plan, place)
        if table.id in moving:
            plans[table.id] = plan
        else:
            kept.append(table if plan is table.plan else replace(table, plan=plan))
    body = nodes.bottom_up(node.body, place)
    return replace(node, tables=tuple(kept), body=body) if kept else body


def _moving(node: nodes.With) -> set[int]:
    """The tables that move to their readers, which are looked at first, since they may move themselves."""
    readers = nodes.count_readers(node)
    mentions = Mentions(node.body)
    moving: set[int] = set()
    for table in reversed(node.tables):
        depth = mentions.depth_of_only(table.id)
        if depth is not None and readers[table.id] == 1 and _may_move(table):
            moving.add(table.id)
        else:
            depth = 0
        mentions.add(table.plan, depth)
    return moving


class Mentions:
    """Where common tables are read in places that run once: not in a recursion's step or a lateral side."""

    def __init__(self, body: nodes.PlanNode) -> None:
        self._depths: dict[int, list[int]] = {}
        self.add(body, 0)

    def add(self, plan: nodes.PlanNode, depth: int) -> None:
        """The mentions in a plan that stands so deep."""
        waiting = [(plan, depth)]
        while waiting:
            node, depth = waiting.pop()
            if isinstance(node, nodes.CommonTableScan):
                self._depths.setdefault(node.table_id, []).append(depth)
            elif isinstance(node, nodes.Recursion):
                waiting.append((node.seed, depth + 1))
            elif isinstance(node, nodes.Join) and node.lateral:
                waiting.append((node.left, depth + 1))
            else:
                waiting += [(child, depth + 1) for child in nodes.inputs(node)]

    def depth_of_only(self, table_id: int) -> int | None:
        """How deep the only mention of a table stands; None if there are others, or it is deep already."""
        depths = self._depths.get(table_id, ())
        return depths[0] if len(depths) == 1 and depths[0] < _DEEP else None


def _may_move(table: nodes.CommonTable) -> bool:
    return (
        not table.materialized
        and not table.shared
        and not isinstance(table.plan, nodes.Recursion)
        and is_deterministic(table.plan)
    )
