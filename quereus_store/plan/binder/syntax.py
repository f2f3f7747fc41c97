"""Questions about syntax trees that the binder asks before it binds anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from quereus_store.functions.registry import AggregateFunction, FunctionRegistry
from quereus_store.schema.objects import fold
from quereus_store.sql import nodes, traversal

_OPAQUE = (nodes.Query, nodes.Insert, nodes.Update, nodes.Delete)


class _FieldNames(dict[type, tuple[str, ...]]):
    """The names of a node class's fields that count, looked up once a class."""

    def __missing__(self, node_type: type) -> tuple[str, ...]:
        names = tuple(field.name for field in fields(node_type) if field.compare)
        self[node_type] = names
        return names


_FIELDS = _FieldNames()


def children(node: nodes.Node) -> Iterator[nodes.Node]:
    """The nodes directly in a node, subqueries left out."""
    return (child for child in traversal.children(node) if not isinstance(child, _OPAQUE))


def contains_aggregate(node: nodes.Node, registry: FunctionRegistry) -> bool:
    """Whether an aggregate is called in a node, subqueries and the window functions themselves left out."""
    if isinstance(node, nodes.FunctionCall):
        if isinstance(registry.find(node.name, len(node.arguments)), AggregateFunction):
            return True
    elif isinstance(node, nodes.WindowCall):
        return any(
            contains_aggregate(part, registry) for part in (*children(node.call), *children(node.window))
        )
    return any(contains_aggregate(child, registry) for child in children(node))


def mentions_columns(node: nodes.Node) -> bool:
    """Whether a column is named in a node, subqueries left out."""
    return isinstance(node, nodes.ColumnReference) or any(map(mentions_columns, children(node)))


def ordinal_of(node: nodes.Expression) -> int | None:
    """The position that an ORDER BY or GROUP BY term means: a whole number literal, signed or not."""
    sign = 1
    while isinstance(node, nodes.UnaryOperation) and node.operator in (
        nodes.UnaryOperator.MINUS,
        nodes.UnaryOperator.PLUS,
    ):
        sign = -sign if node.operator is nodes.UnaryOperator.MINUS else sign
        node = node.operand
    if isinstance(node, nodes.Literal) and node.kind in (nodes.LiteralKind.INTEGER, nodes.LiteralKind.REAL):
        value = node.value
        if isinstance(value, int | float) and value == value // 1:
            return sign * int(value)
    return None


def _same_spelling(left: nodes.ColumnReference, right: nodes.ColumnReference) -> bool:
    """Whether names that mean nothing out here, such as a subquery's own, are written alike."""
    return [fold(part or "") for part in (left.schema, left.table, left.column)] == [
        fold(part or "") for part in (right.schema, right.table, right.column)
    ]


Identity = Callable[[nodes.ColumnReference], Any]


def same_expression(left: Any, right: Any, identify_left: Identity, identify_right: Identity) -> bool:
    """Whether two expressions are written alike: names in any case, columns by what each side's mean."""
    if type(left) is not type(right):
        return False
    if isinstance(left, nodes.ColumnReference):
        meaning, other = identify_left(left), identify_right(right)
        return meaning == other if meaning is not None else other is None and _same_spelling(left, right)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(
            same_expression(a, b, identify_left, identify_right) for a, b in zip(left, right, strict=True)
        )
    if not isinstance(left, nodes.Node):
        return bool(left == right)
    names = _FIELDS[type(left)]
    if isinstance(left, nodes.FunctionCall):
        if fold(left.name) != fold(right.name):
            return False
        names = tuple(name for name in names if name != "name")
    return all(
        same_expression(getattr(left, name), getattr(right, name), identify_left, identify_right)
        for name in names
    )


def mentions_table(node: nodes.Node, name: str) -> bool:
    """Whether an unqualified table name stands anywhere in a tree, subqueries included."""
    folded = fold(name)
    return any(
        isinstance(part, nodes.TableReference) and part.schema is None and fold(part.name) == folded
        for part in traversal.walk(node)
    )
