"""Changes that are not written yet, over a database that has no transactions of its own.

The overlay is a dictionary from key to new value, or to ``None`` for a removed key.  Loads and single
rows need no more than that.  The first read of a range puts the keys in order as well, and from then
on the order is kept: keys added since the last range read are merged in before the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from sortedcontainers import SortedList


class Untouched:
    """The type of :data:`UNTOUCHED`."""


Held = bytes | Untouched | None

UNTOUCHED: Final = Untouched()
"""What stands for a key that an overlay does not hold."""


class Overlay:
    """Pending changes by key, in key order where that is asked for."""

    __slots__ = ("_added", "_ordered", "changes")

    def __init__(self) -> None:
        self.changes: dict[bytes, bytes | None] = {}
        self._ordered: SortedList | None = None
        self._added: list[bytes] = []

    def update(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Hold these changes, the last of equal keys."""
        if self._ordered is None:
            self.changes.update(changes)
            return
        new = dict(changes)
        self._added += [key for key in new if key not in self.changes]
        self.changes.update(new)

    def put(self, key: bytes, value: bytes) -> None:
        """Hold one change."""
        if self._ordered is not None and key not in self.changes:
            self._added.append(key)
        self.changes[key] = value

    def restore(self, keys: Sequence[bytes], held: Sequence[Held]) -> None:
        """Hold again what was held for some keys before; of equal keys the first counts."""
        before = dict(zip(reversed(keys), reversed(held), strict=True))
        gone = [key for key, value in before.items() if value is UNTOUCHED and key in self.changes]
        for key in gone:
            del self.changes[key]
        if self._ordered is not None and gone:
            ordered = self._in_order()
            for key in gone:
                ordered.remove(key)
        self.update((key, value) for key, value in before.items() if not isinstance(value, Untouched))

    def range(self, lower: bytes, upper: bytes | None, reverse: bool) -> Iterator[bytes]:
        """The keys held from ``lower`` to before ``upper``, in order."""
        keys: Iterator[bytes] = self._in_order().irange(lower, upper, (True, False), reverse)
        return keys

    def disjoint(self, keys: Sequence[bytes]) -> bool:
        """Whether none of these keys is held."""
        return self.changes.keys().isdisjoint(keys)

    def clear(self) -> None:
        """Hold nothing."""
        self.changes.clear()
        self._ordered = None
        self._added.clear()

    def _in_order(self) -> SortedList:
        if self._ordered is None:
            self._ordered = SortedList(self.changes)
        elif self._added:
            self._ordered.update(self._added)
            self._added = []
        return self._ordered
