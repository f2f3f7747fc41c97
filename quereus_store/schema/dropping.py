"""What does DROP mean?  The object that a statement removes, or None where IF EXISTS makes it do nothing.

Chapter: alter-and-ddl-lifecycle, section 3.
"""

from __future__ import annotations

from quereus_store.errors import StatusCode
from quereus_store.schema.manager import Relation, find_in_schema, find_index, require_schema
from quereus_store.schema.objects import (
    AssertionSchema,
    IndexSchema,
    TableSchema,
    ViewSchema,
    fold,
)
from quereus_store.schema.target import Target


def is_maintained(relation: Relation | None) -> bool:
    """Whether this is a table kept equal to a query (a materialized view)."""
    return isinstance(relation, TableSchema) and relation.derivation is not None


def table_to_drop(target: Target) -> TableSchema | None:
    """The table of a DROP TABLE, maintained or not; None where IF EXISTS makes it do nothing."""
    found = _relation_to_drop(target)
    if isinstance(found, TableSchema):
        return found
    if target.tolerant:
        return None
    raise target.refusal(StatusCode.NOTFOUND, f"Table {target.name} not found in schema {target.schema}")


def view_to_drop(target: Target) -> ViewSchema | None:
    """The view of a DROP VIEW; a materialized view is refused even under IF EXISTS (ERROR)."""
    found = _relation_to_drop(target)
    if isinstance(found, ViewSchema):
        return found
    if is_maintained(found):
        message = f"'{target.name}' is a materialized view — use DROP MATERIALIZED VIEW"
        raise target.refusal(StatusCode.ERROR, message)
    if target.tolerant:
        return None
    raise target.refusal(StatusCode.ERROR, f"View '{target.label}' does not exist")


def materialized_view_to_drop(target: Target) -> TableSchema | None:
    """The maintained table of a DROP MATERIALIZED VIEW."""
    found = _relation_to_drop(target)
    if isinstance(found, TableSchema) and found.derivation is not None:
        return found
    if target.tolerant:
        return None
    if isinstance(found, TableSchema):
        message = f"'{target.name}' is a table, not a materialized view — use DROP TABLE"
    elif isinstance(found, ViewSchema):
        message = f"'{target.name}' is a view, not a materialized view — use DROP VIEW"
    else:
        message = f"no such materialized view: {target.name}"
    raise target.refusal(StatusCode.ERROR, message)


def index_to_drop(target: Target) -> tuple[TableSchema, IndexSchema] | None:
    """The index of a DROP INDEX and its table; hidden ones are not there for it."""
    _require_schema(target)
    found = find_index(target.catalog, target.schema, target.name)
    if found is None and not target.tolerant:
        raise target.refusal(StatusCode.ERROR, f"no such index: {target.name}")
    return found


def assertion_to_drop(target: Target) -> AssertionSchema | None:
    """The assertion of a DROP ASSERTION."""
    _require_schema(target)
    holder = target.catalog.schema(target.schema)
    found = holder.assertions.get(fold(target.name)) if holder else None
    if found is None and not target.tolerant:
        raise target.refusal(
            StatusCode.NOTFOUND, f"Assertion {target.name} not found in schema {target.schema}"
        )
    return found


def _relation_to_drop(target: Target) -> Relation | None:
    _require_schema(target)
    return find_in_schema(target.catalog, target.schema, target.name)


def _require_schema(target: Target) -> None:
    """The schema must be there, but for IF EXISTS."""
    if not target.tolerant:
        require_schema(target.catalog, target.schema, target.position)
