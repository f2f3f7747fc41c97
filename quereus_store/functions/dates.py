"""Date and time functions with modifiers (functions, section 5).

``date(t, '+1 month')`` and its kin read a time value, apply modifiers and answer with text; whatever does
not parse gives NULL, never an error.  With exactly one argument ``date``, ``time`` and ``datetime`` are
the strict conversions of the module ``conversion``: the registry finds those first.  All of them may read
the clock (``'now'``), so none is deterministic.

A table has few different days beside its rows, and reading a date takes many steps of Python.  So answers to
arguments met before are remembered, but for those that the clock or the machine's zone has a say in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
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
from quereus_store.types.values import WHITE_SPACE

_MOVING_WORDS = ("now", "localtime")
_REMEMBERED = 4096


class _Moving(Exception):
    """The answer is not the same each time; ``lru_cache`` keeps nothing of a call that raises."""


def _is_moving(argument: Any) -> bool:
    return type(argument) is str and argument.strip(WHITE_SPACE).lower() in _MOVING_WORDS


def _remembering(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which computes once for equal arguments where the answer stays the same."""

    @lru_cache(_REMEMBERED, typed=True)
    def remembered(*arguments: Any) -> Any:
        if any(map(_is_moving, arguments)):
            raise _Moving
        return call(*arguments)

    def answer(*arguments: Any) -> Any:
        try:
            return remembered(*arguments)
        except (_Moving, TypeError):
            # A document cannot be looked up, and is no time value either.
            return call(*arguments)

    return answer


def _moment(name: str, call: Callable[..., Any], returns: LogicalType) -> ScalarFunction:
    # NULL modifiers are ignored like unknown ones, so NULL does not simply propagate.
    answer = _remembering(call)
    return ScalarFunction(name, answer, 0, None, returns, null_propagates=False, deterministic=False)


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
        ScalarFunction("extract", _remembering(extract), 2, 2, NUMERIC, raises=True),
    ]
