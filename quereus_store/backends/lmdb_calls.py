"""The calls on an LMDB transaction, as a writer runs them and replays them after the map has grown.

Each takes the writer, since a key that LMDB cannot hold as it is goes into a bucket of long keys, and the
writer is told of the first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice, repeat
from operator import itemgetter, length_hint, lt
from typing import TYPE_CHECKING

from quereus_store.backends.contract import Item
from quereus_store.backends.lmdb_long_keys import DIRECT, MARKER, Bucket, bucket_key

if TYPE_CHECKING:
    from quereus_store.backends.lmdb_transactions import LmdbWriteTransaction

_key_of: Callable[[Item], bytes] = itemgetter(0)
_value_of: Callable[[Item], bytes] = itemgetter(1)


def put(transaction: LmdbWriteTransaction, key: bytes, value: bytes) -> None:
    """Store an item."""
    if len(key) <= DIRECT:
        transaction.txn.put(key, value)
        return
    _change_bucket(transaction, key, value)


def _change_bucket(transaction: LmdbWriteTransaction, key: bytes, value: bytes | None) -> None:
    txn, place = transaction.txn, bucket_key(key)
    bucket = Bucket(txn.get(place))
    if value is None:
        bucket.delete(key)
    else:
        bucket.put(key, value)
        if not transaction.has_long_keys:
            txn.put(MARKER, b"")
            transaction.note_long_key()
    packed = bucket.pack()
    if packed is None:
        txn.delete(place)
    else:
        txn.put(place, packed)


def _any_long(keys: Sequence[bytes]) -> bool:
    return max(map(len, keys)) > DIRECT


def put_many(transaction: LmdbWriteTransaction, items: Sequence[Item]) -> None:
    """Store items; the last of equal keys wins."""
    if not items:
        return
    if _any_long(list(map(_key_of, items))):
        for key, value in items:
            put(transaction, key, value)
    else:
        transaction.txn.cursor().putmulti(items)


def insert_many(transaction: LmdbWriteTransaction, items: Sequence[Item]) -> int | None:
    """Store items up to the first whose key exists; its index, or None."""
    keys = list(map(_key_of, items))
    if _any_long(keys):
        return _insert_each(transaction, items)
    cursor = transaction.txn.cursor()
    if all(map(lt, keys, islice(keys, 1, None))):
        lowest, highest, distinct = keys[0], keys[-1], True
    else:
        lowest, highest, distinct = min(keys), max(keys), len(set(keys)) == len(keys)
    if distinct and not (cursor.set_range(lowest) and cursor.key() <= highest):
        # No key stands where they go: all of them are new.
        cursor.putmulti(items)
        return None
    # all() stops at the first refusal, and the iterator then tells how far it got.
    rest = iter(keys)
    if all(map(cursor.put, rest, map(_value_of, items), repeat(True), repeat(False))):
        return None
    return len(keys) - length_hint(rest) - 1


def put_new(transaction: LmdbWriteTransaction, items: Sequence[Item]) -> bool:
    """Store items that are known to be new; False if some were not."""
    if _any_long([key for key, _ in items]):
        return {_insert_each(transaction, (item,)) for item in items} == {None}
    _, added = transaction.txn.cursor().putmulti(items, True, False)
    return bool(added == len(items))


def _insert_each(transaction: LmdbWriteTransaction, items: Sequence[Item]) -> int | None:
    for index, (key, value) in enumerate(items):
        if transaction.get(key) is not None:
            return index
        put(transaction, key, value)
    return None


def delete_many(transaction: LmdbWriteTransaction, keys: Sequence[bytes]) -> None:
    """Remove keys that are there."""
    if not _any_long(keys):
        deque(map(transaction.txn.delete, keys), maxlen=0)
        return
    for key in keys:
        if len(key) <= DIRECT:
            transaction.txn.delete(key)
        else:
            _change_bucket(transaction, key, None)


def restore(
    transaction: LmdbWriteTransaction, keys: Sequence[bytes], values: Sequence[bytes | None] | None
) -> None:
    """Give keys back what they held (None: nothing); without ``values`` none of them was there."""
    if values is None:
        absent: Sequence[bytes] = keys
    else:
        absent = [key for key, value in zip(keys, values, strict=True) if value is None]
        put_many(
            transaction, [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
        )
    if absent:
        delete_many(transaction, absent)
