"""CREATE MATERIALIZED VIEW and CREATE TABLE … MAINTAINED AS.

The two forms make the same kind of object.  The short form takes its shape from the
body and is filled before the gates are asked; the table form declares a shape, which the
body has to match exactly.

Chapter: views-and-maintained-tables, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.results import Result
from quereus_store.execute.statements.announcing import announce_table
from quereus_store.execute.statements.definitions import (
    check_lifetime,
    default_module,
    table_settings,
    table_surroundings,
)
from quereus_store.execute.statements.policy import check_policy, check_policy_of_nothing
from quereus_store.execute.transactions import Transaction
from quereus_store.modules.contract import Row, UniqueViolation
from quereus_store.schema.builder import build_table
from quereus_store.schema.clauses import module_arguments, tags_of
from quereus_store.schema.dropping import is_maintained
from quereus_store.schema.manager import MAIN, find_in_schema, put_table
from quereus_store.schema.naming import check_materialized_view_name, check_table_name
from quereus_store.schema.objects import (
    NO_TAGS,
    Catalog,
    ColumnSchema,
    Derivation,
    Operation,
    PrimaryKey,
    TableSchema,
)
from quereus_store.schema.target import created
from quereus_store.sql import nodes
from quereus_store.sql.traversal import walk
from quereus_store.views.body import Body, bind_body, key_of
from quereus_store.views.coarsening import warn_of_merges
from quereus_store.views.gates import check_gates, check_size, duplicate_rows
from quereus_store.views.graph import Member
from quereus_store.views.hosts import backing_host, is_host, no_host_of_tables, no_host_of_views
from quereus_store.views.programs import Program
from quereus_store.views.rows import RowSet
from quereus_store.views.shape import body_columns, distinct_columns, physical_key, with_key_collation
from quereus_store.views.writing import collision, duplicate_key, judge_rows

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.views.maintainer import Maintainer

Made: TypeAlias = tuple[TableSchema, Body]
S = TypeVar("S", nodes.CreateMaterializedView, nodes.CreateTable)


# --- the short form ---------------------------------------------------------------------------------------


def create_materialized_view(
    maintainer: Maintainer, session: Session, statement: nodes.CreateMaterializedView
) -> Result:
    """Derive the shape, create, fill, and ask the gates; what fails leaves nothing behind."""

    _written(session, statement, _create_view)
    return Result()


def _written(
    session: Session, statement: S, create: Callable[[Session, Transaction, S], Made | None]
) -> None:
    """Run a creating statement; errors stand at its beginning, and the log is told of a coarser key."""

    def change(transaction: Transaction) -> Made | None:
        try:
            return create(session, transaction, statement)
        except Error as error:
            error.located(statement.position)
            raise

    made = session.write(change)
    if made is not None:
        warn_of_merges(*made)


def _create_view(
    session: Session,
    transaction: Transaction,
    statement: nodes.CreateMaterializedView,
) -> Made | None:
    catalog = transaction.catalog
    schema, name = statement.name.schema or MAIN, statement.name.name
    found = find_in_schema(catalog, schema, name)
    if is_maintained(found) and not statement.if_not_exists:
        raise sql_error(StatusCode.ERROR, f"Materialized view '{schema}.{name}' already exists")
    if not check_materialized_view_name(created(catalog, statement)):
        label = f"CREATE MATERIALIZED VIEW {name}"
        check_policy_of_nothing(session, label, statement.name, statement.module)
        return None
    module, arguments = _module(session, schema, statement.module)
    if not is_host(session.engine, module):
        raise no_host_of_views(module, statement.module.position if statement.module else None)
    check_lifetime(session, schema, module)
    check_policy(session, f"CREATE MATERIALIZED VIEW {name}", module)
    body = bind_body(session.engine, catalog, schema, statement.query)
    _check_arity(name, statement.columns, body)
    columns = distinct_columns(body, statement.columns or None)
    columns, key = with_key_collation(columns, physical_key(body, columns), arguments)
    table = TableSchema(
        schema,
        name,
        columns,
        key,
        module=module,
        module_arguments=arguments,
        derivation=Derivation(statement.query, statement.columns or None, as_view=True),
        tags=tags_of(statement.tags),
    )
    table = session.engine.module(module).create_table(transaction.writer(module), table)
    rows = Program(session.engine, body.context, body.plan).rows(session, transaction)
    fill(session, transaction, table, rows, duplicate_rows(table))
    gate(session, catalog, table, body)
    transaction.change_catalog(put_table(catalog, table))
    announce_table(transaction, "create", table)
    return table, body


def gate(session: Session, catalog: Catalog, table: TableSchema, body: Body) -> None:
    """Raise UNSUPPORTED for a body that cannot be maintained, or only at too high a price."""
    allowed = session.options["nondeterministic_schema"]
    check_gates(session.engine, catalog, table.name, body, nondeterministic=allowed)
    threshold = session.options["materialized_view_rebuild_row_threshold"]
    check_size(session.engine, Member(table, body), threshold)


def _module(
    session: Session, schema: str, clause: nodes.ModuleClause | None
) -> tuple[str, Mapping[str, Any]]:
    if clause is None:
        return default_module(session, schema, session.engine.default_module), NO_TAGS
    wanted = "memory" if clause.name.lower() == "mem" else clause.name
    module = session.engine.modules.get(wanted.lower())
    if module is None:
        raise sql_error(StatusCode.ERROR, f"no virtual table module named '{clause.name}'", clause.position)
    return module.name, module_arguments(clause)


def _check_arity(name: str, columns: tuple[str, ...], body: Body) -> None:
    if columns and len(columns) != len(body.plan.columns):
        raise sql_error(
            StatusCode.ERROR,
            f"Materialized view '{name}' has {len(columns)} declared columns but body produces"
            f" {len(body.plan.columns)}",
        )


def fill(
    session: Session, transaction: Transaction, table: TableSchema, rows: list[Row], duplicates: Error | None
) -> None:
    """Put the body's rows into an empty table; ``duplicates`` is the error for rows of one key."""
    if not rows:
        return
    try:
        backing_host(session.engine, table).insert(transaction.writer(table.module), rows)
    except UniqueViolation as violation:
        if violation.constraint is None and duplicates is not None:
            raise duplicates from violation
        raise collision(table, violation) from violation
    judge_rows(session, transaction, table, rows)


# --- the table form ---------------------------------------------------------------------------------------


def create_maintained_table(maintainer: Maintainer, session: Session, statement: nodes.CreateTable) -> None:
    """Check the declared shape against the body's, evaluate, ask the gates, write."""
    _written(session, statement, _create_table)


def _create_table(session: Session, transaction: Transaction, statement: nodes.CreateTable) -> Made | None:
    catalog = transaction.catalog
    schema, name = statement.name.schema or MAIN, statement.name.name
    if not check_table_name(created(catalog, statement)):
        check_policy_of_nothing(session, f"CREATE TABLE {name}", statement.name, statement.module)
        return None
    table = build_table(
        statement,
        schema_name=schema,
        settings=table_settings(session, schema),
        surroundings=table_surroundings(session, transaction),
    )
    check_lifetime(session, schema, table.module)
    if not is_host(session.engine, table.module):
        raise no_host_of_tables(table.module, f"cannot create maintained table '{table.qualified_name}'")
    check_policy(session, f"CREATE TABLE {name}", table.module)
    assert table.derivation is not None
    body = bind_body(session.engine, catalog, schema, table.derivation.query)
    check_declared_shape(table, body)
    check_row_references(table)
    rows = Program(session.engine, body.context, body.plan).rows(session, transaction)
    check_set(table, rows)
    gate(session, catalog, table, body)
    table = session.engine.module(table.module).create_table(transaction.writer(table.module), table)
    fill(session, transaction, table, rows, None)
    transaction.change_catalog(put_table(catalog, table))
    announce_table(transaction, "create", table)
    transaction.renewed.add(key_of(table))
    return table, body


def check_set(table: TableSchema, rows: list[Row]) -> None:
    """Raise CONSTRAINT where two rows have one key, as the table form and attach report it."""
    key = RowSet(table).key
    seen = set()
    for row in rows:
        name = key(row)
        if name in seen:
            raise duplicate_key(table, row)
        seen.add(name)


def check_row_references(table: TableSchema) -> None:
    """A CHECK of a derived row knows no OLD and no NEW."""
    for number, check in enumerate(table.checks):
        if check.operations == {Operation.DELETE}:
            continue
        for node in walk(check.expression):
            if isinstance(node, nodes.ColumnReference) and (node.table or "").lower() in ("old", "new"):
                name = f"_check_{number}" if check.positional else check.name
                raise sql_error(
                    StatusCode.ERROR,
                    f"CHECK constraint '{name}' on maintained table '{table.qualified_name}' references"
                    " OLD/NEW row images — a derived row has no OLD image and NEW is the row itself; rewrite"
                    " the constraint over plain column names",
                )


def check_declared_shape(table: TableSchema, body: Body) -> None:
    """Compare a declared table with its body: count, names, types, nullability, collations, key."""
    assert table.derivation is not None
    names = table.derivation.columns
    columns = body_columns(body, names if names and len(names) == len(body.plan.columns) else None)
    detail = (
        _wrong_count(table, names, columns)
        or _wrong_column(table, names, columns)
        or _wrong_key(table, physical_key(body, columns))
    )
    if detail is not None:
        text, qualified = detail
        shown = table.qualified_name if qualified else table.name
        raise sql_error(StatusCode.ERROR, f"cannot create maintained table '{shown}': {text}")


_Detail = tuple[str, bool] | None


def _wrong_count(
    table: TableSchema, names: tuple[str, ...] | None, columns: tuple[ColumnSchema, ...]
) -> _Detail:
    declared = len(table.columns)
    for column in table.columns:
        if column.generated is not None:
            return (
                f"column '{column.name}' is generated — a maintained table's columns are all derived by the"
                " body",
                False,
            )
    if names and len(names) != declared:
        text = f"the maintained column list has {len(names)} columns but the table declares {declared}"
        return text, False
    if len(columns) != declared:
        return f"body produces {len(columns)} columns but the table declares {declared}", False
    for position, (name, column) in enumerate(zip(names or (), table.columns, strict=False), 1):
        if name.lower() != column.name.lower():
            text = (
                f"maintained column {position} is named '{name}' but the table declares '{column.name}' (the"
                " maintained rename list must match the declared column names)"
            )
            return text, False
    return None


def _wrong_column(
    table: TableSchema, names: tuple[str, ...] | None, columns: tuple[ColumnSchema, ...]
) -> _Detail:
    for position, (declared, derived) in enumerate(zip(table.columns, columns, strict=True), 1):
        if not names and declared.name.lower() != derived.name.lower():
            text = (
                f"body output column {position} is named '{derived.name}' but the table declares"
                f" '{declared.name}' (alias the body output to match the declared shape)"
            )
            return text, True
    for declared, derived in zip(table.columns, columns, strict=True):
        pairs = (
            (f"type {derived.type.name}", declared.type.name, derived.type is declared.type),
            (_nullability(derived), _nullability(declared), derived.nullable == declared.nullable),
            (
                f"collation {derived.collation}",
                declared.collation,
                derived.collation == declared.collation,
            ),
        )
        for left, right, same in pairs:
            if not same:
                return f"column '{declared.name}': body derives {left} but the table declares {right}", True
    return None


def _nullability(column: ColumnSchema) -> str:
    return "nullable" if column.nullable else "not null"


def _wrong_key(table: TableSchema, derived: PrimaryKey) -> _Detail:
    ours, theirs = table.primary_key.parts, derived.parts
    if len(ours) != len(theirs):
        text = (
            f"body derives a {len(theirs)}-column primary key but the table declares {len(ours)} (a body"
            " `order by` seeds the derived key, whose columns it then begins with)"
        )
        return text, True
    for position, (own, other) in enumerate(zip(ours, theirs, strict=True), 1):
        own_name, other_name = table.columns[own.column].name, table.columns[other.column].name
        if own.column != other.column:
            text = (
                f"primary-key component {position}: body derives '{other_name}' but the table declares"
                f" '{own_name}'"
            )
            return text, True
        if own.descending != other.descending:
            return f"primary-key component {position} ('{own_name}'): direction differs", True
    return None


def maintained(table: TableSchema, query: nodes.Query, columns: tuple[str, ...]) -> TableSchema:
    """The table with this body."""
    return replace(table, derivation=Derivation(query, columns or None))
