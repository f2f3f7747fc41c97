"""Conditions that no row can meet: ``v < 5`` where a CHECK says ``v > 10``.

The test is sufficient, not complete.  It takes comparisons of a column with constants (``=``, ``<``,
``IN``, …), narrows down what each column may be, and finds a column for which nothing is left.

What a CHECK says holds of values only, for NULL passes it.  So a column counts only if a condition of the
query compares it, too: such a condition is not true of NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from quereus_store.plan.conditions import ColumnComparison, column_comparisons, conjuncts, membership
from quereus_store.plan.expressions import BoundExpression, Literal


@dataclass(slots=True)
class _Range:
    """What is left for a column: values from ``low`` to ``high``, and of ``members`` if there are any.

    A bound is a value and whether it is left out.
    """

    low: tuple[Any, bool] | None = None
    high: tuple[Any, bool] | None = None
    members: frozenset[Any] | None = None

    def above(self, value: Any, strict: bool) -> None:
        if self.low is None or (value, strict) > self.low:
            self.low = (value, strict)

    def below(self, value: Any, strict: bool) -> None:
        if self.high is None or (value, not strict) < (self.high[0], not self.high[1]):
            self.high = (value, strict)

    def among(self, values: Iterable[Any]) -> None:
        members = frozenset(values)
        self.members = members if self.members is None else self.members & members

    @property
    def is_empty(self) -> bool:
        """Whether no value is left."""
        if self.members is not None:
            return not any(map(self._holds, self.members))
        if self.low is None or self.high is None:
            return False
        (low, leaves_low), (high, leaves_high) = self.low, self.high
        return low > high or (low == high and (leaves_low or leaves_high))

    def _holds(self, value: Any) -> bool:
        if self.low is not None and not (value > self.low[0] or (value == self.low[0] and not self.low[1])):
            return False
        return self.high is None or value < self.high[0] or (value == self.high[0] and not self.high[1])


def contradicts(
    conditions: Sequence[BoundExpression], known: Sequence[BoundExpression], own: frozenset[int]
) -> bool:
    """Whether no row for which ``known`` is not false meets the conditions; ``own`` are the row's columns."""
    ranges: dict[tuple[int, bool], _Range] = {}
    compared = {key for condition in conditions for key in _narrow(ranges, condition, own)}
    if any(ranges[key].is_empty for key in compared):
        return True
    for condition in known:
        _narrow(ranges, condition, own)
    return any(ranges[key].is_empty for key in compared)


def _narrow(
    ranges: dict[tuple[int, bool], _Range], condition: BoundExpression, own: frozenset[int]
) -> set[tuple[int, bool]]:
    """Narrow the ranges down by a condition; the columns compared, with the class of their constants."""
    found = set()
    for conjunct in conjuncts(condition):
        for comparison in column_comparisons(conjunct, own):
            if isinstance(comparison.value, Literal) and _is_comparable(
                [comparison.value.value], comparison.using
            ):
                key = (comparison.column.id, isinstance(comparison.value.value, str))
                _compare(ranges.setdefault(key, _Range()), comparison, comparison.value.value)
                found.add(key)
        members = membership(conjunct, own)
        if members is not None:
            values = [item.value for item in members.items if isinstance(item, Literal)]
            if len(values) == len(members.items) and _is_comparable(values, members.using):
                key = (members.operand.id, isinstance(values[0], str))  # type: ignore[attr-defined]
                ranges.setdefault(key, _Range()).among(values)
                found.add(key)
    return found


def _compare(span: _Range, comparison: ColumnComparison, value: Any) -> None:
    match comparison.operator:
        case "=":
            span.among((value,))
        case "<" | "<=":
            span.below(value, comparison.operator == "<")
        case ">" | ">=":
            span.above(value, comparison.operator == ">")


def _is_comparable(values: Sequence[Any], using: str) -> bool:
    """Whether constants compare as Python compares them: numbers, or texts under BINARY."""
    classes = set(map(type, values))
    return classes <= {int, float} or (classes == {str} and using == "BINARY")
