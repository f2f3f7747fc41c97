"""A transaction's log as data events: keys, moved rows, and the shape that tables have at the end.

* **Derived rows raise no events**: who wants them watches the maintained table.
* **Key**: taken from the event's own row.  Where an update gives a row another key (under the key's own
  comparison: 'fig' and 'FIG' are one key under NOCASE) the event is a delete and an insert.  In one
  statement the deletes of moved rows come first and the inserts last, so that whoever replays the events
  in order never meets a key that is still taken.
* **As of delivery**: rows that were changed before an ALTER TABLE of the same transaction are shown as the
  ALTER left them, and every event names its table as it is called after the commit.

Chapter: store-and-modules, section 11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from quereus_store.errors import Error
from quereus_store.execute.dml.changes import Change
from quereus_store.execute.notification.events import Announcement, DataChange, Reshape
from quereus_store.execute.results import detached
from quereus_store.modules.contract import Row
from quereus_store.schema.manager import tables_of
from quereus_store.schema.objects import Catalog, Operation, TableSchema, fold
from quereus_store.types import ANY, JSON, CollationRegistry
from quereus_store.types.sortkeys import identity_key

Identity = Callable[[Row], Any]
_Place = tuple[str, Any]


def place_of(table: TableSchema) -> _Place:
    """What a table keeps through renames: where its rows are; its name in a module without such numbers."""
    return fold(table.module), table.storage_id or (fold(table.schema), fold(table.name))


def identity_of(
    table: TableSchema, positions: Sequence[int], collations: Sequence[str], registry: CollationRegistry
) -> Identity:
    """A function from a row to what its cells at ``positions`` are known by, as the table compares them."""
    recipes = []
    for position, name in zip(positions, collations, strict=True):
        column = table.columns[position]
        recipes.append((position, identity_key(column.type, True, registry.get(name)).function))
    if all(function is None for _, function in recipes):
        return lambda row: tuple([row[position] for position in positions])

    def identity(row: Row) -> Any:
        return tuple(
            [
                row[position] if function is None or row[position] is None else function(row[position])
                for position, function in recipes
            ]
        )

    return identity


def key_identity(table: TableSchema, registry: CollationRegistry) -> Identity:
    """What tells a row's primary key from others."""
    parts = table.primary_key.parts
    return identity_of(table, [part.column for part in parts], [part.collation for part in parts], registry)


def data_changes(
    log: Sequence[Change],
    announced: Sequence[Announcement],
    catalog: Catalog,
    registry: CollationRegistry,
) -> Iterator[DataChange]:
    """The data events of a committed log, in the order of the work."""
    reshapes = [item for item in announced if isinstance(item, Reshape)]
    final: Mapping[_Place, TableSchema] = {}
    if any(change.table is not catalog.table(change.table.schema, change.table.name) for change in log):
        final = {place_of(table): table for table in tables_of(catalog)}
    writers: dict[int, _Teller] = {}
    for number, change in enumerate(log):
        if change.table.derivation is not None:
            continue
        table, old, new = change.table, change.old, change.new
        for reshape in reshapes:
            if reshape.position > number and place_of(reshape.before) == place_of(table):
                old, new = _reshaped(old, reshape), _reshaped(new, reshape)
                table = reshape.after
        table = final.get(place_of(table), table)
        teller = writers.get(id(table))
        if teller is None:
            teller = writers[id(table)] = _Teller(table, registry)
        yield from teller.events(change.operation, old, new)


def _reshaped(rows: Sequence[Row], reshape: Reshape) -> Sequence[Row]:
    if reshape.transform is None or not rows:
        return rows
    try:
        return reshape.transform(list(rows))
    except Error:
        # Rows that were gone when the table was altered need not stand its tests.
        return [_carried(row, reshape) for row in rows]


def _carried(row: Row, reshape: Reshape) -> Row:
    places = [reshape.before.column_index(column.name) for column in reshape.after.columns]
    return tuple(None if place is None else row[place] for place in places)


class _Teller:
    """Makes events of the rows of one table."""

    def __init__(self, table: TableSchema, registry: CollationRegistry) -> None:
        self._table = table
        self._names = [column.name for column in table.columns]
        self._key = [part.column for part in table.primary_key.parts]
        self._identity = key_identity(table, registry)
        self._documents = tuple(
            [i for i, column in enumerate(table.columns) if column.type is JSON or column.type is ANY]
        )

    def events(self, operation: Operation, old: Sequence[Row], new: Sequence[Row]) -> Iterator[DataChange]:
        """The events of one entry of the log."""
        if self._documents:
            # The tables' own documents are not for listeners to change.
            old, new = detached(list(old), self._documents), detached(list(new), self._documents)
        if operation is Operation.INSERT:
            return map(self._insert, new)
        if operation is Operation.DELETE:
            return map(self._delete, old)
        return self._updates(old, new)

    def _updates(self, old: Sequence[Row], new: Sequence[Row]) -> Iterator[DataChange]:
        identity = self._identity
        moves = [identity(before) != identity(after) for before, after in zip(old, new, strict=True)]
        for before, moved in zip(old, moves, strict=True):
            if moved:
                yield self._delete(before)
        for before, after, moved in zip(old, new, moves, strict=True):
            if not moved:
                yield self._event("update", after, before, after, self._changed(before, after))
        for after, moved in zip(new, moves, strict=True):
            if moved:
                yield self._insert(after)

    def _changed(self, before: Row, after: Row) -> tuple[str, ...]:
        return tuple(
            [
                name
                for name, a, b in zip(self._names, before, after, strict=True)
                if a is not b and (type(a) is not type(b) or a != b)
            ]
        )

    def _insert(self, row: Row) -> DataChange:
        return self._event("insert", row, None, row, None)

    def _delete(self, row: Row) -> DataChange:
        return self._event("delete", row, row, None, None)

    def _event(
        self, kind: Any, image: Row, old: Row | None, new: Row | None, changed: tuple[str, ...] | None
    ) -> DataChange:
        table = self._table
        key = tuple([image[position] for position in self._key])
        return DataChange(kind, table.module, table.schema, table.name, key, old, new, changed)
