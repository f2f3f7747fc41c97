"""Walking over and rebuilding trees, for any node.

Both functions keep their own stack, so that a chain of a thousand ORs is no
problem for them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from quereus_store.sql.nodes import CommonTableExpression, DataModification, Node, Parameter


@cache
def _names_of(node_type: Any) -> tuple[str, ...]:
    """The fields that make the tree: those that do not count in comparisons are beside it."""
    return tuple(field.name for field in dataclasses.fields(node_type) if field.compare)


def _field_names(node: Node) -> tuple[str, ...]:
    node_type: Any = type(node)
    return _names_of(node_type)


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below a node, in the order of its fields."""
    for name in _field_names(node):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from _nodes_within(value)


def _nodes_within(values: tuple[Any, ...]) -> Iterator[Node]:
    for value in values:
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from _nodes_within(value)


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes below it, each before its children."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(tuple(children(current))))


def writes_in(node: Node) -> Iterator[Node]:
    """The data-modifying statements in a node, itself included, that are not members of a WITH."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, DataModification):
            yield current
        below = children(current)
        if isinstance(current, CommonTableExpression) and isinstance(current.query, DataModification):
            below = children(current.query)
        stack.extend(reversed(tuple(below)))


def transform(root: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with ``change`` applied to every node, children first.

    ``change`` gets each node with its children already changed and returns it or what
    stands in its place.  Parts in which nothing changes stay the same objects.
    """
    changed: dict[int, Node] = {}
    for node in reversed(tuple(walk(root))):
        fields: dict[str, Any] = {}
        for name in _field_names(node):
            value = getattr(node, name)
            replacement = _changed_value(value, changed)
            if replacement is not value:
                fields[name] = replacement
        changed[id(node)] = change(dataclasses.replace(node, **fields) if fields else node)
    return changed[id(root)]


def _changed_value(value: Any, changed: dict[int, Node]) -> Any:
    if isinstance(value, Node):
        return changed[id(value)]
    if isinstance(value, tuple):
        replacement = tuple(_changed_value(item, changed) for item in value)
        if any(new is not old for new, old in zip(replacement, value, strict=True)):
            return replacement
    return value


def parameters(node: Node) -> tuple[Parameter, ...]:
    """The bind parameters of a tree, in the order of its fields."""
    return tuple(found for found in walk(node) if isinstance(found, Parameter))
