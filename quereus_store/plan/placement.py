"""Where in a tree of inner joins something stands that is asked about a few columns of its rows.

A comma list with WHERE is bound as one filter over all pairs.  ``o.id in (select ...)`` reads ``o``
alone, so its semi-join may stand over ``o`` itself, and what is then joined with ``o`` starts from few
rows; and a correlated subquery runs for the rows that are left where the filter's other conditions have
been pushed to.  The part that holds all the columns is found here, before filters are pushed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from quereus_store.plan import nodes
from quereus_store.plan.conditions import conjuncts, filtered
from quereus_store.plan.expressions import BoundExpression
from quereus_store.plan.nodes import JoinKind

if TYPE_CHECKING:
    from quereus_store.plan.optimizer import RuleContext

_SIDES = {
    JoinKind.INNER: ("left", "right"),
    JoinKind.CROSS: ("left", "right"),
    JoinKind.LEFT: ("left",),
    JoinKind.SEMI: ("left",),
    JoinKind.ANTI: ("left",),
}


def sunk(join: nodes.Join, context: RuleContext) -> nodes.PlanNode:
    """A semi- or anti-join over the part of its left side that it reads, where that has no more rows.

    Rows that joins leave out need not be tested; but where joins only make more of them, it is
    the other way round.
    """
    plan, predicates = _unfiltered(join.left)
    needed = set() if join.condition is None else nodes.referenced_columns(join.condition)
    needed &= {column.id for column in plan.columns}
    part = _part_with(plan, needed)
    if part is plan or not needed:
        return join
    if context.estimates.rows(_with_own(part, predicates)) > context.estimates.rows(join.left):
        return join
    tested = _put(plan, needed, lambda left: replace(join, columns=left.columns, left=left))
    return filtered(tested, predicates)


def rows_asked(plan: nodes.PlanNode, needed: Collection[int], context: RuleContext) -> float:
    """For how many different rows about a subquery runs that reads these columns of a plan."""
    below, predicates = _unfiltered(plan)
    rows = context.estimates.rows(plan)
    part = _part_with(below, needed)
    return rows if part is below else min(rows, context.estimates.rows(_with_own(part, predicates)))


def _unfiltered(plan: nodes.PlanNode) -> tuple[nodes.PlanNode, list[BoundExpression]]:
    predicates: list[BoundExpression] = []
    while isinstance(plan, nodes.Filter):
        predicates = [*conjuncts(plan.predicate), *predicates]
        plan = plan.input
    return plan, predicates


def _part_with(plan: nodes.PlanNode, needed: Collection[int]) -> nodes.PlanNode:
    """The smallest part of a tree of joins that has these columns and may be filtered by them."""
    side = _side_with(plan, needed)
    return plan if side is None else _part_with(getattr(plan, side), needed)


def _put(
    plan: nodes.PlanNode, needed: Collection[int], change: Callable[[nodes.PlanNode], nodes.PlanNode]
) -> nodes.PlanNode:
    """The tree with that part changed."""
    side = _side_with(plan, needed)
    if side is None:
        return change(plan)
    return replace(plan, **{side: _put(getattr(plan, side), needed, change)})  # type: ignore[arg-type]


def _side_with(plan: nodes.PlanNode, needed: Collection[int]) -> str | None:
    if not isinstance(plan, nodes.Join) or plan.lateral:
        return None
    if plan.left_flag is not None or plan.right_flag is not None:
        return None
    for side in _SIDES.get(plan.kind, ()):
        if {column.id for column in getattr(plan, side).columns}.issuperset(needed):
            return side
    return None


def _with_own(part: nodes.PlanNode, predicates: Sequence[BoundExpression]) -> nodes.PlanNode:
    """A part under those of the predicates that read nothing else."""
    own = {column.id for column in part.columns}
    return filtered(part, [each for each in predicates if own.issuperset(nodes.referenced_columns(each))])
