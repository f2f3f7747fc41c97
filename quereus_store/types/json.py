"""JSON: strict parsing, compact rendering, structural keys, and paths.

A document is plain Python data (``dict``, ``list``, ``str``, ``int``, ``float``, ``bool``, ``None``), so one
document has many spellings: key order, ``1`` against ``1.0``.  What is kept and shown is the document as it
came, keys in their order; what is *compared* is :func:`json_key`, a nested tuple that is equal and ordered as
types-and-values, section 11 says::

    null < false < true < numbers < strings < arrays < objects

Tuples compare elementwise, then by length, which is just the order wanted for arrays, for the sorted key
lists of objects, and for their values.  The leading tag keeps ``true`` from equalling 1.  The same tuple
hashes, so it serves DISTINCT, joins and UNIQUE too.

The standard library parses and quotes; numbers keep their Python type, integers are exact at any size.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from quereus_store.types.values import float_to_text, int_from_text, int_to_text

JsonStep = str | int
JsonPath = tuple[JsonStep, ...]


class _Missing:
    """The answer of a path that leads nowhere; a JSON null is an answer."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


# --- parsing ----------------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_LONG_INT_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=int_from_text)


MAXIMUM_DEPTH = 200
"""How deeply arrays and objects may nest, so that every operation on a document can recurse into it."""


def parse_json(text: str) -> Any:
    """Parse strict JSON (no NaN, comments or trailing commas; the last of equal keys wins).

    Raises ``ValueError`` for anything else, for documents nested deeper than MAXIMUM_DEPTH too.
    """
    try:
        try:
            value = _DECODER.decode(text)
        except json.JSONDecodeError:
            raise
        except ValueError:
            # Integers of thousands of digits, or a constant that is refused again here.
            value = _LONG_INT_DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("[") + text.count("{") > MAXIMUM_DEPTH:
        copy_document(value)
    return value


def copy_document(value: Any) -> Any:
    """A copy that shares no list or dictionary with the original.

    Raises ``ValueError`` for what is no JSON (it names the type) and for documents nested deeper
    than MAXIMUM_DEPTH, those that hold themselves included.
    """
    return _copy(value, MAXIMUM_DEPTH)


def _copy(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is not list and kind is not dict:
        raise ValueError(f"JSON that holds {kind.__name__}")
    if depth == 0:
        raise ValueError("JSON nested too deeply")
    if kind is list:
        return [item if type(item) in _SCALARS else _copy(item, depth - 1) for item in value]
    if not _TEXT.issuperset(map(type, value)):
        raise ValueError("JSON with a key that is no text")
    return {name: item if type(item) in _SCALARS else _copy(item, depth - 1) for name, item in value.items()}


_SCALARS = frozenset({type(None), bool, int, float, str})
_TEXT = frozenset({str})


# --- rendering --------------------------------------------------------------------------------------------

_quote_raw: Callable[[str], str] = json.encoder.encode_basestring
_SURROGATE = re.compile("[\ud800-\udfff]")


def quote_string(text: str) -> str:
    """A string as JSON source: controls, quotes and unpaired surrogates escaped, all else as it is."""
    quoted = _quote_raw(text)
    if quoted.isascii():
        return quoted
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _render_float(number: float) -> str:
    return float_to_text(number) if math.isfinite(number) else "null"


def _render_bool(value: bool) -> str:
    return "true" if value else "false"


def _render_list(items: list[Any]) -> str:
    return f"[{','.join(map(_render, items))}]"


def _render_dict(members: dict[str, Any]) -> str:
    inner = ",".join(f"{quote_string(key)}:{_render(value)}" for key, value in members.items())
    return f"{{{inner}}}"


_RENDER: Mapping[type, Callable[[Any], str]] = MappingProxyType(
    {
        type(None): lambda value: "null",
        bool: _render_bool,
        int: int_to_text,
        float: _render_float,
        str: quote_string,
        list: _render_list,
        dict: _render_dict,
    }
)


_FAST = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))
_MAY_HOLD_FLOAT = re.compile("[0-9][.e]|NaN|Infinity")


def _render(value: Any) -> str:
    return _RENDER[type(value)](value)


def render_json(value: Any) -> str:
    """Compact JSON text in document key order; infinities and NaN are ``null``.

    The C encoder does it where it gives the same text: for documents without floats, whose layout
    differs, and without unpaired surrogates.  Raises ``TypeError`` or ``KeyError`` for Python objects
    that are no JSON.
    """
    if type(value) is list or type(value) is dict:
        try:
            text = _FAST.encode(value)
        except ValueError:
            # An integer of thousands of digits.
            return _render(value)
        if _MAY_HOLD_FLOAT.search(text) is None and (text.isascii() or _SURROGATE.search(text) is None):
            return text
    return _render(value)


def canonicalize(value: Any) -> Any:
    """The same document, keys in code-point order and whole floats as integers; for keys, not for show."""
    if type(value) is dict:
        return {key: canonicalize(value[key]) for key in sorted(value)}
    if type(value) is list:
        return [canonicalize(item) for item in value]
    if type(value) is float and value.is_integer():
        return int(value)
    return value


def canonical_json(value: Any) -> str:
    """The text of the canonical form, by which objects rank in an ANY column: equal for equal documents.

    An infinity, which has no spelling of its own in JSON, is a number that reads back as one.
    """
    return _canonical_text(canonicalize(value))


_CANONICAL_INFINITY: Mapping[float, str] = MappingProxyType({math.inf: "1e999", -math.inf: "-1e999"})


def _canonical_text(value: Any) -> str:
    if type(value) is dict:
        inner = ",".join(f"{quote_string(key)}:{_canonical_text(item)}" for key, item in value.items())
        return f"{{{inner}}}"
    if type(value) is list:
        return f"[{','.join(map(_canonical_text, value))}]"
    if type(value) is float and value in _CANONICAL_INFINITY:
        return _CANONICAL_INFINITY[value]
    return render_json(value)


# --- equality and order -----------------------------------------------------------------------------------

_NULL_KEY: tuple[Any, ...] = (0,)
_FALSE_KEY: tuple[Any, ...] = (1,)
_TRUE_KEY: tuple[Any, ...] = (2,)
_NUMBER_TAG, _NAN_TAG, _STRING_TAG, _ARRAY_TAG, _OBJECT_TAG = 3, 4, 5, 6, 7
_NAN_KEY: tuple[Any, ...] = (_NAN_TAG,)


def _number_key(number: int | float) -> tuple[Any, ...]:
    return (_NUMBER_TAG, number) if number == number else _NAN_KEY


def _array_key(items: list[Any]) -> tuple[Any, ...]:
    return (_ARRAY_TAG, tuple(map(json_key, items)))


def _object_key(members: dict[str, Any]) -> tuple[Any, ...]:
    names = sorted(members)
    return (_OBJECT_TAG, tuple(names), tuple([json_key(members[name]) for name in names]))


_KEY: Mapping[type, Callable[[Any], tuple[Any, ...]]] = MappingProxyType(
    {
        type(None): lambda value: _NULL_KEY,
        bool: lambda value: _TRUE_KEY if value else _FALSE_KEY,
        int: _number_key,
        float: _number_key,
        str: lambda text: (_STRING_TAG, text),
        list: _array_key,
        dict: _object_key,
    }
)


def json_key(value: Any) -> tuple[Any, ...]:
    """A hashable tuple, equal for structurally equal documents and ordered as JSON is."""
    return _KEY[type(value)](value)


def json_equal(left: Any, right: Any) -> bool:
    """Structural equality: key order aside, 1 = 1.0, ``true`` is not 1, ``"1"`` is not 1."""
    return json_key(left) == json_key(right)


def compare_json(left: Any, right: Any) -> int:
    """Order two documents: negative, 0 or positive."""
    left_key, right_key = json_key(left), json_key(right)
    return (left_key > right_key) - (left_key < right_key)


# --- paths ------------------------------------------------------------------------------------------------

_PATH_STEP = re.compile(r'\.(?:"(?P<quoted>[^"]*)"|(?P<name>[^.\[\s"][^.\[\s]*))|\[(?P<index>[0-9]+)\]')


def parse_json_path(path: str) -> JsonPath | None:
    """Read ``$.name[0]."any text"`` into steps (names and indexes); ``None`` for an invalid path.

    The ``$`` may be left out before a step; a blank path, a bare word and a negative index are invalid.
    """
    position = 1 if path.startswith("$") else 0
    if not path:
        return None
    steps: list[JsonStep] = []
    while position < len(path):
        match = _PATH_STEP.match(path, position)
        if match is None:
            return None
        index = match["index"]
        if index is not None:
            steps.append(int_from_text(index))
        else:
            quoted = match["quoted"]
            steps.append(match["name"] if quoted is None else quoted)
        position = match.end()
    return tuple(steps)


def follow_json_path(document: Any, steps: JsonPath) -> Any:
    """The value that the steps lead to, or :data:`MISSING`; names never match inside arrays."""
    current = document
    for step in steps:
        if type(step) is int:
            if type(current) is not list or step >= len(current):
                return MISSING
            current = current[step]
        else:
            if type(current) is not dict or step not in current:
                return MISSING
            current = current[step]
    return current
