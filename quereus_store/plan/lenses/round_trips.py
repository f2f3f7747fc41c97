"""Authored inverses over finite domains (view-updates-and-lenses, section 15).

Where a CHECK ``in (…)`` lists the values that a column may have, an authored inverse can be tried
on all of them.  PutGet: a written value is read back.  Bijective: besides, every value that the basis
may hold (again by a CHECK) is what its image is written back as.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from quereus_store.plan.binder.logical_lineage import LogicalColumn
from quereus_store.schema.expressions import literal_of
from quereus_store.schema.objects import TableSchema, fold
from quereus_store.sql import nodes
from quereus_store.sql.traversal import transform

LARGEST_DOMAIN = 64

Evaluate = Callable[[nodes.Expression], Any]


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """What trying out an authored inverse shows: a value that comes back as another, or that none is lost."""

    violation: tuple[Any, Any] | None
    bijective: bool


def domain_of(table: TableSchema, column: str) -> tuple[nodes.Literal, ...] | None:
    """The values that a CHECK ``column in (…)`` allows, if there are at most 64."""
    for check in table.checks:
        found = _listed(check.expression, column)
        if found is not None and len(found) <= LARGEST_DOMAIN:
            return found
    return None


def _listed(expression: nodes.Expression, column: str) -> tuple[nodes.Literal, ...] | None:
    if isinstance(expression, nodes.BinaryOperation) and expression.operator is nodes.BinaryOperator.AND:
        left = _listed(expression.left, column)
        return left if left is not None else _listed(expression.right, column)
    if not isinstance(expression, nodes.InList) or not isinstance(expression.operand, nodes.ColumnReference):
        return None
    if fold(expression.operand.column) != fold(column):
        return None
    values = [literal_of(item) for item in expression.items]
    literals = tuple([value for value in values if value is not None])
    return literals if len(literals) == len(values) else None


def round_trip(
    table: TableSchema, column: str, origin: LogicalColumn, basis: TableSchema, evaluate: Evaluate
) -> RoundTrip:
    """Try an authored column's inverse on the domains that are declared on both sides."""
    domain = domain_of(table, column)
    if domain is None or origin.expression is None:
        return RoundTrip(None, False)
    for value in domain:
        shown = evaluate(_forward(origin.expression, _image(origin, column, value)))
        if shown != value.value:
            return RoundTrip((value.value, shown), False)
    if len(origin.puts) != 1:
        return RoundTrip(None, False)
    (put,) = origin.puts
    held = domain_of(basis, put.column)
    if held is None:
        return RoundTrip(None, False)
    for value in held:
        shown = nodes.Literal.of(evaluate(_forward(origin.expression, {fold(put.column): value})))
        if evaluate(_with_new(put.value, column, shown)) != value.value:
            return RoundTrip(None, False)
    return RoundTrip(None, True)


def _image(origin: LogicalColumn, column: str, value: nodes.Literal) -> dict[str, nodes.Expression]:
    """The basis columns that writing a value assigns."""
    return {fold(put.column): _with_new(put.value, column, value) for put in origin.puts}


def _with_new(expression: nodes.Expression, column: str, value: nodes.Expression) -> nodes.Expression:
    def change(node: nodes.Node) -> nodes.Node:
        if isinstance(node, nodes.ColumnReference) and node.table is not None and fold(node.table) == "new":
            return value if fold(node.column) == fold(column) else nodes.Literal.of(None)
        return node

    changed = transform(expression, change)
    assert isinstance(changed, nodes.Expression)
    return changed


def _forward(expression: nodes.Expression, row: Mapping[str, nodes.Expression]) -> nodes.Expression:
    def change(node: nodes.Node) -> nodes.Node:
        if isinstance(node, nodes.ColumnReference):
            return row.get(fold(node.column), nodes.Literal.of(None))
        return node

    changed = transform(expression, change)
    assert isinstance(changed, nodes.Expression)
    return changed
