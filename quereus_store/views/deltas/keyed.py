"""Recomputing what was touched: groups, partitions, keys of the kept side of an outer join.

From the changed rows comes the set of touched values of some output columns; the body
restricted to these values gives the rows as they should be, a look-up by the same values
the rows as they are stored.  Only what differs is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from quereus_store.execute.engine import Engine
from quereus_store.modules.contract import AccessKind, AccessPath, Row
from quereus_store.plan import nodes as plans
from quereus_store.plan.expressions import Column, reference
from quereus_store.schema.objects import IndexPart, KeyPart, TableSchema
from quereus_store.types.sortkeys import identity_key
from quereus_store.views.body import TableKey, key_of
from quereus_store.views.deltas.anchors import Anchors, TouchedValues
from quereus_store.views.deltas.linear import Compile, estimate_of
from quereus_store.views.deltas.restriction import Restrictor, Target
from quereus_store.views.deltas.substitution import replaced, scan_id
from quereus_store.views.programs import Program
from quereus_store.views.rows import Delta, Difference, RowSet, cells, is_plain

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import Transaction

Values = list[tuple[Any, ...]]


_Reorder = Callable[[tuple[Any, ...]], tuple[Any, ...]]


def _itself(value: tuple[Any, ...]) -> tuple[Any, ...]:
    return value


class TooMuch(Exception):
    """So many values are touched that computing everything anew is cheaper."""


class KeyColumns:
    """The columns by which touched rows are found: positions, collations, ways to look stored rows up."""

    def __init__(self, engine: Engine, table: TableSchema, columns: Sequence[Column], found: Anchors) -> None:
        self.positions = choose_positions(table, columns, found)
        self.using = [found[columns[position].id] for position in self.positions]
        self.columns = [columns[position] for position in self.positions]
        recipes = [
            identity_key(column.type, True, engine.collation(using)).function
            for column, using in zip(self.columns, self.using, strict=True)
        ]
        self._recipes = recipes if any(recipe is not None for recipe in recipes) else None
        self.plain = all(is_plain(column.type) for column in self.columns)
        self._cells = cells(self.positions)
        self._table = table
        self._engine = engine
        self._way = self._lookup()

    def name(self, value: tuple[Any, ...]) -> Any:
        """What is equal for values that are compared as equal."""
        if self._recipes is None:
            return value
        return tuple(
            [
                cell if recipe is None or cell is None else recipe(cell)
                for cell, recipe in zip(value, self._recipes, strict=True)
            ]
        )

    def distinct(self, values: Values) -> Values:
        """The values without repeats."""
        if len(values) <= 1:
            return values
        if self._recipes is None:
            return list(dict.fromkeys(values))
        return list({self.name(value): value for value in values}.values())

    def stored(self, transaction: Transaction, values: Values) -> list[Row]:
        """The stored rows that have one of these values."""
        return self._way(transaction.reader(self._table.module), values)

    def _lookup(self) -> Callable[[Any, Values], list[Row]]:
        if not self.positions or not self.plain:
            return self._by_scan
        parts = self._table.primary_key.parts
        order = self._led_by(parts)
        if order is not None:
            if len(parts) == len(self.positions):
                return partial(self._by_point, order)
            return self._by_range(AccessPath(AccessKind.RANGES, None, len(self.positions)), order)
        for index in self._table.indexes:
            order = self._led_by(index.parts)
            if index.where is None and order is not None:
                return self._by_range(AccessPath(AccessKind.RANGES, index.name, len(self.positions)), order)
        return self._by_scan

    def _led_by(self, parts: Sequence[KeyPart | IndexPart]) -> _Reorder | None:
        """The way from values to the leading parts of a key; None if the key does not begin with them."""
        width = len(self.positions)
        leading = parts[:width]
        if {part.column for part in leading} != set(self.positions):
            return None
        places = [self.positions.index(part.column) for part in leading]
        for part, place in zip(leading, places, strict=True):
            if self.columns[place].type.is_textual and part.collation != self.using[place]:
                return None
        return _itself if places == list(range(width)) else cells(places)

    def _by_point(self, order: _Reorder, reader: Any, values: Values) -> list[Row]:
        handle = self._engine.table(self._table)
        return [row for row in handle.points(reader, list(map(order, values))) if row is not None]

    def _by_range(self, path: AccessPath, order: _Reorder) -> Callable[[Any, Values], list[Row]]:
        handle = self._engine.table(self._table)

        def stored(reader: Any, values: Values) -> list[Row]:
            found = handle.ranges(reader, path, list(map(order, values)))
            return [row for rows in found for row in rows]

        return stored

    def _by_scan(self, reader: Any, values: Values) -> list[Row]:
        names = set(map(self.name, values))
        cells_of, name = self._cells, self.name
        scan = self._engine.table(self._table).scan(reader)
        if self._recipes is None:
            if len(self.positions) == 1:
                only = self.positions[0]
                single = {value[0] for value in values}
                return [row for batch in scan for row in batch if row[only] in single]
            return [row for batch in scan for row in batch if cells_of(row) in names]
        return [row for batch in scan for row in batch if name(cells_of(row)) in names]


def choose_positions(table: TableSchema, columns: Sequence[Column], found: Anchors) -> tuple[int, ...]:
    """Which anchor columns to go by: the table's key, as much of its beginning as there is, else all."""
    anchored = [position for position, column in enumerate(columns) if column.id in found]
    prefix: list[int] = []
    for part in table.primary_key.parts:
        if part.column not in anchored:
            break
        prefix.append(part.column)
    if prefix:
        return tuple(prefix)
    plain = [position for position in anchored if is_plain(columns[position].type)]
    return tuple(plain or anchored)


class Recomputation:
    """The rows of given values, by the restricted body; one program per pattern of NULLs."""

    def __init__(
        self, compile_plan: Compile, plan: plans.PlanNode, number: Callable[[], int], keys: KeyColumns
    ) -> None:
        self._compile = compile_plan
        self._plan = plan
        self._number = number
        self._keys = keys
        self._programs: dict[tuple[tuple[bool, ...], float], Program] = {}

    def rows(self, session: Session, transaction: Transaction, values: Values) -> list[Row]:
        """The body's rows that have one of these values."""
        patterns: dict[tuple[bool, ...], Values] = {}
        for value in values:
            pattern = tuple([cell is None for cell in value]) if None in value else ()
            patterns.setdefault(pattern, []).append(value)
        found: list[Row] = []
        for pattern, members in patterns.items():
            program = self.program(pattern, estimate_of(len(members)))
            found += program.rows(session, transaction, [members])
        return found

    def program(self, pattern: tuple[bool, ...] = (), estimate: float = 1.0) -> Program:
        """The program for values that are NULL where the pattern says so."""
        known = self._programs.get((pattern, estimate))
        if known is None:
            keys = self._keys
            nulls = pattern or (False,) * len(keys.columns)
            targets = [
                Target(reference(column), using, column.type, is_null)
                for column, using, is_null in zip(keys.columns, keys.using, nulls, strict=True)
            ]
            restrictor = Restrictor(0, estimate, self._number)
            plan = restrictor.restricted(self._plan, targets)
            known = self._programs[pattern, estimate] = self._compile(plan)
        return known


class Keyed:
    """Recomputes the rows of touched values."""

    name = "touched keys"
    FEW = 64
    UNHASHED = 4

    def __init__(
        self,
        compile_plan: Compile,
        plan: plans.PlanNode,
        number: Callable[[], int],
        scans: Sequence[plans.TableScan],
        keys: KeyColumns,
        rows: RowSet,
        count: Callable[[Any], int],
    ) -> None:
        self.keys = keys
        self.recomputation = Recomputation(compile_plan, plan, number, keys)
        self._compile = compile_plan
        self._plan = plan
        self._number = number
        self._scans = scans
        self._rows = rows
        self._count = count
        self._touched: dict[tuple[int, tuple[int, ...], float], Program | None] = {}

    def difference(
        self, session: Session, transaction: Transaction, deltas: Mapping[TableKey, Delta]
    ) -> Difference:
        """The rows of all touched values, stored against wanted; raises TooMuch for too many."""
        values = self.touched(session, transaction, deltas)
        few = len(values) <= (self.FEW if self.keys.plain else self.UNHASHED)
        if not few and (not self.keys.plain or len(values) > self._count(transaction) // 2):
            raise TooMuch
        return self.recomputed(session, transaction, values)

    def recomputed(self, session: Session, transaction: Transaction, values: Values) -> Difference:
        """The rows of these values, stored against wanted."""
        if not values:
            return Difference()
        wanted = self.recomputation.rows(session, transaction, values)
        return self._rows.difference(self.keys.stored(transaction, values), wanted)

    def touched(self, session: Session, transaction: Transaction, deltas: Mapping[TableKey, Delta]) -> Values:
        """The distinct values that changed rows lead to.

        Where several scans changed, a row may have met another that went, too: so each scan's changed rows
        meet the others as they are now, and what went of them.
        """
        values: Values = []
        for scan in self._scans:
            rows = deltas[key_of(scan.table)].rows
            others = [other for other in self._scans if other is not scan]
            for size in range(len(others) + 1):
                for gone in combinations(others, size):
                    program = self._touched_program(scan, gone, estimate_of(len(rows)))
                    if program is not None:
                        given = [rows, *[deltas[key_of(other.table)].removed for other in gone]]
                        values += program.rows(session, transaction, given)
        return self.keys.distinct(values)

    def _touched_program(
        self, scan: plans.TableScan, gone: Sequence[plans.TableScan], estimate: float
    ) -> Program | None:
        known = (scan_id(scan), tuple(map(scan_id, gone)), estimate)
        if known not in self._touched:
            slots = {scan_id(other): slot for slot, other in enumerate(gone, 1)}
            before = replaced(self._plan, slots, estimate) if gone else self._plan
            writer = TouchedValues(scan_id(scan), 0, estimate, self._number)
            plan = writer.plan(before, [reference(column) for column in self.keys.columns])
            self._touched[known] = None if plan is None else self._compile(plan)
        return self._touched[known]

    @property
    def lines(self) -> list[str]:
        """The restricted plan, as text."""
        return self.recomputation.program().lines
