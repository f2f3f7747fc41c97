"""Looking into durations and date texts: ``timespan_hours(x)``, ``timespan_total_days(x)``, ``IsISODate(x)``.

The components are the units as they are stored, not rebalanced; the totals are the whole length
(types-and-values, section 14).  Only ISO text has either; all else gives NULL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from quereus_store.types.temporal.calendar import DAY_NANOSECONDS
from quereus_store.types.temporal.duration import (
    HOUR,
    MINUTE,
    SECOND,
    Duration,
    iso_duration_nanoseconds,
    parse_iso_duration,
)
from quereus_store.types.temporal.instant import parse_moment
from quereus_store.types.values import WHITE_SPACE, int_quotient

TIMESPAN_COMPONENTS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
TIMESPAN_TOTALS: Mapping[str, int] = MappingProxyType(
    {"seconds": SECOND, "minutes": MINUTE, "hours": HOUR, "days": DAY_NANOSECONDS}
)


def _iso_duration(value: Any) -> Duration | None:
    return parse_iso_duration(value) if type(value) is str else None


def timespan_component(unit: str) -> Callable[[Any], int | float | None]:
    """The function ``timespan_<unit>(x)``; seconds include their fraction and are real."""

    def component(value: Any) -> int | float | None:
        duration = _iso_duration(value)
        if duration is None:
            return None
        if unit == "seconds":
            return int_quotient(duration.seconds * SECOND + duration.nanoseconds, SECOND)
        count: int = getattr(duration, unit)
        return count

    return component


def timespan_total(unit: str) -> Callable[[Any], float | None]:
    """The function ``timespan_total_<unit>(x)``."""
    size = TIMESPAN_TOTALS[unit]

    def total(value: Any) -> float | None:
        nanoseconds = iso_duration_nanoseconds(value) if type(value) is str else None
        return None if nanoseconds is None else int_quotient(nanoseconds, size)

    return total


_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ISO_DATETIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?"
)


def _is_real(value: Any, shape: re.Pattern[str]) -> bool:
    if type(value) is not str:
        return False
    text = value.strip(WHITE_SPACE)
    if not shape.fullmatch(text):
        return False
    try:
        parse_moment(text)
    except ValueError:
        return False
    return True


def is_iso_date(value: Any) -> bool:
    """``IsISODate(x)``: trimmed text that is a real ``YYYY-MM-DD``; never NULL."""
    return _is_real(value, _ISO_DATE)


def is_iso_datetime(value: Any) -> bool:
    """``IsISODateTime(x)``: trimmed text that is a real date and time joined by ``T``; never NULL."""
    return _is_real(value, _ISO_DATETIME)
