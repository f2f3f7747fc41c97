"""Syntax tree to SQL.

::

    render(statement)                   # reads back as an equal tree
    render_expression(check)            # the same for an expression, for persisted DDL
    canonical_text(check)               # for messages: queries, section 4
    column_name_text(item.expression)   # the name of an unaliased result column

Each rule is a small function; the table from node type to rule is put together here
from one table a family.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from quereus_store.sql.nodes import ColumnReference, Expression, Node
from quereus_store.sql.renderer.base import Renderer, Rule, quote_identifier, quote_text
from quereus_store.sql.renderer.definitions import DEFINITION_RULES, default_text
from quereus_store.sql.renderer.expressions import EXPRESSION_RULES
from quereus_store.sql.renderer.queries import QUERY_RULES
from quereus_store.sql.renderer.statements import STATEMENT_RULES

__all__ = [
    "canonical_text",
    "column_name_text",
    "quote_identifier",
    "quote_text",
    "render",
    "render_default",
    "render_expression",
    "returned_name_text",
    "unique_names",
]

_RULES: Mapping[type[Any], Rule] = MappingProxyType(
    {**EXPRESSION_RULES, **QUERY_RULES, **DEFINITION_RULES, **STATEMENT_RULES}
)
_EXACT = Renderer(_RULES, exact=True)
_CANONICAL = Renderer(_RULES, exact=False)


def render(node: Node) -> str:
    """Any node as SQL that parses back to an equal tree."""
    return _EXACT.text(node)


def render_expression(expression: Expression) -> str:
    """An expression as SQL that parses back to an equal tree."""
    return _EXACT.text(expression)


def render_default(expression: Expression) -> str:
    """What stands after DEFAULT in a column's definition: it parses back to an equal tree there."""
    return default_text(_EXACT, expression)


def canonical_text(expression: Expression) -> str:
    """An expression as column names and messages show it (queries, section 4)."""
    return _CANONICAL.text(expression)


def column_name_text(expression: Expression) -> str:
    """The name of an unaliased result column: a column's own part as written, else its canonical text."""
    if isinstance(expression, ColumnReference):
        return expression.column
    return _CANONICAL.text(expression)


def returned_name_text(expression: Expression) -> str:
    """The name of a column of RETURNING without alias: a column as it is written, but without quotes."""
    if isinstance(expression, ColumnReference):
        parts = (expression.schema, expression.table, expression.column)
        return ".".join([part for part in parts if part is not None])
    return _CANONICAL.text(expression)


def unique_names(names: Iterable[str]) -> list[str]:
    """Names with repeats told apart: ``id``, ``id:1``, ``id:2``; spelling counts."""
    seen: dict[str, int] = {}
    unique: list[str] = []
    for name in names:
        count = seen.get(name, 0)
        seen[name] = count + 1
        unique.append(f"{name}:{count}" if count else name)
    return unique
