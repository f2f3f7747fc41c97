"""Schema objects: what a catalog holds, as immutable values.

A :class:`Catalog` is one snapshot of all schemas.  Changing anything makes a new
catalog that shares all untouched objects with the old one, so a transaction
works on its own snapshot, rollback drops a reference, and a plan can be cached
against ``Catalog.version``.

Names are kept as written; lookups use :func:`fold` (lower case).  Expressions
(defaults, checks, predicates) are kept as syntax trees and bound where they are
used, so a rename rewrites trees and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from quereus_store.sql import nodes
from quereus_store.types.logical import LogicalType

Tags = Mapping[str, Any]
NO_TAGS: Tags = MappingProxyType({})


def _no_tags() -> Tags:
    return NO_TAGS


def fold(name: str) -> str:
    """The form of a name under which it is looked up."""
    return name.lower()


class ConflictAction(StrEnum):
    """What a violated constraint does (dml-transactions-constraints, section 4)."""

    ABORT = "abort"
    FAIL = "fail"
    IGNORE = "ignore"
    REPLACE = "replace"
    ROLLBACK = "rollback"


class Operation(StrEnum):
    """The kinds of change that a CHECK can be limited to."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class ReferentialAction(StrEnum):
    """What a change of a parent key does to its children."""

    RESTRICT = "restrict"
    NO_ACTION = "no action"
    CASCADE = "cascade"
    SET_NULL = "set null"
    SET_DEFAULT = "set default"


class CollationRank(StrEnum):
    """How strongly a column's collation was asked for (types-and-values, section 10)."""

    DECLARED = "declared"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """One column of a table.

    ``declared_type`` is the type as written (None when it was not), ``generated``
    the expression of a generated column; ``stored`` distinguishes its two forms.
    Two columns are equal whatever the spelling of their type.
    """

    name: str
    type: LogicalType
    declared_type: str | None = field(default=None, compare=False)
    nullable: bool = False
    collation: str = "BINARY"
    collation_rank: CollationRank = CollationRank.DEFAULT
    default: nodes.Expression | None = None
    generated: nodes.Expression | None = None
    stored: bool = False
    not_null_conflict: ConflictAction | None = None
    tags: Tags = field(default_factory=_no_tags)


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One column of a key: its position in the row, direction and collation."""

    column: int
    descending: bool = False
    collation: str = "BINARY"


@dataclass(frozen=True, slots=True)
class PrimaryKey:
    """The key that identifies a row; ``declared`` is False for the all-columns key.

    An empty ``parts`` with ``declared`` allows at most one row.  ``of_column`` tells that ``conflict`` was
    declared at a column, so that it does not outlive the key.
    """

    parts: tuple[KeyPart, ...]
    declared: bool = True
    conflict: ConflictAction | None = None
    of_column: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class UniqueConstraint:
    """UNIQUE over columns; ``index`` names the (maybe hidden) index that enforces it.

    ``named`` is False for a generated name; ``from_index`` is True where the
    constraint stands for a CREATE UNIQUE INDEX (``columns`` then lists the parts
    that are columns).
    """

    name: str
    columns: tuple[int, ...]
    index: str
    named: bool = False
    from_index: bool = False
    conflict: ConflictAction | None = None
    tags: Tags = field(default_factory=_no_tags)


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    """CHECK with its operation mask; ``name`` is the generated one when ``named`` is False.

    ``positional`` marks a table-level CHECK without a name: it is shown as
    ``_check_<position>`` but cannot be addressed.  ``message`` is what a violation
    is told where that is not the usual text (constraints of logical tables).
    """

    name: str
    expression: nodes.Expression
    operations: frozenset[Operation] = frozenset({Operation.INSERT, Operation.UPDATE})
    named: bool = False
    positional: bool = False
    conflict: ConflictAction | None = None
    tags: Tags = field(default_factory=_no_tags)
    message: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A reference from columns of this table to columns of a parent.

    ``parent_columns`` is None when the declaration lists none: the parent's
    primary key, resolved whenever the key is used.  ``parent_schema`` is None for
    the child's own schema.  ``deferred`` (INITIALLY DEFERRED) is only told, by the DDL
    and by ``foreign_key_info``.
    """

    name: str
    columns: tuple[int, ...]
    parent_schema: str | None
    parent_table: str
    parent_columns: tuple[str, ...] | None
    on_delete: ReferentialAction = ReferentialAction.RESTRICT
    on_update: ReferentialAction = ReferentialAction.RESTRICT
    named: bool = False
    deferred: bool = False
    tags: Tags = field(default_factory=_no_tags)


@dataclass(frozen=True, slots=True)
class IndexPart:
    """One part of an index: a column (``column``) or an expression (``expression``).

    ``type`` and ``nullable`` describe the indexed value; ``collation_explicit``
    says that the index itself names the collation.
    """

    column: int | None
    expression: nodes.Expression | None
    type: LogicalType
    nullable: bool = True
    descending: bool = False
    collation: str = "BINARY"
    collation_explicit: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class IndexSchema:
    """A secondary index.

    ``hidden`` marks the structure behind a UNIQUE constraint that no CREATE
    INDEX made; ``storage_id`` is given by the module that built it.
    """

    name: str
    parts: tuple[IndexPart, ...]
    unique: bool = False
    where: nodes.Expression | None = None
    hidden: bool = False
    storage_id: int = 0
    tags: Tags = field(default_factory=_no_tags)


@dataclass(frozen=True, slots=True)
class ContextVariable:
    """A variable of a table's mutation context (seed: sql-ddl)."""

    name: str
    type: LogicalType
    declared_type: str | None = field(compare=False)
    nullable: bool


@dataclass(frozen=True, slots=True)
class Derivation:
    """The body that a maintained table is kept equal to.

    ``columns`` is the list of names, where one was written.  A ``stale`` table is not kept up any
    more, since a source changed its shape; REFRESH makes it live again.  ``views`` are plain views
    that the query reads and that have been dropped since: until REFRESH they stand for it as they were.
    """

    query: nodes.Query
    columns: tuple[str, ...] | None = None
    as_view: bool = False
    stale: bool = False
    views: tuple[ViewSchema, ...] = ()


@dataclass(frozen=True, slots=True)
class RowLayout:
    """How a module keeps rows that are not simply their columns in order; nobody else looks at it.

    ``slots`` is the place of each column in a stored row, ``fills`` what stands in each place of a
    row that ends before it; no row has fewer than ``least`` places.
    """

    slots: tuple[int, ...]
    fills: tuple[Any, ...]
    least: int


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table: columns, keys, constraints, indexes and the module that stores it.

    ``storage_id`` is the module's own handle of the rows; a rename keeps it, so
    no row moves; ``layout`` is the module's, too.  ``indexes`` includes hidden ones.
    """

    schema: str
    name: str
    columns: tuple[ColumnSchema, ...]
    primary_key: PrimaryKey
    unique_constraints: tuple[UniqueConstraint, ...] = ()
    checks: tuple[CheckConstraint, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    indexes: tuple[IndexSchema, ...] = ()
    module: str = "memory"
    module_arguments: Mapping[str, Any] = field(default_factory=_no_tags)
    context: tuple[ContextVariable, ...] = ()
    derivation: Derivation | None = None
    storage_id: int = 0
    layout: RowLayout | None = None
    tags: Tags = field(default_factory=_no_tags)
    # Filled when a column is looked up for the first time.
    _places: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def column_index(self, name: str) -> int | None:
        """Position of a column by name, any case; None when there is none."""
        places = self._places
        if not places:
            found: dict[str, int] = {}
            for position, column in enumerate(self.columns):
                found.setdefault(fold(column.name), position)
            # All at once: other threads look here too, and must not take half of the columns for all.
            places.update(found)
        return places.get(fold(name))

    def index(self, name: str) -> IndexSchema | None:
        """The index of that name, any case."""
        folded = fold(name)
        return next((index for index in self.indexes if fold(index.name) == folded), None)

    @property
    def qualified_name(self) -> str:
        """``schema.table`` as the messages print it."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class LogicalTable:
    """What a table of a logical schema declares (view-updates-and-lenses, section 12).

    ``table`` has its columns, keys and constraints; no rows belong to it.
    ``overridden`` lists, in lower case, the columns that the lens maps itself.
    ``decomposition`` is the id of the advertised decomposition that it is read from.
    """

    table: TableSchema
    overridden: tuple[str, ...] = ()
    decomposition: str | None = None


@dataclass(frozen=True, slots=True)
class ViewSchema:
    """A plain view: a name for a query; ``logical`` is set for a table of a logical schema."""

    schema: str
    name: str
    query: nodes.Query
    columns: tuple[str, ...] | None = None
    tags: Tags = field(default_factory=_no_tags)
    logical: LogicalTable | None = None


@dataclass(frozen=True, slots=True)
class AssertionSchema:
    """A condition over whole tables, checked at commit."""

    schema: str
    name: str
    expression: nodes.Expression
    tags: Tags = field(default_factory=_no_tags)


@dataclass(frozen=True, slots=True)
class LensSnapshot:
    """What a logical table read when it was deployed: its columns, its body and the basis relations."""

    table: str
    columns: tuple[str, ...]
    body: str
    relations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Deployment:
    """The lens of a logical schema, as the last APPLY left it.

    ``advisories`` are the rows of its report; ``snapshot`` describes this deployment,
    ``previous`` the one before.
    """

    basis: str
    advisories: tuple[tuple[str | None, ...], ...] = ()
    snapshot: tuple[LensSnapshot, ...] = ()
    previous: tuple[LensSnapshot, ...] | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """One named schema; the mappings are keyed by folded names.

    ``lens`` is set for a logical one; ``attached`` is True for the ``main`` of another database, whose
    objects know nothing of the schemas around it.
    """

    name: str
    tables: Mapping[str, TableSchema] = field(default_factory=dict)
    views: Mapping[str, ViewSchema] = field(default_factory=dict)
    assertions: Mapping[str, AssertionSchema] = field(default_factory=dict)
    lens: Deployment | None = None
    attached: bool = False

    def with_table(self, table: TableSchema) -> Schema:
        """The schema with this table added or replaced."""
        return replace(self, tables={**self.tables, fold(table.name): table})

    def without_table(self, name: str) -> Schema:
        """The schema without that table."""
        return replace(self, tables={key: t for key, t in self.tables.items() if key != fold(name)})

    def with_view(self, view: ViewSchema) -> Schema:
        """The schema with this view added or replaced."""
        return replace(self, views={**self.views, fold(view.name): view})

    def without_view(self, name: str) -> Schema:
        """The schema without that view."""
        return replace(self, views={key: v for key, v in self.views.items() if key != fold(name)})

    def with_assertion(self, assertion: AssertionSchema) -> Schema:
        """The schema with this assertion added or replaced."""
        return replace(self, assertions={**self.assertions, fold(assertion.name): assertion})

    def without_assertion(self, name: str) -> Schema:
        """The schema without that assertion."""
        return replace(self, assertions={key: a for key, a in self.assertions.items() if key != fold(name)})


@dataclass(frozen=True, slots=True)
class Catalog:
    """All schemas at one moment; ``version`` changes with every change."""

    schemas: Mapping[str, Schema]
    version: int = 0
    has_assertions: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Asked for with every change of a row.
        found = any(schema.assertions for schema in self.schemas.values())
        object.__setattr__(self, "has_assertions", found)

    def schema(self, name: str) -> Schema | None:
        """The schema of that name, any case."""
        return self.schemas.get(fold(name))

    def is_attached(self, schema: str) -> bool:
        """Whether a schema is that of an attached database."""
        found = self.schemas.get(fold(schema))
        return found is not None and found.attached

    def table(self, schema: str, name: str) -> TableSchema | None:
        """The table ``schema.name``, any case."""
        found = self.schemas.get(fold(schema))
        return found.tables.get(fold(name)) if found else None

    def view(self, schema: str, name: str) -> ViewSchema | None:
        """The view ``schema.name``, any case."""
        found = self.schemas.get(fold(schema))
        return found.views.get(fold(name)) if found else None

    def with_schema(self, schema: Schema) -> Catalog:
        """A new catalog, one version on, with this schema added or replaced."""
        return Catalog({**self.schemas, fold(schema.name): schema}, self.version + 1)
