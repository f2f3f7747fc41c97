"""Comparison: what ``=``, ``<``, BETWEEN, IN, CASE, ``nullif``, ``greatest`` and ``least`` do.

A comparison is settled in two steps (types-and-values, section 9).  While the statement is planned,
:func:`comparison_plan` looks at the two declared types and says which side is cast to what, and in which
*mode* the values are then compared:

============  ===============================================================================================
mode          both operands (cast, not NULL) are ...
============  ===============================================================================================
``NATIVE``    numbers, or blobs: Python's operators are the SQL operators, but for NaN (see below)
``TEXT``      text: compared under the collation
``TIMESPAN``  durations: compared by whole length
``JSON``      documents: compared structurally
``CUSTOM``    of one registered type with its own comparator
``MIXED``     anything: by storage class, then value; two texts shaped like durations as durations
``RANKED``    anything: like MIXED, but durations count as text (the members of an IN list)
============  ===============================================================================================

:func:`comparison_template` turns a plan into inline Python.  NULLs are the caller's: a nullable operand
is tested before the template runs.  NaN equals itself and stands above all numbers, in every mode as in keys
and ORDER BY; where both operands may be NaN, a template asks for it when Python's operator has said no, and
where one may, ``not a <= b`` says the same as ``a > b`` for free.  The functions at the end (:func:`equal`,
:func:`less`, ...) are the same operators by value alone, with NULL in and NULL out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from math import isnan
from types import MappingProxyType
from typing import Any

from quereus_store.types.collations import BINARY, Collation
from quereus_store.types.json import canonical_json, compare_json, json_key
from quereus_store.types.logical import (
    ANY,
    BLOB,
    BOOLEAN,
    DATE,
    DATETIME,
    INTEGER,
    JSON,
    NULL,
    NUMERIC,
    REAL,
    TEXT,
    TIME,
    TIMESPAN,
    TIMESTAMP,
    LogicalType,
)
from quereus_store.types.templates import Template, global_name
from quereus_store.types.temporal.duration import compare_timespans, iso_duration_nanoseconds, timespan_key
from quereus_store.types.values import NUMERIC_RANK, OBJECT_RANK, RANK_OF_CLASS, TEXT_RANK, Value


class ComparisonMode(Enum):
    """How two non-NULL operands are compared; see the table of the module."""

    NATIVE = auto()
    TEXT = auto()
    TIMESPAN = auto()
    JSON = auto()
    CUSTOM = auto()
    MIXED = auto()
    RANKED = auto()


_NUMBERS = frozenset((INTEGER, REAL, NUMERIC, BOOLEAN, TIMESTAMP))
_TEXTS = frozenset((TEXT, DATE, TIME, DATETIME))


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """What to do with two operands: the casts (lenient, ``None`` for none), the mode, the compared types."""

    mode: ComparisonMode
    left_cast: LogicalType | None
    right_cast: LogicalType | None
    left_type: LogicalType
    right_type: LogicalType

    @property
    def equality_is_native(self) -> bool:
        """Whether Python's ``==`` answers ``=`` although order needs more.

        A number or a blob on one side settles it: the other side's equal values are of the same class.
        """
        return self.mode is ComparisonMode.NATIVE or (
            self.mode in (ComparisonMode.MIXED, ComparisonMode.RANKED)
            and any(side in _NUMBERS or side is BLOB for side in (self.left_type, self.right_type))
        )


def _coercion(own: LogicalType, other: LogicalType) -> LogicalType | None:
    """The type that an operand is cast to when it faces the other."""
    if other is JSON and own is not JSON and own is not NULL:
        return JSON
    if own.is_textual and other.is_numeric:
        return REAL if other is REAL else NUMERIC
    return None


def _mode(left: LogicalType, right: LogicalType) -> ComparisonMode:
    if (left in _NUMBERS and right in _NUMBERS) or (left is BLOB and right is BLOB):
        return ComparisonMode.NATIVE
    if left in _TEXTS and right in _TEXTS:
        return ComparisonMode.TEXT
    if left is right:
        if left is JSON:
            return ComparisonMode.JSON
        if left is TIMESPAN:
            return ComparisonMode.TIMESPAN
        if left.compare is not None:
            return ComparisonMode.CUSTOM
    return ComparisonMode.MIXED


@lru_cache(maxsize=1024)
def comparison_plan(left: LogicalType, right: LogicalType) -> ComparisonPlan:
    """Decide casts and mode for two operands of these declared types."""
    left_cast, right_cast = _coercion(left, right), _coercion(right, left)
    left_type, right_type = left_cast or left, right_cast or right
    return ComparisonPlan(_mode(left_type, right_type), left_cast, right_cast, left_type, right_type)


@dataclass(frozen=True, slots=True)
class ListPlan:
    """What to do with a probe and its members (IN, CASE, ``nullif``, ``greatest``, ``least``)."""

    mode: ComparisonMode
    probe_cast: LogicalType | None
    member_casts: tuple[LogicalType | None, ...]
    probe_type: LogicalType
    member_types: tuple[LogicalType, ...]


def list_plan(probe: LogicalType, members: Sequence[LogicalType]) -> ListPlan:
    """Decide casts and mode for a probe against a list (types-and-values, section 9, Lists).

    Any JSON operand casts all others; a numeric probe casts each text member by itself; a text probe is cast
    once, and only if every member that is not NULL is numeric.  In the result all members share one mode:
    the weakest that fits them all.
    """
    probe_cast: LogicalType | None = None
    member_casts: list[LogicalType | None] = [None] * len(members)
    if probe is JSON or JSON in members:
        probe_cast = _coercion(probe, JSON)
        member_casts = [_coercion(member, JSON) for member in members]
    elif probe.is_numeric:
        member_casts = [_coercion(member, probe) for member in members]
    elif probe.is_textual:
        typed = {member for member in members if member is not NULL}
        if typed and all(member.is_numeric for member in typed):
            probe_cast = REAL if typed == {REAL} else NUMERIC
    probe_type = probe_cast or probe
    member_types = tuple(cast or member for cast, member in zip(member_casts, members, strict=True))
    modes = {_mode(probe_type, member) for member in member_types if member is not NULL}
    if len(modes) == 1:
        mode = modes.pop()
    else:
        mode = ComparisonMode.MIXED
    if mode is ComparisonMode.MIXED and TIMESPAN not in (probe_type, *member_types):
        mode = ComparisonMode.RANKED
    return ListPlan(mode, probe_cast, tuple(member_casts), probe_type, member_types)


# --- comparing values -------------------------------------------------------------------------------------


def compare_numbers(left: float, right: float) -> int:
    """Order numbers exactly; NaN equals itself and stands above all others."""
    if left == right:
        return 0
    if left != left or right != right:
        return (left != left) - (right != right)
    return -1 if left < right else 1


class _NaNOperand(float):
    """NaN as one side of Python's operators, the other a number or NaN: equal to NaN, above all else."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and isnan(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: float) -> bool:
        return False

    def __le__(self, other: float) -> bool:
        return self == other

    def __gt__(self, other: float) -> bool:
        return not self == other

    def __ge__(self, other: float) -> bool:
        return True

    __hash__ = float.__hash__


_NAN_OPERAND: float = _NaNOperand("nan")


def nan_aware(number: Any) -> Any:
    """A number, or NULL, as an operand of which no template need know that it may be NaN."""
    return number if number == number else _NAN_OPERAND


def compare(left: Value, right: Value, collation: Collation | None = None) -> int:
    """The order of any two values: storage class (NULL lowest), then value; negative, 0 or positive."""
    rank = RANK_OF_CLASS[type(left)]
    difference = rank - RANK_OF_CLASS[type(right)]
    if difference:
        return difference
    a: Any = left
    b: Any = right
    if left is None:
        return 0
    if rank == TEXT_RANK:
        if collation is not None:
            return collation.comparator(a, b)
    elif rank == NUMERIC_RANK:
        return compare_numbers(a, b)
    elif rank == OBJECT_RANK:
        a, b = canonical_json(a), canonical_json(b)
    return int(a > b) - int(a < b)


def _as_duration(value: Value) -> int | None:
    if type(value) is str and value.startswith(("P", "-P")):
        return iso_duration_nanoseconds(value)
    return None


def compare_operands(left: Value, right: Value, collation: Collation | None = None) -> int:
    """Like :func:`compare`, but two texts that spell ISO durations compare by length.

    This is the operator between types that do not both say what they are (section 9, steps 4 and 5).
    """
    if type(left) is str and type(right) is str:
        a, b = _as_duration(left), _as_duration(right)
        if a is not None and b is not None:
            return (a > b) - (a < b)
    return compare(left, right, collation)


def equal_operands(left: Value, right: Value) -> bool:
    """Whether :func:`compare_operands` says 0 under BINARY, found faster for texts that are no durations."""
    if type(left) is str and type(right) is str:
        return left == right or (left[:1] in ("P", "-") and compare_operands(left, right) == 0)
    return compare_operands(left, right) == 0


def compare_json_collated(left: Any, right: Any, collation: Collation) -> int:
    """Order two documents; two JSON strings under an explicit collation."""
    if type(left) is str and type(right) is str:
        return collation.comparator(left, right)
    return compare_json(left, right)


# --- source templates -------------------------------------------------------------------------------------

_PYTHON_OPERATOR: Mapping[str, str] = MappingProxyType(
    {"=": "==", "==": "==", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
)


_MAY_BE_NAN = frozenset((REAL, NUMERIC, ANY))
_EITHER_NAN: Mapping[str, str] = MappingProxyType(
    {
        "==": "({0} == {1} or {0} != {0} and {1} != {1})",
        "!=": "({0} != {1} and ({0} == {0} or {1} == {1}))",
        "<": "({0} < {1} or {1} != {1} and {0} == {0})",
        "<=": "({0} <= {1} or {1} != {1})",
        ">": "({0} > {1} or {0} != {0} and {1} == {1})",
        ">=": "({0} >= {1} or {0} != {0})",
    }
)
_LEFT_NAN: Mapping[str, str] = MappingProxyType({">": "(not {0} <= {1})", ">=": "(not {0} < {1})"})
_RIGHT_NAN: Mapping[str, str] = MappingProxyType({"<": "(not {0} >= {1})", "<=": "(not {0} > {1})"})


def _native_template(operator: str, left_nan: bool, right_nan: bool) -> Template:
    """Python's operator, made to order NaN above all numbers on the sides that may be it."""
    plain = f"{{0}} {operator} {{1}}"
    if left_nan:
        return Template((_EITHER_NAN if right_nan else _LEFT_NAN).get(operator, plain))
    return Template(_RIGHT_NAN.get(operator, plain) if right_nan else plain)


def _text_template(operator: str, collation: Collation) -> Template:
    equality = operator in ("==", "!=")
    if collation.template is not None:
        left = collation.template
        right = left.replace("{0}", "{1}")
        return Template(f"{left} {operator} {right}")
    if collation.normalizer is not None and (equality or collation.order_preserving):
        name = global_name("_normalize_", collation.name)
        return Template(f"{name}({{0}}) {operator} {name}({{1}})", {name: collation.normalizer})
    name = global_name("_compare_", collation.name)
    return Template(f"{name}({{0}}, {{1}}) {operator} 0", {name: collation.comparator})


def _ranked_template(function: Any, operator: str, collation: Collation) -> Template:
    name = f"_{function.__name__}"
    if collation.is_binary:
        return Template(f"{name}({{0}}, {{1}}) {operator} 0", {name: function})
    collation_name = global_name("_collation_", collation.name)
    return Template(
        f"{name}({{0}}, {{1}}, {collation_name}) {operator} 0", {name: function, collation_name: collation}
    )


def comparison_template(
    plan: ComparisonPlan,
    operator: str,
    collation: Collation = BINARY,
    *,
    explicit_collation: bool = False,
    never_nan: tuple[bool, bool] = (False, False),
) -> Template:
    """Python source for ``{0} <operator> {1}``, both operands cast as the plan says and not NULL.

    ``explicit_collation`` tells that COLLATE stands in the expression: only then does it reach JSON strings.
    ``never_nan`` tells of each operand that it is known not to be NaN, whatever its type, or that
    :func:`nan_aware` made it, if the template is without names.
    """
    python = _PYTHON_OPERATOR[operator]
    mode = plan.mode
    if mode is ComparisonMode.NATIVE or (python in ("==", "!=") and plan.equality_is_native):
        left, right = plan.left_type in _MAY_BE_NAN, plan.right_type in _MAY_BE_NAN
        return _native_template(python, left and not never_nan[0], right and not never_nan[1])
    if mode is ComparisonMode.TEXT:
        return _text_template(python, collation)
    if mode is ComparisonMode.TIMESPAN:
        return Template(
            f"_timespan_key({{0}}) {python} _timespan_key({{1}})", {"_timespan_key": timespan_key}
        )
    if mode is ComparisonMode.JSON:
        if explicit_collation and not collation.is_binary:
            return _ranked_template(compare_json_collated, python, collation)
        return Template(f"_json_key({{0}}) {python} _json_key({{1}})", {"_json_key": json_key})
    if mode is ComparisonMode.CUSTOM:
        name = global_name("_compare_type_", plan.left_type.name)
        return Template(f"{name}({{0}}, {{1}}) {python} 0", {name: plan.left_type.compare})
    if mode is ComparisonMode.MIXED and collation.is_binary and python in ("==", "!="):
        source = "_equal_operands({0}, {1})"
        return Template(source if python == "==" else f"(not {source})", {"_equal_operands": equal_operands})
    function = compare_operands if mode is ComparisonMode.MIXED else compare
    return _ranked_template(function, python, collation)


def list_comparator(plan: ListPlan, collation: Collation) -> Callable[[Value, Value], int]:
    """The order of any two operands that the plan has cast, NULL included: negative, 0 or positive."""
    compare_same: Callable[[Any, Any], int]
    if plan.mode is ComparisonMode.TIMESPAN:
        compare_same = compare_timespans
    elif plan.mode is ComparisonMode.JSON:
        compare_same = compare_json
    elif plan.mode is ComparisonMode.CUSTOM and plan.probe_type.compare is not None:
        compare_same = plan.probe_type.compare
    else:
        by_value = compare_operands if plan.mode is ComparisonMode.MIXED else compare
        return lambda left, right: by_value(left, right, collation)

    def compare_nullable(left: Value, right: Value) -> int:
        if left is None or right is None:
            return (left is not None) - (right is not None)
        return compare_same(left, right)

    return compare_nullable


# --- operators by value -----------------------------------------------------------------------------------


def equal(left: Value, right: Value, collation: Collation | None = None) -> bool | None:
    """SQL ``=`` by value; NULL when an operand is."""
    if left is None or right is None:
        return None
    return compare_operands(left, right, collation) == 0


def not_equal(left: Value, right: Value, collation: Collation | None = None) -> bool | None:
    """SQL ``<>`` by value; NULL when an operand is."""
    if left is None or right is None:
        return None
    return compare_operands(left, right, collation) != 0


def less(left: Value, right: Value, collation: Collation | None = None) -> bool | None:
    """SQL ``<`` by value; NULL when an operand is."""
    if left is None or right is None:
        return None
    return compare_operands(left, right, collation) < 0


def less_equal(left: Value, right: Value, collation: Collation | None = None) -> bool | None:
    """SQL ``<=`` by value; NULL when an operand is."""
    if left is None or right is None:
        return None
    return compare_operands(left, right, collation) <= 0


def greater(left: Value, right: Value, collation: Collation | None = None) -> bool | None:
    """SQL ``>`` by value; NULL when an operand is."""
    if left is None or right is None:
        return None
    return compare_operands(left, right, collation) > 0


def greater_equal(left: Value, right: Value, collation: Collation | None = None) -> bool | None:
    """SQL ``>=`` by value; NULL when an operand is."""
    if left is None or right is None:
        return None
    return compare_operands(left, right, collation) >= 0


def is_distinct(left: Value, right: Value, collation: Collation | None = None) -> bool:
    """SQL ``IS DISTINCT FROM`` by value: NULL is not distinct from NULL."""
    if left is None or right is None:
        return left is not right
    return compare_operands(left, right, collation) != 0
