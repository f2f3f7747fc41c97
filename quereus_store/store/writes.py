"""Writing batches of rows: one backend call for the rows, one for each index.

**insert** encodes everything first (what cannot be encoded is refused before anything is written),
then adds the rows and the entries of unique indexes with the backend's "insert, stop at the first
that exists".  Each such call can only move the limit to an earlier row, so after all of them
the limit is the first row in the way of anything, and what was added is taken back.

**update** finds, per index, the entries that go, come, or stay with another row key; an index whose
columns did not change is not looked at again, and where no row key changes only values are written.
The contract wants uniqueness checked row by row; a batch gives the same answer unless a row takes
a key that another row of the batch gave up, or anything collides: then, and only then, the
batch is taken back and repeated row by row.

Chapter: store-and-modules, section 9.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from operator import eq, not_

from quereus_store.backends.contract import Item, Previous, ReadTransaction, WriteTransaction
from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.modules.contract import Conflict, Row, UniqueViolation
from quereus_store.store.indexes import Entries, IndexStore
from quereus_store.store.rows import RowStore
from quereus_store.store.transaction import StoreWriter, all_or_nothing

ROWS_AT_ONCE = 10_000
"""How many rows are encoded together; more would only take memory."""

UPDATED_AT_ONCE = 2_000
"""How many rows are updated together: they are looked at several times, so both images had better stay in
the processor's cache."""


def row_at(kv: ReadTransaction, rows: RowStore, key: bytes) -> Row | None:
    """The row under a row key."""
    value = kv.get(key)
    return None if value is None else rows.decode(kv, value)


def conflicts(
    kv: ReadTransaction,
    rows: RowStore,
    indexes: Sequence[IndexStore],
    row: Row,
    replacing: Row | None,
) -> list[Conflict]:
    """The existing rows that ``row`` would collide with, primary key first, never ``replacing``."""
    found = []
    own_key = None if replacing is None else rows.key_of(replacing)
    key = rows.key_of(row)
    if key != own_key:
        existing = row_at(kv, rows, key)
        if existing is not None:
            found.append(Conflict(None, existing))
    for index in indexes:
        checked = index.checked_key(row)
        holder = None if checked is None else index.holder(kv, checked, own_key)
        if holder is not None:
            existing = row_at(kv, rows, holder)
            if existing is not None:
                found.append(Conflict(index.constraint, existing))
    return found


# --- insert and delete ----------------------------------------------------------------------------------


def insert(
    transaction: StoreWriter, rows: RowStore, indexes: Sequence[IndexStore], new: Sequence[Row]
) -> None:
    """Add rows; raises UniqueViolation at the first one in the way of a key, and then adds none."""
    if len(new) == 1 and _insert_one(transaction, rows, indexes, new[0]):
        return
    if len(new) <= ROWS_AT_ONCE:
        _insert_piece(transaction, rows, indexes, new)
        return
    start = 0
    try:
        while start < len(new):
            _insert_piece(transaction, rows, indexes, new[start : start + ROWS_AT_ONCE])
            start += ROWS_AT_ONCE
    except (UniqueViolation, Error):
        # A backend that cannot go on has ended the transaction, which took back everything.
        with suppress(Error):
            delete(transaction, rows, indexes, new[:start])
        raise


def _insert_one(transaction: StoreWriter, rows: RowStore, indexes: Sequence[IndexStore], row: Row) -> bool:
    """Add one row that meets nothing; False, and nothing done, for any other."""
    key = rows.key_of(row)
    value = rows.encode(row)
    entries = []
    for index in indexes:
        entry = index.entry(row, key)
        if entry is not None:
            if index.constraint is not None and not index.unique:
                return False
            entries.append(entry)
    transaction.add_rows(rows.store, 1)
    insert_item = transaction.kv.insert
    if not insert_item(key, value):
        transaction.add_rows(rows.store, -1)
        return False
    for number, entry in enumerate(entries):
        if not insert_item(entry, key):
            transaction.kv.delete_many([key, *entries[:number]])
            transaction.add_rows(rows.store, -1)
            return False
    return True


def _insert_piece(
    transaction: StoreWriter, rows: RowStore, indexes: Sequence[IndexStore], new: Sequence[Row]
) -> None:
    kv = transaction.kv
    keys = rows.keys_of(new)
    items = list(zip(keys, rows.encode_many(new), strict=True))
    entries = [index.entries(new, keys) for index in indexes]
    transaction.add_rows(rows.store, len(new))
    limit = kv.insert_many(items)
    if limit is not None or any(index.constraint is not None for index in indexes):
        _insert_checked(transaction, rows, indexes, new, keys, entries, limit)
        return
    for index, entry in zip(indexes, entries, strict=True):
        _add_new_entries(kv, rows, index, entry.items)


def _add_new_entries(kv: WriteTransaction, rows: RowStore, index: IndexStore, items: list[Item]) -> None:
    """Add the entries of new rows to an index that admits equal ones; CORRUPT if one is there already."""
    if not kv.put_new(items):
        raise sql_error(
            StatusCode.CORRUPT,
            f"index {index.index.name} of table {rows.schema.qualified_name} is corrupt: it has an entry "
            "for a row that did not exist",
        )


def _insert_checked(
    transaction: StoreWriter,
    rows: RowStore,
    indexes: Sequence[IndexStore],
    new: Sequence[Row],
    keys: list[bytes],
    entries: list[Entries],
    refused: int | None,
) -> None:
    """The rest of an insert whose rows (up to ``refused``) are in, and whose entries may collide."""
    kv = transaction.kv
    limit = added = len(new) if refused is None else refused
    constraint = None
    taken: list[tuple[Entries, int]] = []
    for index, entry in zip(indexes, entries, strict=True):
        if index.constraint is None:
            continue
        within = bisect_left(entry.places, limit)
        items = entry.items[:within] if within < len(entry.items) else entry.items
        stop = _add_entries(kv, index, items, [new[place] for place in entry.places[:within]])
        taken.append((entry, len(items) if stop is None else stop))
        if stop is not None:
            limit, constraint = entry.places[stop], index
    if limit == len(new):
        for index, entry in zip(indexes, entries, strict=True):
            if index.constraint is None:
                _add_new_entries(kv, rows, index, entry.items)
        return
    row = new[limit]
    holder: bytes | None = keys[limit]
    if constraint is not None:
        checked = constraint.checked_key(row)
        holder = None if checked is None else constraint.holder(kv, checked, keys[limit])
    existing = None if holder is None else row_at(kv, rows, holder)
    for entry, count in taken:
        kv.delete_many([key for key, _ in entry.items[:count]])
    kv.delete_many(keys[:added])
    transaction.add_rows(rows.store, -len(new))
    raise UniqueViolation(None if constraint is None else constraint.constraint, row, existing)


def _add_entries(
    kv: WriteTransaction, index: IndexStore, items: list[Item], rows: Sequence[Row]
) -> int | None:
    """Add entries of an enforcing index up to the first that collides; its number, or None."""
    if index.unique:
        return kv.insert_many(items)
    for number, (item, row) in enumerate(zip(items, rows, strict=True)):
        checked = index.checked_key(row)
        if checked is not None and index.holder(kv, checked) is not None:
            return number
        kv.put(*item)
    return None


def delete(
    transaction: StoreWriter, rows: RowStore, indexes: Sequence[IndexStore], old: Sequence[Row]
) -> None:
    """Remove rows, given as stored."""
    kv = transaction.kv
    if len(old) == 1:
        _delete_one(transaction, rows, indexes, old[0])
        return
    for start in range(0, len(old), ROWS_AT_ONCE):
        piece = old[start : start + ROWS_AT_ONCE]
        keys = rows.keys_of(piece)
        entries = [index.entries(piece, keys) for index in indexes]
        transaction.add_rows(rows.store, -len(piece))
        for entry in entries:
            kv.delete_many([key for key, _ in entry.items], partial(_values, entry.items))
        kv.delete_many(keys, rows.previous(piece))


def delete_keys(transaction: StoreWriter, rows: RowStore, keys: Sequence[bytes]) -> int:
    """Remove the rows with these keys, given as stored; how many there were.

    Nothing is decoded, so no index can be kept up.  A key that stands there twice counts once.
    """
    kv = transaction.kv
    if len(set(keys)) < len(keys):
        keys = list(dict.fromkeys(keys))
    count = 0
    for start in range(0, len(keys), ROWS_AT_ONCE):
        piece = keys[start : start + ROWS_AT_ONCE]
        values = kv.get_many(piece)
        if None in values:
            piece = [key for key, value in zip(piece, values, strict=True) if value is not None]
            values = [value for value in values if value is not None]
        if piece:
            transaction.add_rows(rows.store, -len(piece))
            kv.delete_many(piece, partial(list, values))
            count += len(piece)
    return count


def _delete_one(transaction: StoreWriter, rows: RowStore, indexes: Sequence[IndexStore], row: Row) -> None:
    key = rows.key_of(row)
    entries = [index.entry(row, key) for index in indexes]
    transaction.add_rows(rows.store, -1)
    delete_item = transaction.kv.delete
    for entry in entries:
        if entry is not None:
            delete_item(entry)
    delete_item(key)


# --- update ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Change:
    """What an update does to one index, or (``index`` is None) to the rows themselves."""

    index: IndexStore | None
    gone: list[bytes] = field(default_factory=list)
    come: list[Item] = field(default_factory=list)
    rewritten: list[Item] = field(default_factory=list)
    previous: Previous | None = None
    """Gives the values that what is rewritten has now."""

    @property
    def checked(self) -> bool:
        return self.index is None or self.index.constraint is not None

    def may_collide(self) -> bool:
        """Whether a key that comes has to be looked at before it is written."""
        return self.checked and bool(self.come)

    def takes_over(self) -> bool:
        """Whether a key comes that another row gives up, or is only found by a seek."""
        if self.index is not None and not self.index.unique:
            return True
        return not {key for key, _ in self.come}.isdisjoint(self.gone)


def update(
    transaction: StoreWriter,
    rows: RowStore,
    indexes: Sequence[IndexStore],
    old: Sequence[Row],
    new: Sequence[Row],
) -> None:
    """Replace rows; raises UniqueViolation at the first new row in the way, and then replaces none."""
    if len(old) == 1 and _update_one(transaction, rows, indexes, old[0], new[0]):
        return
    if len(old) <= UPDATED_AT_ONCE:
        _update_piece(transaction, rows, indexes, old, new)
        return
    with all_or_nothing(transaction.kv):
        for start in range(0, len(old), UPDATED_AT_ONCE):
            piece = slice(start, start + UPDATED_AT_ONCE)
            _update_piece(transaction, rows, indexes, old[piece], new[piece])


def _update_one(
    transaction: StoreWriter, rows: RowStore, indexes: Sequence[IndexStore], old: Row, new: Row
) -> bool:
    """Replace one row that keeps its key and meets nothing; False, and nothing done, for any other."""
    key = rows.key_of(new)
    if not rows.keeps_key(old, new) and rows.key_of(old) != key:
        return False
    kv = transaction.kv
    gone, come = [], []
    for index in indexes:
        if index.unchanged_by(old, new):
            continue
        was, entry = index.entry(old, key), index.entry(new, key)
        if was == entry:
            continue
        if was is not None:
            gone.append(was)
        if entry is not None:
            if index.constraint is not None and (not index.unique or kv.get(entry) is not None):
                return False
            come.append(entry)
    value = rows.encode(new)
    transaction.add_rows(rows.store, 0)
    kv.put(key, value)
    for entry in gone:
        kv.delete(entry)
    for entry in come:
        kv.put(entry, key)
    return True


def _update_piece(
    transaction: StoreWriter,
    rows: RowStore,
    indexes: Sequence[IndexStore],
    old: Sequence[Row],
    new: Sequence[Row],
) -> None:
    changes = _changes(rows, indexes, old, new)
    transaction.add_rows(rows.store, 0)
    kv = transaction.kv
    colliding = [change for change in changes if change.may_collide()]
    if not colliding:
        _apply(kv, changes)
        return
    with all_or_nothing(kv):
        batch = kv.savepoint()
        if any(change.takes_over() for change in colliding) or not _apply(kv, changes):
            kv.rollback_to(batch)
            _update_singly(kv, rows, indexes, old, new)


def _update_singly(
    kv: WriteTransaction,
    rows: RowStore,
    indexes: Sequence[IndexStore],
    old: Sequence[Row],
    new: Sequence[Row],
) -> None:
    for before, after in zip(old, new, strict=True):
        found = conflicts(kv, rows, indexes, after, before)
        if found:
            raise UniqueViolation(found[0].constraint, after, found[0].existing)
        for change in _changes(rows, indexes, (before,), (after,)):
            kv.delete_many(change.gone)
            kv.put_many(change.rewritten + change.come)


def _apply(kv: WriteTransaction, changes: list[_Change]) -> bool:
    """Write changes; False when one collides with what is there (then some are written)."""
    for change in changes:
        if change.gone:
            kv.delete_many(change.gone)
        if change.rewritten:
            kv.put_many(change.rewritten, change.previous)
        if not change.come:
            continue
        if not change.checked:
            kv.put_many(change.come)
        elif kv.insert_many(change.come) is not None:
            return False
    return True


def _values(items: Sequence[Item]) -> list[bytes]:
    return [value for _, value in items]


def _changes(
    rows: RowStore, indexes: Sequence[IndexStore], old: Sequence[Row], new: Sequence[Row]
) -> list[_Change]:
    keys = rows.keys_of(new)
    old_keys = keys if rows.keep_keys(old, new) else rows.keys_of(old)
    items = list(zip(keys, rows.encode_many(new), strict=True))
    if old_keys == keys:
        changes = [_Change(None, rewritten=items, previous=rows.previous(old))]
    else:
        stays = list(map(eq, old_keys, keys))
        leaves = list(map(not_, stays))
        gone, come = list(compress(old_keys, leaves)), list(compress(items, leaves))
        changes = [_Change(None, gone, come, list(compress(items, stays)))]
    for index in indexes:
        if old_keys == keys and index.unchanged(old, new):
            continue
        before, after = index.aligned(old, old_keys), index.aligned(new, keys)
        if old_keys != keys or before != after:
            changes.append(_index_change(index, before, after, old_keys, keys))
    return changes


def _index_change(
    index: IndexStore,
    before: list[bytes | None],
    after: list[bytes | None],
    old_keys: list[bytes],
    keys: list[bytes],
) -> _Change:
    change = _Change(index)
    for was, entry, old_key, key in zip(before, after, old_keys, keys, strict=True):
        if was != entry:
            if was is not None:
                change.gone.append(was)
            if entry is not None:
                change.come.append((entry, key))
        elif entry is not None and old_key != key:
            # An entry of a unique index stays where it is and points at a row that moved.
            change.rewritten.append((entry, key))
    return change
