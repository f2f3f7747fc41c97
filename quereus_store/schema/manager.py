"""Catalogs: finding objects, and making the next catalog.

Every function here takes a :class:`Catalog` and gives a value: an object that was found, a
decision, or a new catalog.  A statement such as CREATE TABLE reads like this::

    if check_table_name(created(catalog, node)):
        catalog = put_table(catalog, build_table(node, schema_name="main"))

Statements that change definitions name objects in one schema; queries look for an unqualified
name along the search path, where a schema's tables and views stand side by side.  Whether a name may be
taken, what a DROP removes and what changed between two catalogs is told beside this, in ``naming``,
``dropping`` and ``changes``.

Chapters: queries, sections 5 and 15; alter-and-ddl-lifecycle, sections 3 and 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.schema.constraints import exposed_indexes
from quereus_store.schema.objects import (
    AssertionSchema,
    Catalog,
    CollationRank,
    ForeignKey,
    IndexSchema,
    Schema,
    TableSchema,
    ViewSchema,
    fold,
)

MAIN = "main"
TEMP = "temp"
DEFAULT_PATH = (MAIN, TEMP)

Relation = TableSchema | ViewSchema


def empty_catalog() -> Catalog:
    """The catalog of a new database: the schemas ``main`` and ``temp``."""
    return Catalog({MAIN: Schema(MAIN), TEMP: Schema(TEMP)})


# --- look-ups ---------------------------------------------------------------------------------------------


def home_path(catalog: Catalog, schema: str, path: Sequence[str] = (MAIN,)) -> tuple[str, ...]:
    """Where a stored body looks for unqualified names: its own schema, then a path, all in one database."""
    if catalog.is_attached(schema):
        return (schema,)
    others = (place for place in path if fold(place) != fold(schema) and not catalog.is_attached(place))
    return (schema, *others)


def find_in_schema(catalog: Catalog, schema: str, name: str) -> Relation | None:
    """The table or view of that name in one schema."""
    found = catalog.schema(schema)
    if found is None:
        return None
    return found.tables.get(fold(name)) or found.views.get(fold(name))


def find_relation(catalog: Catalog, path: Sequence[str], schema: str | None, name: str) -> Relation | None:
    """The table or view that a query means by a name: in ``schema``, or first along the path."""
    for place in path if schema is None else (schema,):
        found = find_in_schema(catalog, place, name)
        if found is not None:
            return found
    return None


def resolve_relation(
    catalog: Catalog,
    path: Sequence[str],
    schema: str | None,
    name: str,
    position: SourcePosition | None = None,
) -> Relation:
    """Like :func:`find_relation`; raises NOTFOUND, with a hint where another schema has the name."""
    found = find_relation(catalog, path, schema, name)
    if found is not None:
        return found
    if schema is not None:
        raise sql_error(StatusCode.NOTFOUND, f"Table not found: {schema}.{name}", position)
    raise not_in_path(catalog, path, name, position)


def not_in_path(
    catalog: Catalog, path: Sequence[str], name: str, position: SourcePosition | None = None
) -> Error:
    """The error for an unqualified name that no schema of the path holds."""
    message = f"Table '{name}' not found in schema path: {', '.join(path)}"
    holders = [
        schema.name for schema in catalog.schemas.values() if find_in_schema(catalog, schema.name, name)
    ]
    if holders:
        candidates = ", ".join(f"{holder}.{name}" for holder in holders)
        message += f"\n  Did you mean: {candidates}?"
        message += f"\n  Or add '{holders[0]}' to your WITH SCHEMA clause"
    return sql_error(StatusCode.NOTFOUND, message, position)


def resolve_table(
    catalog: Catalog,
    path: Sequence[str],
    schema: str | None,
    name: str,
    position: SourcePosition | None = None,
) -> TableSchema:
    """The table that ALTER TABLE names; a view is not found either (NOTFOUND)."""
    found = find_relation(catalog, path, schema, name)
    if isinstance(found, TableSchema):
        return found
    if schema is not None:
        raise sql_error(StatusCode.NOTFOUND, f"Table not found: {schema}.{name}", position)
    if found is not None:
        message = f"Table '{name}' not found in schema path: {', '.join(path)}"
        raise sql_error(StatusCode.NOTFOUND, message, position)
    raise not_in_path(catalog, path, name, position)


def find_index(
    catalog: Catalog, schema: str, name: str, *, exposed: bool = False
) -> tuple[TableSchema, IndexSchema] | None:
    """An index by name with its table; hidden ones are passed over, except exposed ones if wanted."""
    holder = catalog.schema(schema)
    for table in holder.tables.values() if holder else ():
        index = table.index(name)
        if index is not None and (not index.hidden or (exposed and index in exposed_indexes(table))):
            return table, index
    return None


def tables_of(catalog: Catalog) -> Iterator[TableSchema]:
    """All tables of all schemas."""
    for schema in catalog.schemas.values():
        yield from schema.tables.values()


def views_of(catalog: Catalog) -> Iterator[ViewSchema]:
    """All views of all schemas."""
    for schema in catalog.schemas.values():
        yield from schema.views.values()


def assertions_of(catalog: Catalog) -> Iterator[AssertionSchema]:
    """All assertions of all schemas."""
    for schema in catalog.schemas.values():
        yield from schema.assertions.values()


def parent_of(catalog: Catalog, child: TableSchema, key: ForeignKey) -> TableSchema | None:
    """The table that a foreign key refers to, if it exists."""
    return catalog.table(key.parent_schema or child.schema, key.parent_table)


def parent_key(parent: TableSchema, key: ForeignKey) -> tuple[int, ...] | None:
    """Positions of the parent's columns that a foreign key refers to; None if one is missing."""
    if key.parent_columns is None:
        return tuple(part.column for part in parent.primary_key.parts)
    positions = [parent.column_index(name) for name in key.parent_columns]
    found = tuple(position for position in positions if position is not None)
    return found if len(found) == len(positions) else None


def check_foreign_key_collations(catalog: Catalog, child: TableSchema) -> None:
    """Child and parent columns may not both declare collations that differ (ERROR).

    A parent that does not exist yet is not looked at; the table itself may be the parent.
    """
    for key in child.foreign_keys:
        itself = (fold(key.parent_schema or child.schema), fold(key.parent_table)) == (
            fold(child.schema),
            fold(child.name),
        )
        parent = child if itself else parent_of(catalog, child, key)
        columns = None if parent is None else parent_key(parent, key)
        if parent is None or columns is None:
            continue
        for ours, theirs in zip(key.columns, columns, strict=False):
            mine, other = child.columns[ours], parent.columns[theirs]
            declared = mine.collation_rank is other.collation_rank is CollationRank.DECLARED
            if declared and mine.collation != other.collation:
                raise sql_error(
                    StatusCode.ERROR,
                    f"FOREIGN KEY '{key.name}' on '{child.name}': child column '{child.name}.{mine.name}'"
                    f" (collation {mine.collation}) and parent column '{parent.name}.{other.name}'"
                    f" (collation {other.collation}) declare conflicting collations; declare a matching"
                    " COLLATE on both sides.",
                )


def require_schema(catalog: Catalog, name: str, position: SourcePosition | None = None) -> Schema:
    """The schema of that name; raises ERROR when there is none."""
    found = catalog.schema(name)
    if found is None:
        raise sql_error(StatusCode.ERROR, f"Schema not found: {name}", position)
    return found


# --- the next catalog -------------------------------------------------------------------------------------


def put_table(catalog: Catalog, table: TableSchema) -> Catalog:
    """With this table added or replaced."""
    return catalog.with_schema(_schema(catalog, table.schema).with_table(table))


def remove_table(catalog: Catalog, table: TableSchema) -> Catalog:
    """Without this table."""
    return catalog.with_schema(_schema(catalog, table.schema).without_table(table.name))


def rename_table(catalog: Catalog, table: TableSchema, new_name: str) -> Catalog:
    """With this table under another name; what refers to it is left to :mod:`.rename`."""
    schema = _schema(catalog, table.schema).without_table(table.name)
    return catalog.with_schema(schema.with_table(replace(table, name=new_name)))


def put_view(catalog: Catalog, view: ViewSchema) -> Catalog:
    """With this view added or replaced."""
    return catalog.with_schema(_schema(catalog, view.schema).with_view(view))


def remove_view(catalog: Catalog, view: ViewSchema) -> Catalog:
    """Without this view."""
    return catalog.with_schema(_schema(catalog, view.schema).without_view(view.name))


def put_assertion(catalog: Catalog, assertion: AssertionSchema) -> Catalog:
    """With this assertion added or replaced."""
    return catalog.with_schema(_schema(catalog, assertion.schema).with_assertion(assertion))


def remove_assertion(catalog: Catalog, assertion: AssertionSchema) -> Catalog:
    """Without this assertion."""
    return catalog.with_schema(_schema(catalog, assertion.schema).without_assertion(assertion.name))


def add_schema(catalog: Catalog, name: str) -> Catalog:
    """With an empty schema of that name; raises ERROR when the name is taken."""
    if catalog.schema(name) is not None:
        raise sql_error(StatusCode.ERROR, f"Schema '{name}' already exists")
    return catalog.with_schema(Schema(name))


def remove_schema(catalog: Catalog, name: str) -> Catalog:
    """Without that schema; raises ERROR for ``main``, ``temp``, attached and unknown ones."""
    require_schema(catalog, name)
    if fold(name) in DEFAULT_PATH or catalog.is_attached(name):
        raise sql_error(StatusCode.ERROR, f"Schema '{name}' cannot be removed")
    schemas = {key: schema for key, schema in catalog.schemas.items() if key != fold(name)}
    return Catalog(schemas, catalog.version + 1)


def _schema(catalog: Catalog, name: str) -> Schema:
    return catalog.schema(name) or Schema(name)
