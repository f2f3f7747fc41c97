"""The memory module: tables that live as long as the process, transactional like any other.

Schema changes are transactional too: they make new trees, and the root that is published at
commit has either the old or the new ones.  Chapter: store-and-modules, section 14.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.modules.access import plan_access
from quereus_store.modules.contract import (
    AccessPlan,
    AccessRequest,
    Batch,
    DdlTransactionality,
    EngineServices,
    Row,
    stale_snapshot,
)
from quereus_store.modules.memory.table import MemoryTable
from quereus_store.modules.memory.transactions import Root, Snapshot, Writer
from quereus_store.schema.objects import IndexSchema, TableSchema, UniqueConstraint

_HANDLES = 1024
"""How many table handles are kept before the cache starts anew."""


class MemoryModule:
    """Tables in memory (contract: :class:`~quereus_store.modules.contract.Module`)."""

    persistent = False
    ddl_transactionality = DdlTransactionality.TRANSACTIONAL
    table_class = MemoryTable

    def __init__(self, name: str = "memory") -> None:
        self.name = name
        self._root = Root({})
        self._services: EngineServices | None = None
        self._storage_ids = itertools.count(1)
        self._handles: dict[int, MemoryTable] = {}
        self._statistics: dict[int, dict[str, Any]] = {}
        self._writing = threading.Lock()
        self._writer_thread: int | None = None

    def attach(self, services: EngineServices) -> None:
        """Take what the engine lends; once per module."""
        self._services = services

    # --- transactions ----------------------------------------------------------------------------------

    def begin_read(self) -> Snapshot:
        """Pin the last committed state: one reference."""
        return Snapshot(self._root)

    def begin_write(self, timeout: float, snapshot: Snapshot | None = None, durable: bool = True) -> Writer:
        """Become the writer; BUSY when another one is, or when ``snapshot`` is no longer the last state."""
        if not self._acquire(timeout):
            raise sql_error(StatusCode.BUSY, "database is locked: another connection is writing")
        root = self._root
        if snapshot is not None and snapshot.root is not root:
            self._release()
            raise stale_snapshot(self.name)
        return Writer(root, self._finish)

    def _acquire(self, timeout: float) -> bool:
        if not self._writing.acquire(blocking=False):
            # Waiting for a writer of one's own thread could never end well.
            if timeout <= 0 or self._writer_thread == threading.get_ident():
                return False
            if not self._writing.acquire(timeout=timeout):
                return False
        self._writer_thread = threading.get_ident()
        return True

    def _release(self) -> None:
        self._writer_thread = None
        self._writing.release()

    def _finish(self, published: Root | None) -> None:
        if published is not None:
            self._root = published
        self._release()

    # --- tables ----------------------------------------------------------------------------------------

    def table(self, schema: TableSchema) -> MemoryTable:
        """The handle for a table; the same one for the same schema object."""
        handle = self._handles.get(id(schema))
        if handle is None or handle.schema is not schema:
            if self._services is None:
                raise sql_error(StatusCode.MISUSE, f"module '{self.name}' is not attached to a database")
            if len(self._handles) >= _HANDLES:
                self._handles.clear()
            handle = self._handles[id(schema)] = self.table_class(schema, self._services)
        return handle

    def get_backing_host(self, schema: TableSchema) -> MemoryTable:
        """The handle for a maintained table: that of any table."""
        return self.table(schema)

    def plan_access(self, schema: TableSchema, request: AccessRequest) -> AccessPlan:
        """The cheapest way, by the usual planner and the number of committed rows."""
        rows = request.estimated_rows
        if rows is None:
            state = self._root.tables.get(schema.storage_id)
            rows = None if state is None else state.primary.count
        return plan_access(schema, request, rows)

    # --- statistics ------------------------------------------------------------------------------------

    def save_statistics(
        self, transaction: Writer, schema: TableSchema, record: dict[str, Any] | None
    ) -> None:
        """Keep a record of ANALYZE, at once: it is a help to planning and no data; None removes it."""
        if record is None:
            self._statistics.pop(schema.storage_id, None)
        else:
            self._statistics[schema.storage_id] = record

    def statistics(self, schema: TableSchema) -> dict[str, Any] | None:
        """The record that ANALYZE left for a table, or None."""
        return self._statistics.get(schema.storage_id)

    # --- schema changes --------------------------------------------------------------------------------

    def create_table(self, transaction: Writer, schema: TableSchema) -> TableSchema:
        """Make an empty table and its indexes."""
        schema = self._with_ids(replace(schema, storage_id=next(self._storage_ids)))
        transaction.put_table(schema.storage_id, self.table(schema).fresh_state([], transaction.owner))
        return schema

    def drop_table(self, transaction: Writer, schema: TableSchema) -> None:
        """Forget a table, its statistics too."""
        self._statistics.pop(schema.storage_id, None)
        transaction.drop_table(schema.storage_id)

    def create_index(self, transaction: Writer, schema: TableSchema, index: IndexSchema) -> IndexSchema:
        """Build an index from the table's rows."""
        index = replace(index, storage_id=next(self._storage_ids))
        constraints = schema.unique_constraints
        if index.unique:
            columns = tuple(part.column for part in index.parts if part.column is not None)
            constraints = (*constraints, UniqueConstraint(index.name, columns, index.name, from_index=True))
        complete = replace(schema, indexes=(*schema.indexes, index), unique_constraints=constraints)
        state = transaction.writable_state(schema.storage_id)
        tree = self.table(complete).index_tree(state, index.name)
        transaction.log(state.indexes.pop, index.storage_id)
        state.indexes[index.storage_id] = tree
        return index

    def drop_index(self, transaction: Writer, schema: TableSchema, index: IndexSchema) -> None:
        """Forget an index."""
        indexes = transaction.writable_state(schema.storage_id).indexes
        transaction.log(indexes.__setitem__, index.storage_id, indexes.pop(index.storage_id))

    def rewrite_table(
        self,
        transaction: Writer,
        old: TableSchema,
        new: TableSchema,
        transform: Callable[[Batch], Batch] | None,
    ) -> TableSchema:
        """Build all trees anew under another schema."""
        batches = self.table(old).scan(transaction)
        rows: list[Row] = []
        for batch in batches if transform is None else map(transform, batches):
            rows += batch
        new = self._with_ids(replace(new, storage_id=old.storage_id))
        transaction.put_table(new.storage_id, self.table(new).fresh_state(rows, transaction.owner))
        return new

    def _with_ids(self, schema: TableSchema) -> TableSchema:
        indexes = tuple(
            index if index.storage_id else replace(index, storage_id=next(self._storage_ids))
            for index in schema.indexes
        )
        return replace(schema, indexes=indexes)

    def close(self) -> None:
        """Drop all rows."""
        self._root = Root({})
        self._handles.clear()
