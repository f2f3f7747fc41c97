"""A plan with changed rows in the place of a table: the heart of every delta program.

A plan is *linear* in one scan of a table if the result over the union of two sets of
rows is the union of the results.  Then the changes of the result are the result over
the changes.  Filters, projections and inner joins are linear, and so is the kept side
of an outer join, whatever the other side is.

With several changed scans the product rule applies, over the sources as they are *now*::

    new - old  =  dA·B + A·dB - dA·dB

so each set of changed scans gives a term, and its sign.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from quereus_store.plan import nodes as plans
from quereus_store.plan.expressions import Column, reference
from quereus_store.plan.nodes import SEMI_JOINS, JoinKind

Scan = int
"""A scan is known by the number of its first column."""


def scan_id(scan: plans.TableScan) -> Scan:
    """The number under which a scan is known."""
    return scan.columns[0].id


def holds(plan: plans.PlanNode, scan: Scan) -> bool:
    """Whether a plan reads through that scan."""
    return any(isinstance(n, plans.TableScan) and scan_id(n) == scan for n in plans.walk_plan(plan))


def is_linear(plan: plans.PlanNode, scan: Scan) -> bool:
    """Whether the plan is linear in a scan that it holds."""
    if isinstance(plan, plans.TableScan):
        return True
    if isinstance(plan, plans.Filter | plans.Project | plans.Sort):
        return is_linear(plan.input, scan)
    if isinstance(plan, plans.Join):
        side = plan.left if holds(plan.left, scan) else plan.right
        return _keeps(plan, side) and is_linear(side, scan)
    if isinstance(plan, plans.SetOperation) and plan.kind is plans.SetKind.UNION and plan.all:
        if plan.left_flag is not None or plan.right_flag is not None:
            return False
        return is_linear(plan.left if holds(plan.left, scan) else plan.right, scan)
    return False


_KEEPS_LEFT = frozenset({JoinKind.INNER, JoinKind.CROSS, JoinKind.LEFT, *SEMI_JOINS})
_KEEPS_RIGHT = frozenset({JoinKind.INNER, JoinKind.CROSS, JoinKind.RIGHT})


def _keeps(join: plans.Join, side: plans.PlanNode) -> bool:
    """Whether each row of a side gives its own rows of the join, whatever other rows there are."""
    return join.kind in (_KEEPS_LEFT if side is join.left else _KEEPS_RIGHT)


def substituted(plan: plans.PlanNode, slots: Mapping[Scan, int], estimate: float) -> plans.PlanNode | None:
    """The plan over given rows in the place of some scans; None where these never meet."""
    if isinstance(plan, plans.TableScan):
        slot = slots.get(scan_id(plan))
        return plan if slot is None else _given(plan, slot, estimate)
    if isinstance(plan, plans.SetOperation):
        return _branch(plan, slots, estimate)
    parts: dict[int, plans.PlanNode] = {}
    for child in plans.inputs(plan):
        inner = substituted(child, slots, estimate) if _holds_any(child, slots) else child
        if inner is None:
            return None
        parts[id(child)] = inner
    return plans.map_inputs(plan, lambda child: parts[id(child)])


def replaced(plan: plans.PlanNode, slots: Mapping[Scan, int], estimate: float) -> plans.PlanNode:
    """The plan over given rows in the place of some scans, wherever they are."""
    if isinstance(plan, plans.TableScan):
        slot = slots.get(scan_id(plan))
        return plan if slot is None else _given(plan, slot, estimate)
    return plans.map_inputs(plan, lambda child: replaced(child, slots, estimate))


def _holds_any(plan: plans.PlanNode, scans: Collection[Scan]) -> bool:
    return any(holds(plan, scan) for scan in scans)


def _given(scan: plans.TableScan, slot: int, estimate: float) -> plans.PlanNode:
    if scan.positions == tuple(range(len(scan.table.columns))):
        return plans.GivenRows(scan.columns, slot, estimate)
    raise AssertionError("a logical scan keeps all columns of its table")


def _branch(plan: plans.SetOperation, slots: Mapping[Scan, int], estimate: float) -> plans.PlanNode | None:
    """The side of a UNION ALL that the changes are on; nothing if they are on both."""
    sides = [side for side in (plan.left, plan.right) if _holds_any(side, slots)]
    if len(sides) != 1:
        return None
    inner = substituted(sides[0], slots, estimate)
    if inner is None:
        return None
    return plans.Project(plan.columns, inner, tuple(map(reference, sides[0].columns[: len(plan.columns)])))


def with_columns(plan: plans.PlanNode, columns: tuple[Column, ...]) -> plans.PlanNode:
    """The plan with exactly these columns, which it has, in this order."""
    if [column.id for column in plan.columns] == [column.id for column in columns]:
        return plan if plan.columns == columns else replace(plan, columns=columns)
    return plans.Project(columns, plan, tuple(map(reference, columns)))
