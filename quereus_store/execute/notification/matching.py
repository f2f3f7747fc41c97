"""Which rows and groups of a watched scope a log of changes touches.

Only what a transaction leaves behind counts: a row that came and went is no change, a row that went and
came again is one, and so is an update to equal values.  Values are compared as the table compares its
columns, so under NOCASE a watch on 'fig' sees a change of 'FIG'.

Chapter: views-and-maintained-tables, section 15.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from quereus_store.errors import StatusCode, sql_error
from quereus_store.execute.dml.changes import Change
from quereus_store.execute.notification.events import Match
from quereus_store.execute.notification.images import Identity, identity_of, key_identity
from quereus_store.execute.notification.scopes import (
    ChangeScope,
    Full,
    Groups,
    Rows,
    RowsByGroup,
    TableScope,
    Watch,
)
from quereus_store.modules.contract import Row
from quereus_store.schema.objects import Catalog, TableSchema, fold
from quereus_store.types import CollationRegistry, cast

TableKey: TypeAlias = tuple[str, str]
Net: TypeAlias = Sequence[tuple[Row | None, Row | None]]
"""Each touched key's row before and after the transaction."""


@dataclass(frozen=True, slots=True)
class WatchedTable:
    """A watch made ready: the table as it is, the watched columns, the registered values by identity.

    ``key`` is the table's folded schema and name, ``key_identity`` tells its rows apart.
    """

    watch: Watch
    table: TableSchema
    key: TableKey
    key_identity: Identity
    positions: tuple[int, ...] = ()
    identity: Identity | None = None
    registered: Mapping[Any, tuple[Any, ...]] | None = None

    def is_current(self, catalog: Catalog) -> bool:
        """Whether the table is in a catalog just as it was when the watch began."""
        found = catalog.table(*self.key)
        return found is self.table or found == self.table

    def hits(self, net: Net) -> tuple[tuple[Any, ...], ...] | None:
        """What a net change touches of the watch; None for nothing."""
        identity = self.identity
        if identity is None:
            return () if net else None
        rows = [row for pair in net for row in pair if row is not None]
        if self.registered is not None:
            touched = set(map(identity, rows))
            found = tuple([value for name, value in self.registered.items() if name in touched])
        else:
            groups: dict[Any, tuple[Any, ...]] = {}
            for row in rows:
                groups.setdefault(identity(row), tuple([row[position] for position in self.positions]))
            found = tuple(groups.values())
        return found or None

    def all_hits(self) -> tuple[tuple[Any, ...], ...]:
        """What is said to be touched where nobody knows what was: all registered values."""
        return tuple(self.registered.values()) if self.registered is not None else ()


def watched_tables(scope: ChangeScope, catalog: Catalog, registry: CollationRegistry) -> list[WatchedTable]:
    """The watches of a scope over the tables of a catalog.

    Raises MISUSE for unbound parameters, ERROR for unknown tables and columns.
    """
    if scope.unbound_parameters:
        listed = ", ".join(map(str, scope.unbound_parameters))
        raise sql_error(
            StatusCode.MISUSE,
            f"watch: scope has unbound parameters [{listed}]; call bind_parameters(params) on it first",
        )
    return [_watched(watch, catalog, registry) for watch in scope.watches]


def _watched(watch: Watch, catalog: Catalog, registry: CollationRegistry) -> WatchedTable:
    table = catalog.table(watch.schema, watch.table)
    if table is None:
        raise sql_error(StatusCode.ERROR, f"watch: table {watch.schema}.{watch.table} does not exist")
    if watch.columns != "all":
        for name in watch.columns:
            _position(table, name)
    scope = watch.scope
    known_by = (fold(table.schema), fold(table.name)), key_identity(table, registry)
    if isinstance(scope, Full):
        return WatchedTable(watch, table, *known_by)
    positions = tuple([_position(table, name) for name in _columns_of(scope)])
    identity = identity_of(table, positions, _collations(table, positions), registry)
    registered: dict[Any, tuple[Any, ...]] | None = None
    if isinstance(scope, Rows | RowsByGroup):
        registered = {}
        for values in scope.values:
            name = identity(_spread(table, positions, values))
            registered.setdefault(name, tuple(values))
    return WatchedTable(watch, table, *known_by, positions, identity, registered)


def _columns_of(scope: TableScope) -> tuple[str, ...]:
    if isinstance(scope, Rows):
        return scope.key
    return scope.group_by if isinstance(scope, Groups | RowsByGroup) else ()


def _collations(table: TableSchema, positions: Sequence[int]) -> list[str]:
    """The collation of each column: as the primary key has it, else as declared."""
    of_key = {part.column: part.collation for part in table.primary_key.parts}
    return [of_key.get(position, table.columns[position].collation) for position in positions]


def _spread(table: TableSchema, positions: Sequence[int], values: Sequence[Any]) -> Row:
    """A row that has these values, as their columns store them, at these positions."""
    if len(values) != len(positions):
        raise sql_error(
            StatusCode.MISUSE,
            f"watch: {len(positions)} values are needed for {table.qualified_name}, not {len(values)}",
        )
    row: list[Any] = [None] * len(table.columns)
    for position, value in zip(positions, values, strict=True):
        # As leniently as a statement's own cast, so that no row it means is missed.
        row[position] = cast(value, table.columns[position].type)
    return tuple(row)


def _position(table: TableSchema, name: str) -> int:
    found = table.column_index(name)
    if found is None:
        raise sql_error(
            StatusCode.ERROR, f"watch: column '{name}' does not exist on {table.qualified_name.lower()}"
        )
    return found


# --- the log ----------------------------------------------------------------------------------------------


class NetChanges:
    """The net change of each table of a log, worked out for the tables that somebody asks about."""

    def __init__(self, log: Iterable[Change]) -> None:
        self._logs: dict[TableKey, list[Change]] = {}
        for change in log:
            key = (fold(change.table.schema), fold(change.table.name))
            self._logs.setdefault(key, []).append(change)
        self._nets: dict[TableKey, Net] = {}

    def of(self, table: WatchedTable) -> Net:
        """What became of each key of a table; empty where it was not touched."""
        log = self._logs.get(table.key)
        if log is None:
            return ()
        known = self._nets.get(table.key)
        if known is None:
            known = self._nets[table.key] = _net(log, table.key_identity)
        return known


def _net(log: Sequence[Change], identity: Identity) -> Net:
    if len(log) == 1 and not (log[0].old and log[0].new):
        # Most commits: one statement that only inserts, or only deletes.
        return [(None, row) for row in log[0].new] or [(row, None) for row in log[0].old]
    net: dict[Any, tuple[Row | None, Row | None]] = {}
    for change in log:
        # All old rows of a statement go before its new ones come, so that keys may change places.
        for row in change.old:
            name = identity(row)
            net[name] = (net[name][0] if name in net else row, None)
        for row in change.new:
            name = identity(row)
            net[name] = (net[name][0] if name in net else None, row)
    return [pair for pair in net.values() if pair != (None, None)]


def matches(
    tables: Iterable[WatchedTable], net: NetChanges, unknown: frozenset[TableKey] | None
) -> tuple[Match, ...]:
    """What a commit touches of a scope.

    ``unknown`` are tables of which nobody knows what was written; their watches count as touched.  None: all.
    """
    found = []
    for table in tables:
        if unknown is None or table.key in unknown:
            found.append(Match(table.watch, table.all_hits()))
            continue
        hits = table.hits(net.of(table))
        if hits is not None:
            found.append(Match(table.watch, hits))
    return tuple(found)
