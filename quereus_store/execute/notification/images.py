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
from operator import itemgetter
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
_REMEMBERED = 256


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
    if recipes and all(function is None for _, function in recipes):
        return itemgetter(*positions)

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


class Tellers:
    """Makes data events of logs; it remembers how for the tables that it has met."""

    def __init__(self, registry: CollationRegistry) -> None:
        self._registry = registry
        self._known: dict[int, _Teller] = {}

    def data_changes(
        self, log: Sequence[Change], announced: Sequence[Announcement], catalog: Catalog
    ) -> Iterator[DataChange]:
        """The data events of a committed log, in the order of the work."""
        reshapes = [item for item in announced if isinstance(item, Reshape)]
        final: Mapping[_Place, TableSchema] = {}
        if any(change.table is not catalog.table(change.table.schema, change.table.name) for change in log):
            final = {place_of(table): table for table in tables_of(catalog)}
        for number, change in enumerate(log):
            if change.table.derivation is not None:
                continue
            table, old, new = change.table, change.old, change.new
            for reshape in reshapes:
                if reshape.position > number and place_of(reshape.before) == place_of(table):
                    old, new = reshaped(old, reshape), reshaped(new, reshape)
                    table = reshape.after
            table = final.get(place_of(table), table) if final else table
            events = self._teller(table).events(change.operation, old, new)
            yield from events if not change.remote else [event._replace(remote=True) for event in events]

    def _teller(self, table: TableSchema) -> _Teller:
        known = self._known.get(id(table))
        if known is None or known.table is not table:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[id(table)] = _Teller(table, self._registry)
        return known


def reshaped(rows: Sequence[Row], reshape: Reshape) -> Sequence[Row]:
    """Rows from before an ALTER TABLE as it would have left them."""
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


def _cells(positions: Sequence[int]) -> Callable[[Row], tuple[Any, ...]]:
    """A function from a row to the tuple of its cells at some positions."""
    if len(positions) == 1:
        only = positions[0]
        return lambda row: (row[only],)
    return itemgetter(*positions) if positions else lambda row: ()


class _Teller:
    """Makes events of the rows of one table."""

    def __init__(self, table: TableSchema, registry: CollationRegistry) -> None:
        self.table = table
        self._names = [column.name for column in table.columns]
        self._key = _cells([part.column for part in table.primary_key.parts])
        self._place = (table.module, table.schema, table.name)
        self._identity = key_identity(table, registry)
        self._documents = tuple(
            [i for i, column in enumerate(table.columns) if column.type is JSON or column.type is ANY]
        )

    def events(self, operation: Operation, old: Sequence[Row], new: Sequence[Row]) -> list[DataChange]:
        """The events of one entry of the log."""
        if self._documents:
            # The tables' own documents are not for listeners to change.
            old, new = detached(list(old), self._documents), detached(list(new), self._documents)
        if operation is Operation.INSERT:
            return self._inserts(new)
        if operation is Operation.DELETE:
            return self._deletes(old)
        return self._updates(old, new)

    def _inserts(self, rows: Sequence[Row]) -> list[DataChange]:
        place, key = self._place, self._key
        return [DataChange("insert", *place, key(row), None, row) for row in rows]

    def _deletes(self, rows: Sequence[Row]) -> list[DataChange]:
        place, key = self._place, self._key
        return [DataChange("delete", *place, key(row), row, None) for row in rows]

    def _updates(self, old: Sequence[Row], new: Sequence[Row]) -> list[DataChange]:
        identity, place, key = self._identity, self._place, self._key
        pairs = list(zip(old, new, strict=True))
        moved = [pair for pair in pairs if identity(pair[0]) != identity(pair[1])]
        kept = pairs if not moved else [pair for pair in pairs if identity(pair[0]) == identity(pair[1])]
        updates = [
            DataChange("update", *place, key(after), before, after, self._changed(before, after))
            for before, after in kept
        ]
        return (
            self._deletes([before for before, _ in moved])
            + updates
            + self._inserts([after for _, after in moved])
        )

    def _changed(self, before: Row, after: Row) -> tuple[str, ...]:
        return tuple(
            [
                name
                for name, a, b in zip(self._names, before, after, strict=True)
                if a is not b and (type(a) is not type(b) or a != b)
            ]
        )
