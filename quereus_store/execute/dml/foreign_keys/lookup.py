"""Rows of a table by the values of some of its columns, for many keys in one call.

Where the primary key or an index begins with just these columns, compared the
way the foreign key compares, the keys are looked up there, whatever the size of
the table.  Otherwise the keys are joined with the table by a generated query,
which reads the table once per call however many keys there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from quereus_store.execute.codegen.compiler import compile_query
from quereus_store.execute.dml.generation import Workshop
from quereus_store.execute.dml.runtime import MutationRuntime, reads_of
from quereus_store.modules.contract import AccessKind, AccessPath, Row
from quereus_store.plan.binder.comparisons import compare, conjunction
from quereus_store.plan.binder.relations import contribution_of
from quereus_store.plan.expressions import Column, ColumnRef, Comparison, reference
from quereus_store.plan.nodes import Join, JoinKind, ParameterRows, TableScan
from quereus_store.plan.rules.access import seekable
from quereus_store.schema.objects import ColumnSchema, TableSchema, fold
from quereus_store.types import INTEGER
from quereus_store.types.collations import honours_collation

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Way:
    """An access path for the keys; ``order`` rearranges a key into the path's order."""

    path: AccessPath
    order: tuple[int, ...] | None


class KeyLookup:
    """Finds the rows of a table whose ``positions`` equal keys made of ``probes``, columns of another.

    Keys are tuples in the order of ``positions``, without NULLs.
    """

    def __init__(
        self,
        workshop: Workshop,
        table: TableSchema,
        positions: Sequence[int],
        probes: Sequence[ColumnSchema],
        *,
        probes_left: bool,
    ) -> None:
        self._workshop = workshop
        self.table = table
        self._positions = tuple(positions)
        self._handle = workshop.engine.table(table)
        number = workshop.context.number
        self._columns = tuple(
            [
                Column(number(), column.name, column.type, column.nullable, contribution_of(column))
                for column in table.columns
            ]
        )
        self._probes = tuple(
            [Column(number(), probe.name, probe.type, False, contribution_of(probe)) for probe in probes]
        )
        own = [self._columns[position] for position in positions]
        self._comparisons = [
            _equal(probe, column) if probes_left else _equal(column, probe)
            for probe, column in zip(self._probes, own, strict=True)
        ]
        self._way = self._find_way()

    def find(self, transaction: Any, keys: Sequence[Key]) -> list[list[Row]]:
        """For each key the rows that have it."""
        way = self._way
        if way is None:
            return self._join(transaction, keys)
        reader = transaction.reader(self.table.module)
        if way.order is not None:
            keys = [tuple([key[position] for position in way.order]) for key in keys]
        if way.path.kind is AccessKind.POINT:
            return [[] if row is None else [row] for row in self._handle.points(reader, keys)]
        return self._handle.ranges(reader, way.path, keys)

    def lacking(self, transaction: Any, keys: Sequence[Key]) -> list[Key]:
        """The keys that no row has."""
        way = self._way
        if way is not None and way.order is None and way.path.kind is AccessKind.POINT:
            reader = transaction.reader(self.table.module)
            if len(keys) == 1:
                return [] if self._handle.point(reader, keys[0]) is not None else list(keys)
            found: Sequence[Any] = self._handle.points(reader, keys)
            return [key for key, row in zip(keys, found, strict=True) if row is None]
        return [key for key, rows in zip(keys, self.find(transaction, keys), strict=True) if not rows]

    # -- by key or index --------------------------------------------------------

    def _find_way(self) -> _Way | None:
        """The primary key or an index that serves every comparison by its leading parts."""
        if not self._positions:
            return None
        if not all(map(self._is_seekable, self._comparisons, self._positions)):
            return None
        table = self.table
        key = [(part.column, part.collation) for part in table.primary_key.parts]
        order = self._order(key)
        if order is not None:
            whole = len(key) == len(self._positions)
            path = AccessPath(AccessKind.POINT if whole else AccessKind.RANGE, None, len(self._positions))
            return _Way(path, order if order != tuple(range(len(order))) else None)
        for index in table.indexes:
            if index.where is not None:
                continue
            order = self._order([(part.column, part.collation) for part in index.parts])
            if order is not None:
                path = AccessPath(AccessKind.RANGE, index.name, len(self._positions))
                return _Way(path, order if order != tuple(range(len(order))) else None)
        return None

    def _order(self, parts: Sequence[tuple[int | None, str]]) -> tuple[int, ...] | None:
        """How keys are rearranged to be the leading parts of a key; None if they are not these."""
        leading = parts[: len(self._positions)]
        if {column for column, _ in leading} != set(self._positions):
            return None
        order: list[int] = []
        for column, collation in leading:
            place = self._positions.index(column)
            using = self._comparisons[place].using
            if honours_collation(self.table.columns[self._positions[place]].type) and (
                fold(using) != fold(collation)
            ):
                return None
            order.append(place)
        return tuple(order)

    def _is_seekable(self, comparison: Comparison, position: int) -> bool:
        if not isinstance(comparison.left, ColumnRef) or not isinstance(comparison.right, ColumnRef):
            return False
        own = self.table.columns[position].type
        other = comparison.right if comparison.left.id in self._own_ids else comparison.left
        return seekable(own, other.type, "=")

    @cached_property
    def _own_ids(self) -> frozenset[int]:
        return frozenset(column.id for column in self._columns)

    # -- by a join --------------------------------------------------------------

    def _join(self, transaction: Any, keys: Sequence[Key]) -> list[list[Row]]:
        function, reads = self._program
        found: list[list[Row]] = [[] for _ in keys]
        rows = [(number, *key) for number, key in enumerate(keys)]
        runtime = MutationRuntime(None, transaction, (), [], rows).fork(reads)
        for batch in function(runtime):
            for number, *row in batch:
                found[number].append(tuple(row))
        return found

    @cached_property
    def _program(self) -> tuple[Callable[[Any], Any], Any]:
        """A query that gives, for each numbered key, the rows it finds."""
        ordinal = Column(self._workshop.context.number(), "ordinal", INTEGER, False)
        columns = self._columns
        keys = ParameterRows((ordinal, *self._probes), ())
        scan = TableScan(columns, self.table, tuple(range(len(columns))))
        join = Join((*keys.columns, *columns), JoinKind.INNER, keys, scan, conjunction(self._comparisons))
        compiled = compile_query(
            self._workshop.optimize(_only(join, (ordinal, *columns))), self._workshop.engine
        )
        return compiled.function, reads_of(compiled.transactions, frozenset())


def _only(join: Join, columns: tuple[Column, ...]) -> Any:
    from quereus_store.plan.nodes import Project

    references = tuple(map(reference, columns))
    return Project(columns, join, references)


def _equal(left: Column, right: Column) -> Comparison:
    return compare("=", reference(left), reference(right), None)
