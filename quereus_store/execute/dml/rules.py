"""What holds for one statement, settled once when it is compiled.

Which constraints it can violate, what a violation then does, which foreign keys
it touches from either side, and whether it can go the fast way at all.

The *fast way* works on all rows at once and supposes that nothing is violated;
it proves that by cheap tests over the whole batch and by what the module says.
Where the proof fails, nothing has been written, and the *careful way* goes
through the rows one by one, which finds the first offender and does what its
constraint asks.  So conflict clauses cost nothing until there is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quereus_store.execute.dml.checks import DeferredChecks
from quereus_store.execute.dml.foreign_keys.children import ChildCheck, child_checks
from quereus_store.execute.dml.foreign_keys.parents import ParentSide, parent_side
from quereus_store.execute.dml.generation import Workshop
from quereus_store.plan.expressions import BoundExpression, subplans
from quereus_store.plan.mutations import (
    CheckPlan,
    DeletePlan,
    InsertPlan,
    MutationPlan,
    UpdatePlan,
    UpsertPlan,
)
from quereus_store.plan.nodes import IndexAccess, PlanNode, TableScan, expressions, walk_plan
from quereus_store.schema.objects import ConflictAction, Operation, TableSchema, fold

OPERATIONS: dict[type[MutationPlan], Operation] = {
    InsertPlan: Operation.INSERT,
    UpdatePlan: Operation.UPDATE,
    DeletePlan: Operation.DELETE,
}


def effective(statement: ConflictAction | None, own: ConflictAction | None) -> ConflictAction:
    """What a violation does: the statement's OR clause, else the constraint's own clause, else ABORT."""
    if statement is not None:
        return statement
    # As a constraint's own clause FAIL means no more than ABORT.
    return ConflictAction.ABORT if own in (None, ConflictAction.FAIL) else own


@dataclass(frozen=True, slots=True)
class StatementRules:
    """The constraints of one mutation, by when they are judged."""

    operation: Operation
    written: frozenset[str]
    children: tuple[ChildCheck, ...]
    parents: ParentSide | None
    immediate: tuple[CheckPlan, ...]
    deferred: DeferredChecks | None
    always_careful: bool
    keys_abort: bool


def rules_of(workshop: Workshop, plan: MutationPlan, cascaded: bool) -> StatementRules:
    """Settle the rules of a statement; ``cascaded`` for one that a foreign key's action makes."""
    operation = OPERATIONS[type(plan)]
    table = plan.table
    children: tuple[ChildCheck, ...] = ()
    parents = None
    if workshop.enforces_keys:
        if operation is not Operation.DELETE:
            children = child_checks(workshop, table)
        if operation is not Operation.INSERT:
            parents = parent_side(workshop, table, operation, changed_columns(plan), cascaded)
    deferred = tuple(check for check in plan.checks if check.deferred)
    return StatementRules(
        operation,
        frozenset({fold(table.module), *(parents.modules if parents else _side_effects(workshop, plan))}),
        children,
        parents,
        tuple(check for check in plan.checks if not check.deferred),
        DeferredChecks(workshop, table, deferred, plan, operation) if deferred else None,
        _always_careful(plan, deferred, parents),
        _keys_abort(plan),
    )


def _keys_abort(plan: MutationPlan) -> bool:
    """Whether a key that is taken can do nothing but fail the statement."""
    own = [plan.table.primary_key.conflict, *(item.conflict for item in plan.table.unique_constraints)]
    settled = {ConflictAction.IGNORE, ConflictAction.REPLACE}
    return plan.conflict in (None, ConflictAction.ABORT) and not settled & set(own) and not upserts_of(plan)


def upserts_of(plan: MutationPlan) -> tuple[UpsertPlan, ...]:
    """The ON CONFLICT clauses of a statement."""
    return plan.upserts if isinstance(plan, InsertPlan) else ()


def _side_effects(workshop: Workshop, plan: MutationPlan) -> frozenset[str]:
    """The modules that an INSERT may write by what REPLACE and DO UPDATE bring about."""
    table = plan.table
    if not isinstance(plan, InsertPlan) or not workshop.enforces_keys:
        return frozenset()
    own = [table.primary_key.conflict, *(constraint.conflict for constraint in table.unique_constraints)]
    modules: set[str] = set()
    if plan.conflict is ConflictAction.REPLACE or ConflictAction.REPLACE in own:
        side = parent_side(workshop, table, Operation.DELETE, (), True)
        modules.update(side.modules if side else ())
    if plan.upserts:
        side = parent_side(workshop, table, Operation.UPDATE, range(len(table.columns)), True)
        modules.update(side.modules if side else ())
    return frozenset(modules)


def changed_columns(plan: MutationPlan) -> frozenset[int]:
    """The columns whose values an UPDATE may change."""
    if not isinstance(plan, UpdatePlan):
        return frozenset()
    return frozenset(plan.assigned) | {generated.position for generated in plan.generated}


def _always_careful(plan: MutationPlan, deferred: tuple[CheckPlan, ...], parents: ParentSide | None) -> bool:
    if any(
        effective(plan.conflict, check.constraint.conflict) is not ConflictAction.ABORT for check in deferred
    ):
        return True
    if plan.returning is None:
        return False
    read = {
        (fold(table.schema), fold(table.name))
        for expression in plan.returning.expressions
        for table in tables_read(expression)
    }
    if not read:
        return False
    return parents is not None or (fold(plan.table.schema), fold(plan.table.name)) in read


def tables_read(expression: BoundExpression) -> Iterator[TableSchema]:
    """The tables that an expression's subqueries read in their current state."""
    for plan in subplans(expression):
        yield from _tables_in(plan)


def _tables_in(plan: PlanNode) -> Iterator[TableSchema]:
    for node in walk_plan(plan):
        if isinstance(node, TableScan | IndexAccess) and not node.committed:
            yield node.table
        for expression in expressions(node):
            yield from tables_read(expression)
