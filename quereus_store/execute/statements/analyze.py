"""ANALYZE (functions, section 14): read tables and keep what was found out about them.

A module that can keep statistics (:class:`StatisticsKeeper`) is given the record inside the
transaction; what goes wrong there is no reason to fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.results import Result
from quereus_store.execute.statistics import table_statistics
from quereus_store.execute.transactions import Transaction
from quereus_store.plan.expressions import Column
from quereus_store.schema.manager import MAIN, require_schema, resolve_relation
from quereus_store.schema.objects import TableSchema, fold
from quereus_store.sql import nodes
from quereus_store.types import INTEGER, TEXT

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

_COLUMNS = (Column(1, "table", TEXT, False), Column(2, "rows", INTEGER, False))
_COMMITTED = "committed"


@runtime_checkable
class StatisticsKeeper(Protocol):
    """A module that keeps the records of ANALYZE with its rows."""

    def save_statistics(self, transaction: Any, schema: TableSchema, record: dict[str, Any] | None) -> None:
        """Keep a record; None removes it."""
        ...


def analyze(session: Session, statement: nodes.Analyze, parameters: Any) -> Result:
    """One row per table analysed: its name and its number of rows, own uncommitted ones included."""

    def change(transaction: Transaction) -> list[tuple[str, int]]:
        tables = _tables(session, transaction, statement)
        found = [(table.name, _analyze_table(session, transaction, table)) for table in tables]
        # Under a new version of the catalog prepared statements are planned anew.
        transaction.change_catalog(transaction.catalog)
        return [(name, rows) for name, rows in found if rows is not None]

    return Result(_COLUMNS, [session.write(change)])


def _tables(session: Session, transaction: Transaction, statement: nodes.Analyze) -> list[TableSchema]:
    catalog = transaction.catalog
    schema = statement.schema
    if statement.table is None:
        return list(require_schema(catalog, schema or MAIN, statement.position).tables.values())
    if schema is not None and fold(schema) == _COMMITTED:
        schema = None
    relation = resolve_relation(catalog, session.schema_path, schema, statement.table, statement.position)
    if isinstance(relation, TableSchema):
        return [relation]
    raise sql_error(
        StatusCode.ERROR,
        f"Cannot ANALYZE view '{relation.schema}.{relation.name}': a view has no stored rows to collect"
        " statistics from.",
        statement.position,
    )


def _analyze_table(session: Session, transaction: Transaction, table: TableSchema) -> int | None:
    """The number of rows of a table; None for one that cannot be read."""
    engine = session.engine
    try:
        batches = session.watch.over(engine.table(table).scan(transaction.reader(table.module)))
        record = table_statistics(table, batches, engine.collations)
    except Error as error:
        if error.code is StatusCode.INTERRUPT:
            raise
        return None
    module = engine.module(table.module)
    if isinstance(module, StatisticsKeeper):
        _keep(transaction, module, table, record)
    rows: int = record["rowCount"]
    return rows


def _keep(
    transaction: Transaction, module: StatisticsKeeper, table: TableSchema, record: dict[str, Any]
) -> None:
    mark = transaction.mark()
    try:
        module.save_statistics(transaction.writer(table.module), table, record)
    except Error:
        transaction.return_to(mark)
    finally:
        transaction.forget(mark)
