"""Predicate pushdown: a condition is tested as close to the tables as it can be.

A conjunct moves below an operator whose output columns it reads are also
columns of one of the inputs, or can be written in them (through a projection).
Conjuncts over both sides of an inner join join its condition, where the join
rules find equalities; a comma list with WHERE so becomes a proper join.  A
filter that no NULL row can pass turns an outer join into an inner one first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from quereus_store.plan import nodes
from quereus_store.plan.analysis import has_subquery, is_deterministic_expression
from quereus_store.plan.conditions import conjunction, conjuncts, filtered, rejects_null
from quereus_store.plan.expressions import (
    SUBQUERIES,
    BoundExpression,
    Cast,
    Column,
    ColumnRef,
    reference,
    walk,
)
from quereus_store.plan.nodes import SEMI_JOINS, JoinKind
from quereus_store.plan.optimizer import RuleContext
from quereus_store.plan.sameness import loose_columns, says_the_same
from quereus_store.types import ANY, NULL

_NULLS_RIGHT = frozenset({JoinKind.LEFT, JoinKind.FULL})
_NULLS_LEFT = frozenset({JoinKind.RIGHT, JoinKind.FULL})


def push_filters(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Push every filter of a plan."""
    return _push(plan, ())


def _push(node: nodes.PlanNode, wanted: Sequence[BoundExpression]) -> nodes.PlanNode:
    """The node with these conjuncts applied, as deep as possible."""
    if isinstance(node, nodes.Filter):
        return _push(node.input, (*wanted, *conjuncts(node.predicate)))
    push = _PUSHERS.get(type(node))
    if push is not None:
        return push(node, wanted)  # type: ignore[no-any-return,operator]
    return filtered(nodes.map_inputs(node, lambda child: _push(child, ())), wanted)


def _movable(predicate: BoundExpression) -> bool:
    return is_deterministic_expression(predicate)


def _push_project(node: nodes.Project, wanted: Sequence[BoundExpression]) -> nodes.PlanNode:
    mapping = dict(zip((column.id for column in node.columns), node.expressions, strict=True))
    down: list[BoundExpression] = []
    stay: list[BoundExpression] = []
    for predicate in wanted:
        used = nodes.referenced_columns(predicate) & mapping.keys()
        plain = all(isinstance(mapping[column], ColumnRef) for column in used)
        computable = all(
            is_deterministic_expression(mapping[column]) and not has_subquery(mapping[column])
            for column in used
        )
        if not _movable(predicate) or not (plain or computable):
            stay.append(predicate)
        elif has_subquery(predicate):
            # A subquery's plan refers to the column by number: it can only stay.
            stay.append(predicate)
        else:
            down.append(nodes.substitute(predicate, mapping))
    return filtered(replace(node, input=_push(node.input, down)), stay)


def _push_join(node: nodes.Join, wanted: Sequence[BoundExpression]) -> nodes.PlanNode:
    left_ids = frozenset([column.id for column in node.left.columns])
    right_ids = frozenset([column.id for column in node.right.columns])
    kind = _strengthened(node, wanted, left_ids, right_ids)
    own = list(conjuncts(node.condition))
    to_left: list[BoundExpression] = []
    to_right: list[BoundExpression] = []
    stay: list[BoundExpression] = []
    inner = kind in (JoinKind.INNER, JoinKind.CROSS)
    for predicate in wanted:
        used = nodes.referenced_columns(predicate)
        if not _movable(predicate) or (kind in SEMI_JOINS and _runs_by_row(predicate)):
            stay.append(predicate)
        elif not used & right_ids and not used & _flag_ids(node) and kind not in _NULLS_LEFT:
            to_left.append(predicate)
        elif not used & left_ids and not used & _flag_ids(node) and kind not in _NULLS_RIGHT:
            to_right.append(predicate)
        elif inner and not used & _flag_ids(node):
            own.append(predicate)
        else:
            stay.append(predicate)
    condition: list[BoundExpression] = []
    for predicate in own:
        used = nodes.referenced_columns(predicate)
        if not _movable(predicate):
            condition.append(predicate)
        elif not used & left_ids and kind in (JoinKind.INNER, JoinKind.CROSS, JoinKind.LEFT, *SEMI_JOINS):
            to_right.append(predicate)
        elif not used & right_ids and kind in (JoinKind.INNER, JoinKind.CROSS, JoinKind.RIGHT, JoinKind.SEMI):
            to_left.append(predicate)
        else:
            condition.append(predicate)
    if kind is JoinKind.CROSS and condition:
        kind = JoinKind.INNER
    joined = replace(
        node,
        kind=kind,
        left=_push(node.left, to_left),
        right=_push(node.right, to_right),
        condition=conjunction(condition),
    )
    return filtered(joined, stay)


def _runs_by_row(predicate: BoundExpression) -> bool:
    """Whether a subquery runs for the rows that it filters: the fewer they are, the better."""
    return any(isinstance(part, SUBQUERIES) and nodes.free_columns(part.plan) for part in walk(predicate))


def _flag_ids(node: nodes.Join) -> set[int]:
    return {flag for flag in (node.left_flag, node.right_flag) if flag is not None}


def _strengthened(
    node: nodes.Join,
    wanted: Sequence[BoundExpression],
    left_ids: frozenset[int],
    right_ids: frozenset[int],
) -> JoinKind:
    """The kind of a join after NULL rows that no filter lets through are left out."""
    if _flag_ids(node):
        return node.kind
    keeps_right_nulls = node.kind in _NULLS_RIGHT
    keeps_left_nulls = node.kind in _NULLS_LEFT
    if not keeps_left_nulls and not keeps_right_nulls:
        return node.kind
    for predicate in wanted:
        keeps_right_nulls = keeps_right_nulls and not rejects_null(predicate, right_ids)
        keeps_left_nulls = keeps_left_nulls and not rejects_null(predicate, left_ids)
    return {
        (True, True): JoinKind.FULL,
        (True, False): JoinKind.LEFT,
        (False, True): JoinKind.RIGHT,
        (False, False): JoinKind.INNER,
    }[keeps_right_nulls, keeps_left_nulls]


def _push_aggregate(node: nodes.Aggregate, wanted: Sequence[BoundExpression]) -> nodes.PlanNode:
    """Conditions over keys alone choose groups as well as rows."""
    keys = dict(zip((column.id for column in node.columns), node.keys, strict=False))
    down: list[BoundExpression] = []
    stay: list[BoundExpression] = []
    outputs = {column.id for column in node.columns}
    loose = _loose(node.columns, node.using)
    for predicate in wanted:
        used = nodes.referenced_columns(predicate) & outputs
        if (
            node.sets is None
            and used
            and used <= keys.keys()
            and _movable(predicate)
            and not has_subquery(predicate)
            and says_the_same(predicate, loose)
        ):
            down.append(nodes.substitute(predicate, keys))
        else:
            stay.append(predicate)
    return filtered(replace(node, input=_push(node.input, down)), stay)


def _loose(columns: Sequence[Column], using: Sequence[str]) -> Mapping[int, str]:
    """The columns of which one of several equal values is kept, with their collations."""
    return loose_columns((column.id, column.type, name) for column, name in zip(columns, using, strict=False))


def _push_through(node: nodes.Distinct | nodes.Sort, wanted: Sequence[BoundExpression]) -> nodes.PlanNode:
    loose = _loose(node.columns, node.using) if isinstance(node, nodes.Distinct) else {}
    down = [predicate for predicate in wanted if _movable(predicate) and says_the_same(predicate, loose)]
    stay = [predicate for predicate in wanted if predicate not in down]
    return filtered(replace(node, input=_push(node.input, down)), stay)


def _push_set_operation(node: nodes.SetOperation, wanted: Sequence[BoundExpression]) -> nodes.PlanNode:
    """A UNION's condition applies to each input."""
    plain = node.left_flag is None and node.right_flag is None and node.kind is nodes.SetKind.UNION
    loose = {} if node.all else _loose(node.columns, node.using)
    down = [p for p in wanted if plain and _movable(p) and not has_subquery(p) and says_the_same(p, loose)]
    stay = [p for p in wanted if p not in down]
    sides = []
    for side in (node.left, node.right):
        mapping: dict[int, BoundExpression] = {
            column.id: _own_column(column, own)
            for column, own in zip(node.columns, side.columns, strict=False)
        }
        sides.append(_push(side, [nodes.substitute(predicate, mapping) for predicate in down]))
    return filtered(replace(node, left=sides[0], right=sides[1]), stay)


def _own_column(column: Column, own: Column) -> BoundExpression:
    """An input's column in place of the result's, which goes by values where types are mixed."""
    read = reference(own)
    if own.type is column.type or own.type is NULL or column.type is not ANY:
        return read
    return Cast(ANY, own.nullable, column.collation, read)


_PUSHERS = {
    nodes.Project: _push_project,
    nodes.Join: _push_join,
    nodes.Aggregate: _push_aggregate,
    nodes.Distinct: _push_through,
    nodes.Sort: _push_through,
    nodes.SetOperation: _push_set_operation,
}
