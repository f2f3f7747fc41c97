"""IN and NOT IN over a subquery become a semi-join and an anti-join.

``x in (query)`` is true exactly if some row of the query equals ``x``: a semi-join on that
equality, whatever is NULL.  ``x not in (query)`` is true if no row equals ``x`` *and* none is
NULL *and* ``x`` is not NULL, or if the query is empty.  Where neither can be NULL that is an
anti-join.  Where the query is correlated, it is one for each way to fail:

======================================  ====================================================
a row of the query                      anti-join on the correlation and ...
======================================  ====================================================
equals ``x``                            ``x = column``
is NULL                                 nothing else, over the rows that are NULL
is compared with a NULL ``x``           nothing else, for rows whose ``x`` is NULL
======================================  ====================================================

An uncorrelated NOT IN that may meet NULL stays as it is: its set is made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quereus_store.plan import nodes
from quereus_store.plan.analysis import has_subquery, is_deterministic
from quereus_store.plan.conditions import conjunction, equality, filtered
from quereus_store.plan.correlation import Independent, independent
from quereus_store.plan.expressions import (
    BoundExpression,
    Case,
    Comparison,
    InSubquery,
    IsTest,
    Literal,
    Not,
    Truth,
    reference,
)
from quereus_store.plan.nodes import JoinKind
from quereus_store.plan.optimizer import RuleContext
from quereus_store.plan.rules.decorrelation import cheaper_joined, join_tests
from quereus_store.plan.rules.joins import KeyPair, hashable, key_pairs
from quereus_store.types import BOOLEAN


def join_membership(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Replace IN and NOT IN among the conjuncts of filters."""

    def joined(left: nodes.PlanNode, wanted: bool, test: InSubquery) -> nodes.PlanNode | None:
        return _joined(left, wanted, test, context)

    return join_tests(plan, _as_test, joined, context)


def _as_test(predicate: BoundExpression) -> tuple[bool, InSubquery] | None:
    if isinstance(predicate, InSubquery):
        return True, predicate
    if isinstance(predicate, Not) and isinstance(predicate.operand, InSubquery):
        return False, predicate.operand
    return None


def _joined(
    plan: nodes.PlanNode, wanted: bool, member: InSubquery, context: RuleContext
) -> nodes.PlanNode | None:
    outer = frozenset(column.id for column in plan.columns)
    if any(map(has_subquery, member.operands)) or not is_deterministic(member.plan):
        return None
    correlated = bool(nodes.free_columns(member.plan) & outer)
    inner = independent(member.plan, outer, as_set=True)
    if inner is None:
        return None
    pairs = [
        equality(operand, reference(column), using)
        for operand, column, using in zip(member.operands, member.plan.columns, member.using, strict=True)
    ]
    if not all(_is_key(pair, outer, context) for pair in pairs):
        return None
    if wanted:
        joined: nodes.PlanNode | None = _join(plan, JoinKind.SEMI, inner, pairs)
    else:
        joined = _without_matches(plan, inner, pairs, correlated, context)
    if joined is None or (correlated and not cheaper_joined(plan, member.plan, inner, context)):
        return None
    return joined


def _is_key(pair: Comparison, outer: frozenset[int], context: RuleContext) -> bool:
    """Whether a pair is an equality of both sides that a hash table can serve."""
    key = KeyPair(pair.left, pair.right, pair.using, pair)
    reads = nodes.referenced_columns(pair.left) & outer
    return bool(reads) and hashable(key, context.services.collation(pair.using))


def _join(
    plan: nodes.PlanNode, kind: JoinKind, inner: Independent, conditions: Sequence[BoundExpression]
) -> nodes.Join:
    condition = conjunction([*inner.conditions, *conditions])
    return nodes.Join(plan.columns, kind, plan, inner.plan, condition)


def _without_matches(
    plan: nodes.PlanNode,
    inner: Independent,
    pairs: Sequence[Comparison],
    correlated: bool,
    context: RuleContext,
) -> nodes.PlanNode | None:
    """NOT IN: no row that equals, and none for which that is unknown."""
    unknowable = any(pair.left.nullable or pair.right.nullable for pair in pairs)
    if not unknowable:
        return _join(plan, JoinKind.ANTI, inner, pairs)
    if len(pairs) > 1 or not correlated:
        return None
    (pair,) = pairs
    ties = _ties(
        nodes.Join(plan.columns, JoinKind.ANTI, plan, inner.plan, conjunction(inner.conditions)), context
    )
    if ties is None:
        return None
    joined: nodes.PlanNode = _join(plan, JoinKind.ANTI, inner, pairs)
    if pair.right.nullable:
        missing = filtered(inner.plan, [_is_null(pair.right)])
        joined = _join(joined, JoinKind.ANTI, replace(inner, plan=missing), ())
    if pair.left.nullable:
        absent = [_only_if_null(tie, pair.left) for tie in ties]
        joined = nodes.Join(plan.columns, JoinKind.ANTI, joined, inner.plan, conjunction(absent))
    return joined


def _ties(join: nodes.Join, context: RuleContext) -> list[KeyPair] | None:
    """The correlation as equalities, if it is nothing else."""
    pairs, rest = key_pairs(join, context)
    return pairs if pairs and not rest else None


def _is_null(expression: BoundExpression) -> BoundExpression:
    return IsTest(BOOLEAN, False, None, expression, Truth.NULL)


def _only_if_null(tie: KeyPair, operand: BoundExpression) -> BoundExpression:
    """The equality, which holds only where the operand is NULL: its left side is NULL elsewhere."""
    left = tie.left
    missing = Literal(left.type, True, None, None)
    key = Case(left.type, True, left.collation, ((_is_null(operand), left),), missing)
    return equality(key, tie.right, tie.using)
