"""Keys of any length in LMDB, which takes 511 bytes at most.

A key of up to ``DIRECT`` = 500 bytes is stored as it is.  Longer keys that share their first 500 bytes share
a *bucket*: one entry whose key is those 500 bytes and a ``00``, 501 in all, and whose value holds the rests
of the keys, sorted, with their values.  Order is kept: a direct key that is a prefix of the bucket's sorts
before it, and any other differs within the first 500 bytes.  The length tells the two kinds apart.

So that scans need not look at the length of each key, a *marker* entry says that buckets exist at all.  It is
511 bytes long, so it is neither kind; no scan shows it.
"""

from __future__ import annotations

from bisect import bisect_left

from msgpack import packb, unpackb

from quereus_store.backends.contract import Item

DIRECT = 500
BUCKET = DIRECT + 1
MARKER = b"\0" * 511


def bucket_key(key: bytes) -> bytes:
    """The entry that holds a long key."""
    return key[:DIRECT] + b"\0"


def physical_bounds(lower: bytes, upper: bytes | None) -> tuple[bytes, bytes | None]:
    """The range of entries that holds all keys of a range; the first and last bucket may hold others too."""
    first = lower if len(lower) <= DIRECT else bucket_key(lower)
    last = upper if upper is None or len(upper) <= DIRECT else bucket_key(upper) + b"\0"
    return first, last


class Bucket:
    """The content of one bucket."""

    __slots__ = ("_rests", "_values")

    def __init__(self, packed: bytes | None) -> None:
        self._rests: list[bytes]
        self._values: list[bytes]
        self._rests, self._values = ([], []) if packed is None else unpackb(packed)

    def pack(self) -> bytes | None:
        """The bytes to store, or None if nothing is left."""
        packed: bytes | None = packb([self._rests, self._values]) if self._rests else None
        return packed

    def get(self, key: bytes) -> bytes | None:
        """The value of a long key, or None."""
        index, exists = self._find(key)
        return self._values[index] if exists else None

    def put(self, key: bytes, value: bytes) -> None:
        """Store a long key."""
        index, exists = self._find(key)
        if exists:
            self._values[index] = value
        else:
            self._rests.insert(index, key[DIRECT:])
            self._values.insert(index, value)

    def delete(self, key: bytes) -> None:
        """Remove a long key if it is there."""
        index, exists = self._find(key)
        if exists:
            del self._rests[index], self._values[index]

    def items(self, head: bytes, lower: bytes, upper: bytes | None) -> list[Item]:
        """The items within a range, in order; ``head`` is the entry's key."""
        start = head[:DIRECT]
        items = zip((start + rest for rest in self._rests), self._values, strict=True)
        return [item for item in items if item[0] >= lower and (upper is None or item[0] < upper)]

    def _find(self, key: bytes) -> tuple[int, bool]:
        rest = key[DIRECT:]
        index = bisect_left(self._rests, rest)
        return index, index < len(self._rests) and self._rests[index] == rest


def expand(batch: list[Item], lower: bytes, upper: bytes | None, reverse: bool) -> list[Item]:
    """The items that a batch of entries stands for: buckets opened, the marker left out."""
    items: list[Item] = []
    for entry in batch:
        if len(entry[0]) <= DIRECT:
            items.append(entry)
        elif len(entry[0]) == BUCKET:
            found = Bucket(entry[1]).items(entry[0], lower, upper)
            items += reversed(found) if reverse else found
    return items
