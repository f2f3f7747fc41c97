"""What running a physical plan takes, for choosing between plans: one row read and passed on is about 1.

The figures are ratios measured on generated code: filling a hash table costs about as
much as reading, asking it half of that, an index look-up within a batch three times.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from typing import TYPE_CHECKING, Any

from quereus_store.plan import nodes
from quereus_store.plan.expressions import BoundExpression

if TYPE_CHECKING:
    from quereus_store.plan.estimates import Estimator

LOOKUP = 3.0
"""One index look-up of a batch."""

PROBE = 0.5
"""Asking a hash table."""

MEMBER = 0.4
"""Adding a key to a set, where only the keys of a side matter."""

READ = 0.2
"""Reading a row that no hash table keeps, as a share of what a plan takes for it."""

PAIR = 0.3
"""Looking at one pair of rows."""

CALL = 12.0
"""Running a subquery once, beside what its plan takes."""


def work(plan: nodes.PlanNode, estimates: Estimator) -> float:
    """The cost of all rows of a plan; that of subqueries in its expressions is not counted."""
    own = _OWN.get(type(plan))
    if isinstance(plan, nodes.IndexJoin):
        below = work(plan.left, estimates)
    else:
        below = sum(work(child, estimates) for child in nodes.inputs(plan))
    return below + (own(plan, estimates) if own else 0.2 * estimates.rows(plan))


def _access(plan: nodes.IndexAccess, estimates: Estimator) -> float:
    return max(0.5, plan.access.cost)


def _index_join(plan: nodes.IndexJoin, estimates: Estimator) -> float:
    return estimates.rows(plan.left) * (LOOKUP + plan.inner.access.rows - 1) + 0.2 * estimates.rows(plan)


def _hash_join(plan: nodes.HashJoin | nodes.MergeJoin, estimates: Estimator) -> float:
    left, right = estimates.rows(plan.left), estimates.rows(plan.right)
    kept = MEMBER if keys_suffice(plan.kind, plan.residual) else 1.0
    return kept * right + PROBE * left + 0.2 * estimates.rows(plan)


def keys_suffice(kind: nodes.JoinKind, residual: BoundExpression | None) -> bool:
    """Whether a join asks of the right side only which keys there are."""
    return residual is None and kind in nodes.SEMI_JOINS


def _join(plan: nodes.Join, estimates: Estimator) -> float:
    return PAIR * estimates.rows(plan.left) * estimates.rows(plan.right)


def _sort(plan: Any, estimates: Estimator) -> float:
    rows = estimates.rows(plan.input)
    return 0.1 * rows * log2(max(2.0, rows))


_OWN: dict[type[nodes.PlanNode], Callable[[Any, Estimator], float]] = {
    nodes.TableScan: lambda plan, estimates: estimates.rows(plan),
    nodes.IndexAccess: _access,
    nodes.Filter: lambda plan, estimates: 0.2 * estimates.rows(plan.input),
    nodes.Project: lambda plan, estimates: 0.0,
    nodes.Limit: lambda plan, estimates: 0.0,
    nodes.SingleRow: lambda plan, estimates: 0.0,
    nodes.Aggregate: lambda plan, estimates: 0.7 * estimates.rows(plan.input),
    nodes.Sort: _sort,
    nodes.IndexJoin: _index_join,
    nodes.HashJoin: _hash_join,
    nodes.MergeJoin: _hash_join,
    nodes.Join: _join,
}
