"""Constraints and indexes of a table: their names, and adding and dropping them.

Every UNIQUE constraint is enforced through an index.  That is a *hidden* one, named like the
constraint (or ``_uc_<columns>`` where that has no name), unless a user's unique index has exactly its
columns with their collations and no predicate: then the constraint leans on that one.  Adding
such an index makes the hidden one superfluous, and dropping it makes one necessary, so
:func:`add_index` and :func:`drop_index` tell what has to be built and what may be erased.

A CREATE UNIQUE INDEX brings a constraint of its own name, which goes with the index.

Chapters: alter-and-ddl-lifecycle, sections 4, 5 and 10; store-and-modules, section 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from quereus_store.errors import StatusCode, sql_error
from quereus_store.schema.objects import (
    CheckConstraint,
    ColumnSchema,
    ForeignKey,
    IndexPart,
    IndexSchema,
    TableSchema,
    UniqueConstraint,
    fold,
)

EXPOSE_TAG = "quereus.expose_implicit_index"
"""The constraint's tag that shows its hidden index to the user."""

NamedConstraint = CheckConstraint | UniqueConstraint | ForeignKey


@dataclass(frozen=True, slots=True)
class IndexChange:
    """A table after a change, the indexes to be built for it, and those to be erased."""

    table: TableSchema
    build: tuple[IndexSchema, ...] = ()
    erase: tuple[IndexSchema, ...] = ()


# --- names ------------------------------------------------------------------------------------------------


def backing_name(columns: Iterable[str]) -> str:
    """The name of the hidden index of an unnamed UNIQUE over these columns."""
    return "_uc_" + "_".join(columns)


def column_check_name(column: str) -> str:
    """The name that an unnamed CHECK on a column wants."""
    return f"_check_{column}"


def foreign_key_name(table: str, columns: Iterable[str]) -> str:
    """The name that an unnamed FOREIGN KEY wants."""
    return "_".join(("_fk", table, *columns))


def mint(wanted: str, taken: set[str]) -> str:
    """The wanted name, or with ``_2``, ``_3``, ... if it is taken; it is taken afterwards."""
    name, number = wanted, 1
    while fold(name) in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(fold(name))
    return name


def is_minted(name: str) -> bool:
    """Whether a CHECK or FOREIGN KEY name looks like one that the engine gave."""
    return name.startswith(("_check_", "_fk_"))


def constraint_names(table: TableSchema) -> set[str]:
    """The folded names of a table's constraints that a new one may not take."""
    names = {fold(check.name) for check in table.checks if not check.positional}
    names.update(fold(unique.name) for unique in table.unique_constraints if unique.named)
    names.update(fold(key.name) for key in table.foreign_keys)
    return names


def number_checks(checks: Sequence[CheckConstraint]) -> tuple[CheckConstraint, ...]:
    """The checks with unnamed table-level ones called after their position."""
    return tuple(
        replace(check, name=f"_check_{position}") if check.positional else check
        for position, check in enumerate(checks)
    )


def find_constraint(table: TableSchema, name: str) -> NamedConstraint | None:
    """The constraint that a statement addresses by name: CHECK, then UNIQUE, then FOREIGN KEY."""
    folded = fold(name)
    candidates: list[NamedConstraint] = [check for check in table.checks if not check.positional]
    candidates += [unique for unique in table.unique_constraints if unique.named]
    candidates += table.foreign_keys
    return next((found for found in candidates if fold(found.name) == folded), None)


def find_unnamed(table: TableSchema, name: str) -> NamedConstraint | None:
    """What has no name and is shown under this one: a UNIQUE by its structure, a CHECK by its place."""
    folded = fold(name)
    candidates: list[NamedConstraint] = [unique for unique in table.unique_constraints if not unique.named]
    candidates += (check for check in table.checks if check.positional)
    return next((found for found in candidates if fold(found.name) == folded), None)


def without_constraint(table: TableSchema, constraint: NamedConstraint) -> IndexChange:
    """The table without one of its constraints, and the hidden index that goes with a UNIQUE."""
    if isinstance(constraint, CheckConstraint):
        checks = number_checks([check for check in table.checks if check is not constraint])
        return IndexChange(replace(table, checks=checks))
    if isinstance(constraint, ForeignKey):
        keys = tuple(key for key in table.foreign_keys if key is not constraint)
        return IndexChange(replace(table, foreign_keys=keys))
    remaining = tuple(unique for unique in table.unique_constraints if unique is not constraint)
    erase = tuple(
        index
        for index in table.indexes
        if index.hidden
        and fold(index.name) == fold(constraint.index)
        and not any(fold(unique.index) == fold(index.name) for unique in remaining)
    )
    indexes = tuple(index for index in table.indexes if index not in erase)
    return IndexChange(replace(table, unique_constraints=remaining, indexes=indexes), erase=erase)


def column_list(table: TableSchema, columns: Iterable[int]) -> str:
    """Column names as messages list them."""
    return ", ".join(table.columns[column].name for column in columns)


# --- hidden indexes ---------------------------------------------------------------------------------------


def column_part(column: int, schema: ColumnSchema) -> IndexPart:
    """The index part that a column makes under its own collation."""
    return IndexPart(column, None, schema.type, schema.nullable, collation=schema.collation)


def hidden_index(table: TableSchema, name: str, columns: Sequence[int]) -> IndexSchema:
    """The structure behind a UNIQUE constraint."""
    parts = tuple(column_part(column, table.columns[column]) for column in columns)
    return IndexSchema(name, parts, unique=True, hidden=True)


def leanable_index(table: TableSchema, columns: Sequence[int]) -> IndexSchema | None:
    """A user's index that enforces a UNIQUE over these columns already."""
    wanted = [(column, fold(table.columns[column].collation)) for column in columns]
    for index in table.indexes:
        if index.unique and not index.hidden and index.where is None:
            found = [(part.column, fold(part.collation)) for part in index.parts]
            if found == wanted:
                return index
    return None


def arranged(table: TableSchema) -> TableSchema:
    """The table with constraints and indexes in the order that its DDL gives them.

    First the UNIQUEs of the table and their hidden indexes, then the user's indexes and the
    constraints that they bring.
    """
    uniques = sorted(table.unique_constraints, key=lambda constraint: constraint.from_index)
    place = {fold(constraint.index): number for number, constraint in reversed(list(enumerate(uniques)))}
    hidden = sorted(
        (index for index in table.indexes if index.hidden), key=lambda index: place[fold(index.name)]
    )
    user = [index for index in table.indexes if not index.hidden]
    return replace(table, unique_constraints=tuple(uniques), indexes=(*hidden, *user))


def add_unique(table: TableSchema, constraint: UniqueConstraint, label: str) -> IndexChange:
    """Add a UNIQUE constraint; its ``index`` and the name of an unnamed one are settled here.

    ``label`` says in the messages what is being done (``Cannot <label>: ...``). Raises CONSTRAINT for an
    unnamed equivalent one and for clashes of index names.
    """
    own = constraint.name if constraint.named else backing_name(_names(table, constraint.columns))
    check_equivalent(table.unique_constraints, constraint, table, label)
    check_backing_names((*table.unique_constraints, constraint), table, label)
    check_index_name(table, own, label)
    leaned = leanable_index(table, constraint.columns)
    index = leaned or hidden_index(table, own, constraint.columns)
    constraint = replace(constraint, name=own, index=index.name)
    changed = replace(
        table,
        unique_constraints=(*table.unique_constraints, constraint),
        indexes=table.indexes if leaned else (*table.indexes, index),
    )
    return IndexChange(arranged(changed), build=() if leaned else (index,))


def check_index_name(table: TableSchema, name: str, label: str) -> None:
    """A UNIQUE constraint's index may not take the name of a user's index on its table (CONSTRAINT)."""
    for index in table.indexes:
        if not index.hidden and fold(index.name) == fold(name):
            raise sql_error(
                StatusCode.CONSTRAINT,
                f"Cannot {label}: its backing index '{name}' would collide with existing index"
                f" '{index.name}' on the same table. Rename the constraint or the index.",
            )


def _names(table: TableSchema, columns: Iterable[int]) -> list[str]:
    return [table.columns[column].name for column in columns]


def check_equivalent(
    present: Iterable[UniqueConstraint], constraint: UniqueConstraint, table: TableSchema, label: str
) -> None:
    """Two unnamed UNIQUEs over one set of columns are one too many (CONSTRAINT)."""
    if constraint.named:
        return
    wanted = frozenset(constraint.columns)
    for other in present:
        if not other.named and not other.from_index and frozenset(other.columns) == wanted:
            raise sql_error(
                StatusCode.CONSTRAINT,
                f"Cannot {label}: an equivalent UNIQUE constraint on"
                f" ({column_list(table, constraint.columns)}) already exists.",
            )


def check_backing_names(constraints: Sequence[UniqueConstraint], table: TableSchema, label: str) -> None:
    """No two UNIQUE constraints may derive one index name (CONSTRAINT)."""
    seen: dict[str, UniqueConstraint] = {}
    for constraint in constraints:
        if constraint.from_index:
            continue
        name = constraint.name if constraint.named else backing_name(_names(table, constraint.columns))
        other = seen.setdefault(fold(name), constraint)
        if other is not constraint:
            raise sql_error(
                StatusCode.CONSTRAINT,
                f"Cannot {label}: the UNIQUE constraint {_label(other, table)} and the UNIQUE constraint"
                f" {_label(constraint, table)} both derive backing structure name '{name}'. Name or rename"
                " one of them — an unnamed one derives its structure name from the columns it covers.",
            )


def _label(constraint: UniqueConstraint, table: TableSchema) -> str:
    if constraint.named:
        return f"'{constraint.name}'"
    return f"on ({column_list(table, constraint.columns)})"


# --- user indexes -----------------------------------------------------------------------------------------


def add_index(table: TableSchema, index: IndexSchema) -> IndexChange:
    """Add a user's index, with the constraint that a unique one brings."""
    if not index.unique:
        return IndexChange(replace(table, indexes=(*table.indexes, index)), build=(index,))
    alone = replace(table, indexes=(index,))
    constraints = []
    superfluous = set()
    for constraint in table.unique_constraints:
        if not constraint.from_index and leanable_index(alone, constraint.columns) is not None:
            superfluous.add(fold(constraint.index))
            constraint = replace(constraint, index=index.name)
        constraints.append(constraint)
    columns = tuple(part.column for part in index.parts if part.column is not None)
    constraints.append(UniqueConstraint(index.name, columns, index.name, named=True, from_index=True))
    erase = tuple(old for old in table.indexes if old.hidden and fold(old.name) in superfluous)
    indexes = (*(old for old in table.indexes if old not in erase), index)
    changed = replace(table, indexes=indexes, unique_constraints=tuple(constraints))
    return IndexChange(arranged(changed), build=(index,), erase=erase)


def drop_index(table: TableSchema, name: str) -> IndexChange:
    """Drop a user's index; constraints that leaned on it get a hidden index again."""
    dropped = table.index(name)
    assert dropped is not None
    build: list[IndexSchema] = []
    constraints: list[UniqueConstraint] = []
    for constraint in table.unique_constraints:
        if fold(constraint.index) != fold(dropped.name):
            constraints.append(constraint)
        elif not constraint.from_index:
            own = hidden_index(table, constraint.name, constraint.columns)
            build.append(own)
            constraints.append(replace(constraint, index=own.name))
    indexes = (*(index for index in table.indexes if index is not dropped), *build)
    changed = replace(table, indexes=indexes, unique_constraints=tuple(constraints))
    return IndexChange(arranged(changed), build=tuple(build), erase=(dropped,))


def exposed_indexes(table: TableSchema) -> tuple[IndexSchema, ...]:
    """The hidden indexes that their constraints show to the user."""
    shown = {
        fold(constraint.index)
        for constraint in table.unique_constraints
        if constraint.tags.get(EXPOSE_TAG) is True
    }
    return tuple(index for index in table.indexes if index.hidden and fold(index.name) in shown)


def visible_indexes(table: TableSchema) -> tuple[IndexSchema, ...]:
    """The indexes that introspection lists."""
    exposed = exposed_indexes(table)
    return tuple(index for index in table.indexes if not index.hidden or index in exposed)


def check_constraint_name(table: TableSchema, name: str, also: Collection[str] = ()) -> None:
    """A user's name for a new constraint must be free on the table (CONSTRAINT)."""
    if fold(name) in constraint_names(table) or fold(name) in also:
        raise sql_error(
            StatusCode.CONSTRAINT,
            f"Cannot add constraint '{name}' to table '{table.name}': a constraint with that name already"
            " exists",
        )
