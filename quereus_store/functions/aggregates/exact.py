"""Exact sums: the arithmetic under sum, avg, total, variance and their windows.

Adding floats one by one makes the result depend on the order of the rows, and taking one out again leaves a
trace.  Here a sum is exact, and rounded once when it is read: every order of the rows, every way to compute
(whole column, row by row, merged parts, sliding window) gives the same number.

A finite float is a whole multiple of 2^-1074, so floats add up as integers of that unit; integers are kept
apart, because most columns have nothing else.  A :class:`Total` is an immutable state::

    numbers    how many were counted
    integers   sum of the integers (booleans as 0 and 1)
    reals      how many of the numbers are floats
    scaled     sum of the finite floats, in units of 2^-1074
    positive, negative, unknown    counts of Infinity, -Infinity, NaN
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quereus_store.functions.arguments import NUMBER_CLASSES, Number, number_of
from quereus_store.types.values import Value, int_quotient

_UNIT_BITS = 1074
UNIT = 1 << _UNIT_BITS
"""So many units make 1."""


class Total(NamedTuple):
    """The state of an exact sum; see the module."""

    numbers: int = 0
    integers: int = 0
    reals: int = 0
    scaled: int = 0
    positive: int = 0
    negative: int = 0
    unknown: int = 0


EMPTY = Total()
_NUMBERS_OR_NULL = NUMBER_CLASSES | {type(None)}


def scaled_number(number: float) -> int:
    """A finite number in units of 2^-1074."""
    numerator, denominator = number.as_integer_ratio()
    return numerator << (_UNIT_BITS - denominator.bit_length() + 1)


def _float_part(number: float, sign: int) -> tuple[int, int, int, int]:
    if math.isfinite(number):
        return sign * scaled_number(number), 0, 0, 0
    if number != number:
        return 0, 0, 0, sign
    return (0, sign, 0, 0) if number > 0 else (0, 0, sign, 0)


def _counted(state: Total, value: Value, sign: int) -> Total:
    if type(value) is float and math.isfinite(value):
        count, integers, reals, scaled, *special = state
        return Total(count + sign, integers, reals + sign, scaled + sign * scaled_number(value), *special)
    number = value if type(value) in NUMBER_CLASSES else number_of(value)
    if number is None:
        return state
    count, integers, reals, scaled, positive, negative, unknown = state
    if type(number) is int:
        return Total(count + sign, integers + sign * number, reals, scaled, positive, negative, unknown)
    s, p, n, u = _float_part(number, sign)  # type: ignore[arg-type]
    return Total(count + sign, integers, reals + sign, scaled + s, positive + p, negative + n, unknown + u)


def add(state: Total, row: tuple[Value, ...]) -> Total:
    """The state with a row's first value counted in, if it is a number or spells one."""
    return _counted(state, row[0], 1)


def remove(state: Total, row: tuple[Value, ...]) -> Total:
    """The state with a row's first value counted out."""
    return _counted(state, row[0], -1)


def merge(left: Total, right: Total) -> Total:
    """The state of both."""
    return Total(*map(int.__add__, left, right))


def numbers_in(column: Sequence[Value]) -> Sequence[Number]:
    """The numbers of a column: as it is when there is nothing else, else what :func:`number_of` finds.

    NaN stays, so that a column without text is not looked through.
    """
    classes = set(map(type, column))
    if classes <= NUMBER_CLASSES:
        return column  # type: ignore[return-value]
    if classes <= _NUMBERS_OR_NULL:
        return [value for value in column if value is not None]  # type: ignore[misc]
    found = [value if type(value) is float else number_of(value) for value in column]
    return [number for number in found if number is not None]


def total_of(numbers: Iterable[Number]) -> Total:
    """The state of many numbers.

    Finite floats add up by denominator first, so that the sums stay small until they are scaled.
    """
    if type(numbers) is list and set(map(type, numbers)) == {float}:
        parts = _exact_parts(numbers)
        if parts is not None:
            return Total(len(numbers), 0, len(numbers), sum(map(scaled_number, parts)))
    special = EMPTY
    integers = count = reals = 0
    numerators: dict[int, int] = {}
    for number in numbers:
        if type(number) is int:
            integers += number
            count += 1
        elif math.isfinite(number):
            numerator, denominator = number.as_integer_ratio()
            numerators[denominator] = numerators.get(denominator, 0) + numerator
            reals += 1
        else:
            special = _counted(special, number, 1)
    scaled = sum(
        numerator << (_UNIT_BITS - denominator.bit_length() + 1)
        for denominator, numerator in numerators.items()
    )
    return merge(special, Total(count + reals, integers, reals, scaled, 0, 0, 0))


def _exact_parts(numbers: list[float]) -> list[float] | None:
    """Floats whose exact sum is that of these, but few; None for numbers that are not finite, or too large.

    The nearest float to the sum, then the nearest to what it leaves, and so on until nothing is left.
    """
    rest = list(numbers)
    parts = []
    try:
        while part := math.fsum(rest):
            if not math.isfinite(part):
                return None
            parts.append(part)
            rest.append(-part)
    except (OverflowError, ValueError):
        return None
    return parts


def exact_value(state: Total) -> Number | None:
    """The sum: an int when all numbers were, else the nearest float; NULL for no number, or no answer."""
    if not state.numbers:
        return None
    return float_value(state) if state.reals else state.integers


def float_value(state: Total) -> float | None:
    """The sum as a float (0.0 of nothing); NULL where infinities cancel or a NaN was counted."""
    if state.unknown or (state.positive and state.negative):
        return None
    if state.positive or state.negative:
        return math.inf if state.positive else -math.inf
    return int_quotient(state.integers * UNIT + state.scaled, UNIT)


def total_of_column(column: Sequence[Value]) -> Total:
    """The state of a column, whatever is in it."""
    return total_of(numbers_in(column))


def sum_of(numbers: Sequence[Number]) -> Number | None:
    """The exact sum of a list of numbers, as :func:`exact_value` of its state; fast for the common cases."""
    kinds = set(map(type, numbers))
    if kinds == {int}:
        return sum(numbers)
    if kinds == {float}:
        return sum_of_floats(numbers)
    return exact_value(total_of(numbers))


def sum_of_floats(numbers: Sequence[Number]) -> float | None:
    """The float nearest to the exact sum of floats; NULL where infinities cancel or a NaN is among them."""
    try:
        total = math.fsum(numbers)
    except (OverflowError, ValueError):
        # Too large on the way, or infinities of both signs: settle it exactly.
        return float_value(total_of(numbers))
    return None if total != total else total + 0.0
