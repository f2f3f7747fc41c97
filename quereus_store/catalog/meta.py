"""The database's own records: its stamp, its head and the ids it has given out.

The *stamp* says that the key space is ours and in which format and key encoding it
was written; it is written once, at creation, and checked at each opening.  The
*head* is one small record that every commit renews: the commit number tells a writer
whether anything was committed since a snapshot, the schema version tells each
process to reload its catalog.

Chapter: store-and-modules, sections 6 and 15 (format version stamp).
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812 - the class has a lower-case name
from typing import NamedTuple

from quereus_store.backends.contract import ReadTransaction, WriteTransaction
from quereus_store.catalog.layout import (
    FIRST_FREE_ID,
    FIRST_TRAILING_ID,
    FORMAT_KEY,
    HEAD,
    HEAD_KEY,
    NEXT_ID_KEY,
    NEXT_IDS,
    marker_key,
)
from quereus_store.errors import Error, StatusCode, sql_error

FORMAT_VERSION = 1
"""Version of the layout: which keys there are and what their values hold."""

CODEC_VERSION = 1
"""Version of the encoding of keys and rows."""

_MAGIC = b"Quereus Store\0"
_VERSIONS = Struct(">II")


class Head(NamedTuple):
    """The number of the last commit and the version of the schema it left."""

    commit: int
    schema: int


def is_empty(transaction: ReadTransaction) -> bool:
    """Whether the key space holds nothing at all: a database that is yet to be made."""
    return next(iter(transaction.scan_keys(b"\0", None, batch_size=1)), None) is None


def stamp(transaction: WriteTransaction) -> None:
    """Make an empty key space a database of the current format."""
    transaction.put(FORMAT_KEY, _MAGIC + _VERSIONS.pack(FORMAT_VERSION, CODEC_VERSION))
    transaction.put(HEAD_KEY, HEAD.pack(0, 0))
    transaction.put(NEXT_ID_KEY, NEXT_IDS.pack(FIRST_FREE_ID, FIRST_TRAILING_ID))


def check_stamp(transaction: ReadTransaction, where: str) -> None:
    """Refuse what this version cannot read; ``where`` names the database in the message.

    NOTADB for foreign data, CANTOPEN for a newer format or key encoding, CORRUPT for a
    damaged stamp or head.
    """
    value = transaction.get(FORMAT_KEY)
    if value is None or not value.startswith(_MAGIC):
        raise sql_error(StatusCode.NOTADB, f"'{where}' is not a Quereus Store database: it holds other data")
    try:
        format_version, codec_version = _VERSIONS.unpack(value[len(_MAGIC) :])
    except StructError:
        raise corrupt_meta("format", where) from None
    _check_version("format", format_version, FORMAT_VERSION, where)
    _check_version("key encoding", codec_version, CODEC_VERSION, where)
    for name, key, layout in (("head", HEAD_KEY, HEAD), ("next store ids", NEXT_ID_KEY, NEXT_IDS)):
        if len(transaction.get(key) or b"") != layout.size:
            raise corrupt_meta(name, where)


def _check_version(what: str, found: int, known: int, where: str) -> None:
    if found > known:
        raise sql_error(
            StatusCode.CANTOPEN,
            f"cannot open '{where}': it was written in {what} version {found}, and this version of "
            f"Quereus Store reads up to {known}; upgrade the package to open it",
        )
    if found < 1:
        raise corrupt_meta("format", where)


def corrupt_meta(what: str, where: str) -> Error:
    """The error for a damaged record of the database itself."""
    return sql_error(StatusCode.CORRUPT, f"'{where}' is corrupt: its {what} record is damaged")


def read_head(transaction: ReadTransaction) -> Head:
    """The head that the transaction sees."""
    return Head._make(HEAD.unpack(transaction.get(HEAD_KEY) or bytes(HEAD.size)))


def allocate_store(transaction: WriteTransaction, *, leading: bool = False) -> int:
    """A store id that was never used; taken back if the transaction aborts.

    ``leading`` is for an index that has no entries yet: it gets a place before all rows if there is one.
    """
    value = transaction.get(NEXT_ID_KEY)
    if value is None or len(value) != NEXT_IDS.size:
        raise sql_error(StatusCode.CORRUPT, "the database is corrupt: its next store ids record is damaged")
    next_leading, next_trailing = NEXT_IDS.unpack(value)
    if leading and next_leading < FIRST_TRAILING_ID:
        transaction.put(NEXT_ID_KEY, NEXT_IDS.pack(next_leading + 1, next_trailing))
        return int(next_leading)
    transaction.put(NEXT_ID_KEY, NEXT_IDS.pack(next_leading, next_trailing + 1))
    return int(next_trailing)


def read_marker(transaction: ReadTransaction, name: str) -> bytes | None:
    """A marker that the engine left, or None."""
    return transaction.get(marker_key(name))


def write_marker(transaction: WriteTransaction, name: str, value: bytes | None) -> None:
    """Leave a marker; None removes it."""
    if value is None:
        transaction.delete(marker_key(name))
    else:
        transaction.put(marker_key(name), value)
