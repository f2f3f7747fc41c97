"""Text as keys: normalized, as UTF-8, whose byte order is code-point order.

A key must be able to tell texts apart, and UTF-8 has no bytes for an unpaired surrogate: such text is refused
before anything is written, in seek probes too (store-and-modules, section 3, unencodable text).
"""

from __future__ import annotations

from quereus_store.codec.bits import escape
from quereus_store.errors import Error, StatusCode, sql_error

TEXT_TAG = b"\x20"
"""Starts the key of a text."""

A_TEXT_VALUE = "a text value"
A_JSON_STRING = "a JSON string value"
A_JSON_OBJECT_KEY = "a JSON object key"


def encode_text_body(text: str, what: str = A_TEXT_VALUE) -> bytes:
    """Escaped UTF-8 and the terminator; ERROR, naming ``what``, for an unpaired surrogate."""
    try:
        return escape(text.encode()) + b"\0"
    except UnicodeEncodeError as failure:
        raise unencodable_text(what, text, failure.start) from None


def encode_text(text: str) -> bytes:
    """The key of a normalized text."""
    return TEXT_TAG + encode_text_body(text)


def unencodable_text(what: str, text: str, offset: int) -> Error:
    """The error for text without a UTF-8 form; ``what`` says what kind of text it is."""
    return sql_error(
        StatusCode.ERROR,
        f"cannot store {what} containing an unpaired surrogate (U+{ord(text[offset]):04X} at offset "
        f"{offset}): persistent storage keys text by its UTF-8 bytes, and no UTF-8 sequence encodes a lone "
        "surrogate — every one of them would collide on U+FFFD, merging distinct rows. In-memory tables "
        "accept the value.",
    )
