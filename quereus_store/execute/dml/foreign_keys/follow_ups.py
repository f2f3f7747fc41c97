"""CASCADE, SET NULL and SET DEFAULT as ordinary statements on the child.

The statement is bound like one that a user wrote (``delete from child``,
``update child set column = …``), so it has the child's constraints, generated
columns and own foreign keys; only its source is replaced by the rows that the
parent's change has found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quereus_store.execute.dml.checks import key_of
from quereus_store.execute.dml.foreign_keys.references import Reference
from quereus_store.execute.dml.generation import Workshop
from quereus_store.execute.dml.runtime import MutationRuntime
from quereus_store.modules.contract import Row
from quereus_store.plan.binder import bind_mutation
from quereus_store.plan.expressions import Column, ColumnRef
from quereus_store.plan.mutations import DeletePlan, MutationPlan, UpdatePlan
from quereus_store.plan.nodes import ParameterRows
from quereus_store.schema.objects import Operation, ReferentialAction, TableSchema
from quereus_store.sql import nodes

if TYPE_CHECKING:
    from quereus_store.execute.dml.foreign_keys.parents import Affected
    from quereus_store.execute.dml.mutation import CompiledMutation


class FollowUp:
    """One action of one foreign key, compiled when first needed."""

    def __init__(
        self, workshop: Workshop, reference: Reference, operation: Operation, action: ReferentialAction
    ) -> None:
        self._workshop = workshop
        self._reference = reference
        self._action = action
        self._deletes = operation is Operation.DELETE and action is ReferentialAction.CASCADE

    def run(
        self, runtime: MutationRuntime, affected: Sequence[Affected], found: Sequence[Sequence[Row]]
    ) -> None:
        """Change the children found for each affected parent row; each child once."""
        if len(affected) == 1:
            values = self._values(affected[0])
            rows = [row + values for row in found[0]] if values else list(found[0])
        else:
            rows = self._each_once(affected, found)
        if rows:
            statement = self._compiled()
            inner = statement.runtime(runtime.session, runtime.transaction, (), rows)
            inner.follow_ups = runtime.follow_ups
            statement.run(inner)

    def _each_once(self, affected: Sequence[Affected], found: Sequence[Sequence[Row]]) -> list[Row]:
        child = self._reference.child
        seen: set[Any] = set()
        rows: list[Row] = []
        for parent, children in zip(affected, found, strict=True):
            values = self._values(parent)
            for row in children:
                identity = repr(key_of(child, row))
                if identity not in seen:
                    seen.add(identity)
                    rows.append(row + values)
        return rows

    def _values(self, parent: Affected) -> Row:
        if self._action is ReferentialAction.CASCADE and parent.after is not None:
            return parent.after
        return ()

    def _compiled(self) -> CompiledMutation:
        from quereus_store.execute.dml.mutation import compile_in

        child = self._reference.child
        key = (child.schema, child.name, self._reference.key.name, self._action, self._deletes)
        found = self._workshop.follow_ups.get(key)
        if found is None:
            plan = self._delete() if self._deletes else self._update()
            found = self._workshop.follow_ups[key] = compile_in(self._workshop, plan, cascaded=True)
        statement: CompiledMutation = found
        return statement

    # -- the statements -----------------------------------------------------------

    def _delete(self) -> MutationPlan:
        plan = bind_mutation(self._context(), nodes.Delete(target=self._target()))
        assert isinstance(plan, DeletePlan)
        return replace(plan, source=ParameterRows(plan.old, tuple(range(len(plan.old)))), matches_once=True)

    def _update(self) -> MutationPlan:
        child = self._reference.child
        assignments = tuple(
            [
                nodes.Assignment(child.columns[column].name, self._assigned(child, column))
                for column in self._reference.child_columns
            ]
        )
        plan = bind_mutation(self._context(), nodes.Update(target=self._target(), assignments=assignments))
        assert isinstance(plan, UpdatePlan)
        if self._action is not ReferentialAction.CASCADE:
            # The values are in the statement itself; the source projects them over the rows given.
            source = replace(plan.source, input=self._given(plan.old))  # type: ignore[call-arg]
            return replace(plan, source=source)
        return self._with_given_values(plan)

    def _with_given_values(self, plan: UpdatePlan) -> UpdatePlan:
        """The assigned columns read the parent's new key, which stands behind the old row."""
        number = self._workshop.context.number
        parent = self._reference.parent
        columns = tuple(
            [
                Column(number(), parent.columns[column].name, parent.columns[column].type, True)
                for column in self._reference.parent_columns
            ]
        )
        row = list(plan.row)
        converts = list(plan.converts)
        for position, column in zip(self._reference.child_columns, columns, strict=True):
            row[position] = ColumnRef(column.type, True, None, column.id, column.name)
            converts[position] = column.type is not plan.table.columns[position].type
        return replace(
            plan,
            source=self._given((*plan.old, *columns)),
            row=tuple(row),
            converts=tuple(converts),
        )

    def _assigned(self, child: TableSchema, column: int) -> nodes.Expression:
        if self._action is ReferentialAction.SET_DEFAULT and child.columns[column].default is not None:
            return nodes.DefaultValue()
        return nodes.Literal(nodes.LiteralKind.NULL, None)

    def _target(self) -> nodes.TableReference:
        child = self._reference.child
        return nodes.TableReference(name=child.name, schema=child.schema)

    @staticmethod
    def _given(columns: tuple[Column, ...]) -> ParameterRows:
        return ParameterRows(columns, tuple(range(len(columns))))

    def _context(self) -> Any:
        """The statement's context without its parameters: none of them is meant here."""
        return replace(self._workshop.context, parameters={})
