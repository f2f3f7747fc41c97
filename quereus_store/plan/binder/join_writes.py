"""UPDATE and DELETE through views of joins (view-updates-and-lenses, sections 7 and 8).

UPDATE writes the sides whose columns are assigned.  On an optional side, a joined row that has no partner
gets one, which is made of the join key and what is assigned.  DELETE removes rows of preserved sides: of
the child, if one foreign key joins two sides, else of all.  Existence flags make partners and remove them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from quereus_store.errors import SourcePosition, unsupported
from quereus_store.plan.binder.decompositions import Decomposition
from quereus_store.plan.binder.dml_parts import ReturningRows, returning_over
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.from_clause import bind_from
from quereus_store.plan.binder.join_decomposed import (
    anchor_key,
    check_own_member,
    delete_empty,
    delete_pivots,
    write_pivots,
)
from quereus_store.plan.binder.join_rows import (
    CAPTURED,
    TARGET,
    CapturedRows,
    JoinStatement,
    body_scope,
    captured,
    captured_columns,
    captured_relation,
    is_present,
    old_scope,
    outputs_over,
    projected,
    same_row,
    side_column,
    table_reference,
)
from quereus_store.plan.binder.joined_beside import join_beside
from quereus_store.plan.binder.logical_syntax import all_of, any_of, equal, negated
from quereus_store.plan.binder.scopes import FromScope, RowScope, Scope
from quereus_store.plan.binder.view_bodies import coded, pinned_constants, refusal, turned_round, with_new
from quereus_store.plan.binder.view_joins import (
    JoinOutput,
    JoinView,
    equated_columns,
    finds_one,
    parents_first,
    references_between,
)
from quereus_store.plan.mutations import MutationPlan
from quereus_store.plan.nodes import Filter, PlanNode, Project
from quereus_store.schema.objects import Operation, ReferentialAction, TableSchema, fold
from quereus_store.sql import nodes, traversal


def bind_join_update(statement: JoinStatement, node: nodes.Update) -> MutationPlan:
    """UPDATE of a join view."""
    if node.source is not None and statement.decomposed is not None:
        raise unsupported("FROM in an UPDATE of a table in pieces", node.position)
    view, made = statement.view, statement.decomposed
    plan = _planned(statement, node, made)
    rows = _capture(statement, node, plan.values)
    catalog = statement.environment.context.catalog
    written = plan.written
    for side in parents_first(view, written, catalog):
        _update_side(rows, node, side, plan)
        if view.sides[side].is_optional and plan.flags.get(side) is not False:
            _insert_partners(rows, node, side, plan)
            if made is not None:
                delete_empty(rows, made, side)
    if made is not None:
        write_pivots(rows, made, captured(anchor_key(made)), plan.pivots, anew=True)
    for side, flag in plan.flags.items():
        if not flag:
            _delete_side(rows, node, side, present=True)
    result = _returning(statement, rows, node, plan) if node.returning else None
    return statement.sequence(rows, result)


def bind_join_delete(statement: JoinStatement, node: nodes.Delete) -> MutationPlan:
    """DELETE from a join view."""
    if node.source is not None and statement.decomposed is not None:
        raise unsupported("USING in a DELETE from a table in pieces", node.position)
    rows = _capture(statement, node, {})
    if statement.decomposed is not None:
        delete_pivots(rows, statement.decomposed)
    for side in _deleted_sides(statement, node.position):
        _delete_side(rows, node, side, present=statement.view.sides[side].is_optional)
    result = _returning(statement, rows, node, None) if node.returning else None
    return statement.sequence(rows, result)


# --- what is assigned ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Plan:
    """The sides that an UPDATE writes: per side, column to assigned value, by the value's captured name.

    A value of None is the column's DEFAULT.  ``flags`` are the existence flags that are set, ``pivots``
    the pivoted columns of a decomposition.
    """

    assigned: dict[int, dict[str, str | None]] = field(default_factory=dict)
    values: dict[str, nodes.Expression] = field(default_factory=dict)
    flags: dict[int, bool] = field(default_factory=dict)
    pivots: dict[str, str] = field(default_factory=dict)

    @property
    def written(self) -> list[int]:
        """The sides with columns or partners to write."""
        return [*self.assigned, *[s for s, flag in self.flags.items() if flag and s not in self.assigned]]


def _planned(statement: JoinStatement, node: nodes.Update, made: Decomposition | None) -> _Plan:
    view, plan = statement.view, _Plan()
    own = statement.qualifier if node.source is not None else None
    written = {
        fold(each.column): each.value for each in node.assignments if isinstance(each, nodes.Assignment)
    }

    def new(name: str) -> nodes.Expression:
        return written.get(name) or nodes.ColumnReference(name)

    for each in node.assignments:
        place = each.position
        if isinstance(each, nodes.MultiAssignment):
            raise unsupported("Assigning several columns of a join view from a query", place)
        output = view.output(each.column)
        if output is None:
            raise view.unknown(nodes.ColumnReference(each.column, position=place))
        if output.flag is not None:
            plan.flags[output.flag] = _flag_value(view, output, each, node)
            continue
        if made is not None and made.pivot_of(output.name) is not None:
            plan.pivots[output.name] = f"\0value{len(plan.values)}"
            plan.values[plan.pivots[output.name]] = each.value
            continue
        for side, column, value in _sent_to_sides(view, output, each, new):
            written_here = nodes.Assignment(column, value, position=place)
            if made is None:
                _check_value(view, side, written_here, own)
            elif not view.sides[side].is_optional:
                check_own_member(view, made, side, written_here)
            _assign(view, plan, side, column, value, place)
    for side, flag in plan.flags.items():
        if not flag and side in plan.assigned:
            table = view.sides[side].table.name
            text = (
                f"an existence-flag write deletes base table '{table}' (the non-preserved side) while the"
                " same statement assigns one of its columns"
            )
            raise refusal(view.name, "conflicting-assignment", text, node.position)
    return plan


def _assign(
    view: JoinView,
    plan: _Plan,
    side: int,
    column: str,
    value: nodes.Expression,
    position: SourcePosition | None,
) -> None:
    columns = plan.assigned.setdefault(side, {})
    if fold(column) in columns:
        table = view.sides[side].table.name
        raise coded(
            "conflicting-assignment",
            f"duplicate assignment to column '{column}' in UPDATE on '{table}'",
            position,
        )
    if isinstance(value, nodes.DefaultValue):
        columns[fold(column)] = None
        return
    name = f"\0value{len(plan.values)}"
    plan.values[name] = value
    columns[fold(column)] = name


def _flag_value(view: JoinView, output: JoinOutput, assignment: nodes.Assignment, node: nodes.Update) -> bool:
    value = assignment.value
    if not isinstance(value, nodes.Literal) or value.value not in (True, False, 1, 0) or value.value is None:
        text = (
            f"the existence column '{output.name}' must be assigned a boolean literal (true/false); a"
            " computed value would have to decide row by row"
        )
        raise refusal(view.name, "unsupported-outer-join-update", text, assignment.position)
    if node.returning:
        text = f"RETURNING is not supported on an existence-flag write '{output.name}'"
        raise refusal(view.name, "returning-through-view", text, node.position)
    return bool(value.value)


def _sent_to_sides(
    view: JoinView,
    output: JoinOutput,
    assignment: nodes.Assignment,
    new: Callable[[str], nodes.Expression],
) -> Iterator[tuple[int, str, nodes.Expression]]:
    """The columns of sides that a value of an output goes to."""
    if output.puts:
        for put in output.puts:
            yield put_side(view, output, put), put.column, with_new(put.value, new)
        return
    if output.column is None:
        text = f"column '{output.name}' is a computed (non-invertible) expression and is read-only"
        raise refusal(view.name, "no-inverse", text, assignment.position)
    (side,) = output.sides
    value = assignment.value
    if output.inverted and not isinstance(value, nodes.DefaultValue):
        value = turned_round(output.expression, value)
    yield side, output.column, value


def put_side(view: JoinView, output: JoinOutput, put: nodes.Assignment) -> int:
    """The side that a column of WITH INVERSE belongs to: one that the output reads, else the first."""
    having = [
        index for index, side in enumerate(view.sides) if side.table.column_index(put.column) is not None
    ]
    if not having:
        raise view.unknown(nodes.ColumnReference(put.column, position=put.position))
    return next((index for index in having if index in output.sides), having[0])


def _check_value(view: JoinView, side: int, assignment: nodes.Assignment, own: str | None) -> None:
    """Refuse a value that another side gives, unless the join finds at most one row there.

    An optional side takes the least of several.  Under ``own``, if FROM adds others, are the view's columns.
    """
    for part in traversal.walk(assignment.value):
        if not isinstance(part, nodes.ColumnReference):
            continue
        if own is not None and part.table is not None and fold(part.table) != fold(own):
            continue
        output = view.output(part.column)
        if output is None or output.sides <= {side}:
            continue
        optional = any(view.sides[other].is_optional for other in output.sides)
        if output.column is None or output.inverted or optional:
            kind = "an optional-side" if optional and output.column is not None else "computed"
            text = (
                f"the update value reads {kind} column '{output.name}' on a different base table than the"
                " column it assigns; assign from plain columns"
            )
            raise refusal(view.name, "no-inverse", text, part.position)
        (other,) = output.sides
        if not view.sides[side].is_optional and not finds_one(view, other):
            table = view.sides[other].table.name
            text = (
                f"the cross-source assignment of column '{assignment.column}' reads column '{output.column}'"
                f" on base table '{table}', but the assigned side joins more than one '{table}' row"
                " (no key of it is fixed by the join)"
            )
            raise refusal(view.name, "cross-source-ambiguous-cardinality", text, part.position)


# --- captured rows ------------------------------------------------------------------------------------------


def _capture(
    statement: JoinStatement, node: nodes.Update | nodes.Delete, values: Mapping[str, nodes.Expression]
) -> CapturedRows:
    """The joined rows that the statement reaches, with what it assigns to each."""
    view = statement.view
    bound = bind_from(view.environment, view.relation, None)
    for source, side in zip(bound.sources, view.sides, strict=True):
        assert len(source.columns) == len(side.table.columns)
    scope = body_scope(view, bound)
    plan = bound.plan
    if view.where is not None:
        plan = Filter(plan.columns, plan, ExpressionBinder(view.environment, scope).bind(view.where))
    environment, outputs = statement.environment, outputs_over(view, scope)
    image = {fold(name): value for name, value in outputs}
    own: Scope = RowScope(
        {"": image, fold(statement.qualifier): image}, schema=view.schema, unknown=view.unknown
    )
    beside = None
    if node.source is not None:
        beside = join_beside(environment, (statement.qualifier, view.schema), plan, outputs, node.source)
        plan, own = beside.plan, beside.scope
    binder = ExpressionBinder(environment, own)
    if node.where is not None:
        plan = Filter(plan.columns, plan, binder.bind(node.where))
    names, kept = captured_columns(view, bound)
    kept += [binder.bind(value) for value in values.values()]
    added = {} if beside is None else beside.captured
    made = projected(environment, plan, [*names, *values, *added], [*kept, *added.values()])
    return CapturedRows(statement, made, beside)


# --- mutations of the sides ---------------------------------------------------------------------------------


def _update_side(rows: CapturedRows, node: nodes.Update, side: int, plan: _Plan) -> None:
    """The captured rows of a side get what is assigned; rows that are shared, the least of it."""
    view = rows.statement.view
    assigned = plan.assigned.get(side)
    if not assigned:
        return
    table = view.sides[side].table
    names = [name for name in assigned.values() if name is not None]
    source: nodes.Relation = captured_relation()
    condition = all_of([same_row(view, side, TARGET), *is_present(view, side)])
    if view.sides[side].is_optional:
        source = _least(view, side, names)
        condition = same_row(view, side, TARGET)
    assignments = tuple(
        [
            nodes.Assignment(column, nodes.DefaultValue() if name is None else captured(name))
            for column, name in assigned.items()
        ]
    )
    rows.add(
        nodes.Update(
            table_reference(table, TARGET),
            assignments,
            source,
            condition,
            node.conflict_action,
            node.context,
        ),
        side,
    )


def _least(view: JoinView, side: int, names: Sequence[str]) -> nodes.Relation:
    """The captured rows of an optional side, one for each of its own rows, with the least values."""
    table = view.sides[side].table
    key = [side_column(side, part.column) for part in table.primary_key.parts]
    items = [nodes.ResultColumn(captured(name), name) for name in key]
    items += [nodes.ResultColumn(_minimum(name), name) for name in names]
    grouped = nodes.Select(
        tuple(items) or (nodes.ResultColumn(nodes.Literal.of(1)),),
        captured_relation(),
        all_of(is_present(view, side)),
        tuple(map(captured, key)),
    )
    return nodes.SubquerySource(nodes.Query(grouped), CAPTURED)


def _minimum(name: str) -> nodes.Expression:
    return nodes.FunctionCall("min", (captured(name),))


def _delete_side(rows: CapturedRows, node: nodes.Update | nodes.Delete, side: int, *, present: bool) -> None:
    view = rows.statement.view
    conditions = [same_row(view, side, TARGET), *(is_present(view, side) if present else [])]
    target = table_reference(view.sides[side].table, TARGET)
    rows.add(nodes.Delete(target, captured_relation(), all_of(conditions), node.context), side)


def _insert_partners(rows: CapturedRows, node: nodes.Update, side: int, plan: _Plan) -> None:
    """A partner for every key that has none, of the key, what is assigned and defaults."""
    view = rows.statement.view
    own, key = partner_key(view, side, node.position)
    assigned = plan.assigned.get(side, {})
    pinned = pinned_columns(view, side)
    values: dict[str, nodes.Expression] = {fold(own): captured(key)}
    for column, name in assigned.items():
        if name is not None and column != fold(own):
            values[column] = _minimum(name)
    for column, constant in pinned.items():
        values.setdefault(column, constant)
    table = view.sides[side].table
    _check_filled(view, table, set(values), node.position)
    missing = negated(all_of(is_present(view, side)))
    some = [
        nodes.IsTest(captured(name), nodes.IsTarget.NULL, negated=True)
        for name in assigned.values()
        if name is not None
    ]
    if rows.statement.decomposed is not None and some:
        missing = all_of([missing, any_of(some)])
    there = nodes.IsTest(captured(key), nodes.IsTarget.NULL, negated=True)
    select = nodes.Select(
        tuple([nodes.ResultColumn(value) for value in values.values()]),
        captured_relation(),
        all_of([missing, there]),
        (captured(key),),
    )
    rows.add(
        nodes.Insert(
            nodes.TableReference(table.name, table.schema),
            nodes.Query(select),
            tuple(values),
            node.conflict_action,
            context=node.context,
        ),
        side,
    )


def partner_key(view: JoinView, side: int, position: SourcePosition | None) -> tuple[str, str]:
    """The column of an optional side that the join fixes, and the captured column that fixes it."""
    pairs: dict[str, tuple[int, str]] = {}
    for left, right in equated_columns(view):
        for own, other in ((left, right), (right, left)):
            if own[0] == side and not set(view.sides[side].presence) <= set(view.sides[other[0]].presence):
                pairs.setdefault(fold(own[1]), other)
    table = view.sides[side].table
    if len(pairs) > 1:
        text = (
            f"the non-preserved side (base table '{table.name}') is related to the join by a composite key"
            f" ({', '.join(pairs)}); only a single key column can make a partner"
        )
        raise refusal(view.name, "unsupported-outer-join-update", text, position)
    if not pairs:
        text = (
            f"the non-preserved side (base table '{table.name}') is not related to a preserved side by an"
            " equi-join key, so no partner can be made"
        )
        raise refusal(view.name, "unsupported-outer-join-update", text, position)
    ((own_name, (other_side, other_name)),) = pairs.items()
    found = view.sides[other_side].table.column_index(other_name)
    assert found is not None
    return own_name, side_column(other_side, found)


def pinned_columns(view: JoinView, side: int) -> dict[str, nodes.Literal]:
    """The columns of a side that the filter and the join fix to constants, by folded name."""
    pinned: dict[str, nodes.Literal] = {}
    for condition in (*view.conditions, *([] if view.where is None else [view.where])):
        for column, constant in pinned_constants(condition):
            if view.side_of(column) == side and constant.value is not None:
                pinned.setdefault(fold(column.column), constant)
    return pinned


def _check_filled(
    view: JoinView, table: TableSchema, filled: set[str], position: SourcePosition | None
) -> None:
    for column in table.columns:
        optional = column.nullable or column.default is not None or column.generated is not None
        if not optional and fold(column.name) not in filled:
            raise coded(
                "null-extended-create-conflict",
                f"cannot update through view '{view.name}': materializing a null-extended row on base table"
                f" '{table.name}' would leave NOT NULL column '{column.name}' without a value",
                position,
            )


# --- which sides a DELETE takes rows from -------------------------------------------------------------------


def _deleted_sides(statement: JoinStatement, position: SourcePosition | None) -> list[int]:
    """The child if one key joins two sides, else all that are preserved, children first."""
    view, catalog = statement.view, statement.environment.context.catalog
    if statement.decomposed is not None:
        return list(range(len(view.sides)))[::-1]
    preserved = [index for index, side in enumerate(view.sides) if not side.is_optional]
    references = [pair for pair in references_between(view, catalog) if set(pair) <= set(preserved)]
    if len(view.sides) == len(preserved) == 2 and len(references) == 1:
        return [references[0][0]]
    _check_mutual(view, references, position)
    return parents_first(view, preserved, catalog)[::-1]


def _check_mutual(
    view: JoinView, references: Sequence[tuple[int, int]], position: SourcePosition | None
) -> None:
    for child, parent in references:
        if child < parent and (parent, child) in references and _restricts(view, child, parent):
            names = view.sides[child].table.name, view.sides[parent].table.name
            raise coded(
                "mutual-fk-restrict-delete",
                f"cannot delete through view '{view.name}': the joined row spans a mutual foreign key"
                f" ('{names[0]}'↔'{names[1]}'); no order of deletion satisfies RESTRICT",
                position,
            )


def _restricts(view: JoinView, first: int, second: int) -> bool:
    restricting = (ReferentialAction.RESTRICT, ReferentialAction.NO_ACTION)
    pairs = ((first, second), (second, first))
    return all(
        any(
            key.on_delete in restricting and fold(key.parent_table) == fold(view.sides[parent].table.name)
            for key in view.sides[child].table.foreign_keys
        )
        for child, parent in pairs
    )


# --- RETURNING ----------------------------------------------------------------------------------------------


def _returning(
    statement: JoinStatement,
    rows: CapturedRows,
    node: nodes.Update | nodes.Delete,
    plan: _Plan | None,
) -> PlanNode:
    """RETURNING of the captured rows: as they were, and (UPDATE) as they are now."""
    view = statement.view
    relation: nodes.Relation = captured_relation()
    if plan is not None:
        for side in range(len(view.sides)):
            relation = _read_again(view, relation, side, plan, node.position)
    bound = rows.result(relation)
    old = outputs_over(view, old_scope(view, bound.sources[0].columns))
    new = old
    if plan is not None:
        again = bound.sources[1:]
        flags = {name for name, _ in view.flags}
        shown = [
            column
            for side, source in enumerate(again)
            for column in source.columns
            if (side, fold(column.name)) not in view.merged
        ]
        shown += [column for column in bound.columns if fold(column.name) in flags]
        new = outputs_over(view, FromScope(again, tuple(shown), None))
    operation = Operation.UPDATE if isinstance(node, nodes.Update) else Operation.DELETE
    beside = None if rows.beside is None else rows.beside.over(bound.sources[0].columns)
    images = ReturningRows(statement.qualifier, view.schema, new, old, view.unknown, beside)
    returned = returning_over(statement.environment, images, node.returning, operation)
    return rows.finished(Project(returned.columns, bound.plan, returned.expressions), statement.common_tables)


def _read_again(
    view: JoinView, left: nodes.Relation, side: int, plan: _Plan, position: SourcePosition | None
) -> nodes.Relation:
    """The row of a side that a captured row has now, besides what is to its left."""
    own = view.sides[side]
    written = {column: name for column, name in plan.assigned.get(side, {}).items() if name is not None}
    condition = same_row(view, side, own.name, written)
    if own.is_optional:
        there = all_of(is_present(view, side))
        condition = all_of([there, condition])
        if side in plan.written:
            column, key = partner_key(view, side, position)
            made = equal(nodes.ColumnReference(column, own.name), captured(key))
            condition = any_of([condition, all_of([negated(there), made])])
    flags = tuple(
        [nodes.MembershipFlag(name, nodes.Side.RIGHT) for name, first in view.flags if first == side]
    )
    right = table_reference(own.table, own.name)
    return nodes.Join(nodes.JoinKind.LEFT, left, right, condition, flags=flags)
