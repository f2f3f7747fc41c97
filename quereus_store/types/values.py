"""Values: the Python objects that stand for SQL values, and what can be said without a declared type.

A value is a plain object, so rows need no wrapping on the way in or out:

==================  ==========================  =============  =====
SQL                 Python                      storage class  rank
==================  ==========================  =============  =====
NULL                ``None``                    null           0
integer, any size   ``int``                     numeric        1
real                ``float``                   numeric        1
boolean             ``bool``                    numeric        1
text, dates, times  ``str``                     text           2
blob                ``bytes``                   blob           3
JSON containers     ``list`` / ``dict``         object         4
==================  ==========================  =============  =====

Everything here dispatches on ``type(value)`` through a table: ``bool`` subclasses ``int``, so ``isinstance``
would need the right order in every place.

There are four rules to read a number out of text (types-and-values, section 5); they live side by side here
so that nobody mixes them up: :func:`number_from_text` (arithmetic, the whole text),
:func:`integer_prefix`, :func:`real_prefix` and :func:`numeric_prefix` (conversion, a leading part).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType, NoneType
from typing import Any, TypeAlias

Value: TypeAlias = bool | int | float | str | bytes | list[Any] | dict[str, Any] | None

NULL_RANK, NUMERIC_RANK, TEXT_RANK, BLOB_RANK, OBJECT_RANK = range(5)

RANK_OF_CLASS: Mapping[type, int] = MappingProxyType(
    {
        NoneType: NULL_RANK,
        bool: NUMERIC_RANK,
        int: NUMERIC_RANK,
        float: NUMERIC_RANK,
        str: TEXT_RANK,
        bytes: BLOB_RANK,
        list: OBJECT_RANK,
        dict: OBJECT_RANK,
    }
)

_TYPEOF: Mapping[type, str] = MappingProxyType(
    {
        NoneType: "null",
        bool: "integer",
        int: "integer",
        float: "real",
        str: "text",
        bytes: "blob",
        list: "json",
        dict: "json",
    }
)

_KIND: Mapping[type, str] = MappingProxyType(
    {
        NoneType: "null",
        bool: "boolean",
        int: "number",
        float: "number",
        str: "string",
        bytes: "object",
        list: "object",
        dict: "object",
    }
)

SAFE_INTEGER = 2**53 - 1

# What counts as white space around a number: Unicode blanks, line ends and the byte order mark.
WHITE_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


def storage_rank(value: Value) -> int:
    """The rank of a value's storage class: null 0, numeric 1, text 2, blob 3, object 4."""
    return RANK_OF_CLASS[type(value)]


def typeof(value: Value) -> str:
    """What SQL ``typeof()`` reports: ``null integer real text blob json``; booleans are integers."""
    return _TYPEOF[type(value)]


def value_kind(value: Value) -> str:
    """The kind of a value as conversion errors name it; integers beyond 2^53 - 1 are ``bigint``."""
    if type(value) is int and not -SAFE_INTEGER <= value <= SAFE_INTEGER:
        return "bigint"
    return _KIND[type(value)]


# --- text of a value (types-and-values, section 7) --------------------------------------------------------


def float_to_text(number: float) -> str:
    """Render a float: shortest digits, plain from 1e-6 up to 21 digits, else with an exponent.

    >>> float_to_text(2.0), float_to_text(1e20), float_to_text(1e-7), float_to_text(1.5e300)
    ('2', '100000000000000000000', '1e-7', '1.5e+300')
    """
    text = repr(number)
    if "e" not in text:
        if text.endswith(".0"):
            return "0" if text == "-0.0" else text[:-2]
        return _NON_FINITE.get(text, text)
    mantissa, _, exponent_text = text.partition("e")
    exponent = int(exponent_text)
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "")
    if 0 <= exponent <= 20:
        return sign + digits.ljust(exponent + 1, "0")
    if -6 <= exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    return f"{mantissa}e{exponent:+d}"


_NON_FINITE: Mapping[str, str] = MappingProxyType({"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"})


def int_to_text(number: int) -> str:
    """All digits of an integer of any size (``str`` alone refuses very long ones)."""
    try:
        return str(number)
    except ValueError:
        return _long_int_to_text(number)


def int_from_text(digits: str) -> int:
    """The integer that ``[+-]?digits`` spells, of any length (``int`` alone refuses very long ones)."""
    try:
        return int(digits)
    except ValueError:
        return _long_int_from_text(digits)


_CHUNK = 4000


def _long_int_to_text(number: int) -> str:
    sign, rest, chunks = ("-" if number < 0 else ""), abs(number), []
    base = 10**_CHUNK
    while rest:
        rest, chunk = divmod(rest, base)
        chunks.append(str(chunk).zfill(_CHUNK))
    return sign + "".join(reversed(chunks)).lstrip("0")


def _long_int_from_text(digits: str) -> int:
    sign = -1 if digits.startswith("-") else 1
    body = digits.lstrip("+-")
    total = 0
    for start in range(0, len(body), _CHUNK):
        chunk = body[start : start + _CHUNK]
        total = total * 10 ** len(chunk) + int(chunk)
    return sign * total


def decode_utf8(data: bytes) -> str:
    """Bytes as text: UTF-8, invalid sequences as U+FFFD, a byte order mark kept."""
    return data.decode("utf-8", "replace")


def encode_utf8(text: str) -> bytes:
    """Text as UTF-8 bytes; an unpaired surrogate, which UTF-8 cannot spell, becomes U+FFFD."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


def _container_to_text(value: Any) -> str:
    # The JSON module stands on this one (numbers inside documents render as outside).
    from quereus_store.types.json import render_json

    return render_json(value)


_TO_TEXT: Mapping[type, Callable[[Any], str]] = MappingProxyType(
    {
        str: str,
        int: int_to_text,
        float: float_to_text,
        bool: lambda value: "true" if value else "false",
        bytes: decode_utf8,
        list: _container_to_text,
        dict: _container_to_text,
    }
)


def to_text(value: Value) -> str | None:
    """The text of a value for ``||``, CAST, TEXT columns, LIKE and ``group_concat``; NULL stays NULL."""
    if value is None:
        return None
    return _TO_TEXT[type(value)](value)


# --- numbers in text (types-and-values, section 5) --------------------------------------------------------

_WHOLE_DIGITS = re.compile(r"[+-]?[0-9]+")
_WHOLE_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PREFIXED = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
_LEADING_INTEGER = re.compile(r"[+-]?[0-9]+")
_LEADING_DECIMAL = re.compile(r"[+-]?(?:Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_INFINITIES: Mapping[str, float] = MappingProxyType(
    {"Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
)


def number_from_text(text: str) -> int | float | None:
    """The number that a whole text spells, for arithmetic and truth; ``None`` when it spells none.

    Takes signed decimals with exponent, ``.5``, ``5.``, ``Infinity`` and unsigned ``0x``/``0o``/``0b``; blank
    text is 0.  Digits alone give an exact ``int``.
    """
    trimmed = text.strip(WHITE_SPACE)
    if not trimmed:
        return 0
    if _WHOLE_DIGITS.fullmatch(trimmed):
        return int_from_text(trimmed)
    if _WHOLE_DECIMAL.fullmatch(trimmed):
        return float(trimmed)
    if _PREFIXED.fullmatch(trimmed):
        return int(trimmed, 0)
    return _INFINITIES.get(trimmed)


def integer_prefix(text: str) -> int | None:
    """The integer that trimmed text begins with (``[+-]?digits``), exact; ``None`` without one."""
    match = _LEADING_INTEGER.match(text.strip(WHITE_SPACE))
    return int_from_text(match[0]) if match else None


def real_prefix(text: str) -> float | None:
    """The longest decimal that trimmed text begins with, or ``[+-]Infinity``; ``None`` without one."""
    match = _LEADING_DECIMAL.match(text.strip(WHITE_SPACE))
    if not match:
        return None
    return _INFINITIES[match[0]] if match[0].endswith("y") else float(match[0])


def numeric_prefix(text: str) -> int | float | None:
    """An exact ``int`` when trimmed text is all digits, else what :func:`real_prefix` finds."""
    trimmed = text.strip(WHITE_SPACE)
    if _WHOLE_DIGITS.fullmatch(trimmed):
        return int_from_text(trimmed)
    return real_prefix(trimmed)


def int_to_float(number: int) -> float:
    """The nearest float; beyond the float range an infinity of the same sign."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def int_quotient(numerator: int, denominator: int) -> float:
    """The quotient as the nearest float, an infinity beyond the range."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if (numerator > 0) == (denominator > 0) else -math.inf


# --- truth (types-and-values, section 8) ------------------------------------------------------------------


def _never(value: object) -> bool:
    return False


def _number_is_true(value: Any) -> bool:
    # NaN is not true, although Python says bool(nan).
    return bool(value != 0 and value == value)


def _text_is_true(text: str) -> bool:
    return bool(number_from_text(text) or 0)


_TRUTH: Mapping[type, Callable[[Any], bool]] = MappingProxyType(
    {
        bool: bool,
        int: bool,
        float: _number_is_true,
        str: _text_is_true,
        bytes: _never,
        list: _never,
        dict: _never,
    }
)


def truth(value: Value) -> bool | None:
    """The truth value of an operand of WHERE, AND, NOT, CASE WHEN ...; ``None`` is unknown."""
    if value is None:
        return None
    return _TRUTH[type(value)](value)
