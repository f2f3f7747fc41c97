"""The parent's side: what refuses a change of referenced rows, and what the change brings about.

RESTRICT keys are probed before the write: the children of all rows of the
statement are looked up together.  The other actions follow the write as ordinary
DELETEs and UPDATEs of the children, which may have children of their own: they
are worked off level by level, so that a chain of any length needs no recursion, and
cycles end when no rows are left.

A table that refers to itself is judged as if its rows were changed one by one:
a row may go after its children, not before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.dml.checks import key_of
from quereus_store.execute.dml.foreign_keys.children import key_getter
from quereus_store.execute.dml.foreign_keys.follow_ups import FollowUp
from quereus_store.execute.dml.foreign_keys.lookup import Key, KeyLookup
from quereus_store.execute.dml.foreign_keys.references import Reference, references_to
from quereus_store.execute.dml.generation import Workshop
from quereus_store.execute.dml.runtime import MutationRuntime
from quereus_store.execute.dml.violations import restricted, restricted_row
from quereus_store.modules.contract import Row
from quereus_store.schema.objects import Operation, ReferentialAction, TableSchema, fold

_MOST_ROUNDS = 100_000
"""Deletes end when no rows are left; updates that chase each other for so long never do."""

_REFUSING = frozenset({ReferentialAction.RESTRICT, ReferentialAction.NO_ACTION})


@dataclass(frozen=True, slots=True)
class Affected:
    """A parent row whose referenced key goes away, and the key it has afterwards (None: none)."""

    position: int
    before: Key
    after: Key | None


class ParentKey:
    """One foreign key that refers to the table being changed."""

    def __init__(self, workshop: Workshop, reference: Reference, operation: Operation) -> None:
        key = reference.key
        self.reference = reference
        self.operation = operation
        self.action = key.on_delete if operation is Operation.DELETE else key.on_update
        self._parent_key = key_getter(reference.parent_columns)
        self._workshop = workshop
        self._lookup: KeyLookup | None = None
        self._follow_up = (
            None if self.action in _REFUSING else FollowUp(workshop, reference, operation, self.action)
        )

    @property
    def refuses(self) -> bool:
        """Whether children forbid the change."""
        return self._follow_up is None

    def affected(self, old: Sequence[Row], new: Sequence[Row] | None) -> list[Affected]:
        """The rows whose key, free of NULL, goes away by this change; exactly equal values are no change."""
        getter = self._parent_key
        if new is None:
            return [
                Affected(position, key, None)
                for position, row in enumerate(old)
                if None not in (key := getter(row))
            ]
        return [
            Affected(position, key, after)
            for position, (row, then) in enumerate(zip(old, new, strict=True))
            if None not in (key := getter(row)) and not _same(key, after := getter(then))
        ]

    def children(self, transaction: Any, affected: Sequence[Affected]) -> list[list[Row]]:
        """For each affected row its children."""
        if self._lookup is None:
            self._lookup = child_lookup(self._workshop, self.reference)
        return self._lookup.find(transaction, [row.before for row in affected])

    def refuse(self, transaction: Any, old: Sequence[Row], new: Sequence[Row] | None) -> Key | None:
        """The first key that a child forbids to go; None if all may."""
        affected = self.affected(old, new)
        if not affected:
            return None
        found = self.children(transaction, affected)
        if not any(found):
            return None
        if self.reference.self_referencing:
            return self._refused_among_themselves(affected, found, old, new)
        return next(row.before for row, children in zip(affected, found, strict=True) if children)

    def _refused_among_themselves(
        self,
        affected: Sequence[Affected],
        found: Sequence[Sequence[Row]],
        old: Sequence[Row],
        new: Sequence[Row] | None,
    ) -> Key | None:
        """The rows are changed in their order: a child that comes before its parent is no obstacle."""
        table = self.reference.child
        places = {_hashable(key_of(table, row)): position for position, row in enumerate(old)}
        child_key = key_getter(self.reference.child_columns)
        for row, children in zip(affected, found, strict=True):
            for child in children:
                place = places.get(_hashable(key_of(table, child)))
                if place is None or place > row.position:
                    return row.before
                if new is not None and child_key(new[place]) == row.before:
                    return row.before
        return None

    def follow(
        self,
        runtime: MutationRuntime,
        old: Sequence[Row],
        new: Sequence[Row] | None,
    ) -> None:
        """Carry the action out on the children of rows that have been changed."""
        assert self._follow_up is not None
        affected = self.affected(old, new)
        if affected:
            self._follow_up.run(runtime, affected, self.children(runtime.transaction, affected))


@dataclass(frozen=True, slots=True)
class ParentSide:
    """All foreign keys that refer to a table, for one operation on it."""

    table: TableSchema
    operation: Operation
    keys: tuple[ParentKey, ...]
    modules: frozenset[str]
    cascaded: bool

    @property
    def judged_together(self) -> bool:
        """Whether a refusal is reported for the statement as a whole."""
        return self.cascaded or all(key.refuses and not key.reference.self_referencing for key in self.keys)

    def before(self, runtime: MutationRuntime, old: Sequence[Row], new: Sequence[Row] | None = None) -> None:
        """Raise CONSTRAINT if a child forbids the change."""
        for key in self.keys:
            if key.refuses:
                refused = key.refuse(runtime.transaction, old, new)
                if refused is not None:
                    raise self.refusal(key.reference, refused)

    def refusal(self, reference: Reference, values: Key) -> Error:
        """The error for a key that a child forbids to go."""
        if self.judged_together:
            verb = self.operation.name
            return restricted(verb, reference.parent, reference.child, reference.key, values)
        return restricted_row(reference.child, reference.key, reference.parent_names(), values)

    def after(self, runtime: MutationRuntime, old: Sequence[Row], new: Sequence[Row] | None = None) -> None:
        """Carry out the actions that follow a change, and those that follow from them."""
        queue = runtime.follow_ups
        if queue is not None:
            queue.append((self, old, new))
            return
        changes = runtime.transaction.changes
        logged: list[list[Any]] = []
        start, rounds = len(changes), 0
        level: list[tuple[ParentSide, Sequence[Row], Sequence[Row] | None]] = [(self, old, new)]
        try:
            while level:
                following: list[Any] = []
                runtime.follow_ups = following
                for side, before, then in level:
                    rounds += then is not None
                    if rounds > _MOST_ROUNDS:
                        raise sql_error(
                            StatusCode.CONSTRAINT,
                            f"Foreign key cascade cycle detected involving table '{side.table.name}'",
                        )
                    for key in side.keys:
                        if not key.refuses:
                            key.follow(runtime, before, then)
                logged.append(changes[start:])
                del changes[start:]
                level = following
        finally:
            runtime.follow_ups = None
        # In the log children come before their parents, however deep the cascade went.
        for entries in reversed(logged):
            changes += entries


def parent_side(
    workshop: Workshop,
    table: TableSchema,
    operation: Operation,
    changed: Iterable[int],
    cascaded: bool,
) -> ParentSide | None:
    """The keys that a DELETE, or an UPDATE of the ``changed`` columns, has to mind; None without any."""
    changed = frozenset(changed)
    keys = tuple(
        [
            ParentKey(workshop, reference, operation)
            for reference in references_to(workshop.context.catalog, table)
            if operation is Operation.DELETE or changed & set(reference.parent_columns)
        ]
    )
    if not keys:
        return None
    return ParentSide(table, operation, keys, _modules(workshop, keys), cascaded)


def _modules(workshop: Workshop, keys: Sequence[ParentKey]) -> frozenset[str]:
    """The modules whose tables actions may write, those of grandchildren included."""
    modules: set[str] = set()
    seen: set[tuple[str, str]] = set()
    pending = [key.reference.child for key in keys if not key.refuses]
    while pending:
        child = pending.pop()
        if (child.schema, child.name) in seen:
            continue
        seen.add((child.schema, child.name))
        modules.add(fold(child.module))
        pending += [
            reference.child
            for reference in references_to(workshop.context.catalog, child)
            if {reference.key.on_delete, reference.key.on_update} - _REFUSING
        ]
    return frozenset(modules)


def child_lookup(workshop: Workshop, reference: Reference) -> KeyLookup:
    """Finds children by the values of a parent's columns."""
    parent = reference.parent
    return KeyLookup(
        workshop,
        reference.child,
        reference.child_columns,
        [parent.columns[column] for column in reference.parent_columns],
        probes_left=True,
    )


def _same(one: Key, other: Key) -> bool:
    """Whether two keys are stored alike: ``1`` and ``true`` are not, nor texts that differ in case."""
    return one == other and list(map(type, one)) == list(map(type, other))


def _hashable(key: Key) -> Any:
    try:
        hash(key)
    except TypeError:
        return repr(key)
    return key
