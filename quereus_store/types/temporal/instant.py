"""Dates and times as text: reading every accepted spelling, writing the canonical one.

Canonical spellings sort as text: DATE ``YYYY-MM-DD``, TIME ``HH:MM:SS[.f]``, DATETIME
``YYYY-MM-DDTHH:MM:SS[.f]``, the fraction one to nine digits without trailing zeros, years outside 0-9999
as ``±YYYYYY``.  A zone or offset shifts to UTC *before* date or time is taken; with a zone in brackets
the wall clock of that zone stays (types-and-values, section 12).

Between text and text stands a pair of integers, the day number and the nanosecond of the day, since
``datetime`` has neither nanoseconds nor the far years.  Where every value of a column is plain and canonical
already, :func:`is_canonical_column` finds that out with ``datetime``'s own C parser.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Callable, Mapping
from types import MappingProxyType

from quereus_store.types.temporal.calendar import (
    DAY_NANOSECONDS,
    MAX_DAY,
    MIN_DAY,
    civil_date,
    day_number,
    days_in_month,
)
from quereus_store.types.temporal.duration import HOUR, MINUTE, SECOND, fraction_text

_DATE = r"(?P<year>[0-9]{4}|[+-][0-9]{6})(?:-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})|(?P<compact>[0-9]{4}))"
_TIME = (
    r"(?P<hour>[0-9]{2})(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?)?"
)
_COMPACT_TIME = (
    r"(?P<chour>[0-9]{2})(?P<cminute>[0-9]{2})(?:(?P<csecond>[0-9]{2})(?:[.,](?P<cfraction>[0-9]{1,9}))?)?"
)
_OFFSET = r"(?P<offset>[Zz]|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?)?"
_ZONE = r"(?:\[!?(?P<zone>[A-Za-z_][^\]=]*|[+-][0-9:]+)\])?(?:\[[^\]]*=[^\]]*\])*"

_DATETIME_TEXT = re.compile(rf"{_DATE}(?:(?:[Tt]{_COMPACT_TIME}|[Tt ]{_TIME}){_OFFSET})?{_ZONE}")
_TIME_TEXT = re.compile(rf"(?:[Tt]?{_TIME}|[Tt]{_COMPACT_TIME}){_OFFSET}{_ZONE}")


_FIRST_DAY = datetime.date(1970, 1, 1).toordinal()


def _checked(field: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise ValueError(f"Invalid {field}: {value}; must be between {low}-{high}")
    return value


def _time_of(match: re.Match[str]) -> int:
    """Nanosecond of the day that the time groups of a match spell; a leap second counts as 59."""
    prefix = "c" if match["chour"] else ""
    hour = _checked("isoHour", int(match[prefix + "hour"] or 0), 0, 23)
    minute = _checked("isoMinute", int(match[prefix + "minute"] or 0), 0, 59)
    second = int(match[prefix + "second"] or 0)
    second = 59 if second == 60 else _checked("isoSecond", second, 0, 59)
    fraction = int((match[prefix + "fraction"] or "").ljust(9, "0"))
    return hour * HOUR + minute * MINUTE + second * SECOND + fraction


def _offset_of(text: str) -> int:
    """Nanoseconds east of UTC of ``Z``, ``±HH``, ``±HH:MM`` or ``±HHMM``."""
    if text in ("Z", "z"):
        return 0
    digits = text[1:].replace(":", "").ljust(6, "0")
    hour = _checked("offset hour", int(digits[:2]), 0, 23)
    minute = _checked("offset minute", int(digits[2:4]), 0, 59)
    size = hour * HOUR + minute * MINUTE + int(digits[4:]) * SECOND
    return -size if text[0] == "-" else size


def _zone_offset(zone: str, day: int, time: int, text: str) -> int:
    """Nanoseconds east of UTC that a named zone keeps at an instant."""
    if zone[0] in "+-":
        return _offset_of(zone)
    try:
        info = zoneinfo.ZoneInfo(zone)
        instant = datetime.datetime.fromtimestamp(day * 86_400 + time // SECOND, tz=datetime.UTC).astimezone(
            info
        )
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OverflowError, OSError):
        raise ValueError(f"Cannot parse: {text}") from None
    offset = instant.utcoffset()
    return int(offset.total_seconds()) * SECOND if offset else 0


def shift(day: int, time: int, nanoseconds: int) -> tuple[int, int]:
    """Move a day and its nanosecond by nanoseconds."""
    days, time = divmod(time + nanoseconds, DAY_NANOSECONDS)
    return day + days, time


def _plain_moment(text: str) -> tuple[int, int] | None:
    """``YYYY-MM-DD[THH:MM:SS]`` by ``datetime``'s own C parser, a quarter of the time; None for all else.

    The places of the signs keep out week dates, compact spellings and offsets, which it takes too, and so is
    the hour 24, which it takes since Python 3.14.
    """
    length = len(text)
    if length not in (10, 19) or text[4] != "-" or text[7] != "-":
        return None
    if length == 19 and (text[10] not in "Tt " or text[13] != ":" or text[16] != ":" or text[11:13] == "24"):
        return None
    try:
        if length == 10:
            return datetime.date.fromisoformat(text).toordinal() - _FIRST_DAY, 0
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
    return moment.toordinal() - _FIRST_DAY, seconds * SECOND


def parse_moment(text: str) -> tuple[int, int]:
    """Read a date or datetime text as day number and nanosecond of the day, in UTC.

    Raises ``ValueError`` with the cause (``Cannot parse: ...``, ``Invalid isoMonth: 14; ...``).
    """
    plain = _plain_moment(text)
    if plain is not None:
        return plain
    match = _DATETIME_TEXT.fullmatch(text)
    if match is None or match["year"] == "-000000":
        raise ValueError(f"Cannot parse: {text}")
    compact = match["compact"]
    year = int(match["year"])
    month = _checked("isoMonth", int(compact[:2] if compact else match["month"]), 1, 12)
    day_of_month = int(compact[2:] if compact else match["day"])
    _checked("isoDay", day_of_month, 1, days_in_month(year, month))
    day, time = day_number(year, month, day_of_month), _time_of(match)
    offset, zone = match["offset"], match["zone"]
    if offset:
        day, time = shift(day, time, -_offset_of(offset))
        if zone:
            day, time = shift(day, time, _zone_offset(zone, day, time, text))
    elif zone:
        _zone_offset(zone, day, time, text)
    return checked_moment(day, time)


def checked_moment(day: int, time: int) -> tuple[int, int]:
    """The same pair; raises ``ValueError`` when the day has no spelling."""
    if not MIN_DAY <= day <= MAX_DAY:
        raise ValueError("date is out of range")
    return day, time


def parse_time(text: str) -> int:
    """Read a time text, or the time of a datetime text, as nanosecond of the day.

    A bare time loses its offset, since no date says what it means; ``Z`` after one is refused.
    """
    match = _TIME_TEXT.fullmatch(text)
    if match is None:
        return parse_moment(text)[1]
    if match["offset"] in ("Z", "z"):
        raise ValueError(f"Cannot parse: {text}")
    return _time_of(match)


# --- writing ----------------------------------------------------------------------------------------------


def format_date(day: int) -> str:
    """``YYYY-MM-DD``, years outside 0-9999 as ``±YYYYYY``."""
    year, month, day_of_month = civil_date(day)
    year_text = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+07d}"
    return f"{year_text}-{month:02d}-{day_of_month:02d}"


def format_time(time: int) -> str:
    """``HH:MM:SS[.f]``."""
    seconds, fraction = divmod(time, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}{fraction_text(fraction)}"


def format_datetime(day: int, time: int) -> str:
    """``YYYY-MM-DDTHH:MM:SS[.f]``."""
    return f"{format_date(day)}T{format_time(time)}"


def canonical_date(text: str) -> str:
    """The canonical DATE of an accepted text; raises ``ValueError`` with the cause."""
    return format_date(parse_moment(text)[0])


def canonical_time(text: str) -> str:
    """The canonical TIME of an accepted text; raises ``ValueError`` with the cause."""
    return format_time(parse_time(text))


def canonical_datetime(text: str) -> str:
    """The canonical DATETIME of an accepted text; raises ``ValueError`` with the cause."""
    return format_datetime(*parse_moment(text))


def epoch_milliseconds(day: int, time: int) -> int:
    """Milliseconds since 1970, floored."""
    return day * 86_400_000 + time // 1_000_000


def moment_of_milliseconds(milliseconds: int) -> tuple[int, int]:
    """Day number and nanosecond of the day of an epoch time; raises ``ValueError`` out of range."""
    day, rest = divmod(milliseconds, 86_400_000)
    return checked_moment(day, rest * 1_000_000)


# --- columns ----------------------------------------------------------------------------------------------

_Isoformat = tuple[Callable[[str], datetime.date | datetime.time], int]
_ISOFORMAT: Mapping[str, _Isoformat] = MappingProxyType(
    {
        "DATE": (datetime.date.fromisoformat, 10),
        "TIME": (datetime.time.fromisoformat, 8),
        "DATETIME": (datetime.datetime.fromisoformat, 19),
    }
)


def is_canonical_column(texts: list[str], type_name: str) -> bool:
    """Whether every text is canonical, without fraction, in the years 1-9999: the case that needs no work.

    The length keeps out offsets, fractions and week dates; writing back what ``datetime`` read settles
    the rest.
    """
    parse, length = _ISOFORMAT[type_name]
    if set(map(len, texts)) != {length}:
        return False
    try:
        return [item.isoformat() for item in map(parse, texts)] == texts
    except ValueError:
        return False
