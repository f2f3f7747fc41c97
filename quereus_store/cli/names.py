"""Quoting names in the SQL that the commands write."""

from __future__ import annotations

import re

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quote(name: str) -> str:
    """A name as a quoted identifier: always quoted, so that no keyword list is needed."""
    return '"' + name.replace('"', '""') + '"'


def split_qualified(name: str) -> tuple[str | None, str]:
    """``schema.table`` as a pair; the schema is None for a plain name."""
    schema, dot, table = name.rpartition(".")
    return (schema, table) if dot and _BARE.fullmatch(schema) else (None, name)


def quote_qualified(name: str) -> str:
    """``schema.table`` or ``table`` with each part quoted."""
    schema, table = split_qualified(name)
    return quote(table) if schema is None else f"{quote(schema)}.{quote(table)}"
