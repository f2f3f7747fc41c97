"""Window functions over more rows than memory.

All rows are sorted by the order of the window in sorted runs and numbered; then they are partitioned by the
hash of what PARTITION BY says, so that a partition of the window lies in one run, in order.  Each run is
worked on by itself and the partitions of all are merged by the number of their first rows, which is the
order in which they come without a limit.  A partition that is itself too large is read as streams, see
``window_streams``; where some call has none, that one partition is held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from operator import itemgetter
from typing import Any

from quereus_store.execute.codegen.kernels import batches_of, in_batches
from quereus_store.execute.codegen.window_kernels import WindowTask, window_rows
from quereus_store.execute.spilling.files import Partitions, Row, Run, SpillFile
from quereus_store.execute.spilling.sizes import about_size, rows_size
from quereus_store.execute.spilling.sorting import Key, Sort, external_sort, merged
from quereus_store.execute.spilling.window_streams import LargePartition, stream_of

_DEEPEST = 6
_GROUP_SIZE = 250
"""About what a partition of the window takes beside its rows: an entry in a dictionary, a list."""

Batches = Iterable[list[Row]]
Numbered = tuple[int, Row]


@dataclass(frozen=True, slots=True)
class SpillingWindow:
    """All calls over one partitioning and ordering; the first fields as for :func:`window_rows`.

    ``sort_key`` gives a key of a whole row by which the order of ``sort`` comes about.
    """

    width: int
    partition: Callable[[Row], Any] | None
    sort: Sort
    order: Callable[[Row], Any] | None
    tasks: Sequence[WindowTask]
    sort_key: Key | None
    share: int

    def rows(self, batches: Batches) -> Iterator[list[Row]]:
        """The rows with the value of each call, in batches."""
        source = iter(batches)
        rows: list[Row] = []
        size = 0
        for batch in source:
            rows += batch
            size += rows_size(batch)
            if size > self.share // 4:
                break
        else:
            yield from in_batches(self._evaluated(rows))
            return
        # An iterator lets go of what it has given.
        in_order: Batches = chain(iter((rows,)), source)
        del rows
        if self.sort_key is not None:
            in_order = external_sort(in_order, self.sort, self.sort_key, self.share // 2)
        if self.partition is None:
            yield from self._alone(in_order)
            return
        numbers = count()
        numbered = (list(zip(numbers, batch)) for batch in in_order)  # noqa: B905 - numbers have no end
        with SpillFile(self.share // 2) as file:
            runs: list[Run] = []
            for part in self._partitioned(file, numbered, self.partition, 0):
                self._evaluate(file, part, self.partition, 1, runs)
            for batch in merged(file, runs, itemgetter(0)):
                yield [row for _, row in batch]

    def _evaluated(self, rows: list[Row]) -> list[Row]:
        return window_rows(rows, self.width, self.partition, self.sort, self.order, self.tasks)

    def _alone(self, in_order: Batches) -> Iterator[list[Row]]:
        """The only partition of a window without PARTITION BY."""
        with SpillFile(self.share // 2) as file:
            run = file.run()
            for batch in in_order:
                run.extend(batch)
            yield from batches_of(self._large(run.rows))

    def _large(self, rows: Callable[[], Iterator[Row]]) -> Iterator[Row]:
        """A partition too large for memory, if all calls can do with less."""
        partition = LargePartition(rows, sum(1 for _ in rows()), self.order)
        streams: list[Iterable[Any]] = []
        for task in self.tasks:
            stream = stream_of(task, partition)
            if stream is None:
                return iter(self._evaluated(list(rows())))
            streams.append(stream)
        width = self.width
        return ((*row[:width], *values) for row, *values in zip(rows(), *streams, strict=True))

    def _partitioned(
        self, file: SpillFile, batches: Iterable[list[Numbered]], key: Callable[[Row], Any], level: int
    ) -> list[Run]:
        parts = Partitions(file, self.share // 4, level)
        for batch in batches:
            parts.add((key(item[1]), item) for item in batch)
        return parts.finished()

    def _evaluate(
        self, file: SpillFile, part: Run, key: Callable[[Row], Any], level: int, runs: list[Run]
    ) -> None:
        """The partitions of the window that lie in a run, as runs of (number of the first row, row)."""
        groups: dict[Any, list[Numbered]] = {}
        size = 0
        for batch in part.batches():
            before = len(groups)
            for item in batch:
                groups.setdefault(key(item[1]), []).append(item)
            size += about_size(batch) + _GROUP_SIZE * (len(groups) - before)
            if size > self.share // 4 and level < _DEEPEST:
                groups.clear()
                self._divide(file, part, key, level, runs)
                return
        run = file.run()
        run.add_all(self._results(groups))
        runs.append(run)

    def _divide(
        self, file: SpillFile, part: Run, key: Callable[[Row], Any], level: int, runs: list[Run]
    ) -> None:
        """A run that is too large: it is parted, unless it is all one partition of the window."""
        first, row = next(part.rows())
        only = key(row)
        if any(key(item[1]) != only for item in part.rows()):
            for inner in self._partitioned(file, part.batches(), key, level):
                self._evaluate(file, inner, key, level + 1, runs)
            return
        run = file.run()
        run.add_all((first, row) for row in self._large(lambda: (item[1] for item in part.rows())))
        runs.append(run)

    def _results(self, groups: dict[Any, list[Numbered]]) -> Iterator[Numbered]:
        """The rows of each partition of the window, all with the number of its first row."""
        for identity in list(groups):
            items = groups.pop(identity)
            first = items[0][0]
            rows = self._evaluated([row for _, row in items])
            del items
            yield from ((first, row) for row in rows)
