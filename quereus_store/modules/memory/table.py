"""The handle of a memory table: reads and writes of one schema's rows.

A handle holds no rows.  It knows the keys of the table and its indexes
(:mod:`~quereus_store.modules.memory.keys`) and finds the trees in the transaction it is given.

Writes come in two speeds.  A few rows are checked and written one after the other.  A larger
batch is sorted once per tree and merged chunk by chunk; where that meets a key that is taken, the
batch is undone and repeated row by row, which finds the first offender in the order given, as the
contract asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress, islice
from operator import eq, ne
from typing import Any, TypeAlias

from quereus_store.modules.contract import (
    AccessPath,
    Batch,
    Conflict,
    EngineServices,
    Row,
    RowFunction,
    UniqueViolation,
    predicate_function,
)
from quereus_store.modules.memory.chunks import LATE, DuplicateKey, Key, gather, is_sorted, sort_by_key
from quereus_store.modules.memory.keys import KeyOf, index_key_of, primary_key_of
from quereus_store.modules.memory.sorted_rows import SortedRows
from quereus_store.modules.memory.transactions import Snapshot, TableState, Writer
from quereus_store.schema.objects import IndexSchema, TableSchema, UniqueConstraint, fold

AnyTransaction: TypeAlias = Snapshot | Writer

FEW = 8
"""Up to so many rows are written singly."""

CACHED = 2_000
"""So many rows and their new images stay in the processor's cache."""


class IndexHandle:
    """An index of a table: its key and which rows it holds.

    ``own`` gives the index's half of a row's key, None for a row outside the predicate.
    """

    def __init__(self, schema: TableSchema, index: IndexSchema, services: EngineServices) -> None:
        self.index = index
        self.storage_id = index.storage_id
        self.key = index_key_of(schema, index, services)
        self.width = len(index.parts)
        self.predicate: RowFunction | None = (
            None if index.where is None else predicate_function(services, schema, index.where)
        )
        self.own: Callable[[Row], Key | None] = self.key.row if self.predicate is None else self._own_if_held

    def _own_if_held(self, row: Row) -> Key | None:
        assert self.predicate is not None
        return self.key.row(row) if self.predicate((row,))[0] else None

    def entries(
        self, rows: Sequence[Row], primary_keys: list[Key]
    ) -> tuple[list[Key], list[Key], Sequence[Row]]:
        """Own halves, primary keys and rows of those rows that the index holds."""
        if self.predicate is not None:
            held = self.predicate(rows)
            rows = list(compress(rows, held))
            primary_keys = list(compress(primary_keys, held))
        return self.key.rows(rows), primary_keys, rows

    def aligned(self, rows: Sequence[Row]) -> list[Key | None]:
        """Own halves of all rows, None for those outside the predicate."""
        keys: list[Key | None] = self.key.rows(rows)
        if self.predicate is not None:
            keys = [key if held else None for key, held in zip(keys, self.predicate(rows), strict=True)]
        return keys


class MemoryTable:
    """Access to the rows of one :class:`TableSchema` (the contract's ``Table``)."""

    def __init__(self, schema: TableSchema, services: EngineServices) -> None:
        self.schema = schema
        self._id = schema.storage_id
        self._key = primary_key_of(schema, services)
        self._indexes = [IndexHandle(schema, index, services) for index in schema.indexes]
        self._key_of = self._key.row
        self._owns = [(handle.storage_id, handle.own) for handle in self._indexes]
        self._by_name = {fold(handle.index.name): handle for handle in self._indexes}
        self._unique: dict[int, UniqueConstraint] = {}
        for constraint in schema.unique_constraints:
            handle = self._by_name[fold(constraint.index)]
            self._unique.setdefault(handle.storage_id, constraint)

    # --- reading ---------------------------------------------------------------------------------------

    def scan(self, transaction: AnyTransaction, reverse: bool = False) -> Iterator[Batch]:
        """All rows in primary-key order; the batches are the table's own lists."""
        return transaction.state(self._id).primary.all_rows(reverse)

    def point(self, transaction: AnyTransaction, key: tuple[Any, ...]) -> Row | None:
        """The row of a primary key."""
        return transaction.state(self._id).primary.get(self._key.key(key))

    def points(self, transaction: AnyTransaction, keys: Sequence[tuple[Any, ...]]) -> list[Row | None]:
        """The row, or None, of each primary key."""
        return transaction.state(self._id).primary.get_many(list(map(self._key.key, keys)))

    def range(
        self,
        transaction: AnyTransaction,
        path: AccessPath,
        prefix: tuple[Any, ...],
        lower: Any,
        upper: Any,
    ) -> Iterable[Batch]:
        """The rows of a RANGE path in key order; few of them are all there at once, in a tuple."""
        state = transaction.state(self._id)
        if path.index is None:
            key, tree = self._key, state.primary
        else:
            handle = self._by_name.get(path.index) or self._by_name[fold(path.index)]
            key, tree = handle.key, state.indexes[handle.storage_id]
            if path.equal == handle.width:
                rows = tree.equal(key.key(prefix))
                if path.reverse:
                    rows.reverse()
                return (rows,) if rows else ()
        return tree.between(*key.span(tree, path, prefix, lower, upper), path.reverse)

    def ranges(
        self, transaction: AnyTransaction, path: AccessPath, prefixes: Sequence[tuple[Any, ...]]
    ) -> list[list[Row]]:
        """The rows of each prefix, in key order."""
        key, tree = self._way(transaction, path)
        if path.equal == len(key.parts) and key.nested:
            found = [tree.equal(key.key(prefix)) for prefix in prefixes]
        else:
            found = [tree.collect(*key.span(tree, path, prefix, None, None)) for prefix in prefixes]
        if path.reverse:
            for rows in found:
                rows.reverse()
        return found

    def _way(self, transaction: AnyTransaction, path: AccessPath) -> tuple[KeyOf, SortedRows]:
        state = transaction.state(self._id)
        if path.index is None:
            return self._key, state.primary
        handle = self._by_name[fold(path.index)]
        return handle.key, state.indexes[handle.storage_id]

    def count(self, transaction: AnyTransaction) -> int:
        """The number of rows, kept up to date by the tree."""
        return transaction.state(self._id).primary.count

    def conflicts(
        self, transaction: AnyTransaction, row: Row, replacing: Row | None = None
    ) -> list[Conflict]:
        """The existing rows that ``row`` would collide with, primary key first."""
        state = transaction.state(self._id)
        own_key = None if replacing is None else self._key.row(replacing)
        found = []
        key = self._key.row(row)
        existing = state.primary.get(key)
        if existing is not None and (replacing is None or key != own_key):
            found.append(Conflict(None, existing))
        for handle, constraint in self._checked():
            own = handle.own(row)
            if own is None or handle.key.has_null(own):
                continue
            existing = state.indexes[handle.storage_id].first_equal(own)
            if existing is not None and (replacing is None or self._key.row(existing) != own_key):
                found.append(Conflict(constraint, existing))
        return found

    def _checked(self) -> Iterator[tuple[IndexHandle, UniqueConstraint]]:
        for handle in self._indexes:
            constraint = self._unique.get(handle.storage_id)
            if constraint is not None:
                yield handle, constraint

    # --- insert ----------------------------------------------------------------------------------------

    def insert(self, transaction: Writer, rows: Sequence[Row]) -> None:
        """Add rows; raises UniqueViolation at the first that is in the way, and then adds none."""
        state = transaction.writable_state(self._id)
        if len(rows) == 1:
            self._insert_one(transaction, state, rows[0])
        elif len(rows) <= FEW or not self._insert_many(transaction, state, rows):
            with _all_or_nothing(transaction):
                for row in rows:
                    self._insert_one(transaction, state, row)

    def _insert_one(self, transaction: Writer, state: TableState, row: Row) -> None:
        key = self._key_of(row)
        # Index expressions may fail, so they come before the first change.
        owns = [own_of(row) for _, own_of in self._owns]
        primary = state.primary
        existing = primary.insert(key, row)
        if existing is not None:
            raise UniqueViolation(None, row, existing)
        if owns:
            if self._unique:
                try:
                    self._check_row(state, row, owns)
                except UniqueViolation:
                    primary.delete(key)
                    raise
            for (storage_id, _), own in zip(self._owns, owns, strict=True):
                if own is not None:
                    tree = state.indexes[storage_id]
                    tree.insert((own, key), row)
                    if transaction.notes is not None:
                        transaction.notes.append((SortedRows.delete, tree, (own, key)))
        if transaction.notes is not None:
            transaction.notes.append((SortedRows.delete, primary, key))

    def _check_row(self, state: TableState, row: Row, owns: Sequence[Key | None]) -> None:
        """Raise UniqueViolation if a UNIQUE key of the row (None: not to be checked) is taken."""
        for handle, own in zip(self._indexes, owns, strict=True):
            constraint = self._unique.get(handle.storage_id)
            if constraint is None or own is None or handle.key.has_null(own):
                continue
            existing = state.indexes[handle.storage_id].first_equal(own)
            if existing is not None:
                raise UniqueViolation(constraint, row, existing)

    def _insert_many(self, transaction: Writer, state: TableState, rows: Sequence[Row]) -> bool:
        """Merge a batch; False, and nothing changed, if some key is taken."""
        keys, ordered = sort_by_key(self._key.rows(rows), rows)
        entries = []
        for handle in self._indexes:
            tree = state.indexes[handle.storage_id]
            own, primary_keys, held = _sorted_entries(*handle.entries(ordered, keys))
            if handle.storage_id in self._unique and _any_taken(tree, handle.key.without_nulls(own)):
                return False
            entries.append((tree, list(zip(own, primary_keys, strict=True)), held))
        try:
            transaction.log(*state.primary.merge(keys, ordered))
        except DuplicateKey:
            return False
        for tree, index_keys, held in entries:
            transaction.log(*tree.merge(index_keys, held, distinct=True))
        return True

    # --- delete ----------------------------------------------------------------------------------------

    def delete(self, transaction: Writer, rows: Sequence[Row]) -> None:
        """Remove rows, given as stored."""
        state = transaction.writable_state(self._id)
        if len(rows) > FEW:
            self._delete_many(transaction, state, rows)
            return
        for row in rows:
            self._delete_one(transaction, state, row)

    def _delete_one(self, transaction: Writer, state: TableState, row: Row) -> None:
        key = self._key_of(row)
        owns = [(storage_id, own_of(row)) for storage_id, own_of in self._owns]
        notes = transaction.notes
        state.primary.delete(key)
        if notes is not None:
            notes.append((SortedRows.insert, state.primary, key, row))
        for storage_id, own in owns:
            if own is not None:
                tree = state.indexes[storage_id]
                tree.delete((own, key))
                if notes is not None:
                    notes.append((SortedRows.insert, tree, (own, key), row))

    def _delete_many(self, transaction: Writer, state: TableState, rows: Sequence[Row]) -> None:
        keys, ordered = sort_by_key(self._key.rows(rows), rows)
        gone = []
        for handle in self._indexes:
            own, primary_keys, _ = _sorted_entries(*handle.entries(ordered, keys))
            gone.append((state.indexes[handle.storage_id], list(zip(own, primary_keys, strict=True))))
        transaction.log(*state.primary.remove(keys))
        for tree, entries in gone:
            transaction.log(*tree.remove(entries))

    # --- update ----------------------------------------------------------------------------------------

    def update(self, transaction: Writer, old: Sequence[Row], new: Sequence[Row]) -> None:
        """Replace rows in order; raises UniqueViolation at the first in the way, and then changes none."""
        state = transaction.writable_state(self._id)
        if len(old) == 1:
            self._update_one(transaction, state, old[0], new[0])
        elif len(old) <= FEW or not self._update_many(transaction, state, old, new):
            with _all_or_nothing(transaction):
                for old_row, new_row in zip(old, new, strict=True):
                    self._update_one(transaction, state, old_row, new_row)

    def _update_one(self, transaction: Writer, state: TableState, old: Row, new: Row) -> None:
        old_key, key = self._key_of(old), self._key_of(new)
        primary = state.primary
        if key != old_key:
            existing = primary.get(key)
            if existing is not None:
                raise UniqueViolation(None, new, existing)
        changes = [(storage_id, own_of(old), own_of(new)) for storage_id, own_of in self._owns]
        if self._unique:
            self._check_row(state, new, [own if own != was else None for _, was, own in changes])
        notes = transaction.notes
        if key == old_key:
            primary.replace(key, new)
            if notes is not None:
                notes.append((SortedRows.replace, primary, key, old))
        else:
            _move_entry(notes, primary, old_key, key, old, new)
        for storage_id, was, own in changes:
            tree = state.indexes[storage_id]
            if own == was and key == old_key:
                if own is not None:
                    entry = (own, key)
                    tree.replace(entry, new)
                    if notes is not None:
                        notes.append((SortedRows.replace, tree, entry, old))
            else:
                left = None if was is None else (was, old_key)
                _move_entry(notes, tree, left, None if own is None else (own, key), old, new)

    def _update_many(
        self, transaction: Writer, state: TableState, old: Sequence[Row], new: Sequence[Row]
    ) -> bool:
        """Update a batch whose new keys meet no existing one; False, and nothing changed, otherwise."""
        old_keys: list[Key] = []
        keys: list[Key] = []
        halves: list[tuple[IndexHandle, list[Key | None], list[Key | None]]] = [
            (handle, [], []) for handle in self._indexes
        ]
        for start in range(0, len(old), CACHED):
            # Piece by piece, so that a row is still in the processor's cache when its next key is made.
            was, becomes = old[start : start + CACHED], new[start : start + CACHED]
            old_keys += self._key.rows(was)
            keys += self._key.rows(becomes)
            for handle, before, after in halves:
                before += handle.aligned(was)
                after += handle.aligned(becomes)
        stay = old_keys == keys
        if not stay and any(
            state.primary.get(key) is not None for key in compress(keys, map(ne, old_keys, keys))
        ):
            return False
        for handle, before, after in halves:
            if handle.storage_id in self._unique and before != after:
                changed = [own for own in compress(after, map(ne, before, after)) if own is not None]
                tree = state.indexes[handle.storage_id]
                if _any_taken(tree, sorted(handle.key.without_nulls(changed))):
                    return False
        token = transaction.savepoint()
        try:
            _replace_entries(transaction, state.primary, old_keys, keys, new)
            for handle, before, after in halves:
                tree = state.indexes[handle.storage_id]
                if stay and before == after:
                    _follow(transaction, state.primary, tree, before, keys, new)
                else:
                    _replace_entries(transaction, tree, _nested(before, old_keys), _nested(after, keys), new)
        except DuplicateKey:
            transaction.rollback_to(token)
            return False
        finally:
            transaction.release(token)
        return True

    # --- whole trees -----------------------------------------------------------------------------------

    def fresh_state(self, rows: list[Row], owner: object) -> TableState:
        """The trees of a table that holds just these rows; raises UniqueViolation."""
        keys, ordered = sort_by_key(self._key.rows(rows), rows)
        primary = SortedRows()
        try:
            primary.merge(keys, ordered)
        except DuplicateKey as duplicate:
            raise UniqueViolation(None, duplicate.row, duplicate.existing) from None
        indexes = {
            handle.storage_id: _index_tree(handle, self._unique.get(handle.storage_id), keys, ordered)
            for handle in self._indexes
        }
        return TableState(primary, indexes, owner)

    def index_tree(self, state: TableState, name: str) -> SortedRows:
        """Build the tree of one of the schema's indexes from the rows; raises UniqueViolation."""
        handle = self._by_name[fold(name)]
        chunks, _, _ = state.primary.freeze()
        keys = [key for chunk in chunks for key in chunk.keys]
        rows = [row for chunk in chunks for row in chunk.rows]
        return _index_tree(handle, self._unique.get(handle.storage_id), keys, rows)


def _index_tree(
    handle: IndexHandle, constraint: UniqueConstraint | None, keys: list[Key], rows: list[Row]
) -> SortedRows:
    own, primary_keys, held = _sorted_entries(*handle.entries(rows, keys))
    if constraint is not None:
        for place, same in enumerate(map(eq, own, islice(own, 1, None))):
            if same and not handle.key.has_null(own[place]):
                raise UniqueViolation(constraint, held[place + 1], held[place])
    tree = SortedRows(nested=True)
    tree.merge(list(zip(own, primary_keys, strict=True)), held, distinct=True)
    return tree


def _sorted_entries(
    own: list[Key], primary_keys: list[Key], rows: Sequence[Row]
) -> tuple[list[Key], list[Key], list[Row]]:
    """Entries that come in primary-key order in the order of their index."""
    # Stable, so entries with equal own halves stay in primary-key order; and sorting the halves
    # alone compares plain values, not tuples.
    order = sorted(range(len(own)), key=own.__getitem__)
    return gather(own, order), gather(primary_keys, order), gather(rows, order)


def _any_taken(tree: SortedRows, own: list[Key]) -> bool:
    """Whether any of these own halves (sorted, no NULL) is repeated or in the index already."""
    if any(map(eq, own, islice(own, 1, None))):
        return True
    if not tree.lasts or not own or tree.lasts[-1][0] < own[0]:
        return False
    return any(tree.first_equal(key) is not None for key in own)


def _nested(own: list[Key | None], primary_keys: list[Key]) -> list[Key | None]:
    return [None if half is None else (half, key) for half, key in zip(own, primary_keys, strict=True)]


def _move_entry(
    notes: list[tuple[Any, ...]] | None,
    tree: SortedRows,
    old_key: Key | None,
    key: Key | None,
    old: Row,
    new: Row,
) -> None:
    """Change the row and the key of an entry; a key of None stands for no entry."""
    if old_key is not None:
        tree.delete(old_key)
        if notes is not None:
            notes.append((SortedRows.insert, tree, old_key, old))
    if key is not None:
        tree.insert(key, new)
        if notes is not None:
            notes.append((SortedRows.delete, tree, key))


def _replace_entries(
    transaction: Writer,
    tree: SortedRows,
    old_keys: list[Any],
    keys: list[Any],
    rows: Sequence[Row],
) -> None:
    """Change many rows of a tree, where a key of None stands for no entry.

    Raises DuplicateKey with the tree half changed.
    """
    log = transaction.log
    if old_keys == keys and None not in keys:
        log(*tree.replace_many(*sort_by_key(keys, rows)))
        return
    same = [key is not None and key == before for before, key in zip(old_keys, keys, strict=True)]
    gone = [key for key, stays in zip(old_keys, same, strict=True) if not stays and key is not None]
    come = [not stays and key is not None for key, stays in zip(keys, same, strict=True)]
    log(*tree.remove(sorted(gone)))
    log(*tree.merge(*sort_by_key(list(compress(keys, come)), list(compress(rows, come)))))
    log(*tree.replace_many(*sort_by_key(list(compress(keys, same)), list(compress(rows, same)))))


def _follow(
    transaction: Writer,
    primary: SortedRows,
    tree: SortedRows,
    own: list[Any],
    keys: list[Key],
    rows: Sequence[Row],
) -> None:
    """Put new rows into an index in which their entries stay."""
    if None in own:
        held = [half is not None for half in own]
        own, keys, rows = list(compress(own, held)), list(compress(keys, held)), list(compress(rows, held))
    if len(own) * LATE > tree.count and not is_sorted(own):
        transaction.log(*tree.take_rows_of(primary))
    elif own:
        transaction.log(*tree.replace_many(*sort_by_key(list(zip(own, keys, strict=True)), rows)))


@contextmanager
def _all_or_nothing(transaction: Writer) -> Iterator[None]:
    """Take back what the block wrote if it raises."""
    token = transaction.savepoint()
    try:
        yield
    except BaseException:
        transaction.rollback_to(token)
        raise
    finally:
        transaction.release(token)
