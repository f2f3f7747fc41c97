"""EXISTS and NOT EXISTS over a correlated subquery become a semi-join and an anti-join.

``where exists (select 1 from task t where t.crew = c.id and t.done)`` keeps the rows of ``c``
that have a match in ``task``, which is what a semi-join does, and it reads ``task`` once.  The
conditions that tie the subquery to the row are the join's.  At least one must be an
equality that a hash table or an index can serve: else the subquery, whose results are kept by the
outer values that it reads, is no worse.
"""

from __future__ import annotations

from quereus_store.plan import nodes
from quereus_store.plan.analysis import is_deterministic
from quereus_store.plan.conditions import conjunction
from quereus_store.plan.correlation import Independent, independent, without_outputs
from quereus_store.plan.expressions import BoundExpression, Exists, Literal, Not
from quereus_store.plan.nodes import JoinKind
from quereus_store.plan.optimizer import RuleContext
from quereus_store.plan.rules.decorrelation import cheaper_joined, has_key_pair, join_tests


def join_existence(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Replace EXISTS among the conjuncts of filters."""

    def joined(left: nodes.PlanNode, kind: JoinKind, test: Exists) -> nodes.PlanNode | None:
        return _joined(left, kind, test, context)

    return join_tests(plan, _as_test, joined, context)


def _as_test(conjunct: BoundExpression) -> tuple[JoinKind, Exists] | None:
    if isinstance(conjunct, Exists):
        return JoinKind.SEMI, conjunct
    if isinstance(conjunct, Not) and isinstance(conjunct.operand, Exists):
        return JoinKind.ANTI, conjunct.operand
    return None


def _joined(
    plan: nodes.PlanNode, kind: JoinKind, exists: Exists, context: RuleContext
) -> nodes.PlanNode | None:
    inner = _taken_out(plan, exists)
    if inner is None:
        return None
    join = nodes.Join(plan.columns, kind, plan, inner.plan, conjunction(inner.conditions))
    if not has_key_pair(join, context):
        return None
    return join if cheaper_joined(plan, exists.plan, inner, context) else None


def _taken_out(plan: nodes.PlanNode, exists: Exists) -> Independent | None:
    outer = frozenset(column.id for column in plan.columns)
    subquery = _unlimited(exists.plan)
    if not nodes.free_columns(subquery) & outer or not is_deterministic(subquery):
        return None
    inner = independent(without_outputs(subquery), outer, as_set=True)
    return inner if inner is not None and inner.conditions else None


def _unlimited(plan: nodes.PlanNode) -> nodes.PlanNode:
    """The subquery without a LIMIT that leaves it at least a row."""
    if isinstance(plan, nodes.Limit) and plan.offset is None and isinstance(plan.count, Literal):
        count = plan.count.value
        if type(count) is int and count >= 1:
            return plan.input
    return plan
