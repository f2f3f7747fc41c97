"""Short ways to say what the checks do: tables from SQL, transactions as blocks, rows as lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from quereus_store.errors import Error, StatusCode
from quereus_store.modules.conformance.services import KitServices, part_type
from quereus_store.modules.contract import (
    AccessKind,
    AccessPath,
    Comparison,
    EngineServices,
    Module,
    Row,
    UniqueViolation,
)
from quereus_store.modules.rewriting import index_host
from quereus_store.schema.builder import TableSettings, build_index, build_table
from quereus_store.schema.constraints import add_index
from quereus_store.schema.objects import IndexSchema, TableSchema
from quereus_store.sql import nodes
from quereus_store.sql.parser import parse_statement

MakeModule = Callable[[EngineServices], Module]
Bound = tuple[str, Any]


def table_of(sql: str, *indexes: str, module: str = "memory") -> TableSchema:
    """A table schema from CREATE TABLE and CREATE INDEX statements; columns admit NULL unless they say no."""
    node = parse_statement(sql)
    assert isinstance(node, nodes.CreateTable)
    settings = TableSettings(nullable_by_default=True, default_module=module)
    table = build_table(node, schema_name="main", settings=settings)
    for statement in indexes:
        table = add_index(table, index_of(table, statement)).table
    return table


def index_of(table: TableSchema, sql: str) -> IndexSchema:
    """An index schema from a CREATE INDEX statement."""
    node = parse_statement(sql)
    assert isinstance(node, nodes.CreateIndex)
    return build_index(node, table, part_typer=part_type)


class Harness:
    """A module under test and the one table that most checks use."""

    def __init__(self, make_module: MakeModule) -> None:
        self.services = KitServices()
        self.module = make_module(self.services)

    def create(self, sql: str, *indexes: str, rows: Sequence[Row] = ()) -> TableSchema:
        """A committed table with rows."""
        with self.writing() as transaction:
            schema = self.module.create_table(transaction, table_of(sql, *indexes, module=self.module.name))
            if rows:
                self.module.table(schema).insert(transaction, list(rows))
        return schema

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A write transaction, committed at the end and rolled back on an error."""
        transaction = self.module.begin_write(0.0)
        try:
            yield transaction
        except BaseException:
            transaction.rollback()
            raise
        transaction.commit()

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """A snapshot."""
        transaction = self.module.begin_read()
        try:
            yield transaction
        finally:
            transaction.rollback()

    def rows(self, schema: TableSchema, transaction: Any = None, reverse: bool = False) -> list[Row]:
        """All rows, as committed or as a transaction sees them."""
        if transaction is None:
            with self.reading() as snapshot:
                return self.rows(schema, snapshot, reverse)
        batches = list(self.module.table(schema).scan(transaction, reverse))
        assert all(batches), "a batch is empty"
        return [row for batch in batches for row in batch]

    def seek(
        self,
        schema: TableSchema,
        index: str | None,
        *prefix: Any,
        low: Bound | None = None,
        high: Bound | None = None,
        reverse: bool = False,
        transaction: Any = None,
    ) -> list[Row]:
        """The rows of a RANGE path; a bound is written ``(">=", 5)``."""
        if transaction is None:
            with self.reading() as snapshot:
                return self.seek(
                    schema, index, *prefix, low=low, high=high, reverse=reverse, transaction=snapshot
                )
        path = AccessPath(
            AccessKind.RANGE,
            index,
            len(prefix),
            Comparison(low[0]) if low else None,
            Comparison(high[0]) if high else None,
            reverse,
        )
        found = self.module.table(schema).range(
            transaction, path, prefix, low[1] if low else None, high[1] if high else None
        )
        return [row for batch in found for row in batch]

    def insert(self, schema: TableSchema, *rows: Row) -> None:
        """Insert and commit."""
        with self.writing() as transaction:
            self.module.table(schema).insert(transaction, list(rows))

    def create_index(self, schema: TableSchema, sql: str, transaction: Any) -> TableSchema:
        """Build an index; the table with it."""
        index = index_of(schema, sql)
        built = index_host(self.module, schema).create_index(transaction, schema, index)
        change = add_index(schema, index)
        for superfluous in change.erase:
            index_host(self.module, schema).drop_index(transaction, schema, superfluous)
        indexes = tuple(built if found is index else found for found in change.table.indexes)
        return replace(change.table, indexes=indexes)


@contextmanager
def violates(constraint: str | None, row: Row, existing: Row) -> Iterator[None]:
    """Expect a UniqueViolation with these particulars."""
    found = None
    try:
        yield
    except UniqueViolation as violation:
        name = violation.constraint.name if violation.constraint is not None else None
        found = (name, violation.row, violation.existing)
    assert found == (constraint, row, existing), f"{found} instead of a violation by {row}"


@contextmanager
def fails(code: StatusCode) -> Iterator[None]:
    """Expect an error with this status code."""
    found = None
    try:
        yield
    except Error as error:
        found = error.code
    assert found == code, f"{found!r} instead of {code!r}"
