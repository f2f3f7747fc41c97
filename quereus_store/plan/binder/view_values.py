"""What a statement gives to a view, as what the table gets (view-updates-and-lenses, sections 1 to 6).

It goes down view by view as syntax: a value for an output becomes values for columns of its source, turned
round where the output computes something that can be, or as WITH INVERSE has it.  An
INSERT also gets the constants that filters ask for, and what WITH DEFAULTS gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error, unsupported
from quereus_store.plan.binder.view_bodies import (
    Output,
    OutputKind,
    WritableView,
    coded,
    layer_name,
    read_only_column,
    refusal,
    source_names,
    turned_round,
    with_new,
)
from quereus_store.schema.objects import TableSchema, fold
from quereus_store.sql import nodes
from quereus_store.sql.nodes import Assignment, MultiAssignment

_NULL = nodes.Literal.of(None)


def unknown_view_column(view: WritableView, name: str, position: SourcePosition | None) -> Error:
    """The error for a name in a statement that is no column of the view it writes to."""
    exposed = ", ".join(output.name for output in view.outputs)
    text = f"'{name}' is not a column of the view view '{view.name}' exposes: {exposed}."
    return refusal(view.name, "unknown-view-column", text, position)


# --- SET ----------------------------------------------------------------------------------------------------


def written_output(view: WritableView, name: str, position: SourcePosition | None) -> Output:
    """The output that a statement writes; raises ERROR for an unknown name and for a computed one."""
    output = view.output(name)
    if output is None:
        raise unknown_view_column(view, name, position)
    if output.kind is OutputKind.COMPUTED:
        raise read_only_column(output.name, position)
    return output


def assigned_below(
    view: WritableView, assignments: Sequence[Assignment | MultiAssignment]
) -> list[Assignment | MultiAssignment]:
    """A SET of the view as a SET of the table."""
    written = {fold(each.column): each.value for each in assignments if isinstance(each, Assignment)}

    def new(name: str) -> nodes.Expression:
        return written.get(name) or nodes.ColumnReference(name, layer_name(view))

    below: list[Assignment | MultiAssignment] = []
    owners: dict[str, str] = {}

    def claim(column: str, owner: str, position: SourcePosition | None) -> None:
        other = owners.setdefault(fold(column), owner)
        if other is not owner:
            text = (
                f"columns '{other}' and '{owner}' both target base column '{column}';"
                " an UPDATE cannot assign one column twice"
            )
            raise refusal(view.name, "conflicting-assignment", text, position)

    for assignment in assignments:
        place = assignment.position
        if isinstance(assignment, MultiAssignment):
            names = [_plainly_shown(view, name, place) for name in assignment.columns]
            for name, owner in zip(names, assignment.columns, strict=True):
                claim(name, owner, place)
            below.append(replace(assignment, columns=tuple(names)))
            continue
        output = written_output(view, assignment.column, place)
        for column, value in _sent_down(output, assignment.value, new):
            claim(column, output.name, place)
            below.append(Assignment(column, value, position=place))
    return below if isinstance(view.source, TableSchema) else assigned_below(view.source, below)


def _plainly_shown(view: WritableView, name: str, position: SourcePosition | None) -> str:
    """The column of the source that an output shows as it is."""
    output = written_output(view, name, position)
    if output.kind is not OutputKind.COLUMN or output.source is None:
        raise unsupported(f"Assigning column '{name}' from a query of several columns", position)
    return output.source


def _sent_down(
    output: Output, value: nodes.Expression, new: Callable[[str], nodes.Expression]
) -> list[tuple[str, nodes.Expression]]:
    """What a value of an output puts into columns of the source; ``new`` is the view row being written."""
    if output.kind is OutputKind.AUTHORED:
        return [(put.column, with_new(put.value, new)) for put in output.puts]
    assert output.source is not None
    if output.kind is OutputKind.INVERSE and output.expression is not None:
        return [(output.source, turned_round(output.expression, value))]
    return [(output.source, value)]


# --- rows of an INSERT --------------------------------------------------------------------------------------


def insertable(view: WritableView) -> list[str]:
    """The columns that an INSERT without a list fills."""
    names: list[str] = []
    for output in view.outputs:
        column = view.table_column(output)
        if output.kind is OutputKind.AUTHORED or (
            column is not None and column.generated is None and _accepts(view, output.name)
        ):
            names.append(output.name)
    return names


def _accepts(view: WritableView | TableSchema, name: str) -> bool:
    """Whether a value can be inserted into a column, through all views below."""
    while isinstance(view, WritableView):
        output = view.output(name)
        if output is None or output.kind in (OutputKind.COMPUTED, OutputKind.INVERSE):
            return False
        if output.kind is OutputKind.AUTHORED or output.source is None:
            return True
        view, name = view.source, output.source
    return True


def columns_of_query(view: WritableView, names: Sequence[str], position: SourcePosition | None) -> list[str]:
    """The table's columns that a query's columns fill; what needs syntax to work on is refused."""
    columns: list[str] = []
    for name in names:
        output = written_output(view, name, position)
        if output.kind is OutputKind.AUTHORED:
            raise coded(
                "unsupported-source",
                f"cannot insert through view '{view.name}': a column with an authored inverse (WITH INVERSE)"
                " requires a VALUES source in phase 1 (its inverse is evaluated over the supplied cells)",
                position,
            )
        if output.kind is OutputKind.INVERSE or output.source is None:
            raise read_only_column(name, position)
        columns.append(output.source)
    supplied = set(map(fold, columns))
    if not (set(view.pinned) | {fold(name) for name, _ in _defaults(view, position)}) <= supplied:
        text = "supplying selection-predicate defaults requires a VALUES source in phase 1"
        raise refusal(view.name, "unsupported-source", text, position)
    if isinstance(view.source, TableSchema):
        return columns
    return columns_of_query(view.source, columns, position)


def _defaults(view: WritableView, position: SourcePosition | None) -> list[tuple[str, nodes.Expression]]:
    """WITH DEFAULTS by column of the source."""
    known = {fold(name): name for name in source_names(view.source)}
    found: list[tuple[str, nodes.Expression]] = []
    for default in view.defaults:
        output = view.output(default.column)
        if fold(default.column) in known:
            found.append((known[fold(default.column)], default.value))
        elif output is not None and output.kind is OutputKind.COLUMN and output.source is not None:
            found.append((output.source, default.value))
        else:
            text = (
                f"'with defaults ({default.column} = …)' names column '{default.column}',"
                f" which is not a column of the view or its base table '{view.table.name}'"
            )
            raise refusal(view.name, "default-target-not-found", text, position)
    return found


def cells_below(
    view: WritableView, cells: Mapping[str, nodes.Expression], position: SourcePosition | None
) -> dict[str, nodes.Expression]:
    """One row of VALUES for the view (by folded name) as a row for the table: by column, in order."""
    spelled = {fold(name): name for name in source_names(view.source)}
    below: dict[str, nodes.Expression] = {}
    owners: dict[str, str] = {}
    authored: list[Output] = []
    for name, cell in cells.items():
        output = written_output(view, name, position)
        if output.kind is OutputKind.INVERSE:
            raise read_only_column(output.name, position)
        if output.kind is OutputKind.AUTHORED:
            authored.append(output)
        else:
            assert output.source is not None
            _supply(view, below, owners, output, output.source, cell, position)
    puts = {fold(put.column) for output in authored for put in output.puts}
    for column, constant in view.pinned.items():
        _pin(view, below, spelled[column], constant, column in puts, position)
    for column, value in _defaults(view, position):
        if fold(column) not in puts:
            below.setdefault(column, value)

    def new(name: str) -> nodes.Expression:
        if name in cells:
            return cells[name]
        output = view.output(name)
        shown = None if output is None or output.kind is not OutputKind.COLUMN else output.source
        found = None if shown is None else below.get(spelled[fold(shown)])
        return _NULL if found is None else found

    sent = [
        (output, column, value) for output in authored for column, value in _sent_down(output, _NULL, new)
    ]
    for output, column, value in sent:
        _supply(view, below, owners, output, spelled[fold(column)], value, position)
    return (
        below if isinstance(view.source, TableSchema) else cells_below(view.source, _folded(below), position)
    )


def _folded(cells: Mapping[str, nodes.Expression]) -> dict[str, nodes.Expression]:
    return {fold(name): cell for name, cell in cells.items()}


def _supply(
    view: WritableView,
    below: dict[str, nodes.Expression],
    owners: dict[str, str],
    output: Output,
    column: str,
    value: nodes.Expression,
    position: SourcePosition | None,
) -> None:
    """Give a column of the source its value; raises ERROR for one that has one already."""
    other = owners.setdefault(fold(column), output.name)
    if other is not output.name:
        if output.kind is OutputKind.AUTHORED:
            raise coded(
                "conflicting-assignment",
                f"cannot insert through view '{view.name}': columns '{other}' and '{output.name}' both supply"
                f" base column '{column}'",
                position,
            )
        raise sql_error(
            StatusCode.ERROR,
            f"column '{column}' specified more than once in INSERT into '{view.table.name}'",
            position,
        )
    below[column] = value


def _pin(
    view: WritableView,
    below: dict[str, nodes.Expression],
    column: str,
    constant: nodes.Literal,
    put: bool,
    position: SourcePosition | None,
) -> None:
    """Fill in the constant that the filter asks for; raises ERROR for a literal that contradicts it."""
    supplied = below.get(column)
    if supplied is None:
        if not put:
            below[column] = constant
    elif isinstance(supplied, nodes.Literal) and supplied.value != constant.value:
        raise coded(
            "predicate-contradiction",
            f"insert into view '{view.name}' contradicts its selection predicate on column '{column}'",
            supplied.position or position,
        )
