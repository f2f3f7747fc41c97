"""Aggregates that pick a value of the group: arg_max and arg_min, first and last, mode.

``arg_max(x, y)``, also ``max_by``, is ``x`` of the row with the greatest ``y``, the first of such rows;
rows in which either is NULL do not count.  ``first(x)`` and ``last(x)`` take the rows as they come, NULLs
included, so they want an ORDER BY in the call.  ``mode(x)`` is the value that occurs most often, of several
the first in order; with a second argument that is true the last, which is the standard's
``mode() within group (order by x desc)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from operator import gt, lt
from typing import Any

from quereus_store.functions.arguments import type_of_first
from quereus_store.functions.registry import AggregateFunction, Algebra
from quereus_store.types.values import Value

_Key = Callable[[Value], Any]
_Row = tuple[Value, ...]

# --- arg_max and arg_min ------------------------------------------------------------------------------------

# A state is None, or a pair: the key of the value compared, and the value of its row.
_Best = tuple[Any, Value] | None


def _best_of(choose: Callable[..., int]) -> Callable[..., Value]:
    """The value beside the greatest or the smallest."""

    def evaluate(values: Sequence[Value], compared: Sequence[Value], *, key: _Key | None = None) -> Value:
        if None in compared:
            present = [value is not None for value in compared]
            values, compared = list(compress(values, present)), list(compress(compared, present))
        if not values:
            return None
        keys = compared if key is None else list(map(key, compared))
        return values[choose(range(len(keys)), key=keys.__getitem__)]

    return evaluate


def _best_algebra(beats: Callable[[Any, Any], bool], key: _Key | None = None) -> Algebra:
    def merge(left: _Best, right: _Best) -> _Best:
        if left is None or right is None:
            return right if left is None else left
        return right if beats(right[0], left[0]) else left

    def add(state: _Best, row: _Row) -> _Best:
        value, compared = row
        if value is None or compared is None:
            return state
        return merge(state, (compared if key is None else key(compared), value))

    def finish(state: _Best) -> Value:
        return None if state is None else state[1]

    return Algebra(lambda: None, add, finish, merge=merge)


def _choosing(name: str, choose: Callable[..., int], beats: Callable[[Any, Any], bool]) -> AggregateFunction:
    return AggregateFunction(
        name,
        _best_of(choose),
        2,
        2,
        type_of_first,
        ordered=True,
        collated=True,
        compared=1,
        algebra=_best_algebra(beats),
        keyed_algebra=partial(_best_algebra, beats),
    )


# --- first and last -----------------------------------------------------------------------------------------

# A state is empty, or holds the value.
_Found = tuple[Value, ...]


def _value_of(state: _Found) -> Value:
    return state[0] if state else None


_FIRST = Algebra(
    tuple, lambda state, row: state or (row[0],), _value_of, merge=lambda left, right: left or right
)
_LAST = Algebra(tuple, lambda state, row: (row[0],), _value_of, merge=lambda left, right: right or left)


def _first(column: Sequence[Value]) -> Value:
    return column[0] if column else None


def _last(column: Sequence[Value]) -> Value:
    return column[-1] if column else None


# --- mode ---------------------------------------------------------------------------------------------------


def mode(column: Sequence[Value], descending: Sequence[Value] = (), *, key: _Key | None = None) -> Value:
    """The value that occurs most often; NULL of nothing."""
    if not column:
        return None
    keys = column if key is None else list(map(key, column))
    counts = Counter(keys)
    most = max(counts.values())
    choose = max if any(descending) else min
    chosen: Any = choose(value for value, count in counts.items() if count == most)  # type: ignore[type-var]
    return column[keys.index(chosen)]


CHOICES = (
    *(_choosing(name, max, gt) for name in ("arg_max", "max_by")),
    *(_choosing(name, min, lt) for name in ("arg_min", "min_by")),
    AggregateFunction("first", _first, 1, 1, type_of_first, skips_nulls=False, ordered=True, algebra=_FIRST),
    AggregateFunction("last", _last, 1, 1, type_of_first, skips_nulls=False, ordered=True, algebra=_LAST),
    AggregateFunction("mode", mode, 1, 2, type_of_first, collated=True),
)
