"""PEP 249's type objects and constructors.

The type code of a column (``cursor.description``, second place) is the name of its logical type.  It compares
equal to the type object that it belongs to::

    cursor.description[0][1] == quereus_store.NUMBER

The constructors make what the dialect keeps: dates and times are text in ISO form, binary values are bytes.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, eq=False)
class TypeObject:
    """A set of type codes; equal to each of them, and to itself."""

    names: frozenset[str]

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, str) and other in self.names)

    __hash__ = None  # type: ignore[assignment]  # it equals strings that differ from each other


STRING: Final = TypeObject(frozenset({"TEXT"}))
BINARY: Final = TypeObject(frozenset({"BLOB"}))
NUMBER: Final = TypeObject(frozenset({"INTEGER", "REAL", "NUMERIC", "BOOLEAN"}))
DATETIME: Final = TypeObject(frozenset({"DATE", "TIME", "DATETIME", "TIMESTAMP"}))
ROWID: Final = TypeObject(frozenset())
"""No column is one: rows are known by their keys."""


def Date(year: int, month: int, day: int) -> str:  # noqa: N802 - the name is PEP 249's
    """A value for a DATE column."""
    return datetime.date(year, month, day).isoformat()


def Time(hour: int, minute: int, second: int) -> str:  # noqa: N802
    """A value for a TIME column."""
    return datetime.time(hour, minute, second).isoformat()


def Timestamp(year: int, month: int, day: int, hour: int, minute: int, second: int) -> str:  # noqa: N802
    """A value for a DATETIME column."""
    return datetime.datetime(year, month, day, hour, minute, second).isoformat()


def DateFromTicks(ticks: float) -> str:  # noqa: N802
    """The local date at a number of seconds since the epoch."""
    return datetime.date.fromtimestamp(ticks).isoformat()


def TimeFromTicks(ticks: float) -> str:  # noqa: N802
    """The local time of day at a number of seconds since the epoch."""
    return datetime.datetime.fromtimestamp(int(ticks)).time().isoformat()


def TimestampFromTicks(ticks: float) -> str:  # noqa: N802
    """The local date and time at a number of seconds since the epoch."""
    return datetime.datetime.fromtimestamp(int(ticks)).isoformat()


def Binary(data: bytes | bytearray | memoryview) -> bytes:  # noqa: N802
    """A value for a BLOB column."""
    return bytes(data)
