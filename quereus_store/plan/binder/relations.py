"""Named relations: tables, views and common tables by name (queries, sections 5 and 15).

An unqualified name is a common table first, else it is looked up along the
schema path, tables and views together.  A plain view is bound in place, as a
stored body: it sees its own schema first and none of its reader's names.
"""

from __future__ import annotations

from dataclasses import replace

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.plan.binder import queries
from quereus_store.plan.binder.context import CommonTableEntry, Environment
from quereus_store.plan.expressions import Column
from quereus_store.plan.nodes import CommonTableScan, PlanNode, TableScan
from quereus_store.schema.objects import CollationRank as DeclaredRank
from quereus_store.schema.objects import ColumnSchema, TableSchema, ViewSchema, fold
from quereus_store.types import CollationContribution, CollationRank

COMMITTED = "committed"
_RANKS = {DeclaredRank.DECLARED: CollationRank.DECLARED, DeclaredRank.DEFAULT: CollationRank.DEFAULT}


def find_relation(
    environment: Environment, schema: str | None, name: str, position: SourcePosition | None
) -> TableSchema | ViewSchema:
    """The table or view of that name; raises NOTFOUND."""
    catalog = environment.context.catalog
    folded = fold(name)
    path = environment.schema_path if schema is None else (schema,)
    for schema_name in path:
        found = catalog.schemas.get(fold(schema_name))
        if found is not None:
            relation = found.tables.get(folded) or found.views.get(folded)
            if relation is not None:
                return relation
    if schema is not None:
        raise sql_error(StatusCode.NOTFOUND, f"Table not found: {schema}.{name}", position)
    raise _not_on_path(environment, name, position)


def _not_on_path(environment: Environment, name: str, position: SourcePosition | None) -> Error:
    folded = fold(name)
    message = f"Table '{name}' not found in schema path: {', '.join(environment.schema_path)}"
    elsewhere = [
        schema.name
        for schema in environment.context.catalog.schemas.values()
        if folded in schema.tables or folded in schema.views
    ]
    if elsewhere:
        candidates = ", ".join(f"{schema}.{name}" for schema in elsewhere)
        message += f"\n  Did you mean: {candidates}?\n  Or add '{elsewhere[0]}' to your WITH SCHEMA clause"
    return sql_error(StatusCode.NOTFOUND, message, position)


def contribution_of(column: ColumnSchema) -> CollationContribution | None:
    """What a table column asks for in a comparison; BINARY by default asks for nothing."""
    rank = _RANKS[column.collation_rank]
    if rank is CollationRank.DEFAULT and column.collation == "BINARY":
        return None
    return CollationContribution(column.collation, rank)


def row_columns(environment: Environment, table: TableSchema) -> tuple[Column, ...]:
    """New columns for a row of a table."""
    number = environment.context.number
    return tuple(
        [
            Column(number(), column.name, column.type, column.nullable, contribution_of(column))
            for column in table.columns
        ]
    )


def scan_table(
    environment: Environment, table: TableSchema, alias: str | None = None, committed: bool = False
) -> TableScan:
    """A scan of all columns of a table."""
    environment.context.references.tables[table.schema, table.name] = table
    columns = row_columns(environment, table)
    return TableScan(columns, table, tuple(range(len(columns))), alias, committed)


def scan_common_table(environment: Environment, entry: CommonTableEntry) -> PlanNode:
    """A use of a common table: a scan under new numbers, or its query bound once more."""
    if entry.query is not None and entry.environment is not None:
        plan = queries.bind_query_in(entry.environment, entry.query, entry.outer)
        return rename_columns(plan, entry.names)
    return CommonTableScan(tuple(environment.renumbered(entry.columns)), entry.table_id, entry.name)


def expand_view(environment: Environment, view: ViewSchema, position: SourcePosition | None) -> PlanNode:
    """A plain view's body, bound in place; raises ERROR for a view that reaches itself."""
    key = (view.schema, view.name)
    if key in environment.views:
        raise sql_error(StatusCode.ERROR, f"View '{view.schema}.{view.name}' is defined by itself", position)
    environment.context.references.views[key] = view
    plan = queries.bind_query_in(environment.inside_stored_body(view.schema, key), view.query)
    if view.columns:
        check_arity(f"View '{view.name}'", len(view.columns), plan, position, "body produces")
        return rename_columns(plan, view.columns)
    return plan


def check_arity(
    what: str, declared: int, plan: PlanNode, position: SourcePosition | None, verb: str = "query produces"
) -> None:
    """Raise ERROR unless a plan has as many columns as a list declares."""
    if declared != len(plan.columns):
        raise sql_error(
            StatusCode.ERROR,
            f"{what} has {declared} declared columns but {verb} {len(plan.columns)}",
            position,
        )


def rename_columns(plan: PlanNode, names: tuple[str, ...]) -> PlanNode:
    """The plan with its first columns renamed; the numbers stay."""
    if not names:
        return plan
    renamed = [
        Column(column.id, name, column.type, column.nullable, column.collation)
        for column, name in zip(plan.columns, names, strict=False)
    ]
    return replace(plan, columns=(*renamed, *plan.columns[len(names) :]))
