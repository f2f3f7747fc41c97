"""What INSERT, UPDATE and DELETE share: target, mutation context, constraints, RETURNING.

See :mod:`quereus_store.plan.mutations` for what the pieces mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from quereus_store.errors import Error, SourcePosition, StatusCode, placed_at, sql_error
from quereus_store.plan.binder import common_tables, queries
from quereus_store.plan.binder.context import BindContext, Environment
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.relations import COMMITTED, find_relation, row_columns
from quereus_store.plan.binder.rows import (
    bind_check,
    bind_default,
    bind_generated,
    checks_for,
    generated_order,
)
from quereus_store.plan.binder.scopes import FromScope, RowImage, RowScope, as_nullable, image_of
from quereus_store.plan.expressions import (
    BoundExpression,
    Cast,
    Column,
    ContextValue,
    Literal,
    Parameter,
    reference,
    subplans,
)
from quereus_store.plan.mutations import CheckPlan, ContextPlan, GeneratedPlan, NotNullPlan, ReturningPlan
from quereus_store.plan.nodes import (
    CommonTable,
    Join,
    JoinKind,
    PlanNode,
    SingleRow,
    referenced_columns,
)
from quereus_store.schema.objects import (
    ColumnSchema,
    ConflictAction,
    Operation,
    TableSchema,
    fold,
)
from quereus_store.schema.tags import TagSite, check_tags
from quereus_store.sql import nodes
from quereus_store.sql.renderer import returned_name_text, unique_names
from quereus_store.types import DATETIME, NULL, LogicalType


@dataclass(frozen=True, slots=True)
class Target:
    """A mutation being bound: where it stands, its table, its row images, its context variables.

    ``further`` gives the checks that a logical table adds to those of the table.
    """

    environment: Environment
    table: TableSchema
    qualifier: str
    new: tuple[Column, ...]
    old: tuple[Column, ...]
    mutation_context: ContextPlan
    conflict: ConflictAction | None
    common_tables: tuple[CommonTable, ...]
    further: Callable[[Target, Operation], tuple[CheckPlan, ...]] | None = None
    position: SourcePosition | None = None

    @property
    def context(self) -> BindContext:
        """The statement's context."""
        return self.environment.context

    @property
    def variables(self) -> RowImage:
        """What each variable of the mutation context means."""
        return self.mutation_context.variables


Adapt = Callable[[Target], Target]


def open_target(
    environment: Environment,
    node: nodes.DataModification,
    conflict: nodes.ConflictAction | None,
) -> Target:
    """Find the target table, bind the statement's WITH and its mutation context."""
    environment, tables = enter(environment, node)
    reference_node = target_reference(node)
    table = find_target(environment, reference_node)
    qualifier = reference_node.alias if reference_node.alias is not None else table.name
    return target_on(environment, node, conflict, table, qualifier, tables)


def target_reference(node: nodes.DataModification) -> nodes.TableReference | nodes.SubquerySource:
    """What a statement says it writes to."""
    return node.table if isinstance(node, nodes.Insert) else node.target


def enter(
    environment: Environment, node: nodes.DataModification
) -> tuple[Environment, tuple[CommonTable, ...]]:
    """The environment of a statement's own clauses, with its WITH bound."""
    check_tags(node.tags, TagSite.STATEMENT, node.position)
    environment = environment.with_schemas(node.schema_path)
    tables: tuple[CommonTable, ...] = ()
    if node.with_clause is not None:
        environment, tables = common_tables.bind_with(environment, node.with_clause, None)
    return environment.nested(), tables


def target_on(
    environment: Environment,
    node: nodes.DataModification,
    conflict: nodes.ConflictAction | None,
    table: TableSchema,
    qualifier: str,
    tables: tuple[CommonTable, ...],
) -> Target:
    """A mutation of a known table, within the environment of the statement's clauses."""
    environment.context.references.written[table.schema, table.name] = table
    return Target(
        environment,
        table,
        qualifier,
        row_columns(environment, table),
        row_columns(environment, table),
        _mutation_context(environment, table, node),
        None if conflict is None else ConflictAction(conflict.value),
        tables,
        position=node.position,
    )


def find_target(environment: Environment, node: nodes.TableReference | nodes.SubquerySource) -> TableSchema:
    """The table that a statement writes to; what stands for one is the business of ``view_writes``."""
    assert isinstance(node, nodes.TableReference)
    if node.schema is not None and fold(node.schema) == COMMITTED:
        raise sql_error(
            StatusCode.ERROR, f"Cannot modify committed-state table '{COMMITTED}.{node.name}'", node.position
        )
    relation = find_relation(environment, node.schema, node.name, node.position)
    assert isinstance(relation, TableSchema)
    return relation


def unknown_target_column(
    name: str, table: TableSchema, suffix: str, position: SourcePosition | None
) -> Error:
    """The error for a column list or SET that names no column of the table."""
    return sql_error(StatusCode.ERROR, f"Column '{name}' not found in table '{table.name}'{suffix}", position)


# --- mutation context ---------------------------------------------------------------------------------------


def _mutation_context(
    environment: Environment, table: TableSchema, node: nodes.Insert | nodes.Update | nodes.Delete
) -> ContextPlan:
    """What each context variable of the table means in this statement: a value, or an error when read."""
    supplied: dict[str, nodes.Assignment] = {}
    for assignment in node.context:
        if fold(assignment.column) in supplied:
            raise sql_error(
                StatusCode.ERROR,
                f"mutation context variable '{assignment.column}' supplied more than once",
                assignment.position,
            )
        supplied[fold(assignment.column)] = assignment
    variables: dict[str, BoundExpression | Error] = {}
    values: list[BoundExpression] = []
    binder = ExpressionBinder(environment, None)
    for variable in table.context:
        found = supplied.get(fold(variable.name))
        meaning: BoundExpression | Error
        if found is not None:
            meaning = as_type(binder.bind(found.value), variable.type)
            if not isinstance(meaning, Literal | Parameter):
                values.append(meaning)
                meaning = ContextValue(
                    meaning.type, meaning.nullable, meaning.collation, len(values) - 1, variable.name
                )
        elif variable.nullable:
            meaning = Literal(variable.type, True, None, None)
        else:
            meaning = sql_error(
                StatusCode.ERROR,
                f"table '{table.qualified_name}' requires mutation context variable '{variable.name}';"
                f" supply it with `with context {variable.name} = …`",
                node.position,
            )
        variables[fold(variable.name)] = meaning
    return ContextPlan(variables, tuple(values))


def as_type(value: BoundExpression, target: LogicalType) -> BoundExpression:
    """A value as a type, by lenient conversion where it is another."""
    if value.type is target or value.type is NULL:
        return value
    return Cast(target, True, value.collation, value)


# --- constraints --------------------------------------------------------------------------------------------


def generated_plans(target: Target) -> tuple[GeneratedPlan, ...]:
    """The generated columns in dependency order; they are computed before NOT NULL is tested."""
    table = target.table
    if not any(column.generated is not None for column in table.columns):
        return ()
    row = tuple(map(as_nullable, target.new))
    plans: list[GeneratedPlan] = []
    for position in generated_order(table):
        with placed_at(target.position):
            expression = bind_generated(target.context, table, position, row)
        plans.append(GeneratedPlan(position, expression, converts(expression, table.columns[position])))
    return tuple(plans)


def converts(expression: BoundExpression, column: ColumnSchema) -> bool:
    """Whether a value must be converted on write: not when its static type is the column's.

    A DATETIME is always looked at: ``datetime('now')`` is one, but ends in Z.
    """
    return expression.type is not column.type or column.type is DATETIME


def check_plans(target: Target, operation: Operation) -> tuple[CheckPlan, ...]:
    """The checks that judge an operation."""
    plans: list[CheckPlan] = []
    for check in checks_for(target.table, operation):
        with placed_at(target.position):
            expression = bind_check(
                target.context, target.table, check, operation, target.new, target.old, target.variables
            )
        plans.append(CheckPlan(check, expression, any(True for _ in subplans(expression))))
    return (*plans, *(target.further(target, operation) if target.further is not None else ()))


def not_null_plans(target: Target, values: Sequence[BoundExpression | None] = ()) -> tuple[NotNullPlan, ...]:
    """The NOT NULL columns that could receive a NULL.

    ``values`` are the expressions that fill the columns: one that cannot be NULL and
    is not converted needs no test.  Their defaults may need context variables that the statement must
    then supply, even if it supplies the columns (section 9, trap 17).
    """
    plans: list[NotNullPlan] = []
    supplied = image_of(map(as_nullable, target.new))
    for position, column in enumerate(target.table.columns):
        if column.nullable:
            continue
        if target.variables and column.default is not None:
            default_value(target, column, supplied)
        value = values[position] if position < len(values) else None
        if value is not None and not value.nullable and value.type is column.type:
            continue
        action = target.conflict or column.not_null_conflict
        substitute: BoundExpression | None = None
        if action is ConflictAction.REPLACE and column.default is not None:
            substitute = default_value(target, column, supplied)
        plans.append(NotNullPlan(position, action, substitute))
    return tuple(plans)


# --- RETURNING ----------------------------------------------------------------------------------------------

_NO_OLD = "OLD qualifier cannot be used in INSERT RETURNING clause"
_NO_NEW = "NEW qualifier cannot be used in DELETE RETURNING clause"


def returning_plan(
    target: Target,
    items: Sequence[nodes.ResultColumn | nodes.ResultStar],
    operation: Operation,
    beside: FromScope | None = None,
) -> ReturningPlan | None:
    """RETURNING over the row images of a table, and what FROM puts beside it; None without the clause."""
    if not items:
        return None
    rows = ReturningRows(
        target.qualifier,
        target.table.schema,
        named_references(target.new),
        named_references(target.old),
        beside=beside,
    )
    return returning_over(target.environment, rows, items, operation)


NamedExpressions = tuple[tuple[str, BoundExpression], ...]


def named_references(columns: Sequence[Column]) -> NamedExpressions:
    """A row's columns by name, in order."""
    return tuple([(column.name, reference(column)) for column in columns])


@dataclass(frozen=True, slots=True)
class ReturningRows:
    """The two images that RETURNING reads, as the target shows them, and the qualifier of the target.

    ``unknown`` makes the error for a name that is none of theirs; ``beside`` are the sources of FROM or
    USING, whose names count where the target has none.
    """

    qualifier: str
    schema: str | None
    new: NamedExpressions
    old: NamedExpressions
    unknown: Callable[[nodes.ColumnReference], Error] | None = None
    beside: FromScope | None = None


def read_beside(returning: ReturningPlan | None, beside: FromScope | None) -> tuple[Column, ...]:
    """The columns of FROM or USING that RETURNING reads."""
    if returning is None or beside is None:
        return ()
    read = set[int]().union(*map(referenced_columns, returning.expressions))
    columns = {column.id: column for source in beside.sources for column in source.columns}
    return tuple(column for column in columns.values() if column.id in read)


def returning_over(
    environment: Environment,
    rows: ReturningRows,
    items: Sequence[nodes.ResultColumn | nodes.ResultStar],
    operation: Operation,
) -> ReturningPlan:
    """RETURNING of a target that shows its rows as ``rows``."""
    own = rows.old if operation is Operation.DELETE else rows.new
    stars: dict[str, NamedExpressions] = {}
    if rows.beside is not None:
        stars |= {
            source.name: named_references(source.columns) for source in rows.beside.sources if source.name
        }
    stars[fold(rows.qualifier)] = own
    refusals: dict[str, str] = {}
    if operation is Operation.DELETE:
        refusals["new"] = _NO_NEW
        stars["old"] = rows.old
    else:
        stars["new"] = rows.new
        if operation is Operation.INSERT:
            refusals["old"] = _NO_OLD
        else:
            stars["old"] = rows.old
    images: dict[str, RowImage] = {
        name: {fold(column): value for column, value in row} for name, row in (("", own), *stars.items())
    }
    scope = RowScope(images, refusals, rows.schema, rows.beside, rows.unknown)
    binder = ExpressionBinder(environment, scope)
    outputs: list[tuple[str, BoundExpression]] = []
    for item in items:
        if isinstance(item, nodes.ResultStar):
            outputs += _star(item, own, stars, refusals)
        else:
            outputs.append((item.alias or returned_name_text(item.expression), binder.bind(item.expression)))
    expressions = tuple([expression for _, expression in outputs])
    columns = tuple(
        [
            environment.column(name, expression.type, expression.nullable, expression.collation)
            for name, expression in zip(unique_names([name for name, _ in outputs]), expressions, strict=True)
        ]
    )
    return ReturningPlan(columns, expressions)


def _star(
    item: nodes.ResultStar,
    own: NamedExpressions,
    stars: dict[str, NamedExpressions],
    refusals: dict[str, str],
) -> NamedExpressions:
    if item.table is None:
        return own
    folded = fold(item.table)
    if folded in refusals:
        raise sql_error(StatusCode.ERROR, refusals[folded], item.position)
    if folded not in stars:
        raise sql_error(
            StatusCode.ERROR,
            f"Table '{item.table}' not found in FROM clause for qualified RETURNING *",
            item.position,
        )
    return stars[folded]


# --- assignments --------------------------------------------------------------------------------------------


_NULL = Literal(NULL, True, None, None)

RowQuery = Callable[[ExpressionBinder, nodes.MultiAssignment], Sequence[BoundExpression]]


def bind_assignments(
    target: Target,
    assignments: Sequence[nodes.Assignment | nodes.MultiAssignment],
    binder: ExpressionBinder,
    current: RowImage,
    suffix: str,
    place: str,
    row_query: RowQuery,
) -> dict[int, BoundExpression]:
    """The values of a SET by column position.

    ``current`` is what ``new.`` reads in a DEFAULT; ``suffix`` and ``place`` are the
    parts of the messages that differ between UPDATE and DO UPDATE; ``row_query`` gives the
    values of ``(a, b) = (query)``.
    """
    values: dict[int, BoundExpression] = {}

    def position_of(name: str, position: SourcePosition | None) -> int:
        found = target.table.column_index(name)
        if found is None:
            raise unknown_target_column(name, target.table, suffix, position)
        column = target.table.columns[found]
        if column.generated is not None:
            raise sql_error(StatusCode.ERROR, f"Cannot UPDATE generated column '{column.name}'", position)
        if found in values:
            raise sql_error(
                StatusCode.ERROR,
                f"duplicate assignment to column '{column.name}' in {place} on '{target.table.name}'",
                position,
            )
        return found

    for assignment in assignments:
        if isinstance(assignment, nodes.MultiAssignment):
            positions = []
            for name in assignment.columns:
                positions.append(position_of(name, assignment.position))
                values[positions[-1]] = _NULL
            given = row_query(binder, assignment)
            values.update(zip(positions, given, strict=True))
            continue
        found = position_of(assignment.column, assignment.position)
        if isinstance(assignment.value, nodes.DefaultValue):
            values[found] = default_value(target, target.table.columns[found], current)
        else:
            values[found] = binder.bind(assignment.value)
    return values


def _assigned_row(binder: ExpressionBinder, assignment: nodes.MultiAssignment) -> PlanNode:
    """The query of ``(a, b) = (query)``."""
    plan = queries.bind_query_in(binder.environment.nested(), assignment.query, binder.scope)
    if len(plan.columns) != len(assignment.columns):
        raise sql_error(
            StatusCode.ERROR,
            f"SET assigns {len(assignment.columns)} columns from a query of {len(plan.columns)}",
            assignment.position,
        )
    return plan


class RowQueries:
    """The rows that an UPDATE changes, or that of DO UPDATE, joined with what ``(a, b) = (query)`` assigns.

    So each query runs once a row, however many columns it gives, and once at all if it reads none.
    """

    def __init__(self, plan: PlanNode) -> None:
        self.plan = plan

    def __call__(self, binder: ExpressionBinder, assignment: nodes.MultiAssignment) -> list[BoundExpression]:
        """Join one query; references to its columns, which are NULL where it gives no row."""
        query = _assigned_row(binder, assignment)
        right = SingleRow(query.columns, query, assignment.position)
        columns = (*self.plan.columns, *query.columns)
        self.plan = Join(columns, JoinKind.LEFT, self.plan, right, None, lateral=True)
        return [reference(as_nullable(column)) for column in query.columns]


def default_value(
    target: Target,
    column: ColumnSchema,
    supplied: RowImage,
    ordinal: BoundExpression | None = None,
) -> BoundExpression:
    """What a column gets that no value is given for: its DEFAULT, else NULL."""
    if column.default is None:
        return _NULL
    with placed_at(target.position):
        if ordinal is None:
            return bind_default(target.context, target.table, column, supplied, target.variables)
        return bind_default(target.context, target.table, column, supplied, target.variables, ordinal)


def quiet_parameters(target: Target) -> Target:
    """The target with the parameters bound as parameters again, whatever stands for them in the row."""
    return replace(target, environment=replace(target.environment, parameters=None))
