"""The body of a logical table: what its lens says, and the default mapper for the rest.

Without an override (and without a decomposition) a logical table is the basis table of its name, column by
column.  An override covers the columns that it names; all others are filled in by name from its sources.

Chapter: view-updates-and-lenses, section 13.
"""

from __future__ import annotations

from dataclasses import replace

from quereus_store.errors import StatusCode, sql_error
from quereus_store.plan.binder.context import BindContext
from quereus_store.plan.binder.decompositions import decomposed_body, decomposition_of
from quereus_store.plan.lenses.overrides import (
    OverrideSource,
    column_of,
    override_error,
    sources_of,
    terms_of,
    within_basis,
)
from quereus_store.schema.manager import find_in_schema
from quereus_store.schema.objects import LogicalTable, TableSchema, ViewSchema, fold
from quereus_store.sql import nodes


def logical_view(
    table: TableSchema, query: nodes.Query, overridden: tuple[str, ...] = (), decomposition: str | None = None
) -> ViewSchema:
    """The view that a logical table becomes; its columns keep the logical names whatever the body's are."""
    names = tuple([column.name for column in table.columns])
    logical = LogicalTable(table, overridden, decomposition)
    return ViewSchema(table.schema, table.name, query, names, table.tags, logical)


def default_view(context: BindContext, table: TableSchema, basis: str) -> ViewSchema:
    """A logical table over its decomposition, else over the basis table of its name.

    Raises ERROR where that or a column is missing.
    """
    advertised = decomposition_of(context.catalog, basis, table)
    if advertised is not None:
        body = decomposed_body(advertised, table, basis)
        return logical_view(table, body, decomposition=advertised.id)
    found = find_in_schema(context.catalog, basis, table.name)
    if not isinstance(found, TableSchema):
        raise sql_error(
            StatusCode.ERROR, f"lens: logical table '{table.qualified_name}' has no basis backing"
        )
    for column in table.columns:
        if found.column_index(column.name) is None:
            raise sql_error(
                StatusCode.ERROR,
                f"lens: logical column '{table.qualified_name}.{column.name}' has no basis backing",
            )
    items = tuple([nodes.ResultColumn(nodes.ColumnReference(column.name)) for column in table.columns])
    select = nodes.Select(items, nodes.TableReference(found.name, basis))
    return logical_view(table, nodes.Query(select))


def overridden_view(
    context: BindContext, table: TableSchema, override: nodes.LensOverride, basis: str
) -> ViewSchema:
    """A logical table over its override, whose gaps are filled in by name."""
    logical = table.qualified_name
    query = within_basis(context, override.query, basis, logical)
    select = query.body
    assert isinstance(select, nodes.Select)
    sources = sources_of(context, query, select)
    terms = terms_of(select, sources, logical)
    items: list[nodes.ResultColumn] = []
    overridden: list[str] = []
    uncovered: list[str] = []
    for column in table.columns:
        term = terms.get(fold(column.name))
        if term is not None:
            overridden.append(fold(column.name))
            items.append(_named(term, column.name))
            continue
        filled = _filled(sources, column.name)
        if filled is None:
            uncovered.append(column.name)
        else:
            items.append(_named(nodes.ResultColumn(filled), column.name))
    if uncovered:
        raise override_error(logical, _gap(sources, uncovered[0]), override)
    body = replace(query, body=replace(select, items=tuple(items)))
    return logical_view(table, body, tuple(overridden))


def _named(term: nodes.ResultColumn, name: str) -> nodes.ResultColumn:
    """A term whose output is called ``name``."""
    own = term.alias
    if own is None and isinstance(term.expression, nodes.ColumnReference):
        own = term.expression.column
    return term if own == name else replace(term, alias=name)


def _filled(sources: list[OverrideSource], name: str) -> nodes.ColumnReference | None:
    for source in sources:
        found = source.has(name) if source.relation is not None else None
        if found is not None:
            return column_of(sources, source, found)
    return None


def _gap(sources: list[OverrideSource], name: str) -> str:
    if len(sources) == 1 and sources[0].relation is not None:
        return (
            f"leaves column '{name}' uncovered and basis source(s) {sources[0].relation} have no column"
            f" '{name}' to gap-fill it from — cover it in the override"
        )
    return (
        f"covers only some columns; uncovered column '{name}' is not reachable from the override's FROM"
        " — cover it in the override"
    )
