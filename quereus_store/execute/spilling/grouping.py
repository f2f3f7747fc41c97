"""GROUP BY over more rows than memory.

Every row comes as a tuple: the values of the keys, then what the aggregates need of it.  As long as they
fit, a group's values lie in one flat list, as always.  After that there are two ways:

*folding*, where each aggregate has an algebra: the lists are folded into states.  If even the states are
too many, no further group is opened: rows of other groups are numbered and partitioned by hash, and each
partition is grouped by itself.

*sorting out*, where some aggregate has to see all its values at once: all rows are partitioned, so that
the groups of one partition fit.  One group alone is held in memory whatever its size.

Groups come in the order in which they were first met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice, starmap
from operator import itemgetter
from typing import Any

from quereus_store.execute.codegen.kernels import BATCH_SIZE, batches_of
from quereus_store.execute.spilling.files import Partitions, Row, SpillFile
from quereus_store.execute.spilling.sizes import about_size
from quereus_store.execute.spilling.sorting import merged
from quereus_store.functions.registry import Algebra
from quereus_store.types import truth

_DEEPEST = 6
_STATE_SIZE = 160
_GROUP_SIZE = 650
"""About what a group takes beside its rows: an entry in a dictionary, an object, a list."""

Batches = Iterable[list[Row]]


@dataclass(frozen=True, slots=True)
class Fold:
    """An aggregate that can be folded: its algebra, the places of its arguments and of its FILTER."""

    algebra: Algebra
    arguments: tuple[int, ...]
    condition: int | None = None

    def add(self, state: Any, rows: Iterable[Row]) -> Any:
        """The state with rows counted in."""
        add, arguments, condition = self.algebra.add, self.arguments, self.condition
        if condition is not None:
            rows = [row for row in rows if truth(row[condition])]
        for row in rows:
            state = add(state, tuple([row[place] for place in arguments]))
        return state


@dataclass(frozen=True, slots=True)
class Grouping:
    """How to group: rows are ``keys`` values and ``width`` more.

    ``key`` gives the identity of a row's keys, ``finish`` the result row of a group from its first row and
    the flat list of its values.  ``folds``: one for each aggregate, None where they cannot be folded.
    ``streamed``: rows come in the order of their keys, so all groups but the last one met are complete.
    """

    keys: int
    width: int
    key: Callable[[Row], Any]
    finish: Callable[[Row, list[Any]], Row]
    folds: Sequence[Fold] | None
    share: int
    streamed: bool = False

    def rows(self, batches: Batches) -> Iterator[list[Row]]:
        """The result rows; without keys there is always one."""
        numbers = count()
        numbered = ([(next(numbers), row) for row in batch] for batch in batches)
        found = _Groups(self, 0).results(numbered)
        while few := list(islice(found, BATCH_SIZE)):
            yield [row for _, row in few]


class _Group:
    """A group being collected: its number and first row, values not folded yet, and the states."""

    __slots__ = ("first", "number", "states", "values")

    def __init__(self, number: int, first: Row) -> None:
        self.number = number
        self.first = first
        self.values: list[Any] = []
        self.states: list[Any] | None = None


class _Groups:
    """The groups of one input, or of one partition of it."""

    def __init__(self, grouping: Grouping, level: int) -> None:
        self.grouping = grouping
        self.level = level
        self.groups: dict[Any, _Group] = {}
        if grouping.keys == 0 and level == 0:
            self.groups[()] = _Group(0, ())

    def results(self, source: Iterable[list[Row]]) -> Iterator[Row]:
        """Numbered result rows in order."""
        grouping, groups = self.grouping, self.groups
        batches = iter(source)
        size = 0
        for batch in batches:
            before = len(groups)
            self._collect(batch)
            size += about_size(batch) + _GROUP_SIZE * (len(groups) - before)
            if size <= grouping.share * 3 // 4:
                continue
            if grouping.streamed:
                yield from self._complete()
                size = about_size([group.values for group in groups.values()])
                continue
            may_split = len(groups) > 1 and self.level < _DEEPEST
            if grouping.folds is not None:
                self._fold()
                size = about_size([group.first for group in groups.values()])
                size += len(groups) * (_GROUP_SIZE + _STATE_SIZE * len(grouping.folds))
                if may_split and size > grouping.share // 2:
                    yield from self._with_others(batches)
                    return
            elif may_split:
                yield from self._sorted_out(batches)
                return
        yield from map(self._result, groups.values())

    def _complete(self) -> Iterator[Row]:
        """The results of all groups but the last one, which stays."""
        identity, last = self.groups.popitem()
        yield from map(self._result, self.groups.values())
        self.groups.clear()
        self.groups[identity] = last
        if self.grouping.folds is not None:
            self._fold()

    def _collect(self, batch: list[Row]) -> None:
        groups, key, keys = self.groups, self.grouping.key, self.grouping.keys
        for number, row in batch:
            identity = key(row)
            group = groups.get(identity)
            if group is None:
                group = groups[identity] = _Group(number, row[:keys])
            group.values.extend(row[keys:] or _ONE)

    def _fold(self) -> None:
        """Turn the values of every group into states."""
        for group in self.groups.values():
            if group.values:
                self._fold_group(group)

    def _fold_group(self, group: _Group) -> None:
        folds = self.grouping.folds
        assert folds is not None
        if group.states is None:
            group.states = [fold.algebra.start() for fold in folds]
        rows = self._rows_of(group)
        group.states = [fold.add(state, rows) for fold, state in zip(folds, group.states, strict=True)]
        group.values = []

    def _rows_of(self, group: _Group) -> list[Row]:
        """A group's values row by row; rows without values are told by their number alone."""
        width = self.grouping.width
        if width == 0:
            return [()] * len(group.values)
        return list(zip(*[group.values[place::width] for place in range(width)], strict=True))

    def _result(self, group: _Group) -> Row:
        grouping = self.grouping
        if group.states is None:
            return (group.number, grouping.finish(group.first, group.values))
        if group.values:
            self._fold_group(group)
        folds = grouping.folds
        assert folds is not None
        finished = [fold.algebra.finish(state) for fold, state in zip(folds, group.states, strict=True)]
        return (group.number, (*group.first, *finished))

    def _with_others(self, batches: Iterator[list[Row]]) -> Iterator[Row]:
        """The groups there are go on, those that are not there yet are partitioned."""
        grouping, groups, key = self.grouping, self.groups, self.grouping.key
        with SpillFile(grouping.share // 2) as file:
            parts = Partitions(file, grouping.share // 2, self.level)
            size = 0
            for batch in batches:
                known = [item for item in batch if key(item[1]) in groups]
                if len(known) < len(batch):
                    parts.add((k, item) for item in batch if (k := key(item[1])) not in groups)
                self._collect(known)
                size += about_size(known)
                if size > grouping.share // 4:
                    self._fold()
                    size = 0
            yield from map(self._result, groups.values())
            groups.clear()
            yield from self._partitions(file, parts)

    def _sorted_out(self, batches: Iterator[list[Row]]) -> Iterator[Row]:
        """All rows are partitioned, those collected so far too."""
        grouping, key = self.grouping, self.grouping.key
        with SpillFile(grouping.share) as file:
            parts = Partitions(file, grouping.share // 2, self.level)
            for identity, group in self.groups.items():
                rows = self._rows_of(group)
                group.values = []
                parts.add((identity, (group.number, (*group.first, *row))) for row in rows)
            self.groups.clear()
            for batch in batches:
                parts.add((key(item[1]), item) for item in batch)
            yield from self._partitions(file, parts)

    def _partitions(self, file: SpillFile, parts: Partitions) -> Iterator[Row]:
        """Each partition grouped by itself, and the groups of all in order."""
        runs = []
        for part in parts.finished():
            run = file.run()
            run.add_all(_Groups(self.grouping, self.level + 1).results(part.batches()))
            runs.append(run)
        for batch in merged(file, runs, itemgetter(0)):
            yield from batch


_ONE = (None,)
"""What a row adds to its group's list where no aggregate needs a value: it is counted by it."""


def side_by_side(pick: Callable[..., Row], passes: Sequence[Batches]) -> Iterator[list[Row]]:
    """Rows made of those of several passes over the same groups, which all come in the same order."""
    rows = zip(*map(chain.from_iterable, passes), strict=True)
    return batches_of(starmap(pick, rows))
