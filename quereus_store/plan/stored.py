"""Stored queries: tables whose rows always are those of a plan, and what else can be had from them.

Whoever keeps such tables lends them to the rules as :class:`StoredQuery`; rules then read the table
where they find its query, or one that follows from it.

To find out, joins, filters and projections are taken apart into a :class:`Block`: the tables that
are read, all conditions on their rows, and what each output column is made of.  A block *follows* from
another if it reads the same tables and has at least the same conditions; an outer join in it has to be
the same one, but for conditions on the side of which all rows are kept::

    select i.id, g.name from item i join grp g on g.id = i.grp                      the stored one
    select g.name from grp g, item i where i.grp = g.id and i.id < 10               follows

What is left of it (:class:`Remainder`) has to be said in terms of the stored columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

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
    """Joins, filters and projections taken apart.

    ``relations`` are joined with each other and meet all ``conditions``.  ``made`` says what the columns of
    projections are made of, in columns of the scans.
    """

    relations: tuple[nodes.TableScan | OuterJoin, ...]
    conditions: tuple[BoundExpression, ...]
    made: Mapping[int, BoundExpression]

    @property
    def scans(self) -> tuple[nodes.TableScan, ...]:
        """All that it reads, both sides of outer joins included."""
        found: list[nodes.TableScan] = []
        for relation in self.relations:
            if isinstance(relation, OuterJoin):
                found += (*relation.kept.scans, *relation.optional.scans)
            else:
                found.append(relation)
        return tuple(found)

    @property
    def tables(self) -> frozenset[tuple[str, str]]:
        """The tables that it reads."""
        return frozenset([(scan.table.schema, scan.table.name) for scan in self.scans])

    def expanded(self, expression: BoundExpression) -> BoundExpression:
        """An expression over the block's output in columns of its scans."""
        return substitute(expression, dict(self.made))


@record(frozen=True, slots=True)
class OuterJoin:
    """An outer join in a block: all rows of one side, with those of the other that meet the conditions.

    ``full``: all rows of the other side, too.
    """

    kept: Block
    optional: Block
    conditions: tuple[BoundExpression, ...]
    full: bool

    @property
    def padded(self) -> tuple[Block, ...]:
        """The sides in whose place NULLs may stand."""
        return (self.kept, self.optional) if self.full else (self.optional,)


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
    if isinstance(plan, nodes.Join) and plan.kind in _JOINED:
        if plan.lateral or plan.left_flag is not None or plan.right_flag is not None:
            return None
        left, right = block_of(plan.left), block_of(plan.right)
        if left is None or right is None:
            return None
        return _JOINED[plan.kind](plan, left, right)
    return None


def _inner(plan: nodes.Join, left: Block, right: Block) -> Block:
    made = {**left.made, **right.made}
    joined = Block(left.relations + right.relations, left.conditions + right.conditions, made)
    own = tuple(map(joined.expanded, conjuncts(plan.condition)))
    return replace(joined, conditions=joined.conditions + own)


def _outer(plan: nodes.Join, left: Block, right: Block) -> Block | None:
    kept, optional = (right, left) if plan.kind is JoinKind.RIGHT else (left, right)
    made = {**kept.made, **optional.made}
    conditions = tuple([substitute(each, made) for each in conjuncts(plan.condition)])
    join = OuterJoin(kept, optional, conditions, plan.kind is JoinKind.FULL)
    for side in join.padded:
        for column, expression in side.made.items():
            if not isinstance(expression, ColumnRef):
                return None  # NULL where no row is: nothing over the join can be said to make it
            made[column] = replace(expression, nullable=True)
    return Block((join,), (), made)


_JOINED: Mapping[JoinKind, Callable[[nodes.Join, Block, Block], Block | None]] = MappingProxyType(
    {
        JoinKind.INNER: _inner,
        JoinKind.CROSS: _inner,
        JoinKind.LEFT: _outer,
        JoinKind.RIGHT: _outer,
        JoinKind.FULL: _outer,
    }
)


@record(frozen=True, slots=True)
class Remainder:
    """How a block follows from a stored one.

    ``names`` leads from the stored block's columns to those of the block; ``conditions`` are what the
    block asks for beyond the stored one; ``own`` are all columns of the block's scans.
    """

    block: Block
    stored: Block
    names: Mapping[int, BoundExpression]
    conditions: tuple[BoundExpression, ...]
    own: frozenset[int]

    def translated(self, expression: BoundExpression) -> BoundExpression:
        """An expression over the stored block's output in columns of the block's scans."""
        return substitute(self.stored.expanded(expression), dict(self.names))


def remainder(block: Block, stored: Block) -> Remainder | None:
    """How a block follows from a stored one; None where it does not."""
    match = _matched(block, stored)
    if match is None:
        return None
    ids = frozenset([column.id for scan in block.scans for column in scan.columns])
    return Remainder(block, stored, match.names, tuple(match.rest), ids)


@record(frozen=True, slots=True)
class _Match:
    """The block's columns for the stored one's, and the conditions that the block has beyond."""

    names: dict[int, ColumnRef]
    rest: list[BoundExpression]


def _matched(block: Block, stored: Block) -> _Match | None:
    if len(block.relations) != len(stored.relations):
        return None
    names: dict[int, ColumnRef] = {}
    rest: list[BoundExpression] = []
    left = list(block.relations)
    for relation in stored.relations:
        for place, own in enumerate(left):
            match = _matched_relation(own, relation)
            if match is not None:
                names.update(match.names)
                rest += match.rest
                del left[place]
                break
        else:
            return None
    more = _without(block.conditions, stored.conditions, names)
    return None if more is None else _Match(names, rest + more)


def _matched_relation(own: nodes.TableScan | OuterJoin, stored: nodes.TableScan | OuterJoin) -> _Match | None:
    if isinstance(own, OuterJoin) and isinstance(stored, OuterJoin):
        return _matched_outer(own, stored)
    if isinstance(own, OuterJoin) or isinstance(stored, OuterJoin):
        return None
    if own.table is not stored.table or own.positions != stored.positions:
        return None
    pairs = zip(stored.columns, own.columns, strict=True)
    return _Match({column.id: reference(mine) for column, mine in pairs}, [])


def _matched_outer(own: OuterJoin, stored: OuterJoin) -> _Match | None:
    """The same join; its kept side may have more conditions, which as well can stand over it."""
    kept, optional = _matched(own.kept, stored.kept), _matched(own.optional, stored.optional)
    if own.full is not stored.full or kept is None or optional is None or optional.rest:
        return None
    if own.full and kept.rest:
        return None
    names = {**kept.names, **optional.names}
    if _without(own.conditions, stored.conditions, names) != []:
        return None
    for side in (kept, optional) if own.full else (optional,):
        names.update({column: replace(mine, nullable=True) for column, mine in side.names.items()})
    return _Match(names, kept.rest)


def _without(
    conditions: Sequence[BoundExpression],
    stored: Sequence[BoundExpression],
    names: Mapping[int, BoundExpression],
) -> list[BoundExpression] | None:
    """The conditions that are not among the stored ones; None where one of these is missing."""
    rest = list(conditions)
    for condition in stored:
        wanted = substitute(condition, dict(names))
        found = next((each for each in rest if _same(each, wanted)), None)
        if found is None:
            return None
        rest.remove(found)
    return rest


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
