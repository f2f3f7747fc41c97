"""Codec: how values become bytes that can be stored.

``key_encoder`` gives keys whose byte order is SQL order (the encoding is a table in ``keys.py``),
``key_range`` the range of keys that a seek reads, ``row_encoder`` and ``row_decoder`` rows that come back
exactly.

    columns = [key_column(TEXT, collation=NOCASE), key_column(INTEGER, nullable=False, descending=True)]
    keys = key_encoder(columns, prefix=b"\\x10", positions=(1, 0))
    keys.encode_many([(7, "Fig", 2.5), (8, "fig", 1.0)])
    key_range(keys, equal=("FIG",), lower=Bound(5, inclusive=True))
"""

from quereus_store.codec.bits import successor
from quereus_store.codec.decoding import decode_key
from quereus_store.codec.keys import KeyEncoder, key_encoder
from quereus_store.codec.ranges import EMPTY_RANGE, Bound, KeyRange, key_range
from quereus_store.codec.rows import row_decoder, row_encoder
from quereus_store.codec.text import unencodable_text
from quereus_store.codec.values import KeyColumn, column_encoder, encode_value, is_faithful, key_column

__all__ = [
    "EMPTY_RANGE",
    "Bound",
    "KeyColumn",
    "KeyEncoder",
    "KeyRange",
    "column_encoder",
    "decode_key",
    "encode_value",
    "is_faithful",
    "key_column",
    "key_encoder",
    "key_range",
    "row_decoder",
    "row_encoder",
    "successor",
    "unencodable_text",
]
