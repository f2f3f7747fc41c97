"""Where the columns of a logical table come from (view-updates-and-lenses, sections 13 to 15).

The prover asks this of a body before it is deployed, the binder of writes when it enforces what the logical
table declares.  A body that cannot be written through has computed columns only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from quereus_store.errors import Error
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.view_bodies import Output, OutputKind, WritableView, open_view
from quereus_store.plan.binder.view_joins import JoinView, finds_one, join_of_view
from quereus_store.schema.objects import TableSchema, ViewSchema, fold
from quereus_store.sql import nodes


class Origin(Enum):
    """How a logical column relates to the basis."""

    BARE = auto()
    INVERSE = auto()
    AUTHORED = auto()
    COMPUTED = auto()


@dataclass(frozen=True, slots=True)
class LogicalColumn:
    """One column: its origin, the basis table and column behind it where it is bare, its expression."""

    origin: Origin
    table: TableSchema | None = None
    column: int | None = None
    expression: nodes.Expression | None = None
    puts: tuple[nodes.Assignment, ...] = ()


@dataclass(frozen=True, slots=True)
class LogicalLineage:
    """All columns of a logical table; ``table`` is the basis table of a body over one table.

    ``pinned`` are that table's columns which the body's filter fixes.  ``spine`` is the basis table that
    has one row for every row: that table, or the side of a join to which all others add at most one.
    """

    columns: tuple[LogicalColumn, ...]
    table: TableSchema | None = None
    pinned: frozenset[int] = frozenset()
    where: nodes.Expression | None = None
    spine: TableSchema | None = None

    def basis_columns(self, columns: Sequence[int]) -> tuple[int, ...] | None:
        """The columns of the spine behind logical ones; None unless all are bare and its own."""
        if self.spine is None:
            return None
        shown = [self.columns[column] for column in columns]
        found = [each.column if each.table is self.spine else None for each in shown]
        bare = [column for column in found if column is not None]
        return tuple(bare) if len(bare) == len(found) else None


def logical_lineage(environment: Environment, view: ViewSchema) -> LogicalLineage:
    """The lineage of a logical table's view."""
    try:
        join = join_of_view(environment, view, None)
        if join is not None:
            columns = tuple([_joined(join, name) for name in view.columns or ()])
            return LogicalLineage(columns, spine=_spine(join))
        opened = open_view(environment, view, None)
    except Error:
        return _unwritable(environment, view)
    table = opened.table
    pinned = {table.column_index(name) for name in opened.pinned} if opened.source is table else set()
    return LogicalLineage(
        tuple([_column(opened, output) for output in opened.outputs]),
        table,
        frozenset(column for column in pinned if column is not None),
        opened.where,
        table,
    )


def _unwritable(environment: Environment, view: ViewSchema) -> LogicalLineage:
    """A body that cannot be written through: what it shows of a maintained table is bare all the same."""
    computed = tuple([LogicalColumn(Origin.COMPUTED) for _ in view.columns or ()])
    select = view.query.body
    if not isinstance(select, nodes.Select) or not isinstance(select.source, nodes.TableReference):
        return LogicalLineage(computed)
    source = select.source
    table = environment.context.catalog.table(source.schema or view.schema, source.name)
    if table is None or table.derivation is None or select.group_by or select.distinct:
        return LogicalLineage(computed)
    columns: list[LogicalColumn] = []
    for item in select.items:
        expression = item.expression if isinstance(item, nodes.ResultColumn) else None
        position = (
            table.column_index(expression.column) if isinstance(expression, nodes.ColumnReference) else None
        )
        origin = Origin.COMPUTED if position is None else Origin.BARE
        columns.append(LogicalColumn(origin, table, position, expression))
    return LogicalLineage(tuple(columns), table, where=select.where, spine=table)


def _spine(view: JoinView) -> TableSchema | None:
    """The first preserved side, where every other side adds at most one row to it."""
    spine = next((index for index, side in enumerate(view.sides) if not side.is_optional), None)
    if spine is None or not all(finds_one(view, side) for side in range(len(view.sides)) if side != spine):
        return None
    return view.sides[spine].table


def _joined(view: JoinView, name: str) -> LogicalColumn:
    output = view.output(name)
    if output is None:
        return LogicalColumn(Origin.COMPUTED)
    if output.puts:
        return LogicalColumn(Origin.AUTHORED, None, None, output.expression, output.puts)
    if output.column is None:
        return LogicalColumn(Origin.COMPUTED, expression=output.expression)
    (side,) = output.sides
    table = view.sides[side].table
    if output.inverted:
        return LogicalColumn(Origin.INVERSE, table, None, output.expression)
    return LogicalColumn(Origin.BARE, table, table.column_index(output.column), output.expression)


def _column(view: WritableView, output: Output) -> LogicalColumn:
    kind, expression = output.kind, output.expression
    if kind is OutputKind.AUTHORED:
        return LogicalColumn(Origin.AUTHORED, view.table, None, expression, output.puts)
    if kind is OutputKind.COMPUTED or output.source is None:
        return LogicalColumn(Origin.COMPUTED, expression=expression)
    source = view.source
    if not isinstance(source, TableSchema):
        inner = source.output(output.source)
        below = LogicalColumn(Origin.COMPUTED) if inner is None else _column(source, inner)
        if kind is OutputKind.COLUMN:
            return below
        origin = Origin.INVERSE if below.origin is Origin.BARE else below.origin
        return LogicalColumn(origin, below.table, None, expression)
    if kind is OutputKind.INVERSE:
        return LogicalColumn(Origin.INVERSE, source, None, expression)
    return LogicalColumn(Origin.BARE, source, source.column_index(output.source), expression)


def basis_names(lineage: LogicalLineage, table: TableSchema) -> dict[str, nodes.Expression]:
    """What each logical column (by folded name) is over the basis row, for messages."""
    names: dict[str, nodes.Expression] = {}
    for column, origin in zip(table.columns, lineage.columns, strict=True):
        if origin.origin is Origin.BARE and origin.table is not None and origin.column is not None:
            names[fold(column.name)] = nodes.ColumnReference(origin.table.columns[origin.column].name)
        elif origin.expression is not None:
            names[fold(column.name)] = origin.expression
    return names
