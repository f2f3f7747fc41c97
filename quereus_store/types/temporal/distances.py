"""Distances between moments: what RANGE frames with a duration measure (queries, section 13).

Every moment becomes an integer (days for DATE, nanoseconds for the others), so that frames are found by
bisection as they are among numbers.  A duration moves such a key as ``+`` moves the moment: months first, by
the calendar, then weeks and days, then the time.  Two things differ, because a frame has no midnight to
turn at and no last year: a TIME does not wrap, so a day or more reaches all of them, and no result is too
late to have a spelling.

A year of more than four digits has no distance, since such dates do not sort among the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from quereus_store.types.logical import DATE, DATETIME, TIME, TIMESPAN, LogicalType
from quereus_store.types.temporal.calendar import DAY_NANOSECONDS, add_months
from quereus_store.types.temporal.duration import Duration, iso_duration_nanoseconds
from quereus_store.types.temporal.instant import parse_moment, parse_time


def _date_key(text: str) -> int | None:
    return parse_moment(text)[0] if text[:1].isdigit() else None


def _datetime_key(text: str) -> int | None:
    if not text[:1].isdigit():
        return None
    day, time = parse_moment(text)
    return day * DAY_NANOSECONDS + time


_KEYS: Mapping[LogicalType, Callable[[str], int | None]] = MappingProxyType(
    {DATE: _date_key, DATETIME: _datetime_key, TIME: parse_time, TIMESPAN: iso_duration_nanoseconds}
)

MEASURED_TYPES = frozenset(_KEYS)
"""The types of order keys that a duration measures."""


def distance_keys(logical_type: LogicalType, values: Sequence[Any]) -> list[int | None]:
    """The key of each value; None for what is no such moment."""
    key_of = _KEYS[logical_type]

    def key(value: Any) -> int | None:
        try:
            return key_of(value) if type(value) is str else None
        except ValueError:
            return None

    return list(map(key, values))


def moved_keys(logical_type: LogicalType, keys: Sequence[int], duration: Duration) -> list[int]:
    """Each key moved by a duration, which may be negative."""
    months, days = duration.years * 12 + duration.months, duration.weeks * 7 + duration.days
    if logical_type is DATE:
        whole_days = abs(duration.time_nanoseconds) // DAY_NANOSECONDS
        shift = days + (whole_days if duration.time_nanoseconds > 0 else -whole_days)
        return [add_months(day, months) + shift for day in keys] if months else [day + shift for day in keys]
    if logical_type is not DATETIME:
        length = duration.total_nanoseconds
        return [key + length for key in keys]
    shift = days * DAY_NANOSECONDS + duration.time_nanoseconds
    if not months:
        return [key + shift for key in keys]
    moved = lru_cache(1024)(add_months)
    return [
        moved(day, months) * DAY_NANOSECONDS + time + shift
        for day, time in (divmod(key, DAY_NANOSECONDS) for key in keys)
    ]
