"""A plan restricted to given values of some of its columns.

The values arrive as rows (:class:`GivenRows`), each set of values once.  They are
joined as far down as the columns can be followed: below the grouping, the window, on
both sides of a set operation; where a table has an index over the columns, the join
becomes look-ups in it, otherwise one pass over the table.

NULL is compared by IS NULL, so a program is made for one *pattern* of which
values are NULL; :func:`restricted` takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from quereus_store.plan import nodes as plans
from quereus_store.plan.conditions import conjunction, filtered
from quereus_store.plan.expressions import (
    BoundExpression,
    Column,
    ColumnRef,
    Comparison,
    IsTest,
    Truth,
    reference,
)
from quereus_store.plan.nodes import JoinKind
from quereus_store.types import BOOLEAN, LogicalType
from quereus_store.views.deltas.substitution import with_columns


class Target(NamedTuple):
    """One column to restrict: what it is here, how it is compared, whether the values are NULL."""

    expression: BoundExpression
    using: str
    type: LogicalType
    is_null: bool


@dataclass(frozen=True, slots=True)
class Restrictor:
    """Writes restricted plans; ``slot`` is where the values come from."""

    slot: int
    estimate: float
    number: Callable[[], int]

    def restricted(self, plan: plans.PlanNode, targets: Sequence[Target]) -> plans.PlanNode:
        """The plan's rows whose targets have the given values."""
        below = self._below(plan, targets)
        return self._here(plan, targets) if below is None else below

    def _below(self, plan: plans.PlanNode, targets: Sequence[Target]) -> plans.PlanNode | None:
        if isinstance(plan, plans.Filter | plans.Sort):
            inner = self.restricted(plan.input, targets)
            return replace(plan, input=with_columns(inner, plan.input.columns))
        if isinstance(plan, plans.Project):
            mapping = dict(zip((column.id for column in plan.columns), plan.expressions, strict=True))
            return replace(plan, input=self.restricted(plan.input, _mapped(targets, mapping)))
        if isinstance(plan, plans.Aggregate) and plan.sets is None:
            keys = dict(zip((column.id for column in plan.columns), plan.keys, strict=False))
            if _read(targets) <= keys.keys():
                return replace(plan, input=self.restricted(plan.input, _mapped(targets, keys)))
        if isinstance(plan, plans.Window):
            partition = {e.id for e in plan.partition if isinstance(e, ColumnRef)}
            if _read(targets) <= partition:
                inner = self.restricted(plan.input, targets)
                return replace(plan, input=with_columns(inner, plan.input.columns))
        if isinstance(plan, plans.Distinct):
            inner = self.restricted(plan.input, targets)
            return replace(plan, input=with_columns(inner, plan.input.columns))
        if isinstance(plan, plans.SetOperation):
            return replace(
                plan, left=self._side(plan, plan.left, targets), right=self._side(plan, plan.right, targets)
            )
        if isinstance(plan, plans.Join):
            return self._join(plan, targets)
        return None

    def _side(
        self, plan: plans.SetOperation, side: plans.PlanNode, targets: Sequence[Target]
    ) -> plans.PlanNode:
        mapping: dict[int, BoundExpression] = {
            column.id: reference(own) for column, own in zip(plan.columns, side.columns, strict=False)
        }
        return with_columns(self.restricted(side, _mapped(targets, mapping)), side.columns)

    def _join(self, plan: plans.Join, targets: Sequence[Target]) -> plans.PlanNode | None:
        used = _read(targets)
        left = {column.id for column in plan.left.columns}
        right = {column.id for column in plan.right.columns}
        if used <= left and plan.kind not in (JoinKind.RIGHT, JoinKind.FULL):
            return replace(plan, left=self._part(plan.left, targets))
        if used <= right and plan.kind in _FOLLOW_RIGHT and not plan.lateral:
            return replace(plan, right=self._part(plan.right, targets))
        return None

    def _part(self, side: plans.PlanNode, targets: Sequence[Target]) -> plans.PlanNode:
        return with_columns(self.restricted(side, targets), side.columns)

    def _here(self, plan: plans.PlanNode, targets: Sequence[Target]) -> plans.PlanNode:
        """Join the values to the plan itself."""
        nulls = [
            IsTest(BOOLEAN, False, None, target.expression, Truth.NULL)
            for target in targets
            if target.is_null
        ]
        plan_here = filtered(plan, nulls)
        columns: list[Column] = []
        conditions: list[BoundExpression] = []
        for place, target in enumerate(targets):
            column = Column(self.number(), f"key{place}", target.type, target.is_null)
            columns.append(column)
            if not target.is_null:
                conditions.append(
                    Comparison(
                        BOOLEAN,
                        target.expression.nullable,
                        None,
                        "=",
                        reference(column),
                        target.expression,
                        target.using,
                    )
                )
        if not conditions:
            return plan_here
        values = plans.GivenRows(tuple(columns), self.slot, self.estimate)
        joined = plans.Join(
            (*values.columns, *plan_here.columns),
            JoinKind.INNER,
            values,
            plan_here,
            conjunction(conditions),
        )
        return with_columns(joined, plan.columns)


_FOLLOW_RIGHT = frozenset({JoinKind.INNER, JoinKind.CROSS, JoinKind.RIGHT})


def _mapped(targets: Sequence[Target], mapping: dict[int, BoundExpression]) -> list[Target]:
    return [target._replace(expression=plans.substitute(target.expression, mapping)) for target in targets]


def _read(targets: Sequence[Target]) -> set[int]:
    used: set[int] = set()
    for target in targets:
        used |= plans.referenced_columns(target.expression)
    return used
