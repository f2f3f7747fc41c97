"""Rows that are read more than once: kept in memory while they fit, in a temporary file beyond that.

Results of correlated subqueries, which can be had again, are forgotten instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from quereus_store.execute.codegen.kernels import cached, in_batches
from quereus_store.execute.spilling.files import Run, SpillFile
from quereus_store.execute.spilling.sizes import rows_size


class Replay:
    """The rows of an input, to be read any number of times, each time in their order.

    The file, if there is one, goes with the object, or at the end of ``with``.
    """

    __slots__ = ("_file", "_rows", "_run")

    def __init__(self, batches: Iterable[list[Any]], share: int) -> None:
        self._rows: list[Any] = []
        self._file: SpillFile | None = None
        self._run: Run | None = None
        source, size = iter(batches), 0
        for batch in source:
            self._rows += batch
            size += rows_size(batch)
            if size > share // 2:
                break
        else:
            return
        self._file = SpillFile(share)
        self._run = self._file.run()
        self._run.extend(self._rows)
        self._rows = []
        for batch in source:
            self._run.extend(batch)

    def batches(self) -> Iterable[list[Any]]:
        """The rows from the first to the last."""
        return in_batches(self._rows) if self._run is None else self._run.batches()

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_ENTRY = 300
"""About what a result takes beside its own size: an entry in a dictionary, its key."""


def cached_within(function: Callable[..., Any], share: int) -> Callable[..., Any]:
    """The function with its results kept by arguments, as many as fit."""
    held = 0

    def fits(value: Any) -> bool:
        nonlocal held
        size = rows_size([value]) + _ENTRY
        held += size
        if held <= share:
            return True
        held = size
        return False

    return cached(function, fits)
