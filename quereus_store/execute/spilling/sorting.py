"""Sorting more rows than memory: sorted runs in a temporary file, merged by one composite key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any

from quereus_store.execute.codegen.kernels import BATCH_SIZE, in_batches, limit_batches, row_limit, top_rows
from quereus_store.execute.spilling.files import RUNS_AT_ONCE, Row, Run, SpillFile
from quereus_store.execute.spilling.sizes import rows_size

Batches = Iterable[list[Row]]
Sort = Callable[[list[Row]], list[Row]]
Key = Callable[[Row], Any]

_FEW = 4096


def external_sort(batches: Batches, sort: Sort, key: Key, share: int) -> Iterator[list[Row]]:
    """All rows in order.

    ``sort`` sorts a list stably, ``key`` gives a key of a whole row by which the same order comes about.
    """
    source = iter(batches)
    rows, size = [], 0
    for batch in source:
        rows += batch
        size += rows_size(batch)
        if size > share // 2:
            break
    else:
        yield from in_batches(sort(rows))
        return
    with SpillFile(share) as file:
        runs = [_written(file, sort(rows))]
        rows, size = [], 0
        for batch in source:
            rows += batch
            size += rows_size(batch)
            if size > share // 2:
                runs.append(_written(file, sort(rows)))
                rows, size = [], 0
        runs.append(_written(file, sort(rows)))
        del rows
        yield from merged(file, runs, key)


def _written(file: SpillFile, rows: list[Row]) -> Run:
    run = file.run()
    run.extend(rows)
    return run


def merged(file: SpillFile, runs: list[Run], key: Key) -> Iterator[list[Row]]:
    """The rows of sorted runs in order, those of earlier runs first among equals."""
    while len(runs) > RUNS_AT_ONCE:
        longer = []
        for start in range(0, len(runs), RUNS_AT_ONCE):
            run = file.run()
            run.add_all(merge(*[part.rows() for part in runs[start : start + RUNS_AT_ONCE]], key=key))
            longer.append(run)
        runs = longer
    rows = merge(*[run.rows() for run in runs], key=key)
    while batch := list(islice(rows, BATCH_SIZE)):
        yield batch


def external_top(
    batches: Batches,
    sort: Sort,
    contenders: Callable[[list[Row], Row], list[Row]] | None,
    count: Any,
    offset: Any,
    key: Key,
    share: int,
) -> Iterable[list[Row]]:
    """The first ``count`` rows in order after ``offset``: few are kept while reading, many are sorted."""
    if row_limit(count, float("inf")) + row_limit(offset, 0) <= _FEW:
        return in_batches(top_rows(batches, sort, contenders, count, offset))
    return limit_batches(external_sort(batches, sort, key, share), count, offset)
