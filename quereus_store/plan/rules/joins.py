"""Join algorithms: a hash table or an index instead of looking at every pair.

Equalities between the sides become hash keys if equal keys mean equal values;
what is left of the condition is tested on the pairs.  Where the right side is a
table with a key over the compared columns and the left side is small against
it, its rows are looked up in batches instead (but for keys that are NULL, which
match nothing).  An inner join takes its smaller
side as the one to hash.  Sides that both come in the order of a key are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quereus_store.modules.contract import AccessKind, AccessPlan, ColumnConstraint, Comparison
from quereus_store.plan import nodes
from quereus_store.plan.analysis import has_subquery, holds_unique_key
from quereus_store.plan.conditions import conjunction, conjuncts
from quereus_store.plan.costs import LOOKUP, MEMBER, READ, work
from quereus_store.plan.expressions import BoundExpression, ColumnRef
from quereus_store.plan.expressions import Comparison as ComparisonExpression
from quereus_store.plan.nodes import SEMI_JOINS, JoinKind
from quereus_store.plan.optimizer import RuleContext
from quereus_store.plan.orders import KEEPS_LEFT_ORDER, ascending_key
from quereus_store.plan.rules.access import seekable
from quereus_store.records import record
from quereus_store.types import Collation
from quereus_store.types.comparison import ComparisonMode, comparison_plan

_MERGED_FACTOR = 2.0

_INDEXABLE = frozenset({JoinKind.INNER, JoinKind.LEFT, *SEMI_JOINS})
_HASHABLE_MODES = frozenset(
    {ComparisonMode.NATIVE, ComparisonMode.TEXT, ComparisonMode.TIMESPAN, ComparisonMode.JSON}
)


@record(frozen=True, slots=True)
class KeyPair:
    """An equality between the sides of a join."""

    left: BoundExpression
    right: BoundExpression
    using: str
    conjunct: BoundExpression


def choose_joins(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Choose an algorithm for every join that has an equality."""

    def choose(node: nodes.PlanNode) -> nodes.PlanNode:
        if isinstance(node, nodes.Join) and not node.lateral and node.condition is not None:
            return _choose(node, context)
        return node

    return nodes.bottom_up(plan, choose)


def _choose(node: nodes.Join, context: RuleContext) -> nodes.PlanNode:
    pairs, rest = key_pairs(node, context)
    if not pairs:
        return node
    left_rows = context.estimates.rows(node.left)
    right_rows = context.estimates.rows(node.right)
    flags = node.left_flag is not None or node.right_flag is not None
    if node.kind in _INDEXABLE and node.left_flag is None:
        reading = _cost_to_read(node.right, right_rows, node.kind, rest, context)
        if left_rows * LOOKUP < reading:
            lookup = _index_join(node, node.left, node.right, pairs, rest, context)
            if lookup is not None and left_rows * _seek(node, pairs, lookup, context) < reading:
                return lookup
    if node.kind is JoinKind.INNER and not flags:
        swapped = [KeyPair(pair.right, pair.left, pair.using, pair.conjunct) for pair in pairs]
        reading = _cost_to_read(node.left, left_rows, node.kind, rest, context)
        if right_rows * LOOKUP < reading:
            lookup = _index_join(node, node.right, node.left, swapped, rest, context)
            if lookup is not None and right_rows * _seek(node, pairs, lookup, context) < reading:
                return lookup
        if _cost_to_hash(node.left, left_rows, swapped) < _cost_to_hash(node.right, right_rows, pairs):
            return _keyed_join(replace(node, left=node.right, right=node.left), swapped, rest, context)
    return _keyed_join(node, pairs, rest, context)


def _seek(node: nodes.Join, pairs: Sequence[KeyPair], lookup: nodes.IndexJoin, context: RuleContext) -> float:
    """What looking up the matches of one row costs, against reading a row of the other side."""
    found = max(1.0, lookup.inner.access.rows)
    if node.kind in SEMI_JOINS:
        return LOOKUP + found - 1.0
    # What a merge reads costs less than what goes into a large hash table.
    merged = any(_merge_orders(node, pair, context) for pair in pairs)
    return LOOKUP * (_MERGED_FACTOR if merged else 1.0) * found


def _cost_to_read(
    side: nodes.PlanNode, rows: float, kind: JoinKind, rest: Sequence[BoundExpression], context: RuleContext
) -> float:
    """What it costs to read a side and to keep its rows, instead of looking up what is asked for.

    A condition may leave few rows of many that are read.
    """
    if kind not in SEMI_JOINS:
        return rows
    kept = MEMBER * rows if not rest else rows
    return kept + READ * work(side, context.estimates)


def _keyed_join(
    node: nodes.Join, pairs: Sequence[KeyPair], rest: Sequence[BoundExpression], context: RuleContext
) -> nodes.PlanNode:
    """A merge join where both sides come in the order of a pair, else a hash join."""
    if node.kind in KEEPS_LEFT_ORDER:
        for pair in pairs:
            orders = _merge_orders(node, pair, context)
            if orders is not None:
                pairs = [pair, *(other for other in pairs if other is not pair)]
                return _merge_join(_hash_join(node, pairs, rest), *orders)
    return _hash_join(node, pairs, rest)


def _merge_orders(
    node: nodes.Join, pair: KeyPair, context: RuleContext
) -> tuple[ColumnRef, ColumnRef] | None:
    """The columns by which both sides come in the order of a pair."""
    if pair.left.nullable or pair.right.nullable or pair.left.type is not pair.right.type:
        return None
    left = ascending_key(node.left, pair.left, pair.using, context.services)
    right = None if left is None else ascending_key(node.right, pair.right, pair.using, context.services)
    if left is None or right is None or left.nullable or right.nullable or left.type is not right.type:
        return None
    return left, right


def _merge_join(join: nodes.HashJoin, left_order: ColumnRef, right_order: ColumnRef) -> nodes.MergeJoin:
    return nodes.MergeJoin(
        join.columns,
        join.kind,
        join.left,
        join.right,
        join.left_keys,
        join.right_keys,
        join.using,
        left_order,
        right_order,
        join.residual,
        join.left_flag,
        join.right_flag,
    )


def as_hash_join(join: nodes.MergeJoin) -> nodes.HashJoin:
    """The same join by a hash table, where a side no longer comes in order."""
    return nodes.HashJoin(
        join.columns,
        join.kind,
        join.left,
        join.right,
        join.left_keys,
        join.right_keys,
        join.using,
        join.residual,
        join.left_flag,
        join.right_flag,
    )


def _cost_to_hash(side: nodes.PlanNode, rows: float, pairs: Sequence[KeyPair]) -> float:
    """What a side costs as the one to hash: a key that cannot repeat needs no lists."""
    unique = holds_unique_key(side, [pair.right for pair in pairs], [pair.using for pair in pairs])
    return rows if unique else 2 * rows


def _hash_join(node: nodes.Join, pairs: Sequence[KeyPair], rest: Sequence[BoundExpression]) -> nodes.HashJoin:
    return nodes.HashJoin(
        node.columns,
        node.kind,
        node.left,
        node.right,
        tuple([pair.left for pair in pairs]),
        tuple([pair.right for pair in pairs]),
        tuple([pair.using for pair in pairs]),
        conjunction(list(rest)),
        node.left_flag,
        node.right_flag,
    )


def key_pairs(node: nodes.Join, context: RuleContext) -> tuple[list[KeyPair], list[BoundExpression]]:
    """The equalities of a join's condition that a hash table can serve, and the other conjuncts."""
    left_ids = frozenset([column.id for column in node.left.columns])
    right_ids = frozenset([column.id for column in node.right.columns])
    pairs: list[KeyPair] = []
    rest: list[BoundExpression] = []
    for conjunct in conjuncts(node.condition):
        pair = _as_pair(conjunct, left_ids, right_ids)
        if pair is not None and hashable(pair, context.services.collation(pair.using)):
            pairs.append(pair)
        else:
            rest.append(conjunct)
    return pairs, rest


def _as_pair(
    conjunct: BoundExpression, left_ids: frozenset[int], right_ids: frozenset[int]
) -> KeyPair | None:
    """A conjunct as an equality of an expression of the left and one of the right, if it is that."""
    if not isinstance(conjunct, ComparisonExpression) or conjunct.operator != "=":
        return None
    for left, right in ((conjunct.left, conjunct.right), (conjunct.right, conjunct.left)):
        of_left, of_right = nodes.referenced_columns(left), nodes.referenced_columns(right)
        if (
            of_left & left_ids
            and of_right & right_ids
            and not of_left & right_ids
            and not of_right & left_ids
        ):
            return KeyPair(left, right, conjunct.using, conjunct)
    return None


def hashable(pair: KeyPair, collation: Collation) -> bool:
    """Whether equality of the pair is equality of their hash keys."""
    plan = comparison_plan(pair.left.type, pair.right.type)
    if plan.left_cast is not None or plan.right_cast is not None:
        return False
    if plan.mode is ComparisonMode.TEXT:
        return collation.normalizer is not None
    return plan.mode in _HASHABLE_MODES


def _index_join(
    node: nodes.Join,
    outer: nodes.PlanNode,
    inner: nodes.PlanNode,
    pairs: Sequence[KeyPair],
    rest: Sequence[BoundExpression],
    context: RuleContext,
) -> nodes.IndexJoin | None:
    """The join by index lookup into a bare (perhaps filtered) table, if its key fits the pairs."""
    if node.kind in SEMI_JOINS:
        inner, pairs, rest = _unprojected(inner, pairs, rest)
    scan, inner_filter = _bare_table(inner)
    found = None if scan is None else _lookup(scan, pairs, context)
    if scan is None or found is None:
        return None
    access, chosen = found
    left_over = [pair.conjunct for pair in pairs if pair not in chosen]
    inner_access = nodes.IndexAccess(
        scan.columns,
        scan.table,
        scan.positions,
        access,
        tuple(pair.left for pair in chosen),
        alias=scan.alias,
        committed=scan.committed,
    )
    residual = conjunction([*conjuncts(inner_filter), *left_over, *rest])
    return nodes.IndexJoin(node.columns, node.kind, outer, inner_access, residual, node.right_flag)


def _unprojected(
    inner: nodes.PlanNode, pairs: Sequence[KeyPair], rest: Sequence[BoundExpression]
) -> tuple[nodes.PlanNode, Sequence[KeyPair], Sequence[BoundExpression]]:
    """What stands below a projection that only chooses columns, where nobody reads them after the join."""
    while isinstance(inner, nodes.Project):
        if not all(type(expression) is ColumnRef for expression in inner.expressions):
            break
        if any(map(has_subquery, rest)):
            break
        below = dict(zip((column.id for column in inner.columns), inner.expressions, strict=True))
        pairs = [
            KeyPair(
                pair.left,
                nodes.substitute(pair.right, below),
                pair.using,
                nodes.substitute(pair.conjunct, below),
            )
            for pair in pairs
        ]
        rest = [nodes.substitute(condition, below) for condition in rest]
        inner = inner.input
    return inner, pairs, rest


def lookup_rows(plan: nodes.PlanNode, pairs: Sequence[KeyPair], context: RuleContext) -> float | None:
    """How many rows of a (filtered) table an index finds for the values of these pairs; None without one."""
    scan, _ = _bare_table(plan)
    found = None if scan is None else _lookup(scan, pairs, context)
    return None if found is None else found[0].rows


def _lookup(
    scan: nodes.TableScan, pairs: Sequence[KeyPair], context: RuleContext
) -> tuple[AccessPlan, list[KeyPair]] | None:
    """The key or index of a table that finds the rows for the values of some of the pairs, and these."""
    positions = dict(zip((column.id for column in scan.columns), scan.positions, strict=True))
    usable = [
        pair
        for pair in pairs
        if isinstance(pair.right, ColumnRef) and seekable(pair.right.type, pair.left.type, "=")
    ]
    if not usable:
        return None
    constraints = tuple(
        ColumnConstraint(
            positions[pair.right.id],  # type: ignore[attr-defined]
            Comparison.EQUAL,
            pair.using,
            share=_known_share(pair.right, context),
        )
        for pair in usable
    )
    access = context.estimates.look_up(scan.table, constraints)
    if not access.prefix or access.path.kind not in (AccessKind.POINT, AccessKind.RANGE):
        return None
    return access, [usable[position] for position in access.prefix]


def _known_share(column: BoundExpression, context: RuleContext) -> float | None:
    """The share of rows that one value of a column has, where statistics tell."""
    found = context.estimates.column(column)
    return None if found is None or found.distinct is None else found.equal()


def _bare_table(plan: nodes.PlanNode) -> tuple[nodes.TableScan | None, BoundExpression | None]:
    """The table that a plan reads, and what it asks of its rows, be it by an access path or a filter."""
    asked: list[BoundExpression] = []
    if isinstance(plan, nodes.Filter):
        asked = conjuncts(plan.predicate)
        plan = plan.input
    if isinstance(plan, nodes.IndexAccess):
        asked = [*plan.conditions, *asked]
        plan = nodes.TableScan(plan.columns, plan.table, plan.positions, plan.alias, plan.committed)
    return (plan, conjunction(asked)) if isinstance(plan, nodes.TableScan) else (None, None)
