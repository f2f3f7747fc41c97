"""Order from an index: a sort that an access path makes needless is dropped, or its last term.

Below the sort only operators that keep order may stand: filters, projections, joins that look
something up for each row of their left side, groupings by what is sorted by.
The module is asked again, now with the ordering: it weighs a walk along an
index against reading otherwise and sorting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quereus_store.modules.contract import ColumnOrder
from quereus_store.plan import nodes
from quereus_store.plan.conditions import conjuncts
from quereus_store.plan.costs import work
from quereus_store.plan.expressions import BoundExpression, ColumnRef, Literal, SortTerm
from quereus_store.plan.optimizer import RuleContext
from quereus_store.plan.orders import KEEPS_LEFT_ORDER, ascending_key, equal_on_left, groups_together
from quereus_store.plan.rules.access import index_access, offers_of, request_access, with_rest
from quereus_store.plan.rules.joins import as_hash_join


def use_order(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Drop every sort that some way into its table replaces."""
    return _rewrite(plan, context, None)


def _rewrite(plan: nodes.PlanNode, context: RuleContext, limit: int | None) -> nodes.PlanNode:
    if isinstance(plan, nodes.Limit):
        inner_limit = _row_limit(plan)
        return nodes.map_inputs(plan, lambda child: _rewrite(child, context, inner_limit))
    if isinstance(plan, nodes.Project):
        return nodes.map_inputs(plan, lambda child: _rewrite(child, context, limit))
    if isinstance(plan, nodes.Sort):
        ordered = _ordered(plan.input, plan.terms, context, limit)
        if ordered is not None:
            return ordered
        plan = _without_given_order(plan, context)
    return nodes.map_inputs(plan, lambda child: _rewrite(child, context, None))


def _without_given_order(sort: nodes.Sort, context: RuleContext) -> nodes.Sort:
    """The sort without its last term where rows come in that order anyway: sorts are stable."""
    *others, last = sort.terms
    if not others or last.descending or last.nulls_last:
        return sort
    if ascending_key(sort.input, last.expression, last.using, context.services) is None:
        return sort
    return replace(sort, terms=tuple(others))


def ordered_input(sort: nodes.Sort, context: RuleContext, limit: int | None = None) -> nodes.PlanNode | None:
    """The input of a sort read in the order that is wanted; None where that does not come of itself."""
    return _ordered(sort.input, sort.terms, context, limit)


def _row_limit(plan: nodes.Limit) -> int | None:
    if isinstance(plan.count, Literal) and isinstance(plan.count.value, int) and plan.offset is None:
        return plan.count.value
    return None


def _ordered(
    plan: nodes.PlanNode, terms: Sequence[SortTerm], context: RuleContext, limit: int | None
) -> nodes.PlanNode | None:
    """The plan changed so that its rows come in order; None where that is not to be had or not worth it."""
    if isinstance(plan, nodes.Project):
        mapping = dict(zip((column.id for column in plan.columns), plan.expressions, strict=True))
        inner_terms = []
        for term in terms:
            source = nodes.substitute(term.expression, mapping)
            inner_terms.append(SortTerm(source, term.descending, term.nulls_last, term.using))
        inner = _ordered(plan.input, inner_terms, context, limit)
        return None if inner is None else nodes.map_inputs(plan, lambda _: inner)
    if isinstance(plan, nodes.Aggregate):
        return _ordered_groups(plan, terms, context)
    if isinstance(plan, nodes.IndexJoin | nodes.Join | nodes.HashJoin | nodes.MergeJoin):
        return _ordered_join(plan, terms, context, limit)
    if isinstance(plan, nodes.Filter) and not isinstance(plan.input, _READING):
        below = _ordered(plan.input, terms, context, limit)
        return None if below is None else replace(plan, input=below)
    predicates: list[BoundExpression] = []
    while isinstance(plan, nodes.Filter):
        predicates += conjuncts(plan.predicate)
        plan = plan.input
    scan = _original_scan(plan, predicates)
    if scan is None:
        return None
    ordering = _column_orders(scan, terms)
    if ordering is None:
        return None
    offers = list(offers_of(scan, predicates))
    access = request_access(scan, offers, predicates, context, ordering, limit)
    if not access.ordered:
        return None
    return with_rest(index_access(scan, offers, access), predicates)


_READING = (nodes.TableScan, nodes.IndexAccess, nodes.Filter)


def _ordered_groups(
    plan: nodes.Aggregate, terms: Sequence[SortTerm], context: RuleContext
) -> nodes.PlanNode | None:
    """Groups in the order of their keys, if their rows can be read so at no cost."""
    if plan.sets is not None or not plan.keys:
        return None
    sources = dict(zip((column.id for column in plan.columns), plan.keys, strict=False))
    inner_terms = []
    for term in terms:
        if not isinstance(term.expression, ColumnRef) or term.expression.id not in sources:
            return None
        source = sources[term.expression.id]
        inner_terms.append(SortTerm(source, term.descending, term.nulls_last, term.using))
    inner = _ordered(plan.input, inner_terms, context, None)
    if inner is None or not _no_dearer(inner, plan.input, context):
        return None
    if not groups_together(inner, plan.keys, plan.using, context.services):
        return None
    return replace(plan, input=inner, streamed=True)


def _ordered_join(
    plan: nodes.IndexJoin | nodes.Join | nodes.HashJoin | nodes.MergeJoin,
    terms: Sequence[SortTerm],
    context: RuleContext,
    limit: int | None,
) -> nodes.PlanNode | None:
    """A join in the order of its left side, if that can be read so at no cost or for few rows."""
    if plan.kind not in KEEPS_LEFT_ORDER:
        return None
    own = {column.id for column in plan.left.columns}
    inner_terms = []
    for term in terms:
        expression = term.expression
        if isinstance(expression, ColumnRef) and expression.id not in own:
            equal = equal_on_left(plan, expression, term.using)
            expression = expression if equal is None else equal
        inner_terms.append(replace(term, expression=expression))
    if not all(nodes.referenced_columns(term.expression) <= own for term in inner_terms):
        return None
    left = _ordered(plan.left, inner_terms, context, limit)
    if left is None or (limit is None and not _no_dearer(left, plan.left, context)):
        return None
    changed = replace(plan, left=left)
    if isinstance(changed, nodes.MergeJoin):
        key = ascending_key(left, changed.left_order, changed.using[0], context.services)
        return changed if key is not None else as_hash_join(changed)
    return changed


def _no_dearer(plan: nodes.PlanNode, before: nodes.PlanNode, context: RuleContext) -> bool:
    return work(plan, context.estimates) <= 1.1 * work(before, context.estimates) + 1.0


def _original_scan(plan: nodes.PlanNode, predicates: list[BoundExpression]) -> nodes.TableScan | None:
    """The bare scan of a table access; the conditions it already serves join the predicates."""
    if isinstance(plan, nodes.TableScan):
        return plan
    if isinstance(plan, nodes.IndexAccess):
        predicates += plan.conditions
        return nodes.TableScan(plan.columns, plan.table, plan.positions, plan.alias, plan.committed)
    return None


def _column_orders(scan: nodes.TableScan, terms: Sequence[SortTerm]) -> list[ColumnOrder] | None:
    positions = dict(zip((column.id for column in scan.columns), scan.positions, strict=True))
    orders = []
    for term in terms:
        expression = term.expression
        if isinstance(expression, Literal):
            continue
        if not isinstance(expression, ColumnRef) or expression.id not in positions:
            return None
        orders.append(ColumnOrder(positions[expression.id], term.descending, term.nulls_last, term.using))
    return orders
