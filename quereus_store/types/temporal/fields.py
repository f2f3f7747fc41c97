"""The fields that EXTRACT reads off dates, times and durations.

==============================================  =====================================================
of a date, datetime or time text                of an ISO duration
==============================================  =====================================================
year month day hour minute second               the units as stored, the second with its fraction
quarter week isoyear dow isodow doy             NULL
epoch: seconds since 1970, or since midnight    epoch: its whole length in seconds
==============================================  =====================================================

``dow`` counts from Sunday = 0, ``isodow`` from Monday = 1; ``week`` is the week of ``isoyear``.  A time has
no fields of a date; text that is none of these has none at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.types.temporal.accessors import timespan_component, timespan_total
from quereus_store.types.temporal.calendar import civil_date, day_of_year, iso_week, weekday
from quereus_store.types.temporal.duration import iso_duration_nanoseconds
from quereus_store.types.temporal.instant import parse_moment, parse_time
from quereus_store.types.values import int_quotient

_SECOND = 1_000_000_000
_DAY_SECONDS = 86_400


def _seconds(nanoseconds: int) -> int | float:
    whole, rest = divmod(nanoseconds, _SECOND)
    return int_quotient(nanoseconds, _SECOND) if rest else whole


_OF_DATE: Mapping[str, Callable[[int], int]] = MappingProxyType(
    {
        "year": lambda day: civil_date(day)[0],
        "month": lambda day: civil_date(day)[1],
        "day": lambda day: civil_date(day)[2],
        "quarter": lambda day: (civil_date(day)[1] + 2) // 3,
        "week": lambda day: iso_week(day)[1],
        "isoyear": lambda day: iso_week(day)[0],
        "dow": weekday,
        "isodow": lambda day: weekday(day) or 7,
        "doy": day_of_year,
    }
)
_OF_TIME: Mapping[str, Callable[[int], int | float]] = MappingProxyType(
    {
        "hour": lambda time: time // (3600 * _SECOND),
        "minute": lambda time: time // (60 * _SECOND) % 60,
        "second": lambda time: _seconds(time % (60 * _SECOND)),
    }
)
_OF_DURATION: Mapping[str, Callable[[Any], int | float | None]] = MappingProxyType(
    {
        **{
            unit: timespan_component(f"{unit}s")
            for unit in ("year", "month", "week", "day", "hour", "minute", "second")
        },
        "epoch": timespan_total("seconds"),
    }
)
_FIELDS = frozenset({*_OF_DATE, *_OF_TIME, "epoch"})


def extract(field: Any, value: Any) -> int | float | None:
    """``extract(field from value)``; raises ERROR for a field that nothing has."""
    name = field.lower() if isinstance(field, str) else None
    if name not in _FIELDS:
        raise sql_error(StatusCode.ERROR, f"EXTRACT knows no field '{field}'")
    if not isinstance(value, str):
        return None
    if iso_duration_nanoseconds(value) is not None:
        read = _OF_DURATION.get(name)
        return None if read is None else read(value)
    try:
        return _of_moment(name, *parse_moment(value))
    except ValueError:
        return _of_bare_time(name, value)


def _of_moment(field: str, day: int, time: int) -> int | float:
    of_date = _OF_DATE.get(field)
    if of_date is not None:
        return of_date(day)
    of_time = _OF_TIME.get(field)
    return day * _DAY_SECONDS + _seconds(time) if of_time is None else of_time(time)


def _of_bare_time(field: str, text: str) -> int | float | None:
    if field in _OF_DATE:
        return None
    try:
        time = parse_time(text)
    except ValueError:
        return None
    of_time = _OF_TIME.get(field)
    return _seconds(time) if of_time is None else of_time(time)
