"""Fragments of the statements that a migration consists of."""

from __future__ import annotations

from quereus_store.schema.manager import MAIN
from quereus_store.schema.objects import Tags, fold
from quereus_store.sql import nodes, quote_identifier, render_expression

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
