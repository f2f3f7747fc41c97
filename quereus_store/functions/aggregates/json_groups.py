"""json_group_array and json_group_object: a document of a group (functions, section 8).

NULLs stay in arrays as nulls.  In objects a NULL key leaves its row out, other keys become text, and the last
value of a key wins.  A group without rows (or, for objects, without keys) gives NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quereus_store.functions.json_values import embed
from quereus_store.functions.registry import AggregateFunction, Algebra
from quereus_store.types.logical import JSON
from quereus_store.types.values import Value, to_text

_AS_THEY_ARE = frozenset((type(None), bool, int, str, list, dict))

_Items = tuple[Any, ...]


def _embedded(column: Sequence[Value]) -> list[Any]:
    if _AS_THEY_ARE.issuperset(map(type, column)):
        return list(column)
    return list(map(embed, column))


def json_group_array(column: Sequence[Value]) -> list[Any] | None:
    """An array of all values; NULL of no rows."""
    return _embedded(column) if column else None


def json_group_object(keys: Sequence[Value], values: Sequence[Value]) -> dict[str, Any] | None:
    """An object of the keys and their values; NULL without any key."""
    texts = keys if set(map(type, keys)) == {str} else list(map(to_text, keys))
    return dict(zip(texts, _embedded(values), strict=True)) or None  # type: ignore[arg-type]


def _append(state: _Items, row: tuple[Value, ...]) -> _Items:
    return (*state, embed(row[0]))


def _append_member(state: _Items, row: tuple[Value, ...]) -> _Items:
    key = to_text(row[0])
    return state if key is None else (*state, (key, embed(row[1])))


def _join(left: _Items, right: _Items) -> _Items:
    return left + right


def _finish_array(state: _Items) -> list[Any] | None:
    return list(state) or None


def _finish_object(state: _Items) -> dict[str, Any] | None:
    return dict(state) or None


JSON_AGGREGATES = (
    AggregateFunction(
        "json_group_array",
        json_group_array,
        1,
        1,
        JSON,
        skips_nulls=False,
        ordered=True,
        algebra=Algebra(tuple, _append, _finish_array, merge=_join),
    ),
    AggregateFunction(
        "json_group_object",
        json_group_object,
        2,
        2,
        JSON,
        ordered=True,
        algebra=Algebra(tuple, _append_member, _finish_object, merge=_join),
    ),
)
