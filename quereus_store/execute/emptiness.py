"""Parts of a query that read nothing, whatever their tables hold: their conditions can never be met.

``where false`` is one; ``where v < 5`` over a table whose CHECK says ``v > 10`` is another.  Parts that
cannot give a row are not read, so a query of nothing else reads no table at all.

Chapters: views-and-maintained-tables, sections 5 and 10; functions, section 12.
"""

from __future__ import annotations

from collections.abc import Iterator

from quereus_store.errors import Error
from quereus_store.execute.counting import rule_context
from quereus_store.execute.engine import Engine
from quereus_store.plan import nodes as plans
from quereus_store.plan.binder import BindContext
from quereus_store.plan.binder.rows import bind_row_expression
from quereus_store.plan.conditions import conjuncts
from quereus_store.plan.contradiction import contradicts
from quereus_store.plan.expressions import BoundExpression, Column, ColumnRef, reference, subplans
from quereus_store.plan.optimizer import optimize
from quereus_store.plan.rules.common_tables import inline_common_tables
from quereus_store.plan.rules.constants import fold_constants
from quereus_store.plan.rules.filters import push_filters
from quereus_store.schema.objects import Catalog, Operation

_WRITES = frozenset({Operation.INSERT, Operation.UPDATE})
_BOTH_DECIDE = frozenset({plans.JoinKind.INNER, plans.JoinKind.CROSS, plans.JoinKind.SEMI})


def contributing_scans(
    engine: Engine, catalog: Catalog, plan: plans.PlanNode, context: BindContext
) -> Iterator[plans.TableScan]:
    """The scans of a bound query, subqueries included, that may add something to its rows."""
    rules = (fold_constants, inline_common_tables, push_filters)
    return _Emptiness(engine, catalog).scans(optimize(plan, rule_context(engine, context), rules))


class _Emptiness:
    """Looks through a plan for what no row can meet."""

    def __init__(self, engine: Engine, catalog: Catalog) -> None:
        self._engine = engine
        self._catalog = catalog

    def scans(self, plan: plans.PlanNode) -> Iterator[plans.TableScan]:
        """The scans that may add something to a plan's rows."""
        if self.is_empty(plan):
            return
        if isinstance(plan, plans.TableScan):
            yield plan
        for expression in plans.expressions(plan):
            for inner in subplans(expression):
                yield from self.scans(inner)
        for child in plans.inputs(plan):
            yield from self.scans(child)

    def is_empty(self, plan: plans.PlanNode) -> bool:
        """Whether a plan never gives a row (a sufficient test)."""
        match plan:
            case plans.Values(rows=rows):
                return not rows
            case plans.Filter():
                return self._filters_all(plan) or self.is_empty(plan.input)
            case (
                plans.Project()
                | plans.Sort()
                | plans.Distinct()
                | plans.Limit()
                | plans.TopN()
                | plans.Window()
            ):
                return self.is_empty(plan.input)
            case plans.Aggregate():
                return bool(plan.keys) and plan.sets is None and self.is_empty(plan.input)
            case plans.Join():
                return self._joins_none(plan)
            case plans.SetOperation():
                return self._combines_none(plan)
        return False

    def _joins_none(self, join: plans.Join) -> bool:
        if join.kind in _BOTH_DECIDE:
            return self.is_empty(join.left) or self.is_empty(join.right)
        if join.kind is plans.JoinKind.RIGHT:
            return self.is_empty(join.right)
        if join.kind is plans.JoinKind.FULL:
            return self.is_empty(join.left) and self.is_empty(join.right)
        return self.is_empty(join.left)

    def _combines_none(self, operation: plans.SetOperation) -> bool:
        left, right = self.is_empty(operation.left), self.is_empty(operation.right)
        if operation.kind is plans.SetKind.INTERSECT:
            return left or right
        return left if operation.kind is plans.SetKind.EXCEPT else left and right

    def _filters_all(self, plan: plans.Filter) -> bool:
        conditions: list[BoundExpression] = []
        node: plans.PlanNode = plan
        while isinstance(node, plans.Filter):
            conditions += conjuncts(node.predicate)
            node = node.input
        if not isinstance(node, plans.TableScan):
            return False
        return contradicts(conditions, self._checks(node), frozenset(column.id for column in node.columns))

    def _checks(self, scan: plans.TableScan) -> list[BoundExpression]:
        """What the table's CHECKs say of its rows, over the columns of a scan."""
        by_position = dict(zip(scan.positions, scan.columns, strict=True))
        found = []
        for check in scan.table.checks:
            if check.operations >= _WRITES:
                try:
                    bound, row = bind_row_expression(
                        self._engine.bind_context(self._catalog), scan.table, check.expression
                    )
                except Error:
                    continue
                mapping = {
                    own.id: _as_scanned(by_position.get(position), own, position)
                    for position, own in enumerate(row)
                }
                found.append(plans.substitute(bound, mapping))
        return found


def _as_scanned(column: Column | None, own: Column, position: int) -> BoundExpression:
    """A column of a row as a scan numbers it; one that the scan leaves out gets a number of its own."""
    if column is None:
        return ColumnRef(own.type, own.nullable, own.collation, -1 - position, own.name)
    return reference(column)
