"""In which order the rows of a plan come of themselves: by the key of the table that drives its pipeline.

A scan gives rows in primary-key order, an access path in the order of its key.  Filters and
projections keep that, and so do joins that look the other side up for each row of their left one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quereus_store.modules.contract import AccessKind
from quereus_store.plan import nodes
from quereus_store.plan.expressions import BoundExpression, ColumnRef, SortTerm
from quereus_store.plan.nodes import JoinKind
from quereus_store.schema.objects import IndexPart, KeyPart, fold
from quereus_store.types.collations import honours_collation

if TYPE_CHECKING:
    from quereus_store.plan.optimizer import OptimizerServices

KEEPS_LEFT_ORDER = frozenset({JoinKind.INNER, JoinKind.CROSS, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI})
KEYED_JOINS = (nodes.HashJoin, nodes.MergeJoin)


def ascending_key(
    plan: nodes.PlanNode, key: BoundExpression, using: str, services: OptimizerServices
) -> ColumnRef | None:
    """The column by whose ascending order the rows come in that of ``key``, compared under ``using``.

    It is ``key`` itself, or the one that it equals by an inner join; None where they come otherwise.
    """
    if not isinstance(key, ColumnRef):
        return None
    if isinstance(plan, nodes.Filter):
        return ascending_key(plan.input, key, using, services)
    if isinstance(plan, nodes.Project):
        return _through_project(plan, key, using, services)
    if isinstance(plan, nodes.Sort):
        return key if _sorted_by(plan.terms, key, using) else None
    if isinstance(plan, nodes.TableScan):
        parts: Sequence[KeyPart | IndexPart] = plan.table.primary_key.parts
        return key if _leads(plan, parts, key, using, services) else None
    if isinstance(plan, nodes.IndexAccess):
        return key if _leads(plan, _remaining_parts(plan), key, using, services) else None
    if isinstance(plan, nodes.IndexJoin | nodes.Join | nodes.HashJoin | nodes.MergeJoin):
        return _through_join(plan, key, using, services)
    return None


def _through_project(
    plan: nodes.Project, key: ColumnRef, using: str, services: OptimizerServices
) -> ColumnRef | None:
    sources = dict(zip((column.id for column in plan.columns), plan.expressions, strict=True))
    found = ascending_key(plan.input, sources.get(key.id, key), using, services)
    for column, source in zip(plan.columns, plan.expressions, strict=True):
        if found is not None and isinstance(source, ColumnRef) and source.id == found.id:
            return ColumnRef(column.type, column.nullable, column.collation, column.id, column.name)
    return None


def _through_join(
    plan: nodes.IndexJoin | nodes.Join | nodes.HashJoin | nodes.MergeJoin,
    key: ColumnRef,
    using: str,
    services: OptimizerServices,
) -> ColumnRef | None:
    if plan.kind not in KEEPS_LEFT_ORDER:
        return None
    if any(column.id == key.id for column in plan.left.columns):
        return ascending_key(plan.left, key, using, services)
    equal = equal_on_left(plan, key, using)
    return None if equal is None else ascending_key(plan.left, equal, using, services)


def equal_on_left(plan: nodes.PlanNode, key: ColumnRef, using: str) -> ColumnRef | None:
    """The left column that a right one equals by an inner join, under a collation."""
    if not isinstance(plan, nodes.HashJoin | nodes.MergeJoin) or plan.kind is not JoinKind.INNER:
        return None
    for left, right, collation in zip(plan.left_keys, plan.right_keys, plan.using, strict=True):
        same = collation == using or not honours_collation(left.type)
        if isinstance(right, ColumnRef) and isinstance(left, ColumnRef) and right.id == key.id:
            return left if left.type is right.type and same else None
    return None


def _sorted_by(terms: Sequence[SortTerm], key: ColumnRef, using: str) -> bool:
    first = terms[0]
    expression = first.expression
    return (
        isinstance(expression, ColumnRef)
        and expression.id == key.id
        and not first.descending
        and not first.nulls_last
        and (fold(first.using) == fold(using) or not honours_collation(key.type))
    )


def _remaining_parts(plan: nodes.IndexAccess) -> Sequence[KeyPart | IndexPart]:
    """The key parts that rows of an access path are ordered by; none where they are in no order."""
    path = plan.access.path
    if path.reverse or path.kind not in (AccessKind.SCAN, AccessKind.RANGE):
        return ()
    if path.index is None:
        return plan.table.primary_key.parts[path.equal :]
    index = next(each for each in plan.table.indexes if fold(each.name) == fold(path.index))
    return index.parts[path.equal :]


def _leads(
    plan: nodes.TableScan | nodes.IndexAccess,
    parts: Sequence[KeyPart | IndexPart],
    key: ColumnRef,
    using: str,
    services: OptimizerServices,
) -> bool:
    """Whether a column is the first part of a key, in ascending order as ``using`` has it."""
    if not parts or parts[0].descending:
        return False
    place = next((p for c, p in zip(plan.columns, plan.positions, strict=True) if c.id == key.id), None)
    if place is None or parts[0].column != place:
        return False
    if not honours_collation(key.type):
        return key.type.is_numeric
    collation = parts[0].collation
    return fold(collation) == fold(using) and services.collation(collation).order_preserving
