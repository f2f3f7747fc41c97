"""Writing through the tables of a logical schema (view-updates-and-lenses, section 14).

A logical table is a view, and a write through it is a view write.  What is added here: some statements are
refused, logical DEFAULTs are filled in, the logical constraints become checks of the mutation, and the
actions of foreign keys (CASCADE and the like) become mutations of the logical children, which run
before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from quereus_store.errors import unsupported
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.logical_constraints import LogicalConstraints
from quereus_store.plan.binder.logical_keys import KeyClass, logical_keys
from quereus_store.plan.binder.logical_lineage import logical_lineage
from quereus_store.plan.binder.logical_references import Referrer
from quereus_store.plan.binder.logical_syntax import all_of, any_of, column, equal, exists, select_from
from quereus_store.plan.binder.view_bodies import coded
from quereus_store.plan.mutations import MutationPlan
from quereus_store.plan.nodes import CommonTable, MutationScan
from quereus_store.schema.objects import Operation, ReferentialAction, TableSchema, ViewSchema, fold
from quereus_store.sql import nodes
from quereus_store.sql.traversal import walk

READ_ONLY = "lens.pk-not-reconstructible"
_SETTLING = (nodes.ConflictAction.REPLACE, nodes.ConflictAction.IGNORE)


def logical_constraints(environment: Environment, view: ViewSchema) -> LogicalConstraints | None:
    """The constraints of a logical table; None for a view that is none."""
    if view.logical is None:
        return None
    table = view.logical.table
    lineage = logical_lineage(Environment.of(environment.context), view)
    keys = logical_keys(environment.context.catalog, table, lineage)
    inside = environment.inside_stored_body(view.schema)
    return LogicalConstraints(inside, view, table, lineage, keys)


# --- what is refused ----------------------------------------------------------------------------------------


def check_admitted(constraints: LogicalConstraints, node: nodes.DataModification) -> None:
    """Raise ERROR for a write to a read-only table, or one that settles conflicts nobody can settle."""
    table = constraints.table
    schema = constraints.environment.context.catalog.schema(table.schema)
    lens = None if schema is None else schema.lens
    if lens is not None and any(row[:2] == (table.name, READ_ONLY) for row in lens.advisories):
        raise coded(
            "lens-read-only",
            f"cannot write through logical table '{table.qualified_name}': its primary key is not"
            " reconstructible at the lens boundary, so it is read-only (map the key to bare basis columns)",
            node.position,
        )
    if not isinstance(node, nodes.Insert):
        return
    settled = _settled(node)
    if settled is not None and any(key.kind is KeyClass.COMMIT_TIME for key in constraints.keys):
        raise coded(
            "lens-set-level-conflict-resolution",
            f"cannot {settled} through lens-backed table '{table.name}': its logical unique/primary key has"
            " no basis covering structure, so a conflict is only found at commit",
            node.position,
        )


def _settled(node: nodes.Insert) -> str | None:
    """What a statement does about conflicts, as the message calls it."""
    if node.upserts:
        return "upsert (on conflict do …)"
    if node.conflict_action in _SETTLING:
        assert node.conflict_action is not None
        return f"insert or {node.conflict_action.value}"
    return None


# --- DEFAULT ------------------------------------------------------------------------------------------------


def with_logical_defaults(
    constraints: LogicalConstraints, node: nodes.DataModification, insertable: Sequence[str]
) -> nodes.DataModification:
    """The statement with the logical DEFAULTs where it leaves a column out or says DEFAULT."""
    table = constraints.table
    defaults = {fold(each.name): each.default for each in table.columns if each.default is not None}
    if not defaults:
        return node
    if isinstance(node, nodes.Update):
        assignments = tuple(
            [
                replace(each, value=defaults[fold(each.column)])
                if isinstance(each, nodes.Assignment)
                and isinstance(each.value, nodes.DefaultValue)
                and fold(each.column) in defaults
                else each
                for each in node.assignments
            ]
        )
        return replace(node, assignments=assignments)
    if not isinstance(node, nodes.Insert):
        return node
    names = list(node.columns) or list(insertable)
    source = node.source
    if isinstance(source, nodes.DefaultValues):
        names = []
        source = nodes.Query(nodes.Values(((),), position=source.position), position=source.position)
    added = [
        each.name
        for each in table.columns
        if fold(each.name) in defaults and fold(each.name) not in set(map(fold, names))
    ]
    values = [defaults[fold(name)] for name in added]
    return replace(node, columns=(*names, *added), source=_widened(source, names, defaults, values))


def _widened(
    source: nodes.Query | nodes.DataModification,
    names: Sequence[str],
    defaults: dict[str, nodes.Expression],
    values: Sequence[nodes.Expression],
) -> nodes.Query | nodes.DataModification:
    if isinstance(source, nodes.Query) and isinstance(source.body, nodes.Values):
        rows = tuple(
            [
                (
                    *[
                        defaults.get(fold(name), cell) if isinstance(cell, nodes.DefaultValue) else cell
                        for name, cell in zip(names, cells, strict=False)
                    ],
                    *cells[len(names) :],
                    *values,
                )
                for cells in source.body.rows
            ]
        )
        return replace(source, body=replace(source.body, rows=rows))
    if not values:
        return source
    items: tuple[nodes.ResultColumn | nodes.ResultStar, ...] = (
        nodes.ResultStar("\0given"),
        *[nodes.ResultColumn(value) for value in values],
    )
    return nodes.Query(nodes.Select(items, nodes.SubquerySource(source, "\0given")), position=source.position)


# --- referential actions ------------------------------------------------------------------------------------


def followers(
    environment: Environment,
    constraints: LogicalConstraints,
    node: nodes.DataModification,
    qualifier: str,
    bind: Callable[[Environment, nodes.DataModification], MutationPlan],
) -> tuple[MutationPlan, ...]:
    """The mutations of logical children that a statement brings about; they run before it."""
    if isinstance(node, nodes.Insert):
        return ()
    operation = Operation.UPDATE if isinstance(node, nodes.Update) else Operation.DELETE
    made: list[MutationPlan] = []
    for referrer in constraints.referrers():
        if referrer.action(operation) in (ReferentialAction.RESTRICT, ReferentialAction.NO_ACTION):
            continue
        if isinstance(node, nodes.Update) and not _assigns(node, referrer.parent_columns):
            continue
        _check_simple(constraints, node)
        child = _follower(constraints.table, node, qualifier, referrer)
        key = (referrer.child.schema, f"{referrer.child.name}\0{referrer.key.name}")
        if key in environment.views:
            raise unsupported("A cycle of referential actions between logical tables", node.position)
        made.append(bind(replace(environment, views=(*environment.views, key)), child))
    return tuple(made)


def leading(environment: Environment, plans: Sequence[MutationPlan]) -> tuple[CommonTable, ...]:
    """Mutations as leading members of a statement, which run before it."""
    number = environment.context.number
    tables: list[CommonTable] = []
    for plan in plans:
        assert plan.returning is not None
        scan = MutationScan(plan.returning.columns, plan, number())
        tables.append(CommonTable(number(), f"\0{number()}", scan, True))
    return tuple(tables)


def _assigns(node: nodes.Update, names: Sequence[str]) -> bool:
    wanted = set(map(fold, names))
    return any(
        fold(name) in wanted
        for each in node.assignments
        for name in (each.columns if isinstance(each, nodes.MultiAssignment) else (each.column,))
    )


def _check_simple(constraints: LogicalConstraints, node: nodes.Update | nodes.Delete) -> None:
    """What finds the parents is evaluated again once the children are written: it reads nothing else."""
    assignments = node.assignments if isinstance(node, nodes.Update) else ()
    parts = [part for part in (node.where, *assignments) if part is not None]
    reads = any(isinstance(part, nodes.Query) for root in parts for part in walk(root))
    if node.source is not None or reads:
        raise unsupported(
            f"A subquery, FROM or USING in a write to '{constraints.table.name}', whose foreign keys act on"
            " other logical tables",
            node.position,
        )


def _follower(
    parent: TableSchema, node: nodes.Update | nodes.Delete, qualifier: str, referrer: Referrer
) -> nodes.DataModification:
    child = referrer.child
    target = nodes.TableReference(child.name, child.schema, "\0child")
    parents = nodes.TableReference(parent.name, parent.schema, qualifier)
    where = [] if node.where is None else [node.where]
    matched = [
        equal(column(qualifier, name), column("\0child", own))
        for name, own in zip(referrer.parent_columns, referrer.child_columns, strict=True)
    ]
    returning = (nodes.ResultColumn(nodes.Literal.of(1)),)
    values = _new_keys(node, referrer) if isinstance(node, nodes.Update) else None
    if values is not None:
        where.append(
            any_of(
                [
                    nodes.IsDistinctFrom(column(qualifier, name), value)
                    for name, value in zip(referrer.parent_columns, values, strict=True)
                ]
            )
        )
    reached = exists(parents, all_of([*where, *matched]))
    operation = Operation.UPDATE if isinstance(node, nodes.Update) else Operation.DELETE
    action = referrer.action(operation)
    if action is ReferentialAction.CASCADE and values is None:
        return nodes.Delete(target, where=reached, returning=returning)
    assignments = [
        nodes.Assignment(own, _assigned(child, own, action, values, position, parents, [*where, *matched]))
        for position, own in enumerate(referrer.child_columns)
    ]
    return nodes.Update(target, tuple(assignments), where=reached, returning=returning)


def _new_keys(node: nodes.Update, referrer: Referrer) -> list[nodes.Expression]:
    """The parent's key as the UPDATE leaves it."""
    assigned = {
        fold(each.column): each.value for each in node.assignments if isinstance(each, nodes.Assignment)
    }
    return [assigned.get(fold(name), nodes.ColumnReference(name)) for name in referrer.parent_columns]


def _assigned(
    child: TableSchema,
    own: str,
    action: ReferentialAction,
    values: list[nodes.Expression] | None,
    position: int,
    parents: nodes.Relation,
    where: Sequence[nodes.Expression],
) -> nodes.Expression:
    if action is ReferentialAction.SET_NULL:
        return nodes.Literal.of(None)
    if action is ReferentialAction.SET_DEFAULT:
        index = child.column_index(own)
        assert index is not None
        default = child.columns[index].default
        return nodes.Literal.of(None) if default is None else default
    assert values is not None
    return nodes.Subquery(select_from(values[position], parents, all_of(where)))
