"""Building indexes and carrying tables over to a new schema.

An **index** is built from the rows in batches: entries are gathered up to a bound, sorted, and
written in key order (which is what backends write fastest; an index that fits the bound is one
sorted run of appends).  A unique index finds equal entries in the same pass.

A **rewrite** streams the rows through the engine's function.  As long as a row's key stays
the same, its value is replaced in place; from the first batch whose keys differ on, rows go to a
new store (where keys that collide are refused), and the old one is erased.  An index whose entries
came out equal for every batch is left alone, any other is built anew: so ADD COLUMN touches
no index, and nobody has to reason about which change affects which index.

Memory stays bounded in both, whatever the size of the table.  Chapter: store-and-modules, section 9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quereus_store.backends.contract import Item, WriteTransaction
from quereus_store.modules.contract import Batch, Row, UniqueViolation
from quereus_store.store.indexes import IndexStore
from quereus_store.store.rows import RowStore
from quereus_store.store.writes import row_at

Transform = Callable[[Batch], Batch]

ENTRIES_AT_ONCE = 200_000
"""How many index entries are sorted together while an index is built."""


# --- indexes --------------------------------------------------------------------------------------------


def build_index(kv: WriteTransaction, rows: RowStore, index: IndexStore) -> None:
    """Make the entries of an index from all rows; UniqueViolation where they are not unique."""
    pending: list[Item] = []
    for items in kv.scan(rows.prefix, rows.end):
        keys = [key for key, _ in items]
        batch = rows.decode_many(kv, [value for _, value in items])
        pending += index.entries(batch, keys).items
        if len(pending) >= ENTRIES_AT_ONCE:
            _write_entries(kv, rows, index, pending)
            pending = []
    _write_entries(kv, rows, index, pending)
    if index.constraint is not None and not index.unique:
        check_unique(kv, rows, index)


def _write_entries(kv: WriteTransaction, rows: RowStore, index: IndexStore, items: list[Item]) -> None:
    items.sort()
    if not index.unique:
        kv.put_many(items)
        return
    stop = kv.insert_many(items)
    if stop is not None:
        entry, row_key = items[stop]
        existing = kv.get(entry)
        raise _violation(kv, rows, index, row_key, existing)


def check_unique(kv: WriteTransaction, rows: RowStore, index: IndexStore) -> None:
    """Refuse equal entries of an index that admits them: a constraint is to be enforced through it."""
    last_own, last_row_key = b"", b""
    for items in kv.scan(index.prefix, index.end):
        for entry, row_key in items:
            own = entry[: -len(row_key)]
            if own == last_own:
                row = row_at(kv, rows, row_key)
                if row is not None and index.checked_key(row) is not None:
                    raise _violation(kv, rows, index, row_key, last_row_key)
            last_own, last_row_key = own, row_key


def _violation(
    kv: WriteTransaction, rows: RowStore, index: IndexStore, row_key: bytes, existing: bytes | None
) -> UniqueViolation:
    row = row_at(kv, rows, row_key)
    assert row is not None
    return UniqueViolation(index.constraint, row, None if existing is None else row_at(kv, rows, existing))


# --- rewriting ------------------------------------------------------------------------------------------


def rewrite_in_place(
    kv: WriteTransaction,
    old: RowStore,
    new: RowStore,
    transform: Transform | None,
    pairs: list[tuple[IndexStore, IndexStore]],
) -> tuple[list[tuple[IndexStore, IndexStore]], bytes | None]:
    """Replace the values of rows whose keys stay.

    ``pairs`` are indexes as they were and as they shall be.  Returns those whose entries came out equal,
    and the key of the first row that has to move with all after it (None: no row has).
    """
    for items in kv.scan(old.prefix, old.end):
        keys = [key for key, _ in items]
        before, after = _transformed(kv, old, [value for _, value in items], transform)
        if new.keys_of(after) != keys:
            return [], keys[0]
        kv.put_many(list(zip(keys, new.encode_many(after), strict=True)))
        pairs = [
            (was, shall) for was, shall in pairs if was.aligned(before, keys) == shall.aligned(after, keys)
        ]
    return pairs, None


def move_rows(
    kv: WriteTransaction, old: RowStore, new: RowStore, transform: Transform | None, start: bytes
) -> None:
    """Fill a new store with a table's rows; those before ``start`` have their new values already.

    Raises UniqueViolation where two rows get one key.
    """
    for items in kv.scan(old.prefix, start):
        _add_rows(kv, new, new.decode_many(kv, [value for _, value in items]))
    for items in kv.scan(start, old.end):
        _add_rows(kv, new, _transformed(kv, old, [value for _, value in items], transform)[1])
    kv.delete_range(old.prefix, old.end)


def _transformed(
    kv: WriteTransaction, old: RowStore, values: Sequence[bytes], transform: Transform | None
) -> tuple[Batch, Batch]:
    before = old.decode_many(kv, values)
    return before, before if transform is None else transform(before)


def _add_rows(kv: WriteTransaction, new: RowStore, rows: list[Row]) -> None:
    keys = new.keys_of(rows)
    stop = kv.insert_many(list(zip(keys, new.encode_many(rows), strict=True)))
    if stop is not None:
        raise UniqueViolation(None, rows[stop], row_at(kv, new, keys[stop]))
