"""Anchors: output columns by whose values one can tell which rows a change may have moved.

A set of columns is an *anchor* for a changed scan if every result row that differs
before and after the change has, in these columns, a value that some changed row leads to.
For a grouping that is the group key, for a window its partition, for a LEFT join the
columns of the left side.  :func:`anchors` finds them, :func:`touched` gives the plan that
computes the touched values from the changed rows.

Each anchor column goes with the collation under which its values are compared: a
group of 'Ab' and 'aB' is touched by either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from quereus_store.plan import nodes as plans
from quereus_store.plan.analysis import has_subquery, is_deterministic_expression
from quereus_store.plan.expressions import BoundExpression, Column, ColumnRef, reference
from quereus_store.plan.nodes import JoinKind
from quereus_store.types.collations import honours_collation
from quereus_store.views.deltas.substitution import Scan, holds, is_linear, substituted

Anchors = dict[int, str]
Number = Callable[[], int]
BINARY = "BINARY"


def anchors(plan: plans.PlanNode, scan: Scan) -> Anchors:
    """The anchor columns of a plan for a scan that it holds; empty when there are none."""
    if is_linear(plan, scan):
        return {column.id: BINARY for column in plan.columns}
    find = _FINDERS.get(type(plan))
    return {} if find is None else find(plan, scan)


def _same(plan: Any, scan: Scan) -> Anchors:
    return anchors(plan.input, scan)


def _project(plan: plans.Project, scan: Scan) -> Anchors:
    inner = anchors(plan.input, scan)
    if not inner:
        return {}  # also for constants: there is no way down to the changed rows
    found: Anchors = {}
    for column, expression in zip(plan.columns, plan.expressions, strict=True):
        if isinstance(expression, ColumnRef):
            if expression.id in inner:
                found[column.id] = inner[expression.id]
        elif _computable(expression, inner):
            found[column.id] = BINARY
    return found


def _computable(expression: BoundExpression, inner: Anchors) -> bool:
    """Whether equal anchor values give equal values of an expression, byte by byte."""
    used = plans.referenced_columns(expression)
    return (
        all(inner.get(column) == BINARY for column in used)
        and is_deterministic_expression(expression)
        and not has_subquery(expression)
    )


def _aggregate(plan: plans.Aggregate, scan: Scan) -> Anchors:
    if plan.sets is not None:
        return {}
    inner = anchors(plan.input, scan)
    linear = is_linear(plan.input, scan)
    found: Anchors = {}
    for column, key, using in zip(plan.columns, plan.keys, plan.using, strict=False):
        own = using if honours_collation(column.type) else BINARY
        if isinstance(key, ColumnRef) and key.id in inner:
            joined = _joined(inner[key.id], own)
            if joined is not None:
                found[column.id] = joined
        elif linear and is_deterministic_expression(key) and not has_subquery(key):
            found[column.id] = own
    return found


def _joined(one: str, other: str) -> str | None:
    """The coarser of two collations, one of which is BINARY; None for two others."""
    if one == other or other == BINARY:
        return one
    return other if one == BINARY else None


def _window(plan: plans.Window, scan: Scan) -> Anchors:
    inner = anchors(plan.input, scan)
    found: Anchors = {}
    for expression, using in zip(plan.partition, plan.partition_using, strict=True):
        if isinstance(expression, ColumnRef) and expression.id in inner:
            joined = _joined(inner[expression.id], using if honours_collation(expression.type) else BINARY)
            if joined is not None:
                found[expression.id] = joined
    return found


def _distinct(plan: plans.Distinct, scan: Scan) -> Anchors:
    inner = anchors(plan.input, scan)
    return _positional(plan.columns, plan.input.columns, inner, plan.using)


def _positional(
    outer: Sequence[Column], columns: Sequence[Column], inner: Anchors, using: Sequence[str]
) -> Anchors:
    found: Anchors = {}
    for column, own, name in zip(outer, columns, using, strict=False):
        if own.id in inner:
            joined = _joined(inner[own.id], name if honours_collation(column.type) else BINARY)
            if joined is not None:
                found[column.id] = joined
    return found


def _set_operation(plan: plans.SetOperation, scan: Scan) -> Anchors:
    side = plan.left if holds(plan.left, scan) else plan.right
    flags = {plan.left_flag, plan.right_flag}
    matched = [column for column in plan.columns if column.id not in flags]
    using = [BINARY] * len(matched) if plan.kind is plans.SetKind.UNION and plan.all else plan.using
    return _positional(matched, side.columns, anchors(side, scan), using)


_KEPT = {
    JoinKind.LEFT: "left",
    JoinKind.SEMI: "left",
    JoinKind.ANTI: "left",
    JoinKind.RIGHT: "right",
}


def _join(plan: plans.Join, scan: Scan) -> Anchors:
    name = "left" if holds(plan.left, scan) else "right"
    side = getattr(plan, name)
    if plan.lateral:
        return anchors(plan.left, scan) if name == "left" and plan.kind is not JoinKind.FULL else {}
    if plan.kind in (JoinKind.INNER, JoinKind.CROSS):
        return anchors(side, scan)
    kept = _KEPT.get(plan.kind)
    if kept is None:
        return {}
    if kept == name:
        return anchors(side, scan)
    inner = anchors(side, scan)
    if all(inner.get(column) == BINARY for column in _condition_columns(plan, side)):
        keeping = plan.left if kept == "left" else plan.right
        return {column.id: BINARY for column in keeping.columns}
    return {}


def _condition_columns(plan: plans.Join, side: plans.PlanNode) -> list[int]:
    """The columns of a side that decide which rows it meets."""
    own = [column.id for column in side.columns]
    if plan.condition is None:
        return own[:1]
    used = plans.referenced_columns(plan.condition)
    return [column for column in own if column in used] or own[:1]


_FINDERS: Mapping[type[plans.PlanNode], Callable[[Any, Scan], Anchors]] = MappingProxyType(
    {
        plans.Filter: _same,
        plans.Sort: _same,
        plans.Project: _project,
        plans.Aggregate: _aggregate,
        plans.Window: _window,
        plans.Distinct: _distinct,
        plans.SetOperation: _set_operation,
        plans.Join: _join,
    }
)


# --- the touched values -----------------------------------------------------------------------------------


class TouchedValues:
    """Writes the plan that computes the values of anchor columns from the rows of one changed scan."""

    def __init__(self, scan: Scan, slot: int, estimate: float, number: Number) -> None:
        self._scan = scan
        self._slot = slot
        self._estimate = estimate
        self._number = number

    def plan(self, node: plans.PlanNode, wanted: Sequence[BoundExpression]) -> plans.PlanNode | None:
        """A plan with one column per expression over the node's anchor columns; None: nothing is touched."""
        if is_linear(node, self._scan):
            inner = substituted(node, {self._scan: self._slot}, self._estimate)
            return None if inner is None else self._project(inner, wanted)
        if isinstance(node, plans.Project):
            mapping = dict(zip((column.id for column in node.columns), node.expressions, strict=True))
            return self.plan(node.input, [plans.substitute(each, mapping) for each in wanted])
        if isinstance(node, plans.Aggregate):
            keys = dict(zip((column.id for column in node.columns), node.keys, strict=False))
            return self.plan(node.input, [plans.substitute(each, keys) for each in wanted])
        if isinstance(node, plans.Filter | plans.Sort | plans.Window):
            return self.plan(node.input, wanted)
        if isinstance(node, plans.Distinct):
            return self.plan(node.input, wanted)
        if isinstance(node, plans.SetOperation):
            return self._set_operation(node, wanted)
        assert isinstance(node, plans.Join)
        return self._join(node, wanted)

    def _project(self, node: plans.PlanNode, wanted: Sequence[BoundExpression]) -> plans.PlanNode:
        columns = [
            Column(self._number(), f"key{place}", each.type, each.nullable, each.collation)
            for place, each in enumerate(wanted)
        ]
        return plans.Project(tuple(columns), node, tuple(wanted))

    def _set_operation(
        self, node: plans.SetOperation, wanted: Sequence[BoundExpression]
    ) -> plans.PlanNode | None:
        side = node.left if holds(node.left, self._scan) else node.right
        mapping: dict[int, BoundExpression] = {
            column.id: reference(own) for column, own in zip(node.columns, side.columns, strict=False)
        }
        return self.plan(side, [plans.substitute(each, mapping) for each in wanted])

    def _join(self, node: plans.Join, wanted: Sequence[BoundExpression]) -> plans.PlanNode | None:
        on_left = holds(node.left, self._scan)
        side, other = (node.left, node.right) if on_left else (node.right, node.left)
        if node.kind in (JoinKind.INNER, JoinKind.CROSS) or (_KEPT[node.kind] == "left") is on_left:
            return self.plan(side, wanted)
        ids = _condition_columns(node, side)
        by_id = {column.id: column for column in side.columns}
        met = self.plan(side, [reference(by_id[each]) for each in ids])
        if met is None:
            return None
        mapping: dict[int, BoundExpression] = {
            old: reference(new) for old, new in zip(ids, met.columns, strict=True)
        }
        condition = None if node.condition is None else plans.substitute(node.condition, mapping)
        kind = JoinKind.CROSS if condition is None else JoinKind.INNER
        pairs = plans.Join((*met.columns, *other.columns), kind, met, other, condition)
        return self._project(pairs, wanted)
