"""Any aggregate over sliding frames.

The bounds of frames never fall (see ``frames``), so there is a way to evaluate in one pass for nearly every
aggregate; :func:`aggregate_over` takes the first that fits:

=====================  ==================================  =======================================
the frame is           the aggregate has                   way
=====================  ==================================  =======================================
the same for all rows  --                                  ``evaluate`` once
any                    sums (count, sum, total, avg)       differences of running sums
any                    an order (min, max)                 a queue of the rows that can still win
fixed at its start     an algebra                          count rows in
any                    ``remove``                          count rows in and out
any                    ``merge``                           two stacks of merged states
any                    nothing                             ``evaluate`` each distinct frame
=====================  ==================================  =======================================

Rows that a FILTER or NULL leaves out are taken out of the columns first, and the bounds are renumbered, so
the ways above know nothing of them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, compress, repeat
from operator import gt, lt, mul, sub
from typing import Any

from quereus_store.functions.aggregates.counting import COUNT_ROWS
from quereus_store.functions.aggregates.extremes import MAX, MIN, one_zero
from quereus_store.functions.aggregates.sums import AVG, SUM, TOTAL
from quereus_store.functions.registry import AggregateFunction, Algebra
from quereus_store.functions.windows.frames import Frames, Part
from quereus_store.types.values import Value, int_quotient

_FRACTIONS = 1024.0
"""Floats that are multiples of one part in so many (halves, quarters, ...) are summed as they are."""
_EXACT_BELOW = 2.0**53

Columns = Sequence[Sequence[Any]]
Key = Callable[[Value], Any]


def aggregate_over(
    function: AggregateFunction,
    frames: Frames,
    columns: Columns,
    *,
    key: Key | None = None,
    keep: Sequence[bool | None] | None = None,
    distinct: bool = False,
) -> list[Value]:
    """The aggregate of each row's frame.

    ``columns`` holds one list per argument over the rows of the partition; ``key`` is the order key of min
    and max; ``keep`` (FILTER) tells which rows count.  ``distinct`` has no effect on windows.
    """
    if not frames.size:
        return []
    without_arguments = not columns
    if without_arguments:
        columns = ([()] * frames.size,)  # the rows themselves, as ``evaluate`` wants them
    frames, columns = restricted(frames, columns, keep)
    if function.skips_nulls and not without_arguments:
        present = [value is not None for value in columns[0]]
        frames, columns = restricted(frames, columns, present)
    if frames.same_for_all:
        return [_evaluated(function, frames, 0, columns, key)] * frames.size
    fast = _FAST.get(function.evaluate)
    results = fast(frames, columns, key) if fast else None
    if results is not None:
        return results
    rows: list[Any] = list(columns[0]) if without_arguments else list(zip(*columns, strict=True))
    return _by_algebra(function, frames, columns, rows, key)


def restricted(
    frames: Frames, columns: Columns, keep: Sequence[bool | None] | None
) -> tuple[Frames, Columns]:
    """Take the rows out for which ``keep`` is not true, and renumber the bounds."""
    if keep is None or all(keep):
        return frames, columns
    kept_before = list(accumulate(map(bool, keep), initial=0))
    renumber = kept_before.__getitem__
    parts = tuple((list(map(renumber, starts)), list(map(renumber, ends))) for starts, ends in frames.parts)
    return Frames(frames.size, parts), [list(compress(column, keep)) for column in columns]


def _evaluated(
    function: AggregateFunction, frames: Frames, row: int, columns: Columns, key: Key | None
) -> Value:
    """The aggregate of one row's frame, the plain way."""
    runs = [(starts[row], ends[row]) for starts, ends in frames.parts]
    if len(runs) == 1:
        start, end = runs[0]
        gathered: list[Any] = [column[start:end] for column in columns]
    else:
        gathered = [[value for start, end in runs for value in column[start:end]] for column in columns]
    value: Value = function.evaluate(*gathered, **({"key": key} if function.collated else {}))
    return value


# --- counts and sums ----------------------------------------------------------------------------------------


def frame_sizes(frames: Frames) -> list[int]:
    """How many rows each frame holds."""
    if len(frames.parts) == 1 and not any(frames.parts[0][0]):
        return frames.parts[0][1]
    sizes = [map(sub, ends, starts) for starts, ends in frames.parts]
    return list(map(sum, zip(*sizes, strict=True))) if len(sizes) > 1 else list(sizes[0])


def _frame_sums(frames: Frames, numbers: Sequence[int]) -> list[int]:
    """The exact sum of integers over each frame."""
    running = list(accumulate(numbers, initial=0)).__getitem__
    if len(frames.parts) == 1 and not any(frames.parts[0][0]):
        return list(map(running, frames.parts[0][1]))
    sums = [map(sub, map(running, ends), map(running, starts)) for starts, ends in frames.parts]
    return list(map(sum, zip(*sums, strict=True))) if len(sums) > 1 else list(sums[0])


def _count(frames: Frames, columns: Columns, key: Key | None) -> list[Value]:
    return frame_sizes(frames)  # type: ignore[return-value]


def _as_integers(column: Sequence[Any]) -> tuple[Sequence[int], int] | None:
    """A column of integers, or of finite floats in a common unit of which so many make 1; None otherwise."""
    kinds = set(map(type, column))
    if kinds <= {int, bool}:
        return column, 0
    if kinds != {float} or not all(map(math.isfinite, column)):
        return None
    ratios = [number.as_integer_ratio() for number in column]
    unit = max(denominator for _, denominator in ratios)
    return [numerator * (unit // denominator) for numerator, denominator in ratios], unit


def _itself(total: Any, count: int) -> Any:
    return total


def _adds_exactly(column: Sequence[Any]) -> bool:
    """Whether any sum of these is exact: floats that are multiples of a fraction, neither many nor large."""
    if set(map(type, column)) != {float}:
        return False
    largest = max(max(column), -min(column)) * _FRACTIONS * len(column)
    return largest < _EXACT_BELOW and all(map(float.is_integer, map(mul, column, repeat(_FRACTIONS))))


def _float_sums(frames: Frames, numbers: Sequence[float]) -> list[float]:
    """The sum of floats that add exactly over each frame; 0 for one without rows."""
    return _frame_sums(frames, numbers)  # type: ignore[arg-type, return-value]


def _summing(
    of_nothing: Value, of_integers: Callable[[int, int], Value], of_floats: Callable[[float, int], Value]
) -> Callable[[Frames, Columns, Key | None], list[Value] | None]:
    """A fast way for an aggregate that is a function of the exact sum and the count."""

    def over(frames: Frames, columns: Columns, key: Key | None) -> list[Value] | None:
        if _adds_exactly(columns[0]):
            sums, sizes = _float_sums(frames, columns[0]), frame_sizes(frames)
            if of_floats is _itself and 0 not in sizes:
                return list(sums)
            return [
                of_floats(total, count) if count else of_nothing
                for total, count in zip(sums, sizes, strict=True)
            ]
        scaled = _as_integers(columns[0])
        if scaled is None:
            return None
        numbers, unit = scaled
        pairs = zip(_frame_sums(frames, numbers), frame_sizes(frames), strict=True)
        if not unit:
            return [of_integers(total, count) if count else of_nothing for total, count in pairs]
        divided = int_quotient
        return [of_floats(divided(total, unit), count) if count else of_nothing for total, count in pairs]

    return over


# --- min and max --------------------------------------------------------------------------------------------


def _extreme(
    better: Callable[[Any, Any], Any], beats: Callable[[Any, Any], bool]
) -> Callable[[Frames, Columns, Key | None], list[Value]]:
    """min or max: keep the rows that no later row of the frame beats; the first of them wins."""

    def winners(part: Part, keys: Sequence[Any]) -> Iterator[int | None]:
        queue: deque[int] = deque()
        reached = 0
        for start, end in zip(*part, strict=True):
            for row in range(max(reached, start), end):
                challenger = keys[row]
                while queue and beats(challenger, keys[queue[-1]]):
                    queue.pop()
                queue.append(row)
            reached = max(reached, end)
            while queue and queue[0] < start:
                queue.popleft()
            yield queue[0] if queue and start < end else None

    def over(frames: Frames, columns: Columns, key: Key | None) -> list[Value]:
        values = columns[0]
        if 0.0 in values:
            values = list(map(one_zero, values))
        keys = values if key is None else list(map(key, values))
        if len(frames.parts) == 1:
            starts, ends = frames.parts[0]
            if key is None and starts[0] == starts[-1]:
                running = [None, *accumulate(values[starts[0] :], better)]
                return [running[end - starts[0]] for end in ends]
            return [None if row is None else values[row] for row in winners(frames.parts[0], keys)]
        results: list[Value] = []
        for rows in zip(*[winners(part, keys) for part in frames.parts], strict=True):
            best: int | None = None
            for row in rows:
                if row is not None and (best is None or beats(keys[row], keys[best])):
                    best = row
            results.append(None if best is None else values[best])
        return results

    return over


_FAST: dict[Callable[..., Value], Callable[[Frames, Columns, Key | None], list[Value] | None]] = {
    COUNT_ROWS.evaluate: _count,
    SUM.evaluate: _summing(None, _itself, _itself),
    TOTAL.evaluate: _summing(0.0, lambda total, count: int_quotient(total, 1), _itself),
    AVG.evaluate: _summing(None, int_quotient, lambda total, count: total / count),
    MIN.evaluate: _extreme(min, lt),
    MAX.evaluate: _extreme(max, gt),
}


# --- algebras -----------------------------------------------------------------------------------------------


def _by_algebra(
    function: AggregateFunction,
    frames: Frames,
    columns: Columns,
    rows: Sequence[tuple[Value, ...]],
    key: Key | None,
) -> list[Value]:
    algebra = function.keyed_algebra(key) if function.keyed_algebra else function.algebra
    if algebra is None:
        return _each_frame(function, frames, columns, key)
    if len(frames.parts) == 1:
        part = frames.parts[0]
        if part[0][0] == part[0][-1]:
            return list(_finished(algebra, part, _counting_in(algebra, part, rows)))
        if algebra.remove is not None:
            return list(_finished(algebra, part, _counting_in_and_out(algebra, part, rows)))
    if algebra.merge is None or not algebra.shares_state:
        return _each_frame(function, frames, columns, key)
    if len(frames.parts) == 1:
        part = frames.parts[0]
        return list(_finished(algebra, part, _merging(algebra, part, rows)))
    return list(map(algebra.finish, _merged_parts(algebra, frames, rows)))


def _each_frame(
    function: AggregateFunction, frames: Frames, columns: Columns, key: Key | None
) -> list[Value]:
    """Evaluate every frame by itself, once for neighbours with the same frame."""
    results: list[Value] = []
    previous: list[tuple[int, int]] | None = None
    for row in range(frames.size):
        runs = [(starts[row], ends[row]) for starts, ends in frames.parts]
        results.append(results[-1] if runs == previous else _evaluated(function, frames, row, columns, key))
        previous = runs
    return results


def _finished(algebra: Algebra, part: Part, states: Iterator[Any]) -> Iterator[Value]:
    """The values of states, once for neighbours with the same frame."""
    finish = algebra.finish
    previous: tuple[int, int] | None = None
    value: Value = None
    for bounds, state in zip(zip(*part, strict=True), states, strict=True):
        if bounds != previous:
            value, previous = finish(state), bounds
        yield value


def _counting_in(algebra: Algebra, part: Part, rows: Sequence[tuple[Value, ...]]) -> Iterator[Any]:
    add, state, reached = algebra.add, algebra.start(), part[0][0]
    for end in part[1]:
        for row in range(reached, end):
            state = add(state, rows[row])
        reached = max(reached, end)
        yield state


def _counting_in_and_out(algebra: Algebra, part: Part, rows: Sequence[tuple[Value, ...]]) -> Iterator[Any]:
    add, remove, state = algebra.add, algebra.remove, algebra.start()
    assert remove is not None
    first = reached = 0
    for start, end in zip(*part, strict=True):
        if start >= reached:
            # Nothing of the old frame is left: begin anew rather than count all of it out.
            state, first, reached = algebra.start(), start, start
        for row in range(reached, end):
            state = add(state, rows[row])
        reached = max(reached, end)
        for row in range(first, start):
            state = remove(state, rows[row])
        first = max(first, start)
        yield state


def _merging(algebra: Algebra, part: Part, rows: Sequence[tuple[Value, ...]]) -> Iterator[Any]:
    """Two stacks: the older rows as merged states of their suffixes, the newer ones as one merged state."""
    merge, empty = algebra.merge, algebra.start()
    assert merge is not None
    states = [algebra.add(algebra.start(), row) for row in rows]
    suffixes: list[Any] = []  # suffixes[-1] covers rows from ``first`` up to ``turn``
    newer, first, turn, reached = empty, 0, 0, 0
    for start, end in zip(*part, strict=True):
        if start >= reached:
            suffixes, newer, first, turn, reached = [], empty, start, start, start
        for row in range(reached, end):
            newer = merge(newer, states[row])
        reached = max(reached, end)
        while first < start:
            if first == turn:
                suffixes = list(accumulate(reversed(states[turn:reached]), lambda old, new: merge(new, old)))
                newer, turn = empty, reached
            suffixes.pop()
            first += 1
        yield merge(suffixes[-1], newer) if suffixes else newer


def _merged_parts(algebra: Algebra, frames: Frames, rows: Sequence[tuple[Value, ...]]) -> Iterator[Any]:
    merge = algebra.merge
    assert merge is not None
    for states in zip(*[_merging(algebra, part, rows) for part in frames.parts], strict=True):
        state = states[0]
        for other in states[1:]:
            state = merge(state, other)
        yield state
