"""CREATE, DROP and REFRESH (seed sql-ddl; alter-and-ddl-lifecycle, sections 2 and 3).

Constraints are one class each and keep their written order, so that a declared
schema can be rendered, hashed and compared as it was written.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from quereus_store.records import record
from quereus_store.sql.nodes.base import Expression, Node, ObjectName, Statement
from quereus_store.sql.nodes.dml import ConflictAction, Tag
from quereus_store.sql.nodes.expressions import Literal, TypeName
from quereus_store.sql.nodes.queries import Query


class GeneratedStorage(StrEnum):
    """Whether a generated column is kept or computed."""

    STORED = "stored"
    VIRTUAL = "virtual"


class ReferentialAction(StrEnum):
    """What happens to child rows when their parent goes or changes."""

    NO_ACTION = "no action"
    RESTRICT = "restrict"
    CASCADE = "cascade"
    SET_NULL = "set null"
    SET_DEFAULT = "set default"


class RowOperation(StrEnum):
    """An operation a CHECK may be limited to."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class ObjectKind(StrEnum):
    """The kinds of schema objects DROP and ALTER name."""

    TABLE = "table"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"
    INDEX = "index"
    ASSERTION = "assertion"


@record(frozen=True, slots=True)
class ModuleArgument(Node):
    """``value`` or ``name = value`` within the parentheses of USING."""

    value: Literal
    name: str | None = None


@record(frozen=True, slots=True)
class ModuleClause(Node):
    """``using module [(arguments)]``."""

    name: str
    arguments: tuple[ModuleArgument, ...] = ()


@record(frozen=True, slots=True)
class ContextVariable(Node):
    """``name [type] [null]`` of a table's WITH CONTEXT."""

    name: str
    type_name: TypeName | None = None
    nullable: bool = False


@record(frozen=True, slots=True)
class Constraint(Node):
    """Base of all constraints: ``[constraint name] … [with tags (…)]``."""

    name: str | None = field(default=None, kw_only=True)
    tags: tuple[Tag, ...] = field(default=(), kw_only=True)


@record(frozen=True, slots=True)
class NullConstraint(Constraint):
    """``null``: the column admits nulls."""


@record(frozen=True, slots=True)
class NotNullConstraint(Constraint):
    """``not null [on conflict action]``."""

    conflict_action: ConflictAction | None = None


@record(frozen=True, slots=True)
class ColumnPrimaryKey(Constraint):
    """``primary key [asc|desc] [on conflict action]`` on a column."""

    descending: bool = False
    conflict_action: ConflictAction | None = None


@record(frozen=True, slots=True)
class ColumnUnique(Constraint):
    """``unique [on conflict action]`` on a column."""

    conflict_action: ConflictAction | None = None


@record(frozen=True, slots=True)
class CheckConstraint(Constraint):
    """``check [on insert, …] (e) [on conflict action]``; ``operations`` empty if not written."""

    expression: Expression
    operations: tuple[RowOperation, ...] = ()
    conflict_action: ConflictAction | None = None


@record(frozen=True, slots=True)
class DefaultConstraint(Constraint):
    """``default e``."""

    expression: Expression


@record(frozen=True, slots=True)
class CollateConstraint(Constraint):
    """``collate name`` on a column."""

    collation: str


@record(frozen=True, slots=True)
class GeneratedConstraint(Constraint):
    """``generated always as (e) [stored|virtual]``; VIRTUAL if not written."""

    expression: Expression
    storage: GeneratedStorage = GeneratedStorage.VIRTUAL


@record(frozen=True, slots=True)
class ForeignKeyReference(Node):
    """``references t [(columns)] [on delete …] [on update …] [[not] deferrable] [initially …]``."""

    table: ObjectName
    columns: tuple[str, ...] = ()
    on_delete: ReferentialAction | None = None
    on_update: ReferentialAction | None = None
    deferrable: bool | None = None
    initially_deferred: bool | None = None


@record(frozen=True, slots=True)
class ColumnReferences(Constraint):
    """``references …`` on a column."""

    reference: ForeignKeyReference


@record(frozen=True, slots=True)
class KeyColumn(Node):
    """``column [collate c] [asc|desc]`` of a table-level PRIMARY KEY."""

    name: str
    descending: bool = False
    collation: str | None = None


@record(frozen=True, slots=True)
class PrimaryKeyConstraint(Constraint):
    """``primary key (columns) [on conflict action]``; no columns: at most one row."""

    columns: tuple[KeyColumn, ...]
    conflict_action: ConflictAction | None = None


@record(frozen=True, slots=True)
class UniqueConstraint(Constraint):
    """``unique (columns) [on conflict action]``."""

    columns: tuple[str, ...]
    conflict_action: ConflictAction | None = None


@record(frozen=True, slots=True)
class ForeignKeyConstraint(Constraint):
    """``foreign key (columns) references …``."""

    columns: tuple[str, ...]
    reference: ForeignKeyReference


TableConstraint = PrimaryKeyConstraint | UniqueConstraint | CheckConstraint | ForeignKeyConstraint


@record(frozen=True, slots=True)
class ColumnDefinition(Node):
    """``name [type] constraints… [with tags (…)]``."""

    name: str
    type_name: TypeName | None = None
    constraints: tuple[Constraint, ...] = ()
    tags: tuple[Tag, ...] = ()


@record(frozen=True, slots=True)
class MaintainedClause(Node):
    """``maintained [(columns)] as query``."""

    query: Query
    columns: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class CreateTable(Statement):
    """``create table name [(…)] [using …] [maintained as …] [as query]``; ``query`` is CREATE TABLE AS."""

    name: ObjectName
    columns: tuple[ColumnDefinition, ...] = ()
    constraints: tuple[TableConstraint, ...] = ()
    module: ModuleClause | None = None
    context: tuple[ContextVariable, ...] = ()
    maintained: MaintainedClause | None = None
    query: Query | None = None
    tags: tuple[Tag, ...] = ()
    if_not_exists: bool = False


@record(frozen=True, slots=True)
class IndexedColumn(Node):
    """``e [collate c] [asc|desc]`` of an index; ``expression`` is a bare column in all that is supported."""

    expression: Expression
    collation: str | None = None
    descending: bool = False


@record(frozen=True, slots=True)
class CreateIndex(Statement):
    """``create [unique] index name on t (…) [where e] [with tags (…)]``."""

    name: ObjectName
    table: ObjectName
    columns: tuple[IndexedColumn, ...]
    unique: bool = False
    where: Expression | None = None
    tags: tuple[Tag, ...] = ()
    if_not_exists: bool = False


@record(frozen=True, slots=True)
class CreateView(Statement):
    """``create view name [(columns)] as query [with tags (…)]``."""

    name: ObjectName
    query: Query
    columns: tuple[str, ...] = ()
    tags: tuple[Tag, ...] = ()
    if_not_exists: bool = False


@record(frozen=True, slots=True)
class CreateMaterializedView(Statement):
    """``create materialized view name [(columns)] [using module] as query [with tags (…)]``."""

    name: ObjectName
    query: Query
    columns: tuple[str, ...] = ()
    module: ModuleClause | None = None
    tags: tuple[Tag, ...] = ()
    if_not_exists: bool = False


@record(frozen=True, slots=True)
class CreateAssertion(Statement):
    """``create assertion name check (e)``."""

    name: ObjectName
    expression: Expression
    if_not_exists: bool = False


@record(frozen=True, slots=True)
class DropObject(Statement):
    """``drop kind [if exists] name``."""

    kind: ObjectKind
    name: ObjectName
    if_exists: bool = False


@record(frozen=True, slots=True)
class RefreshMaterializedView(Statement):
    """``refresh materialized view name``."""

    name: ObjectName
