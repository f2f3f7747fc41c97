"""Secondary indexes: the entries that rows have, and what changes of rows do to them.

An entry's value is the key of its row, prefix included, so that the values of an index range are just
what ``get_many`` wants.  Its key depends on the index:

===================  ======================================================  ===========================
index                key                                                     uniqueness is checked by
===================  ======================================================  ===========================
unique               index columns                                           the insert itself
unique, with a NULL  index columns + key of the row                          nothing, NULLs never collide
other                index columns + key of the row                          a seek, if a constraint says so
===================  ======================================================  ===========================

A partial index has entries of the rows where its predicate is true; an expression part is computed
by a function that the engine compiles and read like one more column.

Chapter: store-and-modules, sections 1, 3 and 9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import add, itemgetter
from typing import Any

from quereus_store.backends.contract import Item, ReadTransaction
from quereus_store.catalog.layout import store_prefix, successor
from quereus_store.codec import KeyColumn, KeyEncoder, key_column, key_encoder
from quereus_store.modules.contract import EngineServices, Row, RowFunction, predicate_function
from quereus_store.schema.objects import IndexPart, IndexSchema, TableSchema, UniqueConstraint
from quereus_store.store.rows import key_shape
from quereus_store.types.logical import ANY, JSON

AFTER_SUFFIX = b"\xff"
"""Above the first byte of every row key, so above all entries that share their index columns."""


@dataclass(slots=True)
class Entries:
    """The entries of a batch of rows; ``places`` are their positions in the batch."""

    places: Sequence[int]
    items: list[Item]


class IndexStore:
    """Where and how the entries of one index are kept.

    ``constraint`` is what the index enforces, None for an index that admits equal entries.
    """

    __slots__ = (
        "_computed",
        "_nullable",
        "_own_key",
        "_own_keys",
        "_plain",
        "_predicate",
        "_values",
        "constraint",
        "end",
        "index",
        "keys",
        "prefix",
        "probe",
        "shape",
        "store",
        "unique",
        "width",
    )

    def __init__(
        self,
        schema: TableSchema,
        index: IndexSchema,
        services: EngineServices,
        constraint: UniqueConstraint | None,
    ) -> None:
        self.index = index
        self.store = index.storage_id
        self.unique = index.unique
        if index.unique and constraint is None:
            columns = tuple(part.column for part in index.parts if part.column is not None)
            constraint = UniqueConstraint(index.name, columns, index.name, from_index=True)
        self.constraint = constraint
        self.prefix = store_prefix(self.store)
        self.end = successor(self.prefix)
        width = len(schema.columns)
        expressions = [part.expression for part in index.parts if part.column is None]
        computed = iter(range(width, width + len(expressions)))
        positions = tuple(next(computed) if part.column is None else part.column for part in index.parts)
        self._computed: list[RowFunction] = [
            services.row_function(schema, expression) for expression in expressions if expression is not None
        ]
        self._predicate = None if index.where is None else predicate_function(services, schema, index.where)
        columns_of_key = [_key_column(part, services) for part in index.parts]
        self.keys: KeyEncoder = key_encoder(columns_of_key, prefix=self.prefix, positions=positions)
        self.probe = key_encoder(columns_of_key, prefix=self.prefix).encode
        """The bytes that values of all parts have, without those of a row."""
        self.width = len(index.parts)
        self._own_key = self.keys.encode
        self._own_keys = self.keys.encode_many
        self._plain = self._predicate is None and not expressions
        self._nullable = [
            position for position, part in zip(positions, index.parts, strict=True) if part.nullable
        ]
        self._values = _plain_columns(index, positions)
        self.shape = (list(map(key_shape, columns_of_key)), positions, expressions, index.unique, index.where)
        """What the entries look like; indexes of equal shape over equal rows have equal entries."""

    # --- entries of rows -------------------------------------------------------------------------------

    def entries(self, rows: Sequence[Row], row_keys: list[bytes]) -> Entries:
        """The entries that these rows have."""
        places: Sequence[int] = range(len(rows))
        if self._predicate is not None:
            held = self._predicate(rows)
            places = list(compress(places, held))
            rows = list(compress(rows, held))
            row_keys = list(compress(row_keys, held))
        return Entries(places, list(zip(self._entry_keys(rows, row_keys), row_keys, strict=True)))

    def entry(self, row: Row, row_key: bytes) -> bytes | None:
        """The key of the entry of one row, None for a row without one."""
        if not self._plain:
            return self.aligned((row,), [row_key])[0]
        own = self._own_key(row)
        return own if self.unique and self._nulls((row,)) is None else own + row_key

    def aligned(self, rows: Sequence[Row], row_keys: list[bytes]) -> list[bytes | None]:
        """The key of the entry of each row, None for rows without one."""
        keys: list[bytes | None] = [*self._entry_keys(rows, row_keys)]
        if self._predicate is not None:
            keys = [key if held else None for key, held in zip(keys, self._predicate(rows), strict=True)]
        return keys

    def _entry_keys(self, rows: Sequence[Row], row_keys: list[bytes]) -> list[bytes]:
        rows = self.extend(rows)
        own = self._own_keys(rows)
        if not self.unique:
            return list(map(add, own, row_keys))
        nulls = self._nulls(rows)
        if nulls is None:
            return own
        return [
            key + row_key if null else key for key, row_key, null in zip(own, row_keys, nulls, strict=True)
        ]

    def extend(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows with the values of expression parts behind their columns."""
        if not self._computed:
            return rows
        columns = [function(rows) for function in self._computed]
        return [(*row, *values) for row, values in zip(rows, zip(*columns, strict=True), strict=True)]

    def _nulls(self, rows: Sequence[Row]) -> list[bool] | None:
        """Which of the (extended) rows have a NULL among the parts; None: none of them."""
        positions = self._nullable
        if not positions:
            return None
        if len(positions) == 1:
            (position,) = positions
            nulls = [row[position] is None for row in rows]
        else:
            # Not `in`: it would compare a value with None by the value's own equality.
            nulls = [any(row[position] is None for position in positions) for row in rows]
        return nulls if True in nulls else None

    def unchanged(self, old: Sequence[Row], new: Sequence[Row]) -> bool:
        """Whether these changes surely leave the columns of the index as they were."""
        values = self._values
        return values is not None and list(map(values, old)) == list(map(values, new))

    def unchanged_by(self, old: Row, new: Row) -> bool:
        """:meth:`unchanged` for one row."""
        values = self._values
        return values is not None and bool(values(old) == values(new))

    # --- uniqueness ------------------------------------------------------------------------------------

    def checked_key(self, row: Row) -> bytes | None:
        """The index columns' bytes under which the row must be alone; None when it need not be."""
        if self.constraint is None or (self._predicate is not None and not self._predicate((row,))[0]):
            return None
        rows = self.extend((row,))
        return None if self._nulls(rows) else self._own_keys(rows)[0]

    def holder(self, kv: ReadTransaction, own: bytes, replacing: bytes | None = None) -> bytes | None:
        """The key of an existing row (other than ``replacing``) with these index columns' bytes."""
        if self.unique:
            row_key = kv.get(own)
            return None if row_key == replacing else row_key
        for batch in kv.scan_values(own, own + AFTER_SUFFIX, batch_size=2):
            for row_key in batch:
                if row_key != replacing:
                    return row_key
        return None


def _key_column(part: IndexPart, services: EngineServices) -> KeyColumn:
    return key_column(
        part.type,
        nullable=part.nullable,
        descending=part.descending,
        collation=services.collation(part.collation),
    )


def _plain_columns(index: IndexSchema, positions: tuple[int, ...]) -> Callable[[Row], Any] | None:
    """What Python's equality may compare in place of keys.

    Nothing of an index whose entries depend on more than its columns, and nothing where equal Python
    values have different keys: inside documents 1 and true differ.
    """
    if index.where is not None or not positions:
        return None
    if any(part.column is None or part.type in (JSON, ANY) for part in index.parts):
        return None
    return itemgetter(*positions)
