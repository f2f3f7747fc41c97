"""Stored queries: tables whose rows always are those of a plan, and what else can be had from them.

Whoever keeps such tables lends them to the rules as :class:`StoredQuery`; rules then read the table
where they find its query, or one that follows from it.

To find out, inner joins, filters and projections are taken apart into a :class:`Block`: the tables that
are read, all conditions on their rows, and what each output column is made of.  A block *follows* from
another if it reads the same tables and has at least the same conditions::

    select i.id, g.name from item i join grp g on g.id = i.grp                      the stored one
    select g.name from grp g, item i where i.grp = g.id and i.id < 10               follows

What is left of it (:class:`Remainder`) has to be said in terms of the stored columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from quereus_store.plan import nodes
from quereus_store.plan.analysis import has_subquery
from quereus_store.plan.conditions import MIRRORED, conjuncts, filtered
from quereus_store.plan.expressions import (
    BoundExpression,
    Column,
    ColumnRef,
    Comparison,
    map_children,
    reference,
)
from quereus_store.plan.nodes import JoinKind, substitute
from quereus_store.records import record
from quereus_store.schema.objects import TableSchema


@record(frozen=True, slots=True)
class StoredQuery:
    """A table that holds the rows of a plan, one column each, in order."""

    table: TableSchema
    plan: nodes.PlanNode


Lender = Callable[[frozenset[tuple[str, str]]], Sequence[StoredQuery]]
"""From the tables that a query reads, the stored queries that read nothing else."""


def nothing_stored(tables: frozenset[tuple[str, str]]) -> Sequence[StoredQuery]:
    """The lender of those who keep no such tables."""
    return ()


# --- blocks -----------------------------------------------------------------------------------------------


@record(frozen=True, slots=True)
class Block:
    """Inner joins, filters and projections taken apart.

    ``made`` says what the columns of projections are made of, in columns of the scans.
    """

    scans: tuple[nodes.TableScan, ...]
    conditions: tuple[BoundExpression, ...]
    made: Mapping[int, BoundExpression]

    @property
    def tables(self) -> frozenset[tuple[str, str]]:
        """What it reads."""
        return frozenset([(scan.table.schema, scan.table.name) for scan in self.scans])

    def expanded(self, expression: BoundExpression) -> BoundExpression:
        """An expression over the block's output in columns of its scans."""
        return substitute(expression, dict(self.made))


def block_of(plan: nodes.PlanNode) -> Block | None:
    """A plan as a block; None where it does anything else."""
    if isinstance(plan, nodes.TableScan):
        return None if plan.committed else Block((plan,), (), {})
    if isinstance(plan, nodes.Filter):
        inner = block_of(plan.input)
        if inner is None:
            return None
        more = tuple(map(inner.expanded, conjuncts(plan.predicate)))
        return replace(inner, conditions=inner.conditions + more)
    if isinstance(plan, nodes.Project):
        inner = block_of(plan.input)
        if inner is None or any(map(has_subquery, plan.expressions)):
            return None
        own = {column.id: inner.expanded(e) for column, e in zip(plan.columns, plan.expressions, strict=True)}
        return replace(inner, made={**inner.made, **own})
    if isinstance(plan, nodes.Join) and plan.kind in (JoinKind.INNER, JoinKind.CROSS):
        if plan.lateral or plan.left_flag is not None or plan.right_flag is not None:
            return None
        left, right = block_of(plan.left), block_of(plan.right)
        if left is None or right is None:
            return None
        made = {**left.made, **right.made}
        joined = Block(left.scans + right.scans, left.conditions + right.conditions, made)
        own_conditions = tuple(map(joined.expanded, conjuncts(plan.condition)))
        return replace(joined, conditions=joined.conditions + own_conditions)
    return None


@record(frozen=True, slots=True)
class Remainder:
    """How a block follows from a stored one.

    ``names`` leads from the stored block's columns to those of the block; ``conditions`` are what the
    block asks for beyond the stored one; ``own`` are all columns of the block's scans.
    """

    block: Block
    stored: Block
    names: dict[int, BoundExpression]
    conditions: tuple[BoundExpression, ...]
    own: frozenset[int]

    def translated(self, expression: BoundExpression) -> BoundExpression:
        """An expression over the stored block's output in columns of the block's scans."""
        return substitute(self.stored.expanded(expression), self.names)


def remainder(block: Block, stored: Block) -> Remainder | None:
    """How a block follows from a stored one; None where it does not."""
    if len(block.scans) != len(stored.scans):
        return None
    names: dict[int, BoundExpression] = {}
    left = list(block.scans)
    for scan in stored.scans:
        match = next(
            (own for own in left if own.table is scan.table and own.positions == scan.positions), None
        )
        if match is None:
            return None
        left.remove(match)
        for column, own in zip(scan.columns, match.columns, strict=True):
            names[column.id] = reference(own)
    rest = list(block.conditions)
    for condition in stored.conditions:
        wanted = substitute(condition, names)
        found = next((each for each in rest if _same(each, wanted)), None)
        if found is None:
            return None
        rest.remove(found)
    ids = frozenset([column.id for scan in block.scans for column in scan.columns])
    return Remainder(block, stored, names, tuple(rest), ids)


def _same(one: BoundExpression, other: BoundExpression) -> bool:
    if one == other:
        return True
    return (
        isinstance(one, Comparison)
        and isinstance(other, Comparison)
        and MIRRORED.get(one.operator) == other.operator
        and (one.left, one.right, one.using) == (other.right, other.left, other.using)
    )


# --- saying it in stored columns --------------------------------------------------------------------------


class Unknown(Exception):
    """Something that the stored columns do not tell."""


Known = Sequence[tuple[BoundExpression, ColumnRef]]
"""Expressions over the scans, each with the stored column that holds its value."""


def in_stored(expression: BoundExpression, known: Known, own: frozenset[int]) -> BoundExpression:
    """An expression over a block's scans, over stored columns instead; raises Unknown."""
    for each, column in known:
        if expression == each:
            return replace(
                column, type=expression.type, nullable=expression.nullable, collation=expression.collation
            )
    if isinstance(expression, ColumnRef):
        if expression.id in own:
            raise Unknown
        return expression
    if has_subquery(expression):
        raise Unknown
    return map_children(expression, lambda child: in_stored(child, known, own))


def scan_of(table: TableSchema, number: Callable[[], int]) -> nodes.TableScan:
    """A scan of a stored query's table."""
    columns = tuple(
        [Column(number(), column.name, column.type, column.nullable, None) for column in table.columns]
    )
    return nodes.TableScan(columns, table, tuple(range(len(columns))))


def column_of(scan: nodes.TableScan, position: int) -> ColumnRef:
    """A reference to a column of a scan."""
    column = scan.columns[position]
    return reference(column)


def narrowed(scan: nodes.TableScan, rest: Remainder, known: Known) -> nodes.PlanNode:
    """The stored rows that meet the conditions which remain; raises Unknown."""
    return filtered(scan, [in_stored(each, known, rest.own) for each in rest.conditions])


# --- the order of rows ------------------------------------------------------------------------------------


def order_matters(node: nodes.PlanNode) -> bool:
    """Whether what a node aggregates hangs on the order of its rows: below it every table stays.

    Rows that a window or ORDER BY leaves unordered are no reason: an index may change their order, too.
    """
    if not isinstance(node, nodes.Aggregate):
        return False
    return any(call.function.ordered or has_subquery(call) for call in node.aggregates)


# --- choice -----------------------------------------------------------------------------------------------

LEAST_WORK = 500.0
"""A query that takes less is not looked at: planning would take longer than running it."""

Cost = Callable[[nodes.PlanNode], float]


def reads_much(plan: nodes.PlanNode, rows: Callable[[TableSchema], float]) -> bool:
    """Whether a plan reads any table that is worth the thought."""
    scans = [node for node in nodes.walk_plan(plan) if isinstance(node, nodes.TableScan)]
    return any(rows(scan.table) >= LEAST_WORK for scan in scans)


def cheapest(plan: nodes.PlanNode, others: Sequence[nodes.PlanNode], cost: Cost) -> nodes.PlanNode | None:
    """The cheapest of some ways to have a plan's rows; None if that is the plan itself."""
    if not others:
        return None
    least = cost(plan)
    if least < LEAST_WORK:
        return None
    best = None
    for other in others:
        price = cost(other)
        if price < least:
            best, least = other, price
    return best
