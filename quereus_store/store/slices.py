"""Ranges of the primary key in the cached batches of a table.

Cached batches are rows in key order.  Where the first column of the key compares in Python as it sorts
in the store (a NOT NULL integer or binary text, ascending), a range over that column is found by
bisection, and is a slice of the first batch, whole batches, and a slice of the last: nothing is read
and nothing decoded.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Self

from quereus_store.codec import KeyColumn
from quereus_store.modules.contract import AccessPath, Batch, Comparison, Row
from quereus_store.store.cache import Gathered
from quereus_store.types import logical
from quereus_store.types.logical import LogicalType

_NUMBERS = frozenset((int, bool))
_TEXTS = frozenset((str,))
_PLAIN: Mapping[LogicalType, frozenset[type]] = MappingProxyType(
    {
        logical.INTEGER: _NUMBERS,
        logical.TIMESTAMP: _NUMBERS,
        logical.TEXT: _TEXTS,
        logical.DATE: _TEXTS,
        logical.TIME: _TEXTS,
        logical.DATETIME: _TEXTS,
    }
)
"""The classes of bounds that compare with a column's values as their keys do."""

Place = tuple[int, int]
"""A batch and a row in it."""


class Slicer:
    """Finds the ranges of one table in its batches."""

    __slots__ = ("_accepted", "_column", "_value")

    def __init__(self, column: int, accepted: frozenset[type]) -> None:
        self._column = column
        self._value: Callable[[Row], Any] = itemgetter(column)
        self._accepted = accepted

    @classmethod
    def of_key(cls, columns: Sequence[KeyColumn], positions: Sequence[int]) -> Self | None:
        """The slicer of a table with this primary key; None where values do not compare as their keys do."""
        if not columns:
            return None
        first = columns[0]
        accepted = _PLAIN.get(first.type)
        if accepted is None or first.nullable or first.descending or first.normalizer is not None:
            return None
        return cls(positions[0], accepted)

    def accepts(self, path: AccessPath, prefix: Sequence[Any], lower: Any, upper: Any) -> bool:
        """Whether a RANGE path over the primary key concerns the first column alone, with plain values."""
        accepted = self._accepted
        if path.equal:
            return path.equal == 1 and path.lower is path.upper is None and type(prefix[0]) in accepted
        return (path.lower is None or type(lower) in accepted) and (
            path.upper is None or type(upper) in accepted
        )

    def rows(
        self, batches: Gathered, path: AccessPath, prefix: Sequence[Any], lower: Any, upper: Any
    ) -> Iterable[Batch]:
        """The rows of a range that :meth:`accepts` has let through."""
        if path.equal:
            start = self._place(batches, prefix[0], False)
            stop = self._place(batches, prefix[0], True)
        else:
            start, stop = (0, 0), (len(batches), 0)
            if path.lower is not None:
                start = self._place(batches, lower, path.lower is Comparison.GREATER)
            if path.upper is not None:
                stop = self._place(batches, upper, path.upper is Comparison.LESS_OR_EQUAL)
        pieces = _pieces(batches, start, stop)
        return _backwards(pieces) if path.reverse else tuple(pieces)

    def _place(self, batches: Gathered, value: Any, after: bool) -> Place:
        """Where the rows from a value on begin; ``after`` leaves out those of the value itself."""
        lasts = batches.lasts
        if lasts is None:
            column = self._column
            lasts = batches.lasts = [batch[-1][column] for batch in batches]
        bisect = bisect_right if after else bisect_left
        number = bisect(lasts, value)
        if number == len(lasts):
            return number, 0
        return number, bisect(batches[number], value, key=self._value)


def _pieces(batches: list[Batch], start: Place, stop: Place) -> list[Batch]:
    if start >= stop:
        return []
    (first, begin), (last, end) = start, stop
    if first == last:
        return [batches[first][begin:end]]
    pieces = [batches[first][begin:] if begin else batches[first], *batches[first + 1 : last]]
    if end:
        pieces.append(batches[last][:end])
    return pieces


def _backwards(pieces: list[Batch]) -> Iterable[Batch]:
    if len(pieces) <= 1:
        return tuple([piece[::-1] for piece in pieces])
    return _turned(pieces)


def _turned(pieces: list[Batch]) -> Iterator[Batch]:
    for piece in reversed(pieces):
        yield piece[::-1]
