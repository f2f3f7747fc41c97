"""What ``view_info`` and ``column_info`` say of a view (view-updates-and-lenses, section 11).

This is told from the shape of the body alone: nothing is planned to be written.
"""

from __future__ import annotations

from collections.abc import Iterator

from quereus_store.errors import Error
from quereus_store.functions.introspection import ColumnLineage, Lineage
from quereus_store.plan.binder.context import BindContext, Environment
from quereus_store.plan.binder.relations import expand_view
from quereus_store.plan.binder.set_writes import SetView, set_view
from quereus_store.plan.binder.view_bodies import (
    Output,
    OutputKind,
    WritableView,
    open_maintained,
    open_view,
    source_column,
)
from quereus_store.plan.binder.view_joins import JoinView, join_of_view, unfilled_column
from quereus_store.schema.objects import ColumnSchema, TableSchema, ViewSchema, fold

_NOWHERE = ColumnLineage(False)
_INSERTED = (OutputKind.COLUMN, OutputKind.AUTHORED)


def lineage_of(context: BindContext, relation: ViewSchema | TableSchema) -> Lineage:
    """What may be written through a view or a maintained table, and where its columns come from.

    A body that cannot be written through has no targets; one that cannot be bound
    any more has no columns either.
    """
    environment = Environment.of(context)
    try:
        if isinstance(relation, ViewSchema):
            join = join_of_view(environment, relation, None)
            if join is not None:
                return _join_lineage(join)
            operation = set_view(environment, relation, None)
            if operation is not None:
                return _set_lineage(context, environment, operation)
            view = open_view(environment, relation, None)
        else:
            view = open_maintained(environment, relation, None)
    except Error:
        return _unwritable(environment, relation)
    columns = tuple([_column(view, output) for output in view.outputs])
    shown = {fold(column.base_column) for column in columns if column.base_column is not None}
    key = {fold(view.table.columns[part.column].name) for part in view.table.primary_key.parts}
    return Lineage(
        _is_insertable(view),
        bool(shown),
        key <= shown,
        (view.table.name,),
        tuple([output.name for output in view.outputs]),
        columns,
    )


def _join_lineage(view: JoinView) -> Lineage:
    columns: list[ColumnLineage] = []
    shown: set[tuple[int, str]] = set()
    for output in view.outputs:
        if output.column is None:
            columns.append(ColumnLineage(True) if output.puts or output.flag is not None else _NOWHERE)
            continue
        (side,) = output.sides
        table = view.sides[side].table
        found = table.column_index(output.column)
        assert found is not None
        column = table.columns[found]
        if column.generated is None:
            shown.add((side, column.name))
            columns.append(ColumnLineage(True, table.name, column.name))
        else:
            columns.append(_NOWHERE)
    keys = {
        (index, side.table.columns[part.column].name)
        for index, side in enumerate(view.sides)
        for part in side.table.primary_key.parts
    }
    names = tuple([output.name for output in view.outputs])
    return Lineage(
        unfilled_column(view, set(map(fold, names))) is None,
        bool(shown),
        keys <= shown,
        tuple(sorted({side.table.name for side in view.sides})),
        names,
        tuple(columns),
    )


def _set_lineage(context: BindContext, environment: Environment, view: SetView) -> Lineage:
    """What may be written through all legs; no column has one base column."""
    own = view.view
    legs = [
        lineage_of(context, ViewSchema(own.schema, own.name, leg.query, view.names))
        for leg in view.legs
        if leg.writable
    ]
    if not all(leg.targets for leg in legs):
        return _unwritable(environment, own)
    constants = {name for leg in view.legs for name in leg.literals}
    columns = [_NOWHERE if fold(name) in constants else ColumnLineage(True) for name in view.names]
    columns += [ColumnLineage(True) for _ in view.flags]
    targets = tuple(sorted({target for leg in legs for target in leg.targets}))
    return Lineage(
        all(leg.insertable for leg in legs),
        any(leg.updatable for leg in legs),
        all(leg.deletable for leg in legs),
        targets,
        view.outputs,
        tuple(columns),
    )


def _unwritable(environment: Environment, relation: ViewSchema | TableSchema) -> Lineage:
    names: tuple[str, ...]
    if isinstance(relation, TableSchema):
        names = tuple([column.name for column in relation.columns])
    else:
        try:
            names = tuple([column.name for column in expand_view(environment, relation, None).columns])
        except Error:
            names = ()
    return Lineage(False, False, False, (), names, (_NOWHERE,) * len(names))


def _column(view: WritableView, output: Output) -> ColumnLineage:
    if output.kind is OutputKind.COMPUTED:
        return _NOWHERE
    column = view.table_column(output)
    if column is None:
        return ColumnLineage(True) if output.kind is OutputKind.AUTHORED else _NOWHERE
    return ColumnLineage(True, view.table.name, column.name) if column.generated is None else _NOWHERE


def _is_insertable(view: WritableView) -> bool:
    filled = {fold(column.name) for column in _filled(view)}
    return all(
        column.nullable
        or column.default is not None
        or column.generated is not None
        or fold(column.name) in filled
        for column in view.table.columns
    )


def _filled(view: WritableView) -> Iterator[ColumnSchema]:
    """The columns of the table that an insertion through the view can fill."""
    names: list[str] = []
    for output in view.outputs:
        if output.kind in _INSERTED:
            names += [put.column for put in output.puts] or [output.source or ""]
    layer: WritableView | TableSchema = view
    while isinstance(layer, WritableView):
        names += [*layer.pinned, *[default.column for default in layer.defaults]]
        yield from filter(None, [source_column(layer.source, name) for name in names])
        layer, names = layer.source, []
