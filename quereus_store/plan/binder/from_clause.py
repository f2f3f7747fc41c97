"""FROM: sources, joins and what they make visible (queries, sections 5 and 6).

Binding a relation gives a :class:`Bound`: its plan, its sources (for qualified
names) and the columns that ``*`` and unqualified names see.  USING and NATURAL
merge: the pair shows once, as the left column, as the right one in a RIGHT join, as
the first that is not NULL in a FULL join.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.functions.registry import TableFunction
from quereus_store.plan.binder import queries
from quereus_store.plan.binder.calls import function_not_found
from quereus_store.plan.binder.comparisons import compare, conjunction
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.relations import (
    COMMITTED,
    expand_view,
    find_relation,
    rename_columns,
    scan_committed,
    scan_common_table,
    scan_table,
)
from quereus_store.plan.binder.scopes import FromScope, Scope, Source, as_nullable
from quereus_store.plan.expressions import BoundExpression, Coalesce, Column, reference
from quereus_store.plan.nodes import (
    Join,
    JoinKind,
    PlanNode,
    Project,
    TableFunctionScan,
    Values,
    free_columns,
)
from quereus_store.records import record
from quereus_store.schema.manager import find_relation as find_stored
from quereus_store.schema.objects import ViewSchema, fold
from quereus_store.sql import nodes
from quereus_store.types import BOOLEAN, merge_contributions, merge_types


@record(frozen=True, slots=True)
class Bound:
    """A bound relation: plan, sources by qualifier, columns that unqualified names and ``*`` see."""

    plan: PlanNode
    sources: tuple[Source, ...]
    columns: tuple[Column, ...]

    def scope(self, parent: Scope | None) -> FromScope:
        """The names it makes visible, in front of those of an enclosing query."""
        return FromScope(self.sources, self.columns, parent)


_SCHEMA_TABLE = "_schema"
"""The name under which schema() can be read as a table."""

NO_SOURCES = Bound(Values((), ((),)), (), ())


def bind_from(environment: Environment, relation: nodes.Relation | None, outer: Scope | None) -> Bound:
    """Bind a FROM clause; without one there is one row without columns."""
    return NO_SOURCES if relation is None else _bind(environment, relation, outer, outer)


def _bind(
    environment: Environment, relation: nodes.Relation, outer: Scope | None, left: Scope | None
) -> Bound:
    """Bind a relation; ``left`` is what a lateral one sees, ``outer`` what others see."""
    return _RELATIONS[type(relation)](environment, relation, outer, left)


def _table(
    environment: Environment, node: nodes.TableReference, outer: Scope | None, left: Scope | None
) -> Bound:
    plan: PlanNode
    schema: str | None = None
    entry = environment.common_tables.get(fold(node.name)) if node.schema is None else None
    if entry is not None:
        plan = scan_common_table(environment, entry)
    elif node.schema is not None and fold(node.schema) == COMMITTED:
        plan = _committed(environment, node)
    elif _is_schema_table(environment, node):
        call = nodes.FunctionCall("schema", position=node.position)
        return _function(
            environment, nodes.FunctionSource(call, node.alias or node.name, node.columns), outer, left
        )
    else:
        relation = find_relation(environment, node.schema, node.name, node.position)
        schema = relation.schema if node.alias is None else None
        if isinstance(relation, ViewSchema):
            plan = expand_view(environment, relation, node.position)
        else:
            plan = scan_table(environment, relation, node.alias, position=node.position)
    return _single(plan, node.alias or node.name, node.columns, schema, node.position)


def _is_schema_table(environment: Environment, node: nodes.TableReference) -> bool:
    """Whether a name is that of the catalog as a table, which any relation of the user's hides."""
    if node.schema is not None or fold(node.name) != _SCHEMA_TABLE:
        return False
    catalog = environment.context.catalog
    return find_stored(catalog, environment.schema_path, None, node.name) is None


def _committed(environment: Environment, node: nodes.TableReference) -> PlanNode:
    if environment.context.catalog.schema(COMMITTED) is not None:
        relation = find_relation(environment, node.schema, node.name, node.position)
    else:
        relation = find_relation(environment, None, node.name, node.position)
    if isinstance(relation, ViewSchema):
        raise sql_error(StatusCode.NOTFOUND, f"Table not found: {COMMITTED}.{node.name}", node.position)
    if fold(relation.schema) == COMMITTED:
        return scan_table(environment, relation, node.alias)
    return scan_committed(environment, relation, node.alias)


def _single(
    plan: PlanNode,
    qualifier: str | None,
    names: tuple[str, ...],
    schema: str | None,
    position: SourcePosition | None,
) -> Bound:
    if len(names) > len(plan.columns):
        named = "subquery" if qualifier is None else f"'{qualifier}'"
        raise sql_error(
            StatusCode.ERROR,
            f"{named} has {len(names)} declared columns but produces {len(plan.columns)}",
            position,
        )
    plan = rename_columns(plan, names)
    return Bound(plan, (Source(qualifier, plan.columns, schema, position),), plan.columns)


def _subquery(
    environment: Environment, node: nodes.SubquerySource, outer: Scope | None, left: Scope | None
) -> Bound:
    plan = queries.bind_query_in(environment.nested(), node.query, left if node.lateral else outer)
    return _single(plan, node.alias, node.columns, None, node.position)


def _function(
    environment: Environment, node: nodes.FunctionSource, outer: Scope | None, left: Scope | None
) -> Bound:
    call = node.call
    function = environment.context.registry.find(call.name, len(call.arguments))
    if function is None:
        raise function_not_found(call)
    if not isinstance(function, TableFunction):
        raise sql_error(
            StatusCode.ERROR,
            f"Function {call.spelling or call.name}/{len(call.arguments)} is not a table-valued function",
            node.position or call.position,
        )
    arguments = ExpressionBinder(environment, left).bind_all(call.arguments)
    columns = tuple(
        [environment.column(column.name, column.type, column.nullable) for column in function.columns]
    )
    plan = TableFunctionScan(columns, function, arguments, node.alias, node.position or call.position)
    return _single(plan, node.alias or call.name, node.columns[: len(columns)], None, node.position)


# --- joins --------------------------------------------------------------------------------------------------

_NULLABLE_LEFT = frozenset((JoinKind.RIGHT, JoinKind.FULL))
_NULLABLE_RIGHT = frozenset((JoinKind.LEFT, JoinKind.FULL))


def _join(environment: Environment, node: nodes.Join, outer: Scope | None, left: Scope | None) -> Bound:
    kind = JoinKind(node.kind.value)
    left_side = _bind(environment, node.left, outer, left)
    right_side = _bind(environment, node.right, outer, left_side.scope(left))
    lateral = _is_lateral(node.right, left_side, right_side)
    pairs = _merged_pairs(node, left_side, right_side)
    if pairs:
        conditions = [compare("=", reference(a), reference(b), node.position) for a, b in pairs]
        condition: BoundExpression | None = conjunction(conditions)
    elif node.condition is not None:
        both = FromScope(
            left_side.sources + right_side.sources, left_side.columns + right_side.columns, outer
        )
        condition = ExpressionBinder(environment, both).bind(node.condition)
    else:
        condition = None
    if kind is JoinKind.CROSS and condition is not None:
        kind = JoinKind.INNER
    elif kind is JoinKind.INNER and condition is None:
        kind = JoinKind.CROSS
    flags = _flags(environment, node, kind)
    joined = _combine(kind, left_side, right_side, condition, lateral, flags)
    return _merge(environment, kind, joined, left_side, right_side, pairs, flags, node.position)


def _is_lateral(relation: nodes.Relation, left: Bound, right: Bound) -> bool:
    """Whether the right side reads columns of the left."""
    if not _may_be_lateral(relation):
        return False
    produced = {column.id for column in left.plan.columns}
    return not produced.isdisjoint(free_columns(right.plan))


def _may_be_lateral(relation: nodes.Relation) -> bool:
    if isinstance(relation, nodes.Join):
        return _may_be_lateral(relation.left) or _may_be_lateral(relation.right)
    if isinstance(relation, nodes.FunctionSource):
        return bool(relation.call.arguments)
    return isinstance(relation, nodes.SubquerySource) and relation.lateral


def _merged_pairs(node: nodes.Join, left: Bound, right: Bound) -> list[tuple[Column, Column]]:
    """The column pairs that USING or NATURAL makes equal."""
    names: Sequence[str] = node.using
    left_names = _first_by_name(left.columns)
    right_names = _first_by_name(right.columns)
    if node.natural:
        names = [name for name in left_names if name in right_names]
    pairs: list[tuple[Column, Column]] = []
    for name in names:
        pair: list[Column] = []
        for side, columns in (("left", left_names), ("right", right_names)):
            column = columns.get(fold(name))
            if column is None:
                raise sql_error(
                    StatusCode.ERROR, f"USING column not found on {side} side of join: {name}", node.position
                )
            pair.append(column)
        pairs.append((pair[0], pair[1]))
    return pairs


def _first_by_name(columns: Sequence[Column]) -> dict[str, Column]:
    by_name: dict[str, Column] = {}
    for column in columns:
        by_name.setdefault(fold(column.name), column)
    return by_name


_Flags = list[tuple[nodes.Side, Column]]
_INNER_FLAG = (
    "'exists ... as' is not valid on {} join (no side is null-extended, so the flag would be a constant true)"
)


def _flags(environment: Environment, node: nodes.Join, kind: JoinKind) -> _Flags:
    """The existence flags of a join, each with the side whose match it tells."""
    flags: _Flags = []
    for flag in node.flags:
        position = flag.position or node.position
        side = flag.side
        if node.kind in (nodes.JoinKind.INNER, nodes.JoinKind.CROSS):
            word = "an INNER" if node.kind is nodes.JoinKind.INNER else "a CROSS"
            raise sql_error(StatusCode.ERROR, _INNER_FLAG.format(word), position)
        if kind is JoinKind.FULL:
            if side is None:
                raise sql_error(
                    StatusCode.ERROR,
                    "'exists as' is ambiguous on a FULL join — specify 'exists left as' or 'exists right as'",
                    position,
                )
        else:
            preserved, extended = (
                (nodes.Side.LEFT, nodes.Side.RIGHT)
                if kind is JoinKind.LEFT
                else (nodes.Side.RIGHT, nodes.Side.LEFT)
            )
            if side is preserved:
                raise sql_error(
                    StatusCode.ERROR,
                    f"'exists {preserved.value} as' references the preserved side of a"
                    f" {kind.value.upper()} join;"
                    f" only the non-preserved side ({extended.value}) has a meaningful match flag",
                    position,
                )
            side = extended
        flags.append((side, environment.column(flag.name, BOOLEAN, False)))
    return flags


def _combine(
    kind: JoinKind,
    left: Bound,
    right: Bound,
    condition: BoundExpression | None,
    lateral: bool,
    flags: _Flags,
) -> Bound:
    """The join with nothing merged: all columns of both sides, then the flags."""
    sources, columns = list(left.sources), list(left.columns)
    left_output, right_output = left.plan.columns, right.plan.columns
    if kind in _NULLABLE_LEFT:
        sources = [source.nullable() for source in sources]
        columns = [as_nullable(column) for column in columns]
        left_output = tuple(map(as_nullable, left_output))
    if kind in _NULLABLE_RIGHT:
        sources += [source.nullable() for source in right.sources]
        columns += [as_nullable(column) for column in right.columns]
        right_output = tuple(map(as_nullable, right_output))
    else:
        sources += right.sources
        columns += right.columns
    first = dict(reversed(flags))
    flag_columns = tuple([first[side] for side in (nodes.Side.LEFT, nodes.Side.RIGHT) if side in first])
    left_flag = first[nodes.Side.LEFT].id if nodes.Side.LEFT in first else None
    right_flag = first[nodes.Side.RIGHT].id if nodes.Side.RIGHT in first else None
    plan = Join(
        left_output + right_output + flag_columns,
        kind,
        left.plan,
        right.plan,
        condition,
        lateral,
        left_flag,
        right_flag,
    )
    shown = [Column(first[side].id, column.name, BOOLEAN, False) for side, column in flags]
    return Bound(plan, tuple(sources), (*columns, *shown))


def _merge(
    environment: Environment,
    kind: JoinKind,
    joined: Bound,
    left: Bound,
    right: Bound,
    pairs: list[tuple[Column, Column]],
    flags: _Flags,
    position: SourcePosition | None,
) -> Bound:
    """The join with each merged pair shown once, in the place of its left column."""
    if not pairs:
        return joined
    shown = {column.id: column for column in joined.columns}
    replaced: dict[int, Column] = {}
    extra: list[tuple[Column, BoundExpression]] = []
    for a, b in pairs:
        if kind is JoinKind.RIGHT:
            replaced[a.id] = shown[b.id]
        elif kind is JoinKind.FULL:
            merged = environment.column(
                a.name,
                merge_types((a.type, b.type)),
                a.nullable or b.nullable,
                merge_contributions(a.collation, b.collation, position),
            )
            operands = (reference(shown[a.id]), reference(shown[b.id]))
            value = Coalesce(merged.type, merged.nullable, merged.collation, operands)
            extra.append((merged, value))
            replaced[a.id] = merged
    plan = joined.plan
    if extra:
        plan = Project(
            (*plan.columns, *[column for column, _ in extra]),
            plan,
            (*map(reference, plan.columns), *[value for _, value in extra]),
        )
    hidden = {b.id for _, b in pairs}
    columns = [replaced.get(column.id, shown[column.id]) for column in left.columns]
    columns += [shown[column.id] for column in right.columns if column.id not in hidden]
    columns += joined.columns[len(joined.columns) - len(flags) :] if flags else ()
    return Bound(plan, joined.sources, tuple(columns))


_RELATIONS: Mapping[type, Callable[..., Bound]] = MappingProxyType(
    {
        nodes.TableReference: _table,
        nodes.SubquerySource: _subquery,
        nodes.FunctionSource: _function,
        nodes.Join: _join,
    }
)
