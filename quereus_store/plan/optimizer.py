"""The optimizer: a short ordered list of rules, each a function from plan to plan.

Every rule sees the whole plan and may rewrite any of it; most are written with
:func:`~quereus_store.plan.nodes.bottom_up`.  The plans of subqueries in expressions are optimized first,
each by the same list, so a rule need not look into expressions.

Rules that take subqueries out of expressions come before all that, while their plans
are still as they were written.

====================  ========================================================
rule                  what it does
====================  ========================================================
join_existence        EXISTS and NOT EXISTS as semi- and anti-joins
join_membership       the same for IN and NOT IN
join_scalars          correlated scalar subqueries as joins with groups
fold_constants        evaluates what depends on nothing
drop_projections      projections that do nothing, or work on literal rows alone
inline_common_tables  puts a WITH member read once in the place of its reader
factor_disjunctions   takes out of ORs what all branches share or imply
push_filters          moves conditions towards the tables, into join conditions
use_stored_groups     groups that a maintained table has, or whose parts it has
use_stored_rows       joins and filters that a maintained table has made already
choose_access         keys, ranges and indexes instead of scans
order_joins           inner joins of three tables and more in the cheapest order
choose_joins          hash or index lookup instead of pairwise comparison
use_order             drops sorts that an access path makes needless, reads the first groups in order
stream_groups         groups that come in the order of their keys one after the other
keep_top              Sort and Limit in one
show_one_zero         0.0 for all zeros of a group of reals
prune_columns         carries only columns that are read
====================  ========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

from quereus_store.modules.contract import AccessPlan, AccessRequest, Row
from quereus_store.plan import nodes
from quereus_store.plan.costs import work
from quereus_store.plan.estimates import Estimator
from quereus_store.plan.expressions import (
    SUBQUERIES,
    BoundExpression,
    ColumnRef,
    Exists,
    InSubquery,
    ScalarSubquery,
    map_children,
    walk,
)
from quereus_store.plan.stored import Lender, nothing_stored
from quereus_store.schema.objects import IndexSchema, TableSchema
from quereus_store.types import Collation


class OptimizerServices(Protocol):
    """What rules may ask the engine."""

    def collation(self, name: str) -> Collation:
        """A registered collation."""
        ...

    def plan_access(self, table: TableSchema, request: AccessRequest) -> AccessPlan:
        """How a table's module would serve a request."""
        ...

    def row_count(self, table: TableSchema) -> float:
        """About how many rows a table has."""
        ...

    def statistics(self, table: TableSchema) -> Mapping[str, Any] | None:
        """What ANALYZE found out about a table, if it has been run."""
        ...

    def first_rows(self, table: TableSchema) -> Sequence[Row]:
        """Some rows with which a table begins, as last committed."""
        ...

    def index_predicate(self, table: TableSchema, index: IndexSchema) -> BoundExpression | None:
        """The bound predicate of a partial index; its columns are numbered as the table's, from 0."""
        ...


@dataclass(frozen=True, slots=True)
class RuleContext:
    """What every rule is given.

    ``disabled`` names rules to leave out, and so does the option ``disabled_rules``.
    ``stored`` lends tables that hold the rows of queries, if these may be used.
    ``estimates`` remembers what was found out about plans and columns.
    """

    services: OptimizerServices
    number: Callable[[], int]
    options: Mapping[str, Any] = field(default_factory=dict)
    disabled: frozenset[str] = frozenset()
    stored: Lender = nothing_stored
    estimates: Estimator = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimates", Estimator(self.services))


Rule = Callable[[nodes.PlanNode, RuleContext], nodes.PlanNode]


_CONCERNS: Mapping[str, frozenset[type]] = {
    "join_existence": frozenset({Exists}),
    "join_membership": frozenset({InSubquery}),
    "join_scalars": frozenset({ScalarSubquery, nodes.SingleRow}),
    "drop_projections": frozenset({nodes.Project}),
    "inline_common_tables": frozenset({nodes.With}),
    "factor_disjunctions": frozenset({nodes.Filter, nodes.Join}),
    "push_filters": frozenset({nodes.Filter, nodes.Join}),
    "show_one_zero": frozenset({nodes.Aggregate, nodes.Distinct, nodes.SetOperation}),
    "choose_access": frozenset({nodes.Filter}),
    "order_joins": frozenset({nodes.Join}),
    "choose_joins": frozenset({nodes.Join}),
    "use_order": frozenset({nodes.Sort, nodes.Limit}),
    "stream_groups": frozenset({nodes.Aggregate}),
    "keep_top": frozenset({nodes.Limit}),
}
"""What must be in a plan if there is to be anything to do for a rule; those not named look at every plan."""


def optimize(
    plan: nodes.PlanNode, context: RuleContext, rules: Sequence[Rule] | None = None
) -> nodes.PlanNode:
    """The physical plan of a logical one, by the rules given or all."""
    names = [column.name for column in plan.columns]
    early, chosen = _default_rules() if rules is None else ((), rules)
    disabled = context.disabled.union(context.options.get("disabled_rules", ()))
    kinds = _all_kinds(plan)
    for rule in early:
        name = rule.__name__
        if name not in disabled and not kinds.isdisjoint(_CONCERNS[name]):
            before, plan = plan, rule(plan, context)
            if plan is not before:
                kinds = _all_kinds(plan)
    if not kinds.isdisjoint(SUBQUERIES):
        plan = _optimize_subqueries(plan, context, rules)
        kinds = _kinds(plan)
    for rule in chosen:
        name = rule.__name__
        if name not in disabled and not kinds.isdisjoint(_CONCERNS.get(name, kinds)):
            before, plan = plan, rule(plan, context)
            if plan is not before:
                kinds = _kinds(plan)
    return _called(plan, names)


def _called(plan: nodes.PlanNode, names: Sequence[str]) -> nodes.PlanNode:
    """The plan under the names it had: a rule may have left a part of it with names of its own."""
    if [column.name for column in plan.columns] == names or len(plan.columns) != len(names):
        return plan
    columns = [replace(column, name=name) for column, name in zip(plan.columns, names, strict=True)]
    return replace(plan, columns=tuple(columns))


def _kinds(plan: nodes.PlanNode) -> set[type]:
    """The kinds of nodes that a plan is made of."""
    return set(map(type, nodes.walk_plan(plan)))


def _all_kinds(plan: nodes.PlanNode) -> set[type]:
    """The same with the kinds of expressions in it."""
    kinds: set[type] = set()
    for node in nodes.walk_plan(plan):
        kinds.add(type(node))
        for expression in nodes.expressions(node):
            if type(expression) is ColumnRef:
                kinds.add(ColumnRef)
            else:
                kinds.update(map(type, walk(expression)))
    return kinds


def physical_cost(plan: nodes.PlanNode, context: RuleContext) -> float:
    """What a logical plan is going to cost, once it is known how tables are read and joined."""
    from quereus_store.plan.rules.access import choose_access
    from quereus_store.plan.rules.join_order import order_joins
    from quereus_store.plan.rules.joins import choose_joins

    return work(optimize(plan, context, (choose_access, order_joins, choose_joins)), context.estimates)


def rule_names() -> frozenset[str]:
    """The names of all rules, as ``disabled_rules`` takes them."""
    return frozenset(rule.__name__ for rules in _default_rules() for rule in rules)


def _optimize_subqueries(
    plan: nodes.PlanNode, context: RuleContext, rules: Sequence[Rule] | None
) -> nodes.PlanNode:
    return nodes.bottom_up(
        plan,
        lambda node: nodes.map_expressions(node, lambda each: _with_plans_optimized(each, context, rules)),
    )


def _with_plans_optimized(
    expression: BoundExpression, context: RuleContext, rules: Sequence[Rule] | None
) -> BoundExpression:
    expression = map_children(expression, lambda child: _with_plans_optimized(child, context, rules))
    if isinstance(expression, SUBQUERIES):
        return replace(expression, plan=optimize(expression.plan, context, rules))
    return expression


@cache
def _default_rules() -> tuple[Sequence[Rule], Sequence[Rule]]:
    """The rules that take subqueries out of expressions, and those that follow."""
    from quereus_store.plan.rules.access import choose_access
    from quereus_store.plan.rules.common_tables import inline_common_tables
    from quereus_store.plan.rules.constants import fold_constants
    from quereus_store.plan.rules.disjunctions import factor_disjunctions
    from quereus_store.plan.rules.existence import join_existence
    from quereus_store.plan.rules.filters import push_filters
    from quereus_store.plan.rules.join_order import order_joins
    from quereus_store.plan.rules.joins import choose_joins
    from quereus_store.plan.rules.membership import join_membership
    from quereus_store.plan.rules.ordering import use_order
    from quereus_store.plan.rules.projections import drop_projections
    from quereus_store.plan.rules.pruning import prune_columns
    from quereus_store.plan.rules.scalars import join_scalars
    from quereus_store.plan.rules.stored_groups import use_stored_groups
    from quereus_store.plan.rules.stored_rows import use_stored_rows
    from quereus_store.plan.rules.streaming import stream_groups
    from quereus_store.plan.rules.top import keep_top
    from quereus_store.plan.rules.zeros import show_one_zero

    early = (join_existence, join_membership, join_scalars)
    return early, (
        fold_constants,
        drop_projections,
        inline_common_tables,
        factor_disjunctions,
        push_filters,
        use_stored_groups,
        use_stored_rows,
        choose_access,
        order_joins,
        choose_joins,
        use_order,
        stream_groups,
        keep_top,
        show_one_zero,
        prune_columns,
    )
