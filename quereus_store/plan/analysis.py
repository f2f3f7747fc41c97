"""Properties of plans and expressions that several rules ask for."""

from __future__ import annotations

from collections.abc import Sequence

from quereus_store.plan import nodes
from quereus_store.plan.expressions import (
    SUBQUERIES,
    AggregateCall,
    Arithmetic,
    BoundExpression,
    Call,
    ColumnRef,
    Literal,
    PatternKind,
    PatternMatch,
    walk,
)
from quereus_store.types.arithmetic import ArithmeticMode, arithmetic_plan


def is_deterministic(plan: nodes.PlanNode) -> bool:
    """Whether a plan gives the same rows whenever it runs within one statement."""
    for node in nodes.walk_plan(plan):
        if isinstance(node, nodes.MutationScan):
            return False
        if isinstance(node, nodes.TableFunctionScan) and not node.function.deterministic:
            return False
        if not all(is_deterministic_expression(expression) for expression in nodes.expressions(node)):
            return False
    return True


def is_deterministic_expression(expression: BoundExpression) -> bool:
    """Whether an expression gives the same value for the same columns within one statement."""
    for part in walk(expression):
        if isinstance(part, Call | AggregateCall):
            if not part.function.deterministic:
                return False
        elif isinstance(part, SUBQUERIES) and not is_deterministic(part.plan):
            return False
    return True


def has_subquery(expression: BoundExpression) -> bool:
    """Whether an expression contains a subquery."""
    return any(isinstance(part, SUBQUERIES) for part in walk(expression))


def may_raise(expression: BoundExpression) -> bool:
    """Whether an expression fails for some values; what is inside subqueries counts as if it did."""
    return any(isinstance(part, SUBQUERIES) or _part_may_raise(part) for part in walk(expression))


def _part_may_raise(part: BoundExpression) -> bool:
    if isinstance(part, Call):
        return part.function.raises
    if isinstance(part, Arithmetic):
        # What is text or anything may be a date or a duration, and not all of these can be combined.
        return arithmetic_plan(part.left.type, part.right.type) is ArithmeticMode.BY_VALUE
    if isinstance(part, PatternMatch):
        return part.kind is PatternKind.REGEXP or not _is_single_character(part.escape)
    return False


def _is_single_character(escape: BoundExpression | None) -> bool:
    return escape is None or (
        isinstance(escape, Literal) and isinstance(escape.value, str) and len(escape.value) == 1
    )


def holds_unique_key(plan: nodes.PlanNode, keys: Sequence[BoundExpression], using: Sequence[str]) -> bool:
    """Whether no two rows of a plan can be equal in these expressions, compared under ``using``.

    That holds for expressions that hold the whole primary key of a table, or what a UNIQUE
    constraint of it covers (rows with NULL there aside, which are equal to nothing), and for
    all keys of a grouping.
    """
    if isinstance(plan, nodes.Filter):
        return holds_unique_key(plan.input, keys, using)
    if isinstance(plan, nodes.Project):
        sources = dict(zip((column.id for column in plan.columns), plan.expressions, strict=True))
        below = [sources.get(key.id, key) if isinstance(key, ColumnRef) else key for key in keys]
        return holds_unique_key(plan.input, below, using)
    named = {
        (key.id, collation) for key, collation in zip(keys, using, strict=True) if isinstance(key, ColumnRef)
    }
    if isinstance(plan, nodes.Aggregate):
        return plan.sets is None and all(
            (column.id, collation) in named
            for column, collation in zip(plan.columns, plan.using, strict=False)
        )
    if not isinstance(plan, nodes.TableScan | nodes.IndexAccess):
        return False
    return _holds_table_key(plan, named)


def _holds_table_key(plan: nodes.TableScan | nodes.IndexAccess, named: set[tuple[int, str]]) -> bool:
    table = plan.table
    positions = {column.id: position for column, position in zip(plan.columns, plan.positions, strict=True)}
    held = {(positions[column], collation) for column, collation in named if column in positions}
    parts = table.primary_key.parts
    if parts and all((part.column, part.collation) in held for part in parts):
        return True
    indexes = {index.name.lower(): index for index in table.indexes}
    for constraint in table.unique_constraints:
        index = indexes.get(constraint.index.lower())
        if index is None or index.where is not None or len(index.parts) != len(constraint.columns):
            continue
        if all(part.column is not None and (part.column, part.collation) in held for part in index.parts):
            return True
    return False
