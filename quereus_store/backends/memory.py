"""The memory backend: a sorted map whose snapshots cost nothing.

Keys and values stand in parallel *chunks*, sorted lists of at most ``CHUNK`` entries; a *state* is a list of
chunks and the list of their first keys.  A state that was published is never changed: a snapshot is a
reference to it.  A writer works on a state of its own, made by copying the two outer lists, and copies a
chunk before it first changes it.  Commit publishes the writer's state, abort forgets it.

Savepoints are the same trick once more: the writer keeps a reference to its state and goes on with a copy.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter, lt
from typing import Any, Self, TypeVar

from quereus_store.backends.contract import Item, Previous, Savepoint
from quereus_store.backends.locking import WriterLock, closed
from quereus_store.errors import StatusCode, sql_error

CHUNK = 512

_Entry = TypeVar("_Entry")
_key_of: Callable[[Item], bytes] = itemgetter(0)


class _Chunk:
    """Sorted keys and their values; ``owner`` is the state that may change them."""

    __slots__ = ("keys", "owner", "values")

    def __init__(self, keys: list[bytes], values: list[bytes], owner: State) -> None:
        self.keys = keys
        self.values = values
        self.owner = owner


class State:
    """The whole map at one moment."""

    __slots__ = ("chunks", "firsts")

    def __init__(self, chunks: list[_Chunk], firsts: list[bytes]) -> None:
        self.chunks = chunks
        self.firsts = firsts

    def copy(self) -> State:
        """A state with the same content that may be changed."""
        return State(self.chunks.copy(), self.firsts.copy())

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None."""
        place = bisect_right(self.firsts, key) - 1
        if place < 0:
            return None
        chunk = self.chunks[place]
        index = bisect_left(chunk.keys, key)
        if index < len(chunk.keys) and chunk.keys[index] == key:
            return chunk.values[index]
        return None

    def fetch(self, lower: bytes, upper: bytes | None, limit: int) -> tuple[list[bytes], list[bytes]]:
        """The first ``limit`` keys of a range and their values."""
        keys: list[bytes] = []
        values: list[bytes] = []
        for place in range(max(bisect_right(self.firsts, lower) - 1, 0), len(self.chunks)):
            chunk = self.chunks[place]
            start = bisect_left(chunk.keys, lower)
            stop = len(chunk.keys) if upper is None else bisect_left(chunk.keys, upper, start)
            stop = min(stop, start + limit - len(keys))
            keys += chunk.keys[start:stop]
            values += chunk.values[start:stop]
            if len(keys) >= limit or stop < len(chunk.keys):
                break
        return keys, values

    def fetch_last(self, lower: bytes, upper: bytes | None, limit: int) -> tuple[list[bytes], list[bytes]]:
        """The last ``limit`` keys of a range and their values, last first."""
        keys: list[bytes] = []
        values: list[bytes] = []
        end = len(self.chunks) if upper is None else bisect_left(self.firsts, upper)
        for place in range(end - 1, -1, -1):
            chunk = self.chunks[place]
            stop = len(chunk.keys) if upper is None else bisect_left(chunk.keys, upper)
            start = bisect_left(chunk.keys, lower, 0, stop)
            start = max(start, stop - limit + len(keys))
            keys += reversed(chunk.keys[start:stop])
            values += reversed(chunk.values[start:stop])
            if len(keys) >= limit or start > 0:
                break
        return keys, values

    def put(self, key: bytes, value: bytes, overwrite: bool = True) -> bool:
        """Store an item; False if the key exists and is not to be overwritten."""
        if not self.chunks:
            self._insert_chunks(0, [key], [value])
            return True
        place = max(bisect_right(self.firsts, key) - 1, 0)
        chunk = self.chunks[place]
        index = bisect_left(chunk.keys, key)
        exists = index < len(chunk.keys) and chunk.keys[index] == key
        if exists and not overwrite:
            return False
        chunk = self._own(place)
        if exists:
            chunk.values[index] = value
            return True
        chunk.keys.insert(index, key)
        chunk.values.insert(index, value)
        if index == 0:
            self.firsts[place] = key
        if len(chunk.keys) > CHUNK:
            self._split(place)
        return True

    def extend(self, keys: list[bytes], values: list[bytes]) -> None:
        """Store items that are sorted and beyond all others."""
        self._insert_chunks(len(self.chunks), keys, values)

    def delete(self, key: bytes) -> None:
        """Remove a key if it is there."""
        place = bisect_right(self.firsts, key) - 1
        if place < 0:
            return
        keys = self.chunks[place].keys
        index = bisect_left(keys, key)
        if index < len(keys) and keys[index] == key:
            self._cut(place, index, index + 1)

    def delete_range(self, lower: bytes, upper: bytes | None) -> int:
        """Remove a range; returns how many keys it had."""
        removed = 0
        place = max(bisect_right(self.firsts, lower) - 1, 0)
        while place < len(self.chunks):
            keys = self.chunks[place].keys
            start = bisect_left(keys, lower)
            stop = len(keys) if upper is None else bisect_left(keys, upper, start)
            removed += stop - start
            ends_here = stop < len(keys)
            if start == stop or not self._cut(place, start, stop):
                place += 1
            if ends_here:
                break
        return removed

    def count(self, lower: bytes, upper: bytes | None) -> int:
        """How many keys a range has."""
        total = 0
        for place in range(max(bisect_right(self.firsts, lower) - 1, 0), len(self.chunks)):
            chunk = self.chunks[place]
            start = bisect_left(chunk.keys, lower)
            stop = len(chunk.keys) if upper is None else bisect_left(chunk.keys, upper, start)
            total += stop - start
            if stop < len(chunk.keys):
                break
        return total

    def last_key(self) -> bytes | None:
        """The greatest key."""
        return self.chunks[-1].keys[-1] if self.chunks else None

    def _own(self, place: int) -> _Chunk:
        chunk = self.chunks[place]
        if chunk.owner is not self:
            chunk = self.chunks[place] = _Chunk(chunk.keys.copy(), chunk.values.copy(), self)
        return chunk

    def _cut(self, place: int, start: int, stop: int) -> bool:
        """Remove part of a chunk; True if the chunk is gone."""
        if stop - start == len(self.chunks[place].keys):
            del self.chunks[place], self.firsts[place]
            return True
        chunk = self._own(place)
        del chunk.keys[start:stop], chunk.values[start:stop]
        self.firsts[place] = chunk.keys[0]
        return False

    def _split(self, place: int) -> None:
        chunk = self.chunks[place]
        middle = len(chunk.keys) // 2
        upper = _Chunk(chunk.keys[middle:], chunk.values[middle:], self)
        del chunk.keys[middle:], chunk.values[middle:]
        self.chunks.insert(place + 1, upper)
        self.firsts.insert(place + 1, upper.keys[0])

    def _insert_chunks(self, place: int, keys: list[bytes], values: list[bytes]) -> None:
        starts = range(0, len(keys), CHUNK)
        self.chunks[place:place] = [_Chunk(keys[i : i + CHUNK], values[i : i + CHUNK], self) for i in starts]
        self.firsts[place:place] = [keys[i] for i in starts]


class MemoryReadTransaction:
    """A snapshot."""

    __slots__ = ("_state",)

    def __init__(self, state: State) -> None:
        self._state: State | None = state

    def _live(self) -> State:
        if self._state is None:
            raise closed("transaction")
        return self._state

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``, or None."""
        return self._live().get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of ``keys`` by position."""
        return list(map(self._live().get, keys))

    def scan(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[Item]]:
        """Items of a range in batches."""
        for keys, values in self._batches(lower, upper, reverse, batch_size):
            yield list(zip(keys, values, strict=True))

    def scan_keys(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[bytes]]:
        """Keys of a range in batches."""
        for keys, _ in self._batches(lower, upper, reverse, batch_size):
            yield keys

    def scan_values(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[bytes]]:
        """Values of a range in batches."""
        for _, values in self._batches(lower, upper, reverse, batch_size):
            yield values

    def first_values(
        self, lower: bytes, upper: bytes | None, limit: int, *, reverse: bool = False
    ) -> list[bytes]:
        """Values of the first items of a range, at most ``limit``."""
        state = self._live()
        if limit <= 0 or (upper is not None and lower >= upper):
            return []
        return (state.fetch_last if reverse else state.fetch)(lower, upper, limit)[1]

    def _batches(
        self, lower: bytes, upper: bytes | None, reverse: bool, batch_size: int
    ) -> Iterator[tuple[list[bytes], list[bytes]]]:
        while upper is None or lower < upper:
            state = self._live()
            keys, values = (state.fetch_last if reverse else state.fetch)(lower, upper, batch_size)
            if not keys:
                return
            last = keys[-1]
            yield keys, values
            if reverse:
                upper = last
            else:
                lower = last + b"\0"

    def count(self, lower: bytes, upper: bytes | None) -> int:
        """How many keys a range has, exactly."""
        return self._live().count(lower, upper)

    def close(self) -> None:
        """Release the snapshot; may be repeated."""
        self._state = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MemoryWriteTransaction(MemoryReadTransaction):
    """The writer's transaction: a state of its own, published by ``commit``."""

    __slots__ = ("_backend", "_last_token", "_savepoints", "_shared")

    def __init__(self, backend: MemoryBackend, state: State) -> None:
        super().__init__(state)
        self._backend = backend
        self._shared = True
        self._savepoints: list[tuple[int, State]] = []
        self._last_token = 0

    def _own_state(self) -> State:
        state = self._live()
        if self._shared:
            state = self._state = state.copy()
            self._shared = False
        return state

    def put(self, key: bytes, value: bytes) -> None:
        """Store an item."""
        self._own_state().put(key, value)

    def put_many(self, items: Sequence[Item], previous: Previous | None = None) -> None:
        """Store items; the last of equal keys wins."""
        if not self._append(items):
            put = self._own_state().put
            for key, value in items:
                put(key, value)

    def insert(self, key: bytes, value: bytes) -> bool:
        """Store an item unless its key exists; whether it was stored."""
        return self._own_state().put(key, value, False)

    def insert_many(self, items: Sequence[Item]) -> int | None:
        """Store items up to the first whose key exists; its index, or None."""
        if self._append(items):
            return None
        put = self._own_state().put
        for index, (key, value) in enumerate(items):
            if not put(key, value, False):
                return index
        return None

    def put_new(self, items: Sequence[Item]) -> bool:
        """Store items that are known to be new; False if some were not."""
        if self._append(items):
            return True
        put = self._own_state().put
        return False not in [put(key, value, False) for key, value in items]

    def _append(self, items: Sequence[Item]) -> bool:
        """Store sorted items behind all others, if that is what they are."""
        state = self._own_state()
        if not items:
            return True
        last = state.last_key()
        if last is not None and items[0][0] <= last:
            return False
        keys = list(map(_key_of, items))
        if not all(lt(*pair) for pair in pairwise(keys)):
            return False
        state.extend(keys, [value for _, value in items])
        return True

    def delete(self, key: bytes) -> None:
        """Remove a key if it is there."""
        self._own_state().delete(key)

    def delete_many(self, keys: Sequence[bytes], previous: Previous | None = None) -> None:
        """Remove keys that are there."""
        delete = self._own_state().delete
        for key in keys:
            delete(key)

    def delete_range(self, lower: bytes, upper: bytes | None) -> int:
        """Remove a range; returns how many keys it had."""
        return self._own_state().delete_range(lower, upper)

    def savepoint(self) -> Savepoint:
        """Mark this state."""
        self._last_token += 1
        self._savepoints.append((self._last_token, self._live()))
        self._shared = True
        return Savepoint(self._last_token)

    def rollback_to(self, savepoint: Savepoint) -> None:
        """Return to a marked state, which stays open."""
        index = find_savepoint(self._savepoints, savepoint)
        del self._savepoints[index + 1 :]
        self._live()
        self._state, self._shared = self._savepoints[index][1], True

    def release(self, savepoint: Savepoint) -> None:
        """Forget a savepoint and later ones."""
        del self._savepoints[find_savepoint(self._savepoints, savepoint) :]

    def commit(self, durable: bool = True) -> None:
        """Publish the state; memory knows no more durable way."""
        self._backend.publish(self._live())
        self.close()

    def abort(self) -> None:
        """Drop everything; may be repeated."""
        self.close()

    def close(self) -> None:
        """End the transaction; what was not committed is gone."""
        if self._state is not None:
            self._state = None
            self._savepoints.clear()
            self._backend.writer_lock.release()

    def __del__(self) -> None:
        self.close()


def find_savepoint(savepoints: Sequence[tuple[int, Any]], token: Savepoint) -> int:
    """The index of an open savepoint in a list of (token, state); MISUSE for an unknown token."""
    for index in range(len(savepoints) - 1, -1, -1):
        if savepoints[index][0] == token:
            return index
    raise sql_error(StatusCode.MISUSE, f"unknown savepoint {token}")


class MemoryBackend:
    """A database that lives as long as this object."""

    name = "memory"

    def __init__(self) -> None:
        self._published: State | None = State([], [])
        self.writer_lock = WriterLock("the memory database")

    def read(self) -> MemoryReadTransaction:
        """A snapshot of the last commit."""
        return MemoryReadTransaction(self._last())

    def write(self, timeout: float = 5.0) -> MemoryWriteTransaction:
        """Begin the write transaction; BUSY after ``timeout`` seconds."""
        self._last()
        self.writer_lock.acquire(timeout)
        return MemoryWriteTransaction(self, self._last())

    def _last(self) -> State:
        if self._published is None:
            raise closed("database")
        return self._published

    def publish(self, state: State) -> None:
        """Make a writer's state the last commit."""
        self._last()
        self._published = state

    def close(self) -> None:
        """Forget everything; open snapshots stay readable."""
        self._published = None
