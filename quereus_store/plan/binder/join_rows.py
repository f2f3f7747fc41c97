"""The rows of a join that a write goes to, and how the statements on its tables find them again.

A write through a join is one query and several mutations.  The query, run before any of them, captures
the joined rows: the columns of all sides, the presence flags, the values that are assigned.  Every mutation
is then an ordinary statement on one table that reads the captured rows as a common table, so no
predicate is judged over what the statement itself writes.

Chapter: view-updates-and-lenses, sections 7 and 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quereus_store.plan.binder.context import CommonTableEntry, Environment
from quereus_store.plan.binder.dml_insert import bind_insert
from quereus_store.plan.binder.dml_parts import Target
from quereus_store.plan.binder.dml_update import bind_delete, bind_update
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.from_clause import Bound, bind_from
from quereus_store.plan.binder.joined_beside import Beside, number_column
from quereus_store.plan.binder.logical_syntax import WrittenRow, all_of, is_same
from quereus_store.plan.binder.scopes import FromScope, Source
from quereus_store.plan.binder.view_joins import JoinView
from quereus_store.plan.expressions import BoundExpression, Column, reference
from quereus_store.plan.mutations import CheckPlan, MutationPlan, ReturningPlan, SequencePlan
from quereus_store.plan.nodes import CommonTable, GivenRows, PlanNode, Project, With
from quereus_store.schema.objects import CheckConstraint, Operation, TableSchema, fold
from quereus_store.sql import nodes

if TYPE_CHECKING:
    from quereus_store.plan.binder.decompositions import Decomposition
    from quereus_store.plan.binder.logical_constraints import LogicalConstraints

CAPTURED = "\0captured"
TARGET = "\0target"
_ESTIMATE = 10.0


def captured(name: str) -> nodes.ColumnReference:
    """A column of the captured rows."""
    return nodes.ColumnReference(name, CAPTURED)


def side_column(side: int, position: int) -> str:
    """The name that a column of a side has in the captured rows."""
    return f"\0side{side}.{position}"


@dataclass(frozen=True, slots=True)
class JoinStatement:
    """A write through a join view being bound: where its clauses stand, and the view's name there.

    ``before`` are mutations of other tables that run once the rows are captured.  ``decomposed`` is
    set for a logical table that is kept in pieces.
    """

    environment: Environment
    common_tables: tuple[CommonTable, ...]
    view: JoinView
    qualifier: str
    logical: LogicalConstraints | None = None
    before: tuple[MutationPlan, ...] = ()
    decomposed: Decomposition | None = None

    def sequence(
        self,
        rows: CapturedRows,
        result: PlanNode | None = None,
        verdicts: tuple[tuple[int, CheckConstraint], ...] = (),
    ) -> SequencePlan:
        """The whole statement: the captured rows, the mutations in order, RETURNING."""
        returning = None if result is None else ReturningPlan(result.columns, ())
        return SequencePlan(
            self.view.sides[0].table,
            self.common_tables,
            rows.plan,
            (),
            (),
            (),
            (),
            (),
            returning,
            None,
            (*self.before, *rows.steps),
            result,
            verdicts,
            rows.once,
        )

    def adapted(self, side: int) -> Callable[[Target], Target]:
        """Adds the constraints of the logical table that the view is to the target of a mutation."""
        logical = self.logical
        if logical is None:
            return _unchanged
        shown = [
            (fold(output.name), output.column)
            for output in self.view.outputs
            if output.column is not None and not output.inverted and output.sides == {side}
        ]

        def image(columns: tuple[Column, ...]) -> dict[str, BoundExpression]:
            by_name = {fold(column.name): reference(column) for column in columns}
            return {name: by_name[fold(column)] for name, column in shown}

        def further(target: Target, operation: Operation) -> tuple[CheckPlan, ...]:
            new = {} if operation is Operation.DELETE else image(target.new)
            old = {} if operation is Operation.INSERT else image(target.old)
            return logical.plans(WrittenRow(new, old), operation)

        return lambda target: replace(target, further=further)


def _unchanged(target: Target) -> Target:
    return target


class GivenTable:
    """Captured rows as a common table of the mutations that read them."""

    def __init__(self, environment: Environment, plan: PlanNode) -> None:
        context = environment.context
        number = context.number()
        scanned = tuple(environment.renumbered(plan.columns))
        self._table = CommonTable(number, CAPTURED, GivenRows(scanned, 0, _ESTIMATE), True)
        entry = CommonTableEntry(CAPTURED, number, scanned)
        self.environment = Environment(context, context.schema_path, {CAPTURED: entry})

    def given(self, plan: MutationPlan) -> MutationPlan:
        """A mutation that was bound in this environment, with the captured rows at hand."""
        return replace(plan, common_tables=(self._table, *plan.common_tables))

    def result(self, relation: nodes.Relation) -> Bound:
        """A FROM over the captured rows, read when all mutations are done."""
        return bind_from(self.environment, relation, None)

    def finished(self, plan: PlanNode, tables: tuple[CommonTable, ...]) -> PlanNode:
        """A plan over :meth:`result` with the captured rows bound around it, and other ``tables``."""
        shared = [replace(table, shared=True) for table in tables]
        return With(plan.columns, (self._table, *shared), plan)


class CapturedRows(GivenTable):
    """The captured rows of one statement, what FROM puts beside them, and the mutations that read them."""

    def __init__(self, statement: JoinStatement, plan: PlanNode, beside: Beside | None = None) -> None:
        super().__init__(statement.environment, plan)
        self.statement = statement
        self.plan = plan
        self.beside = beside
        self.steps: list[MutationPlan] = []

    @property
    def once(self) -> int | None:
        """The column with the number of the view's row, if a row may have been captured several times."""
        return None if self.beside is None else number_column(self.plan)

    def add(self, node: nodes.DataModification, side: int | None) -> None:
        """One more mutation, bound over the captured rows; of a side, or of a table that is none."""
        adapt = _unchanged if side is None else self.statement.adapted(side)
        plan: MutationPlan
        if isinstance(node, nodes.Insert):
            plan = bind_insert(self.environment, node, adapt)
        elif isinstance(node, nodes.Update):
            plan = bind_update(self.environment, node, adapt)
        else:
            plan = bind_delete(self.environment, node, adapt)
        self.steps.append(self.given(plan))


def captured_relation() -> nodes.TableReference:
    """The captured rows as a relation."""
    return nodes.TableReference(CAPTURED)


def table_reference(table: TableSchema, alias: str) -> nodes.TableReference:
    """A base table under a name, found wherever it is named from."""
    return nodes.TableReference(table.name, table.schema, alias)


def same_row(
    view: JoinView, side: int, alias: str, assigned: Mapping[str, str] | None = None
) -> nodes.Expression:
    """``the row of alias is the captured row of a side``; ``assigned`` names new values of its columns."""
    table = view.sides[side].table
    names = assigned or {}
    return all_of(
        [
            is_same(
                nodes.ColumnReference(table.columns[part.column].name, alias),
                captured(names.get(fold(table.columns[part.column].name), side_column(side, part.column))),
            )
            for part in table.primary_key.parts
        ]
    )


def is_present(view: JoinView, side: int) -> list[nodes.Expression]:
    """The conditions under which a captured row has a row of a side."""
    return [captured(flag) for flag in view.sides[side].presence]


def body_scope(view: JoinView, bound: Bound) -> FromScope:
    """The names of the view's body over a FROM that was bound for it."""
    return FromScope(bound.sources, bound.columns, None)


def captured_columns(view: JoinView, bound: Bound) -> tuple[list[str], list[BoundExpression]]:
    """What is captured of every joined row: the columns of the sides, then the presence flags."""
    names: list[str] = []
    values: list[BoundExpression] = []
    for side, source in enumerate(bound.sources):
        names += [side_column(side, position) for position in range(len(source.columns))]
        values += map(reference, source.columns)
    flags = dict.fromkeys(flag for side in view.sides for flag in side.presence)
    by_name = {column.name: column for column in bound.columns}
    for flag in flags:
        names.append(flag)
        values.append(reference(by_name[flag]))
    return names, values


def projected(
    environment: Environment, plan: PlanNode, names: Sequence[str], values: Sequence[BoundExpression]
) -> PlanNode:
    """The captured rows as a plan."""
    columns = tuple(
        [
            environment.column(name, value.type, value.nullable, value.collation)
            for name, value in zip(names, values, strict=True)
        ]
    )
    return Project(columns, plan, tuple(values))


def old_scope(view: JoinView, columns: tuple[Column, ...]) -> FromScope:
    """The names of the view's body over the captured rows."""
    by_name = {column.name: column for column in columns}
    sources: list[Source] = []
    shown: list[Column] = []
    for side, own in enumerate(view.sides):
        renamed = tuple(
            [
                _called(by_name[side_column(side, position)], column.name)
                for position, column in enumerate(own.table.columns)
            ]
        )
        sources.append(Source(own.name, renamed, own.table.schema))
        shown += [column for column in renamed if (side, fold(column.name)) not in view.merged]
    for flag, side in view.flags:
        (*_, presence) = view.sides[side].presence
        shown.append(_called(by_name[presence], flag))
    return FromScope(tuple(sources), tuple(shown), None)


def _called(column: Column, name: str) -> Column:
    return Column(column.id, name, column.type, column.nullable, column.collation)


def outputs_over(view: JoinView, scope: FromScope) -> tuple[tuple[str, BoundExpression], ...]:
    """The view's columns over a row of its body."""
    binder = ExpressionBinder(view.environment, scope)
    return tuple([(output.name, binder.bind(output.expression)) for output in view.outputs])
