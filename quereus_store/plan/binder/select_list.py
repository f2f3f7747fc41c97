"""The select list: expanding stars, naming outputs, projecting (queries, section 4)."""

from __future__ import annotations

from collections.abc import Sequence

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.scopes import FromScope
from quereus_store.plan.expressions import BoundExpression, Column, ColumnRef, reference
from quereus_store.plan.nodes import PlanNode, Project
from quereus_store.records import record
from quereus_store.sql import nodes
from quereus_store.sql.renderer import column_name_text, unique_names


@record(frozen=True, slots=True)
class Item:
    """One output of a select list: an expression as written, or a column that a star stands for."""

    name: str
    node: nodes.Expression | None
    column: Column | None
    alias: str | None
    position: SourcePosition | None


def expand_items(items: Sequence[nodes.ResultColumn | nodes.ResultStar], scope: FromScope) -> list[Item]:
    """The outputs in order, each under its final name."""
    expanded: list[Item] = []
    for item in items:
        if isinstance(item, nodes.ResultStar):
            expanded += [
                Item(column.name, None, column, None, item.position) for column in _star(item, scope)
            ]
        else:
            node = item.expression
            expanded.append(
                Item(
                    item.alias or column_name_text(node),
                    node,
                    None,
                    item.alias,
                    item.position or node.position,
                )
            )
    names = unique_names([item.name for item in expanded])
    return [
        item if item.name == name else Item(name, item.node, item.column, item.alias, item.position)
        for item, name in zip(expanded, names, strict=True)
    ]


def _star(item: nodes.ResultStar, scope: FromScope) -> tuple[Column, ...]:
    if item.table is None:
        return scope.columns
    source = scope.source(item.table)
    if source is None:
        raise sql_error(
            StatusCode.ERROR,
            f"Table '{item.table}' not found in FROM clause for qualified SELECT *",
            item.position,
        )
    return source.columns


def project(
    environment: Environment, source: PlanNode, outputs: Sequence[tuple[str, BoundExpression]]
) -> PlanNode:
    """A projection; a column of the input that is passed on keeps its number.

    The input itself where nothing would change.
    """
    inputs = {column.id for column in source.columns}
    columns: list[Column] = []
    number = environment.context.number
    for name, expression in outputs:
        if type(expression) is ColumnRef and expression.id in inputs:
            inputs.discard(expression.id)
            own = expression.id
        else:
            own = number()
        columns.append(Column(own, name, expression.type, expression.nullable, expression.collation))
    made = tuple(columns)
    if made == source.columns:
        return source
    return Project(made, source, tuple([expression for _, expression in outputs]))


def project_columns(source: PlanNode, columns: Sequence[Column]) -> PlanNode:
    """The input reduced to some of its columns."""
    kept = tuple(columns)
    return source if kept == source.columns else Project(kept, source, tuple(map(reference, kept)))
