"""Temporary files of rows.

A :class:`SpillFile` is an unnamed file of the operating system: it has no entry in any folder (on systems
without such files it is deleted when it is closed), so nothing is left behind whatever happens to the
process.  Rows are written in chunks with ``marshal``, which knows just the types that SQL values have; a
:class:`Run` is a list of chunks to be read back in order, a few at a time.
"""

from __future__ import annotations

import marshal
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from quereus_store.execute.spilling.sizes import about_size

Row = tuple[Any, ...]

Place = tuple[int, int]
"""Where a chunk begins in a file, and how long it is."""

LEAST_SHARE = 16_384
"""No operator gets less than this, however small the limit: smaller chunks would only take time."""

RUNS_AT_ONCE = 32
"""So many runs are merged in one go, and so many partitions made of one input."""


class SpillFile:
    """One temporary file of many runs; closed, and so deleted, at the end of ``with`` or when forgotten."""

    def __init__(self, share: int) -> None:
        self._file = tempfile.TemporaryFile(prefix="quereus-", buffering=0)  # noqa: SIM115 - it outlives this call
        self._end = 0
        # All runs that are read at once fit into half of the share, with one chunk of each.
        self._chunk_size = max(share // (2 * RUNS_AT_ONCE), 512)

    def run(self) -> Run:
        """A new, empty run."""
        return Run(self)

    def write(self, rows: list[Row]) -> list[Place]:
        """Append rows as chunks of a fitting size; their places."""
        places = []
        step = max(1, self._chunk_size * len(rows) // max(about_size(rows), 1))
        for start in range(0, len(rows), step):
            places.append(self.put(rows[start : start + step]))
        return places

    def put(self, rows: list[Row]) -> Place:
        """Append rows as one chunk; its place."""
        data = marshal.dumps(rows)
        self._file.seek(self._end)
        written = self._file.write(data)
        while written < len(data):
            written += self._file.write(data[written:])
        place = (self._end, len(data))
        self._end += len(data)
        return place

    def read(self, place: Place) -> list[Row]:
        """The rows of one chunk."""
        start, size = place
        self._file.seek(start)
        data = self._file.read(size)
        while len(data) < size:
            data += self._file.read(size - len(data))
        rows: list[Row] = marshal.loads(data)
        return rows

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    def __del__(self) -> None:
        # Where no file could be made there is none.
        if hasattr(self, "_file"):
            self.close()

    def __enter__(self) -> SpillFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Run:
    """Rows in a file, in the order in which they were added."""

    __slots__ = ("_file", "_places")

    def __init__(self, file: SpillFile) -> None:
        self._file = file
        self._places: list[Place] = []

    def extend(self, rows: list[Row]) -> None:
        """Add rows; they are written at once."""
        if rows:
            self._places += self._file.write(rows)

    def add_all(self, rows: Iterable[Row]) -> None:
        """Add rows from an iterator, a few at a time."""
        iterator = iter(rows)
        while few := list(islice(iterator, 256)):
            self.extend(few)

    def batches(self) -> Iterator[list[Row]]:
        """The rows, a chunk at a time."""
        return map(self._file.read, self._places)

    def rows(self) -> Iterator[Row]:
        """The rows, one by one."""
        return chain.from_iterable(self.batches())

    def __bool__(self) -> bool:
        return bool(self._places)


class Partitions:
    """Rows sorted out by the hash of their keys into runs that can be worked on one after the other."""

    def __init__(self, file: SpillFile, share: int, level: int) -> None:
        self.runs = [file.run() for _ in range(RUNS_AT_ONCE)]
        self._share = share // 2
        self._level = level
        self._waiting: list[list[Row]] = [[] for _ in self.runs]
        self._size = 0

    def add(self, keyed: Iterable[tuple[Any, Row]]) -> None:
        """Add rows with their keys; equal keys go into the same run, a level apart into others."""
        waiting, count, level = self._waiting, len(self.runs), self._level
        added = []
        for key, row in keyed:
            # The upper bits of a small integer's hash say nothing, hence a tuple.
            waiting[hash((level, key)) % count].append(row)
            added.append(row)
        self._size += about_size(added)
        if self._size > self._share:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        for run, rows in zip(self.runs, self._waiting, strict=True):
            run.extend(rows)
        self._waiting = [[] for _ in self.runs]
        self._size = 0

    def finished(self) -> list[Run]:
        """The runs that have rows, complete."""
        self.flush()
        return [run for run in self.runs if run]
