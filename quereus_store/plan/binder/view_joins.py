"""UPDATE and DELETE through views of inner joins (view-updates-and-lenses, section 7).

A write through a join goes to some of its tables, the *written sides*: for UPDATE
those whose columns are assigned, for DELETE the child of the one foreign key between
two sides, else all of them.  The rows of the first are found by the whole join.  The
mutations that follow read, where that side stands in the join, the rows that it
changed as they were: so no predicate is judged over what the statement itself wrote.
The last is the statement; RETURNING finds the other sides' columns again by the
join's conditions over the rows as they were.  Outer joins and INSERT are not built.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from quereus_store.errors import Error, SourcePosition, sql_error, unsupported
from quereus_store.errors.codes import StatusCode
from quereus_store.plan.binder.comparisons import conjunction
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.dml_parts import (
    NamedExpressions,
    ReturningRows,
    Target,
    bind_assignments,
    returning_over,
    target_on,
)
from quereus_store.plan.binder.dml_update import delete_plan, update_plan
from quereus_store.plan.binder.expressions import ExpressionBinder, scalar
from quereus_store.plan.binder.logical_syntax import WrittenRow
from quereus_store.plan.binder.relations import expand_view, find_relation, row_columns
from quereus_store.plan.binder.scopes import FromScope, RowScope, Source, image_of, reference
from quereus_store.plan.binder.view_bodies import coded, plain_select, refusal
from quereus_store.plan.expressions import BoundExpression, Column
from quereus_store.plan.mutations import CheckPlan, MutationPlan, ReturningPlan
from quereus_store.plan.nodes import (
    CommonTable,
    Filter,
    Join,
    JoinKind,
    MutationScan,
    PlanNode,
    Project,
    TableScan,
    Values,
)
from quereus_store.schema.manager import parent_of
from quereus_store.schema.objects import Catalog, Operation, TableSchema, ViewSchema, fold
from quereus_store.sql import nodes, traversal

if TYPE_CHECKING:
    from quereus_store.plan.binder.logical_constraints import LogicalConstraints

Columns = tuple[tuple[Column, ...], ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One table of the join, under its name there."""

    name: str
    table: TableSchema


@dataclass(frozen=True, slots=True)
class JoinOutput:
    """One output: its expression, the sides that it reads, the column if it is nothing more."""

    name: str
    expression: nodes.Expression
    sides: frozenset[int]
    column: str | None


@dataclass(frozen=True, slots=True)
class JoinView:
    """A view of an inner join, taken apart; ``merged`` are the columns that USING shows once."""

    name: str
    schema: str
    environment: Environment
    sides: tuple[Side, ...]
    conditions: tuple[nodes.Expression, ...]
    merged: frozenset[tuple[int, str]]
    where: nodes.Expression | None
    outputs: tuple[JoinOutput, ...]

    def output(self, name: str) -> JoinOutput | None:
        """The output of that name, in any case."""
        return next((output for output in self.outputs if fold(output.name) == fold(name)), None)

    def unknown(self, name: nodes.ColumnReference) -> Error:
        """The error for a name that is no column of the view."""
        exposed = ", ".join(output.name for output in self.outputs)
        text = f"'{name.column}' is not a column of the view view '{self.name}' exposes: {exposed}."
        return refusal(self.name, "unknown-view-column", text, name.position)


# --- opening ------------------------------------------------------------------------------------------------


def join_of_view(
    environment: Environment, view: ViewSchema, position: SourcePosition | None
) -> JoinView | None:
    """A view of a join, taken apart; None for another view. Raises ERROR for one that is not writable."""
    body = view.query.body
    if not isinstance(body, nodes.Select) or not isinstance(body.source, nodes.Join):
        return None
    names = [column.name for column in expand_view(environment, view, position).columns]
    inner = environment.inside_stored_body(view.schema, (view.schema, view.name))
    select = plain_select(inner, view.query, view.name, "view", position)
    return open_join(inner.with_schemas(select.schema_path), select, names, view.name, view.schema, position)


def open_join(
    environment: Environment,
    select: nodes.Select,
    names: Sequence[str],
    name: str,
    schema: str,
    position: SourcePosition | None,
) -> JoinView:
    """Take a body over a join apart; raises ERROR for one that is no inner join of tables."""
    if any(isinstance(item, nodes.ResultStar) for item in select.items):
        text = "list the join's output columns explicitly (a star has no stable meaning in a join)"
        raise refusal(name, "unsupported-join", text, position)
    sides: list[Side] = []
    conditions: list[nodes.Expression] = []
    merged: set[tuple[int, str]] = set()

    def add(relation: nodes.Relation) -> None:
        if isinstance(relation, nodes.Join):
            _check_join(relation, name, position)
            add(relation.left)
            add(relation.right)
            if relation.condition is not None:
                conditions.append(relation.condition)
            last = len(sides) - 1
            for column in relation.using:
                left = next(side for side in sides if side.table.column_index(column) is not None)
                conditions.append(_equal(left.name, sides[last].name, column))
                merged.add((last, fold(column)))
            return
        sides.append(_side(environment, relation, name, position))

    assert select.source is not None
    add(select.source)
    outputs = [
        _output(sides, output_name, item.expression)
        for output_name, item in zip(names, select.items, strict=True)
        if isinstance(item, nodes.ResultColumn)
    ]
    return JoinView(
        name,
        schema,
        environment,
        tuple(sides),
        tuple(conditions),
        frozenset(merged),
        select.where,
        tuple(outputs),
    )


def _check_join(join: nodes.Join, name: str, position: SourcePosition | None) -> None:
    if join.kind is nodes.JoinKind.FULL:
        text = (
            "the non-preserved side is not related to a preserved side by an equi-join key,"
            " since a FULL join preserves both"
        )
        raise refusal(name, "unsupported-outer-join-update", text, position)
    if join.kind in (nodes.JoinKind.LEFT, nodes.JoinKind.RIGHT) or join.natural or join.flags:
        raise unsupported(f"Writing through the outer or natural join of view '{name}'", position)
    if join.kind is nodes.JoinKind.CROSS or (join.condition is None and not join.using):
        text = "only INNER/LEFT/RIGHT/FULL joins with an ON/USING predicate are decomposable"
        raise refusal(name, "unsupported-join", text, position)


def _side(
    environment: Environment, relation: nodes.Relation, name: str, position: SourcePosition | None
) -> Side:
    if isinstance(relation, nodes.TableReference) and not relation.columns:
        found = find_relation(environment, relation.schema, relation.name, relation.position)
        if isinstance(found, TableSchema) and found.derivation is None:
            return Side(relation.alias or found.name, found)
    raise refusal(name, "nested-view", "join sources must be plain base tables", position)


def _equal(left: str, right: str, column: str) -> nodes.Expression:
    return nodes.BinaryOperation(
        nodes.BinaryOperator.EQUAL,
        nodes.ColumnReference(column, left),
        nodes.ColumnReference(column, right),
    )


def _side_of(sides: Sequence[Side], node: nodes.ColumnReference) -> int | None:
    for index, side in enumerate(sides):
        if node.table is not None and fold(node.table) != fold(side.name):
            continue
        if side.table.column_index(node.column) is not None:
            return index
    return None


def _output(sides: Sequence[Side], name: str, expression: nodes.Expression) -> JoinOutput:
    read = {
        side
        for part in traversal.walk(expression)
        if isinstance(part, nodes.ColumnReference) and (side := _side_of(sides, part)) is not None
    }
    shown = expression.operand if isinstance(expression, nodes.Collate) else expression
    column = shown.column if isinstance(shown, nodes.ColumnReference) else None
    return JoinOutput(name, expression, frozenset(read), column)


# --- binding ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sight:
    """The sides' columns before and after the write, and what gives their rows."""

    before: Columns
    after: Columns
    plans: tuple[PlanNode, ...]

    def joined(self, which: Iterable[int]) -> PlanNode:
        """All combinations of rows of some sides."""
        plan: PlanNode | None = None
        for index in which:
            side = self.plans[index]
            if plan is None:
                plan = side
            else:
                plan = Join(plan.columns + side.columns, JoinKind.CROSS, plan, side, lateral=False)
        return plan or Values((), ((),))


@dataclass(frozen=True, slots=True)
class _Done:
    """A side's mutation, which comes before that of another side and gives it its rows."""

    plan: MutationPlan
    number: int


@dataclass(frozen=True, slots=True)
class JoinStatement:
    """A mutation of a join view: where its clauses stand, and the view's name there."""

    environment: Environment
    common_tables: tuple[CommonTable, ...]
    view: JoinView
    qualifier: str
    logical: LogicalConstraints | None = None
    done: dict[int, _Done] = field(default_factory=dict)

    def bind(self, node: nodes.DataModification) -> MutationPlan:
        """The mutation of the last side, which brings those of the others; raises ERROR or UNSUPPORTED."""
        if isinstance(node, nodes.Insert):
            raise _insert_refusal(self.view, node)
        if node.source is not None:
            raise unsupported("FROM or USING in a write through a join view", node.position)
        catalog = self.environment.context.catalog
        assigned: dict[int, list[nodes.Assignment]] = {}
        if isinstance(node, nodes.Update):
            assigned = _assigned(self.view, node)
            order = _parents_first(self.view, assigned, catalog)
        else:
            order = _deleted(self.view, catalog)
        if len(order) > 1:
            self._check_apart(node, order)
        if len(order) > 2 and self.common_tables:
            raise unsupported("WITH on a write to more than two tables of a join view", node.position)
        for side in order[:-1]:
            plan = self._side(node, side, assigned.get(side, []), last=False)
            self.done[side] = _Done(plan, self.environment.context.number())
        return self._side(node, order[-1], assigned.get(order[-1], []), last=True)

    def _check_apart(self, node: nodes.Update | nodes.Delete, order: Sequence[int]) -> None:
        """Refuse a write to several tables that would read what it has already written."""
        tables = [side.table for side in self.view.sides]
        written = {tables[side].name for side in order}
        if any(tables.count(tables[side]) > 1 for side in order):
            raise unsupported("Writing several sides of a view that joins a table to itself", node.position)
        assignments = node.assignments if isinstance(node, nodes.Update) else ()
        read = [*assignments, *[part for part in (node.where, node.with_clause) if part is not None]]
        for part in (part for root in read for part in traversal.walk(root)):
            if not isinstance(part, nodes.TableReference):
                continue
            if part.schema is None and fold(part.name) in self.environment.common_tables:
                continue
            relation = find_relation(self.environment, part.schema, part.name, part.position)
            if not isinstance(relation, TableSchema) or relation.name in written:
                raise unsupported(
                    "Reading a view or a written table in a write to several tables of a join view",
                    part.position,
                )

    def _side(
        self,
        node: nodes.Update | nodes.Delete,
        written: int,
        assignments: list[nodes.Assignment],
        *,
        last: bool,
    ) -> MutationPlan:
        conflict = node.conflict_action if isinstance(node, nodes.Update) else None
        table = self.view.sides[written].table
        common_tables = self.common_tables if last else ()
        target = target_on(self.environment, node, conflict, table, table.name, common_tables)
        target = self._with_logical(target, written)
        plan, scope = self._rows(target, written, node.where)
        operation = Operation.UPDATE if isinstance(node, nodes.Update) else Operation.DELETE
        returning = (
            self._returning(target, node, written, operation) if last else _both_images(target, operation)
        )
        if isinstance(node, nodes.Delete):
            return delete_plan(target, plan, returning, matches_once=False)
        binder = ExpressionBinder(target.environment, scope)
        values = bind_assignments(target, assignments, binder, image_of(target.old), "", "UPDATE")
        return update_plan(target, plan, values, returning, matches_once=False)

    def _with_logical(self, target: Target, written: int) -> Target:
        """The target with the constraints of the logical table that the view is."""
        if self.logical is None:
            return target
        logical, outputs = self.logical, self.view.outputs
        shown = [
            (fold(output.name), output.column)
            for output in outputs
            if output.column is not None and output.sides == {written}
        ]

        def image(columns: tuple[Column, ...]) -> dict[str, BoundExpression]:
            by_name = {fold(column.name): reference(column) for column in columns}
            return {name: by_name[fold(column)] for name, column in shown}

        def further(own: Target, operation: Operation) -> tuple[CheckPlan, ...]:
            new = {} if operation is Operation.DELETE else image(own.new)
            old = {} if operation is Operation.INSERT else image(own.old)
            return logical.plans(WrittenRow(new, old), operation)

        return replace(target, further=further)

    def _sight(self, target: Target, written: int) -> _Sight:
        """The sides as a mutation of one of them sees them; only its own columns are the same every time."""
        before: list[tuple[Column, ...]] = []
        after: list[tuple[Column, ...]] = []
        plans: list[PlanNode] = []
        tables = self.environment.context.references.tables
        for index, side in enumerate(self.view.sides):
            table = side.table
            tables[table.schema, table.name] = table
            done = self.done.get(index)
            width = len(table.columns)
            if done is not None:
                assert done.plan.returning is not None
                both = tuple(self.environment.renumbered(done.plan.returning.columns))
                before.append(both[:width])
                after.append(both[width:])
                plans.append(MutationScan(both, done.plan, done.number))
                continue
            own = target.old if index == written else row_columns(self.environment, table)
            before.append(own)
            after.append(target.new if index == written else own)
            plans.append(TableScan(own, table, tuple(range(width)), None))
        return _Sight(tuple(before), tuple(after), tuple(plans))

    def _binder(self, columns: Columns) -> ExpressionBinder:
        return ExpressionBinder(self.view.environment, _scope(self.view, columns))

    def _rows(
        self, target: Target, written: int, where: nodes.Expression | None
    ) -> tuple[PlanNode, RowScope]:
        sight = self._sight(target, written)
        binder = self._binder(sight.before)
        plan = sight.joined(range(len(sight.plans)))
        conditions = list(map(binder.bind, self.view.conditions))
        if self.view.where is not None:
            conditions.append(binder.bind(self.view.where))
        plan = Filter(plan.columns, plan, conjunction(conditions))
        image: Mapping[str, BoundExpression] = {
            fold(output.name): binder.bind(output.expression) for output in self.view.outputs
        }
        scope = RowScope(
            {"": image, fold(self.qualifier): image}, schema=self.view.schema, unknown=self.view.unknown
        )
        if where is not None:
            plan = Filter(plan.columns, plan, ExpressionBinder(target.environment, scope).bind(where))
        return plan, scope

    def _returning(
        self, target: Target, node: nodes.Update | nodes.Delete, written: int, operation: Operation
    ) -> ReturningPlan | None:
        if not node.returning:
            return None
        own = self.view.sides[written].table
        if [side.table for side in self.view.sides].count(own) > 1:
            raise unsupported("RETURNING through a view that joins a table to itself", node.position)
        old = self._outputs(target, written, after=False)
        new = old if operation is Operation.DELETE else self._outputs(target, written, after=True)
        rows = ReturningRows(self.qualifier, self.view.schema, new, old, self.view.unknown)
        return returning_over(target.environment, rows, node.returning, operation)

    def _outputs(self, target: Target, written: int, *, after: bool) -> NamedExpressions:
        """The view's columns over one image of the written row; the other sides are found by the old one."""
        outputs: list[tuple[str, BoundExpression]] = []
        for output in self.view.outputs:
            sight = self._sight(target, written)
            value = self._binder(sight.after if after else sight.before).bind(output.expression)
            if not output.sides <= {written}:
                finder = self._binder(sight.before)
                others = sight.joined(index for index in range(len(sight.plans)) if index != written)
                condition = conjunction(list(map(finder.bind, self.view.conditions)))
                found = Filter(others.columns, others, condition)
                made = self.environment.column(output.name, value.type, True, value.collation)
                value = scalar(Project((made,), found, (value,)), None)
            outputs.append((output.name, value))
        return tuple(outputs)


def _both_images(target: Target, operation: Operation) -> ReturningPlan:
    """RETURNING of a side that others follow: its row as it was, then as it is."""
    columns = target.old + (target.old if operation is Operation.DELETE else target.new)
    made = tuple(target.environment.renumbered(columns))
    return ReturningPlan(made, tuple(map(reference, columns)))


def _scope(view: JoinView, columns: Columns) -> FromScope:
    sources = tuple(
        [Source(side.name, own, side.table.schema) for side, own in zip(view.sides, columns, strict=True)]
    )
    seen = tuple(
        [
            column
            for index, own in enumerate(columns)
            for column in own
            if (index, fold(column.name)) not in view.merged
        ]
    )
    return FromScope(sources, seen, None)


# --- which side ---------------------------------------------------------------------------------------------


def _assigned(view: JoinView, node: nodes.Update) -> dict[int, list[nodes.Assignment]]:
    """The sides that a SET writes, each with the SET in terms of its columns."""
    below: dict[int, list[nodes.Assignment]] = {}
    for assignment in node.assignments:
        place = assignment.position
        if isinstance(assignment, nodes.MultiAssignment):
            raise unsupported("Assigning several columns of a join view from a query", place)
        output = view.output(assignment.column)
        if output is None:
            raise view.unknown(nodes.ColumnReference(assignment.column, position=place))
        if output.column is None:
            text = f"column '{output.name}' is a computed (non-invertible) expression and is read-only"
            raise refusal(view.name, "no-inverse", text, place)
        (side,) = output.sides
        written = nodes.Assignment(output.column, assignment.value, position=place)
        _check_value(view, side, written)
        below.setdefault(side, []).append(written)
    return below


def _check_value(view: JoinView, side: int, assignment: nodes.Assignment) -> None:
    """Refuse a value that another side gives, unless the join finds at most one row there."""
    for part in traversal.walk(assignment.value):
        output = view.output(part.column) if isinstance(part, nodes.ColumnReference) else None
        if output is None or output.sides <= {side}:
            continue
        if output.column is None:
            text = (
                f"the update value reads computed column '{output.name}' on a different base table than the"
                " column it assigns; assign from plain columns"
            )
            raise refusal(view.name, "no-inverse", text, part.position)
        (other,) = output.sides
        if not _finds_one(view, other):
            table = view.sides[other].table.name
            text = (
                f"the cross-source assignment of column '{assignment.column}' reads column '{output.column}'"
                f" on base table '{table}', but the assigned side joins more than one '{table}' row"
                " (no key of it is fixed by the join)"
            )
            raise refusal(view.name, "cross-source-ambiguous-cardinality", text, part.position)


def _finds_one(view: JoinView, side: int) -> bool:
    """Whether the join fixes a whole key of a side by columns of others."""
    table = view.sides[side].table
    fixed: set[int] = set()
    for condition in view.conditions:
        for left, right in _equalities(condition):
            for own, other in ((left, right), (right, left)):
                if _side_of(view.sides, own) == side and _side_of(view.sides, other) != side:
                    found = table.column_index(own.column)
                    fixed |= set() if found is None else {found}
    keys = [{part.column for part in table.primary_key.parts}]
    keys += [set(unique.columns) for unique in table.unique_constraints if not unique.from_index]
    return any(key and key <= fixed for key in keys) or any(
        {part.column for part in index.parts} <= fixed
        for index in table.indexes
        if index.unique and index.where is None
    )


def _equalities(
    condition: nodes.Expression,
) -> Iterator[tuple[nodes.ColumnReference, nodes.ColumnReference]]:
    if not isinstance(condition, nodes.BinaryOperation):
        return
    if condition.operator is nodes.BinaryOperator.AND:
        yield from _equalities(condition.left)
        yield from _equalities(condition.right)
    elif condition.operator in (nodes.BinaryOperator.EQUAL, nodes.BinaryOperator.DOUBLE_EQUAL):
        left, right = condition.left, condition.right
        if isinstance(left, nodes.ColumnReference) and isinstance(right, nodes.ColumnReference):
            yield left, right


def equated_columns(view: JoinView) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    """The pairs of columns, each with its side, that the join makes equal."""
    for condition in view.conditions:
        for left, right in _equalities(condition):
            sides = _side_of(view.sides, left), _side_of(view.sides, right)
            if sides[0] is not None and sides[1] is not None and sides[0] != sides[1]:
                yield (sides[0], left.column), (sides[1], right.column)


def _references(view: JoinView, catalog: Catalog) -> list[tuple[int, int]]:
    """The foreign keys between sides, as child and parent."""
    return [
        (index, at)
        for index, side in enumerate(view.sides)
        for key in side.table.foreign_keys
        for at, other in enumerate(view.sides)
        if at != index and parent_of(catalog, side.table, key) is other.table
    ]


def _parents_first(view: JoinView, sides: Iterable[int], catalog: Catalog) -> list[int]:
    """Sides in the order of writing: parents before children, what comes later in FROM before the rest."""
    waiting = sorted(sides, reverse=True)
    references = _references(view, catalog)
    order: list[int] = []
    while waiting:
        free = [
            side for side in waiting if not any((side, other) in references for other in waiting)
        ] or waiting
        order.append(free[0])
        waiting.remove(free[0])
    return order


def _deleted(view: JoinView, catalog: Catalog) -> list[int]:
    """The sides that a DELETE takes rows from: the child if one key joins two, else all, children first."""
    references = _references(view, catalog)
    if len(view.sides) == 2 and len(references) == 1:
        return [references[0][0]]
    return _parents_first(view, range(len(view.sides)), catalog)[::-1]


def _insert_refusal(view: JoinView, node: nodes.Insert) -> Error:
    """What an INSERT through a join is told."""
    if node.returning:
        return coded(
            "returning-through-view",
            f"RETURNING through a multi-source (join) insert into view '{view.name}' is not yet supported",
            node.position,
        )
    supplied = {fold(name) for name in node.columns} or {fold(output.name) for output in view.outputs}
    for name in node.columns:
        output = view.output(name)
        if output is None:
            return view.unknown(nodes.ColumnReference(name, position=node.table.position))
    missing = unfilled_column(view, supplied)
    if missing is not None:
        side, column = missing
        return sql_error(
            StatusCode.ERROR,
            f"cannot insert through view '{view.name}': base table '{side.table.name}' column '{column}' is"
            " NOT NULL with no default, and the view gives it no value",
            node.table.position,
        )
    return unsupported(f"Inserting into several tables through view '{view.name}'", node.position)


def unfilled_column(view: JoinView, supplied: Set[str]) -> tuple[Side, str] | None:
    """The first column that needs a value and gets none where the outputs ``supplied`` (folded) have one."""
    filled = {
        (side, fold(output.column))
        for output in view.outputs
        if output.column is not None and fold(output.name) in supplied
        for side in output.sides
    }
    equated = {
        (_side_of(view.sides, part), fold(part.column))
        for condition in view.conditions
        for pair in _equalities(condition)
        for part in pair
    }
    for index, side in enumerate(view.sides):
        for column in side.table.columns:
            optional = column.nullable or column.default is not None or column.generated is not None
            if not optional and (index, fold(column.name)) not in filled | equated:
                return side, column.name
    return None
