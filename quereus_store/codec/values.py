"""One value as a key: the encoders of columns, one for each kind of column.

A value is encoded by its own class, not by its column's type: a probe ``id = 1.5`` on an INTEGER column gets
the key of 1.5, which lies between those of 1 and 2 and equals neither, and ``name > 5`` on a TEXT column gets
a key below all texts.  So no probe is ever converted, and every range is right.  Only three things depend on
the column: the normalizer of text, the semantic order of JSON, TIMESPAN and registered types, and direction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, NoneType
from typing import Any

from quereus_store.codec.bits import FLIP_TABLE, escape
from quereus_store.codec.documents import encode_document, encode_json
from quereus_store.codec.numbers import encode_integer, encode_real
from quereus_store.codec.text import encode_text
from quereus_store.errors import StatusCode, sql_error
from quereus_store.types.collations import BINARY, Collation, honours_collation
from quereus_store.types.logical import ANY, JSON, TIMESPAN, LogicalType
from quereus_store.types.temporal.duration import iso_duration_nanoseconds
from quereus_store.types.values import Value

NULL_KEY = b"\x00"
BLOB_TAG = b"\x30"
TUPLE_TAG = b"\x50"

ValueEncoder = Callable[[Any], bytes]


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One column of a key.

    ``normalizer`` turns text into the text that stands for it under the column's collation; ``None`` is
    BINARY.  It counts where text may be: in TEXT and ANY columns, and for a JSON document that is one string
    (an index may give JSON a collation; store-and-modules, section 16).  ``nullable`` only chooses faster
    code: a NULL in a column that says it has none is still encoded right.
    """

    type: LogicalType
    nullable: bool = True
    descending: bool = False
    normalizer: Callable[[str], str] | None = None


def key_column(
    logical_type: LogicalType,
    *,
    nullable: bool = True,
    descending: bool = False,
    collation: Collation = BINARY,
) -> KeyColumn:
    """The key column of a declared one; the collation is ignored where the type ignores it.

    Raises ERROR where text is to be keyed under a collation without a normalizer.
    """
    normalizer = None
    if not collation.is_binary and honours_collation(logical_type):
        normalizer = collation.require_persistent_normalizer()
    elif not collation.is_binary and logical_type is JSON:
        normalizer = collation.normalizer
    return KeyColumn(logical_type, nullable, descending, normalizer)


def _encode_blob(data: bytes) -> bytes:
    return BLOB_TAG + escape(data) + b"\0"


_BY_CLASS: Mapping[type, ValueEncoder] = MappingProxyType(
    {
        NoneType: lambda value: NULL_KEY,
        bool: encode_integer,
        int: encode_integer,
        float: encode_real,
        str: encode_text,
        bytes: _encode_blob,
        list: encode_document,
        dict: encode_document,
    }
)


def encode_value(value: Value) -> bytes:
    """The ascending key of any value under BINARY: storage class first, then value."""
    return _BY_CLASS[type(value)](value)


def _encode_timespan(value: Any) -> bytes:
    if type(value) is str:
        length = iso_duration_nanoseconds(value)
        if length is not None:
            return encode_integer(length)
    return encode_value(value)


def _encode_json(value: Any) -> bytes:
    return encode_value(value) if value is None or type(value) is bytes else encode_json(value)


def _normalizing_json(normalizer: Callable[[str], str]) -> ValueEncoder:
    def encode(value: Any) -> bytes:
        return _encode_json(normalizer(value) if type(value) is str else value)

    return encode


def _encode_stand_in(value: Any) -> bytes:
    if type(value) is tuple:
        return b"".join([TUPLE_TAG, *map(_encode_stand_in, value), b"\0"])
    return encode_value(value)


def _normalizing(normalizer: Callable[[str], str]) -> ValueEncoder:
    def encode(value: Any) -> bytes:
        return encode_text(normalizer(value)) if type(value) is str else encode_value(value)

    return encode


def _registered(logical_type: LogicalType) -> ValueEncoder:
    key = logical_type.key
    if key is None:
        raise sql_error(
            StatusCode.ERROR,
            f"semantic-ordering type {logical_type.name} cannot key a persisted structure: "
            "it was registered without a key",
        )

    def encode(value: Any) -> bytes:
        return NULL_KEY if value is None else _encode_stand_in(key(value))

    return encode


def _ascending_encoder(column: KeyColumn) -> ValueEncoder:
    if column.type is TIMESPAN:
        return _encode_timespan
    if column.type is JSON:
        return _encode_json if column.normalizer is None else _normalizing_json(column.normalizer)
    if column.type.compare is not None or column.type.key is not None:
        return _registered(column.type)
    return encode_value if column.normalizer is None else _normalizing(column.normalizer)


def column_encoder(column: KeyColumn) -> ValueEncoder:
    """The function that encodes any one value of a column, direction included.

    Raises ERROR for a registered type that has an order but no key.
    """
    ascending = _ascending_encoder(column)
    if not column.descending:
        return ascending

    def descending(value: Any) -> bytes:
        return ascending(value).translate(FLIP_TABLE)

    return descending


def is_faithful(column: KeyColumn, probe: Value) -> bool:
    """Whether a seek for ``probe`` finds just what the comparison operators would.

    Not so where the operators look at more than the stored value tells: a number or unparsable text against
    TIMESPAN, a blob against JSON, and text that spells a duration against ANY (types-and-values, section 9,
    step 4).  The planner then drops the bound and lets the row filter decide.
    """
    if column.type is TIMESPAN:
        return probe is None or (type(probe) is str and iso_duration_nanoseconds(probe) is not None)
    if column.type is JSON:
        return type(probe) is not bytes
    if column.type is ANY and type(probe) is str:
        return not (probe.startswith(("P", "-P")) and iso_duration_nanoseconds(probe) is not None)
    return True
