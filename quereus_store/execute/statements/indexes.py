"""CREATE INDEX and DROP INDEX (alter-and-ddl-lifecycle, section 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, OperationalError, StatusCode, sql_error
from quereus_store.execute.dml.violations import index_violation
from quereus_store.execute.results import Result
from quereus_store.execute.statements.announcing import announce_index
from quereus_store.execute.statements.policy import check_policy
from quereus_store.execute.transactions import Transaction
from quereus_store.modules.contract import IndexHost, UniqueViolation
from quereus_store.modules.rewriting import index_host
from quereus_store.plan.binder.rows import bind_row_expression
from quereus_store.schema.builder import build_index, check_indexed_columns
from quereus_store.schema.constraints import add_index, drop_index
from quereus_store.schema.manager import MAIN, find_relation, put_table
from quereus_store.schema.naming import check_index_name
from quereus_store.schema.objects import IndexSchema, TableSchema
from quereus_store.schema.tags import TagSite, check_tags
from quereus_store.schema.target import created
from quereus_store.sql import nodes
from quereus_store.types import LogicalType

if TYPE_CHECKING:
    from quereus_store.execute.session import Session


def create_index(session: Session, statement: nodes.CreateIndex, parameters: Any) -> Result:
    """Build an index from the rows that the transaction sees."""
    check_tags(statement.tags, TagSite.INDEX, statement.position)

    def change(transaction: Transaction) -> None:
        table = _indexed_table(session, transaction, statement)
        is_new = check_index_name(created(transaction.catalog, statement), table)
        check_policy(session, f"CREATE INDEX {statement.name.name}", table.module)
        if not is_new:
            return
        check_indexed_columns(statement, table)
        host = index_host(session.engine.module(table.module), table, statement.position)
        try:
            _build(session, transaction, host, table, statement)
        except OperationalError:
            # The storage's own errors say it all, and one of them makes the session start over.
            raise
        except Error as failure:
            raise _failed(statement, table, failure) from failure

    session.write(change)
    return Result()


def _indexed_table(session: Session, transaction: Transaction, statement: nodes.CreateIndex) -> TableSchema:
    """The table: in the current schema, or else in that of the index's name, which says no more.

    For the name of an attached database it is there.
    """
    name, qualifier = statement.table, statement.name.schema
    path = (MAIN,) if qualifier is None else (MAIN, qualifier)
    if qualifier is not None and transaction.catalog.is_attached(qualifier):
        path = (qualifier,)
    found = find_relation(transaction.catalog, path, name.schema, name.name)
    if not isinstance(found, TableSchema):
        raise sql_error(StatusCode.NOTFOUND, f"no such table: {name.name}", statement.position)
    return found


def _build(
    session: Session,
    transaction: Transaction,
    module: IndexHost,
    table: TableSchema,
    statement: nodes.CreateIndex,
) -> None:
    engine = session.engine

    def part_type(owner: TableSchema, expression: nodes.Expression) -> tuple[LogicalType, bool, str]:
        bound, _ = bind_row_expression(session.bind_context(transaction, {}), owner, expression)
        collation = bound.collation.name if bound.collation else "BINARY"
        return bound.type, bound.nullable, collation

    index = build_index(statement, table, engine.collations, part_type)
    if index.where is not None:
        bind_row_expression(session.bind_context(transaction, {}), table, index.where)
    writer = transaction.writer(table.module)
    try:
        built = module.create_index(writer, table, index)
    except UniqueViolation as violation:
        raise index_violation(table, index, violation.row) from violation
    change = add_index(table, built)
    for hidden in change.erase:
        module.drop_index(writer, table, hidden)
    transaction.change_catalog(put_table(transaction.catalog, change.table))
    announce_index(transaction, "create", table, built)


def _failed(statement: nodes.CreateIndex, table: TableSchema, failure: Error) -> Error:
    error = sql_error(
        failure.code,
        f"createIndex failed for index '{statement.name.name}' on table '{table.name}': {failure.message}",
        failure.position or statement.position,
    )
    error.details = failure.details
    return error


def erase_index(session: Session, transaction: Transaction, table: TableSchema, index: IndexSchema) -> None:
    """Drop an index; a UNIQUE constraint that leant on it gets a hidden one of its own."""
    check_policy(session, f"DROP INDEX {index.name}", table.module)
    module = index_host(session.engine.module(table.module), table)
    writer = transaction.writer(table.module)
    module.drop_index(writer, table, index)
    change = drop_index(table, index.name)
    changed = change.table
    for hidden in change.build:
        base = replace(changed, indexes=tuple(i for i in changed.indexes if i is not hidden))
        built = module.create_index(writer, base, hidden)
        changed = replace(changed, indexes=tuple(built if i is hidden else i for i in changed.indexes))
    transaction.change_catalog(put_table(transaction.catalog, changed))
    announce_index(transaction, "drop", table, index)
