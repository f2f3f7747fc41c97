"""One ALTER TABLE at work: the table, and the steps that all its forms are made of.

A form builds the new schema from the old one and then takes some of these steps:
*rewrite* the rows (the module streams them through a function), *build* and *erase* indexes,
*publish* the new schema.  All run inside the statement's savepoint, so a form that raises at
any point leaves table, catalog and transaction as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.execute.dml.violations import index_violation, unique_violation
from quereus_store.execute.dml.violations import violation as constraint_error
from quereus_store.execute.notification.events import Reshape
from quereus_store.execute.transactions import Transaction
from quereus_store.execute.watch import Watch
from quereus_store.modules.contract import Batch, ColumnsInPlace, Module, Row, UniqueViolation
from quereus_store.modules.rewriting import index_host, rewrite_table
from quereus_store.plan.binder import BindContext
from quereus_store.schema.constraints import IndexChange
from quereus_store.schema.manager import put_table
from quereus_store.schema.objects import Catalog, ColumnSchema, IndexSchema, TableSchema, fold
from quereus_store.types import to_text

if TYPE_CHECKING:
    from quereus_store.execute.engine import Engine
    from quereus_store.execute.session import Session

Transform = Callable[[Batch], Batch]


@dataclass(frozen=True, slots=True)
class Alteration:
    """What every form of ALTER TABLE works on; ``table`` is the table before the change."""

    session: Session
    transaction: Transaction
    table: TableSchema
    position: SourcePosition | None

    @property
    def engine(self) -> Engine:
        """The engine of the session."""
        return self.session.engine

    @property
    def catalog(self) -> Catalog:
        """The catalog that the statement found."""
        return self.transaction.catalog

    @property
    def module(self) -> Module:
        """Where the table is stored."""
        return self.engine.module(self.table.module)

    @property
    def writer(self) -> Any:
        """The module's writing transaction."""
        return self.transaction.writer(self.table.module)

    def context(self, table: TableSchema) -> BindContext:
        """A context for binding expressions of ``table`` as if it were published already."""
        context = self.session.bind_context(self.transaction, {})
        return replace(context, catalog=put_table(context.catalog, table))

    def error(self, code: StatusCode, message: str) -> Error:
        """An error at the statement's place."""
        return sql_error(code, message, self.position)

    def column(self, name: str, code: StatusCode = StatusCode.ERROR) -> tuple[int, ColumnSchema]:
        """A column of the table by name; raises ``code`` when there is none."""
        found = self.table.column_index(name)
        if found is None:
            raise self.error(code, f"Column '{name}' not found in table '{self.table.name}'")
        return found, self.table.columns[found]

    # -- rows ------------------------------------------------------------------------

    def is_empty(self) -> bool:
        """Whether the table has no rows in the transaction."""
        return self.engine.table(self.table).count(self.transaction.reader(self.table.module)) == 0

    def batches(self, table: TableSchema) -> Iterable[list[Row]]:
        """The rows of a table as the transaction sees them."""
        batches = self.engine.table(table).scan(self.transaction.reader(table.module))
        return self.session.watch.over(batches)

    def rewrite(self, new: TableSchema, transform: Transform | None = None) -> TableSchema:
        """Carry the rows over to another schema; raises CONSTRAINT where keys collide under it."""
        if transform is None and new.primary_key != self.table.primary_key:
            transform = _unchanged
        streamed = transform if transform is None else _watched(transform, self.session.watch)
        try:
            rewritten = rewrite_table(self.module, self.writer, self.table, new, streamed)
        except UniqueViolation as violation:
            raise _collision(new, violation) from violation
        return self._reshaped(rewritten, transform)

    def append_column(self, new: TableSchema, value: Any) -> TableSchema:
        """Carry the rows over to a schema with one more column, which has one value in all of them."""
        module = self.module
        end = (value,)

        def append(rows: Batch) -> Batch:
            return [row + end for row in rows]

        if isinstance(module, ColumnsInPlace):
            return self._reshaped(module.append_column(self.writer, self.table, new, value), append)
        return self.rewrite(new, append)

    def retire_column(self, new: TableSchema, position: int) -> TableSchema:
        """Carry the rows over to a schema without a column."""
        module = self.module

        def retire(rows: Batch) -> Batch:
            return [row[:position] + row[position + 1 :] for row in rows]

        if isinstance(module, ColumnsInPlace):
            return self._reshaped(module.retire_column(self.writer, self.table, new, position), retire)
        return self.rewrite(new, retire)

    def _reshaped(self, rewritten: TableSchema, transform: Transform | None) -> TableSchema:
        """Note for those who have seen the rows in their old shape how they have changed."""
        changes = self.transaction.changes
        reshape = Reshape(len(changes), self.table, rewritten, transform)
        self.transaction.reshapes.append(reshape)
        if changes and self.engine.records_changes:
            # Whoever is told of these changes is told of rows in the new shape.
            self.transaction.announced.append(reshape)
        return rewritten

    # -- indexes ---------------------------------------------------------------------

    def build_index(self, table: TableSchema, index: IndexSchema) -> IndexSchema:
        """Build an index of ``table``, which is without it; raises CONSTRAINT where rows are not unique."""
        try:
            return index_host(self.module, table).create_index(self.writer, table, index)
        except UniqueViolation as violation:
            raise index_violation(table, index, violation.row) from violation

    def carry_out(self, stored: TableSchema, change: IndexChange) -> TableSchema:
        """Build and erase what a change of indexes asks for; ``stored`` is the table as it is kept now."""
        for index in change.erase:
            held = stored.index(index.name)
            assert held is not None
            index_host(self.module, stored).drop_index(self.writer, stored, held)
            stored = replace(stored, indexes=tuple(other for other in stored.indexes if other is not held))
        built = {fold(index.name): index for index in stored.indexes}
        for index in change.build:
            built[fold(index.name)] = self.build_index(stored, index)
        indexes = tuple(built[fold(index.name)] for index in change.table.indexes)
        return replace(change.table, storage_id=stored.storage_id, layout=stored.layout, indexes=indexes)

    # -- catalog ---------------------------------------------------------------------

    def publish(self, table: TableSchema) -> None:
        """Work on with the table as it is now."""
        self.transaction.change_catalog(put_table(self.catalog, table))


def _unchanged(rows: Batch) -> Batch:
    """The transform of rows that only move: nothing is done to them, but they can be watched."""
    return rows


def _watched(transform: Transform, watch: Watch) -> Transform:
    def transformed(rows: Batch) -> Batch:
        if watch.active:
            watch.step(len(rows))
        return transform(rows)

    return transformed


def _collision(table: TableSchema, violation: UniqueViolation) -> Error:
    """The error for rows that one key of a new schema does not tell apart."""
    if violation.constraint is not None:
        return unique_violation(table, violation.constraint, violation.row)
    values = ", ".join(_shown(violation.row[part.column]) for part in table.primary_key.parts)
    shown = f"(key: {values})" if values else "(the empty key admits one row)"
    message = (
        f"UNIQUE constraint failed: {table.name} primary key collides under the new key definition {shown}"
    )
    columns = [part.column for part in table.primary_key.parts]
    return constraint_error(
        message, table, "primary key", columns, None, [violation.row[column] for column in columns]
    )


def _shown(value: Any) -> str:
    """A key value as messages show it."""
    text = to_text(value)
    return "NULL" if text is None else f"'{text}'" if isinstance(value, str) else text
