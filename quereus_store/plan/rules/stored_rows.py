"""Read joins and filters from a stored query that has made them already.

::

    select g.name from item i join grp g on g.id = i.grp where i.id < 10
    FILTER id < 10  /  SCAN main.named        where ``named`` stores id and name of the join

The block has to read the same tables under at least the same conditions, and everything that it gives and
still asks for has to be told by stored columns.  The cheaper way wins.
"""

from __future__ import annotations

from quereus_store.plan import nodes
from quereus_store.plan.analysis import has_subquery
from quereus_store.plan.expressions import BoundExpression, Column, reference
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
    reads_much,
    remainder,
    scan_of,
)


def use_stored_rows(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Replace blocks of joins, filters and projections by stored queries."""
    if context.stored is nothing_stored or not reads_much(plan, context.estimates.table_rows):
        return plan
    return _visit(plan, context)


def _visit(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    if isinstance(plan, nodes.Project | nodes.Join):
        found = _replaced(plan, plan.columns, context)
        if found is not None:
            return found
    if isinstance(plan, nodes.Aggregate) and not _depends_on_order(plan):
        used = _used(plan)
        needed = tuple([column for column in plan.input.columns if column.id in used])
        found = _replaced(plan.input, needed, context)
        if found is not None:
            return nodes.map_inputs(plan, lambda child: found)
    return nodes.map_inputs(plan, lambda child: _visit(child, context))


def _used(plan: nodes.Aggregate) -> set[int]:
    used: set[int] = set()
    for expression in nodes.expressions(plan):
        used |= nodes.referenced_columns(expression)
    return used


def _depends_on_order(plan: nodes.Aggregate) -> bool:
    return any(call.function.ordered or has_subquery(call) for call in plan.aggregates)


def _replaced(
    plan: nodes.PlanNode, columns: tuple[Column, ...], context: RuleContext
) -> nodes.PlanNode | None:
    block = block_of(plan)
    if block is None:
        return None
    found = []
    for stored in context.stored(block.tables):
        other = _from_stored(block, columns, stored, context)
        if other is not None:
            found.append(other)
    return cheapest(plan, found, lambda way: physical_cost(way, context))


def _from_stored(
    block: Block, columns: tuple[Column, ...], stored: StoredQuery, context: RuleContext
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
        wanted = [in_stored(_made(block, column), known, rest.own) for column in columns]
        rows = narrowed(scan, rest, known)
    except Unknown:
        return None
    return nodes.Project(columns, rows, tuple(wanted))


def _known(scan: nodes.TableScan, columns: tuple[Column, ...], rest: Remainder) -> Known:
    return [
        (rest.translated(reference(column)), column_of(scan, place)) for place, column in enumerate(columns)
    ]


def _made(block: Block, column: Column) -> BoundExpression:
    return block.expanded(reference(column))
