"""How many rows a plan may give: coarse figures for comparing plans, not promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quereus_store.plan import nodes
from quereus_store.plan.conditions import conjuncts
from quereus_store.plan.expressions import BoundExpression, Comparison, InList, InSubquery, Literal

if TYPE_CHECKING:
    from quereus_store.plan.optimizer import OptimizerServices

_DEFAULT = 1000.0
_FUNCTION_ROWS = 100.0


def estimate_rows(plan: nodes.PlanNode, services: OptimizerServices) -> float:
    """About how many rows a plan gives; at least 1."""
    estimate = _ESTIMATES.get(type(plan))
    return max(1.0, estimate(plan, services)) if estimate else _DEFAULT


def selectivity(predicate: BoundExpression | None) -> float:
    """The share of rows that a predicate lets through."""
    share = 1.0
    for conjunct in conjuncts(predicate):
        if isinstance(conjunct, Comparison) and conjunct.operator in ("=", "is"):
            share *= 0.1
        elif isinstance(conjunct, InList | InSubquery):
            share *= 0.2
        else:
            share *= 0.3
    return share


def _input(plan: Any, services: OptimizerServices) -> float:
    return estimate_rows(plan.input, services)


def _join(plan: Any, services: OptimizerServices) -> float:
    left, right = estimate_rows(plan.left, services), estimate_rows(plan.right, services)
    if plan.kind in (nodes.JoinKind.SEMI, nodes.JoinKind.ANTI):
        return left * 0.5
    if isinstance(plan, nodes.HashJoin):
        return max(left, right)
    if plan.condition is None:
        return left * right
    equal = any(isinstance(c, Comparison) and c.operator == "=" for c in conjuncts(plan.condition))
    return max(left, right) if equal else left * right * selectivity(plan.condition)


def _limit(plan: Any, services: OptimizerServices) -> float:
    rows = estimate_rows(plan.input, services)
    if isinstance(plan.count, Literal) and isinstance(plan.count.value, int):
        return min(rows, float(plan.count.value))
    return rows


_ESTIMATES: dict[type[nodes.PlanNode], Callable[[Any, OptimizerServices], float]] = {
    nodes.TableScan: lambda plan, services: services.row_count(plan.table),
    nodes.IndexAccess: lambda plan, services: plan.access.rows,
    nodes.Values: lambda plan, services: float(len(plan.rows)),
    nodes.ParameterRows: lambda plan, services: 1.0,
    nodes.GivenRows: lambda plan, services: plan.estimate,
    nodes.TableFunctionScan: lambda plan, services: _FUNCTION_ROWS,
    nodes.Filter: lambda plan, services: _input(plan, services) * selectivity(plan.predicate),
    nodes.Project: _input,
    nodes.Sort: _input,
    nodes.Window: _input,
    nodes.Distinct: lambda plan, services: _input(plan, services) * 0.5,
    nodes.Aggregate: lambda plan, services: _input(plan, services) * 0.1 if plan.keys else 1.0,
    nodes.Limit: _limit,
    nodes.TopN: _limit,
    nodes.Join: _join,
    nodes.HashJoin: _join,
    nodes.IndexJoin: lambda plan, services: (
        estimate_rows(plan.left, services) * max(1.0, plan.inner.access.rows)
    ),
    nodes.SetOperation: lambda plan, services: (
        estimate_rows(plan.left, services) + estimate_rows(plan.right, services)
    ),
    nodes.With: lambda plan, services: estimate_rows(plan.body, services),
}
