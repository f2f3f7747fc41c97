"""Schema objects as catalog entries and back.

An object is kept as the canonical DDL that makes it anew: a table as its *bundle* of statements,
joined by newlines and split again by parsing them (a literal may hold a newline), a schema as the
declaration of an empty one.  What text cannot tell is kept beside it: the store ids of rows and
indexes, and type, nullability and collation of index parts that are expressions, which only the
binder could find out again.

Chapter: store-and-modules, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from quereus_store.catalog.entries import ComputedPart, Entry
from quereus_store.catalog.layout import EntryKind
from quereus_store.catalog.lenses import (
    deployment_of,
    describe_deployment,
    describe_logical,
    logical_of,
)
from quereus_store.codec import row_decoder, row_encoder
from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.modules.contract import EngineServices
from quereus_store.schema.builder import (
    PartTyper,
    Surroundings,
    build_assertion,
    build_index,
    build_table,
    build_view,
)
from quereus_store.schema.clauses import tags_of
from quereus_store.schema.constraints import add_index
from quereus_store.schema.ddl import assertion_ddl, table_bundle, view_ddl
from quereus_store.schema.objects import (
    AssertionSchema,
    IndexSchema,
    RowLayout,
    Schema,
    TableSchema,
    ViewSchema,
    fold,
)
from quereus_store.sql import nodes, parse_script, render
from quereus_store.sql.traversal import transform
from quereus_store.types.collations import CollationRegistry
from quereus_store.types.logical import LogicalType, TypeRegistry

SchemaObject: TypeAlias = TableSchema | ViewSchema | AssertionSchema | Schema


@runtime_checkable
class _Registries(Protocol):
    """What an engine has besides what every module is lent."""

    collations: CollationRegistry
    types: TypeRegistry


@dataclass(frozen=True, slots=True)
class CatalogServices:
    """What reading definitions takes: the collations and types that they may name."""

    collations: CollationRegistry
    types: TypeRegistry

    @classmethod
    def of(cls, services: EngineServices) -> CatalogServices:
        """The engine's registries; the built-in ones where it has none."""
        if isinstance(services, _Registries):
            return cls(services.collations, services.types)
        return cls(CollationRegistry(), TypeRegistry())


# --- to entries -----------------------------------------------------------------------------------------


def describe(found: SchemaObject, stored: bool = True) -> Entry:
    """The entry of an object; ``stored`` tells of a table whether its rows are in this key space."""
    if isinstance(found, ViewSchema):
        return Entry(view_ddl(found), lens=describe_logical(found.logical))
    if isinstance(found, AssertionSchema):
        return Entry(assertion_ddl(found))
    if isinstance(found, Schema):
        return Entry(render(nodes.DeclareSchema(found.name)), lens=describe_deployment(found.lens))
    return Entry(
        ";\n".join(table_bundle(found)),
        found.storage_id if stored else 0,
        {fold(index.name): index.storage_id for index in found.indexes} if stored else {},
        {fold(index.name): parts for index in found.indexes if (parts := _computed_parts(index))},
        found.derivation is not None and found.derivation.stale,
        [view_ddl(view) for view in found.derivation.views] if found.derivation else (),
        layout=_described_layout(found.layout) if stored else (),
    )


def _described_layout(layout: RowLayout | None) -> Sequence[Any]:
    if layout is None:
        return ()
    encode, _ = row_encoder()
    return (layout.least, layout.slots, encode(layout.fills))


def _computed_parts(index: IndexSchema) -> tuple[ComputedPart, ...]:
    return tuple(
        (part.type.name, part.nullable, part.collation) for part in index.parts if part.column is None
    )


def renamed_home(entry: Entry, schema: tuple[str, str], module: tuple[str, str]) -> Entry:
    """The entry with another name for its schema, and for the module of its table (each: before, after)."""

    def change(node: nodes.Node) -> nodes.Node:
        if isinstance(node, nodes.ObjectName | nodes.TableReference | nodes.ColumnReference):
            if node.schema is not None and fold(node.schema) == schema[0]:
                return replace(node, schema=schema[1])
        elif isinstance(node, nodes.ModuleClause) and fold(node.name) == module[0]:
            return replace(node, name=module[1])
        return node

    def renamed(text: str) -> str:
        return ";\n".join(render(transform(statement, change)) for statement in parse_script(text))

    return replace(entry, ddl=renamed(entry.ddl), views=[renamed(view) for view in entry.views])


# --- from entries ---------------------------------------------------------------------------------------


def rebuild(kind: EntryKind, entry: Entry, schema_name: str, services: CatalogServices) -> SchemaObject:
    """The object that an entry describes.

    Raises whatever building it raises (an unknown collation, ...), CORRUPT for text that is no such object.
    """
    try:
        statements = parse_script(entry.ddl)
    except Error as error:
        raise sql_error(StatusCode.CORRUPT, f"a definition in the catalog cannot be read: {error}") from error
    match kind, statements:
        case EntryKind.TABLE, [nodes.CreateTable() as table, *others]:
            return _table(table, others, entry, schema_name, services)
        case EntryKind.VIEW, [nodes.CreateView() as view]:
            built = build_view(view, view.name.schema or schema_name)
            surroundings = Surroundings(services.collations, services.types)
            return replace(built, logical=logical_of(entry.lens, built.schema, surroundings))
        case EntryKind.ASSERTION, [nodes.CreateAssertion() as assertion]:
            return build_assertion(assertion, assertion.name.schema or schema_name)
        case EntryKind.SCHEMA, [nodes.DeclareSchema(name=name, items=())]:
            return Schema(name, lens=deployment_of(entry.lens))
    raise sql_error(StatusCode.CORRUPT, f"a definition in the catalog is not that of a {kind.name.lower()}")


def _table(
    node: nodes.CreateTable,
    others: Sequence[nodes.Statement],
    entry: Entry,
    schema_name: str,
    services: CatalogServices,
) -> TableSchema:
    surroundings = Surroundings(services.collations, services.types)
    table = build_table(node, schema_name=node.name.schema or schema_name, surroundings=surroundings)
    for statement in others:
        if isinstance(statement, nodes.CreateIndex):
            computed = entry.computed.get(fold(statement.name.name), ())
            typer = _typer(computed, services.types)
            index = build_index(statement, table, services.collations, typer)
            table = add_index(table, index).table
        elif isinstance(statement, nodes.AlterObjectTags):
            table = _with_index_tags(table, statement)
        else:
            raise sql_error(StatusCode.CORRUPT, f"the bundle of table {table.qualified_name} is damaged")
    if entry.stale and table.derivation is not None:
        table = replace(table, derivation=replace(table.derivation, stale=True))
    if entry.views and table.derivation is not None:
        views = tuple([_kept_view(text, table.schema) for text in entry.views])
        table = replace(table, derivation=replace(table.derivation, views=views))
    if entry.layout:
        table = replace(table, layout=_layout(table, entry.layout))
    return _with_store_ids(table, entry.rows, entry.indexes) if entry.rows else table


def _layout(table: TableSchema, described: Sequence[Any]) -> RowLayout:
    decode, _ = row_decoder(has_documents=True)
    least, slots, fills = described
    layout = RowLayout(tuple(slots), decode(fills), least)
    if len(layout.slots) != len(table.columns):
        raise sql_error(
            StatusCode.CORRUPT, f"the catalog does not say how rows of {table.qualified_name} are kept"
        )
    return layout


def _kept_view(text: str, schema_name: str) -> ViewSchema:
    """A dropped view that the body of a maintained table still reads."""
    match parse_script(text):
        case [nodes.CreateView() as view]:
            return build_view(view, view.name.schema or schema_name)
    raise sql_error(StatusCode.CORRUPT, "a view that a maintained table keeps cannot be read")


def _typer(computed: Sequence[ComputedPart], types: TypeRegistry) -> PartTyper:
    """Answers for the expressions of one index, in their order, from what was kept of them."""
    kept = iter(computed)

    def type_part(table: TableSchema, expression: nodes.Expression) -> tuple[LogicalType, bool, str]:
        part = next(kept, None)
        if part is None:
            raise sql_error(StatusCode.CORRUPT, f"the bundle of table {table.qualified_name} is damaged")
        name, nullable, collation = part
        return types.resolve(name), nullable, collation

    return type_part


def _with_index_tags(table: TableSchema, statement: nodes.AlterObjectTags) -> TableSchema:
    indexes = tuple(
        replace(index, tags=tags_of(statement.change.tags))
        if fold(index.name) == fold(statement.name.name)
        else index
        for index in table.indexes
    )
    return replace(table, indexes=indexes)


def _with_store_ids(table: TableSchema, rows: int, indexes: Mapping[str, int]) -> TableSchema:
    try:
        with_ids = tuple(replace(index, storage_id=indexes[fold(index.name)]) for index in table.indexes)
    except KeyError as missing:
        raise sql_error(
            StatusCode.CORRUPT, f"the catalog does not say where index {missing} of {table.qualified_name} is"
        ) from None
    return replace(table, storage_id=rows, indexes=with_ids)
