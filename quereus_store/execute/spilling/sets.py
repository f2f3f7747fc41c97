"""INTERSECT, EXCEPT, DIFF and membership flags over more rows than memory.

Inputs that fit are worked on as always.  Others are numbered and partitioned by the hash of their rows, so
that equal rows of either side meet in the same pair of partitions; what comes of the pairs is merged by
number.  Rows of the right side have higher numbers than any of the left one.

Of a pair only different rows are held (or, where repeats count, how often each comes), so that a row that
comes a million times takes no more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count
from operator import itemgetter
from typing import Any

from quereus_store.execute.codegen import kernels
from quereus_store.execute.codegen.kernels import BATCH_SIZE
from quereus_store.execute.spilling.files import Partitions, Row, Run, SpillFile
from quereus_store.execute.spilling.sizes import about_size, rows_size
from quereus_store.execute.spilling.sorting import merged

_DEEPEST = 6
_RIGHT = 2**62
"""The number of the first row of the right side."""

Batches = Iterable[list[Any]]
Numbered = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """The different rows of one partition: the first of each and how often it comes, by identity."""

    first: dict[Any, Numbered]
    counts: dict[Any, int]


@dataclass(frozen=True, slots=True)
class SpillingSet:
    """One set operation.

    ``kind`` and ``keep_all`` as for :func:`kernels.set_operation`; ``flagged`` asks for rows with whether
    they are in the left and in the right input.  ``key`` gives a row's identity, None where it is its own.
    """

    kind: str
    keep_all: bool
    flagged: bool
    key: Callable[[Row], Any] | None
    share: int

    def rows(self, left: Batches, right: Batches) -> Iterator[list[Any]]:
        """The resulting rows, in batches; with flags each is (row, in left, in right)."""
        mine, theirs = iter(left), iter(right)
        others, fits = _taken(theirs, self.share // 4)
        own: list[Row] = []
        if fits:
            own, fits = _taken(mine, self.share // 4)
        if fits:
            yield from kernels.in_batches(self._in_memory(own, others))
            return
        with SpillFile(self.share) as file:
            lefts = self._partitioned(file, self._numbered(chain(iter((own,)), mine), 0), 0)
            del own
            rights = self._partitioned(file, self._numbered(chain(iter((others,)), theirs), _RIGHT), 0)
            del others
            runs: list[Run] = []
            for pair in zip(lefts, rights, strict=True):
                self._combine(file, *pair, 1, runs)
            for rows in merged(file, runs, itemgetter(0)):
                yield [row[1:] for row in rows] if self.flagged else [row[1] for row in rows]

    def _in_memory(self, left: list[Row], right: list[Row]) -> list[Any]:
        if self.flagged:
            return kernels.flagged_union(left, right, self.key, self.kind, self.keep_all)
        return kernels.set_operation(self.kind, self.keep_all, left, right, self.key)

    @staticmethod
    def _numbered(batches: Batches, first: int) -> Iterator[list[Numbered]]:
        numbers = count(first)
        return (list(zip(numbers, batch)) for batch in batches)  # noqa: B905 - numbers have no end

    def _partitioned(self, file: SpillFile, batches: Iterable[list[Numbered]], level: int) -> list[Run]:
        parts, identity = Partitions(file, self.share // 2, level), self._identity
        for batch in batches:
            # A batch that was handed over may be large; the partitions look at their size after each call.
            for start in range(0, len(batch), BATCH_SIZE):
                parts.add((identity(item), item) for item in batch[start : start + BATCH_SIZE])
        parts.flush()
        return parts.runs

    def _identity(self, item: Numbered) -> Any:
        return item[1] if self.key is None else self.key(item[1])

    def _combine(self, file: SpillFile, left: Run, right: Run, level: int, runs: list[Run]) -> None:
        """What comes of a pair of partitions, as runs of (number, row, flags)."""
        own = self._different(left, level)
        others = None if own is None else self._different(right, level)
        if own is None or others is None:
            lefts = self._partitioned(file, left.batches(), level)
            rights = self._partitioned(file, right.batches(), level)
            for pair in zip(lefts, rights, strict=True):
                self._combine(file, *pair, level + 1, runs)
            return
        run = file.run()
        run.add_all(self._results(left, right, own, others))
        if run:
            runs.append(run)

    def _different(self, run: Run, level: int) -> _Found | None:
        """The different rows of a partition; None if they are too many."""
        first: dict[Any, Numbered] = {}
        counts: dict[Any, int] = {}
        size = 0
        for batch in run.batches():
            added = []
            for item in batch:
                identity = self._identity(item)
                if identity not in first:
                    first[identity] = item
                    added.append(item)
                counts[identity] = counts.get(identity, 0) + 1
            size += 3 * about_size(added)
            if size > self.share // 2 and level < _DEEPEST and len(first) > 1:
                return None
        return _Found(first, counts)

    def _results(self, left: Run, right: Run, own: _Found, others: _Found) -> Iterator[Numbered]:
        kept = self._kept_repeats(left, right, others) if self.keep_all else self._kept(own, others)
        if not self.flagged:
            yield from (item for _, item in kept)
            return
        for identity, item in kept:
            yield (*item, identity in own.first, identity in others.first)

    def _kept(self, own: _Found, others: _Found) -> Iterator[tuple[Any, Numbered]]:
        """The rows that a distinct operation keeps, with their identities."""
        kind = self.kind
        for identity, item in own.first.items():
            if kind == "union" or (identity in others.first) == (kind == "intersect"):
                yield identity, item
        if kind in ("diff", "union"):
            for identity, item in others.first.items():
                if identity not in own.first:
                    yield identity, item

    def _kept_repeats(self, left: Run, right: Run, others: _Found) -> Iterator[tuple[Any, Numbered]]:
        """The rows that an operation with ALL keeps, with their identities."""
        counts, identity = others.counts, self._identity
        if self.kind == "union":
            yield from ((identity(item), item) for item in chain(left.rows(), right.rows()))
            return
        for item in left.rows():
            known = identity(item)
            matched = counts.get(known, 0) > 0
            if matched:
                counts[known] -= 1
            if matched == (self.kind == "intersect"):
                yield known, item


def _taken(batches: Iterator[list[Row]], size: int) -> tuple[list[Row], bool]:
    """Rows up to about a size, and whether these were all."""
    rows: list[Row] = []
    for batch in batches:
        rows += batch
        size -= rows_size(batch)
        if size < 0:
            return rows, False
    return rows, True
