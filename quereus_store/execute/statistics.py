"""What ANALYZE finds out about a table, in one pass and bounded memory.

==================  ======================================================================
of each column      how
==================  ======================================================================
``distinctCount``   exact up to :data:`DISTINCT_KEPT` values, then an estimate (below)
``nullCount``       exact
``minValue``        exact, in the column's own order
``maxValue``        exact, in the column's own order
``histogram``       for key members and leading index columns: the bounds of equally filled
                    buckets of a uniform sample of rows
==================  ======================================================================

Distinct values are counted by *adaptive sampling*: a set keeps the hashes whose lowest ``k`` bits
are zero, and whenever it outgrows its bound, ``k`` is raised by one, which about halves it.  The
set's size times ``2**k`` estimates the number of distinct values; with ``k`` still 0 it is exact.

Chapters: functions, section 14; store-and-modules, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from quereus_store.modules.contract import Row
from quereus_store.schema.objects import ColumnSchema, TableSchema
from quereus_store.types import CollationRegistry
from quereus_store.types.sortkeys import identity_key, order_key

DISTINCT_KEPT = 16_384
SAMPLE_ROWS = 10_000
BUCKETS = 64


class ColumnStatistics:
    """The figures of one column, batch by batch."""

    def __init__(self, column: ColumnSchema, collations: CollationRegistry) -> None:
        collation = collations.get(column.collation)
        self._identity = identity_key(column.type, False, collation).function
        self.order = order_key(column.type, False, collation).function
        self._hashes: set[int] = set()
        self._mask = 0
        self.nulls = 0
        self._extremes: list[Any] = []

    def add(self, values: Sequence[Any]) -> None:
        """Take in the column's values of one batch."""
        present = [value for value in values if value is not None]
        self.nulls += len(values) - len(present)
        if not present:
            return
        keys = present if self._identity is None else map(self._identity, present)
        mask = self._mask
        # A tuple's hash is well mixed, an integer's is the integer.
        self._hashes.update([found for found in map(hash, zip(keys)) if not found & mask])
        while len(self._hashes) > DISTINCT_KEPT:
            mask = self._mask = self._mask * 2 + 1
            self._hashes = {found for found in self._hashes if not found & mask}
        candidates = self._extremes + present
        self._extremes = [min(candidates, key=self.order), max(candidates, key=self.order)]

    def record(self) -> dict[str, Any]:
        """The figures under the names that are kept."""
        least, greatest = self._extremes or (None, None)
        return {
            "distinctCount": len(self._hashes) * (self._mask + 1),
            "nullCount": self.nulls,
            "minValue": least,
            "maxValue": greatest,
        }


def table_statistics(
    table: TableSchema, batches: Iterable[list[Row]], collations: CollationRegistry
) -> dict[str, Any]:
    """The record of a table: ``rowCount``, ``analyzedRowCount`` and ``columnStats`` by folded name."""
    columns = [ColumnStatistics(column, collations) for column in table.columns]
    sample = _Sample()
    for batch in batches:
        sample.add(batch)
        for statistics, values in zip(columns, zip(*batch, strict=True), strict=True):
            statistics.add(values)
    records = [statistics.record() for statistics in columns]
    for position in _with_histogram(table):
        bounds = _bounds([row[position] for row in sample.rows], columns[position])
        if bounds:
            records[position]["histogram"] = bounds
    return {
        "rowCount": sample.seen,
        "analyzedRowCount": sample.seen,
        "columnStats": {
            column.name.lower(): record for column, record in zip(table.columns, records, strict=True)
        },
    }


def _with_histogram(table: TableSchema) -> list[int]:
    positions = {part.column for part in table.primary_key.parts}
    positions.update(
        index.parts[0].column for index in table.indexes if index.parts and index.parts[0].column is not None
    )
    return sorted(positions)


def _bounds(values: list[Any], statistics: ColumnStatistics) -> list[Any]:
    """The upper bounds of equally filled buckets."""
    present = sorted((value for value in values if value is not None), key=statistics.order)
    buckets = min(BUCKETS, len(present))
    return [present[(bucket + 1) * len(present) // buckets - 1] for bucket in range(buckets)]


class _Sample:
    """A uniform sample of the rows that went past, the same for the same rows."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.seen = 0
        self._random = Random(0)

    def add(self, batch: list[Row]) -> None:
        room = SAMPLE_ROWS - len(self.rows)
        self.rows += batch[:room]
        for number, row in enumerate(batch[room:], self.seen + max(room, 0) + 1):
            place = self._random.randrange(number)
            if place < SAMPLE_ROWS:
                self.rows[place] = row
        self.seen += len(batch)
