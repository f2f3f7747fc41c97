"""What has to happen to the columns of an existing table.

The existing side is compared as it will be after the renames of the same migration, so whatever a
rename does by itself is no difference any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quereus_store.errors import StatusCode, sql_error
from quereus_store.schema.differ.matching import same_tags
from quereus_store.schema.differ.text import identifier, tag_list
from quereus_store.schema.objects import ColumnSchema, TableSchema, fold
from quereus_store.sql import nodes, render, render_expression


@dataclass(frozen=True, slots=True)
class ColumnSteps:
    """The actions of ALTER TABLE by phase."""

    add: tuple[str, ...] = ()
    alter: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    along: frozenset[str] = frozenset()
    """Folded names of the constraints that stand on added columns."""


def column_steps(declared: TableSchema, node: nodes.CreateTable, actual: TableSchema) -> ColumnSteps:
    """Compare the columns of a declared table with those that exist."""
    add: list[str] = []
    alter: list[str] = []
    drop: list[str] = []
    tags: list[str] = []
    present = {fold(column.name): column for column in actual.columns}
    wanted = {fold(column.name) for column in declared.columns}
    along: set[str] = set()
    for column, definition in zip(declared.columns, node.columns, strict=True):
        old = present.get(fold(column.name))
        if old is not None and column.generated != old.generated:
            _check_still_generated(actual, column, old)
            add += [f"DROP COLUMN {identifier(old.name)}", f"ADD COLUMN {render(definition)}"]
            along |= _names_on(definition)
        elif old is None:
            add.append(f"ADD COLUMN {render(definition)}")
            along |= _names_on(definition)
        else:
            alter += _attribute_steps(column, definition, old)
            if not same_tags(column.tags, old.tags):
                tags.append(f"ALTER COLUMN {identifier(column.name)} SET TAGS {tag_list(column.tags)}")
    for key, old in present.items():
        if key not in wanted:
            drop.append(f"DROP COLUMN {identifier(old.name)}")
    return ColumnSteps(tuple(add), tuple(alter), tuple(drop), tuple(tags), frozenset(along))


def _names_on(definition: nodes.ColumnDefinition) -> set[str]:
    return {fold(constraint.name) for constraint in definition.constraints if constraint.name is not None}


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
