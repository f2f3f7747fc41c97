"""Whether the rows of a body depend on the order in which its input comes.

SQL leaves that open, but a view should show what its body shows: which of 'Ab' and
'aB' stands for a group under NOCASE, what ``group_concat`` without ORDER BY gives,
which of two peers ``row_number`` numbers first.  Recomputing a part keeps the order of
the whole only where the rows come from one table in key order.
"""

from __future__ import annotations

from collections.abc import Iterable

from quereus_store.plan import nodes as plans
from quereus_store.plan.expressions import AggregateCall, BoundExpression, ColumnRef, reference
from quereus_store.types.collations import honours_collation
from quereus_store.views.facts import facts_of
from quereus_store.views.rows import is_plain


def depends_on_order(plan: plans.PlanNode, physical: plans.PlanNode) -> bool:
    """Whether parts of the plan may come out otherwise than the whole would.

    ``physical`` is how the whole is computed.
    """
    return _sensitive(plan) and not _in_key_order(physical)


def _sensitive(plan: plans.PlanNode) -> bool:
    return any(_is_sensitive(node) for node in plans.walk_plan(plan))


def _is_sensitive(node: plans.PlanNode) -> bool:
    if isinstance(node, plans.Aggregate):
        return _one_stands_for_many(node.keys, node.using) or any(map(_ordered, node.aggregates))
    if isinstance(node, plans.Distinct):
        return _one_stands_for_many(map(reference, node.columns), node.using)
    if isinstance(node, plans.SetOperation) and not (node.kind is plans.SetKind.UNION and node.all):
        return _one_stands_for_many(map(reference, node.columns), node.using)
    if isinstance(node, plans.Window):
        return not _orders_fully(node)
    return False


def _one_stands_for_many(expressions: Iterable[BoundExpression], using: Iterable[str]) -> bool:
    """Whether values that are equal may look different."""
    return any(
        not is_plain(expression.type) or (honours_collation(expression.type) and name != "BINARY")
        for expression, name in zip(expressions, using, strict=False)
    )


_ORDERLESS = frozenset({"any_value"})


def _ordered(call: AggregateCall) -> bool:
    return call.function.ordered or call.function.name in _ORDERLESS or _keeps_first(call)


def _keeps_first(call: AggregateCall) -> bool:
    """min and max of values that are equal and look different, DISTINCT of such."""
    if not (call.function.collated or call.distinct):
        return False
    return _one_stands_for_many(call.arguments, [call.using] * len(call.arguments))


def _orders_fully(node: plans.Window) -> bool:
    """Whether partition and order together leave no peers."""
    columns = [e.id for e in node.partition if isinstance(e, ColumnRef)]
    columns += [term.expression.id for term in node.order if isinstance(term.expression, ColumnRef)]
    return facts_of(node.input).is_key(columns)


def _in_key_order(physical: plans.PlanNode) -> bool:
    """Whether all rows come from one table, in the order of its primary key."""
    found = [
        node for node in plans.walk_plan(physical) if isinstance(node, plans.TableScan | plans.IndexAccess)
    ]
    if len(found) != 1 or any(isinstance(node, _REORDERING) for node in plans.walk_plan(physical)):
        return False
    only = found[0]
    return isinstance(only, plans.TableScan) or only.access.path.index is None


_REORDERING = (plans.With, plans.Recursion, plans.TableFunctionScan)
