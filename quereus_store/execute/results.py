"""What a statement gives back: columns, batches of rows, a row count.

A result may still be reading: its batches come from a pinned snapshot as they
are asked for.  :meth:`Result.close` lets the snapshot go; so does reading to the
end.  Before the same transaction writes, what is left of an open result is read
ahead (:meth:`Result.drain`), so that a statement never sees a later one's work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from quereus_store.modules.contract import Row
from quereus_store.plan.expressions import Column

Batches = Iterable[list[Row]]


class Result:
    """Rows of a statement; without any ``columns`` is None, where nothing changed ``row_count`` is -1."""

    __slots__ = ("__weakref__", "_batches", "_release", "columns", "row_count")

    def __init__(
        self,
        columns: tuple[Column, ...] | None = None,
        batches: Batches = (),
        row_count: int = -1,
        release: Callable[[], Any] | None = None,
    ) -> None:
        self.columns = columns
        self.row_count = row_count
        self._batches = iter(batches)
        self._release = release

    def batches(self) -> Iterator[list[Row]]:
        """The rows not read yet, a batch at a time."""
        return iter(self.next_batch, None)

    def next_batch(self) -> list[Row] | None:
        """The next batch that has rows; None at the end, when the snapshot is let go."""
        try:
            for batch in self._batches:
                if batch:
                    return batch
        except BaseException:
            self.close()
            raise
        if self._release is not None:
            self.close()
        return None

    def all_rows(self) -> list[Row]:
        """Every row not read yet."""
        try:
            return list(chain.from_iterable(self._batches))
        finally:
            self.close()

    def drain(self) -> None:
        """Read the rest now and let the snapshot go."""
        if self._release is not None:
            self._batches = iter([self.all_rows()])

    def close(self) -> None:
        """Let the snapshot go; may be repeated."""
        release, self._release = self._release, None
        if release is not None:
            release()
