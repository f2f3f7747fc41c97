"""Frames: which rows of its partition a window function sees from each row (queries, section 13).

A frame is a run of rows, half open: ``start <= row < end``.  With EXCLUDE it has a hole, so a frame in
general is a union of a few runs; :class:`Frames` holds one pair of lists for each, all rows of the
partition at once. In every such pair both lists never fall from row to row.  All fast evaluation rests on
that: a frame that only moves forward can be followed by counting rows in and out.

Units: ``rows`` counts rows, ``groups`` counts groups of peers, ``range`` measures the distance of the first
order key, between numbers or, with a duration for an offset, between moments.  A key that has no distance is
a frame's end where its peers end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, chain, groupby, islice, repeat
from math import isfinite
from operator import eq
from typing import Any

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.functions.arguments import Number
from quereus_store.types.conversion import ConversionFailure, converted
from quereus_store.types.logical import TIMESPAN, LogicalType
from quereus_store.types.temporal.distances import MEASURED_TYPES, distance_keys, moved_keys
from quereus_store.types.temporal.duration import Duration, parse_iso_duration
from quereus_store.types.values import Value, to_text

Bounds = list[int]
Part = tuple[Bounds, Bounds]
Offset = Number | Duration


@dataclass(frozen=True, slots=True)
class Peers:
    """For each row of a partition: the first row of its peers, and the row after its last peer."""

    starts: Bounds
    ends: Bounds

    def groups(self) -> list[tuple[int, int]]:
        """The groups of peers in order."""
        return sorted(set(zip(self.starts, self.ends, strict=True)))


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of the rows of a partition, each a union of disjoint ascending runs; see the module."""

    size: int
    parts: tuple[Part, ...]

    @property
    def same_for_all(self) -> bool:
        """Whether every row has the same frame (bounds never fall, so the ends tell)."""
        return all(not self.size or (_flat(starts) and _flat(ends)) for starts, ends in self.parts)


def _flat(bounds: Bounds) -> bool:
    return bounds[0] == bounds[-1]


@dataclass(frozen=True, slots=True)
class FrameSpecification:
    """A frame clause with its offsets evaluated.

    ``unit``: rows, range, groups.  ``start`` and ``end``: unbounded preceding, preceding, current row,
    following, unbounded following.  ``exclusion``: no others, current row, group, ties.  ``measured`` is the
    type of the order key that offsets measure; it matters where they are durations.
    """

    unit: str = "range"
    start: str = "unbounded preceding"
    end: str = "current row"
    start_offset: Offset = 0
    end_offset: Offset = 0
    exclusion: str = "no others"
    measured: LogicalType | None = None


def frame_offset(
    value: Value,
    unit: str,
    measured: LogicalType | None = None,
    position: SourcePosition | None = None,
) -> Offset:
    """Check an offset: a non-negative integer, for ``range`` any non-negative number.

    For ``range`` over moments (``measured``) a text is a duration, which must not be negative either.
    Raises ERROR at ``position``.
    """
    if type(value) is float and value.is_integer():
        value = int(value)
    accepted = (int, float) if unit == "range" else (int,)
    if isinstance(value, accepted) and type(value) is not bool and value >= 0:
        return value
    wanted = "integer"
    if unit == "range" and type(value) is str and measured in MEASURED_TYPES:
        wanted = "duration"
        duration = _duration_of(value)
        if duration is not None and duration.total_nanoseconds >= 0:
            return duration
    raise sql_error(
        StatusCode.ERROR,
        f"Invalid window frame offset: {to_text(value)}. Must be a non-negative {wanted}.",
        position,
    )


def _duration_of(text: str) -> Duration | None:
    """The duration that a TIMESPAN column would hold for a text."""
    try:
        canonical = converted(text, TIMESPAN)
    except ConversionFailure:
        return None
    return parse_iso_duration(canonical) if type(canonical) is str else None


def peers_of(size: int, keys: Sequence[Any] | None) -> Peers:
    """Group the rows of a sorted partition by their order keys; without an order all are peers."""
    if keys is None:
        return Peers([0] * size, [size] * size)
    if not any(map(eq, keys, islice(keys, 1, None))):
        return Peers(list(range(size)), list(range(1, size + 1)))
    starts: Bounds = []
    ends: Bounds = []
    for _, group in groupby(keys):
        first = len(starts)
        count = sum(1 for _ in group)
        starts.extend(repeat(first, count))
        ends.extend(repeat(first + count, count))
    return Peers(starts, ends)


def frames_of(
    specification: FrameSpecification,
    peers: Peers,
    distances: Sequence[Value] | None = None,
    *,
    descending: bool = False,
) -> Frames:
    """The frames of all rows of a partition.

    ``distances`` are the first order key's values in row order, needed for ``range`` with offsets;
    ``descending`` says how they are sorted.
    """
    size = len(peers.starts)
    axis = _AXES[specification.unit](peers, distances, descending)
    if isinstance(specification.start_offset, Duration) or isinstance(specification.end_offset, Duration):
        axis = _moments_axis(peers, distances or (), descending, specification.measured, axis)
    starts = _bounds(axis, specification.start, specification.start_offset, False, size)
    ends = _bounds(axis, specification.end, specification.end_offset, True, size)
    ends = list(map(max, starts, ends))
    return Frames(size, _EXCLUSIONS[specification.exclusion](starts, ends, peers))


# An axis answers where the frame bound ``offset`` away lies: (offset, whether it is the end) -> bounds.
_Axis = Callable[[Any, bool], Bounds]


def _bounds(axis: _Axis, bound: str, offset: Offset, is_end: bool, size: int) -> Bounds:
    if bound == "unbounded preceding":
        return [0] * size
    if bound == "unbounded following":
        return [size] * size
    sign = {"preceding": -1, "current row": 0, "following": 1}[bound]
    if isinstance(offset, Duration):
        return axis(offset.negated() if sign < 0 else offset, is_end)
    return axis(sign * offset, is_end)


def _rows_axis(peers: Peers, distances: Sequence[Value] | None, descending: bool) -> _Axis:
    size = len(peers.starts)

    def axis(offset: Number, is_end: bool) -> Bounds:
        first = int(offset) + is_end
        inside = range(max(first, 0), min(first + size, size + 1))
        before = min(max(-first, 0), size)
        missing = size - before - len(inside)
        return list(chain(repeat(0, before), inside, repeat(size, missing)))[:size]

    return axis


def _groups_axis(peers: Peers, distances: Sequence[Value] | None, descending: bool) -> _Axis:
    groups = peers.groups()
    size = len(peers.starts)

    def axis(offset: Number, is_end: bool) -> Bounds:
        bounds: Bounds = []
        for number, (start, end) in enumerate(groups):
            target = number + int(offset)
            if target < 0:
                bound = 0
            elif target >= len(groups):
                bound = size
            else:
                bound = groups[target][is_end]
            bounds.extend(repeat(bound, end - start))
        return bounds

    return axis


def _range_axis(peers: Peers, distances: Sequence[Value] | None, descending: bool) -> _Axis:
    edges = (peers.starts, peers.ends)

    def axis(offset: Number, is_end: bool) -> Bounds:
        bounds = list(edges[is_end])
        if not offset or distances is None:
            return bounds
        first, numbers = _number_run(distances, descending)
        search = bisect_right if is_end else bisect_left
        bounds[first : first + len(numbers)] = [
            first + search(numbers, limit) for limit in _moved(numbers, offset)
        ]
        return bounds

    return axis


def _moments_axis(
    peers: Peers,
    distances: Sequence[Value],
    descending: bool,
    measured: LogicalType | None,
    numbers_axis: _Axis,
) -> _Axis:
    """An axis that takes durations, too.

    The calendar may move a later moment before an earlier one (a month and some hours from the end of
    January), but the bounds of frames never fall: such a row begins or ends where the row before it does.
    """
    assert measured is not None
    keys = distance_keys(measured, distances)
    places = [place for place, key in enumerate(keys) if key is not None]
    found: list[int] = [key for key in keys if key is not None]
    edges = (peers.starts, peers.ends)

    def axis(offset: Offset, is_end: bool) -> Bounds:
        if not isinstance(offset, Duration):
            return numbers_axis(offset, is_end)
        bounds = list(edges[is_end])
        if not found:
            return bounds
        moved = moved_keys(measured, found, offset.negated() if descending else offset)
        ascending = found
        if descending:
            ascending, moved = [-key for key in found], [-key for key in moved]
        search = bisect_right if is_end else bisect_left
        stops = [*places, places[-1] + 1]
        for place, limit in zip(places, accumulate(moved, max), strict=True):
            bounds[place] = stops[search(ascending, limit)]
        return bounds

    return axis


def _number_run(distances: Sequence[Any], descending: bool) -> tuple[int, list[Number]]:
    """Where the numbers among sorted keys begin, and the numbers, turned round so that they ascend."""
    sign = -1 if descending else 1
    places = [
        place
        for place, value in enumerate(distances)
        if type(value) in (int, float, bool) and value == value  # NaN has no distance
    ]
    first = places[0] if places else 0
    return first, [sign * distances[place] for place in places]


_EXACT = 2**53
"""Integers up to here are floats without loss."""


def _moved(numbers: Sequence[Number], offset: Number) -> Sequence[Any]:
    """Each number plus the offset; exactly where an integer is too large to be added to a float."""
    if type(offset) is float:
        wide = any(type(number) is int and not -_EXACT <= number <= _EXACT for number in numbers)
    else:
        wide = not -_EXACT <= offset <= _EXACT and any(type(number) is float for number in numbers)
    if not wide:
        return [number + offset for number in numbers]
    return [_exact_sum(number, offset) for number in numbers]


def _exact_sum(number: Number, offset: Number) -> Number | Fraction:
    for part in (number, offset):
        if type(part) is float and not isfinite(part):
            return part
    return Fraction(number) + Fraction(offset)


_AXES: dict[str, Callable[[Peers, Sequence[Value] | None, bool], _Axis]] = {
    "rows": _rows_axis,
    "groups": _groups_axis,
    "range": _range_axis,
}


# --- EXCLUDE ------------------------------------------------------------------------------------------------


def _around(starts: Bounds, ends: Bounds, hole_starts: Bounds, hole_ends: Bounds) -> tuple[Part, Part]:
    """The frame before and after a hole in it."""
    before = list(map(min, map(max, hole_starts, starts), ends))
    after = list(map(min, map(max, hole_ends, starts), ends))
    return (starts, before), (after, ends)


def _no_others(starts: Bounds, ends: Bounds, peers: Peers) -> tuple[Part, ...]:
    return ((starts, ends),)


def _without_current(starts: Bounds, ends: Bounds, peers: Peers) -> tuple[Part, ...]:
    size = len(starts)
    return _around(starts, ends, list(range(size)), list(range(1, size + 1)))


def _without_group(starts: Bounds, ends: Bounds, peers: Peers) -> tuple[Part, ...]:
    return _around(starts, ends, peers.starts, peers.ends)


def _without_ties(starts: Bounds, ends: Bounds, peers: Peers) -> tuple[Part, ...]:
    before, after = _around(starts, ends, peers.starts, peers.ends)
    rows = range(len(starts))
    itself = [
        row + 1 if start <= row < end else row for row, start, end in zip(rows, starts, ends, strict=True)
    ]
    return (before, (list(rows), itself), after)


_EXCLUSIONS: dict[str, Callable[[Bounds, Bounds, Peers], tuple[Part, ...]]] = {
    "no others": _no_others,
    "current row": _without_current,
    "group": _without_group,
    "ties": _without_ties,
}
