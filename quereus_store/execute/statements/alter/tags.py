"""SET, ADD and DROP TAGS on tables, columns, constraints, views and indexes (section 13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.statements.alter.alteration import Alteration
from quereus_store.execute.statements.alter.attributes import with_column
from quereus_store.execute.statements.alter.constraints import constraint_named, with_constraint
from quereus_store.schema.manager import find_in_schema, find_index, put_table, put_view
from quereus_store.schema.objects import Catalog, TableSchema, ViewSchema
from quereus_store.schema.tags import TagSite, changed_tags, check_tags
from quereus_store.sql import nodes

_SITES: Mapping[nodes.ObjectKind, TagSite] = MappingProxyType(
    {
        nodes.ObjectKind.VIEW: TagSite.VIEW,
        nodes.ObjectKind.MATERIALIZED_VIEW: TagSite.VIEW,
        nodes.ObjectKind.INDEX: TagSite.INDEX,
    }
)


def change_table_tags(alteration: Alteration, action: nodes.ChangeTags) -> None:
    """Change the tags of a table, of one of its columns or of a named constraint."""
    table, change = alteration.table, action.change
    if action.column is not None:
        check_tags(change.tags, TagSite.COLUMN, alteration.position)
        position, column = alteration.column(action.column, StatusCode.NOTFOUND)
        tagged = replace(column, tags=changed_tags(column.tags, change))
        alteration.publish(with_column(table, position, tagged))
    elif action.constraint is not None:
        check_tags(change.tags, TagSite.CONSTRAINT, alteration.position)
        constraint = constraint_named(alteration, action.constraint)
        changed = replace(constraint, tags=changed_tags(constraint.tags, change))
        alteration.publish(with_constraint(table, constraint, changed))
    else:
        check_tags(change.tags, TagSite.TABLE, alteration.position)
        alteration.publish(replace(table, tags=changed_tags(table.tags, change)))


# --- views and indexes ------------------------------------------------------------------------------------


def with_object_tags(catalog: Catalog, statement: nodes.AlterObjectTags, schema: str) -> Catalog:
    """The catalog after ALTER VIEW, MATERIALIZED VIEW or INDEX; raises NOTFOUND for an absent object."""
    check_tags(statement.change.tags, _SITES[statement.kind], statement.position)
    return _CHANGES[statement.kind](catalog, statement, schema)


def _view(catalog: Catalog, statement: nodes.AlterObjectTags, schema: str) -> Catalog:
    found = find_in_schema(catalog, schema, statement.name.name)
    if not isinstance(found, ViewSchema):
        raise _missing(statement, schema)
    return put_view(catalog, replace(found, tags=changed_tags(found.tags, statement.change)))


def _materialized_view(catalog: Catalog, statement: nodes.AlterObjectTags, schema: str) -> Catalog:
    found = find_in_schema(catalog, schema, statement.name.name)
    if not isinstance(found, TableSchema) or found.derivation is None:
        raise _missing(statement, schema)
    return put_table(catalog, replace(found, tags=changed_tags(found.tags, statement.change)))


def _index(catalog: Catalog, statement: nodes.AlterObjectTags, schema: str) -> Catalog:
    found = find_index(catalog, schema, statement.name.name, exposed=True)
    if found is None:
        raise _missing(statement, schema)
    table, index = found
    tagged = replace(index, tags=changed_tags(index.tags, statement.change))
    indexes = tuple(tagged if other is index else other for other in table.indexes)
    return put_table(catalog, replace(table, indexes=indexes))


def _missing(statement: nodes.AlterObjectTags, schema: str) -> Error:
    kind = statement.kind.value.capitalize()
    return sql_error(
        StatusCode.NOTFOUND,
        f"{kind} '{statement.name.name}' not found in schema '{schema}'",
        statement.position,
    )


_CHANGES: Mapping[nodes.ObjectKind, Callable[[Catalog, nodes.AlterObjectTags, str], Catalog]] = (
    MappingProxyType(
        {
            nodes.ObjectKind.VIEW: _view,
            nodes.ObjectKind.MATERIALIZED_VIEW: _materialized_view,
            nodes.ObjectKind.INDEX: _index,
        }
    )
)
