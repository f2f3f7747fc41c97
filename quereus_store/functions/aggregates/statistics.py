"""Variance, standard deviation and median (functions, section 8).

A variance needs the sum and the sum of squares.  In floats their difference loses all digits when the
numbers are large and close together, so both are kept exactly, as integers of a small unit, and the
quotient is rounded once.  A group with an infinity or a NaN has no variance: NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import mul

from quereus_store.functions.aggregates import exact
from quereus_store.functions.arguments import NUMBER_CLASSES, Number, number_of
from quereus_store.functions.registry import AggregateFunction, Algebra
from quereus_store.types.logical import REAL
from quereus_store.types.values import Value, int_quotient, int_to_float

# A state: numbers counted, their sum, the sum of their squares (in units of 2^-1074 and its square), and how
# many of them are not finite.
_State = tuple[int, int, int, int]


def _start() -> _State:
    return (0, 0, 0, 0)


def _counted(state: _State, value: Value, sign: int) -> _State:
    number = value if type(value) in NUMBER_CLASSES else number_of(value)
    if number is None:
        return state
    count, total, squares, odd = state
    if type(number) is float and not math.isfinite(number):
        return (count + sign, total, squares, odd + sign)
    scaled = exact.scaled_number(number)  # type: ignore[arg-type]
    return (count + sign, total + sign * scaled, squares + sign * scaled * scaled, odd)


def _add(state: _State, row: tuple[Value, ...]) -> _State:
    return _counted(state, row[0], 1)


def _remove(state: _State, row: tuple[Value, ...]) -> _State:
    return _counted(state, row[0], -1)


def _merge(left: _State, right: _State) -> _State:
    return (left[0] + right[0], left[1] + right[1], left[2] + right[2], left[3] + right[3])


def as_integers(numbers: Sequence[Number]) -> tuple[Sequence[int], int] | None:
    """The numbers as integers of a common unit, and how many units make 1; None if one is not finite."""
    if set(map(type, numbers)) == {int}:
        return numbers, 1  # type: ignore[return-value]
    try:
        ratios = [number.as_integer_ratio() for number in numbers]
    except (OverflowError, ValueError):
        return None
    unit = max(denominator for _, denominator in ratios)
    return [numerator * (unit // denominator) for numerator, denominator in ratios], unit


def _variance(count: int, total: int, squares: int, unit: int, sample: bool) -> float | None:
    divisor = count * (count - 1) if sample else count * count
    if divisor <= 0:
        return None
    return int_quotient(count * squares - total * total, divisor * unit * unit)


def _of_column(column: Sequence[Value], sample: bool) -> float | None:
    numbers = exact.numbers_in(column)
    scaled = as_integers(numbers) if numbers else None
    if scaled is None:
        return None
    integers, unit = scaled
    return _variance(len(integers), sum(integers), sum(map(mul, integers, integers)), unit, sample)


def _of_state(state: _State, sample: bool) -> float | None:
    count, total, squares, odd = state
    return None if odd else _variance(count, total, squares, exact.UNIT, sample)


def _root(variance: float | None) -> float | None:
    return None if variance is None else math.sqrt(variance)


def _spread(name: str, sample: bool, deviation: bool) -> AggregateFunction:
    shape: Callable[[float | None], float | None] = _root if deviation else lambda variance: variance

    def evaluate(column: Sequence[Value]) -> float | None:
        return shape(_of_column(column, sample))

    def finish(state: _State) -> float | None:
        return shape(_of_state(state, sample))

    return AggregateFunction(
        name, evaluate, 1, 1, REAL, algebra=Algebra(_start, _add, finish, _remove, _merge)
    )


def median(column: Sequence[Value]) -> float | None:
    """The middle number, or the mean of the two in the middle; NULL of no number."""
    numbers = sorted(number for number in exact.numbers_in(column) if number == number)
    if not numbers:
        return None
    middle = len(numbers) // 2
    if len(numbers) % 2:
        number = numbers[middle]
        return int_to_float(number) if type(number) is int else float(number)
    pair = exact.sum_of(numbers[middle - 1 : middle + 1])
    if pair is None:
        return None
    return int_quotient(pair, 2) if type(pair) is int else pair / 2


STATISTICS = (
    *(
        _spread(f"{what}_{suffix}", sample, deviation)
        for what, deviation in (("var", False), ("stddev", True))
        for suffix, sample in (("pop", False), ("samp", True))
    ),
    _spread("variance", True, False),
    _spread("stddev", True, True),
    AggregateFunction("median", median, 1, 1, REAL),
)
