"""Scans of a transaction that writes: snapshots of a moving state.

A reader's scan streams from its pinned snapshot.  A writer's scan streams from the
transaction's own changing state, yet must give the rows as they were when it began.  So
the writer knows its unfinished scans per table, and before it changes a table (or returns to
a savepoint) the rest of each unfinished scan is read into memory.  A scan that is
drained first, as statements do, costs nothing extra; an abandoned one is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from weakref import WeakSet

from quereus_store.modules.contract import Batch


class LiveScan:
    """Batches from a writer's transaction; :meth:`freeze` makes it independent of what follows."""

    __slots__ = ("__weakref__", "_batches")

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._batches = batches

    def __iter__(self) -> LiveScan:
        return self

    def __next__(self) -> Batch:
        return next(self._batches)

    def freeze(self) -> None:
        """Read the rest now."""
        self._batches = iter(list(self._batches))


class OpenScans:
    """The unfinished scans of one writer, by store id."""

    __slots__ = ("_by_store",)

    def __init__(self) -> None:
        self._by_store: dict[int, WeakSet[LiveScan]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_store)

    def add(self, store: int, batches: Iterator[Batch]) -> LiveScan:
        """Watch over a scan of a table."""
        scan = LiveScan(batches)
        self._by_store.setdefault(store, WeakSet()).add(scan)
        return scan

    def freeze(self, store: int) -> None:
        """The table is about to change."""
        _freeze(self._by_store.pop(store, ()))

    def freeze_all(self) -> None:
        """Every table is about to change."""
        while self._by_store:
            _freeze(self._by_store.popitem()[1])


def _freeze(scans: Iterable[LiveScan]) -> None:
    for scan in list(scans):
        scan.freeze()
