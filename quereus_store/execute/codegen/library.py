"""Functions that generated expressions call where no inline operator will do.

Each takes and gives SQL values, ``None`` for NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any

from quereus_store.plan.expressions import PatternKind
from quereus_store.types import LogicalType, to_text
from quereus_store.types.arithmetic import (
    BITWISE,
    ArithmeticMode,
    arithmetic_plan,
    arithmetic_template,
    invert_bits,
    negate,
    positive,
)
from quereus_store.types.patterns import glob_matcher, like_matcher, like_template, regexp_matcher
from quereus_store.types.templates import Template

Binary = Callable[[Any, Any], Any]


def finite(number: float) -> float | None:
    """A result of real arithmetic: NULL where it overflowed."""
    return number if -inf < number < inf else None


def arithmetic(operator: str, left: LogicalType, right: LogicalType) -> Binary:
    """The NULL-taking function for an operator over operands of these types."""
    if operator in BITWISE:
        return BITWISE[operator]
    function: Binary = arithmetic_template(operator, left, right).compile(2)
    if arithmetic_plan(left, right) is ArithmeticMode.NUMBERS:
        return strict_binary(function)
    return function


def strict_binary(function: Binary) -> Binary:
    """The function with NULL in, NULL out."""

    def apply(left: Any, right: Any) -> Any:
        return None if left is None or right is None else function(left, right)

    return apply


UNARY: Mapping[str, Callable[[Any], Any]] = MappingProxyType({"-": negate, "+": positive, "~": invert_bits})


def null_safe(template: Template) -> Binary:
    """A comparison as a function: unknown (None) when an operand is NULL."""
    return strict_binary(template.compile(2))


def null_equal(template: Template) -> Callable[[Any, Any], bool]:
    """IS NOT DISTINCT FROM as a function."""
    equal = template.compile(2)

    def same(left: Any, right: Any) -> bool:
        if left is None or right is None:
            return left is right
        return bool(equal(left, right))

    return same


def call_strict(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function unless an argument is NULL."""
    for argument in arguments:
        if argument is None:
            return None
    return function(*arguments)


def first_not_null(value: Any, otherwise: Callable[[], Any]) -> Any:
    """COALESCE of a value and something still to be evaluated."""
    return otherwise() if value is None else value


def first_value(operands: Sequence[Callable[[], Any]]) -> Any:
    """COALESCE of many values, each evaluated when those before it are NULL."""
    for operand in operands:
        value = operand()
        if value is not None:
            return value
    return None


def exclusive_or(left: bool | None, right: bool | None) -> bool | None:
    """XOR of truth values."""
    return None if left is None or right is None else left is not right


def is_among(texts: frozenset[str]) -> Callable[[Any], bool]:
    """A test that is true of one of these texts."""
    return lambda value: type(value) is str and value in texts


def is_not_among(texts: frozenset[str]) -> Callable[[Any], bool]:
    """A test that is true of any other value, NULL left out."""
    return lambda value: value is not None and not (type(value) is str and value in texts)


def extremum(
    greatest: bool, operands: Sequence[Any], keys: Sequence[Any], compare_: Callable[[Any, Any], int]
) -> Any:
    """The operand with the greatest (or least) key, NULLs left out; the first among equals."""
    best: Any = None
    best_key: Any = None
    for operand, key in zip(operands, keys, strict=True):
        if operand is None:
            continue
        if best is not None:
            order = compare_(key, best_key)
            if order == 0 or (order > 0) is not greatest:
                continue
        best, best_key = operand, key
    return best


def quantified(operand: Any, rows: Sequence[tuple[Any, ...]], compare_: Binary, every: bool) -> bool | None:
    """``operand op ANY/ALL (rows)``, three-valued."""
    unknown = False
    for value, *_ in rows:
        verdict = compare_(operand, value)
        if verdict is None:
            unknown = True
        elif bool(verdict) is not every:
            return not every
    return None if unknown else every


def like(operand: Any, pattern: Any, escape: Any = None) -> bool | None:
    """LIKE with a pattern that is known only now."""
    if operand is None or pattern is None:
        return None
    return bool(like_matcher(to_text(pattern), escape)(to_text(operand)))  # type: ignore[arg-type]


def ilike(operand: Any, pattern: Any, escape: Any = None) -> bool | None:
    """ILIKE with a pattern that is known only now."""
    if operand is None or pattern is None:
        return None
    return bool(like_matcher(to_text(pattern), escape, True)(to_text(operand)))  # type: ignore[arg-type]


def glob(operand: Any, pattern: Any) -> bool | None:
    """GLOB."""
    if operand is None or pattern is None:
        return None
    return bool(glob_matcher(to_text(pattern))(to_text(operand)))  # type: ignore[arg-type]


def regexp(operand: Any, pattern: Any) -> bool | None:
    """REGEXP: the pattern occurs somewhere."""
    if operand is None or pattern is None:
        return None
    return bool(regexp_matcher(to_text(pattern))(to_text(operand)))  # type: ignore[arg-type]


PATTERNS: Mapping[PatternKind, Callable[..., bool | None]] = MappingProxyType(
    {
        PatternKind.LIKE: like,
        PatternKind.ILIKE: ilike,
        PatternKind.GLOB: glob,
        PatternKind.REGEXP: regexp,
    }
)


def constant_pattern(kind: PatternKind, pattern: str, escape: str | None) -> Template:
    """The test of a constant pattern over a text that is not NULL."""
    if kind in (PatternKind.LIKE, PatternKind.ILIKE):
        return like_template(pattern, escape, kind is PatternKind.ILIKE)
    matcher = glob_matcher(pattern) if kind is PatternKind.GLOB else regexp_matcher(pattern)
    name = f"_{kind.value}_{abs(hash(pattern))}"
    return Template(f"{name}({{0}})", {name: matcher})
