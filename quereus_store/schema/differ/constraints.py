"""What has to happen to the constraints and the key of an existing table.

A constraint that its user named is known by its name: one whose body changed is dropped and
added.  One without a name is known by its body, whatever the name that the engine gave it, so one that did
not change is no difference and one that did is never left out.  Constraints that an index
brings belong to the index.

DROP CONSTRAINT addresses a table-level CHECK without a name by its position, which moves when
others go; so these go first of all, the last one first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from quereus_store.schema.constraints import NamedConstraint
from quereus_store.schema.ddl import check_node, foreign_key_node, unique_node
from quereus_store.schema.differ.columns import ColumnSteps
from quereus_store.schema.differ.matching import (
    Named,
    RenamePolicy,
    match_renames,
    require_hints,
    same_tags,
)
from quereus_store.schema.differ.text import folded, identifier, tag_list
from quereus_store.schema.objects import (
    CheckConstraint,
    ForeignKey,
    TableSchema,
    UniqueConstraint,
    fold,
)
from quereus_store.sql import nodes, render
from quereus_store.sql.traversal import walk

Condition = Callable[[NamedConstraint], bool]

_NUMBERED = re.compile(r"check_\d+\Z")
"""What ALTER TABLE ADD CHECK calls a CHECK without a name."""


@dataclass(slots=True)
class ConstraintSteps:
    """The actions of ALTER TABLE by phase."""

    early: list[str] = field(default_factory=list)
    """Drops before anything else of the migration, renames of tables apart."""
    before: list[str] = field(default_factory=list)
    """Drops before columns are added."""
    rename: list[str] = field(default_factory=list)
    drop: list[str] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    add: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    """Foreign keys to be added."""
    tags: list[str] = field(default_factory=list)


def constraint_steps(
    item: nodes.CreateTable,
    declared: TableSchema,
    actual: TableSchema,
    columns: ColumnSteps,
    policy: RenamePolicy,
    uses_dropped: Condition,
    uses_remade: Condition,
) -> ConstraintSteps:
    """Compare constraints and the primary key.

    ``columns`` says which constraints come with an added column.  ``uses_dropped`` tells of an existing
    constraint whether it refers to a relation that the migration drops: if it is to go, it has to go
    before.  ``uses_remade`` tells whether that relation is made anew: so is the constraint, then.
    """
    return _Comparison(item, declared, actual, columns, policy, uses_dropped, uses_remade).steps()


class _Comparison:
    """The constraints of one declared table against those that it has."""

    def __init__(
        self,
        item: nodes.CreateTable,
        declared: TableSchema,
        actual: TableSchema,
        columns: ColumnSteps,
        policy: RenamePolicy,
        uses_dropped: Condition,
        uses_remade: Condition,
    ) -> None:
        self.declared, self.actual = declared, actual
        self.columns, self.policy = columns, policy
        self.uses_dropped, self.uses_remade = uses_dropped, uses_remade
        self.written = _written(item)
        self.result = ConstraintSteps()
        self.gone: list[NamedConstraint] = []
        self.changed: list[NamedConstraint] = []

    def steps(self) -> ConstraintSteps:
        """Everything, the drops in an order that keeps positions right."""
        present = {fold(each.name): each for each in _constraints(self.actual) if each.named}
        created = self._by_name(present)
        self._by_body(list(present.values()))
        kind = f"constraint of table '{self.declared.name}'"
        require_hints(kind, created, (old.name for old in self.gone if old.named), self.policy)
        self.result.key += _key_step(self.declared, self.actual)
        self._drops()
        return self.result

    def _by_name(self, present: dict[str, NamedConstraint]) -> list[str]:
        """Compare what a user named, and take it out of ``present``; the names of those that are new."""
        wanted = {fold(each.name): each for each in _constraints(self.declared) if each.named}
        kind = f"constraint of table '{self.declared.name}':"
        renames = match_renames(kind, _named(wanted), _named(present), self.policy)
        along = {fold(name) for name in _names_on(self.columns.added)}
        created = []
        for key, each in wanted.items():
            old = present.pop(fold(renames.get(key, key)), None)
            if old is not None and not self._differs(each, old):
                self._keep(each, old)
                continue
            if old is not None:
                self.changed.append(old)
            elif key not in along:
                created.append(each.name)
            if key not in along:
                self._add(each)
        return created

    def _keep(self, each: NamedConstraint, old: NamedConstraint) -> None:
        name = identifier(each.name)
        if fold(old.name) != fold(each.name):
            self.result.rename.append(f"RENAME CONSTRAINT {identifier(old.name)} TO {name}")
        if not same_tags(each.tags, old.tags):
            self.result.tags.append(f"ALTER CONSTRAINT {name} SET TAGS {tag_list(each.tags)}")

    def _by_body(self, named: list[NamedConstraint]) -> None:
        """Compare what has no declared name; ``named`` are those that are there and not declared by name."""
        numbered = [
            each for each in named if isinstance(each, CheckConstraint) and _NUMBERED.match(each.name)
        ]
        self.gone += (each for each in named if each not in numbered)
        present = [each for each in _constraints(self.actual) if not each.named] + numbered
        along = _unnamed_on(self.declared, self.columns.added)
        for each in _constraints(self.declared):
            if each.named:
                continue
            if along[place := _place(each)]:
                along[place] -= 1
                continue
            old = next((old for old in present if self._same_body(each, old)), None)
            if old is not None:
                present.remove(old)
            if old is None or self._falls(old):
                self._add(each)
                self.changed += [] if old is None else [old]
        self.gone += (old for old in present if not self._goes_by_itself(old))

    def _differs(self, each: NamedConstraint, old: NamedConstraint) -> bool:
        return self._falls(old) or not self._same_body(each, old)

    def _same_body(self, each: NamedConstraint, old: NamedConstraint) -> bool:
        return _body(self.declared, each) == _body(self.actual, old)

    def _falls(self, old: NamedConstraint) -> bool:
        """Whether an existing constraint cannot outlive the migration as it is."""
        return self.uses_remade(old) or not self.columns.remade.isdisjoint(_columns_of(self.actual, old))

    def _goes_by_itself(self, old: NamedConstraint) -> bool:
        """Whether DROP COLUMN takes a constraint along, and nothing has to be said of it."""
        if old.named or isinstance(old, CheckConstraint) or self.uses_dropped(old):
            return False
        return any(self.declared.column_index(name) is None for name in _columns_of(self.actual, old))

    def _add(self, each: NamedConstraint) -> None:
        phase = self.result.references if isinstance(each, ForeignKey) else self.result.add
        node = self.written.get(fold(each.name)) if each.named else None
        phase.append(f"ADD {render(node or replace(_node(self.declared, each), name=None))}")

    def _drops(self) -> None:
        dropped = [*self.gone, *self.changed]
        positional = {each.name for each in dropped if isinstance(each, CheckConstraint) and each.positional}
        self.result.early += [_drop(each) for each in reversed(self.actual.checks) if each.name in positional]
        for each in dropped:
            if each.name in positional:
                continue
            if self.uses_dropped(each):
                self.result.early.append(_drop(each))
            else:
                (self.result.before if self._falls(each) else self.result.drop).append(_drop(each))


def _drop(constraint: NamedConstraint) -> str:
    return f"DROP CONSTRAINT {identifier(constraint.name)}"


def _constraints(table: TableSchema) -> Iterator[NamedConstraint]:
    yield from table.checks
    yield from (unique for unique in table.unique_constraints if not unique.from_index)
    yield from table.foreign_keys


def _named(constraints: dict[str, NamedConstraint]) -> list[Named]:
    return [Named(each.name, each.tags) for each in constraints.values()]


def _columns_of(table: TableSchema, constraint: NamedConstraint) -> set[str]:
    """The folded names of the columns that a constraint may be about."""
    if isinstance(constraint, CheckConstraint):
        found = (node for node in walk(constraint.expression) if isinstance(node, nodes.ColumnReference))
        return {fold(reference.column) for reference in found}
    return {fold(table.columns[position].name) for position in constraint.columns}


# --- constraints of added columns -------------------------------------------------------------------------

_Place = tuple[type[NamedConstraint], object]


def _place(constraint: NamedConstraint) -> _Place:
    """What a constraint without a name has in common with the clause on a column that makes it."""
    if isinstance(constraint, CheckConstraint):
        return CheckConstraint, constraint.expression
    return type(constraint), constraint.columns


def _unnamed_on(table: TableSchema, added: Iterable[nodes.ColumnDefinition]) -> Counter[_Place]:
    """How many constraints without a name come with these columns, by their place."""
    found: Counter[_Place] = Counter()
    for definition in added:
        columns = (table.column_index(definition.name),)
        for constraint in definition.constraints:
            match constraint:
                case nodes.CheckConstraint(name=None, expression=expression):
                    found[CheckConstraint, expression] += 1
                case nodes.ColumnUnique(name=None):
                    found[UniqueConstraint, columns] += 1
                case nodes.ColumnReferences(name=None):
                    found[ForeignKey, columns] += 1
    return found


def _names_on(added: Iterable[nodes.ColumnDefinition]) -> Iterator[str]:
    return (each.name for definition in added for each in definition.constraints if each.name is not None)


def _written(item: nodes.CreateTable) -> dict[str, nodes.Constraint]:
    """The constraints with a name as they are declared, those on columns as what they are on the table."""
    found: dict[str, nodes.Constraint] = {
        fold(each.name): each for each in item.constraints if each.name is not None
    }
    for column in item.columns:
        for each in column.constraints:
            if each.name is None:
                continue
            on, tags = (column.name,), each.tags
            match each:
                case nodes.CheckConstraint():
                    found[fold(each.name)] = each
                case nodes.ColumnUnique():
                    unique = nodes.UniqueConstraint(on, each.conflict_action, name=each.name, tags=tags)
                    found[fold(each.name)] = unique
                case nodes.ColumnReferences():
                    key = nodes.ForeignKeyConstraint(on, each.reference, name=each.name, tags=tags)
                    found[fold(each.name)] = key
    return found


# --- bodies -----------------------------------------------------------------------------------------------


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


_USUAL = (nodes.ReferentialAction.RESTRICT, nodes.ReferentialAction.NO_ACTION)
"""What a foreign key does anyway; the second is another word for the first."""


def _unless_usual(action: nodes.ReferentialAction | None) -> nodes.ReferentialAction | None:
    return None if action in _USUAL else action


def _body(table: TableSchema, constraint: NamedConstraint) -> nodes.Node:
    """What a constraint says, without name and tags, its identifiers in one case."""
    return folded(replace(_node(table, constraint), name=None, tags=()))


def _key_step(declared: TableSchema, actual: TableSchema) -> Iterator[str]:
    if _key_of(declared) != _key_of(actual):
        parts = ", ".join(
            identifier(declared.columns[part.column].name) + (" DESC" if part.descending else "")
            for part in declared.primary_key.parts
        )
        yield f"ALTER PRIMARY KEY ({parts})"


def _key_of(table: TableSchema) -> list[tuple[str, bool]]:
    return [(fold(table.columns[part.column].name), part.descending) for part in table.primary_key.parts]
