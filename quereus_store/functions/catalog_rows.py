"""How introspection words the catalog: display SQL, tags, function descriptions, references.

The SQL that ``schema()`` shows is for reading: tables without constraints, indexes without UNIQUE, WHERE and
tags.  The text that recreates objects is ``schema.ddl``'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from quereus_store.functions.registry import (
    AggregateFunction,
    Function,
    FunctionRegistry,
    ScalarFunction,
)
from quereus_store.schema.ddl import table_ddl, view_ddl
from quereus_store.schema.manager import MAIN, find_relation, home_path, parent_key, parent_of
from quereus_store.schema.objects import (
    Catalog,
    ForeignKey,
    IndexSchema,
    TableSchema,
    Tags,
    ViewSchema,
    fold,
)
from quereus_store.sql import nodes
from quereus_store.sql.renderer import render_expression
from quereus_store.sql.renderer.base import quote_identifier
from quereus_store.sql.traversal import walk
from quereus_store.types.json import render_json
from quereus_store.types.values import to_text

_MEMORY = "memory"
_TEXT_FLAG, _DETERMINISTIC_FLAG = 1, 0x800
_ALSO_WINDOW = frozenset({"count", "sum", "avg", "min", "max"})


def tags_text(tags: Tags) -> str | None:
    """A tag bag as JSON text; NULL when it is empty."""
    return render_json(dict(tags)) if tags else None


# --- tables and indexes -------------------------------------------------------------------------------------


def quoted(name: str) -> str:
    """A name between double quotes."""
    return '"' + name.replace('"', '""') + '"'


def table_sql(table: TableSchema, default_module: str) -> str:
    """The display SQL of a table; a maintained table shows the statement that creates it.

    A maintained table in memory need not name its module where that is the session's default.
    """
    if table.derivation is not None:
        return table_ddl(table, omits_module=table.module == default_module == _MEMORY)
    columns = ", ".join(f"{quoted(column.name)} {column.type.name}" for column in table.columns)
    module = f"{table.module}({_arguments(table.module_arguments)})"
    return f"create table {quoted(table.name)} ({columns}) using {module}"


def _arguments(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={to_text(value) or 'null'}" for name, value in arguments.items())


def view_sql(view: ViewSchema) -> str:
    """The statement that creates a view, its name unqualified in ``main``."""
    text = view_ddl(view)
    if fold(view.schema) != MAIN:
        return text
    return "create view " + text.removeprefix(f"create view {quote_identifier(view.schema)}.")


def index_sql(table: TableSchema, index: IndexSchema) -> str:
    """The display SQL of an index."""
    parts = []
    for part in index.parts:
        if part.column is not None:
            key = quoted(table.columns[part.column].name)
        else:
            key = "" if part.expression is None else render_expression(part.expression)
        parts.append(f"{key} COLLATE {part.collation}{' DESC' if part.descending else ''}")
    return f"CREATE INDEX {quoted(index.name)} ON {quoted(table.name)} ({', '.join(parts)})"


def referenced_columns(catalog: Catalog, table: TableSchema, key: ForeignKey) -> list[str | None]:
    """The parent columns of a foreign key: as declared, else the parent's primary key, else None."""
    if key.parent_columns is not None:
        return list(key.parent_columns)
    parent = parent_of(catalog, table, key)
    positions = None if parent is None else parent_key(parent, key)
    if parent is None or positions is None or len(positions) != len(key.columns):
        return [None] * len(key.columns)
    return [parent.columns[position].name for position in positions]


def table_references(catalog: Catalog, schema: str, expression: nodes.Expression) -> list[dict[str, str]]:
    """The tables that an expression reads, through views too: one entry per reference."""
    bases = enumerate(_tables_read(catalog, schema, expression), 1)
    return [{"relationKey": f"{base}#{number}", "base": base} for number, base in bases]


def _tables_read(catalog: Catalog, schema: str, body: nodes.Node) -> Iterator[str]:
    members = {
        fold(member.name)
        for node in walk(body)
        if isinstance(node, nodes.WithClause)
        for member in node.members
    }
    for node in walk(body):
        if not isinstance(node, nodes.TableReference) or (node.schema is None and fold(node.name) in members):
            continue
        found = find_relation(catalog, home_path(catalog, schema), node.schema, node.name)
        if isinstance(found, ViewSchema):
            yield from _tables_read(catalog, found.schema, found.query)
        elif found is not None:
            yield f"{found.schema}.{found.name}".lower()


# --- functions ----------------------------------------------------------------------------------------------


def visible_functions(registry: FunctionRegistry) -> Iterator[Function]:
    """The functions that ``schema()`` lists."""
    return (function for function in registry if not function.hidden)


def function_arity(function: Function) -> int:
    """The number of arguments; -1 where it varies."""
    return function.minimum if function.minimum == function.maximum else -1


def function_kind(function: Function) -> str:
    """``scalar``, ``aggregate`` or ``table``; aggregates that have always run over windows are ``window``."""
    if isinstance(function, ScalarFunction):
        return "scalar"
    if isinstance(function, AggregateFunction):
        return "window" if function.name in _ALSO_WINDOW else "aggregate"
    return "table"


def function_flags(function: Function) -> int:
    """The flag bits: text, deterministic, and what was declared besides."""
    return _TEXT_FLAG | (_DETERMINISTIC_FLAG if function.deterministic else 0) | function.flags


def function_signature(function: Function) -> str:
    """``abs(?)``, ``trim(...)``."""
    arity = function_arity(function)
    return f"{function.name}({'...' if arity < 0 else ', '.join('?' * arity)})"
