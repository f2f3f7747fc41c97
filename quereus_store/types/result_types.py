"""Result types: what an expression announces before any row is seen (types-and-values, section 16).

Announced types drive everything static: comparison coercion, key recipes, conversion on write.  They are
promises about values, so where a rule cannot promise it announces ANY.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from quereus_store.types.arithmetic import operand_kind
from quereus_store.types.logical import (
    ANY,
    BUILT_IN_TYPES,
    INTEGER,
    JSON,
    NULL,
    NUMERIC,
    REAL,
    TIMESPAN,
    LogicalType,
)
from quereus_store.types.temporal.arithmetic import NUMBER, temporal_result_kind

_TYPE_OF_KIND: Mapping[str, LogicalType] = MappingProxyType(
    {**{logical_type.name: logical_type for logical_type in BUILT_IN_TYPES}, NUMBER: REAL}
)


def arithmetic_type(operator: str, left: LogicalType, right: LogicalType) -> LogicalType:
    """The type of ``left <operator> right`` for ``+ - * / %``."""
    left_kind, right_kind = operand_kind(left), operand_kind(right)
    if left_kind is None or right_kind is None:
        return ANY
    if left_kind == NUMBER and right_kind == NUMBER:
        if left is REAL and right is REAL:
            return REAL
        if left is INTEGER and right is INTEGER and operator != "/":
            return INTEGER
        return NUMERIC
    kind = temporal_result_kind(operator, left_kind, right_kind)
    return ANY if kind is None else _TYPE_OF_KIND[kind]


def arithmetic_is_nullable(
    operator: str, left: LogicalType, left_nullable: bool, right: LogicalType, right_nullable: bool
) -> bool:
    """Whether an arithmetic result may be NULL: always, but for ``+ - *`` of two NOT NULL integers."""
    exact = left is INTEGER and right is INTEGER and operator in ("+", "-", "*")
    return not exact or left_nullable or right_nullable


def unary_type(operator: str, operand: LogicalType) -> LogicalType:
    """The type of ``- x``, ``+ x`` or ``~ x``."""
    if operator == "~":
        return INTEGER
    return operand if operand.is_numeric or operand is TIMESPAN else ANY


def merge_types(types: Iterable[LogicalType]) -> LogicalType:
    """The one type of several alternatives: CASE, ``coalesce``, ``iif``, ``greatest``, VALUES.

    Equal types stay, NULL yields, different numeric types are NUMERIC, all else is ANY.
    """
    distinct = set(types) - {NULL}
    if not distinct:
        return NULL
    if len(distinct) == 1:
        return distinct.pop()
    return NUMERIC if all(item.is_numeric for item in distinct) else ANY


def set_operation_type(left: LogicalType, right: LogicalType) -> LogicalType:
    """The type of a column of UNION, INTERSECT or EXCEPT: as merged, but JSON on one side makes JSON.

    The other side is then cast to JSON.
    """
    return JSON if JSON in (left, right) else merge_types((left, right))


def cast_is_nullable(source: LogicalType, target: LogicalType, nullable: bool) -> bool:
    """Whether a CAST may give NULL: a converting one may, except to TEXT or BLOB."""
    return nullable or not (source is target or target.name in ("TEXT", "BLOB"))
