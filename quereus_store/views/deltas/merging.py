"""Adding to and taking from stored aggregates: the cost of a change does not grow with its group.

The changed rows give, for each touched group, the arguments that came and went.  What is
stored tells the old value of each aggregate; old value and changes give the new one.  Where
they do not (a minimum goes, a sum of nothing is NULL), the group is recomputed.

==========  ============================================================================
aggregate   is merged when
==========  ============================================================================
count       always
sum         its argument is an integer; if that may be NULL, taking a number out needs
            ``count`` of the same argument in the view
min, max    equal values look alike; taking the extreme itself out recomputes the group
avg         the view has ``sum`` and ``count`` of the same integer argument
others      they declare an algebra that can go on from a stored value
==========  ============================================================================

Chapter: views-and-maintained-tables, section 6 (delta arm); functions, section 16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from quereus_store.functions.aggregates.counting import COUNT_ROWS, COUNT_VALUES
from quereus_store.functions.aggregates.extremes import MAX, MIN
from quereus_store.functions.aggregates.sums import SUM
from quereus_store.functions.registry import AggregateFunction, Algebra, guarded_aggregate
from quereus_store.modules.contract import Row
from quereus_store.plan import nodes as plans
from quereus_store.plan.expressions import AggregateCall, BoundExpression
from quereus_store.types import DATE, DATETIME, INTEGER, REAL, TEXT, TIME
from quereus_store.types.collations import honours_collation
from quereus_store.views.body import TableKey
from quereus_store.views.deltas.grouping import Grouping
from quereus_store.views.deltas.keyed import Keyed, TooMuch
from quereus_store.views.deltas.linear import Compile, Terms
from quereus_store.views.deltas.stepping import Step, step_of
from quereus_store.views.programs import Program
from quereus_store.views.rows import Delta, Difference, RowSet, cells

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import Transaction


class Recompute(Exception):
    """The stored values and the changes do not tell the new values of a group."""


class Changes(NamedTuple):
    """What one aggregate is given: its arguments that came and that went."""

    added: list[Any]
    removed: list[Any]


Merge = Callable[[Row | None, Sequence[Changes], "list[Any]"], Any]
"""From the stored row (None for a new group), the changes of all aggregates and the values found so
far, the new value; raises Recompute."""


# --- aggregates -------------------------------------------------------------------------------------------


def _merge_count(place: int, slot: int) -> Merge:
    def merge(stored: Row | None, changes: Sequence[Changes], values: list[Any]) -> int:
        own = changes[place]
        old = 0 if stored is None else stored[slot]
        return int(old) + _present(own.added) - _present(own.removed)

    return merge


def _present(values: list[Any]) -> int:
    return len(values) - values.count(None)


def _numbers(values: list[Any]) -> list[Any]:
    return values if None not in values else [value for value in values if value is not None]


def _merge_sum(place: int, slot: int, count: int | None) -> Merge:
    """``count`` is the aggregate, earlier in the list, that counts the same numbers."""

    def merge(stored: Row | None, changes: Sequence[Changes], values: list[Any]) -> Any:
        own = changes[place]
        added, removed = _numbers(own.added), _numbers(own.removed)
        old = None if stored is None else stored[slot]
        if removed and count is None:
            raise Recompute
        if count is not None and values[count] == 0:
            return None
        if old is None and not added:
            return None
        return (old or 0) + sum(added) - sum(removed)

    return merge


def _merge_extreme(place: int, slot: int, choose: Callable[..., Any]) -> Merge:
    def merge(stored: Row | None, changes: Sequence[Changes], values: list[Any]) -> Any:
        own = changes[place]
        added, removed = _numbers(own.added), _numbers(own.removed)
        old = None if stored is None else stored[slot]
        best = choose(added) if added else None
        if removed and old is not None and choose(old, choose(removed)) == choose(removed):
            # The extreme goes, unless something came that is at least as extreme.
            if best is None or choose(best, old) != best:
                raise Recompute
            return best
        if old is None or best is None:
            return best if old is None else old
        return choose(old, best)

    return merge


def _merge_average(total: int, count: int, combine: Callable[..., Any]) -> Merge:
    return lambda stored, changes, values: combine(values[total], values[count])


def _merge_algebra(place: int, slot: int, algebra: Algebra, single: bool) -> Merge:
    """``single``: the changes are bare arguments, and not tuples of them."""
    decode = algebra.decode
    assert decode is not None

    def wrapped(values: list[Any]) -> list[Any]:
        return [(value,) for value in values] if single else values

    def merge(stored: Row | None, changes: Sequence[Changes], values: list[Any]) -> Any:
        own = changes[place]
        state = algebra.start() if stored is None else decode(stored[slot])
        if own.removed:
            if algebra.remove is None or not algebra.decode_exact:
                raise Recompute
            for arguments in wrapped(own.removed):
                state = algebra.remove(state, arguments)
        for arguments in wrapped(own.added):
            state = algebra.add(state, arguments)
        return algebra.finish(state)

    return merge


_ORDERED_TYPES = frozenset({INTEGER, TEXT, DATE, TIME, DATETIME, REAL})
_EXTREMES = ((MIN, min), (MAX, max))
# Of zeros that are equal and look different the aggregates give 0.0.
_REAL_EXTREMES = (
    (MIN, lambda *values: min(*values) + 0.0),
    (MAX, lambda *values: max(*values) + 0.0),
)


# --- the plan ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MergePlan:
    """How the aggregates of a grouping are merged.

    ``merges`` are in an order in which each finds the values that it needs, each with the
    place of its aggregate; ``counter`` is the aggregate that counts the rows of a group.  ``step``
    adds one row to a stored group.
    """

    merges: tuple[tuple[int, Merge], ...]
    counter: int | None
    step: Step | None


def merging_of(grouping: Grouping) -> MergePlan | None:
    """The way to merge changes into stored groups; None where what is stored does not tell enough."""
    if grouping.filtered:
        return None
    merges = _Merges(grouping.aggregates, grouping.slots)
    if not merges.complete:
        return None
    return MergePlan(tuple(merges.found.items()), merges.counter, step_of(grouping, merges.averages))


class _Merges:
    """Finds a merge for every aggregate; those that others build on first."""

    def __init__(self, calls: Sequence[AggregateCall], slots: Sequence[int | None]) -> None:
        self._calls = calls
        self._slots = slots
        self.found: dict[int, Merge] = {}
        self.averages: dict[int, tuple[int, int, Callable[..., Any]]] = {}
        self.counter = self._find(COUNT_ROWS, (), None)
        for pass_over in (self._count, self._sum, self._other):
            for place, call in enumerate(calls):
                if place not in self.found and not call.distinct and not call.order:
                    pass_over(place, call)

    @property
    def complete(self) -> bool:
        """Whether every aggregate has one."""
        return len(self.found) == len(self._calls)

    def _find(
        self,
        function: AggregateFunction,
        arguments: tuple[BoundExpression, ...],
        condition: BoundExpression | None,
    ) -> int | None:
        """A stored aggregate of that function, over these arguments and this filter."""
        for place, call in enumerate(self._calls):
            if (
                call.function == function
                and call.arguments == arguments
                and call.filter == condition
                and not call.distinct
                and self._slots[place] is not None
            ):
                return place
        return None

    def _counter_of(self, call: AggregateCall) -> int | None:
        """The aggregate that counts the numbers which a sum adds up."""
        if not call.arguments[0].nullable:
            every = self._find(COUNT_ROWS, (), call.filter)
            if every is not None:
                return every
        return self._find(COUNT_VALUES, call.arguments, call.filter)

    def _count(self, place: int, call: AggregateCall) -> None:
        slot = self._slots[place]
        if call.function in (COUNT_ROWS, COUNT_VALUES) and slot is not None:
            self.found[place] = _merge_count(place, slot)

    def _sum(self, place: int, call: AggregateCall) -> None:
        slot = self._slots[place]
        if call.function != SUM or slot is None or call.arguments[0].type is not INTEGER:
            return
        self.found[place] = _merge_sum(place, slot, self._counter_of(call))

    def _other(self, place: int, call: AggregateCall) -> None:
        function, slot = call.function, self._slots[place]
        if function.collated:
            argument = call.arguments[0]
            binary = call.using == "BINARY" or not honours_collation(argument.type)
            if slot is not None and argument.type in _ORDERED_TYPES and binary:
                for known, choose in _REAL_EXTREMES if argument.type is REAL else _EXTREMES:
                    if function == known:
                        self.found[place] = _merge_extreme(place, slot, choose)
            return
        algebra = function.algebra
        if algebra is None:
            return
        if algebra.decompose is not None:
            total = self._find(SUM, call.arguments, call.filter)
            count = self._counter_of(call)
            if total in self.found and count in self.found and total is not None and count is not None:
                combine = algebra.decompose.combine
                self.averages[place] = (total, count, combine)
                self.found[place] = _merge_average(total, count, combine)
            return
        if algebra.decode is not None and slot is not None and function != SUM and not function.ordered:
            algebra = guarded_aggregate(function, call.position).algebra or algebra
            self.found[place] = _merge_algebra(place, slot, algebra, len(call.arguments) == 1)


# --- the strategy -----------------------------------------------------------------------------------------


class Merging:
    """Merges changes into stored groups; recomputes the groups where that does not do."""

    name = "merge"

    def __init__(
        self,
        compile_plan: Compile,
        grouping: Grouping,
        plan: MergePlan,
        moved: Sequence[plans.TableScan],
        keyed: Keyed | None,
        rows: RowSet,
        points: Callable[[Transaction, list[tuple[Any, ...]]], list[Row | None]],
    ) -> None:
        self.terms = Terms(compile_plan, grouping.arguments, moved)
        self._grouping = grouping
        self._compile = compile_plan
        self._plan = plan
        self._keyed = keyed
        self._rows = rows
        self._points = points
        self._finish: Program | None = None
        self._width = grouping.width
        self._key = cells(grouping.key)
        self._name = None if None in grouping.shown else cells(grouping.shown)  # type: ignore[arg-type]
        self._readers = grouping.readers(whole=False)
        self._output = None if grouping.outputs is None else cells(grouping.outputs)

    def difference(
        self, session: Session, transaction: Transaction, deltas: Mapping[TableKey, Delta]
    ) -> Difference:
        """The new rows of all touched groups."""
        difference = Difference()
        step = self._plan.step
        if self.terms.single:
            removed, added = self.terms.sides(session, transaction, deltas)
            if step is not None and added and not removed:
                added = self._stepped(transaction, step, added, difference)
                if not added:
                    return difference
            signed = [(-1, removed), (1, added)]
        else:
            signed = list(self.terms.rows(session, transaction, deltas))
        groups = self._grouping.split(signed)
        names = list(groups)
        keys = list(map(self._key, names))
        found = self._points(transaction, keys)
        old: list[Row | None] = []
        wanted: list[Row] = []
        again: list[tuple[Any, ...]] = []
        moving = () if self._grouping.whole_key else self._moving(names, keys, found)
        for name, key, stored in zip(names, keys, found, strict=True):
            if key in moving:
                again.append(key)
                continue
            added, removed = groups[name]
            try:
                values = self._values(stored, added, removed)
            except Recompute:
                again.append(key)
                continue
            if values is None:
                if stored is not None:
                    difference.deleted.append(stored)
            else:
                old.append(stored)
                wanted.append((*name, *values))
        self._write(session, transaction, difference, old, wanted)
        if again:
            self._recompute(session, transaction, difference, list(dict.fromkeys(again)))
        return difference

    def _moving(
        self, names: list[tuple[Any, ...]], keys: list[tuple[Any, ...]], found: list[Row | None]
    ) -> set[tuple[Any, ...]]:
        """The stored keys that pass from one group to another."""
        if self._name is None:
            return set(keys)
        owner: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        moving = set()
        for name, key, stored in zip(names, keys, found, strict=True):
            if owner.setdefault(key, name if stored is None else self._name(stored)) != name:
                moving.add(key)
        return moving

    def _stepped(
        self, transaction: Transaction, step: Step, rows: list[Row], difference: Difference
    ) -> list[Row]:
        """Add rows to the groups that exist, one by one; gives the rows of the others."""
        if len(rows) == 1:
            (row,) = rows
            (stored,) = self._points(transaction, [self._key(row)])
            if stored is None:
                return rows
            new = step(stored, row)
            if new != stored:
                difference.old, difference.new = [stored], [new]
            return []
        keys = list(map(self._key, rows))
        distinct = list(dict.fromkeys(keys))
        before = dict(zip(distinct, self._points(transaction, distinct), strict=True))
        now: dict[Any, Row] = {key: row for key, row in before.items() if row is not None}
        others = []
        for key, row in zip(keys, rows, strict=True):
            known = now.get(key)
            if known is None:
                others.append(row)
            else:
                now[key] = step(known, row)
        for key, new in now.items():
            old = before[key]
            if old is not None and new != old:
                difference.old.append(old)
                difference.new.append(new)
        return others

    def _values(self, stored: Row | None, added: list[Row], removed: list[Row]) -> list[Any] | None:
        """The values of a group's aggregates; None for a group that is empty now."""
        counter = self._plan.counter
        if removed and (stored is None or counter is None):
            raise Recompute
        changes = [Changes(read(added), read(removed)) for read in self._readers]
        values: list[Any] = [None] * len(changes)
        for place, merge in self._plan.merges:
            values[place] = merge(stored, changes, values)
        if counter is not None and values[counter] == 0 and self._width:
            return None
        return values

    def _write(
        self,
        session: Session,
        transaction: Transaction,
        difference: Difference,
        old: list[Row | None],
        groups: list[Row],
    ) -> None:
        """Turn groups into rows of the view, and see which of them differ."""
        if not groups:
            return
        if self._output is not None:
            rows = list(map(self._output, groups))
        else:
            if self._finish is None:
                self._finish = self._compile(self._grouping.finish)
            rows = self._finish.rows(session, transaction, [groups])
        identity = self._rows.identity
        for stored, row in zip(old, rows, strict=True):
            if stored is None:
                difference.inserted.append(row)
            elif identity(stored) != identity(row):
                difference.old.append(stored)
                difference.new.append(row)

    def _recompute(
        self,
        session: Session,
        transaction: Transaction,
        difference: Difference,
        keys: list[tuple[Any, ...]],
    ) -> None:
        if self._keyed is None or len(keys[0]) != len(self._keyed.keys.positions):
            raise TooMuch
        more = self._keyed.recomputed(session, transaction, keys)
        difference.deleted += more.deleted
        difference.inserted += more.inserted
        difference.old += more.old
        difference.new += more.new

    @property
    def lines(self) -> list[str]:
        """The plan that makes groups and arguments of changed rows."""
        return self.terms.lines
