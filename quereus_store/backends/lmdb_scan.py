"""Scanning LMDB in batches.

Items come out of LMDB's own iterator through ``islice``, so a batch is one C loop; the far bound is looked at
once a batch, by bisection in the batch that crosses it.  Since such a batch has read too far, batches begin
small and grow: a range of three keys reads sixteen, a long one soon a thousand at a time.

A scan in a write transaction survives writes: LMDB iterators do not promise what they see after one, so the
scan looks at the transaction's version after each batch and starts anew behind the last key it gave.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

import lmdb

from quereus_store.backends.contract import Item
from quereus_store.backends.lmdb_long_keys import MARKER, expand, physical_bounds

FIRST_BATCH = 16
GROWTH = 8

Cursor: TypeAlias = Any
"""``lmdb.Cursor``; the library has no type hints."""

Bounds: TypeAlias = tuple[bytes, bytes | None]
"""Lower bound, inclusive, and upper bound, exclusive."""

_key_of: Callable[[Item], bytes] = itemgetter(0)


class Scanned(Protocol):
    """What a scan needs to know of its transaction; ``version`` moves with each write.

    ``cursors`` are those of unfinished scans, which hold the LMDB transaction; None for a snapshot.
    """

    txn: Any
    version: int
    cursors: set[Cursor] | None

    def scan_failure(self, failure: Exception) -> Exception:
        """The error to raise for a failure while scanning."""
        ...


def _begin_forward(cursor: Cursor, lower: bytes, after: bytes | None) -> bool:
    """Stand on the first entry of the range, or behind ``after``."""
    if after is None:
        return bool(cursor.set_range(lower)) if lower else bool(cursor.first())
    found = cursor.set_range(after)
    return bool(cursor.next()) if found and cursor.key() == after else bool(found)


def _begin_reverse(cursor: Cursor, upper: bytes | None, before: bytes | None) -> bool:
    """Stand on the last entry of the range, or before ``before``."""
    bound = upper if before is None else before
    if bound is not None and cursor.set_range(bound):
        return bool(cursor.prev())
    return bool(cursor.last())


def _open_cursor(source: Scanned, old: Cursor) -> Cursor:
    cursor = source.txn.cursor()
    if source.cursors is not None:
        source.cursors.discard(old)
        source.cursors.add(cursor)
    return cursor


def _forget_cursor(source: Scanned, cursor: Cursor) -> None:
    if source.cursors is not None:
        source.cursors.discard(cursor)


def _inside(
    batch: list[Any],
    lower: bytes,
    upper: bytes | None,
    reverse: bool,
    key_of: Callable[[Any], bytes] | None,
) -> int:
    """How many entries of a batch, from its start, are within the range."""
    if not batch:
        return 0
    last = batch[-1] if key_of is None else key_of(batch[-1])
    if reverse:
        if last >= lower:
            return len(batch)
        return len(batch) - bisect_left(batch[::-1], lower, key=key_of)
    if upper is None or last < upper:
        return len(batch)
    return bisect_left(batch, upper, key=key_of)


def scan_entries(
    source: Scanned,
    bounds: Bounds,
    reverse: bool,
    batch_size: int,
    with_values: bool,
    after: bytes | None = None,
) -> Iterator[list[Any]]:
    """Entries of LMDB in batches: items, or keys only; ``after`` continues behind a key."""
    lower, upper = bounds
    if upper is not None and lower >= upper:
        return
    key_of = _key_of if with_values else None
    size = min(FIRST_BATCH, batch_size) if after is None else batch_size
    cursor: Cursor = None
    try:
        while True:
            version = source.version
            cursor = _open_cursor(source, cursor)
            if not (
                _begin_reverse(cursor, upper, after) if reverse else _begin_forward(cursor, lower, after)
            ):
                return
            entries = (cursor.iterprev if reverse else cursor.iternext)(True, with_values)
            while source.version == version:
                batch = list(islice(entries, size))
                inside = _inside(batch, lower, upper, reverse, key_of)
                if inside:
                    after = batch[inside - 1][0] if with_values else batch[inside - 1]
                    yield batch if inside == len(batch) else batch[:inside]
                if inside < size:
                    return
                size = min(size * GROWTH, batch_size)
    except (lmdb.Error, AttributeError) as failure:
        raise source.scan_failure(failure) from failure
    finally:
        _forget_cursor(source, cursor)


def scan_entry_values(
    source: Scanned, bounds: Bounds, reverse: bool, batch_size: int
) -> Iterator[list[bytes]]:
    """Values only: keys are looked at once a batch, and read in the batch that reaches the end."""
    lower, upper = bounds
    if upper is not None and lower >= upper:
        return
    after: bytes | None = None
    size = min(FIRST_BATCH, batch_size)
    cursor: Cursor = None
    try:
        while True:
            version = source.version
            cursor = _open_cursor(source, cursor)
            if not (
                _begin_reverse(cursor, upper, after) if reverse else _begin_forward(cursor, lower, after)
            ):
                return
            entries = (cursor.iterprev if reverse else cursor.iternext)(False, True)
            while source.version == version:
                batch = list(islice(entries, size))
                key = cursor.key() if len(batch) == size else b""
                if not key or (key < lower if reverse else upper is not None and key >= upper):
                    for items in scan_entries(source, bounds, reverse, size, True, after):
                        yield [value for _, value in items]
                    return
                after = key
                yield batch
                size = min(size * GROWTH, batch_size)
    except (lmdb.Error, AttributeError) as failure:
        raise source.scan_failure(failure) from failure
    finally:
        _forget_cursor(source, cursor)


def spans_marker(bounds: Bounds) -> bool:
    """Whether a range holds the marker, which is no item."""
    return bounds[0] <= MARKER and (bounds[1] is None or bounds[1] > MARKER)


def scan_expanded(source: Scanned, bounds: Bounds, reverse: bool, batch_size: int) -> Iterator[list[Item]]:
    """The items that the entries of a range stand for, in batches."""
    for entries in scan_entries(source, physical_bounds(*bounds), reverse, batch_size, True):
        items = expand(entries, *bounds, reverse)
        for start in range(0, len(items), batch_size):
            yield items[start : start + batch_size]
