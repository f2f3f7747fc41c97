"""The rendering machine: a table from node type to rule, and two ways to set parentheses.

*Exact* text reads back as the same tree.  *Canonical* text is what names an
unaliased column and shows a CHECK in a message (queries, section 4): it sets
parentheses by the rule given there, which drops some that reading it back would need.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from quereus_store.sql.keywords import RESERVED
from quereus_store.sql.nodes import Node

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

Rule = Callable[["Renderer", Any], str]


def quote_identifier(name: str) -> str:
    """A name as it must stand in SQL: quoted only if reserved or not a bare identifier."""
    if _BARE.match(name) and name.lower() not in RESERVED:
        return name
    return quote_name(name)


def quote_name(name: str) -> str:
    """A name in quotes."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A text as a string literal."""
    return "'" + text.replace("'", "''") + "'"


class Renderer:
    """Applies the rules; ``exact`` selects the way parentheses are set."""

    __slots__ = ("exact", "rules")

    def __init__(self, rules: Mapping[type[Any], Rule], *, exact: bool) -> None:
        self.rules = rules
        self.exact = exact

    def text(self, node: Node) -> str:
        """The text of a node."""
        return self.rules[type(node)](self, node)

    def optional(self, prefix: str, node: Node | None) -> str:
        """The text of a node after ``prefix``; nothing if there is no node."""
        return "" if node is None else prefix + self.text(node)

    def list(self, nodes: Iterable[Node]) -> str:
        """The texts of nodes, separated by commas."""
        return ", ".join(map(self.text, nodes))

    def parenthesised(self, nodes: Iterable[Node]) -> str:
        """The texts of nodes, separated by commas, in parentheses."""
        return f"({self.list(nodes)})"


def names(identifiers: Iterable[str]) -> str:
    """Names separated by commas."""
    return ", ".join(map(quote_identifier, identifiers))


def name_list(identifiers: Iterable[str]) -> str:
    """Names in parentheses."""
    return f"({names(identifiers)})"


def optional_columns(identifiers: tuple[str, ...]) -> str:
    """A column list after a blank; nothing if there is none."""
    return f" {name_list(identifiers)}" if identifiers else ""


def qualified(*parts: str | None) -> str:
    """The parts of a dotted name that are there."""
    return ".".join(quote_identifier(part) for part in parts if part is not None)
