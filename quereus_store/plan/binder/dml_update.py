"""UPDATE and DELETE (dml-transactions-constraints, sections 2, 6 and 9).

Both read whole old rows of the target through an ordinary plan: a scan, joined to
whatever FROM or USING lists, filtered by WHERE.
"""

from __future__ import annotations

from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.dml_parts import (
    Adapt,
    RowQueries,
    Target,
    bind_assignments,
    check_plans,
    converts,
    generated_plans,
    not_null_plans,
    open_target,
    read_beside,
    returning_plan,
)
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.from_clause import bind_from
from quereus_store.plan.binder.scopes import FromScope, Source, image_of
from quereus_store.plan.binder.select_list import project_columns
from quereus_store.plan.expressions import BoundExpression, Column, reference
from quereus_store.plan.mutations import DeletePlan, ReturningPlan, UpdatePlan
from quereus_store.plan.nodes import Filter, Join, JoinKind, PlanNode, Project, TableScan
from quereus_store.schema.objects import Operation
from quereus_store.sql import nodes


def _rows(
    target: Target, source: nodes.Relation | None, where: nodes.Expression | None
) -> tuple[PlanNode, FromScope, FromScope | None]:
    """The old rows of the target that the statement changes, with what FROM adds to them, and that alone."""
    table = target.table
    target.context.references.tables[table.schema, table.name] = table
    alias = target.qualifier if target.qualifier != table.name else None
    plan: PlanNode = TableScan(target.old, table, tuple(range(len(target.old))), alias)
    sources = [Source(target.qualifier, target.old, table.schema)]
    columns = target.old
    beside = None
    if source is not None:
        added = bind_from(target.environment, source, FromScope(tuple(sources), columns, None))
        plan = Join(plan.columns + added.plan.columns, JoinKind.CROSS, plan, added.plan, lateral=False)
        beside = FromScope(tuple(added.sources), added.plan.columns, None)
        sources += added.sources
        columns += added.columns
    scope = FromScope(tuple(sources), columns, None)
    if where is not None:
        condition = ExpressionBinder(target.environment, scope).bind(where)
        plan = Filter(plan.columns, plan, condition)
    return plan, scope, beside


def bind_update(environment: Environment, node: nodes.Update, adapt: Adapt | None = None) -> UpdatePlan:
    """UPDATE … SET … [FROM …] [WHERE …]; ``adapt`` may change the target."""
    target = open_target(environment, node, node.conflict_action)
    target = target if adapt is None else adapt(target)
    plan, scope, beside = _rows(target, node.source, node.where)
    rows = RowQueries(plan)
    values = bind_assignments(
        target,
        node.assignments,
        ExpressionBinder(target.environment, scope),
        image_of(target.old),
        "",
        "UPDATE",
        rows,
    )
    returning = returning_plan(target, node.returning, Operation.UPDATE, beside)
    added = read_beside(returning, beside)
    return update_plan(target, rows.plan, values, returning, added, matches_once=node.source is None)


def update_plan(
    target: Target,
    plan: PlanNode,
    values: dict[int, BoundExpression],
    returning: ReturningPlan | None,
    beside: tuple[Column, ...] = (),
    *,
    matches_once: bool,
) -> UpdatePlan:
    """The update of the rows that ``plan`` gives to the ``values``; RETURNING reads ``beside`` as well."""
    assigned_columns: list[Column] = []
    row: list[BoundExpression | None] = []
    conversions: list[bool] = []
    for position, (column, old) in enumerate(zip(target.table.columns, target.old, strict=True)):
        value = values.get(position)
        if column.generated is not None:
            row.append(None)
            conversions.append(False)
        elif value is None:
            row.append(reference(old))
            conversions.append(False)
        else:
            made = target.environment.column(column.name, value.type, value.nullable, value.collation)
            assigned_columns.append(made)
            row.append(reference(made))
            conversions.append(converts(value, column))
    positions = sorted(values)
    source = Project(
        (*target.old, *assigned_columns, *beside),
        plan,
        (
            *map(reference, target.old),
            *[values[position] for position in positions],
            *map(reference, beside),
        ),
    )
    return UpdatePlan(
        target.table,
        target.common_tables,
        source,
        target.new,
        target.old,
        generated_plans(target),
        not_null_plans(target, row),
        check_plans(target, Operation.UPDATE),
        returning,
        target.conflict,
        tuple(row),
        tuple(conversions),
        tuple(positions),
        matches_once=matches_once,
        context=target.mutation_context,
        beside=beside,
    )


def bind_delete(environment: Environment, node: nodes.Delete, adapt: Adapt | None = None) -> DeletePlan:
    """DELETE FROM … [USING …] [WHERE …]; ``adapt`` may change the target."""
    target = open_target(environment, node, None)
    target = target if adapt is None else adapt(target)
    plan, _, beside = _rows(target, node.source, node.where)
    returning = returning_plan(target, node.returning, Operation.DELETE, beside)
    added = read_beside(returning, beside)
    return delete_plan(target, plan, returning, added, matches_once=node.source is None)


def delete_plan(
    target: Target,
    plan: PlanNode,
    returning: ReturningPlan | None,
    beside: tuple[Column, ...] = (),
    *,
    matches_once: bool,
) -> DeletePlan:
    """The deletion of the rows that ``plan`` gives; RETURNING reads ``beside``."""
    return DeletePlan(
        target.table,
        target.common_tables,
        project_columns(plan, (*target.old, *beside)),
        target.new,
        target.old,
        (),
        (),
        check_plans(target, Operation.DELETE),
        returning,
        None,
        matches_once=matches_once,
        context=target.mutation_context,
        beside=beside,
    )
