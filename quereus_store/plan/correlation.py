"""Taking a subquery out of its surroundings: the conditions that tie it to outer columns move up.

A correlated subquery reads columns of the row that it is evaluated for.  Where it
does so only in conditions that can be tested later as well, on the pair of the
outer row and one of its own, the subquery becomes a plan of its own and these
conditions become those of a join::

    select 1 from task t where t.crew = c.id and t.done      -- reads c.id

is the plan ``select t.crew from task t where t.done`` with the condition
``t.crew = c.id``.  Conditions pass filters, projections (which hand the columns they
need on), sorts and inner joins; not grouping, LIMIT, DISTINCT (unless repeats do not matter),
windows and set operations, after which another set of rows would be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from quereus_store.plan import nodes
from quereus_store.plan.analysis import has_subquery, is_deterministic_expression
from quereus_store.plan.conditions import conjunction, conjuncts, filtered
from quereus_store.plan.expressions import BoundExpression, reference
from quereus_store.plan.nodes import SEMI_JOINS, JoinKind
from quereus_store.records import record

_INNER = frozenset({JoinKind.INNER, JoinKind.CROSS})
_LEFT_ONLY = frozenset({JoinKind.LEFT, *SEMI_JOINS})


@record(frozen=True, slots=True)
class Independent:
    """A subquery without its ties: a plan, and the conditions on an outer row and one of the plan's."""

    plan: nodes.PlanNode
    conditions: tuple[BoundExpression, ...] = ()


@record(frozen=True, slots=True)
class _Surroundings:
    """The outer columns, and whether only the set of the subquery's rows matters."""

    outer: frozenset[int]
    as_set: bool


def independent(plan: nodes.PlanNode, outer: frozenset[int], *, as_set: bool = False) -> Independent | None:
    """The subquery taken apart, or None where it cannot be.

    ``as_set``: neither the order of its rows nor repeats among them matter.
    """
    found = _take(plan, _Surroundings(outer, as_set))
    if nodes.free_columns(found.plan) & outer:
        return None
    return found


def _take(node: nodes.PlanNode, around: _Surroundings) -> Independent:
    take = _TAKERS.get(type(node))
    return Independent(node) if take is None else take(node, around)


def _take_filter(node: nodes.Filter, around: _Surroundings) -> Independent:
    inner = _take(node.input, around)
    tied, own = _sorted_out(conjuncts(node.predicate), around.outer)
    return Independent(filtered(inner.plan, own), (*inner.conditions, *tied))


def _sorted_out(
    predicates: Iterable[BoundExpression], outer: frozenset[int]
) -> tuple[list[BoundExpression], list[BoundExpression]]:
    """Conditions that can move up, and those that stay."""
    tied: list[BoundExpression] = []
    own: list[BoundExpression] = []
    for predicate in predicates:
        moves = (
            nodes.referenced_columns(predicate) & outer
            and not has_subquery(predicate)
            and is_deterministic_expression(predicate)
        )
        (tied if moves else own).append(predicate)
    return tied, own


def _take_project(node: nodes.Project, around: _Surroundings) -> Independent:
    inner = _take(node.input, around)
    known = {column.id for column in node.columns}
    needed: set[int] = set()
    for condition in inner.conditions:
        needed |= nodes.referenced_columns(condition)
    passed = [column for column in inner.plan.columns if column.id in needed - known]
    columns = (*node.columns, *passed)
    expressions = (*node.expressions, *map(reference, passed))
    return Independent(nodes.Project(columns, inner.plan, expressions), inner.conditions)


def _take_sort(node: nodes.Sort, around: _Surroundings) -> Independent:
    inner = _take(node.input, around)
    if around.as_set:
        return inner
    return Independent(replace(node, columns=inner.plan.columns, input=inner.plan), inner.conditions)


def _take_distinct(node: nodes.Distinct, around: _Surroundings) -> Independent:
    return _take(node.input, around) if around.as_set else Independent(node)


def _take_join(node: nodes.Join, around: _Surroundings) -> Independent:
    if node.lateral or node.left_flag is not None or node.right_flag is not None:
        return Independent(node)
    if node.kind in _INNER:
        left, right = _take(node.left, around), _take(node.right, around)
        tied, own = _sorted_out(conjuncts(node.condition), around.outer)
        columns = (*left.plan.columns, *right.plan.columns)
        joined = replace(node, columns=columns, left=left.plan, right=right.plan, condition=conjunction(own))
        return Independent(joined, (*left.conditions, *right.conditions, *tied))
    if node.kind in _LEFT_ONLY:
        left = _take(node.left, around)
        passed = node.columns[len(node.left.columns) :]
        return Independent(
            replace(node, columns=(*left.plan.columns, *passed), left=left.plan), left.conditions
        )
    return Independent(node)


_TAKERS: dict[type[nodes.PlanNode], Callable[[Any, _Surroundings], Independent]] = {
    nodes.Filter: _take_filter,
    nodes.Project: _take_project,
    nodes.Sort: _take_sort,
    nodes.Distinct: _take_distinct,
    nodes.Join: _take_join,
}


def without_outputs(plan: nodes.PlanNode) -> nodes.PlanNode:
    """What decides whether a query has rows: the plan below its outermost projections."""
    while isinstance(plan, nodes.Project):
        plan = plan.input
    return plan
