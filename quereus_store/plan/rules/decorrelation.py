"""What the rules that take subqueries out of expressions share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from quereus_store.plan import nodes
from quereus_store.plan.analysis import has_subquery
from quereus_store.plan.conditions import conjuncts, filtered
from quereus_store.plan.correlation import Independent
from quereus_store.plan.costs import CALL, PROBE, work
from quereus_store.plan.expressions import BoundExpression
from quereus_store.plan.optimizer import RuleContext, optimize
from quereus_store.plan.placement import sunk
from quereus_store.plan.rules.joins import key_pairs

K = TypeVar("K")
T = TypeVar("T")

_RULES = frozenset({"join_existence", "join_membership", "join_scalars"})


def top_down(plan: nodes.PlanNode, function: Callable[[nodes.PlanNode], nodes.PlanNode]) -> nodes.PlanNode:
    """Apply a function to every node, to those that it puts below a node too."""
    return nodes.map_inputs(function(plan), lambda child: top_down(child, function))


def join_tests(
    plan: nodes.PlanNode,
    as_test: Callable[[BoundExpression], tuple[K, T] | None],
    joined: Callable[[nodes.PlanNode, K, T], nodes.PlanNode | None],
    context: RuleContext,
) -> nodes.PlanNode:
    """Turn conjuncts of filters into joins: those that ``as_test`` knows, where ``joined`` can.

    Conditions with other subqueries, which may run for every row, are tested after them.
    """

    def replaced(node: nodes.PlanNode) -> nodes.PlanNode:
        if not isinstance(node, nodes.Filter):
            return node
        predicates = list(conjuncts(node.predicate))
        tests = [as_test(predicate) for predicate in predicates]
        if not any(tests):
            return node
        others = [predicate for predicate, test in zip(predicates, tests, strict=True) if test is None]
        kept = [predicate for predicate in others if has_subquery(predicate)]
        outer = filtered(node.input, [predicate for predicate in others if not has_subquery(predicate)])
        changed = False
        for predicate, test in zip(predicates, tests, strict=True):
            if test is not None:
                join = joined(outer, *test)
                if join is None:
                    kept.append(predicate)
                else:
                    changed = True
                    outer = sunk(join, context) if isinstance(join, nodes.Join) else join
        return _filtered_again(outer, kept) if changed else node

    return top_down(plan, replaced)


def _filtered_again(plan: nodes.PlanNode, predicates: list[BoundExpression]) -> nodes.PlanNode:
    """A plan under a filter of more predicates, which are tested last."""
    if isinstance(plan, nodes.Filter) and predicates:
        return filtered(plan.input, [*conjuncts(plan.predicate), *predicates])
    return filtered(plan, predicates)


def has_key_pair(join: nodes.Join, context: RuleContext) -> bool:
    """Whether a join has an equality that a hash table can serve."""
    return bool(key_pairs(join, context)[0])


def cheaper_joined(
    outer: nodes.PlanNode, subquery: nodes.PlanNode, inner: Independent, context: RuleContext
) -> bool:
    """Whether a semi-join is less work than the subquery for each outer row.

    Over a bare table that is for the join rules to say: they may look rows up by an index as well.
    """
    bare = inner.plan
    while isinstance(bare, nodes.Project | nodes.Filter):
        bare = bare.input
    if isinstance(bare, nodes.TableScan):
        return True
    return less_work(context.estimates.rows(outer), subquery, inner.plan, context)


def less_work(
    runs: float, subquery: nodes.PlanNode, independent: nodes.PlanNode, context: RuleContext
) -> bool:
    """Whether a plan run once, and asked for each row, is less work than a subquery run so often."""
    # The subqueries within are counted as they stand, so that this does not multiply with their depth.
    plainly = replace(context, disabled=context.disabled | _RULES)
    single = work(optimize(subquery, plainly), plainly.estimates)
    joined = work(optimize(independent, plainly), plainly.estimates)
    return joined + runs * PROBE <= runs * (single + CALL)
