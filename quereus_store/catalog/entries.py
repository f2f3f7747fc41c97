"""Catalog entries: what is kept of one schema object.

An entry is a checksum (CRC-32, four bytes) and a msgpack map.  Its ``ddl`` is the object's
canonical text, for a table the whole bundle (the table, its indexes, tags of implicit
indexes); ``rows`` and ``indexes`` are the store ids, which text cannot tell: of the rows,
and of each index by name in lower case, hidden ones included.  ``computed`` describes, per index,
the parts that are expressions.  ``stale`` marks a maintained table that is not kept up any more;
``views`` is the text of plain views that its body reads and that were dropped.
``layout`` says how rows are kept that are not their columns in order: least length, places, fills as a row.
``lens`` is what a logical schema, or a table of one, has besides (see ``lenses``).  ``place`` grows from
object to object, so that they come back in the order in which they were made.

An entry that does not pass its checksum is reported as CORRUPT with the object's name; the
others are none the worse.  Chapter: store-and-modules, sections 6 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, TypeAlias
from zlib import crc32

import msgpack

from quereus_store.codec.text import unencodable_text
from quereus_store.errors import StatusCode, sql_error

_CHECKSUM = Struct(">I")

ComputedPart: TypeAlias = tuple[str, bool, str]
"""Type name, nullability and collation of an index part that is an expression."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The kept form of a schema object."""

    ddl: str
    rows: int = 0
    indexes: Mapping[str, int] = field(default_factory=dict)
    computed: Mapping[str, Sequence[ComputedPart]] = field(default_factory=dict)
    stale: bool = False
    views: Sequence[str] = ()
    lens: Mapping[str, Any] | None = None
    layout: Sequence[Any] = ()
    place: int = 0


def pack_entry(entry: Entry) -> bytes:
    """An entry as bytes; equal entries give equal bytes. ERROR for text without a UTF-8 form."""
    try:
        body: bytes = msgpack.packb(
            {
                "ddl": entry.ddl,
                "rows": entry.rows,
                "indexes": dict(sorted(entry.indexes.items())),
                "computed": dict(sorted(entry.computed.items())),
                **({"stale": True} if entry.stale else {}),
                **({"views": entry.views} if entry.views else {}),
                **({"lens": entry.lens} if entry.lens is not None else {}),
                **({"layout": entry.layout} if entry.layout else {}),
                **({"place": entry.place} if entry.place else {}),
            }
        )
    except UnicodeEncodeError as error:
        raise unencodable_text("persisted schema text", error.object, error.start) from None
    return _CHECKSUM.pack(crc32(body)) + body


def unpack_entry(value: bytes, name: str) -> Entry:
    """An entry from its bytes; ``name`` is the object's for the message of CORRUPT."""
    body = value[_CHECKSUM.size :]
    if value[: _CHECKSUM.size] != _CHECKSUM.pack(crc32(body)):
        raise sql_error(StatusCode.CORRUPT, f"the catalog entry of {name} is corrupt: its checksum is wrong")
    try:
        return Entry(**msgpack.unpackb(body))
    except (TypeError, ValueError) as error:
        raise sql_error(StatusCode.CORRUPT, f"the catalog entry of {name} is corrupt: {error}") from None
