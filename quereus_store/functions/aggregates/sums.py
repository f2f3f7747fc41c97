"""sum, total and avg: exact sums read in three ways (functions, section 8).

Integers of any size add up exactly; as soon as a float is among the numbers the result is the float
nearest to the exact sum.  Booleans count as 0 and 1, text counts if it spells a number from end to end,
everything else is left out; ``sum`` and ``avg`` of no number are NULL, ``total`` is 0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quereus_store.functions.aggregates import exact
from quereus_store.functions.aggregates.exact import Total
from quereus_store.functions.arguments import Number
from quereus_store.functions.registry import AggregateFunction, Algebra, Decomposition
from quereus_store.types.logical import NUMERIC, REAL
from quereus_store.types.values import Value, int_quotient, int_to_float


def _start() -> Total:
    return exact.EMPTY


def _sum_of_one_kind(column: Sequence[Any]) -> Number | None:
    """The sum of a column of integers and booleans only, or of floats only; None for any other."""
    try:
        if type(column[0]) is float:
            return exact.sum_of_floats(column) if set(map(type, column)) == {float} else None
        total = sum(column)
    except (TypeError, OverflowError):
        return None
    # One float among the numbers makes the whole sum a float.
    return total if type(total) is int else None


def sum_column(column: Sequence[Value]) -> Number | None:
    """The exact sum of the column's numbers; NULL when it has none."""
    if column and (total := _sum_of_one_kind(column)) is not None:
        return total
    numbers = exact.numbers_in(column)
    return exact.sum_of(numbers) if numbers else None


def total_column(column: Sequence[Value]) -> float | None:
    """The sum as a float, 0.0 of nothing."""
    total = exact.sum_of(exact.numbers_in(column) or [0])
    return int_to_float(total) if type(total) is int else total


def avg_column(column: Sequence[Value]) -> float | None:
    """The sum divided by how many numbers there are; NULL when there are none."""
    if column and (total := _sum_of_one_kind(column)) is not None:
        return mean(total, len(column))
    numbers = exact.numbers_in(column)
    return mean(exact.sum_of(numbers), len(numbers)) if numbers else None


def _over_floats(
    evaluate: Callable[[Sequence[Value]], Value], finish: Callable[[float, int], Value]
) -> Callable[[list[Any]], Value]:
    """``evaluate`` for a column of floats, without looking at what they are."""

    def apply(column: list[Any]) -> Value:
        total = exact.sum_of_floats(column)
        if total is None or not column:
            return evaluate(column)
        return finish(total, len(column))

    return apply


def mean(total: Number | None, count: int) -> float | None:
    """A sum over how many numbers were added; NULL for NULL."""
    if total is None:
        return None
    return int_quotient(total, count) if type(total) is int else total / count


def _finish_total(state: Total) -> float | None:
    return exact.float_value(state)


def _finish_avg(state: Total) -> float | None:
    return mean(exact.exact_value(state), state.numbers) if state.numbers else None


def _decode_sum(stored: Value) -> Total:
    """A state that counts one number more than none as long as rows are only added."""
    return exact.add(exact.EMPTY, (stored,))


def _combine_avg(total: Value, count: Value) -> float | None:
    return mean(total, count) if count else None  # type: ignore[arg-type]


def _algebra(finish: Callable[[Total], Value], **more: Any) -> Algebra:
    """The algebra of exact sums under another last step."""
    return Algebra(_start, exact.add, finish, exact.remove, exact.merge, total=exact.total_of_column, **more)


SUM = AggregateFunction(
    "sum",
    sum_column,
    1,
    1,
    NUMERIC,
    algebra=_algebra(exact.exact_value, decode=_decode_sum),
    over_floats=_over_floats(sum_column, lambda total, count: total),
)

TOTAL = AggregateFunction(
    "total",
    total_column,
    1,
    1,
    REAL,
    algebra=_algebra(_finish_total),
    over_floats=_over_floats(total_column, lambda total, count: total),
)

AVG = AggregateFunction(
    "avg",
    avg_column,
    1,
    1,
    REAL,
    algebra=_algebra(_finish_avg, decompose=Decomposition((("sum", False), ("count", False)), _combine_avg)),
    over_floats=_over_floats(avg_column, lambda total, count: total / count),
)
