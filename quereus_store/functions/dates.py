"""Date and time functions with modifiers (functions, section 5).

``date(t, '+1 month')`` and its kin read a time value, apply modifiers and answer with text; whatever does
not parse gives NULL, never an error.  With exactly one argument ``date``, ``time`` and ``datetime`` are
the strict conversions of the module ``conversion``: the registry finds those first.  All of them may read
the clock (``'now'``), so none is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quereus_store.functions.registry import Function, ScalarFunction
from quereus_store.types.logical import BOOLEAN, INTEGER, NUMERIC, REAL, TEXT, LogicalType
from quereus_store.types.temporal.accessors import is_iso_date, is_iso_datetime
from quereus_store.types.temporal.fields import extract
from quereus_store.types.temporal.modifiers import (
    date_text,
    datetime_text,
    epoch_millis,
    epoch_seconds,
    epoch_seconds_fraction,
    julian_day,
    time_text,
)
from quereus_store.types.temporal.strftime import strftime_text


def _moment(name: str, call: Callable[..., Any], returns: LogicalType) -> ScalarFunction:
    # NULL modifiers are ignored like unknown ones, so NULL does not simply propagate.
    return ScalarFunction(name, call, 0, None, returns, null_propagates=False, deterministic=False)


def _test(name: str, call: Callable[[Any], bool]) -> ScalarFunction:
    return ScalarFunction(name, call, 1, 1, BOOLEAN, nullable=False, null_propagates=False)


def date_functions() -> list[Function]:
    """The whole family, ready to register."""
    return [
        _moment("date", date_text, TEXT),
        _moment("time", time_text, TEXT),
        _moment("datetime", datetime_text, TEXT),
        _moment("julianday", julian_day, REAL),
        _moment("strftime", strftime_text, TEXT),
        _moment("epoch_s", epoch_seconds, INTEGER),
        _moment("epoch_ms", epoch_millis, INTEGER),
        _moment("epoch_s_frac", epoch_seconds_fraction, REAL),
        _test("IsISODate", is_iso_date),
        _test("IsISODateTime", is_iso_datetime),
        ScalarFunction("extract", extract, 2, 2, NUMERIC, raises=True),
    ]
