"""LevelDB's transactions: a reader is a snapshot, a writer an overlay above the database.

The overlay holds what the transaction changed: key to value, or to ``None`` for a removed key.  Its reads see
the overlay first; ``commit`` writes it as one atomic batch.  A savepoint is a position in a list of what the
overlay held before each change since.

The binding does its work without the interpreter's lock and guards nothing: a database that is closed
meanwhile is memory that is gone.  So a transaction counts itself as being in a call before it looks whether
it is still open, and whoever closes the database ends its transactions first and waits until none is in a
call.  That costs a fraction of what a lock around each call would.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, pairwise, repeat, starmap
from operator import itemgetter, lt
from typing import TYPE_CHECKING, Any, Self

from quereus_store.backends.contract import Item, Previous, Savepoint
from quereus_store.backends.forking import abandon
from quereus_store.backends.leveldb_errors import FAILURES, translate
from quereus_store.backends.locking import closed
from quereus_store.backends.memory import find_savepoint
from quereus_store.backends.overlay import UNTOUCHED, Held, Overlay

if TYPE_CHECKING:
    from quereus_store.backends.leveldb_backend import LeveldbBackend

_get_ident = threading.get_ident
_PAUSE = 0.0005
_key_of: Callable[[Item], bytes] = itemgetter(0)

# Every block that comes from disk is checked: a damaged one is an error, never a wrong value.
_ITEMS = {"verify_checksums": True}
_KEYS = {"verify_checksums": True, "include_value": False}
_VALUES = {"verify_checksums": True, "include_key": False}


class LeveldbReadTransaction:
    """A snapshot."""

    __slots__ = ("__weakref__", "_backend", "_caller", "_calls", "_iterators", "_source")

    def __init__(self, backend: LeveldbBackend) -> None:
        self._backend = backend
        self._source: Any = None
        self._iterators: set[Any] | None = None
        self._calls = 0
        self._caller = 0

    def begin(self) -> None:
        """Take the snapshot; MISUSE where the database is closed."""
        self._caller = _get_ident()
        self._calls += 1
        try:
            self._source = self._backend.live().snapshot()
        finally:
            self._calls -= 1

    def _live(self) -> Any:
        source = self._source
        if source is None:
            raise closed("transaction")
        return source

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``, or None."""
        self._caller = _get_ident()
        self._calls += 1
        try:
            source = self._source
            if source is None:
                raise closed("transaction")
            value: bytes | None = source.get(key, verify_checksums=True)
        except FAILURES as failure:
            raise translate(failure, self._backend.path, "read") from failure
        finally:
            self._calls -= 1
        return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of ``keys`` by position."""
        self._caller = _get_ident()
        self._calls += 1
        try:
            return list(map(partial(self._live().get, verify_checksums=True), keys))
        except FAILURES as failure:
            raise translate(failure, self._backend.path, "read") from failure
        finally:
            self._calls -= 1

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
        if not reverse:
            yield from self._entries(batch_size, start=lower, stop=upper, **options)
            return
        pick = itemgetter(0) if options == _KEYS else itemgetter(1) if options == _VALUES else None
        # A reverse iterator with two close bounds misses keys, so one is kept here.
        for items in self._entries(batch_size, stop=upper, reverse=True, **_ITEMS):
            last = items[-1][0] < lower
            if last:
                items = [item for item in items if item[0] >= lower]
            if items:
                yield items if pick is None else list(map(pick, items))
            if last:
                return

    def _entries(self, batch_size: int, **options: Any) -> Iterator[list[Any]]:
        """What one of the library's iterators gives, in batches."""
        entries: Any = None
        try:
            while True:
                self._caller = _get_ident()
                self._calls += 1
                try:
                    source = self._live()
                    if entries is None:
                        entries = source.iterator(**options)
                        if self._iterators is None:
                            self._iterators = set()
                        self._iterators.add(entries)
                    batch = list(islice(entries, batch_size))
                finally:
                    self._calls -= 1
                if batch:
                    yield batch
                if len(batch) < batch_size:
                    return
        except FAILURES as failure:
            raise translate(failure, self._backend.path, "read") from failure
        finally:
            self._close_iterator(entries)

    def _close_iterator(self, entries: Any) -> None:
        self._caller = _get_ident()
        self._calls += 1
        try:
            if self._iterators is not None and entries in self._iterators:
                # Whoever removes it closes it.
                self._iterators.remove(entries)
                entries.close()
        except KeyError:
            return
        finally:
            self._calls -= 1

    def count(self, lower: bytes, upper: bytes | None) -> int:
        """How many keys a range has, exactly."""
        return sum(map(len, self.scan_keys(lower, upper)))

    def close(self) -> None:
        """Release the snapshot; may be repeated."""
        self._caller = _get_ident()
        self._calls += 1
        try:
            source, self._source = self._source, None
            if source is not None:
                self._close_iterators()
                self._let_go(source)
        finally:
            self._calls -= 1

    def _close_iterators(self) -> None:
        while self._iterators:
            try:
                entries = self._iterators.pop()
            except KeyError:
                return
            entries.close()

    def end(self) -> None:
        """End it from any thread, once the call is over that another one makes in it."""
        while True:
            source, self._source = self._source, None
            self._wait()
            if source is not None:
                self._close_iterators()
                self._wait()
                self._let_go(source)
            elif self._source is None:
                # Nor has it begun meanwhile.
                return

    def _wait(self) -> None:
        # The garbage collector closes databases, too, and it may do so within a call.
        while self._calls > 0 and self._caller != _get_ident():
            time.sleep(_PAUSE)

    def _let_go(self, source: Any) -> None:
        source.close()

    def leave_to_parent(self) -> None:
        """End in a child process: what LevelDB holds for the transaction is the parent's."""
        for thing in (self._source, *(self._iterators or ())):
            abandon(thing)
        self._source = self._iterators = None
        # The thread that is in a call is the parent's.
        self._calls = 0

    def __del__(self) -> None:
        if self._source is not None:
            # Nobody knows of it any more who closes the database.
            with self._backend.closing:
                self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LeveldbWriteTransaction(LeveldbReadTransaction):
    """The writer's transaction: an overlay above the database, which nobody else can change meanwhile."""

    __slots__ = ("_last_token", "_overlay", "_savepoints", "_undo")

    def __init__(self, backend: LeveldbBackend, database: Any) -> None:
        super().__init__(backend)
        self._source = database
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
        overlay = self._overlay
        changed = list(islice(overlay.range(lower, upper, reverse), limit))
        ends = [keys[-1] for keys in ([key for key, _ in stored], changed) if len(keys) == limit]
        reached = (max if reverse else min)(ends) if ends else None
        if not changed:
            return stored, reached
        merged: dict[bytes, bytes | None] = dict(stored)
        merged.update((key, overlay.changes[key]) for key in changed)
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
        if self._savepoints or self._source is None:
            self._note((key,))
        self._overlay.put(key, value)

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
        savepoints, undo = self._savepoints, self._undo
        index = find_savepoint(savepoints, savepoint)
        del savepoints[index + 1 :]
        start = savepoints[index][1]
        for keys, held in reversed(undo[start:]):
            self._overlay.restore(keys, held)
        del undo[start:]

    def release(self, savepoint: Savepoint) -> None:
        """Forget a savepoint and later ones."""
        self._live()
        savepoints = self._savepoints
        del savepoints[find_savepoint(savepoints, savepoint) :]
        if not savepoints:
            self._undo.clear()

    def commit(self, durable: bool = True) -> None:
        """Write the overlay as one batch, synced if ``durable`` and ``synchronous`` is ``full``."""
        self._caller = _get_ident()
        self._calls += 1
        try:
            database = self._live()
            if self._backend.faults is not None:
                self._backend.faults("commit")
            self._write(database, durable)
        except FAILURES as failure:
            raise self._backend.commit_failed(failure) from failure
        else:
            self._backend.commit_succeeded()
        finally:
            self._calls -= 1
            self.close()

    def _write(self, database: Any, durable: bool) -> None:
        changes = self._overlay.changes
        if changes:
            removed = [key for key, value in changes.items() if value is None]
            with database.write_batch(transaction=True, sync=durable and self._backend.syncs) as batch:
                deque(map(batch.delete, removed), maxlen=0)
                for key in removed:
                    del changes[key]
                deque(map(batch.put, changes.keys(), changes.values()), maxlen=0)

    def abort(self) -> None:
        """Drop everything that was not committed; may be repeated."""
        self.close()

    def _let_go(self, source: Any) -> None:
        """What was not committed is gone, and the next writer may begin."""
        # Whoever is at work in another thread has the old ones, so they are not emptied.
        self._overlay, self._undo, self._savepoints = Overlay(), [], []
        self._backend.writer_lock.release()
