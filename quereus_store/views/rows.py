"""Rows as members of sets: when two are the same, and what differs between two sets.

Maintenance compares rows exactly, not as SQL does: where 5 becomes 5.0, 0.0 becomes -0.0 or ``true``
becomes 1 the stored row has to change.  Rows of columns whose type admits one class of
value are their own identity, but for zeros among reals; others are told apart by their text.

Chapter: views-and-maintained-tables, section 6 (no-op suppression).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from quereus_store.modules.contract import Row
from quereus_store.schema.objects import ColumnSchema, TableSchema
from quereus_store.types import (
    BLOB,
    BOOLEAN,
    DATE,
    DATETIME,
    INTEGER,
    NUMERIC,
    REAL,
    TEXT,
    TIME,
    TIMESPAN,
    LogicalType,
)

Identity = Callable[[Row], Any]
_PLAIN = frozenset({INTEGER, REAL, TEXT, BLOB, BOOLEAN, DATE, TIME, DATETIME, TIMESPAN})
_EXACT = _PLAIN - {REAL}
_HASHABLE = _PLAIN | {NUMERIC}


def is_plain(logical_type: LogicalType) -> bool:
    """Whether equal values of a type are the same value (but for the sign of zero), and can be hashed."""
    return logical_type in _PLAIN


def plain_rows(columns: Iterable[ColumnSchema]) -> bool:
    """Whether rows of these columns are their own identity."""
    return all(column.type in _EXACT for column in columns)


def cells(positions: Sequence[int]) -> Callable[[Row], tuple[Any, ...]]:
    """A function from a row to the tuple of some of its cells."""
    if len(positions) == 0:
        return lambda row: ()
    if len(positions) == 1:
        only = positions[0]
        return lambda row: (row[only],)
    return itemgetter(*positions)


def identity_of(columns: Sequence[ColumnSchema], positions: Sequence[int] | None = None) -> Identity:
    """A hashable stand-in for a row, or for some of its cells: equal where these are the same."""
    chosen = [columns[position] for position in (range(len(columns)) if positions is None else positions)]
    whole = positions is None
    get = _itself if whole else cells(positions or ())
    if plain_rows(chosen):
        return get
    if all(column.type in _PLAIN for column in chosen):
        return _with_signs(get, [place for place, column in enumerate(chosen) if column.type is REAL])
    if all(column.type in _HASHABLE for column in chosen):
        return _with_classes if whole else lambda row: _with_classes(get(row))
    return repr if whole else lambda row: repr(get(row))


def _itself(row: Row) -> Any:
    return row


def _with_signs(get: Callable[[Row], Any], reals: Sequence[int]) -> Identity:
    """Rows with reals, of which zeros are equal and yet may look different."""
    reals_of = cells(reals)

    def identity(row: Row) -> Any:
        found = get(row)
        return (found, repr(found)) if 0.0 in reals_of(found) else found

    return identity


def _with_classes(row: Row) -> Any:
    """A row of numbers that may be of either class."""
    return (row, repr(row)) if 0.0 in row else (row, tuple(map(type, row)))


@dataclass(slots=True)
class Delta:
    """What happened to a table: rows that went, rows that came (an update is one of each)."""

    removed: list[Row] = field(default_factory=list)
    added: list[Row] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)

    @property
    def rows(self) -> list[Row]:
        """All rows concerned."""
        return self.removed + self.added if self.removed and self.added else self.removed or self.added


@dataclass(slots=True)
class Difference:
    """How stored rows are to change: rows to delete, rows to insert, pairs to update.

    ``in_order``: the pairs follow the source's rows, and UNIQUE is judged after each of them.
    """

    deleted: list[Row] = field(default_factory=list)
    inserted: list[Row] = field(default_factory=list)
    old: list[Row] = field(default_factory=list)
    new: list[Row] = field(default_factory=list)
    in_order: bool = False

    def __bool__(self) -> bool:
        return bool(self.deleted or self.inserted or self.old)

    @property
    def delta(self) -> Delta:
        """The same as rows that went and rows that came."""
        return Delta(self.deleted + self.old, self.inserted + self.new)


class RowSet:
    """The rows of one table as a set under its primary key."""

    def __init__(self, table: TableSchema) -> None:
        self.positions = tuple([part.column for part in table.primary_key.parts])
        self.key = identity_of(table.columns, self.positions)
        self.identity = identity_of(table.columns)
        self._whole = len(self.positions) == len(table.columns)

    def difference(self, stored: Sequence[Row], wanted: Sequence[Row]) -> Difference:
        """What turns the stored rows into the wanted ones; both are sets under the key."""
        if not stored or not wanted:
            return Difference(list(stored), list(wanted))
        key, identity = self.key, self.identity
        before = dict(zip(map(key, stored), stored, strict=True))
        found = Difference()
        for row in wanted:
            old = before.pop(key(row), None)
            if old is None:
                found.inserted.append(row)
            elif not self._whole and old is not row and identity(old) != identity(row):
                found.old.append(old)
                found.new.append(row)
        found.deleted = list(before.values())
        return found


def net_delta(table: TableSchema, changes: Sequence[Any]) -> Delta:
    """What several changes of one table amount to: rows that came and went again cancel out."""
    if len(changes) == 1:
        _, _, old, new, _ = changes[0]
        if not old or not new:
            return Delta(list(old), list(new))
    identity = identity_of(table.columns)
    removed: dict[Any, Row] = {}
    added: dict[Any, Row] = {}
    for change in changes:
        for row in change.old:
            name = identity(row)
            if added.pop(name, None) is None:
                removed[name] = row
        for row in change.new:
            name = identity(row)
            if removed.pop(name, None) is None:
                added[name] = row
    return Delta(list(removed.values()), list(added.values()))
