"""INSERT (dml-transactions-constraints, sections 2, 4, 5, 8 and 9).

The source is what VALUES, the query or the inner statement gives.  A single row of
VALUES needs no rows to be made first: its cells become the row's expressions over
the row of parameters itself, so that executemany runs one compiled function over
all sets of parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.functions.windows import check_window_call
from quereus_store.plan.binder import queries
from quereus_store.plan.binder.context import Environment, Slot
from quereus_store.plan.binder.determinism import non_deterministic_in
from quereus_store.plan.binder.dml_parts import (
    Adapt,
    RowQueries,
    Target,
    bind_assignments,
    check_plans,
    converts,
    default_value,
    generated_plans,
    not_null_plans,
    open_target,
    quiet_parameters,
    returning_plan,
    unknown_target_column,
)
from quereus_store.plan.binder.expressions import ExpressionBinder, parameter
from quereus_store.plan.binder.rows import uses_ordinal
from quereus_store.plan.binder.scopes import RowImage, RowScope, image_of
from quereus_store.plan.expressions import (
    BoundExpression,
    Case,
    Column,
    ColumnRef,
    Literal,
    reference,
    subplans,
)
from quereus_store.plan.mutations import InsertPlan, ReturningPlan, UpsertPlan
from quereus_store.plan.nodes import (
    Frame,
    FrameBound,
    FrameUnit,
    ParameterRows,
    PlanNode,
    Project,
    Values,
    Window,
    WindowCall,
)
from quereus_store.schema.objects import Operation, TableSchema, fold
from quereus_store.sql import nodes, traversal
from quereus_store.types import BOOLEAN, INTEGER, NULL, carry_contributions, merge_types


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows to insert: a plan, and what fills each column over it, by position."""

    plan: PlanNode
    values: dict[int, BoundExpression]
    ordinal: BoundExpression | None = None
    batchable: bool = False


def bind_insert(environment: Environment, node: nodes.Insert, adapt: Adapt | None = None) -> InsertPlan:
    """INSERT from VALUES, DEFAULT VALUES, a query or RETURNING; ``adapt`` may change the target."""
    target = open_target(environment, node, node.conflict_action)
    target = target if adapt is None else adapt(target)
    returning = returning_plan(target, node.returning, Operation.INSERT)
    return insert_plan(target, node, _positions(target, node), returning)


def insert_plan(
    target: Target, node: nodes.Insert, positions: list[int], returning: ReturningPlan | None
) -> InsertPlan:
    """The insertion of a statement's source into the columns at ``positions``."""
    rows = _rows(target, node, positions)
    row = _complete(target, rows)
    conversions = tuple(
        [
            value is not None and converts(value, column)
            for value, column in zip(row, target.table.columns, strict=True)
        ]
    )
    return InsertPlan(
        target.table,
        target.common_tables,
        rows.plan,
        target.new,
        target.old,
        generated_plans(target),
        not_null_plans(target, row),
        check_plans(target, Operation.INSERT),
        returning,
        target.conflict,
        row,
        conversions,
        tuple([_upsert(target, clause) for clause in node.upserts]),
        rows.batchable
        and not target.mutation_context.values
        and not any(_reads_tables(value) for value in row if value is not None),
        context=target.mutation_context,
    )


def _reads_tables(value: BoundExpression) -> bool:
    return any(True for _ in subplans(value))


def _positions(target: Target, node: nodes.Insert) -> list[int]:
    """The positions of the columns that values are given for, in their order."""
    table = target.table
    if not node.columns:
        return [index for index, column in enumerate(table.columns) if column.generated is None]
    return positions_of(table, node.columns, node.table.position)


def positions_of(table: TableSchema, names: Sequence[str], place: SourcePosition | None) -> list[int]:
    """The positions of the columns of an INSERT's list; raises ERROR for one that cannot stand there."""
    positions: list[int] = []
    for name in names:
        found = table.column_index(name)
        if found is None:
            raise unknown_target_column(name, table, "", place)
        column = table.columns[found]
        if column.generated is not None:
            raise sql_error(StatusCode.ERROR, f"Cannot INSERT into generated column '{column.name}'", place)
        if found in positions:
            raise sql_error(
                StatusCode.ERROR,
                f"column '{column.name}' specified more than once in INSERT into '{table.name}'",
                place,
            )
        positions.append(found)
    return positions


def _complete(target: Target, rows: _Rows) -> tuple[BoundExpression | None, ...]:
    """One expression a column: the value supplied, else the default; None where generated."""
    columns = target.table.columns
    supplied: RowImage = {fold(columns[index].name): value for index, value in rows.values.items()}
    row: list[BoundExpression | None] = []
    for position, column in enumerate(columns):
        if column.generated is not None:
            row.append(None)
        elif position in rows.values:
            row.append(rows.values[position])
        else:
            row.append(default_value(target, column, supplied, rows.ordinal))
    return tuple(row)


# --- sources ------------------------------------------------------------------------------------------------


def _rows(target: Target, node: nodes.Insert, positions: list[int]) -> _Rows:
    source = node.source
    if isinstance(source, nodes.DefaultValues):
        rows = _Rows(Values((), ((),)), {})
    elif (values := plain_values(source)) is not None:
        rows = _from_values(target, node, values, positions)
    else:
        plan = queries.bind_query_in(target.environment, source)
        if len(plan.columns) != len(positions):
            raise sql_error(
                StatusCode.ERROR, "Column count mismatch insert clause.", source.position or node.position
            )
        rows = _Rows(plan, dict(zip(positions, map(reference, plan.columns), strict=True)))
    needs_ordinal = any(
        uses_ordinal(column.default)
        for position, column in enumerate(target.table.columns)
        if position not in rows.values
    )
    if not needs_ordinal:
        return rows
    if isinstance(rows.plan, ParameterRows):
        # A single row is the first of its statement; a batch would be many statements.
        return replace(rows, batchable=False)
    plan, ordinal = numbered(target.environment, rows.plan)
    return _Rows(plan, rows.values, ordinal)


def plain_values(source: nodes.Query | nodes.DataModification) -> nodes.Values | None:
    """The VALUES that an INSERT's source is, if it is nothing more."""
    if (
        isinstance(source, nodes.Query)
        and isinstance(source.body, nodes.Values)
        and source.with_clause is None
        and not source.order_by
        and source.limit is None
        and source.offset is None
    ):
        return source.body
    return None


def numbered(environment: Environment, plan: PlanNode) -> tuple[PlanNode, BoundExpression]:
    """The rows with their number in the statement, for ``mutation_ordinal()``."""
    column = environment.column("ordinal", INTEGER, False)
    frame = Frame(FrameUnit.ROWS, FrameBound.UNBOUNDED_PRECEDING, FrameBound.CURRENT_ROW)
    call = WindowCall(check_window_call("row_number", 0, False), (), frame)
    return Window((*plan.columns, column), plan, (), (), (), (call,)), reference(column)


def check_width(values: nodes.Values, expected: Sequence[object]) -> None:
    """Every row has a cell for each of the ``expected`` columns; raises SYNTAX or ERROR."""
    width = len(values.rows[0])
    for cells in values.rows:
        if len(cells) != width:
            raise sql_error(
                StatusCode.SYNTAX,
                "All rows must have the same number of columns",
                cells[0].position if cells else values.position,
            )
    if width != len(expected):
        raise sql_error(
            StatusCode.ERROR,
            f"Column count mismatch in VALUES clause. Expected {len(expected)} columns, got {width}.",
            values.rows[0][0].position if width else values.position,
        )


def _from_values(target: Target, node: nodes.Insert, values: nodes.Values, positions: list[int]) -> _Rows:
    check_width(values, positions)
    # A column that gets DEFAULT in every row is one that the statement leaves out.
    given = [
        index
        for index, cells in enumerate(zip(*values.rows, strict=True))
        if not all(isinstance(cell, nodes.DefaultValue) for cell in cells)
    ]
    positions = [positions[index] for index in given]
    rows = [[cells[index] for index in given] for cells in values.rows]
    single = _single_row(target, node, rows[0], positions) if len(rows) == 1 else None
    return _several_rows(target, rows, positions) if single is None else single


def _several_rows(target: Target, rows: list[list[nodes.Expression]], positions: list[int]) -> _Rows:
    """Rows that are made before they are inserted, so that each of their cells is evaluated once."""
    binder = ExpressionBinder(target.environment, None)
    absent = Literal(NULL, True, None, None)
    bound = [
        tuple([absent if isinstance(cell, nodes.DefaultValue) else binder.bind(cell) for cell in cells])
        for cells in rows
    ]
    columns = tuple(
        [
            target.environment.column(
                target.table.columns[position].name,
                merge_types([cell.type for cell in cells]),
                any(cell.nullable for cell in cells),
                carry_contributions([cell.collation for cell in cells]),
            )
            for position, cells in zip(positions, zip(*bound, strict=True), strict=True)
        ]
    )
    plain = _Rows(Values(columns, tuple(bound)), dict(zip(positions, map(reference, columns), strict=True)))
    mixed = [
        index
        for index in range(len(positions))
        if any(isinstance(cells[index], nodes.DefaultValue) for cells in rows)
    ]
    return _with_defaults(target, rows, plain, bound, mixed) if mixed else plain


def _with_defaults(
    target: Target,
    rows: list[list[nodes.Expression]],
    plain: _Rows,
    bound: list[tuple[BoundExpression, ...]],
    mixed: list[int],
) -> _Rows:
    """Rows some of which have DEFAULT for columns that the others give a value for."""
    positions = list(plain.values)
    flags = tuple([target.environment.column("defaulted", BOOLEAN, False) for _ in mixed])
    marked = [
        tuple([_flag(isinstance(cells[index], nodes.DefaultValue)) for index in mixed]) for cells in rows
    ]
    given = plain.plan.columns
    plan: PlanNode = Values(
        (*given, *flags), tuple([(*cells, *marks) for cells, marks in zip(bound, marked, strict=True)])
    )
    columns = target.table.columns
    ordinal = None
    if any(uses_ordinal(columns[positions[index]].default) for index in mixed):
        plan, ordinal = numbered(target.environment, plan)
    supplied: RowImage = {fold(columns[position].name): value for position, value in plain.values.items()}
    cells: list[BoundExpression] = [*map(reference, given)]
    for index, flag in zip(mixed, flags, strict=True):
        value = default_value(target, columns[positions[index]], supplied, ordinal)
        own = cells[index]
        cells[index] = Case(
            merge_types([value.type, own.type]),
            True,
            carry_contributions([value.collation, own.collation]),
            ((reference(flag), value),),
            own,
        )
    made = tuple(
        [
            target.environment.column(column.name, cell.type, cell.nullable, cell.collation)
            for column, cell in zip(given, cells, strict=True)
        ]
    )
    return _Rows(Project(made, plan, tuple(cells)), dict(zip(positions, map(reference, made), strict=True)))


def _flag(value: bool) -> Literal:
    return Literal(BOOLEAN, False, None, value)


def _single_row(
    target: Target, node: nodes.Insert, cells: Sequence[nodes.Expression], positions: list[int]
) -> _Rows | None:
    """One row of VALUES over the statement's own row of parameters; None if cells are needed twice."""
    slots = _slots(cells)
    if not slots:
        binder = ExpressionBinder(target.environment, None)
        bound = list(map(binder.bind, cells))
        if _is_shared(target, bound, positions):
            return None
        return _Rows(Values((), ((),)), dict(zip(positions, bound, strict=True)))
    columns: list[Column] = []
    stand_ins: dict[Slot, ColumnRef] = {}
    for slot in slots:
        typed = parameter(target.context, slot)
        column = target.environment.column(str(slot), typed.type, typed.nullable)
        columns.append(column)
        stand_ins[slot] = reference(column)
    inner = replace(target.environment, parameters=stand_ins)
    bound = list(map(ExpressionBinder(inner, None).bind, cells))
    if _is_shared(target, bound, positions):
        return None
    total = sum(1 for part in traversal.parameters(node))
    within = sum(len(traversal.parameters(cell)) for cell in cells)
    plan = ParameterRows(tuple(columns), tuple(slots))
    return _Rows(plan, dict(zip(positions, bound, strict=True)), batchable=total == within)


def _is_shared(target: Target, cells: Sequence[BoundExpression], positions: Sequence[int]) -> bool:
    """Whether a DEFAULT may read a cell that would give another value if it were evaluated again."""
    return any(map(non_deterministic_in, cells)) and any(
        isinstance(part, nodes.ColumnReference) and fold(part.table or "") == "new"
        for position, column in enumerate(target.table.columns)
        if position not in positions and column.default is not None
        for part in traversal.walk(column.default)
    )


def _slots(cells: Sequence[nodes.Expression]) -> list[Slot]:
    """The parameter slots that cells read, in order of first use."""
    slots: dict[Slot, None] = {}
    for cell in cells:
        for part in traversal.parameters(cell):
            slot = part.name if part.index is None else part.index - 1
            if slot is not None:
                slots[slot] = None
    return list(slots)


# --- ON CONFLICT --------------------------------------------------------------------------------------------


def _upsert(target: Target, clause: nodes.UpsertClause) -> UpsertPlan:
    """One ON CONFLICT clause: bare names are the existing row, ``excluded`` and ``new`` the proposed."""
    target = quiet_parameters(target)
    goal = _conflict_target(target, clause)
    existing, proposed = image_of(target.old), image_of(target.new)
    if clause.target_where is not None:
        # It picks a partial index among several; since targets match by value, only its names matter.
        own = RowScope({"": existing, fold(target.qualifier): existing}, schema=target.table.schema)
        ExpressionBinder(target.environment, own).bind(clause.target_where)
    if not clause.assignments:
        return UpsertPlan(goal)
    scope = RowScope(
        {
            "": existing,
            fold(target.qualifier): existing,
            "old": existing,
            "new": proposed,
            "excluded": proposed,
        },
        schema=target.table.schema,
    )
    binder = ExpressionBinder(target.environment, scope)
    queried = RowQueries(Values((), ((),)))
    values = bind_assignments(
        target, clause.assignments, binder, existing, " for DO UPDATE SET", "ON CONFLICT DO UPDATE", queried
    )
    row: list[BoundExpression | None] = []
    conversions: list[bool] = []
    for position, (column, old) in enumerate(zip(target.table.columns, target.old, strict=True)):
        value = values.get(position)
        if column.generated is not None:
            row.append(None)
            conversions.append(False)
        else:
            row.append(reference(old) if value is None else value)
            conversions.append(value is not None and converts(value, column))
    quiet = replace(target, conflict=None)
    return UpsertPlan(
        goal,
        tuple(sorted(values)),
        tuple(row),
        tuple(conversions),
        None if clause.where is None else binder.bind(clause.where),
        not_null_plans(quiet, row),
        check_plans(target, Operation.UPDATE),
        queried.plan if queried.plan.columns else None,
    )


def _conflict_target(target: Target, clause: nodes.UpsertClause) -> tuple[int, ...] | None:
    if not clause.target:
        return None
    positions: list[int] = []
    for name in clause.target:
        found = target.table.column_index(name)
        if found is None:
            raise unknown_target_column(name, target.table, " for ON CONFLICT target", _place(clause))
        positions.append(found)
    return tuple(positions)


def _place(clause: nodes.UpsertClause) -> SourcePosition | None:
    return clause.position
