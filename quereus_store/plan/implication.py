"""Which partial indexes a query may use: those whose predicate its own conditions imply.

The test is sufficient, not complete: every conjunct of the index's predicate
must stand among the query's conjuncts, or follow from one of them by a simple
argument (``c = 5`` and ``c > 3`` imply ``c is not null``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quereus_store.plan import nodes
from quereus_store.plan.conditions import conjuncts, rejects_null
from quereus_store.plan.expressions import BoundExpression, ColumnRef, IsTest, Truth, reference
from quereus_store.plan.nodes import substitute

if TYPE_CHECKING:
    from quereus_store.plan.optimizer import RuleContext


def implied_indexes(
    scan: nodes.TableScan, predicates: Sequence[BoundExpression], context: RuleContext
) -> frozenset[str]:
    """Names of the table's partial indexes that hold every row which satisfies the predicates."""
    partial = [index for index in scan.table.indexes if index.where is not None]
    if not partial or not predicates:
        return frozenset()
    columns = dict(zip(scan.positions, scan.columns, strict=True))
    mapping: dict[int, BoundExpression] = {
        position: reference(column) for position, column in columns.items()
    }
    names = []
    for index in partial:
        predicate = context.services.index_predicate(scan.table, index)
        if predicate is None:
            continue
        wanted = conjuncts(substitute(predicate, mapping))
        if all(_follows(conjunct, predicates) for conjunct in wanted):
            names.append(index.name)
    return frozenset(names)


def _follows(wanted: BoundExpression, known: Sequence[BoundExpression]) -> bool:
    if wanted in known:
        return True
    if isinstance(wanted, IsTest) and wanted.test is Truth.NULL and wanted.negated:
        operand = wanted.operand
        if isinstance(operand, ColumnRef):
            column = frozenset({operand.id})
            return any(rejects_null(predicate, column) for predicate in known)
    return False
