"""INSERT, UPDATE and DELETE through views (view-updates-and-lenses, sections 1 to 6).

A statement against a view becomes one mutation of the table at the bottom.  Names
in its clauses mean the view's columns: they are bound over the view's outputs, which
are expressions over the table's row.  What is assigned or inserted goes down view by
view as syntax (:mod:`~quereus_store.plan.binder.view_values`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error, unsupported
from quereus_store.plan.binder.comparisons import conjunction
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.dml_insert import check_width, insert_plan, plain_values, positions_of
from quereus_store.plan.binder.dml_parts import (
    ReturningRows,
    RowQueries,
    Target,
    bind_assignments,
    enter,
    read_beside,
    returning_over,
    target_on,
    target_reference,
)
from quereus_store.plan.binder.dml_update import delete_plan, update_plan
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.from_clause import bind_from
from quereus_store.plan.binder.join_decomposed import check_decomposed
from quereus_store.plan.binder.join_inserts import bind_join_insert, insertable_columns
from quereus_store.plan.binder.join_rows import JoinStatement
from quereus_store.plan.binder.join_writes import bind_join_delete, bind_join_update
from quereus_store.plan.binder.logical_constraints import LogicalConstraints
from quereus_store.plan.binder.logical_syntax import WrittenRow
from quereus_store.plan.binder.logical_writes import (
    check_admitted,
    followers,
    leading,
    logical_constraints,
    with_logical_defaults,
)
from quereus_store.plan.binder.relations import COMMITTED, find_relation
from quereus_store.plan.binder.scopes import FromScope, RowScope, Scope, Source, image_of
from quereus_store.plan.binder.set_writes import SetStatement, set_view
from quereus_store.plan.binder.view_bodies import (
    OutputKind,
    RowOfView,
    WritableView,
    layer_name,
    listed_names,
    open_body,
    open_common_table,
    open_maintained,
    open_view,
    read_only_column,
    row_of_view,
)
from quereus_store.plan.binder.view_joins import join_of_view
from quereus_store.plan.binder.view_values import (
    assigned_below,
    cells_below,
    columns_of_query,
    insertable,
    unknown_view_column,
    written_output,
)
from quereus_store.plan.expressions import reference
from quereus_store.plan.mutations import (
    CheckPlan,
    DeletePlan,
    InsertPlan,
    MutationPlan,
    ReturningPlan,
    UpdatePlan,
)
from quereus_store.plan.nodes import CommonTable, Filter, Join, JoinKind, PlanNode, Project, TableScan
from quereus_store.schema.objects import Operation, TableSchema, ViewSchema, fold
from quereus_store.schema.tags import TagSite, check_tag
from quereus_store.sql import nodes


@dataclass(frozen=True, slots=True)
class _Statement:
    """A mutation of a view being bound: where its clauses stand, the view, its name there."""

    environment: Environment
    common_tables: tuple[CommonTable, ...]
    view: WritableView
    qualifier: str
    logical: LogicalConstraints | None = None

    def target(self, node: nodes.DataModification, conflict: nodes.ConflictAction | None) -> Target:
        """The table at the bottom as the target."""
        table = self.view.table
        target = target_on(self.environment, node, conflict, table, table.name, self.common_tables)
        return target if self.logical is None else replace(target, further=self._further)

    def _further(self, target: Target, operation: Operation) -> tuple[CheckPlan, ...]:
        """The constraints of the logical table that the view is."""
        assert self.logical is not None
        new = {} if operation is Operation.DELETE else row_of_view(self.view, target.new).image
        old = {} if operation is Operation.INSERT else row_of_view(self.view, target.old).image
        return self.logical.plans(WrittenRow(new, old), operation)

    def unknown(self, name: nodes.ColumnReference) -> Error:
        """The error for a name that is no column of the view."""
        written = name.column if name.table is None else f"{name.table}.{name.column}"
        return unknown_view_column(self.view, written, name.position)

    def scope(self, row: RowOfView) -> RowScope:
        """The names that the statement's clauses see."""
        image = row.image
        return RowScope(
            {**row.layers, "": image, fold(self.qualifier): image},
            schema=self.view.schema,
            unknown=self.unknown,
        )

    def returning(
        self,
        target: Target,
        node: nodes.DataModification,
        operation: Operation,
        beside: FromScope | None = None,
    ) -> ReturningPlan | None:
        """RETURNING in terms of the view's columns, and of what FROM puts beside them."""
        if not node.returning:
            return None
        new, old = row_of_view(self.view, target.new), row_of_view(self.view, target.old)
        rows = ReturningRows(self.qualifier, self.view.schema, new.outputs, old.outputs, self.unknown, beside)
        return returning_over(target.environment, rows, node.returning, operation)


# --- which statements ---------------------------------------------------------------------------------------


def is_table(environment: Environment, node: nodes.DataModification) -> bool:
    """Whether a statement writes to a table of its own rows; a name of nothing counts as one."""
    written = target_reference(node)
    if isinstance(written, nodes.SubquerySource):
        return False
    if written.schema is None and _is_common_table(environment, node, written.name):
        return False
    if written.schema is not None and fold(written.schema) == COMMITTED:
        return True
    schemas = environment.with_schemas(node.schema_path)
    relation = find_relation(schemas, written.schema, written.name, written.position)
    return isinstance(relation, TableSchema) and relation.derivation is None


def _is_common_table(environment: Environment, node: nodes.DataModification, name: str) -> bool:
    own = () if node.with_clause is None else node.with_clause.members
    return any(fold(member.name) == fold(name) for member in own) or fold(name) in environment.common_tables


def bind_view_mutation(
    environment: Environment, node: nodes.DataModification, bind: BindMutation
) -> MutationPlan:
    """A mutation whose target is a view, a maintained table, a common table or a subquery.

    ``bind`` binds any mutation, for those that this one brings about.  Raises ERROR with a ``reason``
    in its details for what has no one meaning in the table.
    """
    inner, tables = enter(environment, node)
    written = target_reference(node)
    alias = written.alias
    stored = _stored_view(inner, node)
    if stored is not None and stored.tags and stored.logical is None:
        _check_tags(stored, written.position)
    logical = None if stored is None else logical_constraints(inner, stored)
    before: tuple[MutationPlan, ...] = ()
    if logical is not None:
        check_admitted(logical, node)
        qualifier = logical.table.name if alias is None else alias
        before = followers(inner, logical, node, qualifier, bind)
    verb = type(node).__name__.lower()
    join = None if stored is None else join_of_view(inner, stored, written.position, verb)
    if join is not None:
        made = None if logical is None else logical.decomposition()
        if logical is not None:
            node = with_logical_defaults(logical, node, insertable_columns(join, made))
        qualifier = join.name if alias is None else alias
        joined = JoinStatement(inner, tables, join, qualifier, logical, before, made)
        if made is not None:
            check_decomposed(joined, made, node)
        return _bind_join(joined, node)
    operation = None if stored is None else set_view(inner, stored, written.position)
    if operation is not None:
        qualifier = operation.view.name if alias is None else alias
        return SetStatement(inner, tables, operation, qualifier, bind).bind(node)
    tables += leading(inner, before)
    view = _open(inner, node)
    if logical is not None:
        node = with_logical_defaults(logical, node, insertable(view))
    statement = _Statement(inner, tables, view, view.name if alias is None else alias, logical)
    if isinstance(node, nodes.Insert):
        return _bind_insert(statement, node)
    if isinstance(node, nodes.Update):
        return _bind_update(statement, node)
    return _bind_delete(statement, node)


def _check_tags(view: ViewSchema, position: SourcePosition | None) -> None:
    """A view may carry any tags as long as it is only read."""
    try:
        for key, value in view.tags.items():
            check_tag(key, value, TagSite.VIEW)
    except Error as error:
        message = f"view '{view.schema}.{view.name}' declares an invalid tag — {error.message}"
        raise sql_error(StatusCode.ERROR, message, position) from error


def _bind_join(statement: JoinStatement, node: nodes.DataModification) -> MutationPlan:
    if isinstance(node, nodes.Insert):
        return bind_join_insert(statement, node)
    if isinstance(node, nodes.Update):
        return bind_join_update(statement, node)
    return bind_join_delete(statement, node)


BindMutation = Callable[[Environment, nodes.DataModification], MutationPlan]


def _stored_view(environment: Environment, node: nodes.DataModification) -> ViewSchema | None:
    """The target, if it is a plain view."""
    written = target_reference(node)
    if isinstance(written, nodes.SubquerySource):
        return None
    if written.schema is None and _is_common_table(environment, node, written.name):
        return None
    view = find_relation(environment, written.schema, written.name, written.position)
    return view if isinstance(view, ViewSchema) else None


def _open(environment: Environment, node: nodes.DataModification) -> WritableView:
    written = target_reference(node)
    place = written.position
    if isinstance(written, nodes.SubquerySource):
        if written.alias is None:
            raise sql_error(
                StatusCode.ERROR,
                "a subquery UPDATE/DELETE write target requires an alias, e.g. (select …) as v",
                place,
            )
        names = listed_names(environment, written.query, written.columns, written.alias, place)
        return open_body(environment, written.query, names, written.alias, "derived table", None, place)
    clause = node.with_clause
    if written.schema is None and _is_common_table(environment, node, written.name):
        members = () if clause is None else clause.members
        for index, member in enumerate(members):
            if fold(member.name) == fold(written.name):
                recursive = clause is not None and clause.recursive
                return open_common_table(environment, members[: index + 1], recursive, place)
        raise unsupported("Writing through a common table of an outer statement", place)
    relation = find_relation(environment, written.schema, written.name, place)
    if isinstance(relation, ViewSchema):
        return open_view(environment, relation, place)
    return open_maintained(environment, relation, place)


# --- UPDATE and DELETE --------------------------------------------------------------------------------------


def _rows(
    statement: _Statement,
    target: Target,
    source: nodes.Relation | None,
    where: nodes.Expression | None,
) -> tuple[PlanNode, Scope, FromScope | None]:
    """The rows of the table that the statement reaches through the view, and what its clauses see.

    Last what FROM or USING adds, by itself.
    """
    table = target.table
    target.context.references.tables[table.schema, table.name] = table
    row = row_of_view(statement.view, target.old)
    plan: PlanNode = TableScan(target.old, table, tuple(range(len(target.old))), None)
    if row.conditions:
        plan = Filter(plan.columns, plan, conjunction(row.conditions))
    scope: Scope = statement.scope(row)
    beside = None
    if source is not None:
        plan, scope, beside = _joined(statement, target, plan, row, source)
    if where is not None:
        plan = Filter(plan.columns, plan, ExpressionBinder(target.environment, scope).bind(where))
    return plan, scope, beside


def _joined(
    statement: _Statement, target: Target, plan: PlanNode, row: RowOfView, source: nodes.Relation
) -> tuple[PlanNode, Scope, FromScope]:
    """The rows with what FROM or USING adds to them; the view's columns are made real for it."""
    shown = tuple(
        [
            target.environment.column(name, value.type, value.nullable, value.collation)
            for name, value in row.outputs
        ]
    )
    plan = Project(
        (*target.old, *shown), plan, (*map(reference, target.old), *[value for _, value in row.outputs])
    )
    own = Source(statement.qualifier, shown, statement.view.schema)
    layers = RowScope({**row.layers, layer_name(statement.view): image_of(shown)})
    added = bind_from(target.environment, source, FromScope((own,), shown, None))
    columns = plan.columns + added.plan.columns
    return (
        Join(columns, JoinKind.CROSS, plan, added.plan, lateral=False),
        FromScope((own, *added.sources), shown + added.columns, layers),
        FromScope(tuple(added.sources), added.plan.columns, None),
    )


def _bind_update(statement: _Statement, node: nodes.Update) -> UpdatePlan:
    target = statement.target(node, node.conflict_action)
    plan, scope, beside = _rows(statement, target, node.source, node.where)
    rows = RowQueries(plan)
    values = bind_assignments(
        target,
        assigned_below(statement.view, node.assignments),
        ExpressionBinder(target.environment, scope),
        image_of(target.old),
        "",
        "UPDATE",
        rows,
    )
    returning = statement.returning(target, node, Operation.UPDATE, beside)
    added = read_beside(returning, beside)
    return update_plan(target, rows.plan, values, returning, added, matches_once=node.source is None)


def _bind_delete(statement: _Statement, node: nodes.Delete) -> DeletePlan:
    target = statement.target(node, None)
    plan, _, beside = _rows(statement, target, node.source, node.where)
    returning = statement.returning(target, node, Operation.DELETE, beside)
    added = read_beside(returning, beside)
    return delete_plan(target, plan, returning, added, matches_once=node.source is None)


# --- INSERT -------------------------------------------------------------------------------------------------


def _bind_insert(statement: _Statement, node: nodes.Insert) -> InsertPlan:
    view = statement.view
    place = node.table.position
    names = list(node.columns) or insertable(view)
    if isinstance(node.source, nodes.DefaultValues):
        names = []
        values: nodes.Values | None = nodes.Values(((),), position=node.source.position)
    else:
        values = plain_values(node.source)
    for name in names:
        if written_output(view, name, place).kind is OutputKind.INVERSE:
            raise read_only_column(name, place)
    target = statement.target(node, node.conflict_action)
    returning = statement.returning(target, node, Operation.INSERT)
    if values is None:
        columns = columns_of_query(view, names, place)
        return insert_plan(target, node, positions_of(view.table, columns, place), returning)
    check_width(values, names)
    rows = [
        cells_below(view, dict(zip(map(fold, names), cells, strict=True)), place) for cells in values.rows
    ]
    columns = list(rows[0])
    filled = replace(values, rows=tuple([tuple([row[column] for column in columns]) for row in rows]))
    node = replace(node, source=nodes.Query(filled, position=node.source.position))
    return insert_plan(target, node, positions_of(view.table, columns, place), returning)
