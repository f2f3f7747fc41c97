"""INSERT, UPDATE and DELETE (dml-transactions-constraints, section 1).

The clauses that may stand before or after the source (WITH CONTEXT, WITH SCHEMA,
WITH TAGS) are kept once, wherever they were written.  ``set (a, b) = (1, 2)`` is
two assignments; only ``set (a, b) = (query)`` keeps its own node.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from quereus_store.records import record
from quereus_store.sql.nodes.base import Expression, Node, Relation, Statement
from quereus_store.sql.nodes.expressions import Literal
from quereus_store.sql.nodes.queries import (
    Assignment,
    Query,
    ResultColumn,
    ResultStar,
    SubquerySource,
    TableReference,
    WithClause,
)


class ConflictAction(StrEnum):
    """What happens to a row that violates a constraint."""

    ROLLBACK = "rollback"
    ABORT = "abort"
    FAIL = "fail"
    IGNORE = "ignore"
    REPLACE = "replace"


@record(frozen=True, slots=True)
class Tag(Node):
    """``key = value`` of WITH TAGS; the value is a text, number, boolean or null literal."""

    key: str
    value: Literal


@record(frozen=True, slots=True)
class MultiAssignment(Node):
    """``(a, b, …) = (query)`` in SET; an Update keeps row values as single Assignments."""

    columns: tuple[str, ...]
    query: Query | DataModification


@record(frozen=True, slots=True)
class DefaultValues(Node):
    """``default values`` as the source of an INSERT."""


@record(frozen=True, slots=True)
class UpsertClause(Node):
    """``on conflict [(columns) [where e]] do nothing | update set … [where e]``; no assignments: nothing."""

    target: tuple[str, ...] = ()
    target_where: Expression | None = None
    assignments: tuple[Assignment | MultiAssignment, ...] = ()
    where: Expression | None = None


@record(frozen=True, slots=True)
class Insert(Statement):
    """``insert [or action] into t [(columns)] source [on conflict …] [returning …]``."""

    table: TableReference
    source: Query | DataModification | DefaultValues
    columns: tuple[str, ...] = ()
    conflict_action: ConflictAction | None = None
    upserts: tuple[UpsertClause, ...] = ()
    context: tuple[Assignment, ...] = ()
    schema_path: tuple[str, ...] = ()
    tags: tuple[Tag, ...] = ()
    returning: tuple[ResultColumn | ResultStar, ...] = ()
    with_clause: WithClause | None = None


@record(frozen=True, slots=True)
class Update(Statement):
    """``update [or action] t set … [from …] [where …] [returning …]``."""

    target: TableReference | SubquerySource
    assignments: tuple[Assignment | MultiAssignment, ...]
    source: Relation | None = None
    where: Expression | None = None
    conflict_action: ConflictAction | None = None
    context: tuple[Assignment, ...] = ()
    schema_path: tuple[str, ...] = ()
    tags: tuple[Tag, ...] = ()
    returning: tuple[ResultColumn | ResultStar, ...] = ()
    with_clause: WithClause | None = None


@record(frozen=True, slots=True)
class Delete(Statement):
    """``delete from t [using …] [where …] [returning …]``."""

    target: TableReference | SubquerySource
    source: Relation | None = None
    where: Expression | None = None
    context: tuple[Assignment, ...] = ()
    schema_path: tuple[str, ...] = ()
    tags: tuple[Tag, ...] = ()
    returning: tuple[ResultColumn | ResultStar, ...] = ()
    with_clause: WithClause | None = None


DataModification: TypeAlias = Insert | Update | Delete
