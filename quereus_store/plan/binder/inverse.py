"""WITH INVERSE: checked wherever it stands, although only writing through a view uses it (queries, 14)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.functions.registry import FunctionRegistry
from quereus_store.plan.binder.scopes import FromScope
from quereus_store.plan.binder.select_list import Item
from quereus_store.plan.binder.syntax import children, contains_aggregate
from quereus_store.schema.objects import fold
from quereus_store.sql import nodes


def check_inverses(
    node: nodes.Select, items: Sequence[Item], scope: FromScope, registry: FunctionRegistry
) -> None:
    """Check every WITH INVERSE of a select list; raises ERROR."""
    outputs = {fold(item.name) for item in items}
    for item in node.items:
        if not isinstance(item, nodes.ResultColumn) or not item.inverse:
            continue
        label = next((known.name for known in items if known.node is item.expression), item.alias or "")
        position = item.position or item.expression.position
        if contains_aggregate(item.expression, registry):
            raise _refusal(
                label,
                "WITH INVERSE cannot apply to an aggregate result column (aggregate views are read-only)",
                position,
            )
        for assignment in item.inverse:
            _check(label, assignment, scope, outputs, position)


def _check(
    label: str,
    assignment: nodes.Assignment,
    scope: FromScope,
    outputs: set[str],
    position: SourcePosition | None,
) -> None:
    target = fold(assignment.column)
    if not any(target in source.by_name for source in scope.sources):
        raise _refusal(
            label,
            f"WITH INVERSE target '{assignment.column}' does not resolve to a column of the FROM sources",
            assignment.position or position,
        )
    for name in _column_references(assignment.value):
        if name.table is None and fold(name.column) in outputs:
            raise _refusal(
                label,
                f"WITH INVERSE expression references '{name.column}' without the NEW qualifier; an inverse"
                " expression is over the written view row only — reference output columns as new.<column>",
                name.position or position,
            )
        if name.table is None or fold(name.table) != "new" or fold(name.column) not in outputs:
            written = name.column if name.table is None else f"{name.table}.{name.column}"
            raise _refusal(
                label,
                f"WITH INVERSE reference '{written}' does not resolve to an output column of this select",
                name.position or position,
            )


def _column_references(node: nodes.Node) -> Iterator[nodes.ColumnReference]:
    if isinstance(node, nodes.ColumnReference):
        yield node
    for child in children(node):
        yield from _column_references(child)


def _refusal(label: str, reason: str, position: SourcePosition | None) -> Error:
    return sql_error(StatusCode.ERROR, f"result column '{label}': {reason}", position)
