"""What shapes an aggregate's arguments before it sees them: FILTER, ORDER BY, DISTINCT, NULLs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

from quereus_store.types import truth

OrderTerm = tuple[list[Any], Callable[[Any], Any] | None, bool, bool]


def without_nulls(*columns: list[Any]) -> list[list[Any]]:
    """The columns without the rows whose first value is NULL."""
    keep = [value is not None for value in columns[0]]
    return [list(compress(column, keep)) for column in columns]


def count_true(condition: list[Any]) -> int:
    """How many conditions are true."""
    return sum(1 for value in condition if truth(value))


def shape_arguments(
    columns: Sequence[list[Any]],
    condition: list[Any] | None,
    order: Sequence[OrderTerm],
    identities: Sequence[Callable[[Any], Any]] | None,
    skips_nulls: bool,
) -> list[list[Any]]:
    """An aggregate's argument columns, filtered, ordered and made distinct, in this order.

    ``order`` terms are (values, key or None, descending, nulls last); rows that
    FILTER excludes take no part in anything.
    """
    positions: list[int] = list(range(len(columns[0])))
    if condition is not None:
        positions = [index for index in positions if truth(condition[index])]
    if skips_nulls:
        first = columns[0]
        positions = [index for index in positions if first[index] is not None]
    for values, key, descending, nulls_last in reversed(order):
        positions = _sorted_positions(positions, values, key, descending, nulls_last)
    if identities is not None:
        seen: dict[Any, int] = {}
        keys = [
            [None if value is None else identity(value) for value in map(column.__getitem__, positions)]
            for column, identity in zip(columns, identities, strict=True)
        ]
        for index, key in zip(positions, keys[0] if len(keys) == 1 else zip(*keys, strict=True), strict=True):
            seen.setdefault(key, index)
        positions = list(seen.values())
    return [[column[index] for index in positions] for column in columns]


def _sorted_positions(
    positions: list[int],
    values: list[Any],
    key: Callable[[Any], Any] | None,
    descending: bool,
    nulls_last: bool,
) -> list[int]:
    missing = [index for index in positions if values[index] is None]
    present = [index for index in positions if values[index] is not None]
    if key is None:
        present.sort(key=values.__getitem__, reverse=descending)
    else:
        make = key
        present.sort(key=lambda index: make(values[index]), reverse=descending)
    return present + missing if nulls_last else missing + present
