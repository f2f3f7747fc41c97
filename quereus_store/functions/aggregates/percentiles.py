"""percentile_cont and percentile_disc: where in the order of a group a fraction of it is reached.

``percentile_disc(x, f)`` is the first value with at least the fraction ``f`` of all values up to and
including it, whatever its type; ``percentile_cont(x, f)`` lies between two numbers as far as ``f`` does
between their places, so 0.5 is the median.  A third argument that is true counts from the other end, which is
the standard's ``within group (order by x desc)``.  The fraction is an argument like any other; the first that
is not NULL counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.functions.aggregates import exact
from quereus_store.functions.arguments import Number, number_of
from quereus_store.functions.registry import AggregateFunction
from quereus_store.types.logical import ANY, REAL, LogicalType
from quereus_store.types.values import Value, int_to_float


def _fraction(column: Sequence[Value]) -> float | None:
    """The fraction asked for; raises ERROR for what is none."""
    given = next((value for value in column if value is not None), None)
    if given is None:
        return None
    fraction = number_of(given)
    if fraction is None or not 0 <= fraction <= 1:
        raise sql_error(StatusCode.ERROR, f"a percentile is a number from 0 to 1, not {given!r}")
    return float(fraction)


def _as_float(number: Number) -> float:
    return int_to_float(number) if type(number) is int else float(number)


def percentile_cont(
    column: Sequence[Value], fractions: Sequence[Value], descending: Sequence[Value] = ()
) -> float | None:
    """The number at a fraction of the way through the ordered numbers; NULL of no number."""
    fraction = _fraction(fractions)
    numbers = sorted(number for number in exact.numbers_in(column) if number == number)
    if not numbers or fraction is None:
        return None
    if any(descending):
        numbers.reverse()
    place = fraction * (len(numbers) - 1)
    below = math.floor(place)
    low, high = (_as_float(numbers[index]) for index in (below, math.ceil(place)))
    if low == high:
        return low
    between = low + (high - low) * (place - below)
    return between if between == between else None


def percentile_disc(
    column: Sequence[Value],
    fractions: Sequence[Value],
    descending: Sequence[Value] = (),
    *,
    key: Callable[[Value], Any] | None = None,
) -> Value:
    """The first value in order that reaches a fraction of all; NULL of nothing."""
    fraction = _fraction(fractions)
    if not column or fraction is None:
        return None
    values: list[Any] = sorted(column, key=key, reverse=any(descending))
    chosen: Value = values[max(math.ceil(fraction * len(values)) - 1, 0)]
    return chosen


def _type_of_argument(types: Sequence[LogicalType]) -> LogicalType:
    return types[0] if types else ANY


PERCENTILES = (
    AggregateFunction("percentile_cont", percentile_cont, 2, 3, REAL, raises=True),
    AggregateFunction(
        "percentile_disc", percentile_disc, 2, 3, _type_of_argument, collated=True, raises=True
    ),
)
