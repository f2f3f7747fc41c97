"""What the binder is told and what it tells back.

A :class:`BindContext` holds for a whole statement: the catalog snapshot, the
registries, the types of the parameters.  An :class:`Environment` holds for one
query within it: which schemas are searched and which common tables are in
sight.  Both are immutable; going into a view or a WITH makes a new environment.

While it works the binder notes in :class:`References` what the statement reads,
so that a plan's dependencies need no second walk over the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from quereus_store.errors import SourcePosition
from quereus_store.functions.registry import FunctionRegistry
from quereus_store.plan.expressions import BoundExpression, Column
from quereus_store.records import record
from quereus_store.schema.manager import MAIN, home_path
from quereus_store.schema.objects import Catalog, TableSchema, ViewSchema
from quereus_store.types import CollationRegistry, LogicalType, TypeRegistry

if TYPE_CHECKING:
    from quereus_store.plan.binder.scopes import Scope
    from quereus_store.sql import nodes

Slot = int | str


def _numbers() -> Callable[[], int]:
    return count(1).__next__


@dataclass(slots=True)
class References:
    """What a statement turned out to use; keys are ``(schema, name)`` as the catalog spells them.

    ``parameters`` lists slots (positions from 0, or names) in the order met, ``written``
    the tables that the statement changes.
    """

    tables: dict[tuple[str, str], TableSchema] = field(default_factory=dict)
    views: dict[tuple[str, str], ViewSchema] = field(default_factory=dict)
    written: dict[tuple[str, str], TableSchema] = field(default_factory=dict)
    parameters: dict[Slot, SourcePosition | None] = field(default_factory=dict)


@record(frozen=True, slots=True)
class BindContext:
    """Everything that binding one statement depends on.

    ``parameters`` gives the type of each slot (position from 0, or name) by the
    value that it is bound to this time; a slot that is not listed is ANY.  The slots in
    ``nullable_parameters`` may be NULL besides: a batch binds them to many values.
    ``number`` hands out column numbers, unique within the statement.  ``committed`` is the catalog that the
    transaction began with, where that is another (None elsewhere); ``row_count`` says how large the optimizer
    takes tables to be, where that is not what their modules plan with.
    """

    catalog: Catalog
    registry: FunctionRegistry
    collations: CollationRegistry = field(default_factory=CollationRegistry)
    types: TypeRegistry = field(default_factory=TypeRegistry)
    schema_path: tuple[str, ...] = (MAIN,)
    options: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[Slot, LogicalType] = field(default_factory=dict)
    nullable_parameters: frozenset[Slot] = frozenset()
    number: Callable[[], int] = field(default_factory=_numbers)
    references: References = field(default_factory=References)
    committed: Catalog | None = None
    row_count: Callable[[TableSchema], float] | None = None


@record(frozen=True, slots=True)
class CommonTableEntry:
    """A common table in sight: shared under ``table_id``, or (``query`` set) bound anew at each use.

    ``columns`` are the shared plan's; a scan gives them new numbers.
    """

    name: str
    table_id: int
    columns: tuple[Column, ...]
    query: nodes.Query | None = None
    names: tuple[str, ...] = ()
    environment: Environment | None = None
    outer: Scope | None = None


@record(frozen=True, slots=True)
class Environment:
    """Where a query stands: searched schemas, common tables in sight, views being expanded.

    ``leading`` is True for a statement's outermost query, whose WITH may change
    data.  ``parameters`` maps slots to expressions that stand for them instead.
    """

    context: BindContext
    schema_path: tuple[str, ...]
    common_tables: Mapping[str, CommonTableEntry] = field(default_factory=dict)
    views: tuple[tuple[str, str], ...] = ()
    leading: bool = False
    parameters: Mapping[Slot, BoundExpression] | None = None

    @staticmethod
    def of(context: BindContext, *, leading: bool = False) -> Environment:
        """The environment of a statement as a whole."""
        return Environment(context, context.schema_path, leading=leading)

    def nested(self) -> Environment:
        """The environment of a subquery."""
        return replace(self, leading=False) if self.leading else self

    def with_schemas(self, schema_path: tuple[str, ...]) -> Environment:
        """The environment under WITH SCHEMA (queries, section 15); itself when none is named."""
        return replace(self, schema_path=schema_path) if schema_path else self

    def with_common_tables(self, entries: Mapping[str, CommonTableEntry]) -> Environment:
        """The environment with these common tables (by folded name) also in sight."""
        return replace(self, common_tables={**self.common_tables, **entries})

    def inside_stored_body(self, schema: str, view: tuple[str, str] | None = None) -> Environment:
        """The environment of a stored body: its own schema, then ``main``; none of the caller's names."""
        views = (*self.views, view) if view else self.views
        return Environment(self.context, home_path(self.context.catalog, schema), views=views)

    def column(
        self,
        name: str,
        column_type: LogicalType,
        nullable: bool = True,
        collation: Any = None,
    ) -> Column:
        """A column under a new number."""
        return Column(self.context.number(), name, column_type, nullable, collation)

    def renumbered(self, columns: tuple[Column, ...]) -> Iterator[Column]:
        """The same columns under new numbers."""
        number = self.context.number
        return (
            Column(number(), column.name, column.type, column.nullable, column.collation)
            for column in columns
        )
