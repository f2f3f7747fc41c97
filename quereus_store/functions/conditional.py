"""Choosing among values: coalesce, nullif, iif, greatest, least, choose and typeof (functions, section 3).

Five of these compare or test their arguments as operators do, by static types and collations, or must not
evaluate all of them.  So the binder turns calls of :data:`SPECIAL_FORMS` into expressions of its own when the
function found is the built-in one: ``coalesce`` and ``ifnull`` stop at the first value, ``iif`` is CASE,
``nullif``, ``greatest`` and ``least`` compare converted copies under the collation of all arguments together.
The ``call`` of these functions answers by value alone; it serves where no static types are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quereus_store.functions.arguments import type_of_first
from quereus_store.functions.registry import Function, ScalarFunction
from quereus_store.types.comparison import compare_operands
from quereus_store.types.logical import ANY, TEXT, LogicalType
from quereus_store.types.result_types import merge_types
from quereus_store.types.values import Value, truth, typeof

SPECIAL_FORMS = frozenset({"coalesce", "ifnull", "nullif", "iif", "greatest", "least"})


def coalesce(*values: Value) -> Value:
    """The first value that is not NULL."""
    return next((value for value in values if value is not None), None)


def nullif(value: Value, other: Value) -> Value:
    """NULL if the two are equal, else the first as it is."""
    if value is None or other is None or compare_operands(value, other) != 0:
        return value
    return None


def iif(condition: Value, then: Value, otherwise: Value = None) -> Value:
    """``then`` if the condition is true, ``otherwise`` if it is false or NULL."""
    return then if truth(condition) else otherwise


def _extremum(wins: Callable[[int], bool]) -> Callable[..., Value]:
    def extremum(*values: Value) -> Value:
        best: Value = None
        for value in values:
            if value is not None and (best is None or wins(compare_operands(value, best))):
                best = value
        return best

    return extremum


greatest = _extremum(lambda order: order > 0)
least = _extremum(lambda order: order < 0)


def choose(position: Value, *values: Value) -> Value:
    """The value at that position, from 1; NULL for a position that is no whole number in range."""
    if type(position) is float and position.is_integer():
        position = int(position)
    if type(position) is int and 1 <= position <= len(values):
        return values[position - 1]
    return None


def _merged_branches(types: Sequence[LogicalType]) -> LogicalType:
    return merge_types(types[1:]) if len(types) > 1 else ANY


def conditional_functions() -> list[Function]:
    """The whole family, ready to register."""
    plain: dict[str, Any] = {"null_propagates": False}
    return [
        ScalarFunction("coalesce", coalesce, 0, None, merge_types, **plain),
        ScalarFunction("ifnull", coalesce, 2, 2, merge_types, **plain),
        ScalarFunction("nullif", nullif, 2, 2, type_of_first, **plain),
        ScalarFunction("iif", iif, 2, 3, _merged_branches, **plain),
        ScalarFunction("greatest", greatest, 0, None, merge_types, **plain),
        ScalarFunction("least", least, 0, None, merge_types, **plain),
        ScalarFunction("choose", choose, 1, None, _merged_branches, **plain),
        ScalarFunction("typeof", typeof, 1, 1, TEXT, nullable=False, **plain),
    ]
