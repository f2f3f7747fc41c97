"""Join order: inner joins of several tables are put in the order that promises the least work.

A tree of inner joins is taken apart into its leaves (tables with their filters, outer joins,
subqueries, whatever else stands below) and its conditions.  For up to ten leaves *dynamic
programming* finds the cheapest tree for every set of leaves that conditions connect, from the best
trees of the two parts of the set; beyond that, or where conditions connect nearly everything with everything,
one leaf is added at a time.  Sets that nothing connects are joined last.

A join costs what its cheapest algorithm does (:mod:`~quereus_store.plan.costs`), which is chosen
later by :mod:`~quereus_store.plan.rules.joins`.  The order as written is kept unless another one saves
a fifth and more than a few microseconds: estimates are coarse, and people write joins in some order
for a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quereus_store.plan import nodes
from quereus_store.plan.conditions import conjunction, conjuncts
from quereus_store.plan.costs import LOOKUP, PAIR, PROBE, work
from quereus_store.plan.estimates import equal_share
from quereus_store.plan.expressions import BoundExpression, Comparison
from quereus_store.plan.nodes import JoinKind
from quereus_store.plan.optimizer import RuleContext
from quereus_store.plan.rules.joins import KeyPair, hashable, lookup_rows

_INNER = frozenset({JoinKind.INNER, JoinKind.CROSS})
_MOST_EXHAUSTIVE = 10
_MOST_LEAVES = 20
_LEAST_SAVED = 100.0
_LEAST_SHARE_SAVED = 0.2
_PASS_ON = 0.2


def order_joins(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Reorder every tree of inner joins of a plan."""
    if _is_inner(plan):
        assert isinstance(plan, nodes.Join)
        leaves: list[nodes.PlanNode] = []
        conditions: list[BoundExpression] = []
        shape = _take_apart(plan, leaves, conditions)
        if 3 <= len(leaves) <= _MOST_LEAVES:
            leaves = [order_joins(leaf, context) for leaf in leaves]
            return _reordered(plan, leaves, conditions, shape, context)
    return nodes.map_inputs(plan, lambda child: order_joins(child, context))


def _is_inner(plan: nodes.PlanNode) -> bool:
    return (
        isinstance(plan, nodes.Join)
        and plan.kind in _INNER
        and not plan.lateral
        and plan.left_flag is None
        and plan.right_flag is None
    )


_Shape = int | tuple["_Shape", "_Shape"]
"""A tree over leaves by number."""


def _take_apart(
    plan: nodes.PlanNode, leaves: list[nodes.PlanNode], conditions: list[BoundExpression]
) -> _Shape:
    if not _is_inner(plan):
        leaves.append(plan)
        return len(leaves) - 1
    assert isinstance(plan, nodes.Join)
    left = _take_apart(plan.left, leaves, conditions)
    right = _take_apart(plan.right, leaves, conditions)
    conditions += conjuncts(plan.condition)
    return left, right


def _reordered(
    plan: nodes.Join,
    leaves: Sequence[nodes.PlanNode],
    conditions: Sequence[BoundExpression],
    shape: _Shape,
    context: RuleContext,
) -> nodes.PlanNode:
    graph = _Graph(leaves, conditions, context)
    written = graph.cost_of(shape)
    if written > _LEAST_SAVED:
        best = graph.best()
        if best.cost + max(_LEAST_SAVED, _LEAST_SHARE_SAVED * written) < written:
            shape = best.shape
    tree = graph.build(shape)
    # Readers know columns by number; who takes them by position finds them in the order as written.
    return nodes.Join(plan.columns, *(getattr(tree, name) for name in ("kind", "left", "right", "condition")))


@dataclass(frozen=True, slots=True)
class _Tree:
    """The best way to join a set of leaves."""

    cost: float
    shape: _Shape


@dataclass(frozen=True, slots=True)
class _Condition:
    """A conjunct: the leaves that it reads, its share of the pairs, the leaves of an equality's sides."""

    expression: BoundExpression
    leaves: int
    share: float
    sides: tuple[int, int] | None = None


class _Graph:
    """Leaves and the conditions between them; sets of leaves are bit sets."""

    def __init__(
        self, leaves: Sequence[nodes.PlanNode], conditions: Sequence[BoundExpression], context: RuleContext
    ) -> None:
        self.leaves = leaves
        self._context = context
        estimates = context.estimates
        self._leaf_rows = [estimates.rows(leaf) for leaf in leaves]
        self._leaf_costs = [work(leaf, estimates) for leaf in leaves]
        self._owner = {column.id: 1 << place for place, leaf in enumerate(leaves) for column in leaf.columns}
        self._rows: dict[int, float] = {}
        self.conditions = [self._condition(expression) for expression in conditions]
        self._between = [each for each in self.conditions if each.leaves & (each.leaves - 1)]
        self._neighbours = [self._next_to(1 << place) for place in range(len(leaves))]
        self._pairs = self._pairs_of_leaves()
        self._lookups: dict[tuple[int, int], float | None] = {}

    def _set_of(self, expression: BoundExpression) -> int:
        leaves = 0
        for column in nodes.referenced_columns(expression):
            leaves |= self._owner.get(column, 0)
        return leaves

    def _condition(self, expression: BoundExpression) -> _Condition:
        leaves = self._set_of(expression)
        pair = self._pair(expression)
        if pair is None:
            return _Condition(expression, leaves, self._context.estimates.selectivity(expression))
        sides = (self._set_of(pair.left), self._set_of(pair.right))
        share = equal_share(
            pair.left, pair.right, self._product(sides[0]), self._product(sides[1]), self._context.estimates
        )
        return _Condition(expression, leaves, share, sides)

    def _product(self, leaves: int) -> float:
        rows = 1.0
        for place in _places(leaves):
            rows *= self._leaf_rows[place]
        return rows

    def _pair(self, expression: BoundExpression) -> KeyPair | None:
        """The equality that a condition is between different leaves, where a hash table can serve it."""
        if not isinstance(expression, Comparison) or expression.operator != "=":
            return None
        left, right = self._set_of(expression.left), self._set_of(expression.right)
        if not left or not right or left & right:
            return None
        pair = KeyPair(expression.left, expression.right, expression.using, expression)
        return pair if hashable(pair, self._context.services.collation(pair.using)) else None

    def _next_to(self, leaves: int) -> int:
        near = 0
        for condition in self._between:
            if condition.leaves & leaves:
                near |= condition.leaves
        return near & ~leaves

    def _pairs_of_leaves(self) -> dict[tuple[int, int], list[KeyPair]]:
        """For a leaf and a neighbour: the equalities by which its rows could be looked up."""
        pairs: dict[tuple[int, int], list[KeyPair]] = {}
        for condition in self._between:
            if condition.sides is None:
                continue
            first, second = condition.sides
            if first & (first - 1) or second & (second - 1):
                continue
            equal = condition.expression
            assert isinstance(equal, Comparison)
            # The side that is looked up is the right one of a pair.
            for sides, mine, theirs in (
                ((second, first), equal.left, equal.right),
                ((first, second), equal.right, equal.left),
            ):
                pairs.setdefault(sides, []).append(KeyPair(mine, theirs, equal.using, equal))
        return pairs

    def _looked_up(self, inner: int, outer: int) -> float | None:
        """How many rows of a leaf an index finds for a row of a neighbour; None without an index."""
        key = (inner, outer)
        if key not in self._lookups:
            usable = self._pairs.get(key)
            leaf = self.leaves[inner.bit_length() - 1]
            self._lookups[key] = None if usable is None else lookup_rows(leaf, usable, self._context)
        return self._lookups[key]

    # -- costs ----------------------------------------------------------------------------------

    def rows(self, leaves: int) -> float:
        """About how many rows the join of these leaves has."""
        known = self._rows.get(leaves)
        if known is None:
            known = self._product(leaves)
            for condition in self._between:
                if not condition.leaves & ~leaves:
                    known *= condition.share
            known = self._rows[leaves] = max(1.0, known)
        return known

    def _step(self, left: int, right: int, costs: tuple[float, float]) -> float:
        """What joining two sets costs at best, what they cost themselves included."""
        left_rows, right_rows = self.rows(left), self.rows(right)
        both = sum(costs)
        passed = _PASS_ON * self.rows(left | right)
        if not any(
            condition.sides is not None and _joins(condition.sides, left, right)
            for condition in self._between
        ):
            return both + PAIR * left_rows * right_rows + passed
        least = both + min(right_rows + PROBE * left_rows, left_rows + PROBE * right_rows)
        for inner, outer, outer_rows, outer_cost in (
            (right, left, left_rows, costs[0]),
            (left, right, right_rows, costs[1]),
        ):
            if inner & (inner - 1) or outer_cost + outer_rows * LOOKUP >= least:
                continue
            for near in _bits(outer & self._neighbours[inner.bit_length() - 1]):
                found = self._looked_up(inner, near)
                if found is not None:
                    least = min(least, outer_cost + outer_rows * (LOOKUP * max(1.0, found)))
        return least + passed

    def cost_of(self, shape: _Shape) -> float:
        """The cost of a tree."""
        return self._measured(shape)[1]

    def _measured(self, shape: _Shape) -> tuple[int, float]:
        if isinstance(shape, int):
            return 1 << shape, self._leaf_costs[shape]
        (left, left_cost), (right, right_cost) = map(self._measured, shape)
        return left | right, self._step(left, right, (left_cost, right_cost))

    # -- search ---------------------------------------------------------------------------------

    def best(self) -> _Tree:
        """The cheapest tree found over all leaves."""
        parts = [(part, self._best_connected(part)) for part in self._components()]
        parts.sort(key=lambda part: self.rows(part[0]))
        joined, tree = parts[0]
        for other, right in parts[1:]:
            cost = self._step(joined, other, (tree.cost, right.cost))
            joined, tree = joined | other, _Tree(cost, (tree.shape, right.shape))
        return tree

    def _components(self) -> Iterator[int]:
        left = (1 << len(self.leaves)) - 1
        while left:
            part = left & -left
            while (grown := part | self._near(part)) != part:
                part = grown
            yield part
            left &= ~part

    def _near(self, leaves: int) -> int:
        near = 0
        for place in _places(leaves):
            near |= self._neighbours[place]
        return near & ~leaves

    def _best_connected(self, leaves: int) -> _Tree:
        count = leaves.bit_count()
        degrees = sum((self._neighbours[place] & leaves).bit_count() for place in _places(leaves))
        if count <= _MOST_EXHAUSTIVE:
            return self._programmed(leaves, bushy=degrees <= 4 * count)
        return self._greedy(leaves)

    def _programmed(self, leaves: int, bushy: bool) -> _Tree:
        """The best tree of every connected set, from the smallest sets up; bushy, or one leaf at a time."""
        best = {
            bit: _Tree(self._leaf_costs[bit.bit_length() - 1], bit.bit_length() - 1) for bit in _bits(leaves)
        }
        levels: list[list[int]] = [[], list(best)]
        for size in range(2, leaves.bit_count() + 1):
            grown = {one | bit for one in levels[size - 1] for bit in _bits(self._near(one) & leaves)}
            for group in grown:
                self._improve(best, group, bushy)
            levels.append([group for group in grown if group in best])
        return best[leaves]

    def _improve(self, best: dict[int, _Tree], group: int, bushy: bool) -> None:
        """Enter the best tree of a set: of all ways to split it in two that are connected."""
        least: _Tree | None = None
        low = group & -group
        if bushy:
            splits = _splits(group & ~low, low)
        else:
            splits = ((group & ~bit, bit) for bit in _bits(group))
        for left, right in splits:
            one, other = best.get(left), best.get(right)
            if one is None or other is None:
                continue
            if least is not None and one.cost + other.cost >= least.cost:
                continue
            cost = self._step(left, right, (one.cost, other.cost))
            if least is None or cost < least.cost:
                least = _Tree(cost, (one.shape, other.shape))
        if least is not None:
            best[group] = least

    def _greedy(self, leaves: int) -> _Tree:
        """Again and again the join that gives the fewest rows."""
        trees = {
            bit: _Tree(self._leaf_costs[bit.bit_length() - 1], bit.bit_length() - 1) for bit in _bits(leaves)
        }
        while len(trees) > 1:
            pairs = [(a, b) for a in trees for b in trees if a < b and self._near(a) & b]
            left, right = min(pairs, key=lambda pair: self.rows(pair[0] | pair[1]))
            one, other = trees.pop(left), trees.pop(right)
            cost = self._step(left, right, (one.cost, other.cost))
            trees[left | right] = _Tree(cost, (one.shape, other.shape))
        (tree,) = trees.values()
        return tree

    # -- plans ----------------------------------------------------------------------------------

    def build(self, shape: _Shape) -> nodes.Join:
        """The joins of a tree, each with the conditions that it is the first to be able to test."""
        _, plan = self._built(shape)
        assert isinstance(plan, nodes.Join)
        return plan

    def _built(self, shape: _Shape) -> tuple[int, nodes.PlanNode]:
        if isinstance(shape, int):
            return 1 << shape, self.leaves[shape]
        (left, left_plan), (right, right_plan) = map(self._built, shape)
        both = left | right
        own = [
            condition.expression
            for condition in self.conditions
            if not condition.leaves & ~both and condition.leaves & ~left and condition.leaves & ~right
        ]
        if both == (1 << len(self.leaves)) - 1:
            own += [each.expression for each in self.conditions if not each.leaves & (each.leaves - 1)]
        columns = (*left_plan.columns, *right_plan.columns)
        kind = JoinKind.INNER if own else JoinKind.CROSS
        return both, nodes.Join(columns, kind, left_plan, right_plan, conjunction(own))


def _joins(sides: tuple[int, int], left: int, right: int) -> bool:
    """Whether an equality has one side in each set."""
    first, second = sides
    return not (first & ~left or second & ~right) or not (first & ~right or second & ~left)


def _bits(leaves: int) -> Iterator[int]:
    while leaves:
        bit = leaves & -leaves
        yield bit
        leaves ^= bit


def _places(leaves: int) -> Iterator[int]:
    for bit in _bits(leaves):
        yield bit.bit_length() - 1


def _splits(rest: int, low: int) -> Iterator[tuple[int, int]]:
    """All ways to split a set in two; the lowest leaf is always in the first part."""
    part = rest
    while part:
        yield low | (rest ^ part), part
        part = (part - 1) & rest
