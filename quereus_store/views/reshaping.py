"""Reshaping: carrying a maintained table over to what its body has become.

Old and new columns are walked together.  The same name stays (its attributes may change); where
both names are unknown to the other side, it is a rename; an old name that is gone is dropped;
new names may come at the end.  Anything else, or another physical key, is refused and nothing has changed.

Chapter: views-and-maintained-tables, section 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.notification import events
from quereus_store.execute.statements.alter.dropping import check_unreferenced
from quereus_store.modules.contract import Batch, Row
from quereus_store.modules.rewriting import rewrite_table
from quereus_store.schema.manager import put_table
from quereus_store.schema.objects import ColumnSchema, IndexSchema, KeyPart, PrimaryKey, TableSchema, fold
from quereus_store.schema.rename import rename_column

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import Transaction


@dataclass(frozen=True, slots=True)
class Reshape:
    """From old columns to new: ``sources`` gives each new column's old position, None where it is added."""

    table: TableSchema
    sources: tuple[int | None, ...]


class Carried(NamedTuple):
    """A table after a reshape.  ``taken_out``: the rows that it had, where they do not fit its columns."""

    table: TableSchema
    taken_out: list[Row] | None


def prepare(
    session: Session, transaction: Transaction, table: TableSchema, columns: Sequence[ColumnSchema]
) -> TableSchema:
    """The table with its columns called as they will be: what names them elsewhere, and its CHECKs, follow.

    Raises CONSTRAINT while something refers to a column that goes, as DROP COLUMN does.
    """
    catalog = put_table(transaction.catalog, table)
    sources = _match(table, columns)
    current = table
    for column, place in zip(columns, sources, strict=True):
        old = column.name if place is None else table.columns[place].name
        if fold(old) != fold(column.name):
            catalog = rename_column(catalog, current, old, column.name, session.schema_path, None)
            renamed = catalog.table(table.schema, table.name)
            assert renamed is not None
            current = renamed
    for place in range(len(table.columns)):
        if place not in sources:
            check_unreferenced(catalog, current, place, session.schema_path)
    if current is not table:
        transaction.change_catalog(catalog)
    return current


def plan_reshape(table: TableSchema, columns: Sequence[ColumnSchema], key: PrimaryKey) -> Reshape:
    """The table under new columns; raises ERROR for a change that cannot be made in place."""
    sources = _match(table, columns)
    _check_key(table, columns, key, sources)
    moved = {old: new for new, old in enumerate(sources) if old is not None}
    kept = [
        replace(column, tags=table.columns[old].tags, default=table.columns[old].default)
        if old is not None
        else column
        for column, old in zip(columns, sources, strict=True)
    ]
    uniques = tuple(
        replace(unique, columns=tuple(moved[column] for column in unique.columns))
        for unique in table.unique_constraints
        if all(column in moved for column in unique.columns)
    )
    lost = {fold(unique.index) for unique in table.unique_constraints} - {
        fold(unique.index) for unique in uniques
    }
    reshaped = replace(
        table,
        columns=tuple(kept),
        primary_key=replace(table.primary_key, parts=key.parts),
        unique_constraints=uniques,
        foreign_keys=tuple(
            replace(foreign, columns=tuple(moved[column] for column in foreign.columns))
            for foreign in table.foreign_keys
            if all(column in moved for column in foreign.columns)
        ),
        indexes=tuple(
            _moved_index(index, moved, kept)
            for index in table.indexes
            if fold(index.name) not in lost
            and all(part.column is None or part.column in moved for part in index.parts)
        ),
    )
    return Reshape(reshaped, sources)


def _moved_index(index: IndexSchema, moved: dict[int, int], columns: Sequence[ColumnSchema]) -> IndexSchema:
    parts = tuple(
        part
        if part.column is None
        else replace(
            part,
            column=moved[part.column],
            type=columns[moved[part.column]].type,
            nullable=columns[moved[part.column]].nullable,
        )
        for part in index.parts
    )
    return index if parts == index.parts else replace(index, parts=parts)


def _match(table: TableSchema, columns: Sequence[ColumnSchema]) -> tuple[int | None, ...]:
    old = [fold(column.name) for column in table.columns]
    new = [fold(column.name) for column in columns]
    sources: list[int | None] = []
    here = 0
    for position, name in enumerate(new):
        if name in old:
            place = old.index(name)
            skipped = old[here:place]
            still_wanted = next((other for other in skipped if other in new), None)
            if place < here or still_wanted is not None:
                raise _refused(table, _reordered(table, columns[position], old, new, place, here))
            sources.append(place)
            here = place + 1
        elif here < len(old) and old[here] not in new:
            sources.append(here)
            here += 1
        elif any(other in old for other in new[position:]):
            raise _refused(
                table,
                f"new column '{columns[position].name}' lands mid-table (an interleaving reshape, not a"
                " trailing append)",
            )
        else:
            sources.append(None)
    return tuple(sources)


def _reordered(
    table: TableSchema, column: ColumnSchema, old: list[str], new: list[str], place: int, here: int
) -> str:
    if place >= here:
        other = next(name for name in old[here:place] if name in new)
        return f"columns '{table.columns[old.index(other)].name}' and '{column.name}' are reordered"
    return f"column '{column.name}' is reordered"


def _check_key(
    table: TableSchema, columns: Sequence[ColumnSchema], key: PrimaryKey, sources: Sequence[int | None]
) -> None:
    before = table.primary_key.parts
    if len(before) != len(key.parts):
        raise _refused(table, f"primary-key column count {len(before)} → {len(key.parts)}")
    for number, (old, new) in enumerate(zip(before, key.parts, strict=True)):
        name = table.columns[old.column].name
        if sources[new.column] != old.column:
            raise _refused(table, f"primary-key column {number} '{name}' → '{columns[new.column].name}'")
        was, now = table.columns[old.column], columns[new.column]
        _check_part(table, number, old, new, was, now)


def _check_part(
    table: TableSchema, number: int, old: KeyPart, new: KeyPart, was: ColumnSchema, now: ColumnSchema
) -> None:
    label = f"primary-key column {number} '{was.name}'"
    if was.type is not now.type:
        raise _refused(table, f"{label} type {was.type.name} → {now.type.name}")
    if old.descending != new.descending:
        directions = ("DESC" if old.descending else "ASC", "DESC" if new.descending else "ASC")
        raise _refused(table, f"{label} direction {directions[0]} → {directions[1]}")
    if old.collation != new.collation:
        raise _refused(table, f"{label} collation {old.collation} → {new.collation}")


def _refused(table: TableSchema, reason: str) -> Error:
    return sql_error(
        StatusCode.ERROR,
        f"the derivation's output shape changed incompatibly with table '{table.qualified_name}' ({reason});"
        " alter the table to the new shape and re-attach, or drop and recreate",
    )


def carry_over(session: Session, transaction: Transaction, old: TableSchema, reshape: Reshape) -> Carried:
    """Rewrite the stored rows to the new columns; added ones are NULL until the body's rows are written."""
    sources = reshape.sources

    def transform(batch: Batch) -> Batch:
        return [tuple([None if place is None else row[place] for place in sources]) for row in batch]

    module = session.engine.module(old.module)
    writer = transaction.writer(old.module)
    taken_out: list[Row] | None = None
    moved = None if sources == tuple(range(len(old.columns))) else transform
    if _fit(old, reshape):
        rewritten = rewrite_table(module, writer, old, reshape.table, moved)
    else:
        # Rows that do not fit are taken out first: a module counts on getting as many back as it had.
        handle = session.engine.table(old)
        stored = [row for batch in handle.scan(writer) for row in batch]
        handle.delete(writer, stored)
        taken_out = list(transform(stored))
        rewritten = rewrite_table(module, writer, old, reshape.table, moved)
    transaction.reshapes.append(events.Reshape(len(transaction.changes), old, rewritten, moved))
    return Carried(rewritten, taken_out)


def _fit(old: TableSchema, reshape: Reshape) -> bool:
    """Whether every value that a column may hold may be held by what it becomes, and is keyed alike."""
    for column, place in zip(reshape.table.columns, reshape.sources, strict=True):
        if place is not None:
            was = old.columns[place]
            narrowed = was.nullable and not column.nullable
            if was.type is not column.type or was.collation != column.collation or narrowed:
                return False
    return True
