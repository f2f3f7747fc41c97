"""Window functions over one partition that is larger than memory.

The sorted rows of the partition can be read from their start any number of times, and every call gives its
values as a stream of its own::

    zip(rows(), running sums read from rows(), ranks read from rows(), ...)

There is such a stream for ranks, for aggregates that can be counted in row by row over a frame that starts
at the first row, for ``first_value`` and ``last_value`` at the edges of such a frame, and for whatever looks
only at rows a bounded number of rows away.  :func:`stream_of` gives None for all else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count, groupby, islice, repeat
from typing import Any

from quereus_store.execute.codegen.kernels import BATCH_SIZE
from quereus_store.execute.codegen.window_kernels import WindowTask
from quereus_store.execute.spilling.files import Row
from quereus_store.functions.arguments import whole_number_of
from quereus_store.functions.registry import AggregateFunction, Algebra
from quereus_store.functions.windows import peers_of
from quereus_store.types import truth
from quereus_store.types.temporal.duration import Duration
from quereus_store.types.values import Value

_FARTHEST = BATCH_SIZE
"""Rows may be looked at from so many rows away."""

Values = Iterable[Value]


@dataclass(frozen=True, slots=True)
class LargePartition:
    """A partition: its sorted rows, to be read again and again, how many there are, and who is whose peer.

    ``order`` gives what is equal among peers; None means that all rows are.
    """

    rows: Callable[[], Iterator[Row]]
    size: int
    order: Callable[[Row], Any] | None

    def groups(self) -> Iterator[Iterator[Row]]:
        """The groups of peers."""
        if self.order is None:
            yield self.rows()
            return
        for _, group in groupby(self.rows(), self.order):
            yield group

    def edges(self) -> Iterator[tuple[int, int]]:
        """For each group of peers its first row and the row after its last."""
        end = 0
        for group in self.groups():
            start, end = end, end + sum(1 for _ in group)
            yield start, end


def stream_of(task: WindowTask, partition: LargePartition) -> Values | None:
    """The values of a call for all rows in order; None where that takes the whole partition at once."""
    function = task.function
    if isinstance(function, AggregateFunction):
        return _counted(task, partition, function) or _nearby(task, partition)
    if not function.uses_frame:
        ranks = _RANKS.get(function.name)
        return _shifted(task, partition) if ranks is None else ranks(task, partition)
    return _edge(task, partition) or _nearby(task, partition)


# --- ranks --------------------------------------------------------------------------------------------------


def _by_peers(partition: LargePartition, value: Callable[[int, int, int], Value]) -> Values:
    """What is the same for all peers: ``value(number of the group, first row, row after the last)``."""
    for number, (start, end) in enumerate(partition.edges()):
        yield from repeat(value(number, start, end), end - start)


def _percent_ranks(task: WindowTask, partition: LargePartition) -> Values:
    others = partition.size - 1
    return _by_peers(partition, lambda number, start, end: start / others if others else 0.0)


def _tiles(task: WindowTask, partition: LargePartition) -> Values:
    first = next(partition.rows())
    buckets = whole_number_of(first[task.arguments[0]])
    if buckets is None or buckets <= 0:
        return repeat(1, partition.size)
    small, larger = divmod(partition.size, buckets)
    tiles = range(min(buckets, partition.size))
    return chain.from_iterable(repeat(tile + 1, small + (tile < larger)) for tile in tiles)


_RANKS: dict[str, Callable[[WindowTask, LargePartition], Values]] = {
    "row_number": lambda task, partition: islice(count(1), partition.size),
    "rank": lambda task, partition: _by_peers(partition, lambda number, start, end: start + 1),
    "dense_rank": lambda task, partition: _by_peers(partition, lambda number, start, end: number + 1),
    "percent_rank": _percent_ranks,
    "cume_dist": lambda task, partition: _by_peers(partition, lambda _, start, end: end / partition.size),
    "ntile": _tiles,
}


# --- frames from the first row ------------------------------------------------------------------------------


def _end_of_frame(task: WindowTask, partition: LargePartition) -> str | None:
    """Where a frame from the first row ends: at the row, its peers or the last row; None for other frames."""
    frame = task.frame
    if frame.start != "unbounded preceding" or frame.exclusion != "no others":
        return None
    if frame.end == "unbounded following":
        return "last"
    if frame.end != "current row":
        return None
    if frame.unit == "rows":
        return "row"
    return "last" if partition.order is None else "peers"


def _counted(task: WindowTask, partition: LargePartition, function: AggregateFunction) -> Values | None:
    """An aggregate over a frame that only grows."""
    end = _end_of_frame(task, partition)
    algebra = function.keyed_algebra(task.key) if function.keyed_algebra else function.algebra
    if algebra is None or end is None:
        return None
    if end == "row":
        return _running(task, algebra, partition)
    if end == "peers":
        return _running_by_peers(task, algebra, partition)
    state = algebra.start()
    for arguments in _arguments(task, partition.rows()):
        state = algebra.add(state, arguments)
    return repeat(algebra.finish(state), partition.size)


def _arguments(task: WindowTask, rows: Iterable[Row]) -> Iterator[tuple[Value, ...]]:
    """The arguments of the rows that count."""
    places, keep = task.arguments, task.keep
    for row in rows:
        if keep is None or truth(row[keep]):
            yield tuple([row[place] for place in places])


def _running(task: WindowTask, algebra: Algebra, partition: LargePartition) -> Values:
    add, finish, state = algebra.add, algebra.finish, algebra.start()
    for row in partition.rows():
        for arguments in _arguments(task, (row,)):
            state = add(state, arguments)
        yield finish(state)


def _running_by_peers(task: WindowTask, algebra: Algebra, partition: LargePartition) -> Values:
    state = algebra.start()
    for group in partition.groups():
        size = 0
        for row in group:
            size += 1
            for arguments in _arguments(task, (row,)):
                state = algebra.add(state, arguments)
        yield from repeat(algebra.finish(state), size)


def _edge(task: WindowTask, partition: LargePartition) -> Values | None:
    """``first_value`` and ``last_value`` over a frame that only grows."""
    end = _end_of_frame(task, partition)
    if end is None or task.ignore_nulls or task.function.name not in ("first_value", "last_value"):
        return None
    place = task.arguments[0]
    if task.function.name == "first_value":
        return repeat(next(partition.rows())[place], partition.size)
    if end == "row":
        return (row[place] for row in partition.rows())
    if end == "peers":
        return _last_of_peers(place, partition)
    last = None
    for row in partition.rows():
        last = row[place]
    return repeat(last, partition.size)


def _last_of_peers(place: int, partition: LargePartition) -> Values:
    for group in partition.groups():
        size, last = 0, None
        for row in group:
            size, last = size + 1, row[place]
        yield from repeat(last, size)


# --- rows nearby --------------------------------------------------------------------------------------------


def _nearby(task: WindowTask, partition: LargePartition) -> Values | None:
    """Any function over a frame of a bounded number of rows."""
    frame = task.frame
    sides = (frame.start, frame.end)
    if frame.unit != "rows" or any(side.startswith("unbounded") for side in sides):
        return None
    offsets = (frame.start_offset, frame.end_offset)
    reach = max(int(offset) for offset in offsets if not isinstance(offset, Duration))
    return _within_reach(task, partition, reach) if reach <= _FARTHEST else None


def _shifted(task: WindowTask, partition: LargePartition) -> Values | None:
    """``lag`` and ``lead``."""
    if task.ignore_nulls:
        return None
    reach = 1
    if len(task.arguments) > 1:
        place = task.arguments[1]
        reach = max(abs(whole_number_of(row[place]) or 0) for row in partition.rows())
    return _within_reach(task, partition, reach) if reach <= _FARTHEST else None


def _within_reach(task: WindowTask, partition: LargePartition, reach: int) -> Values:
    """Evaluate pieces of the partition, each with the rows around it that may be looked at."""
    rows = partition.rows()
    before = 0
    known = list(islice(rows, BATCH_SIZE + reach))
    while True:
        following = list(islice(rows, BATCH_SIZE))
        # Without rows to follow, all that is known can be answered.
        end = len(known) if not following else len(known) - reach
        order = None if partition.order is None else list(map(partition.order, known))
        yield from task.over(known, peers_of(len(known), order))[before:end]
        if not following:
            return
        start = max(end - reach, 0)
        before = end - start
        known = known[start:] + following
