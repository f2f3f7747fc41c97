"""What does DROP mean?  The object that a statement removes, or None where IF EXISTS makes it do nothing.

Chapter: alter-and-ddl-lifecycle, section 3.
"""

from __future__ import annotations

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.schema.manager import Relation, find_in_schema, find_index, require_schema
from quereus_store.schema.objects import (
    AssertionSchema,
    Catalog,
    IndexSchema,
    TableSchema,
    ViewSchema,
    fold,
)


def is_maintained(relation: Relation | None) -> bool:
    """Whether this is a table kept equal to a query (a materialized view)."""
    return isinstance(relation, TableSchema) and relation.derivation is not None


def table_to_drop(
    catalog: Catalog,
    schema: str,
    name: str,
    *,
    if_exists: bool = False,
    position: SourcePosition | None = None,
) -> TableSchema | None:
    """The table of a DROP TABLE, maintained or not; None where IF EXISTS makes it do nothing."""
    found = _relation_to_drop(catalog, schema, name, if_exists, position)
    if isinstance(found, TableSchema):
        return found
    if if_exists:
        return None
    raise sql_error(StatusCode.NOTFOUND, f"Table {name} not found in schema {schema}", position)


def view_to_drop(
    catalog: Catalog,
    schema: str,
    name: str,
    *,
    if_exists: bool = False,
    position: SourcePosition | None = None,
) -> ViewSchema | None:
    """The view of a DROP VIEW; a materialized view is refused even under IF EXISTS (ERROR)."""
    found = _relation_to_drop(catalog, schema, name, if_exists, position)
    if isinstance(found, ViewSchema):
        return found
    if is_maintained(found):
        message = f"'{name}' is a materialized view — use DROP MATERIALIZED VIEW"
        raise sql_error(StatusCode.ERROR, message, position)
    if if_exists:
        return None
    raise sql_error(StatusCode.ERROR, f"View '{schema}.{name}' does not exist", position)


def materialized_view_to_drop(
    catalog: Catalog,
    schema: str,
    name: str,
    *,
    if_exists: bool = False,
    position: SourcePosition | None = None,
) -> TableSchema | None:
    """The maintained table of a DROP MATERIALIZED VIEW."""
    found = _relation_to_drop(catalog, schema, name, if_exists, position)
    if isinstance(found, TableSchema) and found.derivation is not None:
        return found
    if if_exists:
        return None
    if isinstance(found, TableSchema):
        message = f"'{name}' is a table, not a materialized view — use DROP TABLE"
    elif isinstance(found, ViewSchema):
        message = f"'{name}' is a view, not a materialized view — use DROP VIEW"
    else:
        message = f"no such materialized view: {name}"
    raise sql_error(StatusCode.ERROR, message, position)


def index_to_drop(
    catalog: Catalog,
    schema: str,
    name: str,
    *,
    if_exists: bool = False,
    position: SourcePosition | None = None,
) -> tuple[TableSchema, IndexSchema] | None:
    """The index of a DROP INDEX and its table; hidden ones are not there for it."""
    if not if_exists:
        require_schema(catalog, schema, position)
    found = find_index(catalog, schema, name)
    if found is None and not if_exists:
        raise sql_error(StatusCode.ERROR, f"no such index: {name}", position)
    return found


def assertion_to_drop(
    catalog: Catalog,
    schema: str,
    name: str,
    *,
    if_exists: bool = False,
    position: SourcePosition | None = None,
) -> AssertionSchema | None:
    """The assertion of a DROP ASSERTION."""
    holder = catalog.schema(schema) if if_exists else require_schema(catalog, schema, position)
    found = holder.assertions.get(fold(name)) if holder else None
    if found is None and not if_exists:
        raise sql_error(StatusCode.NOTFOUND, f"Assertion {name} not found in schema {schema}", position)
    return found


def _relation_to_drop(
    catalog: Catalog, schema: str, name: str, if_exists: bool, position: SourcePosition | None
) -> Relation | None:
    if not if_exists:
        require_schema(catalog, schema, position)
    return find_in_schema(catalog, schema, name)
