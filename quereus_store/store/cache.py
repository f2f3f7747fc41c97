"""The cache of decoded batches: what lets an unchanged table be read at the speed of memory.

A full scan of a table leaves its batches here, filed under the table's store id with the
change counter of the snapshot it read.  The counter lives in the key space and every commit
that touches the table raises it, in whatever process: so a later scan whose snapshot has
the same counter may hand out the very same lists, and no other check is needed.

The cache is bounded in bytes.  Whether a table fits is decided when its first batch is
there, from a sample of decoded rows and the exact row count: a table that would not fit is
streamed and never gathered.  When room is needed the tables unused for longest go.

A range of the primary key that is found here is not read either (``slices.py``).  A table whose ranges are
read while it is not here is gathered on the second time that most of it is asked for in the same state.

Batches are shared: whoever gets one must not change it (the module contract says so).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from sys import getsizeof
from threading import Lock
from typing import Any

from quereus_store.modules.contract import Batch

DEFAULT_CACHE_SIZE = 64 * 2**20

_SAMPLE = 32
_POINTER = 8


class Gathered(list[Batch]):
    """All batches of a table; ``lasts`` are the last key values of each, once somebody has searched them."""

    __slots__ = ("lasts",)

    def __init__(self, batches: Iterable[Batch]) -> None:
        super().__init__(batches)
        self.lasts: list[Any] | None = None


class BatchCache:
    """Decoded tables by store id, bounded in bytes; may be used by several threads."""

    def __init__(self, size: int = DEFAULT_CACHE_SIZE) -> None:
        self._size = size
        self._used = 0
        self._wanted: dict[int, int] = {}
        self._entries: OrderedDict[int, tuple[int, Gathered, int]] = OrderedDict()
        self._lock = Lock()

    @property
    def used(self) -> int:
        """Estimated bytes held."""
        return self._used

    def get(self, store: int, changes: int) -> Gathered | None:
        """The batches of a table in exactly this state, or None."""
        entry = self._entries.get(store)
        if entry is None or entry[0] != changes:
            return None
        if len(self._entries) > 1:
            with self._lock:
                if store in self._entries:
                    self._entries.move_to_end(store)
        return entry[1]

    def holds(self, store: int) -> bool:
        """Whether some state of a table is here, or wanted."""
        return store in self._entries or store in self._wanted

    def want(self, store: int, changes: int) -> None:
        """Most of a table was read in this state: if that happens again, it is worth gathering."""
        self._wanted[store] = changes

    def is_wanted(self, store: int, changes: int) -> bool:
        """Whether most of a table was read in this state."""
        return self._wanted.get(store) == changes

    def reserve(self, store: int, first: Batch, rows: int) -> int | None:
        """Make room for a table of so many rows like these; its estimated size, or None if it cannot fit."""
        self._wanted.pop(store, None)
        size = estimate_size(first, rows)
        if size > self._size:
            return None
        with self._lock:
            self._remove(store)
            while self._used + size > self._size:
                self._remove(next(iter(self._entries)))
        return size

    def put(self, store: int, changes: int, batches: list[Batch], size: int) -> None:
        """File a whole table; an older state of it is dropped, a newer one stays."""
        with self._lock:
            present = self._entries.get(store)
            if present is not None and present[0] > changes:
                return
            self._remove(store)
            while self._entries and self._used + size > self._size:
                self._remove(next(iter(self._entries)))
            self._entries[store] = (changes, Gathered(batches), size)
            self._used += size

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._wanted.clear()
            self._used = 0

    def _remove(self, store: int) -> None:
        entry = self._entries.pop(store, None)
        if entry is not None:
            self._used -= entry[2]


def estimate_size(batch: Batch, rows: int) -> int:
    """Bytes that so many rows like those of the batch take when decoded."""
    sample = batch[:: max(1, len(batch) // _SAMPLE)]
    return rows * (sum(map(_deep_size, sample)) // len(sample) + _POINTER)


def _deep_size(value: Any) -> int:
    size = getsizeof(value)
    if isinstance(value, dict):
        return size + sum(map(_deep_size, value)) + sum(map(_deep_size, value.values()))
    if isinstance(value, (tuple, list)):
        return size + sum(map(_deep_size, value))
    return size
