"""The window of a merge join: the right rows whose keys may still meet rows of the left.

Both inputs come in ascending order.  For each batch of the left the window takes in right rows
until their keys have passed the batch's last one; when it has grown large, it drops what
lies before the batch's first.  So a join reads no more of the right than the left has keys for, and holds
a few batches of it at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from quereus_store.execute.codegen.kernels import BATCH_SIZE
from quereus_store.modules.contract import Row

_LARGE = 8 * BATCH_SIZE

Piece = tuple[list[Any], dict[Any, Any]]


class MergeWindow:
    """Right rows by their join keys, moving along with the batches of the left.

    ``pieces`` gives the right side's batches in order: the values that order its first and last row, and its
    rows by join key; ``order`` turns such a value into what sorts it (None: values sort themselves).
    With ``lists`` a key has a list of rows.
    """

    __slots__ = ("_ended", "_kept", "_last", "_lists", "_order", "_pieces", "_table")

    def __init__(self, pieces: Iterator[Piece], order: Callable[[Any], Any] | None, lists: bool) -> None:
        self._pieces = pieces
        self._order = order
        self._lists = lists
        self._table: dict[Any, Any] = {}
        self._kept: list[tuple[Any, dict[Any, Any]]] = []
        self._last: Any = None
        self._ended = False

    def upto(self, ends: list[Any]) -> Callable[..., Any]:
        """The look-up of the rows for a left batch; ``ends`` are its first and last ordering value."""
        if ends:
            first, last = ends if self._order is None else map(self._order, ends)
            if len(self._table) > _LARGE:
                self._shrink(first)
            while not self._ended and (self._last is None or self._last <= last):
                self._take()
        return self._table.get

    def _take(self) -> None:
        """The next piece of the right side."""
        for ends, rows in self._pieces:
            if not ends:
                continue
            self._last = ends[-1] if self._order is None else self._order(ends[-1])
            self._kept.append((self._last, rows))
            self._add(rows)
            return
        self._ended = True

    def _add(self, rows: dict[Any, Any]) -> None:
        table = self._table
        if not self._lists or not table:
            table.update(rows)
            return
        for key, found in rows.items():
            known = table.get(key)
            table[key] = found if known is None else known + found

    def _shrink(self, first: Any) -> None:
        """Only the pieces that reach as far as the left is now."""
        self._kept = [(last, rows) for last, rows in self._kept if last >= first]
        self._table = {}
        for _, rows in self._kept:
            self._add(rows)


def rows_by_key(pairs: list[tuple[Any, Row]]) -> dict[Any, list[Row]]:
    """Rows in lists by their keys."""
    table: dict[Any, list[Row]] = defaultdict(list)
    for key, row in pairs:
        table[key].append(row)
    return dict(table)
