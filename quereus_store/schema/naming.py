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
from quereus_store.schema.target import Target


def _check_physical(schema: Schema, position: SourcePosition | None) -> None:
    """Nothing is created in a logical schema (ERROR)."""
    if schema.lens is not None:
        message = f"schema '{schema.name}' is logical: its tables are declared and applied, not created"
        raise sql_error(StatusCode.ERROR, message, position)


def _existing(target: Target) -> Schema:
    """The schema of that name; ERROR if there is none."""
    found = target.catalog.schema(target.schema)
    if found is None:
        raise target.refusal(StatusCode.ERROR, f"Schema '{target.schema}' does not exist")
    return found


def check_table_name(target: Target) -> bool:
    """Whether CREATE TABLE goes ahead; False where IF NOT EXISTS makes it do nothing.

    Raises INTERNAL for an unknown schema, CONSTRAINT for a name that is taken.
    """
    holder = target.catalog.schema(target.schema)
    if holder is None:
        message = f"Internal error: Schema '{target.schema}' not found."
        raise target.refusal(StatusCode.INTERNAL, message)
    _check_physical(holder, target.position)
    found = find_in_schema(target.catalog, target.schema, target.name)
    if found is None:
        return True
    if target.tolerant:
        if isinstance(found, TableSchema):
            return False
        message = f"Cannot CREATE TABLE {target.label}: a VIEW with the same name already exists."
        raise target.refusal(StatusCode.CONSTRAINT, message)
    kind = "Table" if isinstance(found, TableSchema) else "View"
    raise target.refusal(StatusCode.CONSTRAINT, f"{kind} {target.label} already exists")


def check_view_name(target: Target) -> bool:
    """Whether CREATE VIEW goes ahead; raises ERROR for an unknown schema and a name that is taken."""
    _check_physical(_existing(target), target.position)
    found = find_in_schema(target.catalog, target.schema, target.name)
    if found is None:
        return True
    if isinstance(found, TableSchema):
        message = (
            f"Schema '{target.schema}': Cannot add view '{target.name}', a table with the same name already"
            " exists."
        )
        raise target.refusal(StatusCode.ERROR, message)
    if target.tolerant:
        return False
    raise target.refusal(StatusCode.ERROR, f"View '{target.label}' already exists")


def check_materialized_view_name(target: Target) -> bool:
    """Whether CREATE MATERIALIZED VIEW goes ahead; IF NOT EXISTS passes over a maintained table only."""
    _check_physical(_existing(target), target.position)
    found = find_in_schema(target.catalog, target.schema, target.name)
    if found is None:
        return True
    if target.tolerant and is_maintained(found):
        return False
    message = (
        f"Cannot create materialized view '{target.label}': a table or view with the same name already exists"
    )
    raise target.refusal(StatusCode.CONSTRAINT, message)


def check_assertion_name(target: Target) -> bool:
    """Whether CREATE ASSERTION goes ahead; raises ERROR for a name that is taken."""
    if fold(target.name) not in _existing(target).assertions:
        return True
    if target.tolerant:
        return False
    raise target.refusal(StatusCode.ERROR, f"Assertion {target.name} already exists")


def check_index_name(target: Target, table: TableSchema) -> bool:
    """Whether CREATE INDEX goes ahead; index names are unique within a schema (CONSTRAINT).

    On its own table a UNIQUE constraint's hidden index takes the name too.  IF NOT EXISTS passes over
    an index of the same table only.
    """
    if table.index(target.name) is not None:
        if target.tolerant:
            return False
        message = f"Index {target.name} already exists on table {table.name}"
        raise target.refusal(StatusCode.CONSTRAINT, message)
    found = find_index(target.catalog, table.schema, target.name)
    if found is None:
        return True
    message = f"Index '{target.name}' already exists in schema '{table.schema}' on table '{found[0].name}'"
    raise target.refusal(StatusCode.CONSTRAINT, message)


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
