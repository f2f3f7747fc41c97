"""Taking conditions apart: conjuncts, what they read, and comparisons with a column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quereus_store.plan import nodes
from quereus_store.plan.expressions import (
    Between,
    BoundExpression,
    ColumnRef,
    Comparison,
    Conjunction,
    InList,
)
from quereus_store.records import record
from quereus_store.types import BOOLEAN

MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def conjuncts(predicate: BoundExpression | None) -> list[BoundExpression]:
    """The operands that must all be true; BETWEEN over a column counts as its two halves."""
    if predicate is None:
        return []
    if isinstance(predicate, Conjunction):
        return [part for operand in predicate.operands for part in conjuncts(operand)]
    if isinstance(predicate, Between) and isinstance(predicate.low.left, ColumnRef):
        return [predicate.low, predicate.high]
    return [predicate]


def conjunction(operands: Sequence[BoundExpression]) -> BoundExpression | None:
    """The operands joined by AND; None for none."""
    if not operands:
        return None
    if len(operands) == 1:
        return operands[0]
    nullable = any(operand.nullable for operand in operands)
    return Conjunction(BOOLEAN, nullable, None, tuple(operands))


def filtered(plan: nodes.PlanNode, predicates: Sequence[BoundExpression]) -> nodes.PlanNode:
    """A plan under a filter of these predicates; itself for none."""
    predicate = conjunction(predicates)
    return plan if predicate is None else nodes.Filter(plan.columns, plan, predicate)


@record(frozen=True, slots=True)
class ColumnComparison:
    """A conjunct that compares one column with something that is no column of the same relation."""

    column: ColumnRef
    operator: str
    value: BoundExpression
    using: str


def column_comparisons(conjunct: BoundExpression, own: frozenset[int]) -> Iterator[ColumnComparison]:
    """Readings of a conjunct as ``column op value`` for columns in ``own``; the value reads none of them."""
    if not isinstance(conjunct, Comparison) or conjunct.operator not in MIRRORED:
        return
    sides = (
        (conjunct.left, conjunct.operator, conjunct.right),
        (conjunct.right, MIRRORED[conjunct.operator], conjunct.left),
    )
    for column, operator, value in sides:
        if not isinstance(column, ColumnRef) or column.id not in own:
            continue
        if not nodes.referenced_columns(value) & own:
            yield ColumnComparison(column, operator, value, conjunct.using)


def membership(conjunct: BoundExpression, own: frozenset[int]) -> InList | None:
    """A conjunct ``column in (values that read no own column)``."""
    if not isinstance(conjunct, InList) or not isinstance(conjunct.operand, ColumnRef) or not conjunct.items:
        return None
    if conjunct.operand.id not in own:
        return None
    reads_own = any(nodes.referenced_columns(item) & own for item in conjunct.items)
    return None if reads_own else conjunct


def rejects_null(predicate: BoundExpression, columns: frozenset[int]) -> bool:
    """Whether a predicate cannot be true when all these columns are NULL (a sufficient test)."""
    for conjunct in conjuncts(predicate):
        if isinstance(conjunct, Comparison) and conjunct.operator in (*MIRRORED, "!="):
            sides = (conjunct.left, conjunct.right)
            if any(isinstance(side, ColumnRef) and side.id in columns for side in sides):
                return True
        if isinstance(conjunct, InList):
            operand = conjunct.operand
            if isinstance(operand, ColumnRef) and operand.id in columns:
                return True
    return False


def equality(left: BoundExpression, right: BoundExpression, using: str) -> Comparison:
    """``left = right``."""
    return Comparison(BOOLEAN, left.nullable or right.nullable, None, "=", left, right, using)
