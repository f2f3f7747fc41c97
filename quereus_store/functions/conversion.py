"""Conversion functions: ``integer(x)``, ``date(x)``, ``json(x)`` ... (functions, section 2).

One argument, strict: what cannot be converted is an error, where CAST would give a substitute.  The rules
are those of writing to a column of the type.  ``date``, ``time`` and ``datetime`` also know ``'now'``, the
present moment in UTC; with other numbers of arguments these names are functions of the module ``dates``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from quereus_store.functions.registry import Function, ScalarFunction
from quereus_store.types.conversion import strict_convert
from quereus_store.types.logical import (
    BLOB,
    BOOLEAN,
    DATE,
    DATETIME,
    INTEGER,
    JSON,
    REAL,
    TEXT,
    TIME,
    TIMESPAN,
    LogicalType,
)
from quereus_store.types.temporal.modifiers import date_now, datetime_now, time_now
from quereus_store.types.values import Value, to_text


def _keep(value: Value) -> Value:
    return value


def _json_call(types: Sequence[LogicalType]) -> Callable[..., Value]:
    # A document is not read again: the JSON string 7 would become a number.
    return _keep if types and types[0] is JSON else _TO_JSON


_TO_JSON = partial(strict_convert, logical_type=JSON)


_NOW: dict[LogicalType, Callable[[], str]] = {DATE: date_now, TIME: time_now, DATETIME: datetime_now}


def _moment(logical_type: LogicalType) -> Callable[[Value], Value]:
    now = _NOW[logical_type]

    def convert(value: Value) -> Value:
        return now() if value == "now" else strict_convert(value, logical_type)

    return convert


def _conversion(logical_type: LogicalType, call: Callable[[Value], Value], **options: Any) -> ScalarFunction:
    """The function named like the type, with the value itself for arguments that have the type already."""
    options.setdefault("inline", {(logical_type.name,): "{0}"})
    return ScalarFunction(logical_type.name.lower(), call, 1, 1, logical_type, **options)


def _strict(logical_type: LogicalType, **options: Any) -> ScalarFunction:
    return _conversion(
        logical_type, partial(strict_convert, logical_type=logical_type), raises=True, **options
    )


def conversion_functions() -> list[Function]:
    """The whole family, ready to register."""
    return [
        _strict(INTEGER),
        _strict(REAL),
        _conversion(TEXT, to_text, nullable=False),
        _strict(BLOB, nullable=False),
        _strict(BOOLEAN, nullable=False),
        *(
            _conversion(item, _moment(item), raises=True, deterministic=False, nullable=False, inline=None)
            for item in (DATE, TIME, DATETIME)
        ),
        _strict(TIMESPAN, nullable=False, inline=None),
        _strict(JSON, specialize=_json_call, inline=None),
    ]
