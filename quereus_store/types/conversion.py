"""Conversion: turning a value into one that a declared type may hold.

There are three ways in, over one table of converters (types-and-values, sections 3 and 13):

* :func:`convert`, :func:`convert_column`: what a write does.  Strict, raises MISMATCH and names the column.
* :func:`cast`: what ``CAST(x AS t)`` and comparison coercion do.  Never raises.
* :func:`strict_convert`: what the functions ``integer(x)``, ``date(x)`` ... do.  Strict, raises MISMATCH.

A column of a batch is first judged by ``set(map(type, values))``: when its classes are among the type's
*clean* ones the very same list comes back, at C speed.  Only what is left is converted value by value.

A converter takes any value that is not NULL and returns the converted one (``None`` where the rule says
NULL), or raises :class:`ConversionFailure` with the reason.  Converters are keyed by logical type, then
by class, so a converter for INTEGER from ``str`` knows it has a ``str``.

Convert exactly once: JSON text is parsed on the way in, and a stored JSON string must not be parsed again
when it is copied.  So a writer passes the static type of its source, and a source of the column's own
type is left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType, NoneType
from typing import Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.types.json import parse_json, render_json
from quereus_store.types.logical import (
    ANY,
    BLOB,
    BOOLEAN,
    DATE,
    DATETIME,
    INTEGER,
    JSON,
    NULL,
    NUMERIC,
    REAL,
    TEXT,
    TIME,
    TIMESPAN,
    TIMESTAMP,
    LogicalType,
)
from quereus_store.types.temporal.duration import Duration, parse_duration
from quereus_store.types.temporal.instant import (
    canonical_date,
    canonical_datetime,
    canonical_time,
    epoch_milliseconds,
    format_date,
    format_datetime,
    format_time,
    is_canonical_column,
    moment_of_milliseconds,
    parse_moment,
)
from quereus_store.types.values import (
    SAFE_INTEGER,
    WHITE_SPACE,
    Value,
    encode_utf8,
    int_from_text,
    int_to_float,
    integer_prefix,
    numeric_prefix,
    real_prefix,
    to_text,
    value_kind,
)

_Converter = Callable[[Any], Any]


class ConversionFailure(ValueError):
    """A value does not convert; ``reason`` says why.

    ``is_mismatch`` marks a value of the right kind that the type still cannot hold (infinity in INTEGER).
    """

    def __init__(self, reason: str, *, is_mismatch: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_mismatch = is_mismatch


def _same(value: Any) -> Any:
    return value


def _refuse(value: Any, logical_type: LogicalType) -> ConversionFailure:
    subject = f"'{value}'" if type(value) is str else value_kind(value)
    return ConversionFailure(f"Cannot convert {subject} to {logical_type.name}")


def _is_blank(text: str) -> bool:
    return not text.strip(WHITE_SPACE)


# --- numbers ----------------------------------------------------------------------------------------------


def _number_from_text(logical_type: LogicalType, prefix: Callable[[str], int | float | None]) -> _Converter:
    def convert_text(text: str) -> int | float | None:
        number = prefix(text)
        if number is None and not _is_blank(text):
            raise _refuse(text, logical_type)
        return number

    return convert_text


def _truncate(number: float) -> int:
    if not math.isfinite(number):
        raise ConversionFailure("expected INTEGER, got number", is_mismatch=True)
    return int(number)


# --- text and blob ----------------------------------------------------------------------------------------


def _to_blob(value: Any) -> bytes:
    return encode_utf8(to_text(value) or "")


_BOOLEAN_WORDS: Mapping[str, bool] = MappingProxyType(
    {
        "true": True,
        "1": True,
        "yes": True,
        "on": True,
        "false": False,
        "0": False,
        "no": False,
        "off": False,
    }
)


def _boolean_from_text(text: str) -> bool:
    found = _BOOLEAN_WORDS.get(text.strip(WHITE_SPACE).lower())
    if found is None:
        raise _refuse(text, BOOLEAN)
    return found


# --- dates, times, durations ------------------------------------------------------------------------------


def _temporal_from_text(logical_type: LogicalType, canonical: Callable[[str], Any]) -> _Converter:
    def convert_text(text: str) -> Any:
        try:
            return canonical(text)
        except ValueError as cause:
            raise ConversionFailure(f"Cannot convert '{text}' to {logical_type.name}: {cause}") from None

    return convert_text


def _is_safe(number: int) -> bool:
    return -SAFE_INTEGER <= number <= SAFE_INTEGER


def _whole(number: Any, logical_type: LogicalType, complaint: str) -> int:
    """A number as the safe integer that dates and durations take."""
    if type(number) is float:
        if not number.is_integer():
            raise ConversionFailure(f"{complaint}: {to_text(number)}")
        number = int(number)
    if not _is_safe(number):
        raise ConversionFailure(f"Cannot convert bigint to {logical_type.name}")
    return int(number)


def _moment_from_number(logical_type: LogicalType, render: Callable[[int, int], str]) -> _Converter:
    def convert_number(number: Any) -> str:
        milliseconds = _whole(number, logical_type, "Non-integer number")
        try:
            return render(*moment_of_milliseconds(milliseconds))
        except ValueError as cause:
            raise ConversionFailure(
                f"Cannot convert '{milliseconds}' to {logical_type.name}: {cause}"
            ) from None

    return convert_number


def _time_from_number(number: Any) -> str:
    if type(number) is int and not _is_safe(number):
        raise ConversionFailure("Cannot convert bigint to TIME")
    if not (math.isfinite(number) and number >= 0):
        complaint = "value must be a non-negative finite number of seconds"
        raise ConversionFailure(f"Cannot convert '{to_text(number)}' to TIME: {complaint}")
    if number > SAFE_INTEGER:
        # The remainder is exact, while a thousand times the number could be infinite.
        number %= 86_400
    milliseconds = math.floor(number * 1000 + 0.5) % 86_400_000
    return format_time(milliseconds * 1_000_000)


def _timespan_from_text(text: str) -> str:
    duration = parse_duration(text)
    if duration is None and not _is_blank(text):
        # Text of a whole number is taken as seconds, like the number itself.
        stripped = text.strip(WHITE_SPACE)
        if stripped.lstrip("+-").isdecimal() and stripped.isascii():
            return _timespan_from_number(int_from_text(stripped))
    if duration is None:
        raise _refuse(text, TIMESPAN)
    return str(duration)


def _timespan_from_number(number: Any) -> str:
    return str(Duration(seconds=_whole(number, TIMESPAN, "Non-integer seconds")))


def _timestamp_from_text(text: str) -> int | None:
    trimmed = text.strip(WHITE_SPACE)
    if not trimmed:
        return None
    digits = trimmed[1:] if trimmed[0] in "+-" else trimmed
    if digits.isascii() and digits.isdigit():
        # Verbatim, so eight digits are a number here, never YYYYMMDD.
        return int_from_text(trimmed)
    return epoch_milliseconds(*parse_moment(trimmed))


def _timestamp_from_float(number: float) -> int:
    if not number.is_integer():
        raise ConversionFailure(f"Cannot convert non-integer number '{to_text(number)}' to TIMESTAMP")
    return int(number)


# --- JSON -------------------------------------------------------------------------------------------------


def _json_from_text(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        raise ConversionFailure(f"Cannot convert '{text}' to JSON: invalid JSON syntax") from None


# --- the table --------------------------------------------------------------------------------------------


def _moments(
    logical_type: LogicalType, canonical: _Converter, from_number: _Converter
) -> dict[type, _Converter]:
    return {str: _temporal_from_text(logical_type, canonical), int: from_number, float: from_number}


_CONVERTERS: Mapping[LogicalType, Mapping[type, _Converter]] = MappingProxyType(
    {
        INTEGER: {
            int: _same,
            bool: int,
            float: _truncate,
            str: _number_from_text(INTEGER, integer_prefix),
        },
        REAL: {
            float: _same,
            int: int_to_float,
            bool: float,
            str: _number_from_text(REAL, real_prefix),
        },
        NUMERIC: {
            int: _same,
            float: _same,
            bool: int,
            str: _number_from_text(NUMERIC, numeric_prefix),
        },
        TEXT: {
            str: _same,
            int: to_text,
            float: to_text,
            bool: to_text,
            bytes: to_text,
            list: render_json,
            dict: render_json,
        },
        BLOB: {
            bytes: _same,
            str: encode_utf8,
            int: _to_blob,
            float: _to_blob,
            bool: _to_blob,
        },
        BOOLEAN: {
            bool: _same,
            int: bool,
            float: bool,
            str: _boolean_from_text,
        },
        DATE: _moments(DATE, canonical_date, _moment_from_number(DATE, lambda day, time: format_date(day))),
        TIME: _moments(TIME, canonical_time, _time_from_number),
        DATETIME: _moments(DATETIME, canonical_datetime, _moment_from_number(DATETIME, format_datetime)),
        TIMESPAN: {str: _timespan_from_text, int: _timespan_from_number, float: _timespan_from_number},
        TIMESTAMP: {
            int: _same,
            float: _timestamp_from_float,
            str: _temporal_from_text(TIMESTAMP, _timestamp_from_text),
        },
        JSON: {
            str: _json_from_text,
            int: _same,
            float: _same,
            bool: _same,
            list: _same,
            dict: _same,
        },
        ANY: dict.fromkeys((str, int, float, bool, bytes, list, dict), _same),
        NULL: {},
    }
)


def _convert_registered(value: Value, logical_type: LogicalType) -> Value:
    if logical_type.parse is not None:
        try:
            value = logical_type.parse(value)
        except (ValueError, TypeError, Error) as cause:
            raise ConversionFailure(str(cause)) from cause
    if value is not None and logical_type.validate is not None and not logical_type.validate(value):
        raise ConversionFailure(f"expected {logical_type.name}, got {value_kind(value)}", is_mismatch=True)
    return value


def converted(value: Value, logical_type: LogicalType) -> Value:
    """Convert a value strictly; raises :class:`ConversionFailure`.  NULL passes."""
    if value is None:
        return None
    table = _CONVERTERS.get(logical_type)
    if table is None:
        return _convert_registered(value, logical_type)
    converter = table.get(type(value))
    if converter is None:
        raise _refuse(value, logical_type)
    result: Value = converter(value)
    return result


def _column_error(failure: ConversionFailure, column: str) -> Error:
    if failure.is_mismatch:
        return sql_error(StatusCode.MISMATCH, f"Type mismatch for column '{column}': {failure.reason}")
    return sql_error(StatusCode.MISMATCH, f"Type conversion failed for column '{column}': {failure.reason}")


# --- what a write does ------------------------------------------------------------------------------------


def convert(
    value: Value, logical_type: LogicalType, column: str, source_type: LogicalType | None = None
) -> Value:
    """Convert one written cell; raises MISMATCH naming the column.

    ``source_type`` is the static type of the expression that gave the value; where it is the column's own
    type, a value that fits is left alone.
    """
    if source_type is logical_type and fits(value, logical_type):
        return value
    try:
        return converted(value, logical_type)
    except ConversionFailure as failure:
        raise _column_error(failure, column) from failure


def column_is_clean(classes: set[type], logical_type: LogicalType) -> bool:
    """Whether a column of values of these classes needs no conversion (dates are never clean: see below)."""
    return classes <= logical_type.clean


def convert_column(
    values: list[Any], logical_type: LogicalType, column: str, source_type: LogicalType | None = None
) -> list[Any]:
    """Convert the cells of one column of a batch; the same list comes back when nothing needs converting.

    Raises MISMATCH naming the column at the first cell that does not convert.
    """
    classes = set(map(type, values))
    if classes <= logical_type.clean:
        return values
    if (
        source_type is logical_type
        and classes <= _FITTING_CLASSES.get(logical_type, _NOTHING)
        and not (logical_type is DATETIME and any(map(_has_zone, values)))
    ):
        return values
    if logical_type.name in _CANONICAL_CHECKED and classes <= _TEXT_OR_NULL:
        texts = values if NoneType not in classes else [value for value in values if value is not None]
        if is_canonical_column(texts, logical_type.name):
            return values
    try:
        if len(classes) == 1:
            # One class throughout: one converter, mapped.
            table = _CONVERTERS.get(logical_type)
            converter = table.get(next(iter(classes))) if table else None
            if converter is not None:
                return list(map(converter, values))
        return [converted(value, logical_type) for value in values]
    except ConversionFailure as failure:
        raise _column_error(failure, column) from failure


def retype_column(values: list[Any], logical_type: LogicalType, column: str, type_name: str) -> list[Any]:
    """Convert all stored cells for ``SET DATA TYPE``, or raise MISMATCH with the type as written."""
    try:
        return [converted(value, logical_type) for value in values]
    except ConversionFailure as failure:
        raise sql_error(
            StatusCode.MISMATCH, f"Cannot convert value in '{column}' to {type_name}"
        ) from failure


_NOTHING: frozenset[type] = frozenset()
_TEXT_OR_NULL: frozenset[type] = frozenset((str, NoneType))
_CANONICAL_CHECKED = frozenset(("DATE", "TIME", "DATETIME"))

# The classes that a value of the type has: what an expression of that very type may yield.
_FITTING_CLASSES: Mapping[LogicalType, frozenset[type]] = MappingProxyType(
    {
        **{item: item.clean for item in (INTEGER, REAL, NUMERIC, TEXT, BLOB, BOOLEAN)},
        **dict.fromkeys((DATE, TIME, DATETIME, TIMESPAN), _TEXT_OR_NULL),
        TIMESTAMP: TIMESTAMP.clean,
        JSON: JSON.clean | {str},
        ANY: ANY.clean,
    }
)


def _has_zone(value: Any) -> bool:
    # datetime('now') announces DATETIME but ends in Z: it is brought into canonical form.
    return type(value) is str and value.endswith("Z")


def fits(value: Value, logical_type: LogicalType) -> bool:
    """Whether a value that an expression of this very type yields may be stored as it is."""
    classes = _FITTING_CLASSES.get(logical_type)
    if classes is None:
        return logical_type.validate is None or value is None or logical_type.validate(value)
    return type(value) in classes and not (logical_type is DATETIME and _has_zone(value))


# --- CAST and the conversion functions --------------------------------------------------------------------

_ZERO: Mapping[LogicalType, Value] = MappingProxyType({INTEGER: 0, REAL: 0.0, NUMERIC: 0})


def cast(value: Value, logical_type: LogicalType) -> Value:
    """``CAST(value AS type)``: the conversion, or where it fails 0, the text, the operand, or NULL."""
    if value is None:
        return None
    try:
        return converted(value, logical_type)
    except ConversionFailure:
        pass
    if logical_type in _ZERO:
        return _ZERO[logical_type]
    if logical_type is BLOB:
        return _to_blob(value)
    if logical_type is JSON:
        return value if type(value) is str else None
    if logical_type.validate is not None and logical_type.validate(value):
        return value
    return None


def caster(logical_type: LogicalType) -> Callable[[Value], Value]:
    """The cast to one type as a function of the value alone, to map over a column."""

    def cast_value(value: Value) -> Value:
        return cast(value, logical_type)

    return cast_value


def strict_convert(value: Value, logical_type: LogicalType) -> Value:
    """What ``integer(x)``, ``date(x)`` ... do with one argument; NULL gives NULL.

    Raises MISMATCH ``Cannot convert to <TYPE>: <reason>``; the caller adds the function's name and place.
    """
    try:
        return converted(value, logical_type)
    except ConversionFailure as failure:
        raise sql_error(
            StatusCode.MISMATCH, f"Cannot convert to {logical_type.name}: {failure.reason}"
        ) from failure
