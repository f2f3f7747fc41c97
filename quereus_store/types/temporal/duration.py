"""Durations: the values of a TIMESPAN.

A duration keeps the units it was written with: ``PT90M`` is not rewritten to ``PT1H30M``.  Its text is
``[-]P[nY][nM][nW][nD][T[nH][nM][n[.f]S]]``; zero is ``PT0S``.  What equality, order and keys look at is
the whole length, with calendar units measured from 2024-01-01, so a month is 31 days and a year 366
(types-and-values, section 12).  Lengths are integers of nanoseconds: exact, hashable, ordered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.types.temporal.calendar import DAY_NANOSECONDS, add_months, day_number
from quereus_store.types.values import int_from_text, int_to_text

HOUR, MINUTE, SECOND = 3_600 * 10**9, 60 * 10**9, 10**9
_ANCHOR = day_number(2024, 1, 1)


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time in the units it was written with; all fields carry the sign of the whole.

    ``nanoseconds`` is the fraction of the seconds, below 10^9 in size.
    """

    years: int = 0
    months: int = 0
    weeks: int = 0
    days: int = 0
    hours: int = 0
    minutes: int = 0
    seconds: int = 0
    nanoseconds: int = 0

    @property
    def has_calendar_units(self) -> bool:
        """Whether years, months or weeks are set: their length depends on where they start."""
        return bool(self.years or self.months or self.weeks)

    @property
    def time_nanoseconds(self) -> int:
        """The length of the units below a day."""
        return self.hours * HOUR + self.minutes * MINUTE + self.seconds * SECOND + self.nanoseconds

    @property
    def total_nanoseconds(self) -> int:
        """The whole length, years, months and weeks measured from 2024-01-01."""
        days = self.weeks * 7 + self.days
        months = self.years * 12 + self.months
        if months:
            days += add_months(_ANCHOR, months) - _ANCHOR
        return days * DAY_NANOSECONDS + self.time_nanoseconds

    def negated(self) -> Duration:
        """The same length the other way."""
        return Duration(
            -self.years,
            -self.months,
            -self.weeks,
            -self.days,
            -self.hours,
            -self.minutes,
            -self.seconds,
            -self.nanoseconds,
        )

    def __str__(self) -> str:
        fields = (self.years, self.months, self.weeks, self.days, self.hours, self.minutes)
        second_part = abs(self.seconds) * SECOND + abs(self.nanoseconds)
        negative = any(number < 0 for number in (*fields, self.seconds, self.nanoseconds))
        years, months, weeks, days, hours, minutes = map(abs, fields)
        date_units = ((years, "Y"), (months, "M"), (weeks, "W"), (days, "D"))
        date = "".join(f"{int_to_text(count)}{unit}" for count, unit in date_units if count)
        time = "".join(
            f"{int_to_text(count)}{unit}" for count, unit in ((hours, "H"), (minutes, "M")) if count
        )
        if second_part:
            time += f"{seconds_text(second_part)}S"
        if not date and not time:
            return "PT0S"
        return f"{'-' if negative else ''}P{date}{'T' + time if time else ''}"


def fraction_text(nanoseconds: int) -> str:
    """``.f`` with one to nine digits and no trailing zeros; nothing for 0."""
    return f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""


def seconds_text(nanoseconds: int) -> str:
    """A non-negative number of nanoseconds as seconds."""
    seconds, rest = divmod(nanoseconds, SECOND)
    return f"{int_to_text(seconds)}{fraction_text(rest)}"


def balanced(nanoseconds: int, largest: int = HOUR) -> Duration:
    """A length spread over units from ``largest`` (in nanoseconds, at most a day) down to seconds."""
    sign, rest = (-1 if nanoseconds < 0 else 1), abs(nanoseconds)
    counts = dict.fromkeys(_BALANCED_UNITS, 0)
    for unit, size in _BALANCED_UNITS.items():
        if size <= largest:
            count, rest = divmod(rest, size)
            counts[unit] = sign * count
    return Duration(**counts, nanoseconds=sign * rest)


_BALANCED_UNITS: Mapping[str, int] = MappingProxyType(
    {"days": DAY_NANOSECONDS, "hours": HOUR, "minutes": MINUTE, "seconds": SECOND}
)

_ISO = re.compile(
    r"""([+-])?P
    (?:([0-9]+)Y)? (?:([0-9]+)M)? (?:([0-9]+)W)? (?:([0-9]+)D)?
    (?:T (?=[0-9])
       (?:([0-9]+)(?:[.,]([0-9]{1,9}))?H)?
       (?:([0-9]+)(?:[.,]([0-9]{1,9}))?M)?
       (?:([0-9]+)(?:[.,]([0-9]{1,9}))?S)?
    )?""",
    re.VERBOSE | re.IGNORECASE,
)

_UNIT_FIELD: Mapping[str, str] = MappingProxyType(
    {
        "year": "years",
        "month": "months",
        "week": "weeks",
        "day": "days",
        "hour": "hours",
        "minute": "minutes",
        "min": "minutes",
        "second": "seconds",
        "sec": "seconds",
    }
)
_PHRASE = re.compile(
    r"([0-9]+)(\.[0-9]+)?\s*(year|month|week|day|hour|minute|min|second|sec)s?\b", re.IGNORECASE
)


def parse_iso_duration(text: str) -> Duration | None:
    """Read an ISO 8601 duration in any case, with optional sign; ``None`` if it is not one.

    A fraction may stand on the last time unit only and spreads over the smaller ones: ``PT1.5H`` is
    ``PT1H30M``.
    """
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    sign, *groups = match.groups()
    years, months, weeks, days, hours, hour_part, minutes, minute_part, seconds, second_part = groups
    if not any((years, months, weeks, days, hours, minutes, seconds)):
        return None
    if (hour_part and (minutes or seconds)) or (minute_part and seconds):
        return None
    spread_minutes = spread_seconds = nanoseconds = 0
    if hour_part:
        spread_minutes, rest = divmod(_part_of(hour_part, HOUR), MINUTE)
        spread_seconds, nanoseconds = divmod(rest, SECOND)
    elif minute_part:
        spread_seconds, nanoseconds = divmod(_part_of(minute_part, MINUTE), SECOND)
    elif second_part:
        nanoseconds = _part_of(second_part, SECOND)
    duration = Duration(
        int_from_text(years or "0"),
        int_from_text(months or "0"),
        int_from_text(weeks or "0"),
        int_from_text(days or "0"),
        int_from_text(hours or "0"),
        int_from_text(minutes or "0") + spread_minutes,
        int_from_text(seconds or "0") + spread_seconds,
        nanoseconds,
    )
    return duration.negated() if sign == "-" else duration


def _part_of(digits: str, unit: int) -> int:
    return int(digits.ljust(9, "0")) * unit // SECOND


def parse_phrase(text: str) -> Duration | None:
    """Read words: every ``<n> <unit>`` adds up, a leading ``-`` negates all; fractions are refused."""
    totals: dict[str, int] = {}
    for match in _PHRASE.finditer(text):
        if match[2]:
            return None
        unit = _UNIT_FIELD[match[3].lower()]
        totals[unit] = totals.get(unit, 0) + int_from_text(match[1])
    if not totals:
        return None
    duration = Duration(**totals)
    return duration.negated() if text.lstrip().startswith("-") else duration


def parse_duration(text: str) -> Duration | None:
    """Read what a TIMESPAN column takes as text: an ISO duration or a phrase."""
    return parse_iso_duration(text) or parse_phrase(text)


@lru_cache(maxsize=4096)
def iso_duration_nanoseconds(text: str) -> int | None:
    """The whole length of an ISO duration text, ``None`` if it is none."""
    duration = parse_iso_duration(text)
    return None if duration is None else duration.total_nanoseconds


@lru_cache(maxsize=4096)
def timespan_key(text: str) -> int:
    """The whole length of a TIMESPAN value in nanoseconds: its key for order and equality.

    Raises MISMATCH for a text that is no duration, which no TIMESPAN column holds.
    """
    nanoseconds = iso_duration_nanoseconds(text)
    if nanoseconds is None:
        raise sql_error(StatusCode.MISMATCH, f"Cannot convert '{text}' to TIMESPAN")
    return nanoseconds


def compare_timespans(left: Any, right: Any) -> int:
    """Order two TIMESPAN values by whole length."""
    left_key, right_key = timespan_key(left), timespan_key(right)
    return (left_key > right_key) - (left_key < right_key)
