"""Reading TIMESPAN values: the units as written, and the whole length (functions, section 6).

``timespan_hours('PT90M')`` is 0, because the value has no hours; ``timespan_total_hours`` of it is 1.5.  Only
ISO text is read; anything else gives NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from quereus_store.functions.registry import Function, ScalarFunction
from quereus_store.types.logical import INTEGER, REAL
from quereus_store.types.temporal.duration import Duration, parse_iso_duration
from quereus_store.types.values import Value

_NANOSECONDS = {
    "seconds": 10**9,
    "minutes": 60 * 10**9,
    "hours": 3600 * 10**9,
    "days": 86400 * 10**9,
}

_WHOLE_UNITS = ("years", "months", "weeks", "days", "hours", "minutes")


def _component(unit: str) -> Callable[[Value], int | None]:
    field: Callable[[Duration], int] = attrgetter(unit)

    def component(value: Value) -> int | None:
        duration = parse_iso_duration(value) if type(value) is str else None
        return None if duration is None else field(duration)

    return component


def seconds(value: Value) -> float | None:
    """The seconds as written, with their fraction."""
    duration = parse_iso_duration(value) if type(value) is str else None
    return None if duration is None else (duration.seconds * 10**9 + duration.nanoseconds) / 10**9


def _total(unit: str) -> Callable[[Value], float | None]:
    size = _NANOSECONDS[unit]

    def total(value: Value) -> float | None:
        duration = parse_iso_duration(value) if type(value) is str else None
        return None if duration is None else duration.total_nanoseconds / size

    return total


def timespan_functions() -> list[Function]:
    """The whole family, ready to register."""
    return [
        *(ScalarFunction(f"timespan_{unit}", _component(unit), 1, 1, INTEGER) for unit in _WHOLE_UNITS),
        ScalarFunction("timespan_seconds", seconds, 1, 1, REAL),
        *(ScalarFunction(f"timespan_total_{unit}", _total(unit), 1, 1, REAL) for unit in _NANOSECONDS),
    ]
