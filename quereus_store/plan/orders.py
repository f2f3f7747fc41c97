"""In which order the rows of a plan come of themselves: by the key of the table that drives its pipeline.

A scan gives rows in primary-key order, an access path in the order of its key.  Filters and
projections keep that, and so do joins that look the other side up for each row of their left one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quereus_store.modules.contract import AccessKind
from quereus_store.plan import nodes
from quereus_store.plan.expressions import BoundExpression, ColumnRef, SortTerm, reference
from quereus_store.plan.nodes import SEMI_JOINS, JoinKind
from quereus_store.schema.objects import IndexPart, KeyPart, fold
from quereus_store.types import LogicalType
from quereus_store.types.collations import honours_collation

if TYPE_CHECKING:
    from quereus_store.plan.optimizer import OptimizerServices

KEEPS_LEFT_ORDER = frozenset({JoinKind.INNER, JoinKind.CROSS, JoinKind.LEFT, *SEMI_JOINS})


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
            return reference(column)
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


def groups_together(
    plan: nodes.PlanNode, keys: Sequence[BoundExpression], using: Sequence[str], services: OptimizerServices
) -> bool:
    """Whether rows that are equal in all these keys come one after the other."""
    if isinstance(plan, nodes.Filter):
        return groups_together(plan.input, keys, using, services)
    if not all(isinstance(key, ColumnRef) for key in keys):
        return False
    columns = [key.id for key in keys]  # type: ignore[attr-defined]
    if isinstance(plan, nodes.Project):
        sources = dict(zip((column.id for column in plan.columns), plan.expressions, strict=True))
        below = [sources.get(column, key) for column, key in zip(columns, keys, strict=True)]
        return groups_together(plan.input, below, using, services)
    if isinstance(plan, nodes.IndexJoin | nodes.Join | nodes.HashJoin | nodes.MergeJoin):
        return plan.kind in KEEPS_LEFT_ORDER and groups_together(
            plan.left, _on_left(plan, keys, using), using, services
        )
    if isinstance(plan, nodes.TableScan):
        return _leads_with(plan, plan.table.primary_key.parts, columns, using, services)
    if isinstance(plan, nodes.IndexAccess) and plan.access.path.kind in (AccessKind.SCAN, AccessKind.RANGE):
        return _leads_with(plan, _key_parts(plan)[plan.access.path.equal :], columns, using, services)
    return False


def _on_left(
    plan: nodes.IndexJoin | nodes.Join | nodes.HashJoin | nodes.MergeJoin,
    keys: Sequence[BoundExpression],
    using: Sequence[str],
) -> list[BoundExpression]:
    """Keys of a join in columns of its left side, as far as an equality has them."""
    own = {column.id for column in plan.left.columns}
    found: list[BoundExpression] = []
    for key, collation in zip(keys, using, strict=True):
        other = isinstance(key, ColumnRef) and key.id not in own
        equal = equal_on_left(plan, key, collation) if other else None  # type: ignore[arg-type]
        found.append(key if equal is None else equal)
    return found


def _leads_with(
    plan: nodes.TableScan | nodes.IndexAccess,
    parts: Sequence[KeyPart | IndexPart],
    columns: Sequence[int],
    using: Sequence[str],
    services: OptimizerServices,
) -> bool:
    """Whether a key begins with just these columns, in any order, told apart as ``using`` has it.

    Beside the whole primary key any column of the table tells no more rows apart.
    """
    numbers = {position: column.id for position, column in zip(plan.positions, plan.columns, strict=True)}
    wanted = dict(zip(columns, using, strict=True))
    if len(wanted) < len(columns):
        return False
    for part in parts:
        if not wanted:
            break
        number = None if part.column is None else numbers.get(part.column)
        if number is None or number not in wanted or part.column is None:
            return False
        kind = plan.table.columns[part.column].type
        if not _compares_alike(kind, part.collation, wanted.pop(number), services):
            return False
    whole_key = parts is plan.table.primary_key.parts and len(parts) > 0
    return not wanted or (whole_key and wanted.keys() <= set(numbers.values()))


def _compares_alike(kind: LogicalType, collation: str, using: str, services: OptimizerServices) -> bool:
    """Whether a key part sorts values of a type so that those equal under ``using`` are neighbours."""
    if not honours_collation(kind):
        return kind.is_numeric
    return fold(collation) == fold(using) and services.collation(collation).order_preserving


def _key_parts(plan: nodes.IndexAccess) -> Sequence[KeyPart | IndexPart]:
    path = plan.access.path
    if path.index is None:
        return plan.table.primary_key.parts
    return next(each.parts for each in plan.table.indexes if fold(each.name) == fold(path.index))


def _remaining_parts(plan: nodes.IndexAccess) -> Sequence[KeyPart | IndexPart]:
    """The key parts that rows of an access path are ordered by; none where they are in no order."""
    path = plan.access.path
    if path.reverse or path.kind not in (AccessKind.SCAN, AccessKind.RANGE):
        return ()
    return _key_parts(plan)[path.equal :]


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
    return _compares_alike(key.type, parts[0].collation, using, services)
