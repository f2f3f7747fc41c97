"""Reading keys back, for checks and messages; rows never depend on it.

Numbers come back exact (integral ones as integers), text as normalized, blobs as they were.  Documents come
back as the bytes of their key: what they looked like is in the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import error as StructError  # noqa: N812 - the class has a lower-case name

from quereus_store.codec.bits import FLIP_TABLE, unescape
from quereus_store.codec.documents import (
    DOCUMENT_TAG,
    NODE_ARRAY,
    NODE_FALSE,
    NODE_NULL,
    NODE_OBJECT,
    NODE_TRUE,
)
from quereus_store.codec.numbers import NAN, NEGATIVE_INFINITY, decode_number
from quereus_store.codec.text import TEXT_TAG
from quereus_store.codec.values import BLOB_TAG, NULL_KEY, TUPLE_TAG, KeyColumn
from quereus_store.errors import StatusCode, sql_error
from quereus_store.types.values import Value

_OPAQUE = frozenset((NODE_NULL, NODE_FALSE, NODE_TRUE, NODE_ARRAY, NODE_OBJECT, DOCUMENT_TAG, TUPLE_TAG))


def decode_key(columns: Sequence[KeyColumn], key: bytes) -> list[Value]:
    """The values of a key without its store prefix.

    A document or a value of a registered type ends the list with the rest of the key as bytes.  Raises
    CORRUPT for bytes that are no key of these columns.
    """
    values: list[Value] = []
    position = 0
    try:
        for column in columns:
            value, position, known = _decode_one(key, position, column.descending)
            values.append(value)
            if not known:
                return values
    except (IndexError, ValueError, StructError) as failure:
        raise sql_error(StatusCode.CORRUPT, f"damaged key {key.hex(' ')}: {failure}") from failure
    if position != len(key):
        raise sql_error(
            StatusCode.CORRUPT, f"damaged key {key.hex(' ')}: {len(key) - position} bytes too long"
        )
    return values


def _decode_one(key: bytes, start: int, descending: bool) -> tuple[Value, int, bool]:
    ascending = key.translate(FLIP_TABLE) if descending else key
    tag = ascending[start : start + 1]
    if tag == NULL_KEY:
        return None, start + 1, True
    if NEGATIVE_INFINITY <= ascending[start] <= NAN:
        value, end = decode_number(ascending, start)
        return value, end, True
    if tag in (TEXT_TAG, BLOB_TAG):
        end = ascending.index(b"\0", start)
        data = unescape(ascending[start + 1 : end])
        return (data.decode() if tag == TEXT_TAG else data), end + 1, True
    if tag in _OPAQUE:
        return key[start:], len(key), False
    raise ValueError(f"no value starts with {tag.hex()}")
