"""Order from an index: a sort that an access path makes needless is dropped, or its last term.

Below the sort only operators that keep order may stand: filters, projections, joins that look
something up for each row of their left side, groupings by what is sorted by.
The module is asked again, now with the ordering: it weighs a walk along an
index against reading otherwise and sorting.

A grouping of which only the first groups are wanted is like a sort: where an index brings the rows
of a group together, the groups come one after the other and reading stops with the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from quereus_store.modules.contract import ColumnOrder
from quereus_store.plan import nodes
from quereus_store.plan.conditions import conjuncts
from quereus_store.plan.costs import work
from quereus_store.plan.expressions import BoundExpression, ColumnRef, Literal, SortTerm, reference
from quereus_store.plan.optimizer import RuleContext
from quereus_store.plan.orders import KEEPS_LEFT_ORDER, ascending_key, equal_on_left, groups_together
from quereus_store.plan.rules.access import index_access, offers_of, request_access, with_rest
from quereus_store.plan.rules.joins import as_hash_join

_MISJUDGED = 4.0
"""So many times more rows than estimated may have to be read before a limit is met."""


def use_order(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Drop every sort that some way into its table replaces."""
    return _rewrite(plan, context, None)


def _rewrite(plan: nodes.PlanNode, context: RuleContext, limit: int | None) -> nodes.PlanNode:
    if isinstance(plan, nodes.Limit):
        inner_limit = _row_limit(plan)
        return nodes.map_inputs(plan, lambda child: _rewrite(child, context, inner_limit))
    if isinstance(plan, nodes.Project):
        return nodes.map_inputs(plan, lambda child: _rewrite(child, context, limit))
    if isinstance(plan, nodes.Aggregate) and limit is not None:
        plan = _first_groups(plan, limit, context) or plan
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
    """How many rows a limit lets be read, those that it passes over included; None if unknown or all."""
    rows = 0
    for bound in (plan.count, plan.offset):
        if bound is None and bound is plan.offset:
            continue
        if not isinstance(bound, Literal) or not isinstance(bound.value, int) or bound.value < 0:
            return None
        rows += bound.value
    return rows


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
        return _ordered_groups(plan, terms, context, limit)
    if isinstance(plan, nodes.IndexJoin | nodes.Join | nodes.HashJoin | nodes.MergeJoin):
        return _ordered_join(plan, terms, context, limit)
    if isinstance(plan, nodes.Filter) and not isinstance(plan.input, _READING):
        # How many groups meet a HAVING nobody knows: few, where duplicates are looked for.
        before = None if isinstance(_below(plan), nodes.Aggregate) else limit
        below = _ordered(plan.input, terms, context, before)
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
    plan: nodes.Aggregate, terms: Sequence[SortTerm], context: RuleContext, limit: int | None
) -> nodes.Aggregate | None:
    """Groups in the order of their keys, if their rows can be read so at no cost or a limit stops early."""
    if plan.sets is not None or not plan.keys:
        return None
    sources = dict(zip((column.id for column in plan.columns), plan.keys, strict=False))
    inner_terms = []
    for term in terms:
        if not isinstance(term.expression, ColumnRef) or term.expression.id not in sources:
            return None
        source = sources[term.expression.id]
        inner_terms.append(SortTerm(source, term.descending, term.nulls_last, term.using))
    wanted = None if limit is None or not _reads_one_table(plan.input) else _rows_of(plan, limit, context)
    inner = _ordered(plan.input, inner_terms, context, wanted)
    if inner is None or not groups_together(inner, plan.keys, plan.using, context.services):
        return None
    if not _no_dearer(inner, plan.input, context) and not (
        wanted is not None and _stops_early(inner, plan.input, wanted, context)
    ):
        return None
    return replace(plan, input=inner, streamed=True)


def _first_groups(plan: nodes.Aggregate, limit: int, context: RuleContext) -> nodes.Aggregate | None:
    """A grouping, of which so many groups are wanted, along an index that brings its groups together."""
    if plan.sets is not None or not plan.keys or not _reads_one_table(plan.input):
        return None
    if groups_together(plan.input, plan.keys, plan.using, context.services):
        return None
    keys = list(zip(plan.keys, plan.using, strict=True))
    if not all(isinstance(key, ColumnRef) for key, _ in keys):
        return None
    outputs = [reference(column) for column in plan.columns[: len(keys)]]
    for order in _key_orders(plan, context):
        terms = [SortTerm(outputs[place], falls, falls, keys[place][1]) for place, falls in order]
        found = _ordered_groups(plan, terms, context, limit)
        if found is not None:
            return found
    return None


def _key_orders(plan: nodes.Aggregate, context: RuleContext) -> list[list[tuple[int, bool]]]:
    """How the indexes of the table that is read have the keys: their places, and which of them descend."""
    below: nodes.PlanNode = plan.input
    sources = [key for key in plan.keys if isinstance(key, ColumnRef)]
    while isinstance(below, nodes.Project | nodes.Filter):
        if isinstance(below, nodes.Project):
            inner = dict(zip((column.id for column in below.columns), below.expressions, strict=True))
            found = [inner.get(source.id) for source in sources]
            sources = [source for source in found if isinstance(source, ColumnRef)]
        below = below.input
    assert isinstance(below, nodes.TableScan | nodes.IndexAccess)
    positions = dict(zip((column.id for column in below.columns), below.positions, strict=True))
    places = {positions.get(source.id): place for place, source in enumerate(sources)}
    if len(places) < len(plan.keys) or None in places:
        return []
    orders = []
    for index in below.table.indexes:
        first = index.parts[: len(places)]
        if {part.column for part in first} == places.keys():
            orders.append([(places[part.column], part.descending) for part in first])
    return orders


def _reads_one_table(plan: nodes.PlanNode) -> bool:
    """Whether rows are of one table, so that reading fewer of them is all that there is to save."""
    return isinstance(_below(plan), nodes.TableScan | nodes.IndexAccess)


def _below(plan: nodes.PlanNode) -> nodes.PlanNode:
    """What stands below projections and filters."""
    while isinstance(plan, nodes.Project | nodes.Filter):
        plan = plan.input
    return plan


def _rows_of(plan: nodes.Aggregate, groups: int, context: RuleContext) -> int:
    """How many rows so many groups may have; one more row tells that the last one is complete."""
    rows = context.estimates.rows(plan.input)
    return ceil(groups * rows / context.estimates.rows(plan)) + 1


def _stops_early(plan: nodes.PlanNode, other: nodes.PlanNode, wanted: int, context: RuleContext) -> bool:
    """Whether it is far less work to read so many rows of one plan than all of another."""
    share = min(1.0, wanted / context.estimates.rows(plan))
    return _MISJUDGED * share * work(plan, context.estimates) < work(other, context.estimates)


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
