"""ALTER (alter-and-ddl-lifecycle, section 2): a target and one action."""

from __future__ import annotations

from enum import StrEnum

from quereus_store.records import record
from quereus_store.sql.nodes.base import Expression, Node, ObjectName, Statement
from quereus_store.sql.nodes.ddl import ColumnDefinition, KeyColumn, ObjectKind, TableConstraint
from quereus_store.sql.nodes.dml import Tag
from quereus_store.sql.nodes.expressions import TypeName
from quereus_store.sql.nodes.queries import Query


class TagOperation(StrEnum):
    """Whether tags are replaced, merged in or taken out."""

    SET = "set"
    ADD = "add"
    DROP = "drop"


@record(frozen=True, slots=True)
class TagChange(Node):
    """``set|add tags (k = v, …)`` (``tags``) or ``drop tags (k, …)`` (``keys``)."""

    operation: TagOperation
    tags: tuple[Tag, ...] = ()
    keys: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class AlterAction(Node):
    """Base of what ALTER TABLE can do."""


@record(frozen=True, slots=True)
class RenameTable(AlterAction):
    """``rename to n``."""

    new_name: str


@record(frozen=True, slots=True)
class RenameColumn(AlterAction):
    """``rename column a to b``."""

    old_name: str
    new_name: str


@record(frozen=True, slots=True)
class RenameConstraint(AlterAction):
    """``rename constraint a to b``."""

    old_name: str
    new_name: str


@record(frozen=True, slots=True)
class AddColumn(AlterAction):
    """``add [column] definition``."""

    definition: ColumnDefinition


@record(frozen=True, slots=True)
class DropColumn(AlterAction):
    """``drop [column] a``."""

    column: str


@record(frozen=True, slots=True)
class AddConstraint(AlterAction):
    """``add [constraint c] check|unique|foreign key …``."""

    constraint: TableConstraint


@record(frozen=True, slots=True)
class DropConstraint(AlterAction):
    """``drop constraint c``."""

    constraint: str


@record(frozen=True, slots=True)
class AlterPrimaryKey(AlterAction):
    """``alter primary key (columns)``."""

    columns: tuple[KeyColumn, ...]


@record(frozen=True, slots=True)
class SetNotNull(AlterAction):
    """``alter column a set not null``."""

    column: str


@record(frozen=True, slots=True)
class DropNotNull(AlterAction):
    """``alter column a drop not null``."""

    column: str


@record(frozen=True, slots=True)
class SetDataType(AlterAction):
    """``alter column a set data type t``."""

    column: str
    type_name: TypeName


@record(frozen=True, slots=True)
class SetDefault(AlterAction):
    """``alter column a set default e``."""

    column: str
    expression: Expression


@record(frozen=True, slots=True)
class DropDefault(AlterAction):
    """``alter column a drop default``."""

    column: str


@record(frozen=True, slots=True)
class SetCollation(AlterAction):
    """``alter column a set collate c``."""

    column: str
    collation: str


@record(frozen=True, slots=True)
class ChangeTags(AlterAction):
    """Tag verbs on the table itself, on ``column`` or on ``constraint``."""

    change: TagChange
    column: str | None = None
    constraint: str | None = None


@record(frozen=True, slots=True)
class SetMaintained(AlterAction):
    """``set maintained [(columns)] as query``."""

    query: Query
    columns: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class DropMaintained(AlterAction):
    """``drop maintained``."""


@record(frozen=True, slots=True)
class AlterTable(Statement):
    """``alter table name action``."""

    name: ObjectName
    action: AlterAction


@record(frozen=True, slots=True)
class AlterObjectTags(Statement):
    """``alter view|materialized view|index name set|add|drop tags (…)``."""

    kind: ObjectKind
    name: ObjectName
    change: TagChange
