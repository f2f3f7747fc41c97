"""The handle of a store table: reads by scan, key, range; writes in batches.

A handle holds encoders and no rows; the same one serves every transaction.  Reads take their
bytes from the transaction's backend snapshot:

============  ===============================================================================
``scan``      the cached batches when the snapshot has the state that was cached, else decoded
              values of the whole range (left in the cache if they fit)
``point``     one get, one decode
``range``     of the primary key: a slice of the cached batches, else decoded values of a key
              range; of an index: its values are row keys, fetched in batches
``ranges``    many prefixes at once; all rows in one fetch
============  ===============================================================================

Within a writing transaction an iterator of batches is watched over, so that it goes on
giving the rows as they were when it began (``scans.py``).

Chapter: store-and-modules, sections 8 and 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from quereus_store.backends.contract import ReadTransaction
from quereus_store.catalog.layout import STATE, state_key
from quereus_store.codec import Bound, KeyEncoder, KeyRange, key_range
from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.modules.contract import (
    AccessPath,
    Batch,
    Comparison,
    Conflict,
    EngineServices,
    Row,
)
from quereus_store.schema.objects import TableSchema, UniqueConstraint, fold
from quereus_store.store import writes
from quereus_store.store.cache import BatchCache, Gathered
from quereus_store.store.indexes import AFTER_SUFFIX, IndexStore
from quereus_store.store.rows import RowStore
from quereus_store.store.slices import Slicer
from quereus_store.store.transaction import NO_STATE, StoreWriter, Transaction

FEW = 12
"""A range of fewer rows is read at once."""

FIRST = 64
"""So many rows of an index are fetched first, for whoever stops early, then more and more at once."""

_INCLUSIVE = frozenset((Comparison.GREATER_OR_EQUAL, Comparison.LESS_OR_EQUAL))


class StoreTable:
    """Access to the rows of one :class:`TableSchema` (the contract's ``Table``)."""

    def __init__(self, schema: TableSchema, services: EngineServices, cache: BatchCache | None) -> None:
        self.schema = schema
        self.rows = RowStore(schema, services)
        self._store = schema.storage_id
        self._state_key = state_key(self._store)
        self._cache = cache
        enforced: dict[str, UniqueConstraint] = {}
        for constraint in schema.unique_constraints:
            enforced.setdefault(fold(constraint.index), constraint)
        self.indexes = [
            IndexStore(schema, index, services, enforced.get(fold(index.name))) for index in schema.indexes
        ]
        self._by_name = {fold(index.index.name): index for index in self.indexes}
        self._slicer = Slicer.of_key(self.rows.keys.columns, self.rows.keys.positions)
        self._probe = self.rows.probe
        self._decode_one = self.rows.decode_one
        self._width = self.rows.width

    def index(self, name: str) -> IndexStore:
        """The index of that name."""
        return self._by_name[fold(name)]

    # --- reading ---------------------------------------------------------------------------------------

    def scan(self, transaction: Transaction, reverse: bool = False) -> Iterator[Batch]:
        """All rows in primary-key order."""
        kv = transaction.kv
        if self._cache is not None and not transaction.changed(self._store):
            changes, count = self._state(kv)
            cached = self._cache.get(self._store, changes)
            if cached is not None:
                return map(_reversed, reversed(cached)) if reverse else iter(cached)
            if not reverse:
                return transaction.watch(self._store, self._filling(kv, self._cache, changes, count))
        return transaction.watch(self._store, self._rows_between(kv, self._whole(), reverse))

    def _state(self, kv: ReadTransaction) -> tuple[int, int]:
        """Change counter and row count as last committed."""
        value = kv.get(self._state_key)
        return STATE.unpack(value) if value else NO_STATE

    def _whole(self) -> KeyRange:
        return self.rows.prefix, self.rows.end

    def _rows_between(self, kv: ReadTransaction, keys: KeyRange, reverse: bool) -> Iterator[Batch]:
        decode_many = self.rows.decode_many
        for values in kv.scan_values(*keys, reverse=reverse):
            yield decode_many(kv, values)

    def _filling(self, kv: ReadTransaction, cache: BatchCache, changes: int, count: int) -> Iterator[Batch]:
        """A scan that leaves its batches in the cache if they fit and it is read to the end."""
        batches = self._rows_between(kv, self._whole(), False)
        first = next(batches, None)
        if first is None:
            return
        size = cache.reserve(self._store, first, count)
        if size is None:
            yield first
            del first
            yield from batches
            return
        gathered = []
        for batch in chain((first,), batches):
            gathered.append(batch)
            yield batch
        cache.put(self._store, changes, gathered, size)

    def point(self, transaction: Transaction, key: tuple[Any, ...]) -> Row | None:
        """The row of a primary key."""
        kv = transaction.kv
        value = kv.get(self._probe(key))
        if value is None:
            return None
        # RowStore.decode at the place where a call more would be felt.
        try:
            row = self._decode_one(value)
            if len(row) == self._width:
                return row
        except (Error, TypeError):
            pass
        raise self.rows.corrupt(kv, value)

    def points(self, transaction: Transaction, keys: Sequence[tuple[Any, ...]]) -> list[Row | None]:
        """The row, or None, of each primary key."""
        return self._fetch(transaction.kv, self.rows.probes(keys))

    def _fetch(self, kv: ReadTransaction, keys: Sequence[bytes]) -> list[Row | None]:
        values = kv.get_many(keys)
        if None not in values:
            return self.rows.decode_many(kv, values)  # type: ignore[arg-type, return-value]
        present = iter(self.rows.decode_many(kv, [value for value in values if value is not None]))
        return [None if value is None else next(present) for value in values]

    def range(
        self,
        transaction: Transaction,
        path: AccessPath,
        prefix: tuple[Any, ...],
        lower: Any,
        upper: Any,
    ) -> Iterable[Batch]:
        """The rows of a RANGE path in key order; few of them are all there at once, in a tuple."""
        kv = transaction.kv
        if path.index is None:
            return self._primary_range(transaction, path, prefix, lower, upper)
        index = self._by_name.get(path.index) or self._by_name[fold(path.index)]
        if path.equal < index.width:
            start, stop = key_range(index.keys, prefix[: path.equal], *_bounds(path, lower, upper))
        else:
            start = index.probe(prefix)
            if index.unique and None not in prefix:
                row_key = kv.get(start)
                return () if row_key is None else (self._entry_rows(kv, index, (row_key,)),)
            stop = start + AFTER_SUFFIX
        row_keys = kv.first_values(start, stop, FEW, reverse=path.reverse)
        if len(row_keys) < FEW:
            return (self._entry_rows(kv, index, row_keys),) if row_keys else ()
        return transaction.watch(self._store, self._indexed_between(kv, index, (start, stop), path.reverse))

    def _primary_range(
        self, transaction: Transaction, path: AccessPath, prefix: tuple[Any, ...], lower: Any, upper: Any
    ) -> Iterable[Batch]:
        kv, cache, slicer = transaction.kv, self._cache, self._slicer
        if (
            cache is None
            or slicer is None
            or transaction.changed(self._store)
            or not slicer.accepts(path, prefix, lower, upper)
        ):
            keys = key_range(self.rows.keys, prefix[: path.equal], *_bounds(path, lower, upper))
            few = self._few_rows(kv, keys, path.reverse)
            if few is not None:
                return few
            return transaction.watch(self._store, self._rows_between(kv, keys, path.reverse))
        batches = None
        if cache.holds(self._store):
            batches = cache.get(self._store, self._state(kv)[0])
        if batches is None:
            keys = key_range(self.rows.keys, prefix[: path.equal], *_bounds(path, lower, upper))
            few = self._few_rows(kv, keys, path.reverse)
            if few is not None:
                return few
            batches = self._gathered(kv, cache)
            if batches is None:
                return transaction.watch(self._store, self._noticing(kv, cache, keys, path.reverse))
        return slicer.rows(batches, path, prefix, lower, upper)

    def _few_rows(self, kv: ReadTransaction, keys: KeyRange, reverse: bool) -> Iterable[Batch] | None:
        """The rows of a range; None if they are many."""
        values = kv.first_values(*keys, FEW, reverse=reverse)
        if len(values) >= FEW:
            return None
        return (self.rows.decode_many(kv, values),) if values else ()

    def _gathered(self, kv: ReadTransaction, cache: BatchCache) -> Gathered | None:
        """The batches of the whole table, read if they are wanted in the cache and fit."""
        if not cache.holds(self._store):
            return None
        changes, count = self._state(kv)
        if not cache.is_wanted(self._store, changes):
            return None
        for _ in self._filling(kv, cache, changes, count):
            pass
        return cache.get(self._store, changes)

    def _noticing(
        self, kv: ReadTransaction, cache: BatchCache, keys: KeyRange, reverse: bool
    ) -> Iterator[Batch]:
        """The rows of a range; the cache is told if they are most of the table."""
        changes, count = self._state(kv)
        read = 0
        for batch in self._rows_between(kv, keys, reverse):
            read += len(batch)
            yield batch
        if read * 2 >= count:
            cache.want(self._store, changes)

    def _indexed_between(
        self, kv: ReadTransaction, index: IndexStore, keys: KeyRange, reverse: bool
    ) -> Iterator[Batch]:
        size = FIRST
        for row_keys in kv.scan_values(*keys, reverse=reverse):
            begin = 0
            while begin < len(row_keys):
                yield self._entry_rows(kv, index, row_keys[begin : begin + size])
                begin += size
                size *= 2

    def _entry_rows(self, kv: ReadTransaction, index: IndexStore, row_keys: Sequence[bytes]) -> Batch:
        """The rows that index entries name; CORRUPT when there is no such row."""
        if len(row_keys) == 1 and (value := kv.get(row_keys[0])) is not None:
            return [self.rows.decode(kv, value)]
        values = kv.get_many(row_keys)
        if None in values:
            key = self.rows.describe(row_keys[values.index(None)])
            raise sql_error(
                StatusCode.CORRUPT,
                f"index {index.index.name} of table {self.schema.qualified_name} is corrupt: "
                f"it names a row with key {key}, which does not exist",
            )
        return self.rows.decode_many(kv, values)  # type: ignore[arg-type]

    def ranges(
        self, transaction: Transaction, path: AccessPath, prefixes: Sequence[tuple[Any, ...]]
    ) -> list[list[Row]]:
        """The rows of each prefix, in key order."""
        kv = transaction.kv
        if path.index is None:
            found = [self._collect(kv, self.rows.keys, prefix, path) for prefix in prefixes]
            rows = self.rows.decode_many(kv, list(chain.from_iterable(found)))
        else:
            index = self._by_name[fold(path.index)]
            found = self._row_keys(kv, index, path, prefixes)
            rows = self._entry_rows(kv, index, list(chain.from_iterable(found)))
        source = iter(rows)
        return [list(islice(source, len(values))) for values in found]

    def _row_keys(
        self,
        kv: ReadTransaction,
        index: IndexStore,
        path: AccessPath,
        prefixes: Sequence[tuple[Any, ...]],
    ) -> list[list[bytes]]:
        """The keys of the rows that an index has under each prefix."""
        if path.equal < index.width:
            return [self._collect(kv, index.keys, prefix, path) for prefix in prefixes]
        own = list(map(index.probe, prefixes))
        if index.unique and not any(None in prefix for prefix in prefixes):
            return [[] if row_key is None else [row_key] for row_key in kv.get_many(own)]
        return [_values_between(kv, (key, key + AFTER_SUFFIX), path.reverse) for key in own]

    @staticmethod
    def _collect(
        kv: ReadTransaction, encoder: KeyEncoder, prefix: tuple[Any, ...], path: AccessPath
    ) -> list[bytes]:
        return _values_between(kv, key_range(encoder, prefix[: path.equal]), path.reverse)

    def count(self, transaction: Transaction) -> int:
        """The number of rows, from the table's state record."""
        return transaction.row_count(self._store)

    def version(self, transaction: Transaction) -> int:
        """The table's change counter, as the transaction will leave it."""
        return self._state(transaction.kv)[0] + transaction.changed(self._store)

    def conflicts(self, transaction: Transaction, row: Row, replacing: Row | None = None) -> list[Conflict]:
        """The existing rows that ``row`` would collide with, primary key first."""
        return writes.conflicts(transaction.kv, self.rows, self.indexes, row, replacing)

    # --- writing ---------------------------------------------------------------------------------------

    def insert(self, transaction: StoreWriter, rows: Sequence[Row]) -> None:
        """Add rows; raises UniqueViolation at the first that is in the way, and then adds none."""
        if rows:
            writes.insert(_writer(transaction), self.rows, self.indexes, rows)

    def delete(self, transaction: StoreWriter, rows: Sequence[Row]) -> None:
        """Remove these rows, given as stored."""
        writes.delete(_writer(transaction), self.rows, self.indexes, rows)

    def delete_keys(self, transaction: StoreWriter, keys: Sequence[tuple[Any, ...]]) -> int:
        """Remove the rows of these primary keys from a table without indexes; how many there were."""
        return writes.delete_keys(_writer(transaction), self.rows, self.rows.probes(keys))

    def update(self, transaction: StoreWriter, old: Sequence[Row], new: Sequence[Row]) -> None:
        """Replace each old row by its new one; raises UniqueViolation, and then replaces none."""
        if old:
            writes.update(_writer(transaction), self.rows, self.indexes, old, new)


def _values_between(kv: ReadTransaction, keys: KeyRange, reverse: bool) -> list[bytes]:
    values = kv.first_values(*keys, FEW, reverse=reverse)
    return values if len(values) < FEW else list(chain.from_iterable(kv.scan_values(*keys, reverse=reverse)))


def _reversed(batch: Batch) -> Batch:
    return batch[::-1]


def _bounds(path: AccessPath, lower: Any, upper: Any) -> tuple[Bound | None, Bound | None]:
    return (
        None if path.lower is None else Bound(lower, path.lower in _INCLUSIVE),
        None if path.upper is None else Bound(upper, path.upper in _INCLUSIVE),
    )


def _writer(transaction: StoreWriter) -> StoreWriter:
    if not transaction.writable:
        raise sql_error(StatusCode.MISUSE, "a read transaction cannot write")
    return transaction
