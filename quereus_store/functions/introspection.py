"""Introspection: the catalog as rows (functions, section 11).

Each function takes the running statement's context; what it needs of it is :class:`IntrospectionContext`.
Views are described by their *lineage*: which base columns their columns come from, and what may be written
through them.  Working that out is the business of the layers above, so the context brings it
(:meth:`IntrospectionContext.lineage`).

Objects are named bare, in any case, and looked for in ``main``, ``temp``, then in the other schemas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from quereus_store.errors import StatusCode, sql_error
from quereus_store.functions.catalog_rows import (
    function_arity,
    function_flags,
    function_kind,
    function_signature,
    index_sql,
    referenced_columns,
    table_references,
    table_sql,
    tags_text,
    view_sql,
    visible_functions,
)
from quereus_store.functions.registry import Function, FunctionRegistry, ResultColumn, TableFunction
from quereus_store.schema.constraints import visible_indexes
from quereus_store.schema.manager import DEFAULT_PATH, MAIN
from quereus_store.schema.objects import (
    Catalog,
    Operation,
    ReferentialAction,
    Schema,
    TableSchema,
    ViewSchema,
    fold,
)
from quereus_store.sql.renderer import render_expression
from quereus_store.types.collations import CollationRegistry
from quereus_store.types.json import render_json
from quereus_store.types.logical import INTEGER, TEXT
from quereus_store.types.values import Value

_Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """Where a column of a view comes from; both names are None where no single base column can be told."""

    updatable: bool
    base_table: str | None = None
    base_column: str | None = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """What may be written through a view or a maintained table, and where its columns come from."""

    insertable: bool
    updatable: bool
    deletable: bool
    targets: tuple[str, ...]
    column_names: tuple[str, ...]
    columns: tuple[ColumnLineage, ...]


class IntrospectionContext(Protocol):
    """What these functions ask of a statement's runtime context."""

    catalog: Catalog
    registry: FunctionRegistry
    collations: CollationRegistry
    options: Mapping[str, Any]
    schema_path: Sequence[str]

    def lineage(self, relation: ViewSchema | TableSchema) -> Lineage:
        """The lineage of a view or of a maintained table."""


# --- finding objects ----------------------------------------------------------------------------------------


def _schemas(catalog: Catalog) -> list[Schema]:
    """All schemas: main, temp, then the others as they come."""
    first = [catalog.schemas[name] for name in DEFAULT_PATH if name in catalog.schemas]
    return first + [schema for name, schema in catalog.schemas.items() if name not in DEFAULT_PATH]


def _table(context: IntrospectionContext, function: str, name: Value) -> TableSchema:
    if type(name) is not str:
        raise sql_error(StatusCode.ERROR, f"{function}() requires a table name string argument")
    for schema in _schemas(context.catalog):
        found = schema.tables.get(fold(name))
        if found is not None:
            return found
    raise sql_error(StatusCode.ERROR, f"Table '{name}' not found")


def _names(table: TableSchema, positions: Sequence[int]) -> list[str]:
    return [table.columns[position].name for position in positions]


# --- the whole catalog --------------------------------------------------------------------------------------


def schema_rows(context: IntrospectionContext) -> Iterator[_Row]:
    """schema(): every table with its indexes, every view, every function."""
    for schema in _schemas(context.catalog):
        for table in schema.tables.values():
            yield from _table_rows(schema.name, table, context.options["default_vtab_module"])
        for view in schema.views.values():
            yield (schema.name, "view", view.name, view.name, view_sql(view), tags_text(view.tags))
    for function in visible_functions(context.registry):
        name = function.name
        yield (MAIN, "function", name, name, f"FUNCTION {function_signature(function)}", None)


def _table_rows(schema: str, table: TableSchema, default_module: str) -> Iterator[_Row]:
    kind = "table" if table.derivation is None else "materialized_view"
    yield (schema, kind, table.name, table.name, table_sql(table, default_module), tags_text(table.tags))
    for index in visible_indexes(table):
        yield (schema, "index", index.name, table.name, index_sql(table, index), tags_text(index.tags))


def function_info(context: IntrospectionContext, *arguments: Value) -> Iterator[_Row]:
    """function_info([name]): every function that a call can reach."""
    wanted = fold(arguments[0]) if len(arguments) == 1 and type(arguments[0]) is str else None
    for function in context.registry:
        if wanted is None or fold(function.name) == wanted:
            yield (
                function.name,
                function_arity(function),
                function_kind(function),
                int(function.deterministic),
                function_flags(function),
                function_signature(function),
            )


def collation_info(context: IntrospectionContext) -> Iterator[_Row]:
    """collation_info(): every collation, whether it can key rows, and whether its keys sort like it."""
    for name in context.collations.names():
        collation = context.collations.get(name)
        yield (name, int(collation.normalizer is not None), int(collation.order_preserving))


def assertion_info(context: IntrospectionContext) -> Iterator[_Row]:
    """assertion_info(): every assertion and the tables that it reads."""
    for schema in _schemas(context.catalog):
        for assertion in schema.assertions.values():
            violation = f"select 1 where not ({render_expression(assertion.expression)})"
            references = table_references(context.catalog, schema.name, assertion.expression)
            yield (schema.name, assertion.name, violation, 1, 1, render_json(references))


# --- one table ----------------------------------------------------------------------------------------------


def table_info(context: IntrospectionContext, name: Value) -> Iterator[_Row]:
    """table_info(t): the columns of a table."""
    table = _table(context, "table_info", name)
    key = {part.column for part in table.primary_key.parts}
    for position, column in enumerate(table.columns):
        yield (
            position,
            column.name,
            column.type.name,
            int(not column.nullable),
            None if column.default is None else render_expression(column.default),
            int(position in key),
            tags_text(column.tags),
            column.collation,
            0 if column.generated is None else 1 + column.stored,
        )


def index_info(context: IntrospectionContext, name: Value) -> Iterator[_Row]:
    """index_info(t): the parts of a table's indexes."""
    table = _table(context, "index_info", name)
    for index in visible_indexes(table):
        # An exposed structure behind a constraint is no unique index: the constraint is what is unique.
        unique = index.unique and not index.hidden
        for sequence, part in enumerate(index.parts):
            yield (
                index.name,
                sequence,
                None if part.column is None else table.columns[part.column].name,
                int(part.descending),
                part.collation,
                int(unique),
                int(index.where is not None),
                tags_text(index.tags),
            )


_ACTION_NAMES = {
    ReferentialAction.RESTRICT: "restrict",
    ReferentialAction.NO_ACTION: "restrict",
    ReferentialAction.CASCADE: "cascade",
    ReferentialAction.SET_NULL: "setNull",
    ReferentialAction.SET_DEFAULT: "setDefault",
}


def foreign_key_info(context: IntrospectionContext, name: Value) -> Iterator[_Row]:
    """foreign_key_info(t): the columns of a table's foreign keys."""
    table = _table(context, "foreign_key_info", name)
    for number, key in enumerate(table.foreign_keys):
        parent_columns = referenced_columns(context.catalog, table, key)
        for sequence, (own, parent) in enumerate(
            zip(_names(table, key.columns), parent_columns, strict=True)
        ):
            yield (
                number,
                key.name,
                table.name,
                own,
                key.parent_table,
                key.parent_schema or table.schema,
                parent,
                _ACTION_NAMES[key.on_update],
                _ACTION_NAMES[key.on_delete],
                int(key.deferred),
                sequence,
                tags_text(key.tags),
            )


def check_constraint_info(context: IntrospectionContext, name: Value) -> Iterator[_Row]:
    """check_constraint_info(t): the CHECK constraints of a table."""
    table = _table(context, "check_constraint_info", name)
    for number, check in enumerate(table.checks):
        yield (
            number,
            None if check.positional else check.name,
            render_expression(check.expression),
            ",".join(operation.value for operation in Operation if operation in check.operations),
            0,
            0,
            tags_text(check.tags),
        )


def unique_constraint_info(context: IntrospectionContext, name: Value) -> Iterator[_Row]:
    """unique_constraint_info(t): the UNIQUE constraints and unique indexes of a table, but no primary key."""
    table = _table(context, "unique_constraint_info", name)
    for number, constraint in enumerate(table.unique_constraints):
        index = table.index(constraint.index)
        partial = index is not None and index.where is not None
        tags = None if constraint.from_index else tags_text(constraint.tags)
        for sequence, column in enumerate(_names(table, constraint.columns)):
            yield (number, constraint.name, sequence, column, int(partial), tags)


# --- writing through views ----------------------------------------------------------------------------------


def _yes(flag: bool) -> str:
    return "YES" if flag else "NO"


def view_info(context: IntrospectionContext, *arguments: Value) -> Iterator[_Row]:
    """view_info([v]): what may be written through plain views."""
    wanted = fold(arguments[0]) if arguments and type(arguments[0]) is str else None
    for schema in _schemas(context.catalog):
        for key, view in schema.views.items():
            if wanted is None or key == wanted:
                lineage = context.lineage(view)
                flags = map(_yes, (lineage.insertable, lineage.updatable, lineage.deletable))
                yield (schema.name, view.name, *flags, render_json(sorted(lineage.targets)))


def column_info(context: IntrospectionContext, name: Value) -> Iterator[_Row]:
    """column_info(t or v): where the columns of a table or view can be written."""
    if type(name) is not str:
        raise sql_error(StatusCode.ERROR, "column_info() requires a table or view name string argument")
    relation = _relation(context.catalog, name)
    if isinstance(relation, TableSchema) and relation.derivation is None:
        for position, column in enumerate(relation.columns):
            kept = column.generated is None
            base_table, base_column = (relation.name, column.name) if kept else (None, None)
            yield (relation.schema, relation.name, position, column.name, _yes(kept), base_table, base_column)
        return
    lineage = context.lineage(relation)
    names, origins = lineage.column_names, lineage.columns
    if isinstance(relation, TableSchema):
        # A stale one is read by the columns that it has and written by those of its body.
        written = dict(zip(map(fold, names), origins, strict=True))
        names = tuple(column.name for column in relation.columns)
        origins = tuple(written.get(fold(name), ColumnLineage(False)) for name in names)
    for position, (column_name, origin) in enumerate(zip(names, origins, strict=True)):
        flag = _yes(origin.updatable)
        base_table, base_column = origin.base_table, origin.base_column
        yield (relation.schema, relation.name, position, column_name, flag, base_table, base_column)


def _relation(catalog: Catalog, name: str) -> TableSchema | ViewSchema:
    """The table of that name, else the view; raises ERROR when there is neither."""
    folded = fold(name)
    for schema in _schemas(catalog):
        if folded in schema.tables:
            return schema.tables[folded]
    for schema in _schemas(catalog):
        if folded in schema.views:
            return schema.views[folded]
    raise sql_error(StatusCode.ERROR, f"'{name}' not found")


# --- the table ----------------------------------------------------------------------------------------------


def columns_of(texts: str, integers: str = "") -> tuple[ResultColumn, ...]:
    """Result columns from a list of names; those also in ``integers`` are INTEGER, the others TEXT."""
    numbers = set(integers.split())
    return tuple(ResultColumn(name, INTEGER if name in numbers else TEXT) for name in texts.split())


_DECLARATIONS: tuple[tuple[str, Any, int, int | None, tuple[ResultColumn, ...]], ...] = (
    ("schema", schema_rows, 0, 0, columns_of("schema type name tbl_name sql tags")),
    (
        "table_info",
        table_info,
        1,
        1,
        columns_of(
            "cid name type notnull dflt_value pk tags collation generated", "cid notnull pk generated"
        ),
    ),
    (
        "index_info",
        index_info,
        1,
        1,
        columns_of(
            "index_name seq column_name desc collation unique partial tags", "seq desc unique partial"
        ),
    ),
    (
        "foreign_key_info",
        foreign_key_info,
        1,
        1,
        columns_of(
            "id name table from referenced_table referenced_schema to on_update on_delete deferred seq tags",
            "id deferred seq",
        ),
    ),
    (
        "check_constraint_info",
        check_constraint_info,
        1,
        1,
        columns_of(
            "id name expr operations deferrable initially_deferred tags", "id deferrable initially_deferred"
        ),
    ),
    (
        "unique_constraint_info",
        unique_constraint_info,
        1,
        1,
        columns_of("id name seq column_name partial tags", "id seq partial"),
    ),
    (
        "assertion_info",
        assertion_info,
        0,
        0,
        columns_of(
            "schema_name name violation_sql deferrable initially_deferred dependent_tables",
            "deferrable initially_deferred",
        ),
    ),
    (
        "view_info",
        view_info,
        0,
        1,
        columns_of("schema name is_insertable_into is_updatable is_deletable effective_targets"),
    ),
    (
        "column_info",
        column_info,
        1,
        1,
        columns_of("schema name cid column_name is_updatable base_table base_column", "cid"),
    ),
    (
        "function_info",
        function_info,
        0,
        None,
        columns_of("name num_args type deterministic flags signature", "num_args deterministic flags"),
    ),
    (
        "collation_info",
        collation_info,
        0,
        0,
        columns_of("name keys_rows order_preserving", "keys_rows order_preserving"),
    ),
)


def introspection_functions() -> list[Function]:
    """The whole family, ready to register."""
    return [
        TableFunction(name, call, minimum, maximum, columns, deterministic=False, needs_context=True)
        for name, call, minimum, maximum, columns in _DECLARATIONS
    ]
