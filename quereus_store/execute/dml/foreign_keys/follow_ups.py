"""CASCADE, SET NULL and SET DEFAULT as ordinary statements on the child.

The statement is bound like one that a user wrote (``delete from child``,
``update child set column = …``), so it has the child's constraints, generated
columns and own foreign keys; only its source is replaced by the rows that the
parent's change has found.

Where the child is a maintained table the statement is written through it, as a user's would be: it
changes the source, row by row, and the maintained table follows.
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
from quereus_store.schema.objects import ColumnSchema, Operation, ReferentialAction, TableSchema
from quereus_store.sql import nodes
from quereus_store.types import LogicalType

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
        if self._reference.child.derivation is not None:
            self._run_through(runtime, affected, found)
            return
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

    def _run_through(
        self, runtime: MutationRuntime, affected: Sequence[Affected], found: Sequence[Sequence[Row]]
    ) -> None:
        """Write each child's change through the maintained table."""
        key = [part.column for part in self._reference.child.primary_key.parts]
        for parent, children in zip(affected, found, strict=True):
            for row in children:
                values = (*self._values(parent), *[row[column] for column in key])
                statement = self._compiled()
                inner = statement.runtime(runtime.session, runtime.transaction, values, None)
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
            if child.derivation is not None:
                plan = self._through()
            else:
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

    def _through(self) -> MutationPlan:
        """The statement on a maintained child: the new values of the key, if any, then the child's key."""
        reference = self._reference
        child, parent = reference.child, reference.parent
        types: list[LogicalType] = []

        def parameter(column: ColumnSchema) -> nodes.Expression:
            types.append(column.type)
            return nodes.Parameter(index=len(types))

        cascades = self._action is ReferentialAction.CASCADE
        assignments = []
        if not self._deletes:
            for own, theirs in zip(reference.child_columns, reference.parent_columns, strict=True):
                value = parameter(parent.columns[theirs]) if cascades else self._assigned(child, own)
                assignments.append(nodes.Assignment(child.columns[own].name, value))
        conditions: list[nodes.Expression] = []
        for part in child.primary_key.parts:
            column = child.columns[part.column]
            name = nodes.ColumnReference(column.name)
            if column.nullable:
                same: nodes.Expression = nodes.IsDistinctFrom(name, parameter(column), negated=True)
            else:
                same = nodes.BinaryOperation(nodes.BinaryOperator.EQUAL, name, parameter(column))
            conditions.append(same)
        where = None
        for condition in conditions:
            both = nodes.BinaryOperator.AND
            where = condition if where is None else nodes.BinaryOperation(both, where, condition)
        context = replace(self._workshop.context, parameters=dict(enumerate(types)))
        if self._deletes:
            return bind_mutation(context, nodes.Delete(target=self._target(), where=where))
        changed = nodes.Update(target=self._target(), assignments=tuple(assignments), where=where)
        return bind_mutation(context, changed)

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
