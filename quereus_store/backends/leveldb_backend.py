"""The LevelDB backend: one folder, one process, one atomic batch for each commit.

LevelDB has snapshots and batches but no transactions.  A reader is a snapshot.  A writer collects its changes
in an *overlay* (key to value, or to ``None`` for a removed key) that its reads see above the database;
``commit`` writes the overlay as one batch, which LevelDB makes atomic, and synced if asked to.  A savepoint
is a position in a list of what the overlay held before each change since.

LevelDB belongs to one process: a second one gets BUSY.  It cannot cross a fork either; a child that inherits
an open database refuses to use it.

======================  ===============================================================================
option                  meaning
======================  ===============================================================================
``synchronous``         ``full`` (default): a durable commit is on disk when it returns.  ``normal``,
                        ``off``: a system crash may lose the last commits, never part of one.
``write_buffer_size``   bytes collected in memory before a sorted file is written (32 MiB)
``cache_size``          bytes of blocks kept in memory (64 MiB)
``create``              make the database if it is missing (default)
``readonly``            refuse to write; the folder must exist (LevelDB still writes its own files)
``faults``              for tests: called with ``"commit"`` before each commit, may raise ``OSError``
======================  ===============================================================================

Chapters: store-and-modules, sections 2, 12 and 15.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice, pairwise, repeat, starmap
from operator import itemgetter, lt
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self
from weakref import WeakSet

try:
    import plyvel
except ImportError:  # The same binding under the name that newer interpreters have it.
    import plyvel_next as plyvel

from quereus_store.backends.contract import Item, Previous, Savepoint
from quereus_store.backends.forking import abandon, watch
from quereus_store.backends.locking import WriterLock, closed
from quereus_store.backends.memory import find_savepoint
from quereus_store.backends.overlay import UNTOUCHED, Held, Overlay
from quereus_store.errors import Error, StatusCode, sql_error

_FAILURES = (plyvel.Error, OSError)
_key_of: Callable[[Item], bytes] = itemgetter(0)

_ITEMS: dict[str, bool] = {}
_KEYS = {"include_value": False}
_VALUES = {"include_key": False}

_BY_TEXT: Mapping[str, StatusCode] = MappingProxyType(
    {
        "No space left": StatusCode.FULL,
        "quota exceeded": StatusCode.FULL,
        "File too large": StatusCode.FULL,
        "Permission denied": StatusCode.READONLY,
        "Read-only": StatusCode.READONLY,
        "already held by process": StatusCode.BUSY,
        "temporarily unavailable": StatusCode.BUSY,
        "No such file": StatusCode.CANTOPEN,
    }
)
"""What LevelDB's messages hold, the first that fits."""


def _translate(failure: Exception, path: str, doing: str) -> Error:
    text = failure.args[0] if failure.args else str(failure)
    reason = text.decode(errors="replace") if isinstance(text, bytes) else str(failure)
    return sql_error(_code(failure, reason), f"cannot {doing} '{path}': {reason}")


def _code(failure: Exception, reason: str) -> StatusCode:
    if isinstance(failure, plyvel.CorruptionError):
        return StatusCode.CORRUPT
    return next((code for text, code in _BY_TEXT.items() if text in reason), StatusCode.IOERR)


class LeveldbReadTransaction:
    """A snapshot."""

    __slots__ = ("__weakref__", "_backend", "_source")

    def __init__(self, backend: LeveldbBackend, source: Any) -> None:
        self._backend = backend
        self._source = source

    def _live(self) -> Any:
        if self._source is None or not self._backend.usable:
            raise closed("transaction")
        return self._source

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``, or None."""
        try:
            value: bytes | None = self._live().get(key)
        except _FAILURES as failure:
            raise _translate(failure, self._backend.path, "read") from failure
        return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of ``keys`` by position."""
        try:
            return list(map(self._live().get, keys))
        except _FAILURES as failure:
            raise _translate(failure, self._backend.path, "read") from failure

    def scan(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[Item]]:
        """Items of a range in batches."""
        return self._batches(lower, upper, reverse, batch_size, _ITEMS)

    def scan_keys(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[bytes]]:
        """Keys of a range in batches."""
        return self._batches(lower, upper, reverse, batch_size, _KEYS)

    def scan_values(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[bytes]]:
        """Values of a range in batches."""
        return self._batches(lower, upper, reverse, batch_size, _VALUES)

    def first_values(
        self, lower: bytes, upper: bytes | None, limit: int, *, reverse: bool = False
    ) -> list[bytes]:
        """Values of the first items of a range, at most ``limit``."""
        batches = self.scan_values(lower, upper, reverse=reverse, batch_size=max(limit, 1))
        return list(islice(chain.from_iterable(batches), limit))

    def _batches(
        self, lower: bytes, upper: bytes | None, reverse: bool, batch_size: int, options: dict[str, bool]
    ) -> Iterator[list[Any]]:
        if upper is not None and lower >= upper:
            return
        if reverse:
            pick = itemgetter(0) if options == _KEYS else itemgetter(1) if options == _VALUES else None
            for items in self._backwards(lower, upper, batch_size):
                yield items if pick is None else list(map(pick, items))
            return
        try:
            with closing(self._live().iterator(start=lower, stop=upper, **options)) as entries:
                while batch := list(islice(entries, batch_size)):
                    yield batch
                    self._live()
        except _FAILURES as failure:
            raise _translate(failure, self._backend.path, "read") from failure

    def _backwards(self, lower: bytes, upper: bytes | None, batch_size: int) -> Iterator[list[Item]]:
        """Items in reverse.  A reverse iterator with two close bounds misses keys, so one is kept here."""
        try:
            with closing(self._live().iterator(stop=upper, reverse=True)) as entries:
                while batch := list(islice(entries, batch_size)):
                    if batch[-1][0] < lower:
                        batch = [item for item in batch if item[0] >= lower]
                        if batch:
                            yield batch
                        return
                    yield batch
                    self._live()
        except _FAILURES as failure:
            raise _translate(failure, self._backend.path, "read") from failure

    def count(self, lower: bytes, upper: bytes | None) -> int:
        """How many keys a range has, exactly."""
        return sum(map(len, self.scan_keys(lower, upper)))

    def close(self) -> None:
        """Release the snapshot; may be repeated."""
        source, self._source = self._source, None
        if source is not None and self._backend.usable:
            source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class LeveldbWriteTransaction(LeveldbReadTransaction):
    """The writer's transaction: an overlay above the database, which nobody else can change meanwhile."""

    __slots__ = ("_last_token", "_overlay", "_savepoints", "_undo")

    def __init__(self, backend: LeveldbBackend, database: Any) -> None:
        super().__init__(backend, database)
        self._overlay = Overlay()
        self._savepoints: list[tuple[int, int]] = []
        self._undo: list[tuple[Sequence[bytes], list[Held]]] = []
        self._last_token = 0

    # --- reading through the overlay ------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``, or None."""
        value: Any = self._overlay.changes.get(key, UNTOUCHED)
        return super().get(key) if value is UNTOUCHED else value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of ``keys`` by position."""
        return super().get_many(keys) if self._overlay.disjoint(keys) else list(map(self.get, keys))

    def scan(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[Item]]:
        """Items of a range in batches."""
        while upper is None or lower < upper:
            items, reached = self._fetch(lower, upper, reverse, batch_size)
            for start in range(0, len(items), batch_size):
                yield items[start : start + batch_size]
            if reached is None:
                return
            if reverse:
                upper = reached
            else:
                lower = reached + b"\0"

    def scan_keys(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[bytes]]:
        """Keys of a range in batches."""
        for items in self.scan(lower, upper, reverse=reverse, batch_size=batch_size):
            yield [key for key, _ in items]

    def scan_values(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[bytes]]:
        """Values of a range in batches."""
        for items in self.scan(lower, upper, reverse=reverse, batch_size=batch_size):
            yield [value for _, value in items]

    def _fetch(
        self, lower: bytes, upper: bytes | None, reverse: bool, limit: int
    ) -> tuple[list[Item], bytes | None]:
        """Items from the start of a range, and the key up to which it is read (None: all of it)."""
        stored: list[Item] = next(super()._batches(lower, upper, reverse, limit, _ITEMS), [])
        changed = list(islice(self._overlay.range(lower, upper, reverse), limit))
        ends = [keys[-1] for keys in ([key for key, _ in stored], changed) if len(keys) == limit]
        reached = (max if reverse else min)(ends) if ends else None
        if not changed:
            return stored, reached
        merged: dict[bytes, bytes | None] = dict(stored)
        merged.update((key, self._overlay.changes[key]) for key in changed)
        items = [(key, value) for key, value in merged.items() if value is not None]
        if reached is not None:
            items = [item for item in items if (item[0] >= reached if reverse else item[0] <= reached)]
        items.sort(key=_key_of, reverse=reverse)
        return items, reached

    # --- writing --------------------------------------------------------------------------------------

    def _note(self, keys: Sequence[bytes]) -> None:
        self._live()
        if self._savepoints:
            self._undo.append((keys, list(map(self._overlay.changes.get, keys, repeat(UNTOUCHED)))))

    def put(self, key: bytes, value: bytes) -> None:
        """Store an item."""
        self._note((key,))
        self._overlay.update(((key, value),))

    def put_many(self, items: Sequence[Item], previous: Previous | None = None) -> None:
        """Store items; the last of equal keys wins."""
        self._note(list(map(_key_of, items)))
        self._overlay.update(items)

    def insert(self, key: bytes, value: bytes) -> bool:
        """Store an item unless its key exists; whether it was stored."""
        if self.get(key) is not None:
            return False
        self.put(key, value)
        return True

    def insert_many(self, items: Sequence[Item]) -> int | None:
        """Store items up to the first whose key exists; its index, or None."""
        keys = list(map(_key_of, items))
        end = None if self._all_new(keys) else self._first_present(keys)
        self._note(keys[:end])
        self._overlay.update(items[:end])
        return end

    def _all_new(self, keys: list[bytes]) -> bool:
        """Whether these are surely different keys in a range that holds none: one seek instead of many."""
        if not keys:
            return True
        if all(starmap(lt, pairwise(keys))):
            lowest, highest, distinct = keys[0], keys[-1], True
        else:
            lowest, highest, distinct = min(keys), max(keys), len(set(keys)) == len(keys)
        if not distinct or not self._overlay.disjoint(keys):
            return False
        stored = super()._batches(lowest, highest + b"\0", False, 1, _KEYS)
        return next(stored, None) is None

    def _first_present(self, keys: list[bytes]) -> int | None:
        present = self.get_many(keys)
        seen: set[bytes] = set()
        if present.count(None) == len(keys) == len(set(keys)):
            return None
        for index, key in enumerate(keys):
            if present[index] is not None or key in seen:
                return index
            seen.add(key)
        return None

    def put_new(self, items: Sequence[Item]) -> bool:
        """Store items that are known to be new; False if some were not."""
        if self.insert_many(items) is None:
            return True
        for key, value in items:
            self.insert(key, value)
        return False

    def delete(self, key: bytes) -> None:
        """Remove a key if it is there."""
        self.delete_many((key,))

    def delete_many(self, keys: Sequence[bytes], previous: Previous | None = None) -> None:
        """Remove keys that are there."""
        self._note(keys)
        self._overlay.update(dict.fromkeys(keys).items())

    def delete_range(self, lower: bytes, upper: bytes | None) -> int:
        """Remove a range; returns how many keys it had."""
        removed = 0
        for keys in self.scan_keys(lower, upper):
            removed += len(keys)
            self.delete_many(keys)
        return removed

    # --- savepoints and the end -----------------------------------------------------------------------

    def savepoint(self) -> Savepoint:
        """Mark this state."""
        self._live()
        self._last_token += 1
        self._savepoints.append((self._last_token, len(self._undo)))
        return Savepoint(self._last_token)

    def rollback_to(self, savepoint: Savepoint) -> None:
        """Return to a marked state, which stays open."""
        self._live()
        index = find_savepoint(self._savepoints, savepoint)
        del self._savepoints[index + 1 :]
        start = self._savepoints[index][1]
        for keys, held in reversed(self._undo[start:]):
            self._overlay.restore(keys, held)
        del self._undo[start:]

    def release(self, savepoint: Savepoint) -> None:
        """Forget a savepoint and later ones."""
        self._live()
        del self._savepoints[find_savepoint(self._savepoints, savepoint) :]
        if not self._savepoints:
            self._undo.clear()

    def commit(self, durable: bool = True) -> None:
        """Write the overlay as one batch, synced if ``durable`` and ``synchronous`` is ``full``."""
        database = self._live()
        try:
            if self._backend.faults is not None:
                self._backend.faults("commit")
            changes = self._overlay.changes
            if changes:
                removed = [key for key, value in changes.items() if value is None]
                with database.write_batch(transaction=True, sync=durable and self._backend.syncs) as batch:
                    deque(map(batch.delete, removed), maxlen=0)
                    for key in removed:
                        del changes[key]
                    deque(map(batch.put, changes.keys(), changes.values()), maxlen=0)
        except _FAILURES as failure:
            raise _translate(failure, self._backend.path, "write to") from failure
        finally:
            self.close()

    def abort(self) -> None:
        """Drop everything; may be repeated."""
        self.close()

    def close(self) -> None:
        """End the transaction; what was not committed is gone."""
        if self._source is not None:
            self._source = None
            self._overlay.clear()
            self._undo.clear()
            self._savepoints.clear()
            self._backend.writer_lock.release()

    def __del__(self) -> None:
        self.close()


class LeveldbBackend:
    """A LevelDB database that is open in this process."""

    name = "leveldb"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str = "full",
        write_buffer_size: int = 32 * 2**20,
        cache_size: int = 64 * 2**20,
        create: bool = True,
        readonly: bool = False,
        faults: Callable[[str], None] | None = None,
    ) -> None:
        if synchronous not in ("full", "normal", "off"):
            raise sql_error(
                StatusCode.MISUSE, f"synchronous must be one of full, normal, off, not {synchronous!r}"
            )
        self.path = os.path.abspath(os.fspath(path))
        self.syncs = synchronous == "full"
        self.faults = faults
        self._readonly = readonly
        create = create and not readonly
        self.writer_lock = WriterLock(f"'{self.path}'")
        self._readers: WeakSet[LeveldbReadTransaction] = WeakSet()
        self._forked_away = False
        self._check_place(create)
        try:
            self._database: Any = plyvel.DB(
                self.path,
                create_if_missing=create,
                write_buffer_size=write_buffer_size,
                lru_cache_size=cache_size,
                bloom_filter_bits=10,
                max_open_files=512,
            )
        except _FAILURES as failure:
            raise self._cannot_open(failure) from failure
        watch(self)

    def _check_place(self, create: bool) -> None:
        place = Path(self.path)
        if place.is_file():
            self._refuse("it is a file, and a LevelDB database is a folder")
        if not place.parent.is_dir():
            self._refuse(f"the folder '{place.parent}' does not exist")
        if not place.exists():
            if not create:
                self._refuse("the folder does not exist")
        elif any(place.iterdir()) and not (place / "CURRENT").exists():
            self._refuse("the folder holds other things than a LevelDB database", StatusCode.NOTADB)

    def _refuse(self, reason: str, code: StatusCode = StatusCode.CANTOPEN) -> None:
        raise sql_error(code, f"cannot open '{self.path}': {reason}")

    def _cannot_open(self, failure: Exception) -> Error:
        error = _translate(failure, self.path, "open")
        if error.code is StatusCode.BUSY:
            return sql_error(
                StatusCode.BUSY,
                f"cannot open '{self.path}': it is open already, in another process or in this one, and "
                "LevelDB belongs to one process at a time",
            )
        return error

    @property
    def usable(self) -> bool:
        """Whether the database is open, and open in this very process."""
        return self._database is not None

    def _live(self) -> Any:
        if self._database is not None:
            return self._database
        if self._forked_away:
            raise sql_error(
                StatusCode.MISUSE,
                f"cannot use '{self.path}' in this process: it was opened before the process was forked, and "
                "LevelDB belongs to one process at a time",
            )
        raise closed("database")

    def read(self) -> LeveldbReadTransaction:
        """A snapshot of the last commit."""
        transaction = LeveldbReadTransaction(self, self._live().snapshot())
        self._readers.add(transaction)
        return transaction

    def write(self, timeout: float = 5.0) -> LeveldbWriteTransaction:
        """Begin the write transaction; BUSY after ``timeout`` seconds, READONLY if opened so."""
        self._live()
        if self._readonly:
            raise sql_error(StatusCode.READONLY, f"cannot write to '{self.path}': it was opened read-only")
        self.writer_lock.acquire(timeout)
        try:
            return LeveldbWriteTransaction(self, self._live())
        except BaseException:
            self.writer_lock.release()
            raise

    def disk_size(self) -> int:
        """Bytes of all files of the database."""
        return sum(entry.stat().st_size for entry in os.scandir(self.path) if entry.is_file())

    def close(self) -> None:
        """Close the database, ending transactions that are still open; may be repeated."""
        if self._database is None:
            return
        for reader in list(self._readers):
            reader.close()
        database, self._database = self._database, None
        database.close()

    def before_fork(self) -> None:
        """LevelDB stays with the parent."""

    def after_fork_in_child(self) -> None:
        """Cleaning up here would wait for a thread that only the parent has."""
        self.writer_lock = WriterLock(f"'{self.path}'")
        if self._database is not None:
            self._forked_away = True
            for thing in (self._database, *self._readers):
                abandon(thing)
            self._database = None
