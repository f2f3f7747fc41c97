"""ON CONFLICT clauses (dml-transactions-constraints, section 5).

A clause with a target matches a conflict when the proposed row equals the row in
the way on all target columns, compared as the UNIQUE over just these columns
compares, else by the columns' own collations.  NULLs equal each other, except under a
UNIQUE constraint, which they never violate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quereus_store.execute.codegen.library import null_equal, null_safe
from quereus_store.execute.dml.changes import record_changes
from quereus_store.execute.dml.checks import DeferredChecks
from quereus_store.execute.dml.foreign_keys.parents import ParentSide, parent_side
from quereus_store.execute.dml.outcome import Skipped
from quereus_store.execute.dml.parts import Parts
from quereus_store.execute.dml.runtime import MutationRuntime
from quereus_store.modules.contract import Conflict, Row
from quereus_store.plan.mutations import UpsertPlan
from quereus_store.schema.objects import Operation, TableSchema
from quereus_store.types.comparison import comparison_plan, comparison_template
from quereus_store.types.logical import JSON
from quereus_store.types.templates import Template

if TYPE_CHECKING:
    from quereus_store.execute.dml.conflicts import CarefulInsert

Equality = Callable[[Any, Any], bool]


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause: its number, its plan, how its target columns compare, and what an update by it touches."""

    number: int
    plan: UpsertPlan
    equalities: tuple[tuple[int, Equality], ...]
    deferred: DeferredChecks | None
    parents: ParentSide | None

    def matches(self, existing: Row, proposed: Row) -> bool:
        """Whether the clause is for this conflict."""
        return all(equal(existing[column], proposed[column]) for column, equal in self.equalities)


class Upserts:
    """The ON CONFLICT clauses of an INSERT."""

    def __init__(self, careful: CarefulInsert) -> None:
        self._careful = careful
        self.clauses = [self._clause(number, plan) for number, plan in enumerate(careful.plan.upserts)]

    def matching(self, conflicts: Sequence[Conflict], proposed: Row) -> tuple[Clause, Row] | None:
        """The first clause that is for one of the rows in the way, and that row."""
        for clause in self.clauses:
            for conflict in conflicts:
                if clause.matches(conflict.existing, proposed):
                    return clause, conflict.existing
        return None

    def apply(
        self, runtime: MutationRuntime, parts: Parts, clause: Clause, existing: Row, proposed: Row
    ) -> tuple[Row, Row]:
        """Do what the clause says: the stored row and the one before; raises Skipped if nothing is done."""
        careful, plan = self._careful, clause.plan
        functions = parts.upserts[clause.number]
        if functions.compose is None:
            raise Skipped
        if functions.where is not None and not functions.where(existing, proposed):
            raise Skipped
        row = careful.complete(
            parts, functions.compose(existing, proposed), plan.not_null, functions.substitutes
        )
        careful.judge(plan.checks, functions.violated, row, existing, reading=False)
        if clause.parents is not None:
            clause.parents.before(runtime, (existing,), (row,))
        transaction = runtime.transaction
        writer = transaction.writer(careful.table.module)
        careful.write_guarded(
            lambda: careful.handle.update(writer, (existing,), (row,)), row, Operation.UPDATE
        )
        careful.judge(plan.checks, functions.violated, row, existing, reading=True)
        careful.judge_parents(runtime, row)
        if clause.deferred is not None:
            clause.deferred.enqueue(runtime, (row,), (existing,))
        if clause.parents is not None:
            clause.parents.after(runtime, (existing,), (row,))
        record_changes(transaction, careful.table, Operation.UPDATE, (existing,), (row,))
        return row, existing

    def _clause(self, number: int, plan: UpsertPlan) -> Clause:
        careful = self._careful
        workshop, table = careful.workshop, careful.table
        equalities = tuple(
            [
                (column, self._equality(column, using, nulls_equal))
                for column, using, nulls_equal in _target_parts(table, plan.target or ())
            ]
        )
        deferred = tuple(check for check in plan.checks if check.deferred)
        changed = {*plan.assigned, *(item.position for item in careful.plan.generated)}
        return Clause(
            number,
            plan,
            equalities,
            DeferredChecks(workshop, table, deferred, careful.plan, Operation.UPDATE) if deferred else None,
            parent_side(workshop, table, Operation.UPDATE, changed, False)
            if workshop.enforces_keys and plan.row
            else None,
        )

    def _equality(self, column: int, using: str, nulls_equal: bool) -> Equality:
        kind = self._careful.table.columns[column].type
        collation = self._careful.workshop.engine.collation(using)
        template = comparison_template(comparison_plan(kind, kind), "=", collation)
        fold_document = collation.folding_documents() if kind is JSON else None
        if fold_document is not None:
            source = template.render("fold({0})", "fold({1})")
            template = Template(source, {**template.names, "fold": fold_document})
        return null_equal(template) if nulls_equal else null_safe(template)


def _target_parts(table: TableSchema, target: Sequence[int]) -> list[tuple[int, str, bool]]:
    """The target columns, each with its collation in the constraint over them and whether NULLs are equal."""
    wanted = set(target)
    parts = table.primary_key.parts
    if wanted == {part.column for part in parts}:
        return [(part.column, part.collation, True) for part in parts]
    for constraint in table.unique_constraints:
        index = table.index(constraint.index)
        if index is not None and wanted == {part.column for part in index.parts}:
            return [(part.column, part.collation, False) for part in index.parts if part.column is not None]
    return [(column, table.columns[column].collation, True) for column in target]
