"""REFRESH MATERIALIZED VIEW: compute anew, whatever the table's state, and make it live.

The body is bound to what its sources are now; where that changed its shape, the table is
reshaped.  Only rows that differ are written.

Chapter: views-and-maintained-tables, section 10.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.maintenance import RefreshedView
from quereus_store.execute.notification.events import Refreshed
from quereus_store.execute.results import Result
from quereus_store.execute.statements.policy import check_policy
from quereus_store.execute.transactions import Transaction
from quereus_store.plan.binder.relations import stale
from quereus_store.plan.binder.view_bodies import declared_otherwise
from quereus_store.schema.dependencies import relations_read
from quereus_store.schema.manager import MAIN, find_in_schema, put_table, tables_of
from quereus_store.schema.objects import Catalog, TableSchema, ViewSchema, fold
from quereus_store.sql import nodes
from quereus_store.views.body import Body, TableKey, key_of
from quereus_store.views.gates import check_gates, duplicate_rows
from quereus_store.views.graph import sources_first
from quereus_store.views.programs import Program
from quereus_store.views.reshaping import Carried, carry_over, plan_reshape, prepare
from quereus_store.views.rows import RowSet
from quereus_store.views.shape import (
    distinct_columns,
    keeping_not_null,
    keeps_key,
    physical_key,
    same_shape,
    seeded,
    with_key_collation,
)
from quereus_store.views.writing import judge_rows, write_difference

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.views.maintainer import Maintainer


def refresh_statement(
    maintainer: Maintainer, session: Session, statement: nodes.RefreshMaterializedView
) -> Result:
    """Run a REFRESH; raises ERROR for what is no maintained table."""

    def change(transaction: Transaction) -> None:
        try:
            _refresh(maintainer, session, transaction, _named(transaction, statement))
        except Error as error:
            error.located(statement.position)
            raise

    session.write(change)
    return Result()


def refresh_all(maintainer: Maintainer, session: Session) -> list[RefreshedView]:
    """Refresh every maintained table, sources before their readers; those that were, in this order.

    Each is a step of its own, so one that fails keeps none of the others from it.  Then its error is raised
    (the first of several), with the names of what was ``refreshed`` in its details, and what has ``failed``.
    """
    done: list[RefreshedView] = []
    failed: dict[RefreshedView, Error] = {}

    def change(name: RefreshedView, transaction: Transaction) -> bool:
        table = transaction.catalog.table(*name)
        if table is None or table.derivation is None:
            return False  # somebody else has dropped or detached it meanwhile
        _refresh(maintainer, session, transaction, table)
        return True

    for table in _sources_first(session.catalog):
        name = RefreshedView(table.schema, table.name)
        try:
            if session.write(partial(change, name)):
                done.append(name)
        except Error as error:
            failed[name] = error
    if failed:
        first = next(iter(failed.values()))
        messages = {str(name): error.message for name, error in failed.items()}
        details = {**first.details, "refreshed": tuple(map(str, done)), "failed": messages}
        first.details = MappingProxyType(details)
        raise first
    return done


def _sources_first(catalog: Catalog) -> list[TableSchema]:
    """All maintained tables in the order of what their definitions name: some cannot be bound as yet."""

    def named(key: TableKey) -> Iterable[TableKey]:
        found = find_in_schema(catalog, *key)
        if found is None:
            return ()
        definition = found if isinstance(found, ViewSchema) else found.derivation
        return () if definition is None else sorted(relations_read(catalog, found.schema, definition.query))

    keys = [(fold(table.schema), fold(table.name)) for table in tables_of(catalog)]
    tables = [catalog.table(*key) for key in sources_first(keys, named)]
    return [table for table in tables if table is not None and table.derivation is not None]


def _refresh(maintainer: Maintainer, session: Session, transaction: Transaction, table: TableSchema) -> None:
    """One table's refresh, if the session's policy allows it, for listeners to be told of."""
    check_policy(session, f"REFRESH MATERIALIZED VIEW {table.name}", table.module)
    transaction.announced.append(Refreshed(refresh(maintainer, session, transaction, table)))


def _named(transaction: Transaction, statement: nodes.RefreshMaterializedView) -> TableSchema:
    name = statement.name.name
    found = find_in_schema(transaction.catalog, statement.name.schema or MAIN, name)
    if not isinstance(found, TableSchema):
        raise sql_error(StatusCode.ERROR, f"no such materialized view: {name}")
    if found.derivation is None:
        raise sql_error(StatusCode.ERROR, f"'{name}' is a table, not a materialized view")
    return found


def refresh(
    maintainer: Maintainer, session: Session, transaction: Transaction, table: TableSchema
) -> TableSchema:
    """Bring one table up to date with its sources as they are now; the table afterwards."""
    assert table.derivation is not None
    if table.derivation.views:
        table = replace(table, derivation=replace(table.derivation, views=()))
    assert table.derivation is not None
    try:
        body = maintainer.graphs.body(transaction.catalog, table)
    except Error as error:
        raise stale(table, error) from error
    derivation = replace(table.derivation, stale=False)
    taken_out = None
    if not (same_shape(table, body, seeded(table, body)) and keeps_key(table, body)):
        table, taken_out = reshaped(session, transaction, table, body)
    allowed = session.options["nondeterministic_schema"]
    check_gates(session.engine, transaction.catalog, table.name, body, nondeterministic=allowed)
    if table.derivation != derivation:
        table = replace(table, derivation=derivation)
    if transaction.catalog.table(table.schema, table.name) is not table:
        transaction.change_catalog(put_table(transaction.catalog, table))
    rows = Program(session.engine, body.context, body.plan).rows(session, transaction)
    written = RowSet(table)
    if len(set(map(written.key, rows))) < len(rows):
        raise duplicate_rows(table)
    stored = stored_rows(session, transaction, table) if taken_out is None else taken_out
    difference = written.difference(stored, rows)
    all_rows = None if taken_out is None else rows
    write_difference(session, transaction, table, difference, duplicate_rows(table), all_rows)
    judge_rows(session, transaction, table, rows)
    transaction.renewed.add(key_of(table))
    return table


def stored_rows(session: Session, transaction: Transaction, table: TableSchema) -> list[tuple[object, ...]]:
    """All rows of a table as the transaction sees them."""
    handle = session.engine.table(table)
    return [row for batch in handle.scan(transaction.reader(table.module)) for row in batch]


def reshaped(session: Session, transaction: Transaction, table: TableSchema, body: Body) -> Carried:
    """The table carried over to the body's shape; raises ERROR where that cannot be done in place."""
    assert table.derivation is not None
    names = table.derivation.columns
    produced = len(body.plan.columns)
    if names and len(names) != produced:
        raise declared_otherwise(table, produced)
    columns = distinct_columns(body, names)
    columns = keeping_not_null(columns, seeded(table, body))
    columns, key = with_key_collation(columns, physical_key(body, columns), table.module_arguments)
    plan_reshape(table, columns, key)
    table = prepare(session, transaction, table, columns)
    return carry_over(session, transaction, table, plan_reshape(table, columns, key))
