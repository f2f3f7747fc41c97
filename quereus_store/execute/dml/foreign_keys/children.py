"""The child's side: a row whose foreign key has no NULL needs a parent.

The parents of all rows of a statement are looked up together, right after the
write (so rows of one statement may be each other's parents).  Keys that have no
parent then are looked at again when the transaction commits, as long as their
rows still exist; those that have one need no second look, since whatever removes
a parent answers for its children.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error
from quereus_store.execute.dml.checks import current_table, key_of, same_layout
from quereus_store.execute.dml.foreign_keys.lookup import Key, KeyLookup
from quereus_store.execute.dml.foreign_keys.references import Reference, parent_name, resolve
from quereus_store.execute.dml.generation import Workshop
from quereus_store.execute.dml.runtime import MutationRuntime
from quereus_store.execute.dml.violations import missing_parent
from quereus_store.modules.contract import Row
from quereus_store.schema.objects import ForeignKey, TableSchema

if TYPE_CHECKING:
    from quereus_store.execute.transactions import Transaction


def child_checks(workshop: Workshop, table: TableSchema) -> tuple[ChildCheck, ...]:
    """The checks of a table's foreign keys; raises ERROR for a key that does not fit its parent."""
    return tuple([ChildCheck(workshop, table, key) for key in table.foreign_keys])


def key_getter(columns: Sequence[int]) -> Callable[[Row], Key]:
    """A function from a row to the tuple of some of its cells."""
    if len(columns) == 1:
        column = columns[0]
        return lambda row: (row[column],)
    return itemgetter(*columns)


class ChildCheck:
    """One foreign key of the table that is written."""

    def __init__(self, workshop: Workshop, table: TableSchema, key: ForeignKey) -> None:
        self._workshop = workshop
        self._table = table
        self._key = key
        self._getter = key_getter(key.columns)
        reference = resolve(workshop.context.catalog, table, key)
        self._lookup = None if reference is None else parent_lookup(workshop, reference)

    def after_write(self, runtime: MutationRuntime, rows: Sequence[Row]) -> None:
        """Look for the parents of rows just written; what has none is judged at the commit."""
        orphans = self.orphans(runtime.transaction, rows)
        if orphans:
            runtime.transaction.deferred.append(partial(self._judge, runtime, orphans))

    def orphans(self, transaction: Any, rows: Sequence[Row]) -> list[Row]:
        """The rows without a parent."""
        getter = self._getter
        if len(rows) == 1:
            key = getter(rows[0])
            if None in key:
                return []
            if self._lookup is None or self._lookup.lacking(transaction, (key,)):
                return list(rows)
            return []
        keys = [key for row in rows if None not in (key := getter(row))]
        if not keys:
            return []
        if self._lookup is None:
            return [row for row in rows if None not in getter(row)]
        missing = self._lookup.lacking(transaction, _distinct(keys))
        return [row for row in rows if getter(row) in missing] if missing else []

    def error(self, row: Row) -> Error:
        """The error for a row without a parent."""
        absent = None
        if self._lookup is None:
            absent = ".".join(parent_name(self._table, self._key))
        return missing_parent(self._table, self._key, self._getter(row), absent)

    def _judge(self, runtime: MutationRuntime, rows: Sequence[Row], transaction: Transaction) -> None:
        check = self
        if transaction.catalog.version != self._workshop.context.catalog.version:
            now = current_table(transaction.catalog, self._table)
            if now is None:
                return
            engine = self._workshop.engine
            workshop = Workshop(
                engine, engine.bind_context(transaction.catalog, runtime.schema_path, runtime.options)
            )
            key = next((key for key in now.foreign_keys if self._is_mine(key)), None)
            if key is None:
                return
            if not same_layout(now, self._table):
                handle = engine.table(now)
                rows = [row for batch in handle.scan(transaction.reader(now.module)) for row in batch]
            check = ChildCheck(workshop, now, key)
        orphans = check.orphans(transaction, check.still_there(transaction, rows))
        if orphans:
            raise check.error(orphans[0])

    def _is_mine(self, key: ForeignKey) -> bool:
        """Whether a key of the table as it is now is this one, renamed perhaps, or one of its tables."""
        mine = self._key
        return key.name.lower() == mine.name.lower() or replace(key, name=mine.name, named=mine.named) == mine

    def still_there(self, transaction: Any, rows: Sequence[Row]) -> list[Row]:
        """The rows of the table, as they are now, that still have the key that these had."""
        table = self._table
        found = self._workshop.engine.table(table).points(
            transaction.reader(table.module), [key_of(table, row) for row in rows]
        )
        getter = self._getter
        return [
            now
            for row, now in zip(rows, found, strict=True)
            if now is not None and getter(now) == getter(row)
        ]


def parent_lookup(workshop: Workshop, reference: Reference) -> KeyLookup:
    """Finds parents by the values of a child's columns."""
    child = reference.child
    return KeyLookup(
        workshop,
        reference.parent,
        reference.parent_columns,
        [child.columns[column] for column in reference.child_columns],
        probes_left=False,
    )


def _distinct(keys: list[Key]) -> list[Key]:
    try:
        return list(dict.fromkeys(keys))
    except TypeError:
        # Documents cannot be hashed; looking one up twice does no harm.
        return keys
