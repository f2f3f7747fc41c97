"""Read joins and filters from a stored query that has made them already.

::

    select g.name from item i join grp g on g.id = i.grp where i.id < 10
    FILTER id < 10  /  SCAN main.named        where ``named`` stores id and name of the join

The block has to read the same tables under at least the same conditions; what is read of it and what it still
asks for has to be told by stored columns.  It may stand anywhere: at the top, below a
grouping or a window, on a side of an outer join or of a set operation.  The cheaper way wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quereus_store.plan import nodes
from quereus_store.plan.expressions import BoundExpression, Column, Literal, reference
from quereus_store.plan.optimizer import RuleContext, physical_cost
from quereus_store.plan.stored import (
    Block,
    Known,
    Remainder,
    StoredQuery,
    Unknown,
    block_of,
    cheapest,
    column_of,
    in_stored,
    narrowed,
    nothing_stored,
    order_matters,
    reads_much,
    remainder,
    scan_of,
)


def use_stored_rows(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Replace blocks of joins, filters and projections by stored queries."""
    if context.stored is nothing_stored or not reads_much(plan, context.estimates.table_rows):
        return plan
    return _visit(plan, frozenset([column.id for column in plan.columns]), context)


def _visit(plan: nodes.PlanNode, needed: frozenset[int], context: RuleContext) -> nodes.PlanNode:
    """``needed``: the columns of the plan that somebody reads."""
    if isinstance(plan, _BLOCKS):
        found = _replaced(plan, needed, context)
        if found is not None:
            return found
    if order_matters(plan):
        return plan
    below = _needed_below(plan, needed)

    def visited(child: nodes.PlanNode) -> nodes.PlanNode:
        wanted = frozenset([column.id for column in child.columns])
        return _visit(child, wanted if below is None else wanted & below, context)

    changed = nodes.map_inputs(plan, visited)
    if changed is plan or not isinstance(plan, nodes.Join):
        return changed
    # What is cheaper by itself need not be so in a join, which may look rows up.
    assert isinstance(changed, nodes.Join)
    ways = [changed]
    if changed.left is not plan.left and changed.right is not plan.right:
        ways += [replace(plan, left=changed.left), replace(plan, right=changed.right)]
    return cheapest(plan, ways, lambda way: physical_cost(way, context)) or plan


_BLOCKS = (nodes.Project, nodes.Join, nodes.Filter)
_POSITIONAL = (nodes.SetOperation, nodes.Distinct, nodes.With, nodes.Recursion)


def _needed_below(plan: nodes.PlanNode, needed: frozenset[int]) -> frozenset[int] | None:
    """What a node reads of its inputs; None for all there is."""
    if isinstance(plan, _POSITIONAL):
        return None
    used = set() if isinstance(plan, nodes.Project | nodes.Aggregate) else set(needed)
    for expression in _read(plan, needed):
        used |= nodes.referenced_columns(expression)
    if isinstance(plan, nodes.Join) and plan.lateral:
        used |= nodes.free_columns(plan.right)
    return frozenset(used)


def _read(plan: nodes.PlanNode, needed: frozenset[int]) -> Sequence[BoundExpression]:
    if isinstance(plan, nodes.Project):
        pairs = zip(plan.columns, plan.expressions, strict=True)
        return [expression for column, expression in pairs if column.id in needed]
    return nodes.expressions(plan)


def _replaced(plan: nodes.PlanNode, needed: frozenset[int], context: RuleContext) -> nodes.PlanNode | None:
    block = block_of(plan)
    if block is None:
        return None
    found = []
    for stored in context.stored(block.tables):
        other = _from_stored(block, plan.columns, needed, stored, context)
        if other is not None:
            found.append(other)
    return cheapest(plan, found, lambda way: physical_cost(way, context))


def _from_stored(
    block: Block,
    columns: tuple[Column, ...],
    needed: frozenset[int],
    stored: StoredQuery,
    context: RuleContext,
) -> nodes.PlanNode | None:
    plan = stored.plan
    while isinstance(plan, nodes.Sort):
        plan = plan.input
    inner = block_of(plan)
    rest = None if inner is None else remainder(block, inner)
    if rest is None:
        return None
    scan = scan_of(stored.table, context.number)
    known = _known(scan, stored.plan.columns, rest)
    try:
        wanted = [
            in_stored(_made(block, column), known, rest.own) if column.id in needed else _unread(column)
            for column in columns
        ]
        rows = narrowed(scan, rest, known)
    except Unknown:
        return None
    return nodes.Project(columns, rows, tuple(wanted))


def _known(scan: nodes.TableScan, columns: tuple[Column, ...], rest: Remainder) -> Known:
    return [
        (rest.translated(reference(column)), column_of(scan, place)) for place, column in enumerate(columns)
    ]


def _unread(column: Column) -> BoundExpression:
    """What stands for a column that nobody reads."""
    return Literal(column.type, True, None, None)


def _made(block: Block, column: Column) -> BoundExpression:
    return block.expanded(reference(column))
