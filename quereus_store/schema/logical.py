"""Logical schemas as the statements that declare and deploy them again.

What is deployed says everything: each table's declaration, and its body as an override that covers all
columns (a table that its basis advertises in pieces needs none).

Chapter: view-updates-and-lenses, section 12.
"""

from __future__ import annotations

from dataclasses import replace

from quereus_store.schema.ddl import table_ddl
from quereus_store.schema.objects import Schema, ViewSchema
from quereus_store.sql import nodes, parse_statement, render


def logical_statements(schema: Schema) -> list[str]:
    """DECLARE LOGICAL SCHEMA, DECLARE LENS and APPLY SCHEMA for a deployed logical schema."""
    assert schema.lens is not None
    views = [view for view in schema.views.values() if view.logical is not None]
    declaration = nodes.DeclareSchema(schema.name, tuple(map(_declared, views)), logical=True)
    overrides = tuple(
        [
            nodes.LensOverride(view.name, _with_names(view))
            for view in views
            if view.logical is not None and view.logical.decomposition is None
        ]
    )
    lens = nodes.DeclareLens(schema.name, schema.lens.basis, overrides)
    return [render(declaration), render(lens), render(nodes.ApplySchema(schema.name))]


def _declared(view: ViewSchema) -> nodes.CreateTable:
    assert view.logical is not None
    node = parse_statement(table_ddl(view.logical.table))
    assert isinstance(node, nodes.CreateTable)
    return replace(node, name=nodes.ObjectName(node.name.name), module=None)


def _with_names(view: ViewSchema) -> nodes.Query:
    """The body, whose terms are called what the table's columns are called."""
    body = view.query.body
    assert isinstance(body, nodes.Select)
    items = tuple(
        [
            replace(item, alias=name) if isinstance(item, nodes.ResultColumn) else item
            for name, item in zip(view.columns or (), body.items, strict=True)
        ]
    )
    return replace(view.query, body=replace(body, items=items))
