"""Named relations: tables, views and common tables by name (queries, sections 5 and 15).

An unqualified name is a common table first, else it is looked up along the
schema path, tables and views together.  A plain view is bound in place, as a
stored body: it sees its own schema first and none of its reader's names.
"""

from __future__ import annotations

from dataclasses import replace

from quereus_store.errors import Error, SourcePosition, StatusCode, placed_at, sql_error
from quereus_store.functions.registry import TableFunction
from quereus_store.plan.binder import queries
from quereus_store.plan.binder.context import CommonTableEntry, Environment, References
from quereus_store.plan.expressions import Column, reference
from quereus_store.plan.nodes import CommonTableScan, PlanNode, Project, TableFunctionScan, TableScan
from quereus_store.schema.manager import put_view, resolve_relation
from quereus_store.schema.objects import CollationRank as DeclaredRank
from quereus_store.schema.objects import ColumnSchema, Derivation, TableSchema, ViewSchema
from quereus_store.types import CollationContribution, CollationRank

COMMITTED = "committed"
_RANKS = {DeclaredRank.DECLARED: CollationRank.DECLARED, DeclaredRank.DEFAULT: CollationRank.DEFAULT}


def find_relation(
    environment: Environment, schema: str | None, name: str, position: SourcePosition | None
) -> TableSchema | ViewSchema:
    """The table or view of that name; raises NOTFOUND."""
    return resolve_relation(environment.context.catalog, environment.schema_path, schema, name, position)


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
    environment: Environment,
    table: TableSchema,
    alias: str | None = None,
    committed: bool = False,
    position: SourcePosition | None = None,
) -> TableScan:
    """A scan of all columns of a table; ERROR for a stale one whose body cannot be planned any more."""
    if table.derivation is not None and table.derivation.stale:
        check_plannable(environment, table, table.derivation, position)
    environment.context.references.tables[table.schema, table.name] = table
    columns = row_columns(environment, table)
    return TableScan(columns, table, tuple(range(len(columns))), alias, committed)


def scan_committed(environment: Environment, table: TableSchema, alias: str | None) -> PlanNode:
    """A scan of a table as it was before the transaction, with the columns that it has now."""
    before = environment.context.committed
    if before is None or before.table(table.schema, table.name) == table:
        return scan_table(environment, table, alias, committed=True)
    environment.context.references.tables[table.schema, table.name] = table
    columns = row_columns(environment, table)
    rows = TableFunction(
        "committed", lambda runtime: runtime.committed_rows(table), 0, 0, (), needs_context=True
    )
    return TableFunctionScan(columns, rows, (), alias)


def check_plannable(
    environment: Environment, table: TableSchema, derivation: Derivation, position: SourcePosition | None
) -> None:
    """Raise ERROR where the body of a stale maintained table cannot be planned any more."""
    catalog = environment.context.catalog
    for view in derivation.views:
        catalog = put_view(catalog, view)
    context = replace(environment.context, catalog=catalog, references=References())
    try:
        queries.bind_query_in(Environment.of(context).inside_stored_body(table.schema), derivation.query)
    except Error as cause:
        raise stale(table, cause).located(position) from cause


def stale(table: TableSchema, cause: Error) -> Error:
    """The error for a maintained table whose body cannot be planned any more."""
    return sql_error(
        StatusCode.ERROR,
        f"materialized view '{table.name}' is stale; a source changed in an incompatible way — drop and"
        f" recreate ({cause.message})",
    )


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
    used = environment.context.references
    used.views[key] = view
    outside = set(used.parameters)
    with placed_at(position):
        plan = queries.bind_query_in(environment.inside_stored_body(view.schema, key), view.query)
    for slot in used.parameters.keys() - outside:
        used.parameters[slot] = position
    if not view.columns:
        return plan
    shown = len(view.columns)
    if shown > len(plan.columns):
        check_arity(f"View '{view.name}'", shown, plan, position, "body produces")
    if shown < len(plan.columns):
        # The source has got more columns since; the list shows those it has names for.
        first = plan.columns[:shown]
        references = tuple([reference(c) for c in first])
        plan = Project(tuple(environment.renumbered(first)), plan, references)
    return rename_columns(plan, view.columns)


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
