"""Arithmetic: ``+ - * / %``, unary ``- + ~``, bit operators and ``||``.

Which rule applies is settled from the declared types while a statement is planned (types-and-values,
section 6): :func:`arithmetic_plan` says NUMBERS, TEMPORAL or BY_VALUE.

* NUMBERS: both types are numeric.  ``/`` is real division, ``%`` the truncated remainder with the
  dividend's sign.  Integers are exact at any size, a float on either side makes a float.  Division by
  zero, overflow and NaN give NULL, never an error.
* TEMPORAL: both kinds are known, one is a date, time or duration: the table in ``temporal.arithmetic``.
* BY_VALUE: anything else.  If an operand is a text that *is* a date or duration from end to end, the same
  table; else numbers, with text read as a number (0 if it is none), booleans 1 and 0, blobs and documents
  0.

:func:`arithmetic_template` gives inline source for operands that are not NULL: two NOT NULL integers need
no call.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Any

from quereus_store.types.logical import DATE, DATETIME, INTEGER, TIME, TIMESPAN, LogicalType
from quereus_store.types.templates import Template
from quereus_store.types.temporal.arithmetic import (
    NUMBER,
    kind_of_value,
    negate_duration,
    temporal_arithmetic,
)
from quereus_store.types.values import Value, number_from_text, to_text

Number = int | float

# Beyond this many bits a left shift is overflow: NULL instead of all memory.
_MAX_SHIFT_BITS = 1_000_000


# --- numbers ------------------------------------------------------------------------------------------------


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def add_numbers(left: Number, right: Number) -> Number | None:
    """Sum of two numbers; NULL on overflow."""
    try:
        result = left + right
    except OverflowError:
        return None
    return result if type(result) is int else _finite(result)


def subtract_numbers(left: Number, right: Number) -> Number | None:
    """Difference of two numbers; NULL on overflow."""
    try:
        result = left - right
    except OverflowError:
        return None
    return result if type(result) is int else _finite(result)


def multiply_numbers(left: Number, right: Number) -> Number | None:
    """Product of two numbers; NULL on overflow."""
    try:
        result = left * right
    except OverflowError:
        return None
    return result if type(result) is int else _finite(result)


def divide_numbers(left: Number, right: Number) -> float | None:
    """Real quotient (``7 / 2`` is 3.5, ``8 / 4`` is 2.0); NULL by zero or on overflow."""
    try:
        return _finite(left / right)
    except (ZeroDivisionError, OverflowError):
        return None


def remainder_integers(left: int, right: int) -> int | None:
    """Truncated remainder of integers, exact, with the dividend's sign; NULL by zero."""
    if not right:
        return None
    result = abs(left) % abs(right)
    return -result if left < 0 else result


def remainder_numbers(left: Number, right: Number) -> Number | None:
    """Truncated remainder with the dividend's sign: ``-7 % 3`` is -1, ``5.5 % 2`` is 1.5; NULL by zero."""
    if isinstance(left, int) and isinstance(right, int):
        return remainder_integers(left, right)
    try:
        return _finite(math.fmod(left, right))
    except (ValueError, OverflowError):
        return None


# --- numbers of any value -----------------------------------------------------------------------------------


def _zero(value: object) -> Number:
    return 0


_TO_NUMBER: Mapping[type, Callable[[Any], Number]] = MappingProxyType(
    {
        int: lambda value: value,
        float: lambda value: value,
        bool: int,
        str: lambda value: number_from_text(value) or 0,
        bytes: _zero,
        list: _zero,
        dict: _zero,
    }
)


def arithmetic_number(value: Any) -> Number:
    """The number that a value that is not NULL counts as in arithmetic; 0 where it is none."""
    return _TO_NUMBER[type(value)](value)


def unary_number(value: Any) -> Number | None:
    """The number under a unary operator: NULL where binary arithmetic takes 0."""
    if type(value) is str:
        return number_from_text(value)
    if isinstance(value, (int, float)):
        return int(value) if type(value) is bool else value
    return None


# --- binary operators by value ------------------------------------------------------------------------------

_Binary = Callable[[Any, Any], Any]


def _by_value(operator: str, numbers: _Binary) -> _Binary:
    def apply(left: Value, right: Value) -> Value:
        if left is None or right is None:
            return None
        if type(left) is str or type(right) is str:
            left_kind, right_kind = kind_of_value(left), kind_of_value(right)
            if left_kind != NUMBER or right_kind != NUMBER:
                return _temporal_by_value(operator, left, right, left_kind, right_kind)
        result: Value = numbers(arithmetic_number(left), arithmetic_number(right))
        return result

    apply.__doc__ = f"SQL ``{operator}`` by value: NULL, temporal or numeric (section 6)."
    return apply


_TEMPORAL_SHAPE = re.compile(r"\d{4}-\d\d-\d\d(?:T|$)|\d\d:\d\d:\d\d|-?P")


def _is_misspelled(value: Any, kind: str) -> bool:
    """Whether a text looks like a date, time or duration and is none."""
    return kind == NUMBER and type(value) is str and _TEMPORAL_SHAPE.match(value) is not None


def _temporal_by_value(operator: str, left: Any, right: Any, left_kind: str, right_kind: str) -> Value:
    if _is_misspelled(left, left_kind) or _is_misspelled(right, right_kind):
        return None
    left_operand = arithmetic_number(left) if left_kind == NUMBER else left
    right_operand = arithmetic_number(right) if right_kind == NUMBER else right
    result: Value = temporal_arithmetic(operator, left_operand, right_operand, left_kind, right_kind)
    return result


add = _by_value("+", add_numbers)
subtract = _by_value("-", subtract_numbers)
multiply = _by_value("*", multiply_numbers)
divide = _by_value("/", divide_numbers)
remainder = _by_value("%", remainder_numbers)

BY_VALUE: Mapping[str, _Binary] = MappingProxyType(
    {"+": add, "-": subtract, "*": multiply, "/": divide, "%": remainder}
)
NUMBERS: Mapping[str, _Binary] = MappingProxyType(
    {
        "+": add_numbers,
        "-": subtract_numbers,
        "*": multiply_numbers,
        "/": divide_numbers,
        "%": remainder_numbers,
    }
)


# --- the static decision ------------------------------------------------------------------------------------


class ArithmeticMode(Enum):
    """Which rule an operator follows; see the docstring of the module."""

    NUMBERS = auto()
    TEMPORAL = auto()
    BY_VALUE = auto()


_TEMPORAL_KINDS = frozenset((DATE, TIME, DATETIME, TIMESPAN))


def operand_kind(logical_type: LogicalType) -> str | None:
    """The kind that a declared type gives away: NUMBER, DATE, TIME, DATETIME, TIMESPAN, or ``None``."""
    if logical_type.is_numeric:
        return NUMBER
    return logical_type.name if logical_type in _TEMPORAL_KINDS else None


def arithmetic_plan(left: LogicalType, right: LogicalType) -> ArithmeticMode:
    """Which rule two operands of these declared types follow."""
    left_kind, right_kind = operand_kind(left), operand_kind(right)
    if left_kind is None or right_kind is None:
        return ArithmeticMode.BY_VALUE
    if left_kind == NUMBER and right_kind == NUMBER:
        return ArithmeticMode.NUMBERS
    return ArithmeticMode.TEMPORAL


def temporal_operator(operator: str, left: LogicalType, right: LogicalType) -> _Binary:
    """The function for two operands whose declared types make the operation temporal."""
    left_kind, right_kind = operand_kind(left) or NUMBER, operand_kind(right) or NUMBER

    def apply(left_value: Value, right_value: Value) -> Value:
        if left_value is None or right_value is None:
            return None
        result: Value = temporal_arithmetic(operator, left_value, right_value, left_kind, right_kind)
        return result

    return apply


_INLINE_INTEGERS: Mapping[str, str] = MappingProxyType(
    {"+": "({0} + {1})", "-": "({0} - {1})", "*": "({0} * {1})"}
)


def arithmetic_template(operator: str, left: LogicalType, right: LogicalType) -> Template:
    """Python source for ``{0} <operator> {1}``; operands of numeric types must not be NULL.

    The functions behind the TEMPORAL and BY_VALUE rules take NULL themselves.
    """
    mode = arithmetic_plan(left, right)
    if mode is ArithmeticMode.NUMBERS:
        if left is INTEGER and right is INTEGER:
            if operator in _INLINE_INTEGERS:
                return Template(_INLINE_INTEGERS[operator])
            if operator == "%":
                return Template("_remainder_integers({0}, {1})", {"_remainder_integers": remainder_integers})
        function = NUMBERS[operator]
        name = f"_{function.__name__}"
    elif mode is ArithmeticMode.TEMPORAL:
        function = temporal_operator(operator, left, right)
        name = f"_temporal_{_OPERATOR_NAME[operator]}_{left.name}_{right.name}"
    else:
        function = BY_VALUE[operator]
        name = f"_{_OPERATOR_NAME[operator]}"
    return Template(f"{name}({{0}}, {{1}})", {name: function})


_OPERATOR_NAME: Mapping[str, str] = MappingProxyType(
    {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "remainder"}
)


# --- unary operators ----------------------------------------------------------------------------------------


def negate(value: Value) -> Value:
    """SQL ``-x``: NULL for what is no number; a duration text is turned round."""
    if type(value) is str and value.startswith(("P", "-P")):
        return negate_duration(value)
    number = unary_number(value)
    return None if number is None else -number


def positive(value: Value) -> Value:
    """SQL ``+x``: the number a value counts as, NULL for what is no number."""
    return unary_number(value)


def invert_bits(value: Value) -> int | None:
    """SQL ``~x``: -x - 1 of the truncated integer, of any size; NULL for what is no number."""
    number = unary_number(value)
    if type(number) is int:
        return ~number
    return ~int(number) if number is not None and math.isfinite(number) else None


# --- bit operators ------------------------------------------------------------------------------------------


def _bit_operand(value: Any) -> int | None:
    number = arithmetic_number(value)
    return int(number) if type(number) is int or math.isfinite(number) else None


def _bitwise(operator: str, apply_integers: Callable[[int, int], int | None]) -> _Binary:
    def apply(left: Value, right: Value) -> int | None:
        if left is None or right is None:
            return None
        left_bits, right_bits = _bit_operand(left), _bit_operand(right)
        if left_bits is None or right_bits is None:
            return None
        return apply_integers(left_bits, right_bits)

    apply.__doc__ = f"SQL ``{operator}`` on truncated integers of any size; NULL for NULL and infinity."
    return apply


def _shift(number: int, places: int) -> int | None:
    if places < 0:
        return number >> min(-places, _MAX_SHIFT_BITS)
    if number and number.bit_length() + places > _MAX_SHIFT_BITS:
        return None
    return number << places if number else 0


bit_and = _bitwise("&", lambda left, right: left & right)
bit_or = _bitwise("|", lambda left, right: left | right)
shift_left = _bitwise("<<", _shift)
shift_right = _bitwise(">>", lambda left, right: _shift(left, -right))

BITWISE: Mapping[str, _Binary] = MappingProxyType(
    {"&": bit_and, "|": bit_or, "<<": shift_left, ">>": shift_right}
)


# --- text ---------------------------------------------------------------------------------------------------


def concat(left: Value, right: Value) -> str | None:
    """SQL ``||``: the texts of both operands joined; NULL when one is."""
    if type(left) is str and type(right) is str:
        return left + right
    if left is None or right is None:
        return None
    return f"{to_text(left)}{to_text(right)}"
