"""What a statement makes or removes, as its name is looked up in a catalog.

CREATE asks :mod:`~quereus_store.schema.naming` whether the name is free, DROP asks
:mod:`~quereus_store.schema.dropping` what it means; both come with the same five things.
"""

from __future__ import annotations

from dataclasses import dataclass

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.schema.manager import MAIN
from quereus_store.schema.objects import Catalog
from quereus_store.sql import nodes

_Create = (
    nodes.CreateTable
    | nodes.CreateIndex
    | nodes.CreateView
    | nodes.CreateMaterializedView
    | nodes.CreateAssertion
)


@dataclass(frozen=True, slots=True)
class Target:
    """A name in a schema; ``tolerant`` is IF NOT EXISTS or IF EXISTS, ``position`` is for errors."""

    catalog: Catalog
    schema: str
    name: str
    tolerant: bool = False
    position: SourcePosition | None = None

    @property
    def label(self) -> str:
        """The whole name."""
        return f"{self.schema}.{self.name}"

    def refusal(self, code: StatusCode, message: str) -> Error:
        """The error that the statement raises."""
        return sql_error(code, message, self.position)


def created(catalog: Catalog, statement: _Create) -> Target:
    """What a CREATE makes."""
    name = statement.name
    return Target(catalog, name.schema or MAIN, name.name, statement.if_not_exists, statement.position)


def dropped(catalog: Catalog, statement: nodes.DropObject) -> Target:
    """What a DROP removes."""
    name = statement.name
    return Target(catalog, name.schema or MAIN, name.name, statement.if_exists, statement.position)
