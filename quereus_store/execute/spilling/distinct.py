"""DISTINCT over more rows than memory.

As long as the identities of the rows met fit, rows stream as always.  After that the rows not met so far
are numbered and partitioned by hash; what is distinct in each partition is merged by number, so that rows
come in the order in which they were first met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from operator import itemgetter
from typing import Any

from quereus_store.execute.codegen.kernels import BATCH_SIZE
from quereus_store.execute.spilling.files import Partitions, Row, Run, SpillFile
from quereus_store.execute.spilling.sizes import about_size, rows_size
from quereus_store.execute.spilling.sorting import merged

_DEEPEST = 6

Identity = Callable[[Any], Any]


def external_distinct(batches: Iterable[list[Any]], key: Identity | None, share: int) -> Iterator[list[Any]]:
    """Rows (or values) not met before; ``key`` gives a row's identity, None where the row is its own."""
    seen: set[Any] = set()
    size = 0
    source = iter(batches)
    for batch in source:
        fresh = _fresh(batch, key, seen)
        if fresh:
            # The set takes about as much again as the rows in it.
            size += 2 * rows_size(fresh)
            yield fresh
        if size > share // 2:
            break
    else:
        return
    numbers = count()
    with SpillFile(share) as file:
        rest = (
            (identity, (number, row))
            for batch in source
            for number, row in zip(numbers, batch)  # noqa: B905 - numbers have no end
            if (identity := row if key is None else key(row)) not in seen
        )
        parts = _partitioned(file, rest, share, 0)
        seen.clear()
        runs = [_distinct(file, part, key, share, 1) for part in parts]
        for rows in merged(file, runs, itemgetter(0)):
            yield [row for _, row in rows]


def _fresh(batch: list[Any], key: Identity | None, seen: set[Any]) -> list[Any]:
    if key is None:
        fresh = [row for row in dict.fromkeys(batch) if row not in seen]
        seen.update(fresh)
        return fresh
    add = seen.add
    return [row for row in batch if (identity := key(row)) not in seen and not add(identity)]


def _partitioned(file: SpillFile, keyed: Iterable[tuple[Any, Row]], share: int, level: int) -> list[Run]:
    parts = Partitions(file, share // 2, level)
    iterator = iter(keyed)
    while few := list(islice(iterator, BATCH_SIZE)):
        parts.add(few)
    return parts.finished()


def _distinct(file: SpillFile, part: Run, key: Identity | None, share: int, level: int) -> Run:
    """The first of equal numbered rows, in order, as a run."""
    seen: set[Any] = set()
    size = 0
    run = file.run()
    source = part.batches()
    for batch in source:
        fresh = []
        for item in batch:
            identity = item[1] if key is None else key(item[1])
            if identity not in seen:
                seen.add(identity)
                fresh.append(item)
        run.extend(fresh)
        size += 2 * about_size(fresh)
        if size > share // 2 and level < _DEEPEST:
            break
    else:
        return run
    rest = (
        (identity, item)
        for batch in source
        for item in batch
        if (identity := item[1] if key is None else key(item[1])) not in seen
    )
    parts = _partitioned(file, rest, share, level)
    seen.clear()
    runs = [run, *(_distinct(file, inner, key, share, level + 1) for inner in parts)]
    whole = file.run()
    for rows in merged(file, runs, itemgetter(0)):
        whole.extend(rows)
    return whole
