"""What has to happen to the constraints and the key of an existing table.

Only constraints that a user named take part: one is known by its name, and changes by being
dropped and added.  Generated names and constraints that an index brings are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from quereus_store.schema.constraints import NamedConstraint
from quereus_store.schema.ddl import check_node, foreign_key_node, unique_node
from quereus_store.schema.differ.matching import (
    Named,
    RenamePolicy,
    match_renames,
    require_hints,
    same_tags,
)
from quereus_store.schema.differ.text import identifier, tag_list
from quereus_store.schema.objects import CheckConstraint, TableSchema, UniqueConstraint, fold
from quereus_store.sql import nodes, render
from quereus_store.sql.traversal import transform


@dataclass(frozen=True, slots=True)
class ConstraintSteps:
    """The actions of ALTER TABLE by phase."""

    rename: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


def constraint_steps(
    declared: TableSchema, actual: TableSchema, along: frozenset[str], policy: RenamePolicy
) -> ConstraintSteps:
    """Compare named constraints and the primary key; those in ``along`` come with an added column."""
    wanted = {fold(each.name): each for each in _participants(declared)}
    present = {fold(each.name): each for each in _participants(actual)}
    renames = match_renames(
        f"constraint of table '{declared.name}':", _named(wanted), _named(present), policy
    )
    rename, drop, add, tags = [], [], [], []
    created, kept = [], set()
    for key, each in wanted.items():
        old = present.get(fold(renames.get(key, key)))
        if old is None:
            if key not in along:
                add.append(f"ADD {render(_node(declared, each))}")
                created.append(each.name)
            continue
        kept.add(fold(old.name))
        if _body(declared, each) != _body(actual, old):
            drop.append(f"DROP CONSTRAINT {identifier(old.name)}")
            add.append(f"ADD {render(_node(declared, each))}")
            continue
        if fold(old.name) != key:
            rename.append(f"RENAME CONSTRAINT {identifier(old.name)} TO {identifier(each.name)}")
        if not same_tags(each.tags, old.tags):
            tags.append(f"ALTER CONSTRAINT {identifier(each.name)} SET TAGS {tag_list(each.tags)}")
    gone = [old.name for key, old in present.items() if key not in kept]
    require_hints(f"constraint of table '{declared.name}'", created, gone, policy)
    drop = [*(f"DROP CONSTRAINT {identifier(name)}" for name in gone), *drop]
    return ConstraintSteps(
        tuple(rename), tuple(drop), tuple(_key_step(declared, actual)), tuple(add), tuple(tags)
    )


def _participants(table: TableSchema) -> Iterator[NamedConstraint]:
    yield from (check for check in table.checks if check.named)
    yield from (unique for unique in table.unique_constraints if unique.named and not unique.from_index)
    yield from (key for key in table.foreign_keys if key.named)


def _named(constraints: Mapping[str, NamedConstraint]) -> list[Named]:
    return [Named(each.name, each.tags) for each in constraints.values()]


def _node(table: TableSchema, constraint: NamedConstraint) -> nodes.Constraint:
    """A constraint as a clause that leaves unsaid what holds anyway."""
    if isinstance(constraint, CheckConstraint):
        node = check_node(constraint)
        usual = {nodes.RowOperation.INSERT, nodes.RowOperation.UPDATE}
        return replace(node, operations=()) if set(node.operations) == usual else node
    if isinstance(constraint, UniqueConstraint):
        return unique_node(table, constraint)
    key = foreign_key_node(table, constraint)
    reference = replace(
        key.reference,
        on_delete=_unless_usual(key.reference.on_delete),
        on_update=_unless_usual(key.reference.on_update),
    )
    return replace(key, reference=reference)


def _unless_usual(action: nodes.ReferentialAction | None) -> nodes.ReferentialAction | None:
    return None if action is nodes.ReferentialAction.RESTRICT else action


def _body(table: TableSchema, constraint: NamedConstraint) -> nodes.Node:
    """What a constraint says, without name and tags, its identifiers in one case."""
    return transform(replace(_node(table, constraint), name=None, tags=()), _folded)


def _folded(node: nodes.Node) -> nodes.Node:
    match node:
        case nodes.ColumnReference():
            table = None if node.table is None else fold(node.table)
            return replace(node, column=fold(node.column), table=table)
        case nodes.UniqueConstraint():
            return replace(node, columns=tuple(map(fold, node.columns)))
        case nodes.ForeignKeyConstraint():
            return replace(node, columns=tuple(map(fold, node.columns)))
        case nodes.ForeignKeyReference():
            return replace(node, columns=tuple(map(fold, node.columns)))
        case nodes.ObjectName():
            return replace(node, name=fold(node.name))
    return node


def _key_step(declared: TableSchema, actual: TableSchema) -> Iterator[str]:
    if _key_of(declared) != _key_of(actual):
        parts = ", ".join(
            identifier(declared.columns[part.column].name) + (" DESC" if part.descending else "")
            for part in declared.primary_key.parts
        )
        yield f"ALTER PRIMARY KEY ({parts})"


def _key_of(table: TableSchema) -> list[tuple[str, bool]]:
    return [(fold(table.columns[part.column].name), part.descending) for part in table.primary_key.parts]
