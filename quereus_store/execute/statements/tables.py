"""CREATE TABLE and DROP (alter-and-ddl-lifecycle, sections 3 and 5).

A statement builds the new object, lets the module make or erase storage, and
works on with a changed catalog, all inside one transaction: what fails leaves
nothing behind, and a rollback undoes it like any change of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from quereus_store.errors import StatusCode, sql_error, unsupported
from quereus_store.execute.dml.changes import record_changes
from quereus_store.execute.dml.violations import primary_key_violation
from quereus_store.execute.results import Result
from quereus_store.execute.statements.announcing import announce_table
from quereus_store.execute.statements.definitions import check_lifetime, table_settings, table_surroundings
from quereus_store.execute.statements.guards import check_droppable
from quereus_store.execute.statements.policy import check_policy, check_policy_of_nothing
from quereus_store.execute.transactions import Transaction
from quereus_store.modules.contract import ColumnSource, UniqueViolation
from quereus_store.plan.binder import bind_query
from quereus_store.plan.expressions import Column
from quereus_store.schema.builder import build_table, check_columns
from quereus_store.schema.dropping import (
    assertion_to_drop,
    index_to_drop,
    materialized_view_to_drop,
    table_to_drop,
    view_to_drop,
)
from quereus_store.schema.manager import (
    MAIN,
    check_foreign_key_collations,
    parent_of,
    put_table,
    remove_assertion,
    remove_table,
    remove_view,
    tables_of,
)
from quereus_store.schema.naming import check_table_name
from quereus_store.schema.objects import ColumnSchema, Operation, TableSchema, fold
from quereus_store.schema.tags import check_table_tags
from quereus_store.schema.target import created, dropped
from quereus_store.sql import nodes, parse_statement, quote_identifier
from quereus_store.types import ANY, DATETIME, NULL, convert_column

if TYPE_CHECKING:
    from quereus_store.execute.session import Session


def create_table(session: Session, statement: nodes.CreateTable, parameters: Any) -> Result:
    """CREATE TABLE, with columns or AS a query."""
    if statement.maintained is not None:
        if session.engine.maintenance is None:
            raise unsupported("CREATE TABLE ... MAINTAINED AS", statement.position)
        session.engine.maintenance.create_table(session, statement)
        return Result()
    check_table_tags(statement)
    schema_name = statement.name.schema or MAIN
    statement = _with_described_columns(session, statement)

    def change(transaction: Transaction) -> None:
        catalog = transaction.catalog
        if not check_table_name(created(catalog, statement)):
            name = statement.name
            check_policy_of_nothing(session, f"CREATE TABLE {name.name}", name, statement.module)
            return
        table = build_table(
            statement if statement.query is None else replace(statement, columns=()),
            schema_name=schema_name,
            settings=table_settings(session, schema_name),
            surroundings=table_surroundings(session, transaction),
            columns=_query_columns(session, transaction, statement) if statement.query else None,
        )
        check_foreign_key_collations(catalog, table)
        check_lifetime(session, schema_name, table.module, statement.position)
        check_policy(session, f"CREATE TABLE {table.name}", table.module)
        module = session.engine.module(table.module)
        table = module.create_table(transaction.writer(table.module), table)
        transaction.change_catalog(put_table(catalog, table))
        announce_table(transaction, "create", table)
        if statement.query is not None:
            _fill(session, transaction, table, statement.query, parameters)

    session.write(change)
    return Result()


def _with_described_columns(session: Session, statement: nodes.CreateTable) -> nodes.CreateTable:
    """The statement with the columns of a module that knows them; raises ERROR for others."""
    clause = statement.module
    module = session.engine.modules.get(fold(clause.name)) if clause is not None else None
    if not isinstance(module, ColumnSource):
        return statement
    described = parse_statement(module.definition)
    assert isinstance(described, nodes.CreateTable)
    own = [fold(column.name) for column in statement.columns]
    if statement.query is not None or (own and own != [fold(column.name) for column in described.columns]):
        raise sql_error(
            StatusCode.ERROR,
            f"Module '{module.name}' gives its tables their columns: leave them out",
            statement.position,
        )
    return replace(statement, columns=described.columns)


def _query_columns(
    session: Session, transaction: Transaction, statement: nodes.CreateTable
) -> tuple[ColumnSchema, ...]:
    """The columns of CREATE TABLE AS: those of the query, under the names that are listed."""
    assert statement.query is not None
    plan = bind_query(session.bind_context(transaction, {}), statement.query)
    listed = [column.name for column in statement.columns] or [column.name for column in plan.columns]
    if len(listed) != len(plan.columns):
        raise sql_error(
            StatusCode.ERROR,
            f"Table '{statement.name.name}' has {len(listed)} declared columns but its query produces"
            f" {len(plan.columns)}",
            statement.position,
        )
    named = tuple([nodes.ColumnDefinition(name, position=statement.position) for name in listed])
    check_columns(replace(statement, columns=named))
    if any(column.type_name or column.constraints or column.tags for column in statement.columns):
        raise unsupported("CREATE TABLE AS with more than names of columns", statement.position)
    if not all(isinstance(constraint, nodes.PrimaryKeyConstraint) for constraint in statement.constraints):
        raise unsupported("CREATE TABLE AS with constraints other than PRIMARY KEY", statement.position)
    return tuple(
        [
            replace(_column_schema(column), name=name)
            for column, name in zip(plan.columns, listed, strict=True)
        ]
    )


def _column_schema(column: Column) -> ColumnSchema:
    column_type = ANY if column.type is NULL else column.type
    return ColumnSchema(column.name, column_type, column_type.name, nullable=True)


def _fill(
    session: Session, transaction: Transaction, table: TableSchema, query: nodes.Query, parameters: Any
) -> None:
    writer = transaction.writer(table.module)
    handle = session.engine.table(table)
    times = any(column.type is DATETIME for column in table.columns)
    for given in session.query_within(transaction, query, parameters):
        batch = _as_stored(table, given) if times and given else given
        try:
            handle.insert(writer, batch)
        except UniqueViolation as violation:
            raise primary_key_violation(table, violation.row) from None
        record_changes(transaction, table, Operation.INSERT, (), batch)


def _as_stored(table: TableSchema, batch: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in the form that the table keeps: a DATETIME of the clock loses its Z."""
    cells = [
        convert_column(list(values), column.type, column.name, column.type)
        for values, column in zip(zip(*batch, strict=True), table.columns, strict=True)
    ]
    return list(zip(*cells, strict=True))


# -- DROP ------------------------------------------------------------------------


def drop_object(session: Session, statement: nodes.DropObject, parameters: Any) -> Result:
    """DROP TABLE, INDEX, VIEW, MATERIALIZED VIEW, ASSERTION."""
    drop = _DROPS.get(statement.kind)
    if drop is None:
        raise unsupported(f"DROP {statement.kind.value.upper()}", statement.position)
    session.write(lambda transaction: drop(session, transaction, statement))
    return Result()


def _drop_table(session: Session, transaction: Transaction, statement: nodes.DropObject) -> None:
    table = table_to_drop(dropped(transaction.catalog, statement))
    if table is not None:
        check_droppable(transaction.catalog, "table", table, session.schema_path, statement.position)
        erase_table(session, transaction, table, f"DROP TABLE {table.name}")
        announce_table(transaction, "drop", table)


def _drop_materialized_view(session: Session, transaction: Transaction, statement: nodes.DropObject) -> None:
    table = materialized_view_to_drop(dropped(transaction.catalog, statement))
    if table is not None:
        check_droppable(
            transaction.catalog, "materialized view", table, session.schema_path, statement.position
        )
        erase_table(session, transaction, table, f"DROP MATERIALIZED VIEW {table.name}")
        announce_table(transaction, "drop", table)


def erase_table(session: Session, transaction: Transaction, table: TableSchema, label: str) -> None:
    """Drop a table for good; raises CONSTRAINT while rows of another table refer to it."""
    check_policy(session, label, table.module)
    if session.options["foreign_keys"]:
        _check_unreferenced(session, transaction, table)
    session.engine.module(table.module).drop_table(transaction.writer(table.module), table)
    transaction.change_catalog(remove_table(transaction.catalog, table))


def _check_unreferenced(session: Session, transaction: Transaction, table: TableSchema) -> None:
    for child in tables_of(transaction.catalog):
        for key in child.foreign_keys:
            parent = parent_of(transaction.catalog, child, key)
            if parent is not table or child is table:
                continue
            names = [quote_identifier(child.columns[position].name) for position in key.columns]
            condition = " and ".join(f"{name} is not null" for name in names)
            source = f"{quote_identifier(child.schema)}.{quote_identifier(child.name)}"
            if session.rows_within(transaction, f"select 1 from {source} where {condition} limit 1"):
                raise sql_error(
                    StatusCode.CONSTRAINT,
                    f"FOREIGN KEY constraint failed: cannot drop table '{table.name}' because table"
                    f" '{child.name}' still has rows referencing it",
                )


def _drop_view(session: Session, transaction: Transaction, statement: nodes.DropObject) -> None:
    view = view_to_drop(dropped(transaction.catalog, statement))
    if view is not None:
        check_droppable(transaction.catalog, "view", view, session.schema_path, statement.position)
        transaction.change_catalog(remove_view(transaction.catalog, view))


def _drop_assertion(session: Session, transaction: Transaction, statement: nodes.DropObject) -> None:
    assertion = assertion_to_drop(dropped(transaction.catalog, statement))
    if assertion is not None:
        transaction.change_catalog(remove_assertion(transaction.catalog, assertion))


def _drop_index(session: Session, transaction: Transaction, statement: nodes.DropObject) -> None:
    from quereus_store.execute.statements.indexes import erase_index

    found = index_to_drop(dropped(transaction.catalog, statement))
    if found is not None:
        erase_index(session, transaction, *found)


_Drop = Callable[["Session", Transaction, nodes.DropObject], None]

_DROPS: Mapping[nodes.ObjectKind, _Drop] = MappingProxyType(
    {
        nodes.ObjectKind.TABLE: _drop_table,
        nodes.ObjectKind.INDEX: _drop_index,
        nodes.ObjectKind.VIEW: _drop_view,
        nodes.ObjectKind.MATERIALIZED_VIEW: _drop_materialized_view,
        nodes.ObjectKind.ASSERTION: _drop_assertion,
    }
)
