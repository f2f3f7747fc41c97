"""Verifying a database: everything that can be said without SQL.

====================  ==================================================================================
looked at             found in words
====================  ==================================================================================
catalog entries       those that cannot be read or built
rows                  values that are no rows of the table, rows filed under a key that is not theirs
indexes               rows without their entry, entries that point elsewhere, entries without a row
counts                a table's row count that is not the number of its rows
stores                keys that belong to no table or index of the catalog
====================  ==================================================================================

All of it is read from one snapshot, in batches.  Nothing is changed or repaired.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from quereus_store.backends.contract import ReadTransaction
from quereus_store.catalog.layout import (
    FIRST_FREE_ID,
    NOTES,
    STATES,
    parse_store,
    store_prefix,
    store_range,
    successor,
)
from quereus_store.modules.contract import Batch
from quereus_store.schema.objects import Catalog, TableSchema, fold
from quereus_store.store.indexes import IndexStore
from quereus_store.store.module import StoreModule
from quereus_store.store.rows import RowStore
from quereus_store.store.table import StoreTable
from quereus_store.store.transaction import Transaction

MOST_FINDINGS = 100
"""How many findings are reported of one table."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be, and where."""

    place: str
    what: str


def check_store(module: StoreModule, transaction: Transaction) -> list[Finding]:
    """All that is wrong with a database, as the transaction sees it; empty when it is in order."""
    loaded = module.load_catalog(transaction)
    findings = [Finding("catalog", str(problem.error)) for problem in loaded.problems]
    tables = stored_tables(module, loaded.catalog)
    for table in tables:
        findings += check_table(module, transaction, table)
    if not loaded.problems:
        findings += _strays(transaction.kv, tables)
    return findings


def stored_tables(module: StoreModule, catalog: Catalog) -> list[TableSchema]:
    """The tables whose rows the module keeps."""
    return [
        table
        for schema in catalog.schemas.values()
        for table in schema.tables.values()
        if fold(table.module) == fold(module.name)
    ]


def check_table(module: StoreModule, transaction: Transaction, schema: TableSchema) -> list[Finding]:
    """What is wrong with one table and its indexes (up to ``MOST_FINDINGS`` of it)."""
    check = _TableCheck(module.table(schema), transaction)
    found = list(islice(check.run(), MOST_FINDINGS + 1))
    if len(found) > MOST_FINDINGS:
        found[MOST_FINDINGS:] = [Finding(schema.qualified_name, "there is more of this kind")]
    return found


@dataclass(slots=True)
class _IndexTally:
    """How many entries an index should have, and how many of them it lacks."""

    index: IndexStore
    expected: int = 0
    missing: int = 0


@dataclass(slots=True)
class _TableCheck:
    table: StoreTable
    transaction: Transaction
    unreadable: set[bytes] = field(default_factory=set)

    @property
    def rows(self) -> RowStore:
        return self.table.rows

    @property
    def kv(self) -> ReadTransaction:
        return self.transaction.kv

    def finding(self, what: str) -> Finding:
        return Finding(self.table.schema.qualified_name, what)

    def run(self) -> Iterator[Finding]:
        tallies = [_IndexTally(index) for index in self.table.indexes]
        count = 0
        for items in self.kv.scan(self.rows.prefix, self.rows.end):
            count += len(items)
            keys, values = [key for key, _ in items], [value for _, value in items]
            keys, batch, found = self._readable(keys, values)
            yield from found
            yield from self._keys(keys, batch)
            for tally in tallies:
                yield from self._entries(tally, keys, batch)
        stated = self.transaction.row_count(self.rows.store)
        if stated != count:
            yield self.finding(f"its row count says {stated}, it has {count} rows")
        for tally in tallies:
            there = self.kv.count(tally.index.prefix, tally.index.end)
            if there != tally.expected - tally.missing:
                yield from self._superfluous(tally.index)

    def _readable(self, keys: list[bytes], values: list[bytes]) -> tuple[list[bytes], Batch, list[Finding]]:
        """Keys and rows of what can be read, and findings for the rest."""
        reasons = list(map(self.rows.reason, values))
        if not any(reasons):
            return keys, self.rows.decode_many(self.kv, values), []
        found = []
        for key, reason in zip(keys, reasons, strict=True):
            if reason is not None:
                self.unreadable.add(key)
                found.append(self.finding(f"the row with key {self.rows.describe(key)} is corrupt: {reason}"))
        good = [reason is None for reason in reasons]
        keys = [key for key, readable in zip(keys, good, strict=True) if readable]
        values = [value for value, readable in zip(values, good, strict=True) if readable]
        return keys, self.rows.decode_many(self.kv, values), found

    def _keys(self, keys: list[bytes], batch: Batch) -> Iterator[Finding]:
        if not batch:
            return
        for key, own in zip(keys, self.rows.keys_of(batch), strict=True):
            if key != own:
                yield self.finding(
                    f"the row with key {self.rows.describe(own)} is filed under key {self.rows.describe(key)}"
                )

    def _entries(self, tally: _IndexTally, keys: list[bytes], batch: Batch) -> Iterator[Finding]:
        """Whether the rows have their entries."""
        if not batch:
            return
        items = tally.index.entries(batch, keys).items
        tally.expected += len(items)
        for (_, row_key), there in zip(items, self.kv.get_many([key for key, _ in items]), strict=True):
            if there == row_key:
                continue
            row = self.rows.describe(row_key)
            name = tally.index.index.name
            if there is None:
                tally.missing += 1
                yield self.finding(f"index {name} has no entry for the row with key {row}")
            else:
                other = self.rows.describe(there)
                yield self.finding(f"index {name} has row {other} where row {row} should be")

    def _superfluous(self, index: IndexStore) -> Iterator[Finding]:
        """Entries that no row has."""
        for items in self.kv.scan(index.prefix, index.end):
            values = self.kv.get_many([row_key for _, row_key in items])
            for (entry, row_key), value in zip(items, values, strict=True):
                if row_key in self.unreadable:
                    continue
                row = self.rows.describe(row_key)
                if value is None:
                    yield self.finding(
                        f"index {index.index.name} names a row with key {row}, which does not exist"
                    )
                elif index.aligned([self.rows.decode(self.kv, value)], [row_key]) != [entry]:
                    yield self.finding(
                        f"index {index.index.name} has an entry for the row with key {row} "
                        "that does not fit the row"
                    )


# --- stores ---------------------------------------------------------------------------------------------


def _strays(kv: ReadTransaction, tables: Sequence[TableSchema]) -> Iterator[Finding]:
    """Keys of stores that the catalog does not know."""
    rows = {table.storage_id for table in tables}
    known = rows | {index.storage_id for table in tables for index in table.indexes}
    for store in _stores(kv):
        if store not in known:
            yield Finding("store", f"the keys of store {store} belong to no table or index")
    for key in chain.from_iterable(kv.scan_keys(*store_range(STATES))):
        store = parse_store(key[len(store_prefix(STATES)) :])
        if store not in rows:
            yield Finding("store", f"there is a row count for store {store}, which is no table's")
    for store in {parse_store(key[1:]) for key in chain.from_iterable(kv.scan_keys(*store_range(NOTES)))}:
        if store not in rows:
            yield Finding("store", f"there are notes for store {store}, which is no table's")


def _stores(kv: ReadTransaction) -> Iterator[int]:
    """The ids of stores that have keys; one seek each."""
    start = store_prefix(FIRST_FREE_ID)
    while (batch := next(iter(kv.scan_keys(start, None, batch_size=1)), None)) is not None:
        store = parse_store(batch[0])
        yield store
        start = successor(store_prefix(store))
