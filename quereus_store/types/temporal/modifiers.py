"""Date functions with modifiers: ``date('2025-03-05', 'start of month', '+1 month')`` and kin.

These are another family than the conversions of the same names: lenient, with text results, NULL where
something does not parse (types-and-values, section 14; functions, section 5).  All of them read their
arguments into a :class:`Moment`, a wall clock in UTC or in the local zone, move it by the modifiers from
left to right, and write it.  Three modifiers are flags and apply whatever their place: ``unixepoch``,
``utc``/``localtime`` and ``subsec``.
"""

from __future__ import annotations

import datetime
import re
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from quereus_store.types.temporal.calendar import (
    DAY_NANOSECONDS,
    MAX_DAY,
    MIN_DAY,
    add_months,
    civil_date,
    day_number,
    weekday,
)
from quereus_store.types.temporal.duration import HOUR, MINUTE, SECOND
from quereus_store.types.temporal.instant import (
    epoch_milliseconds,
    format_date,
    parse_moment,
    shift,
)
from quereus_store.types.values import SAFE_INTEGER, WHITE_SPACE, int_from_text

_MILLISECOND = 1_000_000
_JULIAN_EPOCH = 2_440_587.5
_DAY_MILLISECONDS = 86_400_000


@dataclass(frozen=True, slots=True)
class Moment:
    """A wall clock: day number, nanosecond of the day, the zone it is read in, and how to print it."""

    day: int
    time: int
    is_local: bool = False
    subsec: bool = False

    def in_utc(self) -> tuple[int, int]:
        """Day number and nanosecond of the day in UTC."""
        return shift(self.day, self.time, -self.offset) if self.is_local else (self.day, self.time)

    @property
    def offset(self) -> int:
        """Nanoseconds east of UTC."""
        return _local_offset_of_wall(self.day, self.time) if self.is_local else 0

    @property
    def milliseconds(self) -> int:
        """Milliseconds since 1970 in UTC, floored."""
        return epoch_milliseconds(*self.in_utc())

    @property
    def julian_day(self) -> float:
        """The Julian day number."""
        return self.milliseconds / _DAY_MILLISECONDS + _JULIAN_EPOCH


# --- the local zone -----------------------------------------------------------------------------------------


def _utc_offset(moment: datetime.datetime) -> int:
    offset = moment.astimezone().utcoffset()
    return int(offset.total_seconds()) * SECOND if offset else 0


def _local_offset_of_wall(day: int, time: int) -> int:
    year, month, day_of_month = civil_date(day)
    seconds = time // SECOND
    wall = datetime.datetime(year, month, day_of_month) + datetime.timedelta(seconds=seconds)
    return _utc_offset(wall)


def _to_local(day: int, time: int) -> tuple[int, int]:
    year, month, day_of_month = civil_date(day)
    instant = datetime.datetime(year, month, day_of_month, tzinfo=datetime.UTC)
    return shift(day, time, _utc_offset(instant + datetime.timedelta(seconds=time // SECOND)))


# --- time values --------------------------------------------------------------------------------------------

_TIME_ONLY = re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?")
_STRICT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)


def now() -> tuple[int, int]:
    """The clock: day number and nanosecond of the day, in UTC, to the millisecond."""
    day, rest = divmod(clock.time_ns(), DAY_NANOSECONDS)
    return day, rest // _MILLISECOND * _MILLISECOND


def _from_text(text: str, strict: bool) -> tuple[int, int] | None:
    trimmed = text.strip(WHITE_SPACE)
    if trimmed.lower() == "now":
        return now()
    if strict and not _STRICT.fullmatch(trimmed):
        return None
    if _TIME_ONLY.fullmatch(trimmed):
        trimmed = f"2000-01-01T{trimmed}"
    try:
        return parse_moment(trimmed)
    except ValueError:
        return None


def _whole_milliseconds(milliseconds: float, tolerance: float) -> int | None:
    """The whole number that milliseconds stand for; NULL between two, rounding of floats aside."""
    nearest = round(milliseconds)
    return nearest if abs(milliseconds - nearest) <= tolerance else None


def _milliseconds_of_number(number: float, unixepoch: bool) -> int | None:
    if unixepoch:
        return _whole_milliseconds(number * 1000, 1e-3)
    if 1_000_000 < number < 4_000_000:
        # A float of this size resolves Julian days to a twenty-fifth of a millisecond.
        return _whole_milliseconds((number - _JULIAN_EPOCH) * _DAY_MILLISECONDS, 0.05)
    if -2_208_988_800 < number < 32_503_680_000:
        return _whole_milliseconds(number * 1000, 1e-3)
    if -2_208_988_800_000 < number < 32_503_680_000_000:
        return _whole_milliseconds(number, 1e-3)
    return None


def _from_number(number: float, unixepoch: bool) -> tuple[int, int] | None:
    if number != number or not -SAFE_INTEGER <= number <= SAFE_INTEGER:
        return None
    milliseconds = _milliseconds_of_number(number, unixepoch)
    if milliseconds is None:
        return None
    day, rest = divmod(milliseconds, _DAY_MILLISECONDS)
    return day, rest * _MILLISECOND


# --- modifiers ----------------------------------------------------------------------------------------------

_AMOUNT = re.compile(
    r"(?P<sign>[+-]?)\s*(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]+))?\s+(?P<unit>day|hour|minute|second|month|year)s?"
)
_WEEKDAY = re.compile(r"weekday\s+([0-6])")
_TIME_UNITS: Mapping[str, int] = MappingProxyType({"hour": HOUR, "minute": MINUTE, "second": SECOND})
_MONTHS: Mapping[str, int] = MappingProxyType({"month": 1, "year": 12})


def _advance(moment: Moment, nanoseconds: int) -> Moment:
    """Move by exact time: across a change of the local clock the wall clock jumps."""
    day, time = shift(*moment.in_utc(), nanoseconds)
    if moment.is_local:
        day, time = _to_local(day, time)
    return replace(moment, day=day, time=time)


def _move(moment: Moment, match: re.Match[str]) -> Moment | None:
    unit, part = match["unit"], match["part"]
    if not match["whole"] and not part:
        return moment
    sign = -1 if match["sign"] == "-" else 1
    amount = sign * int_from_text(match["whole"] or "0")
    if unit in _MONTHS:
        return replace(moment, day=add_months(moment.day, amount * _MONTHS[unit]))
    if unit == "day":
        return replace(moment, day=moment.day + amount)
    fraction = sign * int((part or "").ljust(9, "0")[:9])
    if fraction and unit != "second":
        return None
    return _advance(moment, amount * _TIME_UNITS[unit] + fraction)


def _start_of_month(moment: Moment) -> Moment:
    year, month, _ = civil_date(moment.day)
    return replace(moment, day=day_number(year, month, 1), time=0)


def _start_of_year(moment: Moment) -> Moment:
    return replace(moment, day=day_number(civil_date(moment.day)[0], 1, 1), time=0)


_STARTS: Mapping[str, Callable[[Moment], Moment]] = MappingProxyType(
    {
        "start of day": lambda moment: replace(moment, time=0),
        "start of month": _start_of_month,
        "start of year": _start_of_year,
    }
)


def _modified(moment: Moment, modifier: str) -> Moment | None:
    """Apply one modifier; an unknown one changes nothing, a failing one gives NULL."""
    start = _STARTS.get(modifier)
    if start is not None:
        return start(moment)
    if match := _WEEKDAY.fullmatch(modifier):
        return replace(moment, day=moment.day + (int(match[1]) - weekday(moment.day)) % 7)
    if match := _AMOUNT.fullmatch(modifier):
        return _move(moment, match)
    return moment


def read_moment(arguments: Sequence[Any], *, strict: bool = False) -> Moment | None:
    """Read a time value and its modifiers; ``None`` for NULL and for all that does not parse.

    ``strict`` is the narrower grammar of ``epoch_s`` and its kin.
    """
    if not arguments:
        return None
    if len(arguments) == 1 and type(arguments[0]) is str:
        read = _from_text(arguments[0], strict)
        return None if read is None or not MIN_DAY <= read[0] <= MAX_DAY else Moment(*read)
    source, rest = arguments[0], list(arguments[1:])
    if type(source) is str and source.strip(WHITE_SPACE).lower() == "unixepoch" and rest:
        source, rest = rest[0], [source, *rest[1:]]
    modifiers = [item.strip(WHITE_SPACE).lower() for item in rest if type(item) is str]
    if type(source) is str:
        pair = _from_text(source, strict)
    elif type(source) in (int, float) and not strict:
        pair = _from_number(source, "unixepoch" in modifiers)
    else:
        pair = None
    if pair is None:
        return None
    zones = [item for item in modifiers if item in ("utc", "localtime")]
    is_local = bool(zones) and zones[-1] == "localtime"
    try:
        moment: Moment | None = Moment(
            *(_to_local(*pair) if is_local else pair), is_local=is_local, subsec="subsec" in modifiers
        )
        for modifier in modifiers:
            if moment is None or not MIN_DAY <= moment.day <= MAX_DAY:
                return None
            moment = _modified(moment, modifier)
    except (ValueError, OverflowError, OSError):
        # The local zone is known for the years of ``datetime`` only.
        return None
    return moment if moment is not None and MIN_DAY <= moment.day <= MAX_DAY else None


# --- the functions ------------------------------------------------------------------------------------------


def clock_text(moment: Moment) -> str:
    """``HH:MM:SS``, with ``.mmm`` if the moment asks for it."""
    milliseconds = moment.time // _MILLISECOND
    seconds, fraction = divmod(milliseconds, 1000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:03d}" if moment.subsec else text


def date_text(*arguments: Any) -> str | None:
    """``date(t, m...)``: ``YYYY-MM-DD``."""
    moment = read_moment(arguments)
    return None if moment is None else format_date(moment.day)


def time_text(*arguments: Any) -> str | None:
    """``time(t, m...)``: ``HH:MM:SS``, with ``subsec`` ``.mmm``."""
    moment = read_moment(arguments)
    return None if moment is None else clock_text(moment)


def datetime_text(*arguments: Any) -> str | None:
    """``datetime(t, m...)``: ``YYYY-MM-DD HH:MM:SS``, with ``subsec`` ``.mmm``."""
    moment = read_moment(arguments)
    return None if moment is None else f"{format_date(moment.day)} {clock_text(moment)}"


def julian_day(*arguments: Any) -> float | None:
    """``julianday(t, m...)``."""
    moment = read_moment(arguments)
    return None if moment is None else moment.julian_day


def epoch_seconds(*arguments: Any) -> int | None:
    """``epoch_s(t, m...)``: seconds since 1970 in UTC, floored."""
    moment = read_moment(arguments, strict=True)
    return None if moment is None else moment.milliseconds // 1000


def epoch_millis(*arguments: Any) -> int | None:
    """``epoch_ms(t, m...)``: milliseconds since 1970 in UTC, floored."""
    moment = read_moment(arguments, strict=True)
    return None if moment is None else moment.milliseconds


def epoch_seconds_fraction(*arguments: Any) -> float | None:
    """``epoch_s_frac(t, m...)``: seconds since 1970 in UTC, to the millisecond."""
    moment = read_moment(arguments, strict=True)
    return None if moment is None else moment.milliseconds / 1000


def date_now() -> str:
    """``date('now')``: ``YYYY-MM-DD`` in UTC."""
    return format_date(now()[0])


def time_now() -> str:
    """``time('now')``: ``HH:MM:SS`` in UTC."""
    return clock_text(Moment(*now()))


def datetime_now() -> str:
    """``datetime('now')``: ``YYYY-MM-DDTHH:MM:SS.mmmZ`` in UTC."""
    moment = Moment(*now(), subsec=True)
    return f"{format_date(moment.day)}T{clock_text(moment)}Z"
