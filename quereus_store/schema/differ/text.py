"""Fragments of the statements that a migration consists of, and identifiers in one case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import TypeVar

from quereus_store.schema.manager import MAIN
from quereus_store.schema.objects import Tags, fold
from quereus_store.sql import nodes, quote_identifier, render_expression
from quereus_store.sql.traversal import transform, walk

Tree = TypeVar("Tree", bound=nodes.Node)

identifier = quote_identifier


def qualified(schema: str, name: str) -> str:
    """A name as a statement on a schema's object needs it: qualified outside ``main``."""
    return identifier(name) if fold(schema) == MAIN else f"{identifier(schema)}.{identifier(name)}"


def object_name(schema: str, name: str) -> nodes.ObjectName:
    """The same as a node."""
    return nodes.ObjectName(name, None if fold(schema) == MAIN else schema)


def tag_list(tags: Tags) -> str:
    """``(k = v, …)``."""
    pairs = (
        f"{identifier(key)} = {render_expression(nodes.Literal.of(value))}" for key, value in tags.items()
    )
    return f"({', '.join(pairs)})"


def names_in(node: nodes.Node) -> frozenset[str]:
    """Every name or other text that stands in a tree, folded."""
    return frozenset(map(fold, _texts_in(node)))


def _texts_in(node: nodes.Node) -> Iterator[str]:
    for each in walk(node):
        for field in fields(each):
            value = getattr(each, field.name)
            if isinstance(value, str):
                yield value
            elif isinstance(value, tuple):
                yield from (part for part in value if isinstance(part, str))


def folded(node: Tree) -> Tree:
    """A tree with its identifiers in lower case: two spellings of one name are no difference."""
    return transform(node, _fold_names)  # type: ignore[return-value]


def _fold_names(node: nodes.Node) -> nodes.Node:
    match node:
        case nodes.ColumnReference():
            table = None if node.table is None else fold(node.table)
            return replace(node, column=fold(node.column), table=table)
        case nodes.UniqueConstraint():
            return replace(node, columns=tuple(map(fold, node.columns)))
        case nodes.ForeignKeyConstraint():
            return replace(node, columns=tuple(map(fold, node.columns)))
        case nodes.ForeignKeyReference():
            return replace(node, columns=tuple(map(fold, node.columns)))
        case nodes.ObjectName():
            return replace(node, name=fold(node.name))
    return node
