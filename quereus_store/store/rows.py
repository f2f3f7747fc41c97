"""The rows of a table as keys and values: encoding, decoding, and naming what is corrupt.

A row is kept whole under its encoded primary key, so nothing ever depends on decoding a key.  Its places are
the columns, unless columns have come or gone since (``layouts.py``).
Batches are decoded in one C call; only a batch that fails is looked at row by row, to say which
row of which table is damaged.

Chapter: store-and-modules, sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from quereus_store.backends.contract import Previous, ReadTransaction
from quereus_store.catalog.layout import store_prefix, successor
from quereus_store.codec import KeyColumn, KeyEncoder, decode_key, key_column, key_encoder
from quereus_store.codec.rows import row_decoder, row_encoder
from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.modules.contract import Batch, EngineServices, Row
from quereus_store.schema.objects import TableSchema
from quereus_store.store.layouts import laid_out_decoder, laid_out_encoder
from quereus_store.types.logical import ANY, BUILT_IN_TYPES, JSON, LogicalType, PhysicalType

_WITH_DOCUMENTS = frozenset((PhysicalType.OBJECT, PhysicalType.ANY))


class RowStore:
    """Where and how the rows of one table are kept."""

    __slots__ = (
        "_decode_many",
        "_key_values",
        "_widths",
        "decode_one",
        "encode",
        "encode_many",
        "end",
        "key_of",
        "keys",
        "keys_of",
        "prefix",
        "probe",
        "probes",
        "schema",
        "store",
        "width",
    )

    def __init__(self, schema: TableSchema, services: EngineServices) -> None:
        self.schema = schema
        self.store = schema.storage_id
        self.prefix = store_prefix(self.store)
        self.end = successor(self.prefix)
        columns = primary_key_columns(schema, services)
        positions = tuple(part.column for part in schema.primary_key.parts)
        self.keys: KeyEncoder = key_encoder(columns, prefix=self.prefix, positions=positions)
        self.key_of = self.keys.encode
        self.keys_of = self.keys.encode_many
        self._key_values = _comparable(columns, positions)
        of_values = key_encoder(columns, prefix=self.prefix)
        self.probe, self.probes = of_values.encode, of_values.encode_many
        """The key that a tuple of key values has, and those of many tuples."""
        self.encode, self.encode_many = row_encoder()
        has_documents = any(_may_hold_documents(column.type) for column in schema.columns)
        self.decode_one, self._decode_many = row_decoder(has_documents)
        if schema.layout is not None:
            self.encode, self.encode_many = laid_out_encoder(schema.layout, self.encode, self.encode_many)
            self.decode_one, self._decode_many = laid_out_decoder(
                schema.layout, self.decode_one, self._decode_many
            )
        self.width = len(schema.columns)
        self._widths = {self.width}

    def decode(self, kv: ReadTransaction, value: bytes) -> Row:
        """A row from its value; CORRUPT, naming table and key, when it is none."""
        try:
            row = self.decode_one(value)
            if len(row) == self.width:
                return row
        except (Error, TypeError):
            pass
        raise self.corrupt(kv, value)

    def decode_many(self, kv: ReadTransaction, values: Sequence[bytes]) -> Batch:
        """Rows from their values; CORRUPT, naming table and key, when one is none."""
        try:
            rows = self._decode_many(values)
            if self._widths.issuperset(map(len, rows)):
                return rows
        except (Error, TypeError):
            pass
        for value in values:
            self.decode(kv, value)
        raise sql_error(StatusCode.CORRUPT, f"table {self.schema.qualified_name} is corrupt")

    def previous(self, rows: Sequence[Row]) -> Previous | None:
        """What the rows' keys have in the storage, for an undo log; None where rows cannot tell."""
        return None if self.schema.layout is not None else partial(self.encode_many, rows)

    def keeps_key(self, old: Row, new: Row) -> bool:
        """Whether these rows surely have the same key."""
        values = self._key_values
        return values is not None and bool(values(old) == values(new))

    def keep_keys(self, old: Sequence[Row], new: Sequence[Row]) -> bool:
        """:meth:`keeps_key` for many rows, in order."""
        values = self._key_values
        return values is not None and list(map(values, old)) == list(map(values, new))

    def keys_like(self, other: RowStore) -> bool:
        """Whether equal rows have equal keys here and there (the stores' prefixes aside)."""
        return self.keys.positions == other.keys.positions and (
            list(map(key_shape, self.keys.columns)) == list(map(key_shape, other.keys.columns))
        )

    # --- what is wrong ---------------------------------------------------------------------------------

    def corrupt(self, kv: ReadTransaction, value: bytes) -> Error:
        """The error for a damaged row; its key is looked for."""
        found = (
            key for batch in kv.scan(self.prefix, self.end) for key, candidate in batch if candidate == value
        )
        key = next(found, None)
        where = "" if key is None else f" with key {self.describe(key)}"
        table = self.schema.qualified_name
        return sql_error(
            StatusCode.CORRUPT, f"the row of table {table}{where} is corrupt: {self.reason(value)}"
        )

    def reason(self, value: bytes) -> str | None:
        """What is wrong with a stored row, in words; None when nothing is."""
        try:
            row: Any = self.decode_one(value)
        except Error as error:
            return error.message
        if not isinstance(row, tuple):
            return "its value is no row"
        if len(row) != self.width:
            return f"it has {len(row)} values, the table has {self.width} columns"
        return None

    def describe(self, key: bytes) -> str:
        """A row's key as a user would write it, or its bytes where that cannot be told."""
        try:
            values = decode_key(self.keys.columns, key[len(self.prefix) :])
        except Error:
            return key.hex(" ")
        return f"({', '.join(map(repr, values))})"


def primary_key_columns(schema: TableSchema, services: EngineServices) -> list[KeyColumn]:
    """The columns of a table's primary key as the codec wants them."""
    return [
        key_column(
            schema.columns[part.column].type,
            nullable=schema.columns[part.column].nullable,
            descending=part.descending,
            collation=services.collation(part.collation),
        )
        for part in schema.primary_key.parts
    ]


def _comparable(columns: list[KeyColumn], positions: tuple[int, ...]) -> Callable[[Row], Any] | None:
    """Key values that have equal keys where Python finds them equal; inside documents 1 and true differ."""
    if not columns or any(column.type in (JSON, ANY) for column in columns):
        return None
    return itemgetter(*positions)


def key_shape(column: KeyColumn) -> tuple[Any, ...]:
    """What decides about a key column's bytes (nullability only chooses faster code)."""
    return column.type, column.descending, column.normalizer


def _may_hold_documents(logical_type: LogicalType) -> bool:
    return logical_type.physical in _WITH_DOCUMENTS or logical_type not in BUILT_IN_TYPES
