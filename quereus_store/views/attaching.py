"""ALTER TABLE … SET MAINTAINED and DROP MAINTAINED.

Attaching makes a table equal to a body: rows that are equal already are not written, others
change or go.  It may reshape the table on the way.  Detaching leaves an ordinary table.

Chapter: views-and-maintained-tables, section 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.transactions import Transaction
from quereus_store.schema.manager import put_table
from quereus_store.schema.objects import Catalog, Derivation, TableSchema
from quereus_store.sql import nodes
from quereus_store.views.body import Body, TableKey, bind_body, key_of
from quereus_store.views.coarsening import warn_of_merges
from quereus_store.views.creating import check_row_references, check_set, gate
from quereus_store.views.hosts import is_host, no_host_of_tables
from quereus_store.views.programs import Program
from quereus_store.views.refreshing import stored_rows
from quereus_store.views.reshaping import carry_over, plan_reshape, prepare
from quereus_store.views.rows import RowSet
from quereus_store.views.shape import distinct_columns, physical_key, with_key_collation
from quereus_store.views.writing import judge_rows, write_difference

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.views.maintainer import Maintainer


def attach(
    maintainer: Maintainer,
    session: Session,
    transaction: Transaction,
    table: TableSchema,
    action: nodes.SetMaintained,
) -> None:
    """Give a table a body, or another one; raises ERROR or CONSTRAINT and then nothing has changed."""
    body = bind_body(session.engine, transaction.catalog, table.schema, action.query)
    check_cycle(maintainer, transaction.catalog, table, body)
    if not is_host(session.engine, table.module):
        raise no_host_of_tables(table.module, f"cannot attach derivation to '{table.qualified_name}'")
    names = action.columns or None
    produced = len(body.plan.columns)
    if names and len(names) != produced:
        raise _refused(
            table, f"the rename list declares {len(names)} columns but the body produces {produced}"
        )
    columns = distinct_columns(body, names)
    columns, key = with_key_collation(columns, physical_key(body, columns), table.module_arguments)
    if names and produced != len(table.columns):
        raise _refused(table, f"body produces {produced} columns but the table declares {len(table.columns)}")
    check_row_references(table)
    plan_reshape(table, columns, key)
    table = prepare(session, transaction, table, columns)
    reshape = plan_reshape(table, columns, key)
    rows = Program(session.engine, body.context, body.plan).rows(session, transaction)
    check_set(replace(reshape.table, schema=table.schema), rows)
    gate(session, transaction.catalog, reshape.table, body)
    changed, taken_out = table, None
    if reshape.table.columns != table.columns or reshape.table.primary_key != table.primary_key:
        changed, taken_out = carry_over(session, transaction, table, reshape)
    changed = replace(changed, derivation=Derivation(action.query, names))
    transaction.change_catalog(put_table(transaction.catalog, changed))
    transaction.renewed.add(key_of(changed))
    stored = stored_rows(session, transaction, changed) if taken_out is None else taken_out
    difference = RowSet(changed).difference(stored, rows)
    all_rows = None if taken_out is None else rows
    write_difference(session, transaction, changed, difference, all_rows=all_rows)
    judge_rows(session, transaction, changed, rows)
    warn_of_merges(changed, body)


def detach(transaction: Transaction, table: TableSchema) -> None:
    """Make a maintained table an ordinary one, rows and all."""
    if table.derivation is None:
        raise sql_error(
            StatusCode.ERROR, f"cannot drop maintained on '{table.name}': it is not a maintained table"
        )
    transaction.change_catalog(put_table(transaction.catalog, replace(table, derivation=None)))


def _refused(table: TableSchema, reason: str) -> Error:
    return sql_error(StatusCode.ERROR, f"cannot attach derivation to '{table.qualified_name}': {reason}")


def check_cycle(maintainer: Maintainer, catalog: Catalog, table: TableSchema, body: Body) -> None:
    """A table may not be computed from itself, not through others either (ERROR)."""
    path = next(_ways_back(maintainer, catalog, key_of(table), body, [table.qualified_name], set()), None)
    if path is not None:
        raise _refused(
            table, f"the body would create a derivation cycle ({' → '.join([*path, table.qualified_name])})"
        )


def _ways_back(
    maintainer: Maintainer,
    catalog: Catalog,
    target: TableKey,
    body: Body,
    path: list[str],
    seen: set[TableKey],
) -> Iterator[list[str]]:
    for key, source in body.sources.items():
        if key == target:
            yield path
        elif source.derivation is not None and key not in seen:
            seen.add(key)
            try:
                inner = maintainer.graphs.body(catalog, source)
            except Error:
                continue
            yield from _ways_back(maintainer, catalog, target, inner, [*path, source.qualified_name], seen)
