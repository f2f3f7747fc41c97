"""``strftime(format, t, m...)``: one table from specifier to text (types-and-values, section 14)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from quereus_store.types.temporal.calendar import civil_date, day_of_year, iso_week, weekday
from quereus_store.types.temporal.duration import HOUR, MINUTE, SECOND
from quereus_store.types.temporal.modifiers import Moment, read_moment
from quereus_store.types.values import float_to_text

_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _year(moment: Moment) -> int:
    return civil_date(moment.day)[0]


def _month(moment: Moment) -> int:
    return civil_date(moment.day)[1]


def _day(moment: Moment) -> int:
    return civil_date(moment.day)[2]


def _hour(moment: Moment) -> int:
    return moment.time // HOUR


def _hour12(moment: Moment) -> int:
    return _hour(moment) % 12 or 12


def _minute(moment: Moment) -> int:
    return moment.time // MINUTE % 60


def _second(moment: Moment) -> int:
    return moment.time // SECOND % 60


def _half_day(moment: Moment) -> str:
    return "AM" if _hour(moment) < 12 else "PM"


def _zone(moment: Moment) -> str:
    minutes = abs(moment.offset) // MINUTE
    return f"{'-' if moment.offset < 0 else '+'}{minutes // 60:02d}{minutes % 60:02d}"


def _padded(number: Callable[[Moment], int], layout: str) -> Callable[[Moment], str]:
    return lambda moment: format(number(moment), layout)


_SPECIFIERS: Mapping[str, Callable[[Moment], str]] = MappingProxyType(
    {
        "Y": _padded(_year, "04d"),
        "m": _padded(_month, "02d"),
        "d": _padded(_day, "02d"),
        "e": _padded(_day, "2d"),
        "j": lambda moment: f"{day_of_year(moment.day):03d}",
        "H": _padded(_hour, "02d"),
        "k": _padded(_hour, "2d"),
        "I": _padded(_hour12, "02d"),
        "l": _padded(_hour12, "2d"),
        "M": _padded(_minute, "02d"),
        "S": _padded(_second, "02d"),
        "f": lambda moment: f".{moment.time // 1_000_000 % 1000:03d}",
        "y": lambda moment: f"{_year(moment) % 100:02d}",
        "C": lambda moment: f"{_year(moment) // 100:02d}",
        "h": lambda moment: _MONTH_NAMES[_month(moment) - 1],
        "p": _half_day,
        "P": lambda moment: _half_day(moment).lower(),
        "w": lambda moment: str(weekday(moment.day)),
        "u": lambda moment: str(weekday(moment.day) or 7),
        "W": lambda moment: f"{iso_week(moment.day)[1]:02d}",
        "V": lambda moment: f"{iso_week(moment.day)[1]:02d}",
        "G": lambda moment: f"{iso_week(moment.day)[0]:04d}",
        "g": lambda moment: f"{iso_week(moment.day)[0] % 100:02d}",
        "s": lambda moment: str(moment.milliseconds // 1000),
        "E": lambda moment: str(moment.milliseconds // 1000),
        "Q": lambda moment: str(moment.milliseconds),
        "J": lambda moment: float_to_text(moment.julian_day),
        "z": _zone,
        "%": lambda moment: "%",
    }
)

_COMPOUNDS: Mapping[str, str] = MappingProxyType(
    {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y", "r": "%I:%M:%S %p"}
)

_SPECIFIER = re.compile("%([A-Za-z%])")


@lru_cache(256)
def _writers(layout: str) -> tuple[Callable[[Moment], str] | str, ...]:
    """A layout in pieces: what writes a specifier, and the text between; unknown specifiers are text."""
    pieces: list[Callable[[Moment], str] | str] = []
    for index, piece in enumerate(_SPECIFIER.split(layout)):
        if index % 2 == 0:
            pieces.append(piece)
        elif piece in _COMPOUNDS:
            pieces.extend(_writers(_COMPOUNDS[piece]))
        else:
            pieces.append(_SPECIFIERS.get(piece, f"%{piece}"))
    return tuple(piece for piece in pieces if piece)


def format_moment(layout: str, moment: Moment) -> str:
    """Fill a layout; specifiers that the table lacks stay as they are."""
    return "".join([piece if isinstance(piece, str) else piece(moment) for piece in _writers(layout)])


def strftime_text(layout: Any = None, *arguments: Any) -> str | None:
    """``strftime(format, t, m...)``; NULL when the format is no text or the time value does not parse."""
    if type(layout) is not str:
        return None
    moment = read_moment(arguments)
    return None if moment is None else format_moment(layout, moment)
