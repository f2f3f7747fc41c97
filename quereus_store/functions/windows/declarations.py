"""The functions that only OVER can ask for: ranking, looking at other rows, picking rows of the frame.

Each takes a :class:`Partition` (its peers and frames) and one column of values per argument, and gives a
column. Ranks follow from where a row's peers begin; ``lag`` and ``lead`` ignore the frame; ``first_value``
and its kin look at the first, the last or the n-th row of it.  With IGNORE NULLS the latter two kinds pass
over NULLs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from types import MappingProxyType

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.functions.arguments import whole_number_of
from quereus_store.functions.registry import ReturnType
from quereus_store.functions.windows.aggregation import frame_sizes, restricted
from quereus_store.functions.windows.frames import Frames, Peers
from quereus_store.types.logical import ANY, INTEGER, REAL, LogicalType
from quereus_store.types.result_types import merge_types
from quereus_store.types.values import Value

Column = Sequence[Value]


@dataclass(frozen=True, slots=True)
class Partition:
    """The sorted rows that a window function runs over."""

    size: int
    peers: Peers
    frames: Frames


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A function that needs OVER.

    ``evaluate(partition, columns, ignore_nulls)`` takes one column per argument and gives one value per row;
    ``uses_frame`` tells whether the frame matters, ``needs_order`` that ORDER BY is required.
    """

    name: str
    evaluate: Callable[[Partition, Sequence[Column], bool], list[Value]]
    minimum: int
    maximum: int
    returns: ReturnType
    nullable: bool = False
    needs_order: bool = False
    uses_frame: bool = False
    may_ignore_nulls: bool = False


# --- ranking ------------------------------------------------------------------------------------------------


def _row_number(partition: Partition, columns: Sequence[Column], ignore_nulls: bool) -> list[Value]:
    return list(range(1, partition.size + 1))


def _rank(partition: Partition, columns: Sequence[Column], ignore_nulls: bool) -> list[Value]:
    return [start + 1 for start in partition.peers.starts]


def _dense_rank(partition: Partition, columns: Sequence[Column], ignore_nulls: bool) -> list[Value]:
    # A group of peers begins where a row is its own first peer.
    begins = [int(start == row) for row, start in enumerate(partition.peers.starts)]
    ranks: list[Value] = []
    ranks.extend(accumulate(begins))
    return ranks


def _percent_rank(partition: Partition, columns: Sequence[Column], ignore_nulls: bool) -> list[Value]:
    others = partition.size - 1
    return [start / others if others else 0.0 for start in partition.peers.starts]


def _cume_dist(partition: Partition, columns: Sequence[Column], ignore_nulls: bool) -> list[Value]:
    return [end / partition.size for end in partition.peers.ends]


def _ntile(partition: Partition, columns: Sequence[Column], ignore_nulls: bool) -> list[Value]:
    buckets = whole_number_of(columns[0][0]) if partition.size else None
    if buckets is None or buckets <= 0:
        return [1] * partition.size
    small, larger = divmod(partition.size, buckets)
    tiles: list[Value] = []
    for bucket in range(min(buckets, partition.size)):
        tiles.extend(repeat(bucket + 1, small + (bucket < larger)))
    return tiles


# --- other rows of the partition ----------------------------------------------------------------------------


def _offsets(size: int, columns: Sequence[Column]) -> list[int]:
    if len(columns) < 2:
        return [1] * size
    return [whole_number_of(offset) or 0 for offset in columns[1]]


def _shifted(direction: int) -> Callable[[Partition, Sequence[Column], bool], list[Value]]:
    """lag (-1) and lead (+1)."""

    def evaluate(partition: Partition, columns: Sequence[Column], ignore_nulls: bool) -> list[Value]:
        values, size = columns[0], partition.size
        offsets = _offsets(size, columns)
        defaults = columns[2] if len(columns) > 2 else [None] * size
        if ignore_nulls:
            targets = _targets_passing_nulls(values, offsets, direction)
        else:
            targets = [row + direction * offset for row, offset in enumerate(offsets)]
        return [
            values[target] if 0 <= target < size else default
            for target, default in zip(targets, defaults, strict=True)
        ]

    return evaluate


def _targets_passing_nulls(values: Column, offsets: Sequence[int], direction: int) -> list[int]:
    """The row that lies ``offset`` values away when NULLs do not count; -1 where there is none."""
    places = [row for row, value in enumerate(values) if value is not None]
    before = list(accumulate((value is not None for value in values), int.__add__, initial=0))
    targets = []
    for row, offset in enumerate(offsets):
        step = direction * offset
        place = before[row] + step if step < 0 else before[row + 1] + step - 1
        targets.append(row if not step else places[place] if 0 <= place < len(places) else -1)
    return targets


# --- rows of the frame --------------------------------------------------------------------------------------


def _framed(
    partition: Partition, columns: Sequence[Column], ignore_nulls: bool
) -> tuple[Frames, Sequence[Value]]:
    """The frames and the values, NULLs taken out when they are to be passed over."""
    if not ignore_nulls:
        return partition.frames, columns[0]
    present = [value is not None for value in columns[0]]
    frames, kept = restricted(partition.frames, [columns[0]], present)
    return frames, kept[0]


def _first_value(partition: Partition, columns: Sequence[Column], ignore_nulls: bool) -> list[Value]:
    frames, values = _framed(partition, columns, ignore_nulls)
    results: list[Value] = [None] * partition.size
    for starts, ends in reversed(frames.parts):
        results = [
            values[start] if start < end else other
            for start, end, other in zip(starts, ends, results, strict=True)
        ]
    return results


def _last_value(partition: Partition, columns: Sequence[Column], ignore_nulls: bool) -> list[Value]:
    frames, values = _framed(partition, columns, ignore_nulls)
    results: list[Value] = [None] * partition.size
    for starts, ends in frames.parts:
        results = [
            values[end - 1] if start < end else other
            for start, end, other in zip(starts, ends, results, strict=True)
        ]
    return results


def _nth_value(partition: Partition, columns: Sequence[Column], ignore_nulls: bool) -> list[Value]:
    frames, values = _framed(partition, columns, ignore_nulls)
    sizes = frame_sizes(frames)
    results: list[Value] = []
    for row, wanted in enumerate(map(whole_number_of, columns[1])):
        if wanted is None or not 1 <= wanted <= sizes[row]:
            results.append(None)
            continue
        left = wanted - 1
        for starts, ends in frames.parts:
            length = ends[row] - starts[row]
            if left < length:
                results.append(values[starts[row] + left])
                break
            left -= length
    return results


# --- the table ----------------------------------------------------------------------------------------------


def _type_of_first(types: Sequence[LogicalType]) -> LogicalType:
    return types[0] if types else ANY


def _ranking(
    name: str,
    evaluate: Callable[[Partition, Sequence[Column], bool], list[Value]],
    returns: LogicalType,
    needs_order: bool = True,
) -> WindowFunction:
    return WindowFunction(name, evaluate, 0, 0, returns, needs_order=needs_order)


def _type_of_value_and_default(types: Sequence[LogicalType]) -> LogicalType:
    return merge_types((*types[:1], *types[2:3]))


def _looking(name: str, direction: int) -> WindowFunction:
    return WindowFunction(
        name,
        _shifted(direction),
        1,
        3,
        _type_of_value_and_default,
        nullable=True,
        needs_order=True,
        may_ignore_nulls=True,
    )


def _picking(
    name: str, evaluate: Callable[[Partition, Sequence[Column], bool], list[Value]], arguments: int
) -> WindowFunction:
    return WindowFunction(
        name,
        evaluate,
        arguments,
        arguments,
        _type_of_first,
        nullable=True,
        uses_frame=True,
        may_ignore_nulls=True,
    )


WINDOW_FUNCTIONS: Mapping[str, WindowFunction] = MappingProxyType(
    {
        function.name: function
        for function in (
            _ranking("row_number", _row_number, INTEGER, needs_order=False),
            _ranking("rank", _rank, INTEGER),
            _ranking("dense_rank", _dense_rank, INTEGER),
            _ranking("percent_rank", _percent_rank, REAL),
            _ranking("cume_dist", _cume_dist, REAL),
            WindowFunction("ntile", _ntile, 1, 1, INTEGER, needs_order=True),
            _looking("lag", -1),
            _looking("lead", 1),
            _picking("first_value", _first_value, 1),
            _picking("last_value", _last_value, 1),
            _picking("nth_value", _nth_value, 2),
        )
    }
)


def check_window_call(
    name: str, arguments: int, ordered: bool, position: SourcePosition | None = None
) -> WindowFunction:
    """The window function of a call with OVER; raises ERROR for an unknown name, arity or a missing ORDER BY.

    Aggregates are not found here: ask the function registry first.
    """
    function = WINDOW_FUNCTIONS.get(name.lower())
    if function is None:
        raise sql_error(StatusCode.ERROR, f"Unknown window function: {name}", position)
    if not function.minimum <= arguments <= function.maximum:
        if function.minimum < function.maximum and not arguments:
            message = f"{function.name} requires at least one argument"
        else:
            message = f"Window function {function.name} expects {function.maximum} arguments, got {arguments}"
        raise sql_error(StatusCode.ERROR, message, position)
    if function.needs_order and not ordered:
        raise sql_error(
            StatusCode.ERROR, f"Window function {function.name} requires ORDER BY clause", position
        )
    return function
