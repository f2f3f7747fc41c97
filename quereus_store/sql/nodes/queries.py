"""Queries (queries, section 3).

A :class:`Query` is what stands wherever a query may stand (statement, subquery,
view body, CTE): a body with the clauses that act on the whole of it (WITH, ORDER
BY, LIMIT).  A body is a SELECT, a VALUES, a set operation over bodies, or, for a
parenthesised operand that has such clauses of its own, again a Query.

A comma in FROM is a cross join whose right side is what stands after the comma.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from quereus_store.records import record
from quereus_store.sql.nodes.base import Expression, Node, Relation, Statement

if TYPE_CHECKING:
    from quereus_store.sql.nodes.dml import DataModification
    from quereus_store.sql.nodes.expressions import FunctionCall


class NullsPlacement(StrEnum):
    """Where ORDER BY puts nulls."""

    FIRST = "first"
    LAST = "last"


class SetOperator(StrEnum):
    """Operators between whole queries; DIFF is the symmetric difference."""

    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"
    DIFF = "diff"


class JoinKind(StrEnum):
    """Which rows of a join survive without a partner."""

    INNER = "inner"
    CROSS = "cross"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


class Side(StrEnum):
    """One side of a join or set operation."""

    LEFT = "left"
    RIGHT = "right"


class FrameUnit(StrEnum):
    """In what a window frame counts."""

    ROWS = "rows"
    RANGE = "range"
    GROUPS = "groups"


class BoundKind(StrEnum):
    """Where a window frame starts or ends."""

    UNBOUNDED_PRECEDING = "unbounded preceding"
    PRECEDING = "preceding"
    CURRENT_ROW = "current row"
    FOLLOWING = "following"
    UNBOUNDED_FOLLOWING = "unbounded following"


class FrameExclusion(StrEnum):
    """Which rows EXCLUDE takes out of a frame."""

    NO_OTHERS = "no others"
    CURRENT_ROW = "current row"
    GROUP = "group"
    TIES = "ties"


@record(frozen=True, slots=True)
class Assignment(Node):
    """``column = value`` in SET, WITH INVERSE, WITH DEFAULTS, WITH CONTEXT."""

    column: str
    value: Expression


@record(frozen=True, slots=True)
class OrderingTerm(Node):
    """``e [desc] [nulls first|last]`` of an ORDER BY."""

    expression: Expression
    descending: bool = False
    nulls: NullsPlacement | None = None


@record(frozen=True, slots=True)
class FrameBound(Node):
    """One end of a window frame; ``offset`` only for PRECEDING and FOLLOWING."""

    kind: BoundKind
    offset: Expression | None = None


@record(frozen=True, slots=True)
class WindowFrame(Node):
    """``rows between … and … [exclude …]``; a single written bound ends at the current row."""

    unit: FrameUnit
    start: FrameBound
    end: FrameBound
    exclusion: FrameExclusion | None = None


@record(frozen=True, slots=True)
class WindowSpecification(Node):
    """``([base] [partition by …] [order by …] [frame])``; ``base`` names a window it refines."""

    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[OrderingTerm, ...] = ()
    frame: WindowFrame | None = None
    base: str | None = None


@record(frozen=True, slots=True)
class WindowReference(Node):
    """``over name``."""

    name: str


@record(frozen=True, slots=True)
class WindowDefinition(Node):
    """``name as (…)`` of a WINDOW clause."""

    name: str
    specification: WindowSpecification


@record(frozen=True, slots=True)
class ResultColumn(Node):
    """``e [as alias] [with inverse (…)]`` of a select list or RETURNING."""

    expression: Expression
    alias: str | None = None
    inverse: tuple[Assignment, ...] = ()


@record(frozen=True, slots=True)
class ResultStar(Node):
    """``*`` or ``t.*`` of a select list or RETURNING."""

    table: str | None = None


@record(frozen=True, slots=True)
class GroupingSet(Node):
    """``(a, b)`` or ``()`` as an element of GROUP BY."""

    expressions: tuple[Expression, ...] = ()


@record(frozen=True, slots=True)
class Rollup(Node):
    """``rollup (…)``: every prefix of the elements."""

    elements: tuple[GroupingSet, ...]


@record(frozen=True, slots=True)
class Cube(Node):
    """``cube (…)``: every subset of the elements."""

    elements: tuple[GroupingSet, ...]


@record(frozen=True, slots=True)
class GroupingSets(Node):
    """``grouping sets (…)``: the union of its elements."""

    elements: tuple[GroupingSet | Rollup | Cube | GroupingSets, ...]


GroupingElement: TypeAlias = Expression | GroupingSet | Rollup | Cube | GroupingSets


@record(frozen=True, slots=True)
class MembershipFlag(Node):
    """``exists [left|right] as name`` after a join or set operator; side None if not written."""

    name: str
    side: Side | None = None


@record(frozen=True, slots=True)
class TableReference(Relation):
    """``[schema.]name [as alias [(columns)]]``: table, view or CTE."""

    name: str
    schema: str | None = None
    alias: str | None = None
    columns: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class FunctionSource(Relation):
    """``[lateral] f(args) [as alias [(columns)]]``."""

    call: FunctionCall
    alias: str | None = None
    columns: tuple[str, ...] = ()
    lateral: bool = False


@record(frozen=True, slots=True)
class SubquerySource(Relation):
    """``[lateral] (query) [as alias [(columns)]]``."""

    query: Query | DataModification
    alias: str | None = None
    columns: tuple[str, ...] = ()
    lateral: bool = False


@record(frozen=True, slots=True)
class Join(Relation):
    """``left kind join right [on …|using (…)] [exists … as …]``."""

    kind: JoinKind
    left: Relation
    right: Relation
    condition: Expression | None = None
    using: tuple[str, ...] = ()
    natural: bool = False
    flags: tuple[MembershipFlag, ...] = ()


@record(frozen=True, slots=True)
class Select(Node):
    """``select … from … where … group by … having … window … qualify … with schema …``."""

    items: tuple[ResultColumn | ResultStar, ...]
    source: Relation | None = None
    where: Expression | None = None
    group_by: tuple[GroupingElement, ...] = ()
    having: Expression | None = None
    windows: tuple[WindowDefinition, ...] = ()
    qualify: Expression | None = None
    distinct: bool = False
    schema_path: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class Values(Node):
    """``values (…), (…)``."""

    rows: tuple[tuple[Expression, ...], ...]


@record(frozen=True, slots=True)
class SetOperation(Node):
    """``left operator [all] [flags] right``; ``distinct`` unless ALL."""

    operator: SetOperator
    left: QueryBody
    right: QueryBody
    distinct: bool = True
    flags: tuple[MembershipFlag, ...] = ()


class Materialization(StrEnum):
    """The hint on a CTE."""

    MATERIALIZED = "materialized"
    NOT_MATERIALIZED = "not materialized"


@record(frozen=True, slots=True)
class CommonTableExpression(Node):
    """``name [(columns)] as [[not] materialized] (query)``."""

    name: str
    query: Query | DataModification
    columns: tuple[str, ...] = ()
    materialization: Materialization | None = None


@record(frozen=True, slots=True)
class WithClause(Node):
    """``with [recursive] … [option (maxrecursion n)]``; 0 means no limit."""

    members: tuple[CommonTableExpression, ...]
    recursive: bool = False
    max_recursion: int | None = None


@record(frozen=True, slots=True)
class Query(Statement):
    """``[with …] body [order by …] [limit … [offset …]] [with defaults (…)]``."""

    body: QueryBody
    with_clause: WithClause | None = None
    order_by: tuple[OrderingTerm, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
    defaults: tuple[Assignment, ...] = ()


QueryBody: TypeAlias = "Select | Values | SetOperation | Query | DataModification"
