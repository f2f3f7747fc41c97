"""What a schema change does to the tables that are computed from what it changed.

A dependent stays live if its body still binds to the same sources, has the same
shape, keeps its key, and reads no column whose type or collation changed.  Otherwise
it becomes *stale*: it is not kept up any more, until REFRESH makes it live again.  So
do the tables over it.  Where rows may have changed on the way (a backfilled column),
the table is computed anew within the statement.

Chapter: views-and-maintained-tables, section 10.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from quereus_store.errors import Error
from quereus_store.execute.codegen.compiler import every_node
from quereus_store.plan.nodes import TableScan, expressions, referenced_columns
from quereus_store.schema.manager import put_table, tables_of
from quereus_store.schema.objects import Catalog, TableSchema
from quereus_store.views.body import Body, TableKey, key_of
from quereus_store.views.emptiness import reads_nothing
from quereus_store.views.graph import Member
from quereus_store.views.shape import keeps_key, same_shape, seeded

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import Transaction
    from quereus_store.views.maintainer import Maintainer


def settle(
    maintainer: Maintainer, session: Session, transaction: Transaction, before: Catalog
) -> frozenset[TableKey]:
    """Judge every dependent of what a statement changed in the catalog; those that were computed anew."""
    graph = maintainer.graphs.graph(before)
    stale: set[TableKey] = set()
    rebuilt: set[TableKey] = set()
    for member in graph.members:
        table = transaction.catalog.table(member.table.schema, member.table.name)
        if table is None:
            table = _renamed(transaction.catalog, member.table)
        if table is None or table.derivation is None or table.derivation.stale:
            continue
        if key_of(table) in transaction.renewed:
            continue
        if member.body.current_in(transaction.catalog) and not stale & member.body.sources.keys():
            continue
        table = _with_dropped_views(transaction, member, table)
        body = _recompiled(maintainer, transaction.catalog, member, table)
        if body is None or stale & body.sources.keys():
            mark_stale(transaction, table)
            stale.add(key_of(table))
        elif _rows_may_differ(member.body, body):
            maintainer.rebuild(session, transaction, Member(table, body))
            rebuilt.add(key_of(table))
    return frozenset(rebuilt)


def _with_dropped_views(transaction: Transaction, member: Member, table: TableSchema) -> TableSchema:
    """The table, which from now on keeps what is gone of the plain views in its body."""
    assert table.derivation is not None
    gone = [view for key, view in member.body.views.items() if _is_gone(transaction.catalog, key)]
    if not gone:
        return table
    table = replace(table, derivation=replace(table.derivation, views=(*table.derivation.views, *gone)))
    transaction.change_catalog(put_table(transaction.catalog, table))
    return table


def _is_gone(catalog: Catalog, key: TableKey) -> bool:
    return catalog.schema(key[0]) is not None and catalog.view(*key) is None


def _renamed(catalog: Catalog, table: TableSchema) -> TableSchema | None:
    return next(
        (
            other
            for other in tables_of(catalog)
            if other.storage_id == table.storage_id and other.module == table.module
        ),
        None,
    )


def mark_stale(transaction: Transaction, table: TableSchema) -> None:
    """Keep a table up no longer."""
    assert table.derivation is not None
    changed = replace(table, derivation=replace(table.derivation, stale=True))
    transaction.change_catalog(put_table(transaction.catalog, changed))


def give_up(transaction: Transaction, broken: Iterable[tuple[TableSchema, Error]]) -> None:
    """A source may have changed and these bodies cannot be bound: from now on they are stale."""
    for table, _ in broken:
        mark_stale(transaction, table)


def _recompiled(maintainer: Maintainer, catalog: Catalog, member: Member, table: TableSchema) -> Body | None:
    """The body over the changed sources, if the table can stay live."""
    try:
        body = maintainer.graphs.body(catalog, table)
    except Error:
        return None
    old = member.body
    if _places(body) != _places(old):
        return None
    was_seeded = seeded(table, old) & seeded(table, body)
    if not same_shape(table, body, was_seeded) or not keeps_key(table, body):
        return None
    if reads_nothing(maintainer.engine, catalog, body):
        return None
    return None if _reads_changed_column(old, body) else body


def _places(body: Body) -> set[tuple[str, int]]:
    """Where the rows of the sources are kept: what a rename leaves as it was."""
    return {(table.module, table.storage_id) for table in body.sources.values()}


def _pairs(old: Body, new: Body) -> Iterable[tuple[TableSchema, TableSchema]]:
    """The sources before and after; a renamed one is known by its rows' place."""
    after = {(table.module, table.storage_id): table for table in new.sources.values()}
    for table in old.sources.values():
        now = after.get((table.module, table.storage_id)) or new.sources.get(key_of(table))
        if now is not None and now is not table:
            yield table, now


def _reads_changed_column(old: Body, new: Body) -> bool:
    read = columns_read(new)
    for before, after in _pairs(old, new):
        for column in before.columns:
            position = after.column_index(column.name)
            if position is None:
                continue
            now = after.columns[position]
            changed = now.type is not column.type or now.collation != column.collation
            if changed and (key_of(after), position) in read:
                return True
    return False


def _rows_may_differ(old: Body, new: Body) -> bool:
    return any(before.columns != after.columns for before, after in _pairs(old, new))


def columns_read(body: Body) -> set[tuple[TableKey, int]]:
    """The source columns that a body reads anywhere, by table and position."""
    used = {column.id for column in body.plan.columns}
    every = every_node(body.plan)
    for node in every:
        for expression in expressions(node):
            used |= referenced_columns(expression)
    return {
        (key_of(node.table), position)
        for node in every
        if isinstance(node, TableScan)
        for column, position in zip(node.columns, node.positions, strict=True)
        if column.id in used
    }
