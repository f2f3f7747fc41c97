"""SELECT: its clauses in their logical order (queries, sections 3 to 9).

The plan grows from the inside: FROM, WHERE, grouping, HAVING, windows, QUALIFY,
projection, ORDER BY, DISTINCT.  The clauses are bound first, since ORDER BY may
still ask for an aggregate or a window that nothing before it needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quereus_store.plan.binder.calls import collation_name, sort_term
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.from_clause import Bound, bind_from
from quereus_store.plan.binder.grouping import (
    GroupedAliasScope,
    GroupedScope,
    Grouping,
    refuse_in_having,
    refuse_in_select,
)
from quereus_store.plan.binder.inverse import check_inverses
from quereus_store.plan.binder.ordering import ordinal_column, output_names
from quereus_store.plan.binder.scopes import AliasScope, FromScope, Scope
from quereus_store.plan.binder.select_list import Item, expand_items, project, project_columns
from quereus_store.plan.binder.syntax import contains_aggregate, mentions_columns, ordinal_of
from quereus_store.plan.binder.windows import WindowCollector
from quereus_store.plan.expressions import BoundExpression, Column, ColumnRef, SortTerm, reference
from quereus_store.plan.nodes import (
    Distinct,
    Filter,
    PlanNode,
    Project,
    Sort,
    referenced_columns,
    substitute,
)
from quereus_store.schema.objects import fold
from quereus_store.sql import nodes


@dataclass(slots=True)
class _Parts:
    """The pieces of a SELECT between binding and assembling."""

    environment: Environment
    scope: FromScope
    items: list[Item]
    windows: WindowCollector
    grouping: Grouping | None = None
    grouped: GroupedScope | None = None

    @property
    def names(self) -> Scope:
        """What the select list sees."""
        return self.scope if self.grouped is None else self.grouped

    def binder(self, scope: Scope | None = None) -> ExpressionBinder:
        """A binder for a clause after grouping."""
        return ExpressionBinder(self.environment, scope or self.names, self.grouping, self.windows)


def bind_select(
    environment: Environment,
    node: nodes.Select,
    outer: Scope | None,
    order_by: Sequence[nodes.OrderingTerm] = (),
) -> PlanNode:
    """A SELECT with the ORDER BY that belongs to it."""
    bound = bind_from(environment, node.source, outer)
    scope = bound.scope(outer)
    plan = _where(environment, bound, scope, node.where)
    items = expand_items(node.items, scope)
    parts = _Parts(environment, scope, items, WindowCollector(environment, node.windows))
    _start_grouping(parts, node, order_by)
    outputs = _outputs(parts)
    if any(isinstance(item, nodes.ResultColumn) and item.inverse for item in node.items):
        check_inverses(node, items, scope, environment.context.registry)
    having = _having(parts, node.having)
    qualify = _qualify(parts, node.qualify, outputs)
    projected = _OutputColumns.of(plan, parts, outputs)
    terms = _order(parts, order_by, projected)
    if parts.grouping is not None:
        plan = parts.grouping.plan(_sort_input(parts, plan, order_by))
    if having is not None:
        plan = Filter(plan.columns, plan, having)
    plan = parts.windows.plan(plan)
    if qualify is not None:
        plan = Filter(plan.columns, plan, qualify)
    return _finish(plan, projected, terms, node.distinct)


def _where(
    environment: Environment, bound: Bound, scope: FromScope, where: nodes.Expression | None
) -> PlanNode:
    if where is None:
        return bound.plan
    return Filter(bound.plan.columns, bound.plan, ExpressionBinder(environment, scope).bind(where))


def _start_grouping(parts: _Parts, node: nodes.Select, order_by: Sequence[nodes.OrderingTerm]) -> None:
    """Decide whether the query groups, and bind its keys."""
    registry = parts.environment.context.registry
    if not node.group_by and node.having is None:
        candidates: list[nodes.Expression] = [item.node for item in parts.items if item.node is not None]
        if not any(item.node is None or mentions_columns(item.node) for item in parts.items):
            # Over a select list of constants an aggregate in ORDER BY makes one group; where columns are
            # selected it only does beside aggregates of theirs.
            candidates += [term.expression for term in order_by]
        if node.qualify is not None:
            candidates.append(node.qualify)
        if not any(contains_aggregate(candidate, registry) for candidate in candidates):
            return
    parts.grouping = Grouping(parts.environment, parts.scope)
    parts.grouping.add_elements(node.group_by, parts.items)
    parts.grouped = GroupedScope(parts.grouping, refuse_in_select)
    parts.windows.scope = GroupedAliasScope(parts.grouped, parts.items)


def _outputs(parts: _Parts) -> list[BoundExpression]:
    """The select list, bound."""
    binder = parts.binder()
    outputs: list[BoundExpression] = []
    for item in parts.items:
        if item.node is not None:
            outputs.append(binder.bind(item.node))
        elif item.column is not None:
            outputs.append(_star_column(parts, item, item.column))
    return outputs


def _star_column(parts: _Parts, item: Item, column: Column) -> BoundExpression:
    if parts.grouping is None or parts.grouped is None:
        return reference(column)
    key = parts.grouping.by_input.get(column.id)
    if key is not None:
        return reference(key)
    name = nodes.ColumnReference(column.name, position=item.position)
    raise parts.grouped.refusal(name, parts.grouping)


def _having(parts: _Parts, having: nodes.Expression | None) -> BoundExpression | None:
    if having is None or parts.grouping is None or parts.grouped is None:
        return None
    scope = GroupedAliasScope(parts.grouped, parts.items, refuse_in_having)
    return ExpressionBinder(parts.environment, scope, parts.grouping).bind(having)


def _qualify(
    parts: _Parts, qualify: nodes.Expression | None, outputs: Sequence[BoundExpression]
) -> BoundExpression | None:
    if qualify is None:
        return None
    shadowed = {fold(column.name) for column in parts.scope.columns}
    names: dict[str, BoundExpression] = {}
    for item, output in zip(parts.items, outputs, strict=True):
        if item.alias is not None and fold(item.alias) not in shadowed:
            names.setdefault(fold(item.alias), output)
    return parts.binder(AliasScope(names, parts.names)).bind(qualify)


# --- projection and order -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _OutputColumns:
    """The output columns and the expressions that they are projected from, hidden ones at the end."""

    parts: _Parts
    inputs: frozenset[int]
    columns: list[Column]
    expressions: list[BoundExpression]
    visible: int

    @staticmethod
    def of(plan: PlanNode, parts: _Parts, outputs: Sequence[BoundExpression]) -> _OutputColumns:
        if parts.grouping is None:
            inputs = plan.columns
        else:
            inputs = (*parts.grouping.key_columns, *parts.grouping.aggregate_columns)
        windows = [column for group in parts.windows.groups for column in group.columns]
        source = PlanNode((*inputs, *windows))
        named = [(item.name, output) for item, output in zip(parts.items, outputs, strict=True)]
        made = project(parts.environment, source, named)
        numbers = frozenset([column.id for column in inputs])
        return _OutputColumns(parts, numbers, list(made.columns), list(outputs), len(outputs))

    def hide(self, expression: BoundExpression) -> BoundExpression:
        """A hidden output for an expression; an equal output where there is one."""
        for column, known in zip(self.columns, self.expressions, strict=True):
            if known == expression:
                return reference(column)
        parts = self.parts
        if isinstance(expression, ColumnRef) and (
            expression.id in self.inputs
            or expression.id in parts.windows.columns
            or (parts.grouping is not None and parts.grouping.produces(expression.id))
        ):
            own = expression.id
        else:
            own = parts.environment.context.number()
        column = Column(own, "order", expression.type, expression.nullable, expression.collation)
        self.columns.append(column)
        self.expressions.append(expression)
        return reference(column)


def _order(
    parts: _Parts, order_by: Sequence[nodes.OrderingTerm], projected: _OutputColumns
) -> tuple[SortTerm, ...]:
    """The terms of ORDER BY over the projection's columns."""
    if not order_by:
        return ()
    visible = projected.columns[: projected.visible]
    binder = parts.binder(AliasScope(output_names(visible), parts.names))
    terms: list[SortTerm] = []
    for term in order_by:
        expression = ordinal_column(term, visible)
        if expression is None:
            if _sorts_input(parts, term):
                continue
            expression = _over_outputs(binder.bind(term.expression), projected)
        terms.append(sort_term(expression, term))
    return tuple(terms)


def _over_outputs(expression: BoundExpression, projected: _OutputColumns) -> BoundExpression:
    """A term as it reads above the projection: over outputs alone, or as a hidden column."""
    outputs = {column.id: own for column, own in zip(projected.columns, projected.expressions, strict=True)}
    used = referenced_columns(expression)
    if used <= outputs.keys():
        return expression
    return projected.hide(substitute(expression, outputs))


def _sorts_input(parts: _Parts, term: nodes.OrderingTerm) -> bool:
    """Whether a term orders the rows that one group is made of, not its single result."""
    if parts.grouping is None or parts.grouping.keys or parts.grouping.sets is not None:
        return False
    expression = term.expression
    if ordinal_of(expression) is not None:
        return False
    if isinstance(expression, nodes.ColumnReference) and expression.table is None:
        folded = fold(expression.column)
        if any(fold(item.name) == folded for item in parts.items):
            return False
    return not contains_aggregate(expression, parts.environment.context.registry)


def _sort_input(parts: _Parts, plan: PlanNode, order_by: Sequence[nodes.OrderingTerm]) -> PlanNode:
    """The input of a single group in the order that ORDER BY asks of it."""
    terms = [
        sort_term(ExpressionBinder(parts.environment, parts.scope).bind(term.expression), term)
        for term in order_by
        if _sorts_input(parts, term)
    ]
    return Sort(plan.columns, plan, tuple(terms)) if terms else plan


def _finish(
    plan: PlanNode, projected: _OutputColumns, terms: tuple[SortTerm, ...], distinct: bool
) -> PlanNode:
    """Projection, DISTINCT and ORDER BY: dedupe before sorting unless hidden columns are sorted by."""
    columns = tuple(projected.columns)
    if columns != plan.columns:
        plan = Project(columns, plan, tuple(projected.expressions))
    visible = columns[: projected.visible]
    hidden = len(columns) > projected.visible
    if distinct and not hidden:
        plan = _distinct(plan)
    if terms:
        plan = Sort(plan.columns, plan, terms)
    if hidden:
        plan = project_columns(plan, visible)
        if distinct:
            plan = _distinct(plan)
    return plan


def _distinct(plan: PlanNode) -> PlanNode:
    return Distinct(plan.columns, plan, tuple([collation_name(reference(column)) for column in plan.columns]))
