"""Keys of descending text: bytes that sort the other way round.

A reversed number is its negative.  Text has no negative, but its UTF-8 bytes sort by code point,
and so the complement of each byte sorts in reverse.  A last byte FF makes a prefix sort after
what it is a prefix of; for that no other byte may be FF, so bytes 0 and 1 are escaped first.
Comparing such keys is one ``memcmp``, where an object that turns comparisons around would cost a
call of Python code for each.
"""

from __future__ import annotations

from quereus_store.types import logical
from quereus_store.types.collations import Collation
from quereus_store.types.logical import LogicalType
from quereus_store.types.sortkeys import KeyRecipe, order_key, reversed_key
from quereus_store.types.templates import Template

_COMPLEMENT = bytes(255 - byte for byte in range(256))
_TEXT_TYPES = frozenset((logical.TEXT, logical.DATE, logical.TIME, logical.DATETIME))


def turned_bytes(value: bytes) -> bytes:
    """Bytes that sort in reverse.

    >>> sorted([b"a", b"", b"ab", b"\\0"], key=turned_bytes)
    [b'ab', b'a', b'\\x00', b'']
    """
    if b"\0" in value or b"\1" in value:
        value = value.replace(b"\1", b"\1\2").replace(b"\0", b"\1\1")
    return value.translate(_COMPLEMENT) + b"\xff"


def turned_text(value: str) -> bytes:
    """Bytes that sort in the reverse of code-point order."""
    return turned_bytes(value.encode("utf-8", "surrogatepass"))


def descending_key(logical_type: LogicalType, nullable: bool, collation: Collation) -> KeyRecipe:
    """The recipe of a descending key part, in which NULL comes last."""
    ascending = order_key(logical_type, False, collation).template
    sorts_as_text = collation.normalizer is not None and collation.order_preserving
    if logical_type in _TEXT_TYPES and (sorts_as_text or logical_type is not logical.TEXT):
        source = f"_turned({ascending.source})"
        names = {**ascending.names, "_turned": turned_text}
    elif logical_type is logical.BLOB:
        source, names = f"_turned({ascending.source})", {**ascending.names, "_turned": turned_bytes}
    else:
        return reversed_key(logical_type, nullable, collation, nulls_first=False)
    if nullable:
        source = f"((False, {source}) if {{0}} is not None else (True,))"
    template = Template(source, names)
    return KeyRecipe(template.compile(), template)
