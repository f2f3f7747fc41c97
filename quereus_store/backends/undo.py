"""What it takes to come back to a savepoint: the keys written since, with what they held.

Notes are kept in memory up to a bound; then they go to an unnamed temporary file, oldest first, and are read
back from its end where a savepoint is rolled back to.  So a statement that rewrites a table of any size
keeps a bounded part of it in memory.  A file that cannot be written is done without.
"""

from __future__ import annotations

import marshal
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO

from quereus_store.backends.contract import Previous

Note = tuple[Sequence[bytes], Previous | Sequence[bytes | None] | None]
"""Keys that were written and what they held before, or what can tell; None: nothing at all."""

HELD = 16 * 2**20
"""So many bytes of keys and values are held in memory."""

MANY = 100_000
"""So many notes are held in memory, however small."""

_PER_KEY = 64


class UndoLog:
    """The notes of one transaction, in order; ``recent`` are those in memory, which may be appended to."""

    __slots__ = ("_file", "_held", "_pieces", "_spilled", "recent")

    def __init__(self) -> None:
        self.recent: list[Note] = []
        self._held = 0
        self._pieces: list[tuple[int, int, int]] = []
        self._spilled = 0
        self._file: IO[bytes] | None = None

    def position(self) -> int:
        """The number of notes so far; where :meth:`back_to` may return to."""
        if len(self.recent) > MANY:
            self._spill()
        return self._spilled + len(self.recent)

    def note(self, keys: Sequence[bytes], before: Previous | Sequence[bytes | None] | None) -> None:
        """Note what many keys held."""
        self.recent.append((keys, before))
        size = _PER_KEY * len(keys) + sum(map(len, keys))
        if before is not None and not callable(before):
            size += sum([len(value) for value in before if value is not None])
        self._held += size
        if self._held > HELD:
            self._spill()

    def back_to(self, position: int) -> Iterator[Note]:
        """The notes since a position, the last one first; they are forgotten."""
        while self._spilled + len(self.recent) > position:
            if not self.recent:
                self._read_piece()
            yield self.recent.pop()

    def clear(self) -> None:
        """Forget everything."""
        self.recent.clear()
        self._held = 0
        if self._file is not None:
            self._pieces.clear()
            self._spilled = 0
            self._file.close()
            self._file = None

    def _spill(self) -> None:
        notes = [
            (list(keys), before() if callable(before) else None if before is None else list(before))
            for keys, before in self.recent
        ]
        packed = marshal.dumps(notes)
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by clear()
            start = self._pieces[-1][0] + self._pieces[-1][1] if self._pieces else 0
            self._file.seek(start)
            self._file.write(packed)
            self._file.flush()
        except OSError:
            # Without room for it everything stays in memory, and is not tried again for as much again.
            self._held = 0
            return
        self._pieces.append((start, len(packed), len(notes)))
        self._spilled += len(notes)
        self.recent.clear()
        self._held = 0

    def _read_piece(self) -> None:
        assert self._file is not None
        start, length, count = self._pieces.pop()
        self._file.seek(start)
        self.recent += marshal.loads(self._file.read(length))
        self._spilled -= count
