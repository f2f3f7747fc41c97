"""What the tests of the store share: short ways to write tables, and an engine's stand-in.

Predicates and expressions of indexes are plain functions of a row here: the stand-in engine
"compiles" them by mapping them over the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from quereus_store.modules.contract import AccessKind, AccessPath, Batch, Comparison, Row, RowFunction
from quereus_store.schema.objects import (
    ColumnSchema,
    IndexPart,
    IndexSchema,
    KeyPart,
    PrimaryKey,
    TableSchema,
    UniqueConstraint,
)
from quereus_store.store import StoreModule
from quereus_store.types import ANY, Collation, CollationRegistry, LogicalType, TypeRegistry

TableMaker = Callable[..., TableSchema]


class Engine:
    """Stands in for the engine."""

    def __init__(self) -> None:
        self.collations = CollationRegistry()
        self.types = TypeRegistry()

    def collation(self, name: str) -> Collation:
        return self.collations.get(name)

    def row_function(self, table: TableSchema, expression: Any) -> RowFunction:
        return lambda rows: list(map(expression, rows))


def columns(**types: LogicalType) -> tuple[ColumnSchema, ...]:
    """Nullable columns."""
    return tuple(ColumnSchema(name, type_, nullable=True) for name, type_ in types.items())


def table(name: str, columns_: Sequence[ColumnSchema], key: str = "", **changes: Any) -> TableSchema:
    """A store table; ``key`` names its key columns, ``-name`` a descending one."""
    names = [column.name for column in columns_]
    parts = tuple(
        KeyPart(
            names.index(word.lstrip("-")),
            word.startswith("-"),
            columns_[names.index(word.lstrip("-"))].collation,
        )
        for word in key.split()
    )
    return TableSchema("main", name, tuple(columns_), PrimaryKey(parts), module="store", **changes)


def index(on: TableSchema, name: str, *words: Any, unique: bool = False, where: Any = None) -> IndexSchema:
    """An index over columns (by name, ``-name`` descending) and functions of a row."""
    parts = []
    for word in words:
        if callable(word):
            parts.append(IndexPart(None, word, ANY))
            continue
        position = on.column_index(word.lstrip("-"))
        assert position is not None
        column = on.columns[position]
        parts.append(
            IndexPart(position, None, column.type, column.nullable, word.startswith("-"), column.collation)
        )
    return IndexSchema(name, tuple(parts), unique=unique, where=where)


def with_indexes(on: TableSchema, *indexes: IndexSchema) -> TableSchema:
    """The table with these indexes, and a UNIQUE constraint for each unique one."""
    constraints = tuple(
        UniqueConstraint(
            i.name, tuple(p.column for p in i.parts if p.column is not None), i.name, from_index=True
        )
        for i in indexes
        if i.unique
    )
    return replace(on, indexes=on.indexes + indexes, unique_constraints=on.unique_constraints + constraints)


def create(module: StoreModule, schema: TableSchema, rows: Sequence[Row] = ()) -> TableSchema:
    """Make a table with rows, committed."""
    with writing(module) as transaction:
        schema = module.create_table(transaction, schema)
        if rows:
            module.table(schema).insert(transaction, list(rows))
    return schema


@contextmanager
def writing(module: StoreModule) -> Iterator[Any]:
    """A write transaction that commits, or rolls back when the block raises."""
    transaction = module.begin_write(1.0)
    try:
        yield transaction
    except BaseException:
        transaction.rollback()
        raise
    transaction.commit()


@contextmanager
def reading(module: StoreModule) -> Iterator[Any]:
    """A snapshot."""
    transaction = module.begin_read()
    try:
        yield transaction
    finally:
        transaction.rollback()


def flat(batches: Iterable[Batch]) -> list[Row]:
    """The rows of all batches."""
    return [row for batch in batches for row in batch]


def all_rows(module: StoreModule, schema: TableSchema, reverse: bool = False) -> list[Row]:
    """All rows as last committed."""
    with reading(module) as transaction:
        return flat(module.table(schema).scan(transaction, reverse))


def seek(
    module: StoreModule,
    schema: TableSchema,
    index_name: str | None,
    *prefix: Any,
    low: tuple[str, Any] | None = None,
    high: tuple[str, Any] | None = None,
    reverse: bool = False,
) -> list[Row]:
    """The rows of a range, as last committed; bounds are like ``(">=", 3)``."""
    path = AccessPath(
        AccessKind.RANGE,
        index_name,
        len(prefix),
        Comparison(low[0]) if low else None,
        Comparison(high[0]) if high else None,
        reverse,
    )
    with reading(module) as transaction:
        found = module.table(schema).range(
            transaction, path, prefix, low[1] if low else None, high[1] if high else None
        )
        return flat(found)
