"""Numeric functions (functions, section 3).

Integers stay integers and exact at any size; reals stay reals.  Whatever has no answer among the numbers (the
root of -1, the logarithm of 0, an angle of text) is NULL, and NaN comes only out of ``abs``, if it went in.
``round`` rounds ties up: ``round(-3.5)`` is -3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from quereus_store.functions.arguments import (
    Number,
    number_of,
    require_numeric,
    type_of_first,
    whole_number_of,
)
from quereus_store.functions.registry import Function, ScalarFunction
from quereus_store.types.logical import INTEGER, REAL
from quereus_store.types.result_types import merge_types
from quereus_store.types.values import Value, int_to_float

_LARGEST_DIGITS = 330


def absolute(value: Value) -> Number | None:
    """The absolute value, in the value's own type; that of NaN is NaN."""
    if type(value) is float:
        return abs(value)
    number = number_of(value)
    return None if number is None else abs(number)


def _round_half_up(number: float) -> int:
    floor = math.floor(number)
    return floor + int(number - floor >= 0.5)


def round_to(value: Value, digits: Value = 0) -> Number | None:
    """``value`` rounded to ``digits`` decimals, ties toward positive infinity; negative digits round tens."""
    number = number_of(value)
    places = 0 if digits is None else whole_number_of(digits)
    if number is None or places is None:
        return None
    if type(number) is int:
        return number if places >= 0 else _round_integer(number, -places)
    return _round_real(float(number), places)


def _round_places(value: Value, digits: Value) -> Number | None:
    return None if value is None else round_to(value, digits)


def _round_integer(number: int, zeros: int) -> int:
    if zeros > number.bit_length():
        return 0
    unit: int = 10**zeros
    return (2 * number + unit) // (2 * unit) * unit


def _round_real(number: float, places: int) -> float:
    if not math.isfinite(number) or places > _LARGEST_DIGITS:
        return number
    if places < -_LARGEST_DIGITS:
        return 0.0
    factor = 10.0 ** min(places, 308)
    scaled = number * factor
    if not math.isfinite(scaled):
        return number
    return _round_half_up(scaled) / factor if factor else 0.0


def _integral(rounding: Callable[[float], int]) -> Callable[[Value], Number | None]:
    def call(value: Value) -> Number | None:
        number = number_of(value)
        if type(number) is float and math.isfinite(number):
            return int_to_float(rounding(number))
        return number

    return call


floor_of = _integral(math.floor)
ceiling_of = _integral(math.ceil)
truncation_of = _integral(math.trunc)


def clamp(value: Value, low: Value, high: Value) -> Number | None:
    """``value`` limited to the range; the lower bound wins where the bounds cross."""
    number, least, most = number_of(value), number_of(low), number_of(high)
    if number is None or least is None or most is None:
        return None
    return max(least, min(most, number))


def sign(value: Value) -> int | None:
    """-1, 0 or 1."""
    number = number_of(value)
    return None if number is None else (number > 0) - (number < 0)


def modulo(value: Value, divisor: Value) -> Number | None:
    """The truncated remainder, with the sign of the dividend; NULL for divisor 0."""
    number, by = number_of(value), number_of(divisor)
    if number is None or not by:
        return None
    if type(number) is int and type(by) is int:
        remainder = abs(number) % abs(by)
        return -remainder if number < 0 else remainder
    return _real(math.fmod, int_to_float_any(number), int_to_float_any(by))


def int_to_float_any(number: Number) -> float:
    """A number as a float; integers beyond its range become infinities."""
    return int_to_float(number) if type(number) is int else float(number)


def _real(operation: Callable[..., float], *arguments: float) -> float | None:
    """The operation's result; NULL where mathematics has none, an infinity where it is too large."""
    try:
        result = operation(*arguments)
    except ValueError:
        return None
    except OverflowError:
        return math.inf
    return result if result == result else None


def power(base: Value, exponent: Value) -> float | None:
    """``base`` to the power of ``exponent``; too large is Infinity, a complex result NULL."""
    number, times = number_of(base), number_of(exponent)
    if number is None or times is None:
        return None
    x, y = int_to_float_any(number), int_to_float_any(times)
    odd = y.is_integer() and y % 2 == 1
    if x == 0 and y < 0:
        return math.copysign(math.inf, x) if odd else math.inf
    result = _real(math.pow, x, y)
    return -math.inf if result == math.inf and x < 0 and odd else result


def not_a_number() -> float:
    """NaN, which no literal spells and no arithmetic gives: what a dump writes for one that was bound."""
    return math.nan


def square_root(value: Value) -> float | None:
    """The square root; NULL for negative numbers and what is no number."""
    number = number_of(value)
    if number is None or number < 0:
        return None
    return _real(math.sqrt, int_to_float_any(number))


def _unary(operation: Callable[[float], float]) -> Callable[[Value], float | None]:
    def call(value: Value) -> float | None:
        number = number_of(value)
        return None if number is None else _real(operation, int_to_float_any(number))

    return call


def _logarithm(operation: Callable[[Any], float]) -> Callable[[Value], float | None]:
    # The logarithms take integers of any size as they are.
    def call(value: Value) -> float | None:
        number = number_of(value)
        return None if number is None else _real(operation, number)

    return call


def logarithm(base: Value, value: Value) -> float | None:
    """The logarithm of ``value`` to ``base``."""
    number, of = number_of(base), number_of(value)
    if number is None or of is None or number <= 0 or number == 1 or of <= 0:
        return None
    return math.log(of) / math.log(number)


def arc_tangent_of(y: Value, x: Value) -> float | None:
    """The angle of the point (x, y)."""
    rise, run = number_of(y), number_of(x)
    if rise is None or run is None:
        return None
    return math.atan2(int_to_float_any(rise), int_to_float_any(run))


def cube_root(value: float) -> float:
    """The real cube root, of negative numbers too."""
    return math.cbrt(value)


_REAL_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "cbrt": cube_root,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": math.atanh,
    "degrees": math.degrees,
    "radians": math.radians,
}

_LOGARITHMS: dict[str, Callable[[Any], float]] = {
    "ln": math.log,
    "log": math.log10,
    "log10": math.log10,
    "log2": math.log2,
}


def pi() -> float:
    """The number pi."""
    return math.pi


def _rounding(name: str, call: Callable[[Value], Number | None]) -> ScalarFunction:
    return ScalarFunction(
        name, call, 1, 1, type_of_first, inline={("INTEGER",): "{0}"}, check=require_numeric(name)
    )


def _powers() -> list[Function]:
    return [
        ScalarFunction("sqrt", square_root, 1, 1, REAL),
        ScalarFunction("pow", power, 2, 2, REAL),
        ScalarFunction("power", power, 2, 2, REAL),
        ScalarFunction("log", logarithm, 2, 2, REAL),
        ScalarFunction("atan2", arc_tangent_of, 2, 2, REAL),
        ScalarFunction("nan", not_a_number, 0, 0, REAL, nullable=False),
        ScalarFunction("pi", pi, 0, 0, REAL, nullable=False, inline={(): repr(math.pi)}),
        *(ScalarFunction(name, _unary(call), 1, 1, REAL) for name, call in _REAL_FUNCTIONS.items()),
        *(ScalarFunction(name, _logarithm(call), 1, 1, REAL) for name, call in _LOGARITHMS.items()),
    ]


def math_functions() -> list[Function]:
    """The whole family, ready to register."""
    absolutes: Mapping[tuple[str, ...], str] = {
        ("INTEGER",): "abs({0})",
        ("REAL",): "abs({0})",
        ("NUMERIC",): "abs({0})",
    }
    return [
        ScalarFunction("abs", absolute, 1, 1, type_of_first, inline=absolutes, check=require_numeric("abs")),
        ScalarFunction(
            "round",
            round_to,
            1,
            1,
            type_of_first,
            inline={("INTEGER",): "{0}"},
            check=require_numeric("round", (0,)),
        ),
        ScalarFunction(
            "round",
            _round_places,
            2,
            2,
            type_of_first,
            null_propagates=False,
            check=require_numeric("round", (0,)),
        ),
        _rounding("floor", floor_of),
        _rounding("ceil", ceiling_of),
        _rounding("ceiling", ceiling_of),
        _rounding("trunc", truncation_of),
        ScalarFunction(
            "clamp",
            clamp,
            3,
            3,
            type_of_first,
            inline={("INTEGER",) * 3: "max({1}, min({2}, {0}))"},
            check=require_numeric("clamp"),
        ),
        ScalarFunction("sign", sign, 1, 1, INTEGER),
        ScalarFunction("mod", modulo, 2, 2, merge_types),
        *_powers(),
    ]
