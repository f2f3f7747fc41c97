"""DROP COLUMN (alter-and-ddl-lifecycle, section 9).

An expression has no narrowed form, so whatever names the column stands in the way.  What is made of
columns goes with it: UNIQUEs, foreign keys and unique indexes over it; a plain index loses the
column and, with its last one, itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.execute.statements.alter.alteration import Alteration
from quereus_store.execute.statements.guards import assertion_of, of_kinds, on_table, way
from quereus_store.schema.dependencies import Dependent, DependentKind, column_dependents
from quereus_store.schema.objects import (
    AssertionSchema,
    Catalog,
    ForeignKey,
    IndexPart,
    IndexSchema,
    TableSchema,
    ViewSchema,
    fold,
)
from quereus_store.sql import nodes


def drop_column(alteration: Alteration, action: nodes.DropColumn) -> None:
    """Take a column out of table and rows; raises CONSTRAINT while something refers to it."""
    table = alteration.table
    position, column = alteration.column(action.column)
    if any(part.column == position for part in table.primary_key.parts):
        raise alteration.error(StatusCode.CONSTRAINT, f"Cannot drop PRIMARY KEY column '{column.name}'")
    if len(table.columns) == 1:
        raise alteration.error(StatusCode.ERROR, f"Cannot drop the last column of table '{table.name}'")
    check_unreferenced(
        alteration.catalog, table, position, alteration.session.schema_path, alteration.position
    )
    new = without_column(table, position)
    alteration.publish(alteration.retire_column(new, position))


# --- what is in the way -----------------------------------------------------------------------------------


def check_unreferenced(
    catalog: Catalog,
    table: TableSchema,
    position: int,
    path: Sequence[str],
    at: SourcePosition | None = None,
) -> None:
    """Raise CONSTRAINT, placed ``at`` the statement, while something refers to the column at ``position``."""
    name = table.columns[position].name
    dependents = column_dependents(catalog, table, name, path)
    for complaint in _complaints(dependents, table, position):
        message = f"Cannot drop column '{name}' from '{table.name}': {complaint}"
        raise sql_error(StatusCode.CONSTRAINT, message, at)


def _complaints(dependents: list[Dependent], table: TableSchema, position: int) -> Iterator[str]:
    """What is in the way, by precedence."""
    broken = [dependent for dependent in dependents if dependent.breaks_view]
    direct = [dependent for dependent in dependents if not dependent.breaks_view]
    for dependent in of_kinds(direct, DependentKind.GENERATED):
        if dependent.owner is table and not dependent.through:
            yield f"it is referenced by generated column '{_generated_name(dependent, table)}'"
    for dependent in of_kinds(direct, DependentKind.INDEX):
        yield _by_index(dependent, table)
    for kinds in ((DependentKind.DEFAULT, DependentKind.GENERATED), (DependentKind.CHECK,)):
        for dependent in of_kinds(direct, *kinds):
            yield _by_expression(dependent, table)
    for dependent in of_kinds(direct, DependentKind.FOREIGN_KEY):
        if not _goes_too(dependent, table, position):
            owner = dependent.owner.name
            yield f"it is referenced by foreign key '{dependent.label}' on table '{owner}'"
    for dependent in of_kinds(direct, DependentKind.ASSERTION):
        yield _by_assertion(dependent, table)
    for dependent in broken:
        if dependent.kind is not DependentKind.MATERIALIZED_VIEW:
            yield _by_broken_view(dependent, table)


def _generated_name(dependent: Dependent, table: TableSchema) -> str:
    for column in table.columns:
        if dependent.label == f"the GENERATED expression of column '{column.name}'":
            return column.name
    return dependent.label


def _by_index(dependent: Dependent, table: TableSchema) -> str:
    index = table.index(dependent.label)
    if index is not None and index.where is None:
        return f"it is referenced by an expression of index '{dependent.label}'"
    return f"it is referenced by the WHERE clause of partial index '{dependent.label}'"


def _by_expression(dependent: Dependent, table: TableSchema) -> str:
    what = f"{dependent.label}{on_table(dependent, table)}"
    if dependent.through:
        return f"{what} reaches it through {way(dependent)}"
    return f"it is referenced by {what}"


def _by_assertion(dependent: Dependent, table: TableSchema) -> str:
    through = f" through {way(dependent)}" if dependent.through else ""
    return (
        f"it is referenced by {assertion_of(dependent, table.schema)}{through} — drop or redefine the"
        " assertion first"
    )


def _by_broken_view(dependent: Dependent, table: TableSchema) -> str:
    views = [view for view in dependent.through if isinstance(view, ViewSchema)]
    view = next((view for view in views if view.columns is not None), views[0])
    if isinstance(dependent.owner, AssertionSchema):
        what = assertion_of(dependent, table.schema)
    else:
        what = f"{dependent.label}{on_table(dependent, table)}"
    return (
        f"{what} references view '{view.name}', whose explicit column list would no longer match its body"
        " once '*' expands without the column — dropping the column breaks it outright, not just one column"
    )


def _goes_too(dependent: Dependent, table: TableSchema, position: int) -> bool:
    """Whether a foreign key of the table to itself is dropped with the column anyway."""
    return dependent.owner is table and any(
        key.name == dependent.label and position in key.columns for key in table.foreign_keys
    )


# --- the table without the column -------------------------------------------------------------------------


def without_column(table: TableSchema, position: int) -> TableSchema:
    """The table without a column and without what is made of it."""

    def moved(column: int) -> int:
        return column - 1 if column > position else column

    uniques = tuple(
        replace(unique, columns=tuple(map(moved, unique.columns)))
        for unique in table.unique_constraints
        if position not in unique.columns
    )
    gone = {fold(unique.index) for unique in table.unique_constraints if position in unique.columns}
    key = table.primary_key
    return replace(
        table,
        columns=table.columns[:position] + table.columns[position + 1 :],
        primary_key=replace(key, parts=tuple(replace(part, column=moved(part.column)) for part in key.parts)),
        unique_constraints=uniques,
        foreign_keys=tuple(_without_column(table.foreign_keys, position, moved)),
        indexes=tuple(_narrowed(table.indexes, position, moved, gone)),
    )


def _without_column(
    keys: Iterable[ForeignKey], position: int, moved: Callable[[int], int]
) -> Iterator[ForeignKey]:
    for key in keys:
        if position not in key.columns:
            yield replace(key, columns=tuple(map(moved, key.columns)))


def _narrowed(
    indexes: Iterable[IndexSchema], position: int, moved: Callable[[int], int], gone: set[str]
) -> Iterator[IndexSchema]:
    for index in indexes:
        uses = any(part.column == position for part in index.parts)
        if uses and (index.unique or index.hidden or fold(index.name) in gone):
            continue
        parts = tuple(_moved(part, moved) for part in index.parts if part.column != position)
        if parts:
            yield replace(index, parts=parts)


def _moved(part: IndexPart, moved: Callable[[int], int]) -> IndexPart:
    return part if part.column is None else replace(part, column=moved(part.column))
