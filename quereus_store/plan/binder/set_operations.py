"""Set operations: matching columns by position, membership flags (queries, section 10).

The output has columns of its own, named by the first operand.  Flags of operands
follow the matched columns.  Where an operand of a deduplicating operation has
flags already, they cannot travel through the operation, since they take no part
in it; they are joined back on afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quereus_store.errors import StatusCode, sql_error
from quereus_store.plan.binder import queries
from quereus_store.plan.binder.comparisons import compare, conjunction
from quereus_store.plan.binder.context import CommonTableEntry, Environment
from quereus_store.plan.binder.relations import scan_common_table
from quereus_store.plan.binder.scopes import Scope, as_nullable
from quereus_store.plan.expressions import BoundExpression, Cast, Coalesce, Column, Literal, reference
from quereus_store.plan.nodes import (
    CommonTable,
    Join,
    JoinKind,
    PlanNode,
    Project,
    SetKind,
    SetOperation,
    With,
)
from quereus_store.sql import nodes
from quereus_store.types import (
    BOOLEAN,
    JSON,
    NULL,
    carry_contributions,
    merge_contributions,
    set_operation_type,
)

_FALSE = Literal(BOOLEAN, False, None, False)


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand's plan; its last ``flags`` columns are membership flags."""

    plan: PlanNode
    flags: int = 0

    @property
    def data(self) -> tuple[Column, ...]:
        """The columns that are matched."""
        return self.plan.columns[: len(self.plan.columns) - self.flags]

    @property
    def flag_columns(self) -> tuple[Column, ...]:
        """The flags that the operand brings along."""
        return self.plan.columns[len(self.plan.columns) - self.flags :]


def bind_set_operation(environment: Environment, node: nodes.SetOperation, outer: Scope | None) -> PlanNode:
    """A set operation over two bodies."""
    return _bind(environment, node, outer).plan


def _operand(environment: Environment, body: nodes.QueryBody, outer: Scope | None) -> _Operand:
    if isinstance(body, nodes.SetOperation):
        return _bind(environment, body, outer)
    return _Operand(queries.bind_body(environment, body, outer))


def _bind(environment: Environment, node: nodes.SetOperation, outer: Scope | None) -> _Operand:
    left = _operand(environment, node.left, outer)
    right = _operand(environment, node.right, outer)
    if len(left.data) != len(right.data):
        raise sql_error(
            StatusCode.ERROR,
            f"SET operation column count mismatch: left has {len(left.data)}, right has {len(right.data)}",
            node.position,
        )
    if node.flags and node.operator is nodes.SetOperator.DIFF:
        raise sql_error(
            StatusCode.ERROR,
            "'exists <branch> as' membership columns are not valid on DIFF — symmetric difference"
            " desugars to two EXCEPTs, so branch membership is ambiguous",
            node.flags[0].position or node.position,
        )
    if not left.flags and not right.flags:
        return _combine(environment, node, left.plan, right.plan)
    if node.operator is nodes.SetOperator.UNION and not node.distinct:
        return _concatenate_flagged(environment, node, left, right)
    return _join_flags(environment, node, left, right)


def _combine(environment: Environment, node: nodes.SetOperation, left: PlanNode, right: PlanNode) -> _Operand:
    """The operation over operands without flags; its own flags at the end."""
    columns: list[Column] = []
    keep_all = node.operator is nodes.SetOperator.UNION and not node.distinct
    for a, b in zip(left.columns, right.columns, strict=True):
        if keep_all:
            collation = carry_contributions((a.collation, b.collation))
        else:
            collation = merge_contributions(a.collation, b.collation, node.position)
        merged = a.type if a.type is b.type else set_operation_type(a.type, b.type)
        columns.append(environment.column(a.name, merged, a.nullable or b.nullable, collation))
    flags = [(flag.side, environment.column(flag.name, BOOLEAN, False)) for flag in node.flags]
    first = dict(reversed(flags))
    sides = [side for side in (nodes.Side.LEFT, nodes.Side.RIGHT) if side in first]
    plan: PlanNode = SetOperation(
        (*columns, *[first[side] for side in sides]),
        SetKind(node.operator.value),
        not node.distinct,
        _as_types(environment, left, columns),
        _as_types(environment, right, columns),
        tuple([column.collation.name if column.collation else "BINARY" for column in columns]),
        first[nodes.Side.LEFT].id if nodes.Side.LEFT in first else None,
        first[nodes.Side.RIGHT].id if nodes.Side.RIGHT in first else None,
    )
    if [column for _, column in flags] != [first[side] for side in sides]:
        plan = Project(
            (*columns, *[column for _, column in flags]),
            plan,
            (*map(reference, columns), *[reference(first[side]) for side, _ in flags]),
        )
    return _Operand(plan, len(flags))


def _as_types(environment: Environment, plan: PlanNode, targets: Sequence[Column]) -> PlanNode:
    """An operand with columns cast to JSON where the other side is JSON."""
    if not any(
        target.type is JSON and column.type is not JSON and column.type is not NULL
        for column, target in zip(plan.columns, targets, strict=True)
    ):
        return plan
    columns: list[Column] = []
    expressions: list[BoundExpression] = []
    for column, target in zip(plan.columns, targets, strict=True):
        if target.type is JSON and column.type is not JSON and column.type is not NULL:
            columns.append(environment.column(column.name, JSON, True))
            expressions.append(Cast(JSON, True, None, reference(column)))
        else:
            columns.append(column)
            expressions.append(reference(column))
    return Project(tuple(columns), plan, tuple(expressions))


def _concatenate_flagged(
    environment: Environment, node: nodes.SetOperation, left: _Operand, right: _Operand
) -> _Operand:
    """UNION ALL: each side's rows carry its own flags, and false for the other's."""

    def padded(operand: _Operand, other: _Operand, own_first: bool) -> PlanNode:
        own = [(column, reference(column)) for column in operand.flag_columns]
        absent: list[tuple[Column, BoundExpression]] = [
            (environment.column(column.name, BOOLEAN, False), _FALSE) for column in other.flag_columns
        ]
        flags = [*own, *absent] if own_first else [*absent, *own]
        return Project(
            (*operand.data, *[column for column, _ in flags]),
            operand.plan,
            (*map(reference, operand.data), *[value for _, value in flags]),
        )

    combined = _combine(environment, node, padded(left, right, True), padded(right, left, False))
    return _Operand(combined.plan, left.flags + right.flags + combined.flags)


def _join_flags(
    environment: Environment, node: nodes.SetOperation, left: _Operand, right: _Operand
) -> _Operand:
    """Any other operation: over the matched columns, with the operands' flags joined back on."""
    tables: list[CommonTable] = []
    plans: list[PlanNode] = []
    for operand in (left, right):
        if operand.flags:
            table = CommonTable(environment.context.number(), "operand", operand.plan, materialized=True)
            tables.append(table)
            scan = _scan(environment, table)
            plans.append(_first(scan, len(operand.data)))
        else:
            plans.append(operand.plan)
    combined = _combine(environment, node, plans[0], plans[1])
    plan = combined.plan
    matched = combined.data
    flags: list[tuple[Column, BoundExpression]] = []
    for table in tables:
        scan = _scan(environment, table)
        condition = conjunction(
            [
                compare("is", reference(a), reference(b), node.position)
                for a, b in zip(matched, scan.columns, strict=False)
            ]
        )
        extended = tuple(map(as_nullable, scan.columns))
        plan = Join((*plan.columns, *extended), JoinKind.LEFT, plan, scan, condition)
        for column in extended[len(matched) :]:
            value = Coalesce(BOOLEAN, False, None, (reference(column), _FALSE))
            flags.append((environment.column(column.name, BOOLEAN, False), value))
    own = combined.flag_columns
    projected = Project(
        (*matched, *[column for column, _ in flags], *own),
        plan,
        (*map(reference, matched), *[value for _, value in flags], *map(reference, own)),
    )
    return _Operand(With(projected.columns, tuple(tables), projected), len(flags) + len(own))


def _scan(environment: Environment, table: CommonTable) -> PlanNode:
    return scan_common_table(environment, CommonTableEntry(table.name, table.id, table.plan.columns))


def _first(plan: PlanNode, count: int) -> PlanNode:
    columns = plan.columns[:count]
    return Project(columns, plan, tuple(map(reference, columns)))
