"""Declared schemas: what DECLARE SCHEMA says, the rules of its items, its hash.

A declaration is the wanted end state of one schema, in any order.  It is kept as its syntax
tree; :mod:`quereus_store.schema.differ` compares it with a catalog.  The hash names a version of the
declaration: tags and seed data do not count.

Chapters: seed schema, Declarative Schema; alter-and-ddl-lifecycle, section 15.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.schema.objects import fold
from quereus_store.schema.tags import TagSite, check_table_tags, check_tags
from quereus_store.sql import nodes, render
from quereus_store.sql.traversal import transform

Item = TypeVar("Item", bound=nodes.Node)

Named = nodes.CreateTable | nodes.CreateView | nodes.CreateMaterializedView
_RELATIONS: Mapping[type[Named], str] = MappingProxyType(
    {
        nodes.CreateTable: "table",
        nodes.CreateView: "view",
        nodes.CreateMaterializedView: "materialized view",
    }
)


def items_of(declaration: nodes.DeclareSchema, kind: type[Item]) -> Iterator[Item]:
    """The items of one kind, in their order."""
    return (item for item in declaration.items if isinstance(item, kind))


# --- rules ------------------------------------------------------------------------------------------------


def check_seeds(declaration: nodes.DeclareSchema) -> None:
    """One block of seed rows per table (ERROR); judged when the declaration is made."""
    seen = set()
    for seed in items_of(declaration, nodes.SeedData):
        if fold(seed.table) in seen:
            raise sql_error(
                StatusCode.ERROR,
                f"Seed data for table '{seed.table}' is declared more than once in schema"
                f" '{declaration.name}'",
                seed.position,
            )
        seen.add(fold(seed.table))


def check_declaration(declaration: nodes.DeclareSchema) -> None:
    """Reserved tags, then names that stand twice (ERROR); judged when the declaration is compared."""
    for item in declaration.items:
        match item:
            case nodes.CreateTable():
                check_table_tags(item, logical=declaration.logical)
            case nodes.CreateView() | nodes.CreateMaterializedView():
                check_tags(item.tags, TagSite.VIEW, item.position)
            case nodes.CreateIndex():
                check_tags(item.tags, TagSite.INDEX, item.position)
    _check_relation_names(declaration)
    _check_once("Index", items_of(declaration, nodes.CreateIndex), declaration)
    _check_once("Assertion", items_of(declaration, nodes.CreateAssertion), declaration)


def _check_relation_names(declaration: nodes.DeclareSchema) -> None:
    """Tables, views and materialized views share their names."""
    kinds: dict[str, str] = {}
    for item in declaration.items:
        if not isinstance(item, Named):
            continue
        name, kind = item.name.name, _RELATIONS[type(item)]
        other = kinds.get(fold(name))
        if other == kind:
            raise _twice(kind.capitalize(), item.name, declaration)
        if other is not None:
            raise sql_error(
                StatusCode.ERROR,
                f"'{name}' is declared as both a {other} and a {kind} in schema '{declaration.name}'",
                item.position,
            )
        kinds[fold(name)] = kind


def _check_once(
    kind: str,
    items: Iterator[nodes.CreateIndex] | Iterator[nodes.CreateAssertion],
    declaration: nodes.DeclareSchema,
) -> None:
    seen = set()
    for item in items:
        if fold(item.name.name) in seen:
            raise _twice(kind, item.name, declaration)
        seen.add(fold(item.name.name))


def _twice(kind: str, name: nodes.ObjectName, declaration: nodes.DeclareSchema) -> Error:
    return sql_error(
        StatusCode.ERROR,
        f"{kind} '{name.name}' is declared more than once in schema '{declaration.name}'",
        name.position,
    )


# --- hash -------------------------------------------------------------------------------------------------


def declaration_hash(declaration: nodes.DeclareSchema) -> str:
    """Eight characters that change with every item but seeds, and not with tags."""
    lines = [
        item.text if isinstance(item, nodes.IgnoredItem) else render(without_tags(item))
        for item in declaration.items
        if not isinstance(item, nodes.SeedData)
    ]
    return text_hash(("logical\n" if declaration.logical else "") + "\n".join(lines))


def without_tags(node: Item) -> Item:
    """A tree without any tags."""

    def untagged(part: nodes.Node) -> nodes.Node:
        return replace(part, tags=()) if isinstance(part, _Tagged) and part.tags else part

    return transform(node, untagged)  # type: ignore[return-value]


_Tagged = (
    nodes.CreateTable
    | nodes.ColumnDefinition
    | nodes.Constraint
    | nodes.CreateIndex
    | nodes.CreateView
    | nodes.CreateMaterializedView
)


def text_hash(text: str) -> str:
    """FNV-1a over UTF-16 code units, whose low half is multiplied as a signed number."""
    high, low = 0xCBF29CE4, 0x84222325
    raw = text.encode("utf-16-le", "surrogatepass")
    for first, second in zip(raw[0::2], raw[1::2], strict=True):
        for byte in (first, second) if second else (first,):
            low ^= byte
            signed = low - (1 << 32) if low >> 31 else low
            full = signed * 0x1B3
            high = (high * 0x1B3 + signed * 0x100 + (full >> 32)) & 0xFFFFFFFF
            low = full & 0xFFFFFFFF
    digest = high.to_bytes(4, "big") + low.to_bytes(4, "big")
    return base64.urlsafe_b64encode(digest)[:8].decode()
