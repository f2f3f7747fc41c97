"""Groups whose aggregates are kept as states in memory, because what is stored does not tell them.

The average of reals, or an aggregate that a HAVING hides, cannot be brought up to date from the
stored row.  So the states of all groups are kept beside the view: made by one pass over
the sources when first needed, then changed row by row.  They are exact, so the values are
those that the body gives.

In the store they are also noted beside the view (:mod:`.notes`): then the next process need not make them,
and reads those of the groups that it touches.

The states belong to the last committed rows, plus what the running transaction has done to
them.  Each step notes what it replaced and queues a note with the transaction's commit.
What a rollback cuts off that queue has not happened, and is taken back when the states are
used next.  A commit by another process makes them worthless: they are made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quereus_store.execute.engine import Engine
from quereus_store.functions.registry import Algebra, guarded_aggregate
from quereus_store.modules.contract import Row, VersionedTable
from quereus_store.plan import nodes as plans
from quereus_store.plan.expressions import AggregateCall, reference
from quereus_store.schema.objects import TableSchema
from quereus_store.types.collations import honours_collation
from quereus_store.types.sortkeys import order_key
from quereus_store.views.body import TableKey
from quereus_store.views.deltas.grouping import Grouping, Reader
from quereus_store.views.deltas.linear import Compile, Terms, estimate_of
from quereus_store.views.deltas.notes import StateNotes, Unreadable
from quereus_store.views.deltas.restriction import Restrictor, Target
from quereus_store.views.deltas.state_steps import adding_function, row_function
from quereus_store.views.programs import Program
from quereus_store.views.rows import Delta, Difference, RowSet, cells, is_plain

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import Transaction

Group = tuple[Any, ...]
States = tuple[Any, ...]
"""The number of rows of a group, the state of each aggregate, the row that these give (None: not known)."""


def algebras_of(engine: Engine, calls: Sequence[AggregateCall]) -> list[Algebra] | None:
    """An algebra for each aggregate; None where one has none that can be used here."""
    found = []
    for call in calls:
        algebra = _algebra(engine, call)
        if algebra is None or call.distinct or call.order or call.function.ordered:
            return None
        found.append(algebra)
    return found


def _algebra(engine: Engine, call: AggregateCall) -> Algebra | None:
    function = guarded_aggregate(call.function, call.position)
    algebra = function.algebra
    if algebra is None or not algebra.shares_state:
        return None
    if function.collated and function.keyed_algebra is not None:
        argument = call.arguments[function.compared]
        if not is_plain(argument.type) or (honours_collation(argument.type) and call.using != "BINARY"):
            return None
        recipe = order_key(argument.type, argument.nullable, engine.collation(call.using))
        return function.keyed_algebra(recipe.function)
    return algebra if algebra.remove is not None else None


@dataclass(slots=True)
class _Step:
    """What one statement replaced: the states that groups had before; ``everything`` if all were new."""

    owner: GroupStates
    replaced: dict[Group, States | None] = field(default_factory=dict)
    everything: bool = False
    after: list[int] | None = None

    def __call__(self, transaction: Transaction) -> None:
        """Runs when the transaction is about to commit: the step was not taken back."""
        self.after = self.owner.committing(transaction)


class GroupStates:
    """The states of all groups of one view, as the current writer sees them.

    ``complete``: there are no groups but these.  Else a group that is not among them is looked for in the
    notes; one that is gone stands there as None.
    """

    def __init__(self, engine: Engine, sources: Iterable[TableSchema]) -> None:
        self.groups: dict[Group, States | None] | None = None
        self.complete = True
        self.notes: StateNotes | None = None
        self._noted = False
        self._notes_due: Transaction | None = None
        self._steps: list[tuple[Transaction, int, _Step]] = []
        self._handles = [
            (table.module, handle)
            for table in sources
            if isinstance(handle := engine.table(table), VersionedTable)
        ]
        self._versions: list[int] = []

    def current(self, transaction: Transaction) -> dict[Group, States | None] | None:
        """The states that go with what the transaction has seen so far; None where there are none."""
        while self._steps:
            owner, place, step = self._steps[-1]
            if owner.committed and step.after is not None:
                self._versions = step.after
                self._steps.clear()
                break
            if (
                owner is transaction
                and place < len(transaction.deferred)
                and transaction.deferred[place] is step
            ):
                return self.groups
            self._steps.pop()
            self._undo(step)
        committed = [handle.version(transaction.snapshot(module)) for module, handle in self._handles]
        if self._versions != committed:
            self._versions = committed
            self.groups = None
        if self.groups is None:
            self._noted = False
        if self.groups is None and self.notes is not None and self.notes.are_current(transaction):
            self.groups, self.complete, self._noted = {}, False, True
        return self.groups

    def get(self, transaction: Transaction, group: Group) -> States | None:
        """The states of one group; None where it is none."""
        if self.groups is None:
            return None
        states = self.groups.get(group)
        if states is None and not self.complete:
            found = self.having(transaction, (group,))
            states = None if found is None else found.get(group)
        return states

    def having(self, transaction: Transaction, groups: Iterable[Group]) -> dict[Group, States | None] | None:
        """All that are known, these among them if there are such; None where that cannot be said."""
        known = self.groups
        if known is None or self.complete:
            return known
        missing = [group for group in groups if group not in known]
        if missing:
            assert self.notes is not None
            try:
                found = self.notes.read(transaction, missing)
            except Unreadable:
                self.forget()
                return None
            for group in missing:
                known[group] = found.get(group)
        return known

    def committing(self, transaction: Transaction) -> list[int]:
        """A step has come to the commit: the sources' counters after it; the notes are due once."""
        if self.notes is not None and self._notes_due is not transaction:
            self._notes_due = transaction
            transaction.deferred.append(self._write_notes)
        return self._versions_in(transaction)

    def _write_notes(self, transaction: Transaction) -> None:
        self._notes_due = None
        while self._steps and self._steps[-1][0] is transaction and self._steps[-1][2].after is None:
            self._undo(self._steps.pop()[2])
        steps = [step for owner, _, step in self._steps if owner is transaction]
        if self.groups is None or self.notes is None or not steps:
            return
        if self._noted and not any(step.everything for step in steps):
            changed = {group: self.groups.get(group) for step in steps for group in step.replaced}
            self.notes.write(transaction, changed, everything=False)
        elif self.complete:
            self._noted = self.notes.write(transaction, self.groups, everything=True)

    def _versions_in(self, transaction: Transaction) -> list[int]:
        return [handle.version(transaction.reader(module)) for module, handle in self._handles]

    def _undo(self, step: _Step) -> None:
        if step.after is not None:
            self._noted = False  # a commit that failed took its notes with it
        if step.everything or self.groups is None:
            self.groups = None
            return
        for group, states in step.replaced.items():
            if states is None and self.complete:
                self.groups.pop(group, None)
            else:
                self.groups[group] = states

    def fill(self, transaction: Transaction, groups: dict[Group, States]) -> None:
        """Take states that were made from everything."""
        self.groups = dict(groups)
        self.complete = True
        self._note(transaction, _Step(self, everything=True))

    def change(self, transaction: Transaction, changed: Mapping[Group, States | None]) -> None:
        """Replace the states of some groups; None for a group that is gone."""
        groups = self.groups
        assert groups is not None
        step = _Step(self, {group: groups.get(group) for group in changed})
        for group, states in changed.items():
            if states is None and self.complete:
                groups.pop(group, None)
            else:
                groups[group] = states
        self._note(transaction, step)

    def change_one(self, transaction: Transaction, group: Group, old: States, new: States) -> None:
        """Replace the states of one group that there is."""
        assert self.groups is not None
        self.groups[group] = new
        self._note(transaction, _Step(self, {group: old}))

    def _note(self, transaction: Transaction, step: _Step) -> None:
        self._steps.append((transaction, len(transaction.deferred), step))
        transaction.deferred.append(step)

    def forget(self) -> None:
        """Something changed the view past these states, or they cannot be read."""
        self.groups = None
        self._noted = False
        self._steps.clear()


class _Again(Exception):
    """A state cannot give a value up: the group has to be made anew."""


class Stateful:
    """Brings groups up to date by their states."""

    name = "states"

    def __init__(
        self,
        compile_plan: Compile,
        number: Callable[[], int],
        grouping: Grouping,
        algebras: Sequence[Algebra],
        moved: Sequence[plans.TableScan],
        states: GroupStates,
        rows: RowSet,
        points: Callable[[Transaction, list[Group]], list[Row | None]],
    ) -> None:
        self._terms = Terms(compile_plan, grouping.arguments, moved)
        self._compile = compile_plan
        self._number = number
        self._grouping = grouping
        self._algebras = list(algebras)
        self._finishers = [algebra.finish for algebra in algebras]
        self._states = states
        self._rows = rows
        self._points = points
        self._width = grouping.width
        self._key = cells(grouping.key)
        self._readers = grouping.readers(whole=True)
        self._adders = [
            _adder(algebra, read, column)
            for algebra, read, column in zip(
                algebras, self._readers, grouping.readers(whole=False), strict=True
            )
        ]
        self._finish = compile_plan(grouping.finish)
        self._row_of = row_function(grouping, self._finishers)
        self._add_one = None if self._row_of is None else adding_function(grouping, algebras, self._finishers)
        self._all: Program | None = None
        self._some: dict[tuple[tuple[bool, ...], float], Program] = {}

    def difference(
        self, session: Session, transaction: Transaction, deltas: Mapping[TableKey, Delta]
    ) -> Difference:
        """The rows of all touched groups, by their states."""
        groups = self._states.current(transaction)
        if groups is not None and self._add_one is not None and self._terms.single:
            removed, added = self._terms.sides(session, transaction, deltas)
            if not removed and len(added) == 1:
                found = self._with_one(transaction, added[0])
                if found is not None:
                    return found
            signed: Iterable[tuple[int, list[Row]]] = ((-1, removed), (1, added))
        else:
            signed = self._terms.rows(session, transaction, deltas)
        touched = self._grouping.split(signed)
        if groups is not None:
            groups = self._states.having(transaction, touched)
        if not touched:
            self.unchanged(transaction)
            return Difference()
        if groups is None:
            self._states.fill(transaction, self._make(session, transaction))
            groups = self._states.groups or {}
        else:
            self._states.change(transaction, self._changed(session, transaction, groups, touched))
        wanted = [
            (*group, *[finish(state) for finish, state in zip(self._finishers, states[1:-1], strict=True)])
            for group in touched
            if (states := groups.get(group)) is not None
        ]
        rows = self._finish.rows(session, transaction, [wanted]) if wanted else []
        stored = self._points(transaction, list(dict.fromkeys(map(self._key, touched))))
        return self._rows.difference([row for row in stored if row is not None], rows)

    def unchanged(self, transaction: Transaction) -> None:
        """What the sources went through has changed no row: the states hold after it, too."""
        if self._states.current(transaction) is not None:
            self._states.change(transaction, {})

    def _with_one(self, transaction: Transaction, row: Row) -> Difference | None:
        """One more row for a group that exists, where the states alone tell the stored row; else None."""
        group = row[: self._width]
        states = self._states.get(transaction, group)
        if states is None:
            return None
        assert self._add_one is not None
        assert self._row_of is not None
        new = self._add_one(states, row, group)
        self._states.change_one(transaction, group, states, new)
        before, after = states[-1] or self._row_of(group, states), new[-1]
        if before == after and self._rows.identity(before) == self._rows.identity(after):
            return Difference()
        return Difference([], [], [before], [after])

    # -- states ------------------------------------------------------------------

    def _changed(
        self,
        session: Session,
        transaction: Transaction,
        groups: Mapping[Group, States | None],
        touched: Mapping[Group, tuple[list[Row], list[Row]]],
    ) -> dict[Group, States | None]:
        changed: dict[Group, States | None] = {}
        again: list[Group] = []
        for group, (added, removed) in touched.items():
            try:
                changed[group] = self._step(groups.get(group), added, removed)
            except _Again:
                again.append(group)
        if again:
            fresh = self._make(session, transaction, again)
            changed.update({group: fresh.get(group) for group in again})
        return changed

    def _step(self, states: States | None, added: list[Row], removed: list[Row]) -> States | None:
        if states is None:
            states = self._start()
        count = states[0] + len(added) - len(removed)
        if count == 0 and self._width:
            return None
        new: list[Any] = [count]
        for algebra, read, add, state in zip(
            self._algebras, self._readers, self._adders, states[1:-1], strict=True
        ):
            if removed:
                state = _without(algebra, state, read(removed))
            new.append(add(state, added))
        new.append(None)
        return tuple(new)

    def _start(self) -> States:
        """The states of a group without rows."""
        return (0, *[algebra.start() for algebra in self._algebras], None)

    def _make(
        self, session: Session, transaction: Transaction, only: list[Group] | None = None
    ) -> dict[Group, States]:
        """The states of all groups, or of some, from the sources as they are."""
        if only is None or not self._width:
            if self._all is None:
                self._all = self._compile(self._grouping.arguments)
            found = self._all.rows(session, transaction)
        else:
            found = self._rows_of(session, transaction, only)
        made: dict[Group, States] = {}
        for group, added in self._grouping.gathered(found).items():
            states = self._step(None, added, [])
            if states is not None:
                made[group] = states
        if not self._width and () not in made:
            made[()] = self._start()
        return made

    def _rows_of(self, session: Session, transaction: Transaction, groups: list[Group]) -> list[Row]:
        patterns: dict[tuple[bool, ...], list[Group]] = {}
        for group in groups:
            patterns.setdefault(tuple([cell is None for cell in group]), []).append(group)
        found: list[Row] = []
        for pattern, members in patterns.items():
            estimate = estimate_of(len(members))
            program = self._some.get((pattern, estimate))
            if program is None:
                program = self._some[pattern, estimate] = self._restricted(pattern, estimate)
            found += program.rows(session, transaction, [members])
        return found

    def _restricted(self, pattern: tuple[bool, ...], estimate: float) -> Program:
        targets = [
            Target(reference(column), "BINARY", column.type, is_null)
            for column, is_null in zip(self._grouping.arguments.columns, pattern, strict=False)
        ]
        restrictor = Restrictor(0, estimate, self._number)
        return self._compile(restrictor.restricted(self._grouping.arguments, targets))

    @property
    def lines(self) -> list[str]:
        """The plan that makes groups and arguments of changed rows."""
        return self._terms.lines


_FEW = 16
"""Rows up to which they are added one by one."""


def _adder(algebra: Algebra, read: Reader, column: Reader) -> Callable[[Any, list[Row]], Any]:
    """A function of a state and argument rows that gives the state with all of them."""
    add, total, merge = algebra.add, algebra.total, algebra.merge

    def one_by_one(state: Any, rows: list[Row]) -> Any:
        for arguments in read(rows):
            state = add(state, arguments)
        return state

    if total is None or merge is None:
        return one_by_one

    def at_once(state: Any, rows: list[Row]) -> Any:
        return one_by_one(state, rows) if len(rows) <= _FEW else merge(state, total(column(rows)))

    return at_once


def _without(algebra: Algebra, state: Any, values: list[Any]) -> Any:
    if algebra.remove is None:
        # An extreme: any value but itself may go.
        merge = algebra.merge
        assert merge is not None
        for arguments in values:
            if arguments[0] is not None:
                alone = algebra.add(algebra.start(), arguments)
                if merge(alone, state)[0] == alone[0]:
                    raise _Again
        return state
    for arguments in values:
        state = algebra.remove(state, arguments)
    return state
