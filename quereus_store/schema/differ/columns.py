"""What has to happen to the columns of an existing table.

The existing side is compared as it will be after the renames of the same migration, so whatever a
rename does by itself is no difference any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from quereus_store.errors import StatusCode, sql_error
from quereus_store.schema.differ.matching import same_tags
from quereus_store.schema.differ.text import identifier, tag_list
from quereus_store.schema.objects import ColumnSchema, TableSchema, fold
from quereus_store.sql import nodes, render, render_expression
from quereus_store.types.logical import LogicalType


@dataclass(frozen=True, slots=True)
class ColumnSteps:
    """The actions of ALTER TABLE by phase."""

    add: tuple[str, ...] = ()
    alter: tuple[str, ...] = ()
    retype: tuple[str, ...] = ()
    """What happens to columns that get another type once they have left the primary key."""
    drop: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    added: tuple[nodes.ColumnDefinition, ...] = ()
    """The columns that ADD COLUMN makes, with the constraints that stand on them."""
    remade: frozenset[str] = frozenset()
    """Folded names of those that exist and are dropped before: what uses them goes with them."""
    reformed: frozenset[str] = frozenset()
    """Folded names of those whose type, nullability or collation changes."""
    recollated: frozenset[str] = frozenset()
    """Folded names of those whose collation changes."""

    @property
    def shape(self) -> tuple[str, ...]:
        """Whatever changes more than tags."""
        return (*self.add, *self.alter, *self.retype, *self.drop)

    @property
    def fresh(self) -> frozenset[str]:
        """Folded names of columns that there are only after ADD COLUMN."""
        return frozenset(fold(definition.name) for definition in self.added)


def column_steps(declared: TableSchema, node: nodes.CreateTable, actual: TableSchema) -> ColumnSteps:
    """Compare the columns of a declared table with those that exist."""
    present = {fold(column.name): column for column in actual.columns}
    wanted = {fold(column.name) for column in declared.columns}
    leaving = _key_columns(actual) - _key_columns(declared)
    made: list[tuple[ColumnSchema, nodes.ColumnDefinition, ColumnSchema | None]] = []
    kept: list[tuple[ColumnSchema, nodes.ColumnDefinition, ColumnSchema]] = []
    for column, definition in zip(declared.columns, node.columns, strict=True):
        old = present.get(fold(column.name))
        if old is None or column.generated != old.generated:
            made.append((column, definition, old))
        else:
            kept.append((column, definition, old))
    alter: list[str] = []
    retype: list[str] = []
    for column, definition, old in kept:
        late = column.type is not old.type and fold(column.name) in leaving
        (retype if late else alter).extend(_attribute_steps(column, definition, old))
    return ColumnSteps(
        add=tuple(
            step for column, definition, old in made for step in _making(actual, column, definition, old)
        ),
        alter=tuple(alter),
        retype=tuple(retype),
        drop=tuple(
            f"DROP COLUMN {identifier(old.name)}" for key, old in present.items() if key not in wanted
        ),
        tags=tuple(
            f"ALTER COLUMN {identifier(column.name)} SET TAGS {tag_list(column.tags)}"
            for column, _, old in kept
            if not same_tags(column.tags, old.tags)
        ),
        added=tuple(definition for _, definition, _ in made),
        remade=frozenset(fold(old.name) for _, _, old in made if old is not None),
        reformed=frozenset(fold(column.name) for column, _, old in kept if _form(column) != _form(old)),
        recollated=frozenset(
            fold(column.name) for column, _, old in kept if column.collation != old.collation
        ),
    )


def _making(
    actual: TableSchema,
    column: ColumnSchema,
    definition: nodes.ColumnDefinition,
    old: ColumnSchema | None,
) -> Iterator[str]:
    """The steps to a new column, in the place of an old one if there is one."""
    if old is not None:
        _check_still_generated(actual, column, old)
        yield f"DROP COLUMN {identifier(old.name)}"
    yield f"ADD COLUMN {render(_with_collation(column, definition))}"


def _key_columns(table: TableSchema) -> frozenset[str]:
    return frozenset(fold(table.columns[part.column].name) for part in table.primary_key.parts)


def _with_collation(column: ColumnSchema, definition: nodes.ColumnDefinition) -> nodes.ColumnDefinition:
    """The definition saying its collation, which under another default would be another one."""
    said = any(isinstance(each, nodes.CollateConstraint) for each in definition.constraints)
    if said or column.collation == "BINARY":
        return definition
    collate = nodes.CollateConstraint(collation=column.collation)
    return replace(definition, constraints=(*definition.constraints, collate))


def _form(column: ColumnSchema) -> tuple[LogicalType, bool, str]:
    return column.type, column.nullable, column.collation


def _check_still_generated(table: TableSchema, column: ColumnSchema, old: ColumnSchema) -> None:
    """A generated column can be computed anew; an ordinary one's values cannot come from nowhere."""
    if column.generated is None or old.generated is None:
        raise sql_error(
            StatusCode.ERROR,
            f"column '{table.name}.{old.name}' cannot change between generated and ordinary: declare it under"
            " another name and copy the values",
        )


def _attribute_steps(
    column: ColumnSchema, definition: nodes.ColumnDefinition, old: ColumnSchema
) -> Iterator[str]:
    verb = f"ALTER COLUMN {identifier(column.name)}"
    retyped = column.type is not old.type
    redefaulted = column.default != old.default
    if retyped:
        # The old DEFAULT need not fit the new type.
        if redefaulted and old.default is not None:
            yield f"{verb} DROP DEFAULT"
        spelled = definition.type_name
        yield f"{verb} SET DATA TYPE {render(spelled) if spelled is not None else column.type.name}"
    if redefaulted and column.default is not None:
        yield f"{verb} SET DEFAULT {render_expression(column.default)}"
    elif redefaulted and not retyped:
        yield f"{verb} DROP DEFAULT"
    if column.nullable != old.nullable:
        yield f"{verb} {'DROP' if column.nullable else 'SET'} NOT NULL"
    if column.collation != old.collation:
        yield f"{verb} SET COLLATE {identifier(column.collation)}"
