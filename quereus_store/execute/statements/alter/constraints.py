"""ADD, DROP and RENAME CONSTRAINT (alter-and-ddl-lifecycle, section 10).

UNIQUE and FOREIGN KEY are judged over the rows that are there; a CHECK judges from the next
write on.
"""

from __future__ import annotations

from dataclasses import replace

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.statements.alter.alteration import Alteration
from quereus_store.execute.statements.alter.references import check_key, check_orphans
from quereus_store.execute.statements.definitions import check_expressions
from quereus_store.schema.clauses import check_constraint, foreign_key, unique_constraint
from quereus_store.schema.constraints import (
    IndexChange,
    NamedConstraint,
    add_unique,
    check_constraint_name,
    check_equivalent,
    check_index_name,
    column_list,
    constraint_names,
    find_constraint,
    find_unnamed,
    is_minted,
    number_checks,
    without_constraint,
)
from quereus_store.schema.expressions import check_check
from quereus_store.schema.objects import (
    IndexSchema,
    TableSchema,
    UniqueConstraint,
    fold,
)
from quereus_store.schema.tags import TagSite, check_tags
from quereus_store.sql import nodes


def add_constraint(alteration: Alteration, action: nodes.AddConstraint) -> None:
    """Add a CHECK, UNIQUE or FOREIGN KEY; raises UNSUPPORTED for a PRIMARY KEY."""
    constraint = action.constraint
    check_tags(constraint.tags, TagSite.CONSTRAINT, alteration.position)
    if isinstance(constraint, nodes.PrimaryKeyConstraint):
        raise sql_error(
            StatusCode.UNSUPPORTED,
            "ALTER TABLE ADD CONSTRAINT does not support constraint type 'primaryKey': use ALTER PRIMARY KEY",
            alteration.position,
        )
    if constraint.name is not None:
        check_constraint_name(alteration.table, constraint.name)
    match constraint:
        case nodes.CheckConstraint():
            _add_check(alteration, constraint)
        case nodes.UniqueConstraint():
            _add_unique(alteration, constraint)
        case nodes.ForeignKeyConstraint():
            _add_foreign_key(alteration, constraint)


def _add_check(alteration: Alteration, node: nodes.CheckConstraint) -> None:
    table = alteration.table
    if node.name is None:
        node = replace(node, name=_free_check_name(table))
    check = check_constraint(table, node, None, set())
    check_check(table, check.name, check.expression)
    judged = replace(table, checks=(check,))
    check_expressions(alteration.session, alteration.transaction, judged)
    alteration.publish(replace(table, checks=number_checks((*table.checks, check))))


def _free_check_name(table: TableSchema) -> str:
    """``check_<n>``: n is the number of checks on the table, or the first after it that is free."""
    taken = constraint_names(table)
    number = len(table.checks)
    while f"check_{number}" in taken:
        number += 1
    return f"check_{number}"


def _add_unique(alteration: Alteration, node: nodes.UniqueConstraint) -> None:
    table = alteration.table
    unique = unique_constraint(table, node, None)
    what = f"constraint '{unique.name}'" if unique.named else "UNIQUE constraint"
    change = with_unique(table, unique, f"add {what} to table '{table.name}'")
    alteration.publish(alteration.carry_out(table, change))


def with_unique(table: TableSchema, unique: UniqueConstraint, label: str) -> IndexChange:
    """The table with one more UNIQUE; raises CONSTRAINT for an equivalent one or a taken name."""
    check_equivalent(table.unique_constraints, unique, table, label)
    check_structure_name(table, unique, unique.name, label)
    return add_unique(table, unique, label)


def check_structure_name(table: TableSchema, unique: UniqueConstraint, name: str, label: str) -> None:
    """The structure of another UNIQUE may not have this name (CONSTRAINT)."""
    for other in table.unique_constraints:
        if other is unique or other.from_index or fold(other.name) != fold(name):
            continue
        shown = f"'{other.name}'" if other.named else f"on ({column_list(table, other.columns)})"
        raise sql_error(
            StatusCode.CONSTRAINT,
            f"Cannot {label}: its backing structure '{name}' would collide with the backing structure of the"
            f" UNIQUE constraint {shown} on the same table. Name or rename one of the two constraints — an"
            " unnamed one derives its structure name from the columns it covers.",
        )


def _add_foreign_key(alteration: Alteration, node: nodes.ForeignKeyConstraint) -> None:
    table = alteration.table
    key = foreign_key(table, node, None, constraint_names(table))
    new = replace(table, foreign_keys=(*table.foreign_keys, key))
    check_key(alteration, new, key)
    alteration.publish(new)
    check_orphans(alteration, new, key)


# --- by name ----------------------------------------------------------------------------------------------


def constraint_named(alteration: Alteration, name: str) -> NamedConstraint:
    """The constraint that a statement names; raises NOTFOUND."""
    found = find_constraint(alteration.table, name)
    if found is None:
        raise alteration.error(
            StatusCode.NOTFOUND, f"Named constraint '{name}' not found in table '{alteration.table.name}'"
        )
    return found


def with_constraint(table: TableSchema, old: NamedConstraint, new: NamedConstraint) -> TableSchema:
    """The table with one of its constraints in another form."""
    return replace(
        table,
        checks=tuple(new if check is old else check for check in table.checks),  # type: ignore[misc]
        unique_constraints=tuple(
            new if unique is old else unique  # type: ignore[misc]
            for unique in table.unique_constraints
        ),
        foreign_keys=tuple(new if key is old else key for key in table.foreign_keys),  # type: ignore[misc]
    )


def _owned_by_index(alteration: Alteration, verb: str, constraint: NamedConstraint) -> Error:
    name = constraint.name
    return alteration.error(
        StatusCode.CONSTRAINT,
        f"Cannot {verb} CONSTRAINT '{name}' on '{alteration.table.name}': it is backed by index '{name}'"
        f" (created via CREATE UNIQUE INDEX). Use DROP INDEX '{name}' instead.",
    )


def drop_constraint(alteration: Alteration, action: nodes.DropConstraint) -> None:
    """Drop a constraint by name, and the hidden index of a UNIQUE with it.

    One without a name goes by the name that messages give it.
    """
    table = alteration.table
    named = find_constraint(table, action.constraint)
    constraint = (None if named else find_unnamed(table, action.constraint)) or constraint_named(
        alteration, action.constraint
    )
    if isinstance(constraint, UniqueConstraint) and constraint.from_index:
        raise _owned_by_index(alteration, "DROP", constraint)
    change = without_constraint(alteration.table, constraint)
    alteration.publish(alteration.carry_out(alteration.table, change))


def rename_constraint(alteration: Alteration, action: nodes.RenameConstraint) -> None:
    """Give a constraint another name; the hidden index of a UNIQUE follows."""
    table = alteration.table
    constraint = constraint_named(alteration, action.old_name)
    if isinstance(constraint, UniqueConstraint) and constraint.from_index:
        raise _owned_by_index(alteration, "RENAME", constraint)
    name = action.new_name
    if fold(name) != fold(constraint.name) and fold(name) in constraint_names(table):
        raise alteration.error(
            StatusCode.CONSTRAINT,
            f"Cannot rename constraint to '{name}': a constraint with that name already exists in table"
            f" '{table.name}'",
        )
    if isinstance(constraint, UniqueConstraint):
        label = f"rename constraint '{constraint.name}' to '{name}' on table '{table.name}'"
        alteration.publish(renamed_unique(table, constraint, name, True, label))
        return
    renamed = replace(constraint, name=name, named=not is_minted(name))
    alteration.publish(with_constraint(table, constraint, renamed))


def renamed_unique(
    table: TableSchema, constraint: UniqueConstraint, name: str, named: bool, label: str
) -> TableSchema:
    """The table with a UNIQUE under another name, and its own hidden index with it."""
    check_structure_name(table, constraint, name, label)
    renamed = replace(constraint, name=name, named=named)
    index = table.index(constraint.index)
    if index is None or not index.hidden:
        return with_constraint(table, constraint, renamed)
    if fold(name) != fold(index.name):
        check_index_name(table, name, label)
    changed = with_constraint(table, constraint, replace(renamed, index=name))
    return replace(changed, indexes=tuple(_renamed(held, index, name) for held in table.indexes))


def _renamed(held: IndexSchema, index: IndexSchema, name: str) -> IndexSchema:
    return replace(held, name=name) if held is index else held
