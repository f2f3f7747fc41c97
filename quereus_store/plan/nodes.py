"""Plan nodes: relational operators, from what the binder writes to what runs.

One family of immutable nodes serves both as logical and as physical plan.  The
binder uses the logical ones; rules replace some of them by physical ones
(:class:`IndexAccess`, :class:`HashJoin`, ...) that say *how*.  Each node lists
its output ``columns`` in order.  The column numbers of different nodes never
clash; an operator that passes a column on keeps its number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import field, fields, replace
from enum import StrEnum
from operator import is_not
from typing import Any

from quereus_store.errors import SourcePosition
from quereus_store.functions.registry import TableFunction
from quereus_store.modules.contract import AccessPlan
from quereus_store.plan.expressions import (
    SUBQUERIES,
    AggregateCall,
    BoundExpression,
    Case,
    Column,
    ColumnRef,
    FieldsOf,
    SortTerm,
    map_children,
    map_value,
    outermost_first,
    subplans,
    walk,
    with_changes,
)
from quereus_store.records import record
from quereus_store.schema.objects import TableSchema


@record(frozen=True, slots=True)
class PlanNode:
    """Base of all plan nodes; ``columns`` is the output, in order."""

    columns: tuple[Column, ...]


@record(frozen=True, slots=True)
class TableScan(PlanNode):
    """All rows of a table; one column per table column that is kept, ``positions`` says which.

    ``committed`` reads the state before the current transaction.
    """

    table: TableSchema
    positions: tuple[int, ...]
    alias: str | None = None
    committed: bool = False


@record(frozen=True, slots=True)
class IndexAccess(PlanNode):
    """Physical: a table read through an access path.

    ``prefix`` gives the values of the pinned key parts (for POINTS and RANGES
    exactly one of them is a list of alternatives in ``alternatives``),
    ``lower`` and ``upper`` the bounds of the next part; ``conditions`` are the
    predicates that all this stands for.
    """

    table: TableSchema
    positions: tuple[int, ...]
    access: AccessPlan
    prefix: tuple[BoundExpression, ...]
    alternatives: tuple[tuple[BoundExpression, ...], ...] = ()
    lower: BoundExpression | None = None
    upper: BoundExpression | None = None
    alias: str | None = None
    committed: bool = False
    conditions: tuple[BoundExpression, ...] = ()


@record(frozen=True, slots=True)
class Values(PlanNode):
    """Literal rows; with no columns and one row it is the input of a query without FROM."""

    rows: tuple[tuple[BoundExpression, ...], ...]


@record(frozen=True, slots=True)
class ParameterRows(PlanNode):
    """The rows of parameters that a statement is run for (executemany).

    Column i is the parameter in slot ``slots[i]``; only slots that are read are listed.
    """

    slots: tuple[int | str, ...]


@record(frozen=True, slots=True)
class GivenRows(PlanNode):
    """The rows that whoever runs the program hands over: the list ``rt.given[slot]``.

    ``estimate`` says about how many there will be.
    """

    slot: int
    estimate: float = 1.0


@record(frozen=True, slots=True)
class TableFunctionScan(PlanNode):
    """The rows of a table-valued function; arguments may refer to columns on its left (lateral)."""

    function: TableFunction
    arguments: tuple[BoundExpression, ...]
    alias: str | None = None
    position: SourcePosition | None = field(default=None, compare=False)


@record(frozen=True, slots=True)
class Filter(PlanNode):
    """Rows for which the predicate is true."""

    input: PlanNode
    predicate: BoundExpression


@record(frozen=True, slots=True)
class Project(PlanNode):
    """One expression per output column."""

    input: PlanNode
    expressions: tuple[BoundExpression, ...]


class JoinKind(StrEnum):
    """The kinds of join; SEMI and ANTI keep left rows with and without a match."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    CROSS = "cross"
    SEMI = "semi"
    ANTI = "anti"


SEMI_JOINS = frozenset({JoinKind.SEMI, JoinKind.ANTI})
"""Joins that give rows of their left side only."""


@record(frozen=True, slots=True)
class Join(PlanNode):
    """A join; columns are the left's, the right's, then the match flags.

    ``lateral``: the right side uses columns of the left.  ``left_flag`` /
    ``right_flag`` are the numbers of the existence columns, if asked for.
    """

    kind: JoinKind
    left: PlanNode
    right: PlanNode
    condition: BoundExpression | None = None
    lateral: bool = False
    left_flag: int | None = None
    right_flag: int | None = None


@record(frozen=True, slots=True)
class HashJoin(PlanNode):
    """Physical: equality join by a hash table over the right side's keys.

    ``using`` holds the collation of each key pair, ``residual`` the rest of the condition.
    """

    kind: JoinKind
    left: PlanNode
    right: PlanNode
    left_keys: tuple[BoundExpression, ...]
    right_keys: tuple[BoundExpression, ...]
    using: tuple[str, ...]
    residual: BoundExpression | None = None
    left_flag: int | None = None
    right_flag: int | None = None


@record(frozen=True, slots=True)
class MergeJoin(PlanNode):
    """Physical: equality join of two inputs that come in ascending order of their keys.

    Batch by batch of the left only those right rows are kept whose keys lie within it.  The fields are
    those of :class:`HashJoin`; ``left_order`` and ``right_order`` are the columns that come in ascending
    order with the first pair of keys, never NULL.
    """

    kind: JoinKind
    left: PlanNode
    right: PlanNode
    left_keys: tuple[BoundExpression, ...]
    right_keys: tuple[BoundExpression, ...]
    using: tuple[str, ...]
    left_order: BoundExpression
    right_order: BoundExpression
    residual: BoundExpression | None = None
    left_flag: int | None = None
    right_flag: int | None = None


@record(frozen=True, slots=True)
class IndexJoin(PlanNode):
    """Physical: for each batch of left rows, look the right side up by key in one call.

    ``inner`` is an access to the right table whose prefix uses left columns;
    ``inner_filter`` applies to its rows alone, ``residual`` to the pair.
    """

    kind: JoinKind
    left: PlanNode
    inner: IndexAccess
    residual: BoundExpression | None = None
    right_flag: int | None = None


@record(frozen=True, slots=True)
class Aggregate(PlanNode):
    """Grouping: columns are the keys, then the aggregates.

    ``sets`` lists grouping sets as tuples of key positions (None: one set of all
    keys); a key outside the current set is NULL.  ``using`` holds the collation
    of each key.  No keys and no ``sets``: exactly one row.  ``streamed`` (physical): rows
    of a group come one after the other, so that a group is complete when the next begins.
    """

    input: PlanNode
    keys: tuple[BoundExpression, ...]
    aggregates: tuple[AggregateCall, ...]
    using: tuple[str, ...] = ()
    sets: tuple[tuple[int, ...], ...] | None = None
    streamed: bool = False


class FrameUnit(StrEnum):
    """How a window frame counts."""

    ROWS = "rows"
    RANGE = "range"
    GROUPS = "groups"


class FrameBound(StrEnum):
    """Where a window frame begins or ends."""

    UNBOUNDED_PRECEDING = "unbounded preceding"
    PRECEDING = "preceding"
    CURRENT_ROW = "current row"
    FOLLOWING = "following"
    UNBOUNDED_FOLLOWING = "unbounded following"


class FrameExclusion(StrEnum):
    """Which rows a window frame leaves out."""

    NO_OTHERS = "no others"
    CURRENT_ROW = "current row"
    GROUP = "group"
    TIES = "ties"


@record(frozen=True, slots=True)
class Frame:
    """A window frame; offsets are expressions without columns, ``positions`` where they stand."""

    unit: FrameUnit
    start: FrameBound
    end: FrameBound
    start_offset: BoundExpression | None = None
    end_offset: BoundExpression | None = None
    exclusion: FrameExclusion = FrameExclusion.NO_OTHERS
    positions: tuple[SourcePosition | None, SourcePosition | None] = field(
        default=(None, None), compare=False
    )


@record(frozen=True, slots=True)
class WindowCall:
    """One window function: a ranking function by name, or an aggregate."""

    function: Any
    arguments: tuple[BoundExpression, ...]
    frame: Frame
    filter: BoundExpression | None = None
    distinct: bool = False
    ignore_nulls: bool = False
    using: str = "BINARY"
    order: tuple[SortTerm, ...] = ()
    position: SourcePosition | None = field(default=None, compare=False)


@record(frozen=True, slots=True)
class Window(PlanNode):
    """Window functions over one partitioning and ordering; columns are the input's, then one per call."""

    input: PlanNode
    partition: tuple[BoundExpression, ...]
    partition_using: tuple[str, ...]
    order: tuple[SortTerm, ...]
    calls: tuple[WindowCall, ...]


@record(frozen=True, slots=True)
class Distinct(PlanNode):
    """Rows without repeats, first met kept; ``using`` holds the collation of each column."""

    input: PlanNode
    using: tuple[str, ...]


@record(frozen=True, slots=True)
class Sort(PlanNode):
    """Rows in order; stable."""

    input: PlanNode
    terms: tuple[SortTerm, ...]


@record(frozen=True, slots=True)
class Limit(PlanNode):
    """The first ``count`` rows after ``offset``; either may be absent."""

    input: PlanNode
    count: BoundExpression | None
    offset: BoundExpression | None = None


@record(frozen=True, slots=True)
class SingleRow(PlanNode):
    """At most one row: several are the error of a scalar subquery, at ``position``."""

    input: PlanNode
    position: SourcePosition | None = None


@record(frozen=True, slots=True)
class TopN(PlanNode):
    """Physical: Sort and Limit in one."""

    input: PlanNode
    terms: tuple[SortTerm, ...]
    count: BoundExpression
    offset: BoundExpression | None = None


class SetKind(StrEnum):
    """The set operations."""

    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"
    DIFF = "diff"


@record(frozen=True, slots=True)
class SetOperation(PlanNode):
    """Two inputs of equal width, matched by position; ``using`` holds a collation per column.

    ``left_flag`` / ``right_flag`` are the numbers of the membership columns,
    which follow the matched ones in ``columns``.
    """

    kind: SetKind
    all: bool
    left: PlanNode
    right: PlanNode
    using: tuple[str, ...]
    left_flag: int | None = None
    right_flag: int | None = None


@record(frozen=True, slots=True)
class CommonTable:
    """A WITH member: evaluated at most once per execution.

    ``materialized`` says that the statement asks for that; otherwise a rule may
    put the plan in place of a scan of it.  ``shared``: several programs of the
    statement read it, and find the same rows.
    """

    id: int
    name: str
    plan: PlanNode
    materialized: bool = False
    shared: bool = False


@record(frozen=True, slots=True)
class With(PlanNode):
    """Binds common tables, in order, around a body."""

    tables: tuple[CommonTable, ...]
    body: PlanNode


@record(frozen=True, slots=True)
class CommonTableScan(PlanNode):
    """The rows of a common table (or, inside a recursion, its working set), under new column numbers."""

    table_id: int
    name: str


@record(frozen=True, slots=True)
class Recursion(PlanNode):
    """A recursive common table: seed, then ``step`` over the working set ``table_id`` until no row is new.

    ``distinct`` drops rows already emitted.  ``limit`` and ``offset`` bound the
    whole; ``rounds`` is the iteration limit (0: none).
    """

    table_id: int
    name: str
    seed: PlanNode
    step: PlanNode
    distinct: bool
    rounds: int
    limit: BoundExpression | None = None
    offset: BoundExpression | None = None
    position: SourcePosition | None = None


@record(frozen=True, slots=True)
class MutationScan(PlanNode):
    """The RETURNING rows of a data-modifying member; runs once per statement execution."""

    mutation: Any
    mutation_id: int


def _fields_mentioning(*types: str) -> FieldsOf:
    """The fields whose declared type mentions one of these."""
    return FieldsOf(lambda each: any(name in str(each.type) for name in types))


_INPUT_FIELDS = _fields_mentioning("PlanNode", "IndexAccess", "CommonTable")
_EXPRESSION_FIELDS = _fields_mentioning("BoundExpression", "SortTerm", "AggregateCall", "WindowCall")


def inputs(node: PlanNode) -> list[PlanNode]:
    """The plans directly below a node (not those inside its expressions)."""
    found: list[PlanNode] = []
    for name in _INPUT_FIELDS[type(node)]:
        value = getattr(node, name)
        if isinstance(value, tuple):
            found += [table.plan for table in value]
        else:
            found.append(value)
    return found


def expressions(node: PlanNode) -> list[BoundExpression]:
    """The expressions directly in a node."""
    found: list[BoundExpression] = []
    for name in _EXPRESSION_FIELDS[type(node)]:
        value = getattr(node, name)
        if isinstance(value, BoundExpression):
            found.append(value)
        elif value:
            found += _expressions_in(value)
    return found


def _expressions_in(value: Any) -> list[BoundExpression]:
    if isinstance(value, SortTerm):
        return [value.expression]
    if isinstance(value, Frame | WindowCall):
        value = tuple([getattr(value, each.name) for each in fields(value)])
    found: list[BoundExpression] = []
    if isinstance(value, tuple):
        for item in value:
            if isinstance(item, BoundExpression):
                found.append(item)
            else:
                found += _expressions_in(item)
    return found


def walk_plan(node: PlanNode) -> list[PlanNode]:
    """The node and all below it, outermost first, without entering subqueries in expressions."""
    return outermost_first(node, _INPUT_FIELDS, inputs)


def free_columns(node: PlanNode) -> frozenset[int]:
    """Numbers of the columns that a plan uses but does not produce: what it is correlated to."""
    used: set[int] = set()
    produced: set[int] = set()
    for part in walk_plan(node):
        produced.update([column.id for column in part.columns])
        for expression in expressions(part):
            used |= referenced_columns(expression)
    return frozenset(used - produced)


def referenced_columns(expression: BoundExpression) -> set[int]:
    """Numbers of all columns that an expression reads, its subqueries' free ones included."""
    if type(expression) is ColumnRef:
        return {expression.id}
    used: set[int] = set()
    shared: set[int] = set()
    for part in walk(expression):
        if type(part) is ColumnRef:
            used.add(part.id)
        elif isinstance(part, SUBQUERIES):
            used |= free_columns(part.plan)
        elif type(part) is Case and part.shared_id:
            shared.add(part.shared_id)
    return used - shared


def map_inputs(node: PlanNode, function: Callable[[PlanNode], PlanNode]) -> PlanNode:
    """The node with ``function`` applied to each plan directly below; itself if nothing changed."""
    changes: dict[str, Any] = {}
    for name in _INPUT_FIELDS[type(node)]:
        value = getattr(node, name)
        if isinstance(value, tuple):
            changed: Any = _map_tables(value, function)
        else:
            changed = function(value)
        if changed is not value:
            changes[name] = changed
    return with_changes(node, changes) if changes else node


def bottom_up(node: PlanNode, function: Callable[[PlanNode], PlanNode]) -> PlanNode:
    """Apply a function to every node of a plan, inputs before the nodes over them."""
    # As map_inputs, but without a function that refers to itself, which would live until the next collection.
    changes: dict[str, Any] = {}
    for name in _INPUT_FIELDS[type(node)]:
        value = getattr(node, name)
        if isinstance(value, tuple):
            changed: Any = _map_tables(value, lambda child: bottom_up(child, function))
        else:
            changed = bottom_up(value, function)
        if changed is not value:
            changes[name] = changed
    return function(with_changes(node, changes) if changes else node)


def _map_tables(
    tables: tuple[CommonTable, ...], function: Callable[[PlanNode], PlanNode]
) -> tuple[CommonTable, ...]:
    plans = [function(table.plan) for table in tables]
    if all(plan is table.plan for plan, table in zip(plans, tables, strict=True)):
        return tables
    return tuple([replace(table, plan=plan) for plan, table in zip(plans, tables, strict=True)])


def map_expressions(node: PlanNode, function: Callable[[BoundExpression], BoundExpression]) -> PlanNode:
    """The node with ``function`` applied to each expression directly in it."""
    changes: dict[str, Any] = {}
    for name in _EXPRESSION_FIELDS[type(node)]:
        value = getattr(node, name)
        if value is None:
            continue
        changed = function(value) if isinstance(value, BoundExpression) else _map_value(value, function)
        if changed is not value:
            changes[name] = changed
    return with_changes(node, changes) if changes else node


def _map_value(value: Any, function: Callable[[BoundExpression], BoundExpression]) -> Any:
    if isinstance(value, tuple):
        items = [_map_value(item, function) for item in value]
        return tuple(items) if any(map(is_not, items, value)) else value
    if isinstance(value, Frame | WindowCall):
        own = [(each.name, getattr(value, each.name)) for each in fields(value)]
        changes = {name: mapped for name, old in own if (mapped := _map_value(old, function)) is not old}
        return with_changes(value, changes) if changes else value
    return map_value(value, function)


def substitute(expression: BoundExpression, mapping: dict[int, BoundExpression]) -> BoundExpression:
    """The expression with column references replaced by other expressions."""
    if isinstance(expression, ColumnRef):
        return mapping.get(expression.id, expression)
    return map_children(expression, lambda child: substitute(child, mapping))


def count_readers(plan: PlanNode) -> Counter[int]:
    """How many scans of each common table a plan holds, those in subqueries included."""
    counts: Counter[int] = Counter()
    waiting = [plan]
    while waiting:
        for part in walk_plan(waiting.pop()):
            if isinstance(part, CommonTableScan):
                counts[part.table_id] += 1
            for expression in expressions(part):
                waiting += subplans(expression)
    return counts
