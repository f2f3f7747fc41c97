"""Writing through views of set operations (view-updates-and-lenses, section 9).

The rows that a statement reaches are captured once; then each *leg* gets a statement of its own, which finds
its rows by all of their values.  Where legs show constants (``'w' as src``) or pin columns by their filter,
an inserted row goes to the legs that it does not contradict.  Existence flags say which of two branches
hold a row: setting one inserts the row there or deletes it.

Chapter: view-updates-and-lenses, section 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error, unsupported
from quereus_store.plan.binder import queries
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.dml_insert import check_width, plain_values
from quereus_store.plan.binder.dml_parts import ReturningRows, returning_over
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.join_rows import (
    TARGET,
    GivenTable,
    captured,
    captured_relation,
    projected,
)
from quereus_store.plan.binder.joined_beside import Beside, join_beside, number_column
from quereus_store.plan.binder.logical_syntax import all_of, is_same, negated
from quereus_store.plan.binder.relations import expand_view
from quereus_store.plan.binder.scopes import RowScope, Scope
from quereus_store.plan.binder.view_bodies import coded, pinned_constants, refusal
from quereus_store.plan.expressions import BoundExpression, reference
from quereus_store.plan.mutations import MutationPlan, ReturningPlan, SequencePlan
from quereus_store.plan.nodes import CommonTable, Filter, PlanNode, Project
from quereus_store.schema.objects import Operation, ViewSchema, fold
from quereus_store.sql import nodes

BindMutation = Callable[[Environment, nodes.DataModification], MutationPlan]


@dataclass(frozen=True, slots=True)
class Leg:
    """One operand: its query, the constants that it shows and those that its filter asks for, by output."""

    query: nodes.Query
    literals: Mapping[str, nodes.Literal]
    pinned: Mapping[str, nodes.Literal]
    writable: bool = True


@dataclass(frozen=True, slots=True)
class SetView:
    """A view of a set operation: its data columns, its legs, its existence flags with the leg of each."""

    view: ViewSchema
    environment: Environment
    names: tuple[str, ...]
    legs: tuple[Leg, ...]
    flags: tuple[tuple[str, int], ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        """All columns of the view."""
        return (*self.names, *[name for name, _ in self.flags])

    def flag(self, name: str) -> int | None:
        """The leg that a flag tells of."""
        return next((leg for flag, leg in self.flags if fold(flag) == fold(name)), None)

    def unknown(self, name: nodes.ColumnReference) -> Error:
        """The error for a name that is no column of the view."""
        exposed = ", ".join(self.outputs)
        text = f"'{name.column}' is not a column of the view view '{self.view.name}' exposes: {exposed}."
        return refusal(self.view.name, "unknown-view-column", text, name.position)


# --- opening ------------------------------------------------------------------------------------------------


def set_view(environment: Environment, view: ViewSchema, position: SourcePosition | None) -> SetView | None:
    """A view of a set operation, taken apart; None for one whose rows cannot be told to belong anywhere."""
    body = view.query.body
    if not isinstance(body, nodes.SetOperation) or view.query.with_clause or view.query.limit:
        return None
    outputs = [column.name for column in expand_view(environment, view, position).columns]
    inner = environment.inside_stored_body(view.schema, (view.schema, view.name))
    operands = list(_operands(body))
    if not all(isinstance(operand, nodes.Select) and operand.source is not None for operand in operands):
        return None
    names = tuple(outputs[: len(outputs) - len(body.flags)])
    legs = [_leg(operand, names) for operand in operands if isinstance(operand, nodes.Select)]
    if body.flags:
        if len(legs) != 2 or body.operator is nodes.SetOperator.DIFF:
            return None
        sides = [0 if flag.side is nodes.Side.LEFT else 1 for flag in body.flags]
        flags = tuple(zip(outputs[len(names) :], sides, strict=True))
        return SetView(view, inner, names, tuple(legs), flags)
    if body.operator is nodes.SetOperator.UNION:
        if not any(leg.literals or leg.pinned for leg in legs):
            return None
    elif body.operator is nodes.SetOperator.EXCEPT and len(legs) == 2:
        legs[1] = replace(legs[1], writable=False)
    elif body.operator is not nodes.SetOperator.INTERSECT or len(legs) != 2:
        return None
    return SetView(view, inner, names, tuple(legs), ())


def _operands(body: nodes.QueryBody) -> Iterator[nodes.QueryBody]:
    """The legs of a chain of UNIONs, or the two operands of another operation."""
    assert isinstance(body, nodes.SetOperation)
    for side in (body.left, body.right):
        chained = (
            isinstance(side, nodes.SetOperation)
            and side.operator is body.operator is nodes.SetOperator.UNION
            and not side.flags
            and not body.flags
        )
        if chained:
            yield from _operands(side)
        else:
            yield side


def _leg(select: nodes.Select, names: Sequence[str]) -> Leg:
    literals: dict[str, nodes.Literal] = {}
    shown: dict[str, str] = {}
    for name, item in zip(names, select.items, strict=False):
        if not isinstance(item, nodes.ResultColumn):
            continue
        if isinstance(item.expression, nodes.Literal):
            literals[fold(name)] = item.expression
        elif isinstance(item.expression, nodes.ColumnReference):
            shown[fold(item.expression.column)] = fold(name)
    pinned = {
        shown[fold(column.column)]: constant
        for column, constant in pinned_constants(select.where)
        if fold(column.column) in shown
    }
    return Leg(nodes.Query(select), literals, pinned)


# --- statements ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class SetStatement:
    """A write through such a view being bound."""

    environment: Environment
    common_tables: tuple[CommonTable, ...]
    view: SetView
    qualifier: str
    bind_mutation: BindMutation
    steps: list[MutationPlan] = field(default_factory=list)
    beside: Beside | None = None

    def bind(self, node: nodes.DataModification) -> MutationPlan:
        """The whole statement; raises ERROR or UNSUPPORTED."""
        if isinstance(node, nodes.Insert):
            return self._insert(node)
        return self._update(node) if isinstance(node, nodes.Update) else self._delete(node)

    def _refusal(self, reason: str, text: str, position: SourcePosition | None) -> Error:
        return refusal(self.view.view.name, reason, text, position)

    def _insert_refusal(self, reason: str, text: str, position: SourcePosition | None) -> Error:
        return coded(reason, f"cannot insert through view '{self.view.view.name}': {text}", position)

    # --- captured rows ----------------------------------------------------------

    def _capture(
        self, node: nodes.Update | nodes.Delete, values: Mapping[str, nodes.Expression]
    ) -> tuple[PlanNode, GivenTable]:
        plan = expand_view(self.environment, self.view.view, None)
        image: dict[str, BoundExpression] = {
            fold(name): reference(column)
            for name, column in zip(self.view.outputs, plan.columns, strict=True)
        }
        own = {"": image, fold(self.qualifier): image}
        scope: Scope = RowScope(own, schema=self.view.view.schema, unknown=self.view.unknown)
        rows = plan
        added: Mapping[str, BoundExpression] = {}
        if node.source is not None:
            outputs = list(zip(self.view.outputs, map(reference, plan.columns), strict=True))
            named = (self.qualifier, self.view.view.schema)
            self.beside = join_beside(self.environment, named, plan, outputs, node.source)
            rows, scope, added = self.beside.plan, self.beside.scope, self.beside.captured
        binder = ExpressionBinder(self.environment, scope)
        if node.where is not None:
            rows = Filter(rows.columns, rows, binder.bind(node.where))
        bound = [*map(reference, plan.columns), *[binder.bind(value) for value in values.values()]]
        names = [*self.view.outputs, *values, *added]
        made = projected(self.environment, rows, names, [*bound, *added.values()])
        return made, GivenTable(self.environment, made)

    def _step(self, rows: GivenTable, leg: int, node: nodes.DataModification) -> None:
        """A statement on a leg, which stands there as a common table."""
        member = nodes.CommonTableExpression(self.view.view.name, self.view.legs[leg].query, self.view.names)
        node = replace(node, with_clause=nodes.WithClause((member,)))
        environment = replace(rows.environment, schema_path=self.view.environment.schema_path)
        self.steps.append(rows.given(self.bind_mutation(environment, node)))

    def _matches(self) -> nodes.Expression:
        return all_of(
            [is_same(nodes.ColumnReference(name, TARGET), captured(name)) for name in self.view.names]
        )

    def _sequence(self, plan: PlanNode, result: PlanNode | None) -> SequencePlan:
        returning = None if result is None else ReturningPlan(result.columns, ())
        table = self.steps[0].table
        return SequencePlan(
            table,
            self.common_tables,
            plan,
            (),
            (),
            (),
            (),
            (),
            returning,
            None,
            tuple(self.steps),
            result,
            once=None if self.beside is None else number_column(plan),
        )

    # --- UPDATE and DELETE ------------------------------------------------------

    def _delete(self, node: nodes.Delete) -> MutationPlan:
        plan, rows = self._capture(node, {})
        for leg, own in enumerate(self.view.legs):
            if own.writable:
                self._step(rows, leg, self._deletion(node))
        return self._sequence(plan, self._returning(rows, node, {}) if node.returning else None)

    def _deletion(self, node: nodes.Update | nodes.Delete) -> nodes.Delete:
        target = nodes.TableReference(self.view.view.name, alias=TARGET)
        return nodes.Delete(target, captured_relation(), self._matches(), node.context)

    def _update(self, node: nodes.Update) -> MutationPlan:
        assigned, values, flags = self._assigned(node)
        plan, rows = self._capture(node, values)
        target = nodes.TableReference(self.view.view.name, alias=TARGET)
        for leg, own in enumerate(self.view.legs):
            if assigned and own.writable:
                sets = tuple([nodes.Assignment(name, captured(value)) for name, value in assigned.items()])
                update = nodes.Update(
                    target, sets, captured_relation(), self._matches(), node.conflict_action, node.context
                )
                self._step(rows, leg, update)
        for name, (leg, wanted) in flags.items():
            self._step(rows, leg, self._membership(node, name, assigned) if wanted else self._deletion(node))
        return self._sequence(plan, self._returning(rows, node, assigned) if node.returning else None)

    def _membership(self, node: nodes.Update, flag: str, assigned: Mapping[str, str]) -> nodes.Insert:
        """The captured rows that are not in a branch, as rows for it."""
        cells = tuple([nodes.ResultColumn(captured(assigned.get(name, name))) for name in self.view.names])
        select = nodes.Select(cells, captured_relation(), negated(captured(flag)), distinct=True)
        return nodes.Insert(
            nodes.TableReference(self.view.view.name),
            nodes.Query(select),
            self.view.names,
            node.conflict_action,
            context=node.context,
        )

    def _assigned(
        self, node: nodes.Update
    ) -> tuple[dict[str, str], dict[str, nodes.Expression], dict[str, tuple[int, bool]]]:
        """The columns with the captured names of their values, these values, the flags that are set."""
        assigned: dict[str, str] = {}
        values: dict[str, nodes.Expression] = {}
        flags: dict[str, tuple[int, bool]] = {}
        spelled = {fold(name): name for name in self.view.names}
        for each in node.assignments:
            if isinstance(each, nodes.MultiAssignment):
                raise unsupported("Assigning several columns of a set operation from a query", each.position)
            leg = self.view.flag(each.column)
            if leg is not None:
                flags[each.column] = (leg, self._flag_value(each, node))
                continue
            name = spelled.get(fold(each.column))
            if name is None:
                raise self.view.unknown(nodes.ColumnReference(each.column, position=each.position))
            if any(fold(name) in own.literals for own in self.view.legs):
                text = f"'{name}' is a literal discriminator column (a constant of its leg) — it is read-only"
                raise self._refusal("no-inverse", text, each.position)
            if name in assigned:
                text = f"column '{name}' is assigned twice"
                raise self._refusal("conflicting-assignment", text, each.position)
            assigned[name] = f"\0value{len(values)}"
            values[assigned[name]] = each.value
        if assigned and any(not wanted for _, wanted in flags.values()):
            text = "a membership-flag write removes a branch (= false) while data columns are assigned"
            raise self._refusal("conflicting-assignment", text, node.position)
        return assigned, values, flags

    def _flag_value(self, assignment: nodes.Assignment, node: nodes.Update) -> bool:
        value = assignment.value
        if not isinstance(value, nodes.Literal) or value.value is None or value.value not in (True, False):
            text = (
                f"the membership column '{assignment.column}' must be assigned a boolean literal"
                " (true/false); a computed value would have to decide row by row"
            )
            raise self._refusal("unsupported-set-op", text, assignment.position)
        if node.returning:
            text = f"RETURNING is not yet supported on a set-operation membership write '{assignment.column}'"
            raise self._refusal("returning-through-view", text, node.position)
        return bool(value.value)

    def _returning(
        self, rows: GivenTable, node: nodes.Update | nodes.Delete, assigned: Mapping[str, str]
    ) -> PlanNode:
        bound = rows.result(captured_relation())
        by_name = {column.name: reference(column) for column in bound.columns}
        old = tuple([(name, by_name[name]) for name in self.view.outputs])
        new = tuple([(name, by_name[assigned.get(name, name)]) for name in self.view.outputs])
        operation = Operation.UPDATE if isinstance(node, nodes.Update) else Operation.DELETE
        beside = None if self.beside is None else self.beside.over(bound.columns)
        images = ReturningRows(self.qualifier, self.view.view.schema, new, old, self.view.unknown, beside)
        returned = returning_over(self.environment, images, node.returning, operation)
        made = Project(returned.columns, bound.plan, returned.expressions)
        return rows.finished(made, self.common_tables)

    # --- INSERT -----------------------------------------------------------------

    def _insert(self, node: nodes.Insert) -> MutationPlan:
        place = node.table.position
        if node.returning or node.upserts:
            raise unsupported("RETURNING or ON CONFLICT in an INSERT into a set operation", node.position)
        source = node.source
        if isinstance(source, nodes.DefaultValues):
            raise unsupported("DEFAULT VALUES for a view of a set operation", node.position)
        names = list(node.columns) or list(self.view.outputs)
        for name in names:
            if fold(name) not in set(map(fold, self.view.outputs)):
                raise self.view.unknown(nodes.ColumnReference(name, position=place))
        values = plain_values(source)
        if values is not None:
            check_width(values, names)
        wanted = self._wanted(names, values, place)
        plan = queries.bind_query_in(self.environment, source)
        if len(plan.columns) != len(names):
            raise sql_error(StatusCode.ERROR, "Column count mismatch insert clause.", place)
        spelled = {fold(name): name for name in self.view.outputs}
        columns = [spelled[fold(name)] for name in names]
        made = projected(self.environment, plan, columns, list(map(reference, plan.columns)))
        rows = GivenTable(self.environment, made)
        if values is not None and not self.view.flags:
            self._check_routed(names, values, place)
        data = [name for name in columns if self.view.flag(name) is None]
        for leg, own in enumerate(self.view.legs):
            if own.writable and (wanted is None or leg in wanted):
                self._step(rows, leg, self._insertion(node, own, data))
        return self._sequence(made, None)

    def _insertion(self, node: nodes.Insert, leg: Leg, data: Sequence[str]) -> nodes.Insert:
        """What a leg gets: the rows that contradict none of its constants."""
        own = [name for name in data if fold(name) not in leg.literals]
        fixed = [
            is_same(captured(name), constant)
            for constants in (leg.literals, leg.pinned)
            for name, constant in ((name, constants.get(fold(name))) for name in data)
            if constant is not None
        ]
        cells = tuple([nodes.ResultColumn(captured(name)) for name in own])
        cells += tuple([nodes.ResultColumn(constant) for _, constant in self._unsupplied(leg, data)])
        names = (*own, *[name for name, _ in self._unsupplied(leg, data)])
        select = nodes.Select(cells, captured_relation(), all_of(fixed))
        return nodes.Insert(
            nodes.TableReference(self.view.view.name),
            nodes.Query(select),
            names,
            node.conflict_action,
            context=node.context,
        )

    def _unsupplied(self, leg: Leg, data: Sequence[str]) -> list[tuple[str, nodes.Literal]]:
        """What the filter of a leg asks for and nobody supplies."""
        supplied = set(map(fold, data))
        return [(name, constant) for name, constant in leg.pinned.items() if name not in supplied]

    def _wanted(
        self, names: Sequence[str], values: nodes.Values | None, place: SourcePosition | None
    ) -> set[int] | None:
        """The legs that the existence flags choose; None for a view without flags."""
        if not self.view.flags:
            return None
        if values is None:
            text = "a set-operation insert routes by literal membership flags, so it requires a VALUES source"
            raise self._insert_refusal("unsupported-source", text, place)
        folded = [fold(name) for name in names]
        wanted: set[int] = set()
        for flag, leg in self.view.flags:
            if fold(flag) not in folded:
                text = f"the membership flag '{flag}' must be supplied to route the insert to its branch"
                raise self._insert_refusal(
                    "unsupported-set-op", f"{text} (a literal, the same for all rows)", place
                )
            index = folded.index(fold(flag))
            cells = [row[index] for row in values.rows]
            given = {cell.value for cell in cells if isinstance(cell, nodes.Literal)}
            if (
                len(given) != 1
                or len(given) != len({type(cell) for cell in cells})
                or not given <= {True, False}
            ):
                text = f"the membership flag '{flag}' must be one boolean literal for all rows"
                raise self._insert_refusal("unsupported-set-op", text, place)
            if next(iter(given)):
                wanted.add(leg)
        if not wanted:
            text = "no membership flag is true, so there is no branch to insert into"
            raise self._insert_refusal("unsupported-set-op", text, place)
        return wanted

    def _check_routed(self, names: Sequence[str], values: nodes.Values, place: SourcePosition | None) -> None:
        """Every row of literals has a leg that it does not contradict."""
        for row in values.rows:
            cells = {
                fold(name): cell.value
                for name, cell in zip(names, row, strict=True)
                if isinstance(cell, nodes.Literal)
            }
            if not any(leg.writable and _agrees(leg, cells) for leg in self.view.legs):
                text = "the supplied values are consistent with no writable leg of the set operation"
                raise self._insert_refusal("unsupported-set-op", text, place)


def _agrees(leg: Leg, cells: Mapping[str, object]) -> bool:
    return all(
        name not in cells or cells[name] == constant.value
        for constants in (leg.literals, leg.pinned)
        for name, constant in constants.items()
    )
