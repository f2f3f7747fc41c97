"""min and max: the ends of the order of the argument's type and collation (functions, section 8).

Values that Python orders as SQL does (numbers, text under BINARY, blobs) are compared directly; for all
others the caller passes an order key.  Taking a value out needs the other values, so the algebra has no
``remove``; window frames keep a queue of candidates instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from quereus_store.functions.registry import AggregateFunction, Algebra
from quereus_store.types.logical import ANY, LogicalType
from quereus_store.types.values import Value

Key = Callable[[Value], Any]

# A state is None, or a pair: the value's key and the value.
_State = tuple[Any, Value] | None


def min_column(column: Sequence[Value], key: Key | None = None) -> Value:
    """The first value in order; NULL of nothing."""
    return one_zero(min(column, key=key)) if column else None  # type: ignore[type-var,arg-type]


def max_column(column: Sequence[Value], key: Key | None = None) -> Value:
    """The last value in order; NULL of nothing."""
    return one_zero(max(column, key=key)) if column else None  # type: ignore[type-var,arg-type]


def one_zero(value: Value) -> Value:
    """0.0 for -0.0, which equals it: the rows may come in any order."""
    return value or (value + 0.0 if type(value) is float else value)


def _lower(left: _State, right: _State) -> _State:
    if left is None or right is None:
        return left or right
    return right if right[0] < left[0] else left


def _higher(left: _State, right: _State) -> _State:
    if left is None or right is None:
        return left or right
    return right if right[0] > left[0] else left


def _state_of(value: Value, key: Key | None) -> _State:
    if value is None:
        return None
    return (value if key is None else key(value), value)


def extreme_algebra(
    evaluate: Callable[..., Value], join: Callable[[_State, _State], _State], key: Key | None = None
) -> Algebra:
    """The algebra of min or max under an order key."""

    def add(state: _State, row: tuple[Value, ...]) -> _State:
        return join(state, _state_of(row[0], key))

    def total(column: Sequence[Value]) -> _State:
        return decode(evaluate([value for value in column if value is not None], key=key))

    def finish(state: _State) -> Value:
        return None if state is None else one_zero(state[1])

    def decode(stored: Value) -> _State:
        return _state_of(stored, key)

    return Algebra(lambda: None, add, finish, merge=join, total=total, decode=decode)


def _type_of_argument(types: Sequence[LogicalType]) -> LogicalType:
    return types[0] if types else ANY


def _extreme(
    name: str, evaluate: Callable[..., Value], join: Callable[[_State, _State], _State]
) -> AggregateFunction:
    return AggregateFunction(
        name,
        evaluate,
        1,
        1,
        _type_of_argument,
        collated=True,
        algebra=extreme_algebra(evaluate, join),
        keyed_algebra=partial(extreme_algebra, evaluate, join),
    )


MIN = _extreme("min", min_column, _lower)
MAX = _extreme("max", max_column, _higher)
