"""Joins whose right side does not fit.

Of a hash join both sides are partitioned by the hash of their keys.

A pair of partitions is then joined as always.  What comes of them is merged by the number of the left row, so
that rows come in the order of the left side, and the matches of one row in the order of the right.  A long
list of matches is written once for all left rows that have it, and read again for each: so no more is
written than the two sides, however many pairs they make.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count
from operator import itemgetter
from typing import Any

from quereus_store.execute.codegen.kernels import BATCH_SIZE
from quereus_store.execute.spilling.files import Partitions, Place, Row, Run, SpillFile
from quereus_store.execute.spilling.replay import Replay
from quereus_store.execute.spilling.sizes import about_size, rows_size
from quereus_store.execute.spilling.sorting import merged

_DEEPEST = 5

_FEW_MATCHES = 8
"""So many matches are written with each left row that has them."""

_FILE_TO_MEMORY = 16
"""Matches kept to be used again take this part of the share in the file, several times as much in memory."""

Batches = Iterable[list[Row]]
Key = Callable[[Row], Any]
Matched = tuple[Row, list[Row]]


class SpillingJoin:
    """One hash join: how to get the keys of either side, and what its kind asks for.

    ``keeps_unmatched``: left rows without a match are given with an empty list.  ``one_match``: the first
    match of a left row is enough.
    """

    __slots__ = ("keeps_unmatched", "left_key", "one_match", "right_key", "share")

    keeps_right = False
    """Whether right rows that nobody matches count."""

    def __init__(
        self, left_key: Key, right_key: Key, keeps_unmatched: bool, one_match: bool, share: int
    ) -> None:
        self.left_key = left_key
        self.right_key = right_key
        self.keeps_unmatched = keeps_unmatched
        self.one_match = one_match
        self.share = share

    def pairs(self, left: Batches, right: Batches) -> Iterator[list[Matched]]:
        """Left rows with the lists of their matches, in the order of the left side."""
        table: dict[Any, list[Row]] = defaultdict(list)
        key, size = self.right_key, 0
        source = iter(right)
        for batch in source:
            size += 2 * rows_size(batch)
            for row in batch:
                table[key(row)].append(row)
            if size > self.share:
                break
        else:
            self._all_in(table)
            yield from self._probed(left, table)
            return
        file = SpillFile(self.share)
        try:
            parts = Partitions(file, self.share, 0)
            parts.add((key(row), row) for rows in table.values() for row in rows)
            table.clear()
            for batch in source:
                parts.add((key(row), row) for row in batch)
            parts.flush()
            runs = self._joined(file, left, parts)
            yield from _with_matches(file, merged(file, runs, itemgetter(0)), self.share)
        finally:
            self._end(file)

    def _all_in(self, table: dict[Any, list[Row]]) -> None:
        """The whole right side is in memory."""

    def _end(self, file: SpillFile) -> None:
        """All pairs have been given."""
        file.close()

    def _joined(self, file: SpillFile, left: Batches, parts: Partitions) -> list[Run]:
        """The left side partitioned, and each pair of partitions joined."""
        numbers, key = count(), self.left_key
        others = Partitions(file, self.share, 0)
        for batch in left:
            others.add((key(row), (next(numbers), row)) for row in batch)
        others.flush()
        runs: list[Run] = []
        for mine, theirs in zip(others.runs, parts.runs, strict=True):
            self._join(file, mine, theirs, 1, runs)
        return runs

    def _probed(self, left: Batches, table: dict[Any, list[Row]]) -> Iterator[list[Matched]]:
        find, key = table.get, self.left_key
        for batch in left:
            yield [(row, find(key(row)) or []) for row in batch]

    def _join(self, file: SpillFile, left: Run, right: Run, level: int, runs: list[Run]) -> None:
        """Join two partitions; adds runs of (number, left row, matches or their place) in left order."""
        if not left and not (self.keeps_right and right):
            return
        table: dict[Any, list[Row]] = defaultdict(list)
        key, size = self.right_key, 0
        for batch in right.batches():
            size += 2 * about_size(batch)
            for row in batch:
                table[key(row)].append(row)
            if size > self.share and level < _DEEPEST and len(table) > 1:
                table.clear()
                self._split(file, left, right, level, runs)
                return
        self._fits(right)
        run = file.run()
        run.add_all(self._matches(file, left, table))
        if run:
            runs.append(run)

    def _fits(self, right: Run) -> None:
        """A partition of the right side that is small enough."""

    def _split(self, file: SpillFile, left: Run, right: Run, level: int, runs: list[Run]) -> None:
        parts, others = Partitions(file, self.share, level), Partitions(file, self.share, level)
        for batch in right.batches():
            parts.add((self.right_key(row), row) for row in batch)
        for batch in left.batches():
            others.add((self.left_key(item[1]), item) for item in batch)
        parts.flush()
        others.flush()
        for mine, theirs in zip(others.runs, parts.runs, strict=True):
            self._join(file, mine, theirs, level + 1, runs)

    def _matches(self, file: SpillFile, left: Run, table: dict[Any, list[Row]]) -> Iterator[Row]:
        find, key = table.get, self.left_key
        places: dict[Any, Place] = {}
        for number, row in left.rows():
            value = key(row)
            matches = find(value)
            if not matches:
                if self.keeps_unmatched:
                    yield (number, row, [])
            elif self.one_match or len(matches) <= _FEW_MATCHES:
                yield (number, row, matches[:1] if self.one_match else matches)
            else:
                place = places.get(value)
                if place is None:
                    place = places[value] = file.put(matches)
                yield (number, row, place)


class SpillingFullJoin(SpillingJoin):
    """A FULL join: right rows get a number at their end, and those that nobody met come after all pairs."""

    __slots__ = ("_file", "_met", "_partitions", "_table")

    keeps_right = True

    def __init__(self, left_key: Key, right_key: Key, share: int) -> None:
        super().__init__(left_key, right_key, True, False, share)
        self._met = bytearray()
        self._table: dict[Any, list[Row]] = {}
        self._partitions: list[Run] = []
        self._file: SpillFile | None = None

    def pairs(self, left: Batches, right: Batches) -> Iterator[list[Matched]]:
        """Left rows with the lists of their matches, in the order of the left side."""
        return super().pairs(left, with_numbers(right, self._met))

    def meet(self, row: Row) -> None:
        """Note that a right row has a match; a row of NULLs stands for none."""
        number = row[-1]
        if number is not None:
            self._met[number] = 1

    def unmet(self) -> Iterator[list[Row]]:
        """The right rows that were not met, by their keys in the order in which these came first."""
        met = self._met
        if self._file is None:
            yield [row for rows in self._table.values() for row in rows if not met[row[-1]]]
            return
        with self._file as file:
            runs = []
            for part in self._partitions:
                table: dict[Any, list[Row]] = defaultdict(list)
                for row in part.rows():
                    table[self.right_key(row)].append(row)
                run = file.run()
                run.add_all((rows[0][-1], row) for rows in table.values() for row in rows if not met[row[-1]])
                runs.append(run)
            for batch in merged(file, runs, itemgetter(0)):
                yield [row for _, row in batch]

    def _all_in(self, table: dict[Any, list[Row]]) -> None:
        self._table = table

    def _end(self, file: SpillFile) -> None:
        self._file = file

    def _fits(self, right: Run) -> None:
        self._partitions.append(right)


def _with_matches(file: SpillFile, batches: Batches, share: int) -> Iterator[list[Matched]]:
    """Left rows with their matches, from rows of (number, left row, matches or their place)."""
    known: dict[Place, list[Row]] = {}
    held = 0
    waiting: list[Matched] = []
    size = 0
    for _, row, matches in chain.from_iterable(batches):
        if type(matches) is tuple:
            place = matches
            matches = known.get(place)
            if matches is None:
                held += place[1]
                if held > share // _FILE_TO_MEMORY:
                    known.clear()
                    held = place[1]
                matches = known[place] = file.read(place)
        waiting.append((row, matches))
        size += len(matches) or 1
        if size >= BATCH_SIZE // 4:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


class InnerRows:
    """The right side of a join without an equality: it is read anew for each left row.

    For a FULL join its rows get a number at their end, and those that nobody met come after all others.
    """

    __slots__ = ("_met", "_replay", "_watch")

    def __init__(self, runtime: Any, batches: Batches, share: int, numbered: bool = False) -> None:
        self._watch = runtime.watch
        self._met = bytearray()
        self._replay = Replay(with_numbers(batches, self._met) if numbered else batches, share)

    def __iter__(self) -> Iterator[Row]:
        return chain.from_iterable(self._watch.over(self._replay.batches()))

    def __bool__(self) -> bool:
        return any(self._replay.batches())

    def meet(self, row: Row) -> None:
        """Note that a row has a match; a row of NULLs stands for none."""
        if row[-1] is not None:
            self._met[row[-1]] = 1

    def unmet(self) -> Iterator[list[Row]]:
        """The rows that were not met."""
        met = self._met
        for batch in self._replay.batches():
            yield [row for row in batch if not met[row[-1]]]


def with_numbers(batches: Batches, met: bytearray) -> Iterator[list[Row]]:
    """Rows with a number at their end; ``met`` gets a zero for each."""
    numbers = count()
    for batch in batches:
        met.extend(bytes(len(batch)))
        yield [(*row, next(numbers)) for row in batch]
