"""Temporal arithmetic: what ``+ - * /`` do with dates, times and durations.

The whole of it is one table, keyed by operator and the kinds of both operands (types-and-values, section
12).  A pair that is not in it raises ``Unsupported temporal operation``; a value that does not parse, and
a result that has no spelling, are NULL.  Kinds come from declared types where both say what they are,
else from the values (:func:`kind_of_value`), where only a text that is a date, time or duration from end
to end counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.types.temporal.calendar import DAY_NANOSECONDS, add_months
from quereus_store.types.temporal.duration import (
    HOUR,
    MINUTE,
    SECOND,
    Duration,
    balanced,
    parse_iso_duration,
)
from quereus_store.types.temporal.instant import (
    checked_moment,
    format_date,
    format_datetime,
    format_time,
    parse_moment,
    parse_time,
    shift,
)
from quereus_store.types.values import int_quotient

NUMBER, DATE, TIME, DATETIME, TIMESPAN = "NUMBER", "DATE", "TIME", "DATETIME", "TIMESPAN"


def unsupported_operation() -> Error:
    """The error for a pair of operands that has no entry in the table."""
    return sql_error(StatusCode.UNSUPPORTED, "Unsupported temporal operation")


# --- kinds of values ----------------------------------------------------------------------------------------

_SHAPE = re.compile(
    r"""(?P<DATE>[0-9]{4}-[0-9]{2}-[0-9]{2})
    |(?P<DATETIME>[0-9]{4}-[0-9]{2}-[0-9]{2}T.+)
    |(?P<TIME>[0-9]{2}:[0-9]{2}:[0-9]{2}.*)
    |(?P<TIMESPAN>-?P.+)""",
    re.VERBOSE | re.DOTALL,
)


def _parses(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            return parse(text) is not None
        except ValueError:
            return False

    return check


_READS_AS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        DATE: _parses(parse_moment),
        DATETIME: _parses(parse_moment),
        TIME: _parses(parse_time),
        TIMESPAN: _parses(parse_iso_duration),
    }
)


def kind_of_value(value: object) -> str:
    """DATE, TIME, DATETIME or TIMESPAN for a text that is one from end to end, else NUMBER."""
    if type(value) is not str:
        return NUMBER
    match = _SHAPE.fullmatch(value)
    if match is None or match.lastgroup is None:
        return NUMBER
    return match.lastgroup if _READS_AS[match.lastgroup](value) else NUMBER


# --- moments and durations ----------------------------------------------------------------------------------


def _duration(text: str) -> Duration:
    duration = parse_iso_duration(text)
    if duration is None:
        raise ValueError(text)
    return duration


def _moved_days(day: int, duration: Duration, extra_days: int) -> int:
    months = duration.years * 12 + duration.months
    if months:
        day = add_months(day, months)
    return day + duration.weeks * 7 + duration.days + extra_days


def _toward_zero(number: int, divisor: int) -> int:
    quotient = abs(number) // divisor
    return -quotient if number < 0 else quotient


def _date_plus(text: str, duration: Duration) -> str:
    day, _ = parse_moment(text)
    whole_days = _toward_zero(duration.time_nanoseconds, DAY_NANOSECONDS)
    day, _ = checked_moment(_moved_days(day, duration, whole_days), 0)
    return format_date(day)


def _datetime_plus(text: str, duration: Duration) -> str:
    day, time = parse_moment(text)
    extra_days, time = shift(0, time, duration.time_nanoseconds)
    return format_datetime(*checked_moment(_moved_days(day, duration, extra_days), time))


def _time_plus(text: str, duration: Duration) -> str:
    return format_time((parse_time(text) + duration.time_nanoseconds) % DAY_NANOSECONDS)


_PLUS: Mapping[str, Callable[[str, Duration], str]] = MappingProxyType(
    {DATE: _date_plus, DATETIME: _datetime_plus, TIME: _time_plus}
)


def _moment_plus(kind: str) -> Callable[[str, str], str]:
    plus = _PLUS[kind]
    return lambda moment, span: plus(moment, _duration(span))


def _plus_moment(kind: str) -> Callable[[str, str], str]:
    plus = _PLUS[kind]
    return lambda span, moment: plus(moment, _duration(span))


def _moment_minus(kind: str) -> Callable[[str, str], str]:
    plus = _PLUS[kind]
    return lambda moment, span: plus(moment, _duration(span).negated())


def _days_between(left: str, right: str) -> str:
    return str(Duration(days=parse_moment(left)[0] - parse_moment(right)[0]))


def _time_between(left: str, right: str) -> str:
    return str(balanced(parse_time(left) - parse_time(right)))


# --- durations among themselves -----------------------------------------------------------------------------


def _largest_unit(duration: Duration) -> int:
    units = ((duration.days, DAY_NANOSECONDS), (duration.hours, HOUR), (duration.minutes, MINUTE))
    return next((size for count, size in units if count), SECOND)


def _sum(left: Duration, right: Duration) -> str | None:
    if left.has_calendar_units or right.has_calendar_units:
        return None
    total = left.total_nanoseconds + right.total_nanoseconds
    return str(balanced(total, max(_largest_unit(left), _largest_unit(right))))


def _span_plus(left: str, right: str) -> str | None:
    return _sum(_duration(left), _duration(right))


def _span_minus(left: str, right: str) -> str | None:
    return _sum(_duration(left), _duration(right).negated())


def _whole_seconds(length: Fraction) -> str | None:
    """``PT<n>S`` of a length in nanoseconds that is a whole number of seconds, else NULL."""
    seconds = length / SECOND
    return str(Duration(seconds=seconds.numerator)) if seconds.denominator == 1 else None


def _fields(duration: Duration) -> tuple[int, ...]:
    return (
        duration.years,
        duration.months,
        duration.weeks,
        duration.days,
        duration.hours,
        duration.minutes,
        duration.seconds,
        duration.nanoseconds,
    )


def _span_times(span: str, number: float) -> str | None:
    duration, factor = _duration(span), Fraction(number)
    if not duration.has_calendar_units:
        return _whole_seconds(duration.total_nanoseconds * factor)
    scaled = [count * factor for count in _fields(duration)]
    if any(count.denominator != 1 for count in scaled):
        return None
    seconds, nanoseconds = int(scaled[6]), int(scaled[7])
    carry = _toward_zero(nanoseconds, SECOND)
    whole = [*map(int, scaled[:6]), seconds + carry, nanoseconds - carry * SECOND]
    return str(Duration(*whole))


# How many of the next smaller unit a unit is worth; a month has no fixed number of days, so its rest is lost.
_CARRY = (12, 0, 7, 24, 60, 60, SECOND, 0)


def _span_divided(span: str, number: float) -> str | None:
    duration, divisor = _duration(span), Fraction(number)
    if divisor == 0:
        return None
    if not duration.has_calendar_units:
        return _whole_seconds(duration.total_nanoseconds / divisor)
    quotients: list[int] = []
    carried = Fraction(0)
    for count, worth in zip(_fields(duration), _CARRY, strict=True):
        quotient = (count + carried) / divisor
        whole = int(quotient)
        quotients.append(whole)
        carried = (quotient - whole) * divisor * worth
    return str(Duration(*quotients))


def _span_ratio(left: str, right: str) -> float | None:
    dividend, divisor = _duration(left), _duration(right)
    if dividend.has_calendar_units or divisor.has_calendar_units or not divisor.total_nanoseconds:
        return None
    return int_quotient(dividend.total_nanoseconds, divisor.total_nanoseconds)


# --- the table ----------------------------------------------------------------------------------------------

_Operation = Callable[[Any, Any], Any]

_TABLE: Mapping[tuple[str, str, str], tuple[_Operation, str]] = MappingProxyType(
    {
        **{
            ("-", left, right): (_days_between, TIMESPAN)
            for left in (DATE, DATETIME)
            for right in (DATE, DATETIME)
        },
        ("-", TIME, TIME): (_time_between, TIMESPAN),
        **{("+", kind, TIMESPAN): (_moment_plus(kind), kind) for kind in _PLUS},
        **{("+", TIMESPAN, kind): (_plus_moment(kind), kind) for kind in _PLUS},
        **{("-", kind, TIMESPAN): (_moment_minus(kind), kind) for kind in _PLUS},
        ("+", TIMESPAN, TIMESPAN): (_span_plus, TIMESPAN),
        ("-", TIMESPAN, TIMESPAN): (_span_minus, TIMESPAN),
        ("*", TIMESPAN, NUMBER): (_span_times, TIMESPAN),
        ("*", NUMBER, TIMESPAN): (lambda number, span: _span_times(span, number), TIMESPAN),
        ("/", TIMESPAN, NUMBER): (_span_divided, TIMESPAN),
        ("/", TIMESPAN, TIMESPAN): (_span_ratio, NUMBER),
    }
)


def temporal_result_kind(operator: str, left_kind: str, right_kind: str) -> str | None:
    """The kind that a table entry yields (NUMBER: a real), or ``None`` without an entry."""
    entry = _TABLE.get((operator, left_kind, right_kind))
    return entry[1] if entry else None


def temporal_arithmetic(operator: str, left: Any, right: Any, left_kind: str, right_kind: str) -> Any:
    """Do one operation of the table; numbers come in as numbers, the rest as text.

    NULL when a text does not parse or the result has no spelling; raises UNSUPPORTED without an entry.
    """
    entry = _TABLE.get((operator, left_kind, right_kind))
    if entry is None:
        raise unsupported_operation()
    if left is None or right is None:
        return None
    try:
        return entry[0](left, right)
    except (ValueError, OverflowError):
        return None


def negate_duration(text: str) -> str | None:
    """Minus a duration text; NULL if it is none."""
    duration = parse_iso_duration(text)
    return None if duration is None else str(duration.negated())
