"""The key space of a database: which bytes mean what.

All logical stores of one database share the one ordered key space of its backend.
Each has a small integer id; an order-preserving prefix of that id starts every key,
so a store is one contiguous range and erasing it is one range delete.  Ids are
given out once and never again: a renamed table keeps its id (no row moves), and
whatever was remembered about an id can never be taken for another table's.

=======  =============  =======================================  ============================================
id       store          rest of the key                          value
=======  =============  =======================================  ============================================
0        meta           ``format``                               magic, format version, codec version
0        meta           ``head``                                 commit number, schema version (8 bytes each)
0        meta           ``next``                                 next store ids (8 bytes each, see below)
0        meta           ``marker`` NUL name                      a marker of the engine (clean shutdown, ...)
1        catalog        kind, schema, NUL, name                  checksum, DDL text and store ids
2        statistics     prefix of a table's rows                 a record of ANALYZE
3        table states   prefix of a table's rows                 change counter, row count (8 bytes each)
4        notes          prefix of a table's rows, name           what whoever keeps the table has noted
16 ...   rows           primary key                              row
16 ...   unique index   index columns, none of them NULL         key of the row, its prefix included
16 ...   unique index   index columns, one of them NULL,         key of the row
                        + key of the row
16 ...   other index    index columns + key of the row           key of the row
=======  =============  =======================================  ============================================

Prefix of an id: below ``F0`` the id itself as one byte; else one byte ``F0`` + (n - 1)
and the id in n big-endian bytes.  More bytes mean a larger first byte, so prefixes
order as ids do, none starts another one, and each has a successor (the end of the
store's range).

Ids from 16 on are given to indexes of tables without rows, ids from 128 on to everything else (to all,
once the lower ones are used up).  So the rows of a new table are behind all else, and a B-tree fills its
pages best at its very end: a table that is loaded in key order takes half the room it would
take in front of its own indexes, and an index that is built over rows likewise.

In the catalog, kinds are ``a`` assertion, ``s`` schema (whose name is empty), ``t`` table, ``v`` view;
schema and name are UTF-8 in lower case with NUL escaped (``00`` → ``01 01``, ``01`` → ``01 02``), so that
no two pairs of names share a key.

Chapter: store-and-modules, sections 1, 6 and 15.
"""

from __future__ import annotations

from enum import Enum
from struct import Struct

from quereus_store.codec.bits import escape, unescape
from quereus_store.codec.text import unencodable_text
from quereus_store.schema.objects import fold

META, CATALOG, STATISTICS, STATES, NOTES = range(5)
FIRST_FREE_ID, FIRST_TRAILING_ID = 16, 128

_ONE_BYTE_IDS = 0xF0


class EntryKind(Enum):
    """The kinds of catalog entry; the value is the byte in the key."""

    ASSERTION = b"a"
    SCHEMA = b"s"
    TABLE = b"t"
    VIEW = b"v"


def store_prefix(store: int) -> bytes:
    """The bytes that start every key of a store."""
    if store < _ONE_BYTE_IDS:
        return bytes((store,))
    length = (store.bit_length() + 7) // 8
    return bytes((_ONE_BYTE_IDS + length - 1,)) + store.to_bytes(length, "big")


def parse_store(key: bytes) -> int:
    """The id of the store that a key belongs to."""
    first = key[0]
    return first if first < _ONE_BYTE_IDS else int.from_bytes(key[1 : first - _ONE_BYTE_IDS + 2], "big")


def store_range(store: int) -> tuple[bytes, bytes]:
    """The range of a store: its prefix (inclusive) and the end (exclusive)."""
    prefix = store_prefix(store)
    return prefix, successor(prefix)


def successor(prefix: bytes) -> bytes:
    """The first key after all keys that start with a store's prefix."""
    number = int.from_bytes(prefix, "big") + 1
    return number.to_bytes(len(prefix), "big")


META_PREFIX = store_prefix(META)
FORMAT_KEY = META_PREFIX + b"format"
HEAD_KEY = META_PREFIX + b"head"
NEXT_ID_KEY = META_PREFIX + b"next"
CATALOG_RANGE = store_range(CATALOG)

HEAD = Struct(">QQ")
"""Commit number and schema version."""

STATE = Struct(">QQ")
"""A table's change counter and its number of rows."""

NEXT_IDS = Struct(">QQ")
"""The next id for an index without entries, and for anything else."""

_STATES_PREFIX = store_prefix(STATES)
_STATISTICS_PREFIX = store_prefix(STATISTICS)
_CATALOG_PREFIX = store_prefix(CATALOG)
_NOTES_PREFIX = store_prefix(NOTES)


def state_key(store: int) -> bytes:
    """Where the change counter and row count of a table are."""
    return _STATES_PREFIX + store_prefix(store)


def notes_prefix(store: int) -> bytes:
    """What starts the keys of the notes that are kept beside a table."""
    return _NOTES_PREFIX + store_prefix(store)


def statistics_key(store: int) -> bytes:
    """Where a table's ANALYZE record is."""
    return _STATISTICS_PREFIX + store_prefix(store)


def marker_key(name: str) -> bytes:
    """Where a marker is kept."""
    return META_PREFIX + b"marker\0" + name.encode()


def entry_key(kind: EntryKind, schema: str, name: str) -> bytes:
    """Where the catalog entry of an object is; ERROR for a name that has no UTF-8 form."""
    return _CATALOG_PREFIX + kind.value + _name_bytes(schema) + b"\0" + _name_bytes(name)


def parse_entry_key(key: bytes) -> tuple[EntryKind, str, str]:
    """Kind, schema and name (in lower case) of a catalog key; ``ValueError`` when it is none."""
    start = len(_CATALOG_PREFIX)
    schema, separator, name = key[start + 1 :].partition(b"\0")
    if not separator:
        raise ValueError("no name in the key")
    return EntryKind(key[start : start + 1]), unescape(schema).decode(), unescape(name).decode()


def _name_bytes(name: str) -> bytes:
    folded = fold(name)
    try:
        return escape(folded.encode())
    except UnicodeEncodeError as failure:
        raise unencodable_text(f'the identifier "{name}"', folded, failure.start) from None
