"""Access paths: a filter over a table becomes a key lookup or a range where the module offers one.

The conjuncts that compare a column of the table with something known before the
table is read (a literal, a parameter, a column of an enclosing query) are
offered to the module; what its plan uses moves into the :class:`IndexAccess`,
the rest stays as a filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from quereus_store.modules.contract import (
    AccessKind,
    AccessPlan,
    AccessRequest,
    ColumnConstraint,
    ColumnOrder,
    Comparison,
)
from quereus_store.plan import nodes
from quereus_store.plan.analysis import has_subquery
from quereus_store.plan.conditions import column_comparisons, conjuncts, filtered, membership
from quereus_store.plan.expressions import BoundExpression, ColumnRef, IsTest, Literal, Truth
from quereus_store.plan.implication import implied_indexes
from quereus_store.plan.optimizer import RuleContext
from quereus_store.records import record
from quereus_store.types import ANY, LogicalType
from quereus_store.types.comparison import ComparisonMode, comparison_plan


@record(frozen=True, slots=True)
class Offer:
    """A conjunct as a constraint on a column: what it was, and the values it compares with."""

    conjunct: BoundExpression
    constraint: ColumnConstraint
    values: tuple[BoundExpression, ...]
    column: ColumnRef | None = None


def choose_access(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Replace filtered scans by index accesses."""

    def choose(node: nodes.PlanNode) -> nodes.PlanNode:
        if isinstance(node, nodes.Filter) and isinstance(node.input, nodes.TableScan):
            found = access_table(node.input, conjuncts(node.predicate), context)
            is_scan = isinstance(found, nodes.Filter) and found.input is node.input
            return node if is_scan else found
        return node

    return nodes.bottom_up(plan, choose)


def access_table(
    scan: nodes.TableScan, predicates: Sequence[BoundExpression], context: RuleContext
) -> nodes.PlanNode:
    """The cheapest plan that gives the scan's rows that satisfy the predicates."""
    offers = list(offers_of(scan, predicates))
    access = request_access(scan, offers, predicates, context)
    if access.path.kind is AccessKind.SCAN and not access.path.reverse:
        return filtered(scan, predicates)
    return with_rest(index_access(scan, offers, access), predicates)


def with_rest(access: nodes.IndexAccess, predicates: Sequence[BoundExpression]) -> nodes.PlanNode:
    """An access under a filter of the predicates that it does not serve."""
    rest = [p for p in predicates if not any(p is served for served in access.conditions)]
    return filtered(access, rest)


def request_access(
    scan: nodes.TableScan,
    offers: Sequence[Offer],
    predicates: Sequence[BoundExpression],
    context: RuleContext,
    ordering: Sequence[ColumnOrder] = (),
    limit: int | None = None,
) -> AccessPlan:
    """Ask a table's module for its plan."""
    context.estimates.scan(scan)
    request = AccessRequest(
        constraints=tuple(with_share(offer, context) for offer in offers),
        ordering=tuple(ordering),
        limit=limit,
        implied=implied_indexes(scan, predicates, context),
    )
    return context.services.plan_access(scan.table, request)


def with_share(offer: Offer, context: RuleContext) -> ColumnConstraint:
    """The constraint of an offer with the share of rows that satisfies it, where statistics tell."""
    constraint = offer.constraint
    column = None if offer.column is None else context.estimates.column(offer.column)
    if column is None or column.distinct is None or not column.counted:
        return constraint
    value = offer.values[0]
    if constraint.operator is Comparison.IS_NULL:
        share: float | None = column.nulls
    elif constraint.operator in (Comparison.EQUAL, Comparison.IN):
        share = column.equal(value if constraint.operator is Comparison.EQUAL else None)
    else:
        below = column.below(value, constraint.operator in (Comparison.LESS_OR_EQUAL, Comparison.GREATER))
        less = constraint.operator in (Comparison.LESS, Comparison.LESS_OR_EQUAL)
        share = None if below is None else below if less else column.present - below
    return constraint if share is None else replace(constraint, share=share)


def index_access(scan: nodes.TableScan, offers: Sequence[Offer], access: AccessPlan) -> nodes.IndexAccess:
    """The node for a module's plan."""
    values = [offers[position].values for position in access.prefix]
    several = access.path.kind in (AccessKind.POINTS, AccessKind.RANGES)
    return nodes.IndexAccess(
        scan.columns,
        scan.table,
        scan.positions,
        access,
        prefix=() if several else tuple(alternatives[0] for alternatives in values),
        alternatives=tuple(values) if several else (),
        lower=None if access.lower is None else offers[access.lower].values[0],
        upper=None if access.upper is None else offers[access.upper].values[0],
        alias=scan.alias,
        committed=scan.committed,
        conditions=_served(offers, access),
    )


def _served(offers: Sequence[Offer], access: AccessPlan) -> tuple[BoundExpression, ...]:
    used = {*access.prefix, access.lower, access.upper}
    return tuple(offer.conjunct for index, offer in enumerate(offers) if index in used)


def offers_of(scan: nodes.TableScan, predicates: Sequence[BoundExpression]) -> Iterator[Offer]:
    """The predicates that a key of the table might serve, as constraints on its columns."""
    positions = dict(zip([column.id for column in scan.columns], scan.positions, strict=True))
    own = frozenset(positions)
    for predicate in predicates:
        if has_subquery(predicate):
            continue
        for comparison in column_comparisons(predicate, own):
            if seekable(comparison.column.type, comparison.value.type, comparison.operator):
                constraint = ColumnConstraint(
                    positions[comparison.column.id], Comparison(comparison.operator), comparison.using
                )
                yield Offer(predicate, constraint, (comparison.value,), comparison.column)
        yield from _membership_offers(predicate, own, positions)
        if isinstance(predicate, IsTest) and predicate.test is Truth.NULL and not predicate.negated:
            operand = predicate.operand
            if isinstance(operand, ColumnRef) and operand.id in own:
                null = Literal(operand.type, True, None, None)
                yield Offer(
                    predicate, ColumnConstraint(positions[operand.id], Comparison.IS_NULL), (null,), operand
                )


def _membership_offers(
    predicate: BoundExpression, own: frozenset[int], positions: dict[int, int]
) -> Iterator[Offer]:
    """A conjunct ``column in (...)`` as a constraint."""
    member = membership(predicate, own)
    if member is None or not isinstance(member.operand, ColumnRef):
        return
    if all(seekable(member.operand.type, item.type, "=") for item in member.items):
        position = positions[member.operand.id]
        constraint = ColumnConstraint(position, Comparison.IN, member.using, values=len(member.items))
        yield Offer(predicate, constraint, member.items, member.operand)


def seekable(column: LogicalType, value: LogicalType, operator: str) -> bool:
    """Whether a key over the column's values finds just what the comparison would.

    Values of one comparison family do; where only equality is native, only
    equality does.  Two documents or durations compare as their keys do.
    """
    plan = comparison_plan(column, value)
    if plan.left_cast is not None or plan.right_cast is not None:
        return False
    if plan.mode in (ComparisonMode.NATIVE, ComparisonMode.TEXT):
        return True
    if plan.mode in (ComparisonMode.JSON, ComparisonMode.TIMESPAN):
        return column is value
    return operator == "=" and plan.equality_is_native and column is not ANY
