"""The store module: the tables of a database on one key-value backend.

It is a module like any third party's: the engine speaks to it through the contract only.
Everything it keeps lives in the backend's key space (``catalog/layout.py`` has the map), and a
commit is one atomic commit of the backend: rows, indexes, counts and catalog together.  So all
of it is transactional, schema changes included.

A write transaction that was preceded by reads of the same transaction is refused (BUSY)
when another one committed in between: it would decide on rows that are no longer there.

Chapter: store-and-modules, sections 5 to 9, 13 and 15.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from quereus_store.backends.contract import Backend, WriteTransaction
from quereus_store.catalog.layout import notes_prefix, statistics_key, successor
from quereus_store.catalog.meta import allocate_store, read_head, read_marker, write_marker
from quereus_store.catalog.statistics import read_statistics, write_statistics
from quereus_store.catalog.storage import StoredCatalog
from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.modules.access import plan_access
from quereus_store.modules.contract import (
    AccessPlan,
    AccessRequest,
    Batch,
    DdlTransactionality,
    EngineServices,
    LoadedCatalog,
    UniqueViolation,
    stale_snapshot,
)
from quereus_store.schema.objects import Catalog, IndexSchema, RowLayout, TableSchema
from quereus_store.store.building import (
    build_index,
    check_unique,
    move_rows,
    rewrite_in_place,
)
from quereus_store.store.cache import DEFAULT_CACHE_SIZE, BatchCache
from quereus_store.store.indexes import IndexStore
from quereus_store.store.layouts import appended, retired
from quereus_store.store.table import StoreTable
from quereus_store.store.transaction import (
    StoreReader,
    StoreWriter,
    Transaction,
    all_or_nothing,
    table_state,
)

_HANDLES = 1024
"""How many table handles are kept before the cache of handles starts anew."""


class StoreModule:
    """Tables and catalog on a backend (contract: ``Module`` and ``PersistentCatalog``).

    The backend must hold a database already (:func:`quereus_store.store.open.open_store`).
    ``cache_size`` bounds the decoded batches that are kept, in bytes; 0 keeps none.  With ``attached`` its
    catalog is the schema of that name in another database's.
    """

    persistent = True
    ddl_transactionality = DdlTransactionality.TRANSACTIONAL

    def __init__(
        self,
        backend: Backend,
        *,
        cache_size: int = DEFAULT_CACHE_SIZE,
        name: str = "store",
        attached: str | None = None,
    ) -> None:
        self.name = name
        self.attached = attached
        self.backend = backend
        self.cache = BatchCache(cache_size) if cache_size > 0 else None
        self._services: EngineServices | None = None
        self._catalog: StoredCatalog | None = None
        self._handles: dict[int, StoreTable] = {}

    def attach(self, services: EngineServices) -> None:
        """Take what the engine lends; once per module."""
        self._services = services
        self._catalog = StoredCatalog(self.name, services, self.attached)

    def close(self) -> None:
        """Close the backend and forget what was cached."""
        self.backend.close()
        self._handles.clear()
        if self.cache is not None:
            self.cache.clear()

    # --- transactions ----------------------------------------------------------------------------------

    def begin_read(self) -> StoreReader:
        """Pin the last committed state."""
        return StoreReader(self.backend.read())

    def begin_write(
        self, timeout: float, snapshot: Transaction | None = None, durable: bool = True
    ) -> StoreWriter:
        """Become the writer; BUSY when another one is, or when ``snapshot`` is no longer the last state."""
        seen = None if snapshot is None else read_head(snapshot.kv)
        kv = self.backend.write(timeout)
        try:
            writer = StoreWriter(kv, durable)
            if seen is not None and seen != writer.head:
                raise stale_snapshot(self.name)
        except BaseException:
            kv.abort()
            raise
        return writer

    def change_counter(self, transaction: Transaction, schema: TableSchema) -> tuple[int, bool]:
        """How many commits have changed a table's rows, and whether the transaction will be another one."""
        return table_state(transaction.kv, schema.storage_id)[0], transaction.changed(schema.storage_id)

    # --- tables ----------------------------------------------------------------------------------------

    def table(self, schema: TableSchema) -> StoreTable:
        """The handle for a table; the same one for the same schema object."""
        handle = self._handles.get(id(schema))
        if handle is None or handle.schema is not schema:
            if len(self._handles) >= _HANDLES:
                self._handles.clear()
            handle = self._handles[id(schema)] = StoreTable(schema, self._engine(), self.cache)
        return handle

    def get_backing_host(self, schema: TableSchema) -> StoreTable:
        """The handle for a maintained table: that of any table."""
        return self.table(schema)

    def _engine(self) -> EngineServices:
        if self._services is None:
            raise sql_error(StatusCode.MISUSE, f"module '{self.name}' is not attached to a database")
        return self._services

    def plan_access(self, schema: TableSchema, request: AccessRequest) -> AccessPlan:
        """The cheapest way, by the usual planner and the number of committed rows."""
        rows = request.estimated_rows
        if rows is None:
            transaction = self.begin_read()
            try:
                rows = transaction.row_count(schema.storage_id)
            finally:
                transaction.rollback()
        return plan_access(schema, request, rows, sorts=self._sorts)

    def _sorts(self, collation: str) -> bool:
        return self._engine().collation(collation).order_preserving

    # --- schema changes --------------------------------------------------------------------------------

    def create_table(self, transaction: StoreWriter, schema: TableSchema) -> TableSchema:
        """Make an empty table and its indexes."""
        indexes = tuple(replace(index, storage_id=0) for index in schema.indexes)
        schema = replace(schema, storage_id=0, layout=None, indexes=indexes)
        schema = _with_ids(transaction.kv, schema, empty=True)
        self.table(schema)  # refuses keys that cannot be encoded before anything is written
        transaction.add_rows(schema.storage_id, 0)
        return schema

    def drop_table(self, transaction: StoreWriter, schema: TableSchema) -> None:
        """Erase a table's rows, indexes, statistics and counts."""
        table = self.table(schema)
        transaction.forget_table(schema.storage_id)
        transaction.kv.delete_range(table.rows.prefix, table.rows.end)
        transaction.kv.delete(statistics_key(schema.storage_id))
        _forget_notes(transaction.kv, schema.storage_id)
        for index in table.indexes:
            transaction.kv.delete_range(index.prefix, index.end)

    def create_index(self, transaction: StoreWriter, schema: TableSchema, index: IndexSchema) -> IndexSchema:
        """Build an index from the table's rows; raises UniqueViolation, and then nothing is left of it."""
        empty = transaction.row_count(schema.storage_id) == 0
        index = replace(index, storage_id=allocate_store(transaction.kv, leading=empty))
        store = IndexStore(schema, index, self._engine(), None)
        transaction.change_indexes(schema.storage_id)
        try:
            build_index(transaction.kv, self.table(schema).rows, store)
        except UniqueViolation:
            transaction.kv.delete_range(store.prefix, store.end)
            raise
        return index

    def drop_index(self, transaction: StoreWriter, schema: TableSchema, index: IndexSchema) -> None:
        """Erase an index."""
        store = self.table(schema).index(index.name)
        transaction.change_indexes(schema.storage_id)
        transaction.kv.delete_range(store.prefix, store.end)

    def append_column(
        self, transaction: StoreWriter, old: TableSchema, new: TableSchema, value: Any
    ) -> TableSchema:
        """Let a column come at the end: rows that are there stay shorter, and are read with ``value``."""
        return self._in_place(transaction, old, new, appended(old.layout, len(old.columns), value), None)

    def retire_column(
        self, transaction: StoreWriter, old: TableSchema, new: TableSchema, position: int
    ) -> TableSchema:
        """Let a column go: its place in the rows is not read any more.  An index over it is built anew."""
        return self._in_place(
            transaction, old, new, retired(old.layout, len(old.columns), position), position
        )

    def _in_place(
        self,
        transaction: StoreWriter,
        old: TableSchema,
        new: TableSchema,
        layout: RowLayout,
        gone: int | None,
    ) -> TableSchema:
        kv = transaction.kv
        if transaction.row_count(old.storage_id) == 0:
            # No row is stored in another way than the table's own.
            new = replace(new, storage_id=old.storage_id, layout=None)
        else:
            new = replace(new, storage_id=old.storage_id, layout=layout)
        new = _with_ids(kv, new, empty=False)
        before, table = self.table(old), self.table(new)
        # Whoever has cached the rows has them in their old shape.
        transaction.add_rows(new.storage_id, 0)
        known = {index.store: index for index in before.indexes}
        kept = [
            (was, index)
            for index in table.indexes
            if (was := known.get(index.store)) is not None
            and was.unique == index.unique
            and gone not in [part.column for part in was.index.parts]
        ]
        self._rewrite_indexes(kv, before, table, kept)
        return new

    def rewrite_table(
        self,
        transaction: StoreWriter,
        old: TableSchema,
        new: TableSchema,
        transform: Callable[[Batch], Batch] | None,
    ) -> TableSchema:
        """Carry a table over to another schema; raises UniqueViolation, and then nothing has changed."""
        with all_or_nothing(transaction):
            return self._rewrite(transaction, self.table(old), new, transform)

    def _rewrite(
        self,
        transaction: StoreWriter,
        old: StoreTable,
        new: TableSchema,
        transform: Callable[[Batch], Batch] | None,
    ) -> TableSchema:
        kv = transaction.kv
        stays = transform is None
        new = replace(new, storage_id=old.schema.storage_id, layout=old.schema.layout if stays else None)
        new = _with_ids(kv, new, empty=False)
        table = self.table(new)
        if stays and not old.rows.keys_like(table.rows):
            new = replace(new, layout=None)
            table = self.table(new)
            stays = False
        transaction.add_rows(table.rows.store, 0)
        before = {index.store: index for index in old.indexes}
        pairs = [(before[index.store], index) for index in table.indexes if index.store in before]
        start = None
        if stays:
            kept = [(was, index) for was, index in pairs if was.shape == index.shape]
        else:
            kept, start = rewrite_in_place(kv, old.rows, table.rows, transform, pairs)
        if start is not None:
            new = replace(new, storage_id=allocate_store(kv))
            table = self.table(new)
            move_rows(kv, old.rows, table.rows, transform, start)
            _move_records(transaction, old.rows.store, table.rows.store)
        self._rewrite_indexes(kv, old, table, kept)
        return new

    @staticmethod
    def _rewrite_indexes(
        kv: WriteTransaction,
        old: StoreTable,
        new: StoreTable,
        kept: list[tuple[IndexStore, IndexStore]],
    ) -> None:
        """Erase and build the indexes of a rewritten table, except for those that are right as they are."""
        right = {index.store for _, index in kept}
        for index in old.indexes:
            if index.store not in right:
                kv.delete_range(index.prefix, index.end)
        for index in new.indexes:
            if index.store not in right:
                build_index(kv, new.rows, index)
        for was, index in kept:
            if index.constraint is not None and was.constraint is None:
                check_unique(kv, new.rows, index)

    # --- notes -----------------------------------------------------------------------------------------

    def read_notes(
        self, transaction: Transaction, schema: TableSchema, names: Sequence[bytes]
    ) -> list[bytes | None]:
        """The notes of these names, by position."""
        prefix = notes_prefix(schema.storage_id)
        return transaction.kv.get_many([prefix + name for name in names])

    def write_notes(
        self,
        transaction: StoreWriter,
        schema: TableSchema,
        notes: Sequence[tuple[bytes, bytes | None]],
        *,
        anew: bool,
    ) -> None:
        """Keep these notes, None removes one; ``anew``: and no other."""
        kv, prefix = transaction.kv, notes_prefix(schema.storage_id)
        if anew:
            _forget_notes(kv, schema.storage_id)
        kv.put_many(sorted((prefix + name, value) for name, value in notes if value is not None))
        for name, value in notes:
            if value is None:
                kv.delete(prefix + name)
        transaction.touch()

    # --- catalog ---------------------------------------------------------------------------------------

    def catalog_version(self, transaction: Transaction) -> int:
        """The number that every committed schema change raises."""
        return transaction.schema_version()

    def load_catalog(self, transaction: Transaction) -> LoadedCatalog:
        """The catalog in the transaction's snapshot, and the entries that could not be brought back."""
        return self._stored_catalog().load(transaction.kv, transaction.schema_version())

    def save_catalog(self, transaction: StoreWriter, before: Catalog, after: Catalog) -> None:
        """Write what differs between two catalogs."""
        if self._stored_catalog().save(transaction.kv, before, after):
            transaction.change_schema()

    def _stored_catalog(self) -> StoredCatalog:
        if self._catalog is None:
            raise sql_error(StatusCode.MISUSE, f"module '{self.name}' is not attached to a database")
        return self._catalog

    # --- statistics and markers ------------------------------------------------------------------------

    def statistics(self, schema: TableSchema) -> dict[str, Any] | None:
        """The last committed record of a table, or None; None for one that cannot be read."""
        transaction = self.begin_read()
        try:
            return read_statistics(transaction.kv, schema)
        except Error:
            return None
        finally:
            transaction.rollback()

    def save_statistics(
        self, transaction: StoreWriter, schema: TableSchema, record: dict[str, Any] | None
    ) -> None:
        """Keep a record of ANALYZE; None removes it.  Everybody reloads the schema afterwards."""
        write_statistics(transaction.kv, schema, record)
        transaction.change_schema()

    def read_marker(self, transaction: Transaction, name: str) -> bytes | None:
        """A marker of the engine, or None."""
        return read_marker(transaction.kv, name)

    def write_marker(self, transaction: StoreWriter, name: str, value: bytes | None) -> None:
        """Leave a marker; None removes it."""
        write_marker(transaction.kv, name, value)
        transaction.touch()


def _with_ids(kv: WriteTransaction, schema: TableSchema, *, empty: bool) -> TableSchema:
    """The schema with a store id for its rows and each of its indexes; ids that are there stay."""
    indexes = tuple(
        index if index.storage_id else replace(index, storage_id=allocate_store(kv, leading=empty))
        for index in schema.indexes
    )
    return replace(schema, storage_id=schema.storage_id or allocate_store(kv), indexes=indexes)


def _forget_notes(kv: WriteTransaction, store: int) -> None:
    prefix = notes_prefix(store)
    kv.delete_range(prefix, successor(prefix))


def _move_records(transaction: StoreWriter, old: int, new: int) -> None:
    """Row count and statistics follow the rows to another store."""
    kv = transaction.kv
    transaction.add_rows(new, transaction.row_count(old))
    transaction.forget_table(old)
    _forget_notes(kv, old)
    statistics = kv.get(statistics_key(old))
    if statistics is not None:
        kv.put(statistics_key(new), statistics)
        kv.delete(statistics_key(old))
