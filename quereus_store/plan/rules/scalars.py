"""A correlated scalar subquery becomes a LEFT JOIN: with groups, or with the one row that a key allows.

Two forms are joins in other words::

    select c.id, (select count(*) from task t where t.crew = c.id) from crew c

reads ``task`` once, grouped by what the correlation compares; a row without a group gets
what the aggregate gives for no rows.  And ::

    select t.title, (select c.nick from crew c where c.id = t.crew) from task t

finds at most one row, since ``id`` is a key.  A grouping does all groups where the subquery does
those that are asked for, so it is chosen only where that is less work; a LIMIT over the rows counts.
The query of ``set (a, b) = (query)``, which the binder joins to the rows, becomes a join of the same forms.
Subqueries in branches that may not be evaluated (CASE, COALESCE, AND, OR) stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from quereus_store.plan import nodes
from quereus_store.plan.analysis import has_subquery, holds_unique_key, is_deterministic
from quereus_store.plan.conditions import conjunction, conjuncts, equality, filtered
from quereus_store.plan.correlation import independent
from quereus_store.plan.expressions import (
    AggregateCall,
    BoundExpression,
    Case,
    Coalesce,
    Column,
    ColumnRef,
    Conjunction,
    Disjunction,
    Literal,
    NullIf,
    ScalarSubquery,
    children,
    map_children,
    reference,
)
from quereus_store.plan.nodes import JoinKind
from quereus_store.plan.optimizer import RuleContext
from quereus_store.plan.placement import rows_asked
from quereus_store.plan.rules.decorrelation import less_work, top_down
from quereus_store.plan.rules.joins import KeyPair, key_pairs

_CONDITIONAL = (Case, Coalesce, Conjunction, Disjunction, NullIf)
_NEVER_NULL = frozenset({"count", "total"})


@dataclass(frozen=True, slots=True)
class _Side:
    """What a subquery becomes: a right side to join, the condition, and its columns in a joined row."""

    plan: nodes.PlanNode
    condition: BoundExpression | None
    values: tuple[BoundExpression, ...]

    def joined(self, plan: nodes.PlanNode) -> nodes.Join:
        """The join of the rows of a plan with it."""
        columns = (*plan.columns, *self.plan.columns)
        return nodes.Join(columns, JoinKind.LEFT, plan, self.plan, self.condition)


def join_scalars(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Replace scalar subqueries in projections, filters and groupings."""
    goals = _row_goals(plan, context)
    return top_down(plan, lambda node: _replace(node, goals, context))


def _row_goals(plan: nodes.PlanNode, context: RuleContext) -> dict[int, float]:
    """How many rows are asked of projections that stand under a LIMIT, by node."""
    from quereus_store.plan.rules.ordering import ordered_input

    goals: dict[int, float] = {}
    for node in nodes.walk_plan(plan):
        if not isinstance(node, nodes.Limit) or not isinstance(node.count, Literal):
            continue
        count = node.count.value
        if type(count) is not int:
            continue
        below = node.input
        while isinstance(below, nodes.Project | nodes.Sort):
            if isinstance(below, nodes.Sort) and ordered_input(below, context, count) is None:
                break
            goals[id(below)] = float(count)
            below = below.input
    return goals


def _replace(node: nodes.PlanNode, goals: dict[int, float], context: RuleContext) -> nodes.PlanNode:
    if isinstance(node, nodes.Join):
        return _replace_row(node, context)
    if not isinstance(node, nodes.Project | nodes.Filter | nodes.Aggregate):
        return node
    if isinstance(node.input, nodes.ParameterRows):
        # Expressions over the images of a changed row: their operands are variables, not rows of a plan.
        return node
    found = {id(subquery.plan): subquery for subquery in _evaluated(node)}
    if not found:
        return node
    plan = node.input
    asked = _asked(node)
    goal = goals.get(id(node), float("inf"))
    values: dict[int, BoundExpression] = {}
    for key, subquery in found.items():
        needed = nodes.free_columns(subquery.plan) & {column.id for column in plan.columns}
        runs = min(rows_asked(asked, needed, context), goal)
        side = _side(plan, subquery.plan, runs, context)
        if side is not None:
            plan = side.joined(plan)
            # What the subquery contributes to a comparison is settled; a row without match makes it NULL.
            values[key] = replace(side.values[0], nullable=True, collation=subquery.collation)
    if not values:
        return _tested_last(node)
    changed = nodes.map_expressions(node, lambda expression: _with_values(expression, values))
    if isinstance(changed, nodes.Filter):
        kept = replace(changed, columns=plan.columns, input=plan)
        return nodes.Project(node.columns, kept, tuple(map(reference, node.columns)))
    return replace(changed, input=plan)  # type: ignore[call-arg]


def _asked(node: nodes.Project | nodes.Filter | nodes.Aggregate) -> nodes.PlanNode:
    """The rows that a node's subqueries are evaluated for."""
    if not isinstance(node, nodes.Filter):
        return node.input
    plain = [predicate for predicate in conjuncts(node.predicate) if not has_subquery(predicate)]
    return filtered(node.input, plain)


def _tested_last(node: nodes.PlanNode) -> nodes.PlanNode:
    """A filter that has its conditions with subqueries, which run for its rows, behind the others."""
    if not isinstance(node, nodes.Filter) or not isinstance(node.predicate, Conjunction):
        return node
    return filtered(node.input, sorted(conjuncts(node.predicate), key=has_subquery))


def _replace_row(node: nodes.Join, context: RuleContext) -> nodes.PlanNode:
    """The one row that is joined to each row of the left."""
    row = node.right
    if not (isinstance(row, nodes.SingleRow) and node.lateral and node.kind is JoinKind.LEFT):
        return node
    side = _side(node.left, row.input, context.estimates.rows(node.left), context)
    if side is None:
        return node
    values = [
        replace(value, nullable=True, collation=column.collation)
        for value, column in zip(side.values, row.columns, strict=True)
    ]
    return nodes.Project(node.columns, side.joined(node.left), (*map(reference, node.left.columns), *values))


def _evaluated(node: nodes.PlanNode) -> Iterator[ScalarSubquery]:
    """The scalar subqueries that are evaluated for every row of a node's input."""
    for expression in nodes.expressions(node):
        if isinstance(node, nodes.Filter):
            for conjunct in conjuncts(expression):
                yield from _unconditional(conjunct)
        else:
            yield from _unconditional(expression)


def _unconditional(expression: BoundExpression) -> Iterator[ScalarSubquery]:
    if isinstance(expression, ScalarSubquery):
        yield expression
    elif not isinstance(expression, _CONDITIONAL):
        for child in children(expression):
            yield from _unconditional(child)


def _with_values(expression: BoundExpression, values: dict[int, BoundExpression]) -> BoundExpression:
    if isinstance(expression, ScalarSubquery):
        return values.get(id(expression.plan), expression)
    return map_children(expression, lambda child: _with_values(child, values))


def _side(plan: nodes.PlanNode, subquery: nodes.PlanNode, runs: float, context: RuleContext) -> _Side | None:
    outer = frozenset(column.id for column in plan.columns)
    if not nodes.free_columns(subquery) & outer or not is_deterministic(subquery):
        return None
    return _grouped(plan, subquery, outer, runs, context) or _by_key(plan, subquery, outer, context)


# -- the one row of a key ---------------------------------------------------------------------------


def _by_key(
    plan: nodes.PlanNode, subquery: nodes.PlanNode, outer: frozenset[int], context: RuleContext
) -> _Side | None:
    inner = independent(subquery, outer)
    if inner is None or not inner.conditions:
        return None
    condition = conjunction(inner.conditions)
    pairs, _ = key_pairs(nodes.Join(plan.columns, JoinKind.LEFT, plan, inner.plan, condition), context)
    keys, using = [pair.right for pair in pairs], [pair.using for pair in pairs]
    if not pairs or not holds_unique_key(inner.plan, keys, using):
        return None
    return _Side(inner.plan, condition, tuple(map(reference, subquery.columns)))


# -- groups -----------------------------------------------------------------------------------------


def _grouped(
    plan: nodes.PlanNode, subquery: nodes.PlanNode, outer: frozenset[int], runs: float, context: RuleContext
) -> _Side | None:
    outputs, aggregate = _shape(subquery)
    if aggregate is None or not _reads_own(aggregate, outer):
        return None
    inner = independent(aggregate.input, outer)
    if inner is None or not inner.conditions:
        return None
    join = nodes.Join(plan.columns, JoinKind.LEFT, plan, inner.plan, conjunction(inner.conditions))
    pairs, rest = key_pairs(join, context)
    if rest or not pairs:
        return None
    values = {
        column.id: _value(column, call)
        for column, call in zip(aggregate.columns, aggregate.aggregates, strict=True)
    }
    if None in values.values():
        return None
    groups, condition = _groups(inner.plan, aggregate, pairs, context)
    if not less_work(_runs(pairs, runs, context), subquery, groups, context):
        return None
    results = tuple(nodes.substitute(output, values) for output in outputs)  # type: ignore[arg-type]
    return _Side(groups, condition, results)


def _shape(plan: nodes.PlanNode) -> tuple[Sequence[BoundExpression], nodes.Aggregate | None]:
    """The outputs of a subquery over the single group that it makes of its rows."""
    outputs: Sequence[BoundExpression] = list(map(reference, plan.columns))
    while isinstance(plan, nodes.Project):
        sources = dict(zip((column.id for column in plan.columns), plan.expressions, strict=True))
        outputs = [nodes.substitute(output, sources) for output in outputs]
        plan = plan.input
    if isinstance(plan, nodes.Aggregate) and not plan.keys and plan.sets is None:
        return outputs, plan
    return outputs, None


def _reads_own(aggregate: nodes.Aggregate, outer: frozenset[int]) -> bool:
    return not any(nodes.referenced_columns(call) & outer for call in aggregate.aggregates)


def _value(column: Column, call: AggregateCall) -> BoundExpression | None:
    """An aggregate's value in a joined row, where there is no group that of no rows; None if unknown."""
    read = ColumnRef(column.type, True, column.collation, column.id, column.name)
    if call.function.raises:
        return None
    nothing = call.function.evaluate(*([[]] * max(1, len(call.arguments))))
    if nothing is None:
        return read
    if call.function.name not in _NEVER_NULL:
        return None
    return Coalesce(column.type, False, column.collation, (read, Literal(column.type, False, None, nothing)))


def _groups(
    plan: nodes.PlanNode, aggregate: nodes.Aggregate, pairs: list[KeyPair], context: RuleContext
) -> tuple[nodes.Aggregate, BoundExpression | None]:
    """The grouping by what the correlation compares, and the join's condition."""
    keys: list[tuple[BoundExpression, str]] = []
    columns: list[Column] = []
    conditions: list[BoundExpression] = []
    for pair in pairs:
        if (pair.right, pair.using) not in keys:
            keys.append((pair.right, pair.using))
            own = pair.right
            name = own.name if isinstance(own, ColumnRef) else "key"
            columns.append(Column(context.number(), name, own.type, own.nullable, own.collation))
        column = columns[keys.index((pair.right, pair.using))]
        conditions.append(equality(pair.left, reference(column), pair.using))
    groups = nodes.Aggregate(
        (*columns, *aggregate.columns),
        plan,
        tuple(key for key, _ in keys),
        aggregate.aggregates,
        tuple(using for _, using in keys),
    )
    return groups, conjunction(conditions)


def _runs(pairs: list[KeyPair], runs: float, context: RuleContext) -> float:
    """How often the subquery would run: its results are kept by the outer values."""
    different = 1.0
    for pair in pairs:
        column = context.estimates.column(pair.left)
        if column is None or column.values is None:
            return runs
        different *= column.values
    return min(runs, different)
