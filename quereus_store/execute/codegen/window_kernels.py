"""Windows at run time: rows sorted and parted, each call over each partition as whole columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, NamedTuple

from quereus_store.errors import SourcePosition
from quereus_store.execute.codegen.aggregate_kernels import shape_arguments
from quereus_store.functions.registry import AggregateFunction
from quereus_store.functions.windows import (
    FrameSpecification,
    Partition,
    Peers,
    WindowFunction,
    aggregate_over,
    frame_offset,
    frames_of,
)
from quereus_store.functions.windows import peers_of as peers_of_rows
from quereus_store.modules.contract import Row
from quereus_store.types import LogicalType, truth

NO_OFFSET = object()
"""Stands for the offset of a bound that has none."""


@dataclass(frozen=True, slots=True)
class WindowTask:
    """One window call: the function, where its arguments and FILTER stand in a row, its frame.

    ``distance`` is the position of the order value that RANGE offsets measure;
    ``key`` the order key of min and max.
    """

    function: WindowFunction | AggregateFunction
    arguments: tuple[int, ...]
    frame: FrameSpecification
    keep: int | None = None
    distance: int | None = None
    descending: bool = False
    ignore_nulls: bool = False
    key: Callable[[Any], Any] | None = None

    def over(self, rows: Sequence[Row], peers: Peers) -> list[Any]:
        """The call's value for each row of a sorted partition."""
        columns = [list(map(itemgetter(position), rows)) for position in self.arguments]
        distances = None if self.distance is None else [row[self.distance] for row in rows]
        frames = frames_of(self.frame, peers, distances, descending=self.descending)
        if isinstance(self.function, AggregateFunction):
            keep = None if self.keep is None else [truth(row[self.keep]) for row in rows]
            return aggregate_over(self.function, frames, columns or [list(rows)], key=self.key, keep=keep)
        return self.function.evaluate(Partition(len(rows), peers, frames), columns, self.ignore_nulls)


class OrderTerm(NamedTuple):
    """A term of ORDER BY within a call: the key of a value (None: itself) and the direction."""

    key: Callable[[Any], Any] | None
    descending: bool
    nulls_last: bool


def ordered_aggregate(
    function: AggregateFunction, arguments: int, terms: Sequence[OrderTerm]
) -> AggregateFunction:
    """An aggregate that sorts each frame first, by the columns that follow its ``arguments``."""

    def evaluate(*columns: list[Any], **options: Any) -> Any:
        order = [(column, *term) for column, term in zip(columns[arguments:], terms, strict=True)]
        return function.evaluate(
            *shape_arguments(columns[:arguments], None, order, None, function.skips_nulls), **options
        )

    return replace(function, evaluate=evaluate, algebra=None, keyed_algebra=None)


def frame(
    unit: str,
    start: str,
    end: str,
    exclusion: str,
    start_offset: Any,
    end_offset: Any,
    measured: LogicalType | None = None,
    positions: tuple[SourcePosition | None, SourcePosition | None] = (None, None),
) -> FrameSpecification:
    """A frame clause with its offsets checked; raises ERROR for a bad one, at its place of ``positions``."""
    first, last = (
        0 if value is NO_OFFSET else frame_offset(value, unit, measured, position)
        for value, position in zip((start_offset, end_offset), positions, strict=True)
    )
    return FrameSpecification(unit, start, end, first, last, exclusion, measured)


def window_values(
    rows: list[Row],
    partition: Callable[[Row], Any] | None,
    sort: Callable[[list[Row]], list[Row]],
    order: Callable[[Row], Any] | None,
    tasks: Sequence[WindowTask],
) -> list[tuple[Any, ...]]:
    """Each row with the value of each call: ``(row, value, ...)``.

    ``partition`` and ``order`` give what must be equal within a partition and
    among peers; None means one partition, or all rows peers.
    """
    rows = sort(rows)
    parts: defaultdict[Any, list[Row]] = defaultdict(list)
    if partition is None:
        if rows:
            parts[None] = rows
    else:
        for key, row in zip(map(partition, rows), rows, strict=True):
            parts[key].append(row)
    result: list[tuple[Any, ...]] = []
    for part in parts.values():
        peers = peers_of_rows(len(part), None if order is None else list(map(order, part)))
        columns = [task.over(part, peers) for task in tasks]
        result += zip(part, *columns, strict=True)
    return result


def window_rows(
    rows: list[Row],
    width: int,
    partition: Callable[[Row], Any] | None,
    sort: Callable[[list[Row]], list[Row]],
    order: Callable[[Row], Any] | None,
    tasks: Sequence[WindowTask],
) -> list[Row]:
    """The same as rows: the first ``width`` columns of each, and the values."""
    found = window_values(rows, partition, sort, order, tasks)
    return [item[0][:width] + item[1:] for item in found]
