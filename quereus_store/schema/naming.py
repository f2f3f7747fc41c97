"""May this name be taken?  What CREATE and RENAME ask before they change anything.

Each function returns False where IF NOT EXISTS makes the statement do nothing, and raises where the name
belongs to something else.

Chapter: alter-and-ddl-lifecycle, section 3.
"""

from __future__ import annotations

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.schema.dropping import is_maintained
from quereus_store.schema.manager import find_in_schema, find_index
from quereus_store.schema.objects import Catalog, Schema, TableSchema, fold


def _check_physical(schema: Schema, position: SourcePosition | None) -> None:
    """Nothing is created in a logical schema (ERROR)."""
    if schema.lens is not None:
        message = f"schema '{schema.name}' is logical: its tables are declared and applied, not created"
        raise sql_error(StatusCode.ERROR, message, position)


def _existing(catalog: Catalog, schema: str, position: SourcePosition | None) -> Schema:
    """The schema of that name; ERROR if there is none."""
    found = catalog.schema(schema)
    if found is None:
        raise sql_error(StatusCode.ERROR, f"Schema '{schema}' does not exist", position)
    return found


def check_table_name(
    catalog: Catalog,
    schema: str,
    name: str,
    *,
    if_not_exists: bool = False,
    position: SourcePosition | None = None,
) -> bool:
    """Whether CREATE TABLE goes ahead; False where IF NOT EXISTS makes it do nothing.

    Raises INTERNAL for an unknown schema, CONSTRAINT for a name that is taken.
    """
    holder = catalog.schema(schema)
    if holder is None:
        message = f"Internal error: Schema '{schema}' not found."
        raise sql_error(StatusCode.INTERNAL, message, position)
    _check_physical(holder, position)
    found = find_in_schema(catalog, schema, name)
    if found is None:
        return True
    if if_not_exists:
        if isinstance(found, TableSchema):
            return False
        message = f"Cannot CREATE TABLE {schema}.{name}: a VIEW with the same name already exists."
        raise sql_error(StatusCode.CONSTRAINT, message, position)
    kind = "Table" if isinstance(found, TableSchema) else "View"
    raise sql_error(StatusCode.CONSTRAINT, f"{kind} {schema}.{name} already exists", position)


def check_view_name(
    catalog: Catalog,
    schema: str,
    name: str,
    *,
    if_not_exists: bool = False,
    position: SourcePosition | None = None,
) -> bool:
    """Whether CREATE VIEW goes ahead; raises ERROR for an unknown schema and a name that is taken."""
    _check_physical(_existing(catalog, schema, position), position)
    found = find_in_schema(catalog, schema, name)
    if found is None:
        return True
    if isinstance(found, TableSchema):
        message = f"Schema '{schema}': Cannot add view '{name}', a table with the same name already exists."
        raise sql_error(StatusCode.ERROR, message, position)
    if if_not_exists:
        return False
    raise sql_error(StatusCode.ERROR, f"View '{schema}.{name}' already exists", position)


def check_materialized_view_name(
    catalog: Catalog,
    schema: str,
    name: str,
    *,
    if_not_exists: bool = False,
    position: SourcePosition | None = None,
) -> bool:
    """Whether CREATE MATERIALIZED VIEW goes ahead; IF NOT EXISTS passes over a maintained table only."""
    _check_physical(_existing(catalog, schema, position), position)
    found = find_in_schema(catalog, schema, name)
    if found is None:
        return True
    if if_not_exists and is_maintained(found):
        return False
    message = (
        f"Cannot create materialized view '{schema}.{name}': a table or view with the same name already"
        " exists"
    )
    raise sql_error(StatusCode.CONSTRAINT, message, position)


def check_assertion_name(
    catalog: Catalog,
    schema: str,
    name: str,
    *,
    if_not_exists: bool = False,
    position: SourcePosition | None = None,
) -> bool:
    """Whether CREATE ASSERTION goes ahead; raises ERROR for a name that is taken."""
    if fold(name) not in _existing(catalog, schema, position).assertions:
        return True
    if if_not_exists:
        return False
    raise sql_error(StatusCode.ERROR, f"Assertion {name} already exists", position)


def check_index_name(
    catalog: Catalog,
    table: TableSchema,
    name: str,
    *,
    if_not_exists: bool = False,
    position: SourcePosition | None = None,
) -> bool:
    """Whether CREATE INDEX goes ahead; index names are unique within a schema (CONSTRAINT).

    On its own table a UNIQUE constraint's hidden index takes the name too.  IF NOT EXISTS passes over
    an index of the same table only.
    """
    if table.index(name) is not None:
        if if_not_exists:
            return False
        message = f"Index {name} already exists on table {table.name}"
        raise sql_error(StatusCode.CONSTRAINT, message, position)
    found = find_index(catalog, table.schema, name)
    if found is None:
        return True
    message = f"Index '{name}' already exists in schema '{table.schema}' on table '{found[0].name}'"
    raise sql_error(StatusCode.CONSTRAINT, message, position)


def check_rename(
    catalog: Catalog, table: TableSchema, new_name: str, position: SourcePosition | None = None
) -> None:
    """A table's new name must be free, its own name in another case included (ERROR)."""
    found = find_in_schema(catalog, table.schema, new_name)
    if isinstance(found, TableSchema):
        raise sql_error(StatusCode.ERROR, f"Table '{new_name}' already exists", position)
    if found is not None:
        message = (
            f"Schema '{table.schema}': Cannot add table '{new_name}', a view with the same name already"
            " exists."
        )
        raise sql_error(StatusCode.ERROR, message, position)
