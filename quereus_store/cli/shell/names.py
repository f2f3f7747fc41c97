"""What a database holds, by name, for completion and ``.tables``.

Everything comes from the introspection functions, so it works on any database that connects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quereus_store.errors import Error

if TYPE_CHECKING:
    from quereus_store import Connection

RELATIONS = ("table", "materialized_view", "view")


def relations(connection: Connection) -> list[tuple[str, str, str]]:
    """Tables and views as ``(schema, kind, name)``, in alphabetical order."""
    rows = connection.execute("select schema, type, name from schema()").fetchall()
    return sorted((str(s), str(kind), str(name)) for s, kind, name in rows if kind in RELATIONS)


def columns(connection: Connection, name: str) -> list[str]:
    """Column names of a table or view; empty when it cannot be looked at."""
    try:
        return [str(row[0]) for row in connection.execute("select column_name from column_info(?)", (name,))]
    except Error:
        return []


def columns_by_relation(connection: Connection) -> Mapping[str, list[str]]:
    """Columns of every table and view, by lower-cased name."""
    return {name.lower(): columns(connection, name) for _schema, _kind, name in relations(connection)}
