"""Documents as keys.

In a declared JSON column a document is encoded structurally, so that byte order is JSON order and key order,
``1`` against ``1.0`` and the like do not matter.  Every node starts with its tag:

=======  =======  ==========================================================================
tag      node     rest
=======  =======  ==========================================================================
02       null
03 04    false, true
10-15    number   as :mod:`quereus_store.codec.numbers`
20       string   escaped UTF-8, 00
28       array    the elements, 00
2C       object   ``01``, escaped name, 00 for each name in order; 00; the values in that order
=======  =======  ==========================================================================

The ``01`` before each name separates ``{"": 1}`` from ``{}``; an end ``00`` is below every tag, so a shorter
array sorts before its extensions.

In an ANY column documents rank by their canonical *text* (one class among others).  Text alone does not tell
an infinity from null, and spells a large number differently as real and as integer; so integral reals are
written as integers, and a document with non-finite numbers is followed by ``01`` and the list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from types import MappingProxyType, NoneType
from typing import Any

from quereus_store.codec.bits import escape
from quereus_store.codec.numbers import encode_integer, encode_real
from quereus_store.codec.text import A_JSON_OBJECT_KEY, A_JSON_STRING, TEXT_TAG, encode_text_body
from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.types.json import canonical_json

NODE_NULL, NODE_FALSE, NODE_TRUE = b"\x02", b"\x03", b"\x04"
NODE_ARRAY, NODE_OBJECT = b"\x28", b"\x2c"
DOCUMENT_TAG = b"\x40"
"""Starts the key of a list or dict in an ANY column."""


def _encode_string(text: str) -> bytes:
    return TEXT_TAG + encode_text_body(text, A_JSON_STRING)


def _encode_array(items: list[Any]) -> bytes:
    return b"".join([NODE_ARRAY, *map(encode_json_node, items), b"\0"])


def _encode_object(members: dict[str, Any]) -> bytes:
    names = sorted(members)
    parts = [NODE_OBJECT]
    parts += [b"\1" + encode_text_body(name, A_JSON_OBJECT_KEY) for name in names]
    parts.append(b"\0")
    parts += [encode_json_node(members[name]) for name in names]
    return b"".join(parts)


_NODE: Mapping[type, Callable[[Any], bytes]] = MappingProxyType(
    {
        NoneType: lambda value: NODE_NULL,
        bool: lambda value: NODE_TRUE if value else NODE_FALSE,
        int: encode_integer,
        float: encode_real,
        str: _encode_string,
        list: _encode_array,
        dict: _encode_object,
    }
)


def encode_json_node(value: Any) -> bytes:
    """The structural key of a part of a document."""
    return _NODE[type(value)](value)


def encode_json(value: Any) -> bytes:
    """The key of a document in a JSON column.

    Raises ERROR for an unpaired surrogate in its text, TOOBIG if it is nested too deeply to be walked.
    """
    try:
        return encode_json_node(value)
    except RecursionError:
        raise _too_deep() from None


def encode_document(value: Any) -> bytes:
    """The key of a list or dict in an ANY column: canonical text, then what the text does not tell.

    Raises TOOBIG if it is nested too deeply to be walked.
    """
    try:
        return _encode_by_text(value)
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> Error:
    return sql_error(StatusCode.TOOBIG, "a document is nested too deeply to be part of a key")


def _encode_by_text(value: Any) -> bytes:
    unusual: list[str] = []
    text = canonical_json(_plain(value, unusual))
    if not unusual:
        return DOCUMENT_TAG + escape(text.encode()) + b"\0"
    return DOCUMENT_TAG + escape(f"{text}\1{','.join(unusual)}".encode()) + b"\0"


def _plain(value: Any, unusual: list[str]) -> Any:
    """The document with integral reals as integers; notes nulls and non-finite numbers if there are such."""
    found: list[str] = []
    plain = _plain_node(value, found)
    if set(found) - {"null"}:
        unusual += found
    return plain


def _plain_node(value: Any, found: list[str]) -> Any:
    kind = type(value)
    if kind is dict:
        return {name: _plain_node(value[name], found) for name in sorted(value)}
    if kind is list:
        return [_plain_node(item, found) for item in value]
    if kind is float:
        if not isfinite(value):
            found.append(str(value))
            return None
        return int(value) if value.is_integer() else value
    if value is None:
        found.append("null")
    return value
