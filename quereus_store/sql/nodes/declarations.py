"""Declared schemas and lenses (seed sql-ddl, section 2.0; view-updates-and-lenses, section 12).

The items of a declaration are the nodes of the CREATE statement they stand for,
with unqualified names.
"""

from __future__ import annotations

from quereus_store.records import record
from quereus_store.sql.nodes.base import Expression, Node, Statement
from quereus_store.sql.nodes.ddl import (
    CreateAssertion,
    CreateIndex,
    CreateMaterializedView,
    CreateTable,
    CreateView,
    ModuleArgument,
)
from quereus_store.sql.nodes.queries import Query


@record(frozen=True, slots=True)
class SeedData(Node):
    """``seed table [(columns)] ((…), (…))``: rows a declaration brings along."""

    table: str
    rows: tuple[tuple[Expression, ...], ...]
    columns: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class IgnoredItem(Node):
    """A declared item of a kind that is reserved but not modelled (domain, collation, import)."""

    kind: str
    text: str


DeclaredItem = (
    CreateTable | CreateIndex | CreateView | CreateMaterializedView | CreateAssertion | SeedData | IgnoredItem
)


@record(frozen=True, slots=True)
class DeclareSchema(Statement):
    """``declare [logical] schema name [version v] [using (…)] { items }``."""

    name: str
    items: tuple[DeclaredItem, ...] = ()
    logical: bool = False
    version: str | None = None
    settings: tuple[ModuleArgument, ...] = ()


@record(frozen=True, slots=True)
class LensOverride(Node):
    """``view table as select …`` within a lens."""

    table: str
    query: Query


@record(frozen=True, slots=True)
class DeclareLens(Statement):
    """``declare lens for schema over basis { overrides }``."""

    schema: str
    basis: str
    overrides: tuple[LensOverride, ...] = ()


@record(frozen=True, slots=True)
class DiffSchema(Statement):
    """``diff schema [name]``."""

    name: str | None = None


@record(frozen=True, slots=True)
class ApplySchema(Statement):
    """``apply schema [name] [to version v] [options (…)] [with seed]``."""

    name: str | None = None
    version: str | None = None
    options: tuple[ModuleArgument, ...] = ()
    with_seed: bool = False


@record(frozen=True, slots=True)
class ExplainSchema(Statement):
    """``explain schema [name] [version v]``."""

    name: str | None = None
    version: str | None = None
