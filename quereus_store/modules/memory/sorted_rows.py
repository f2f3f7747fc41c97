"""Sorted rows in chunks: the one data structure of memory tables.

A table, and each of its indexes, is a :class:`SortedRows`: rows in key order, cut into
chunks of some hundred, each chunk two parallel lists (keys, rows).  Finding a key is two
``bisect`` calls, one over the last keys of the chunks and one inside a chunk; scanning hands
out the row lists as they are, without touching a row::

    lasts   [ 1023,        2047,        2600 ]
    chunks  [ keys|rows,   keys|rows,   keys|rows ]

An index holds the rows themselves, not their keys, so reading through it costs no second
look-up.  Its keys are pairs, ``(own half, primary key)``, and comparing pairs is slow; so a chunk of
a ``nested`` tree keeps, from the first search on, the own halves as a list of their own.

**Copy on write.**  Whoever holds ``chunks`` (a reader's snapshot, a running scan, a savepoint)
sees it unchanged forever: a writer copies the outer lists before its first change, and a chunk
before it changes that chunk, and marks its copies with its own ``owner`` token.
:meth:`SortedRows.freeze` takes a new token, which disowns everything at once: that makes a
snapshot free.  Changes of many rows build new outer lists beside the old ones and swap them in,
so a call that fails half-way has changed nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from quereus_store.errors import InternalError
from quereus_store.modules.memory.chunks import (
    FEW_OF_CHUNK,
    FULL,
    HIGHEST,
    LARGEST,
    MANY,
    SAME,
    SMALLEST,
    SPARSE,
    Chunk,
    DuplicateKey,
    Frozen,
    Key,
    LateChunk,
    Position,
    Row,
    Swap,
    Undo,
    adjacent_equal,
    found_in,
    groups_of,
    is_sorted,
    merged,
    pieces_of,
    replaced,
    reversed_pieces,
    rows_of,
    without,
)


class SortedRows:
    """Rows in strict key order; see the module's text for the rules of sharing."""

    __slots__ = ("_outer_owned", "_owner", "chunks", "count", "lasts", "nested")

    def __init__(
        self,
        chunks: list[Chunk] | None = None,
        lasts: list[Key] | None = None,
        count: int = 0,
        nested: bool = False,
    ) -> None:
        self.chunks: list[Chunk] = [] if chunks is None else chunks
        self.lasts: list[Key] = [] if lasts is None else lasts
        self.count = count
        self.nested = nested
        self._owner = object()
        self._outer_owned = chunks is None

    # --- sharing ---------------------------------------------------------------------------------------

    def fork(self) -> SortedRows:
        """An independent copy that shares everything; the original must not be changed any more."""
        return SortedRows(self.chunks, self.lasts, self.count, self.nested)

    def freeze(self) -> Frozen:
        """The present state, which no later change touches."""
        self._owner = object()
        self._outer_owned = False
        return self.chunks, self.lasts, self.count

    def restore(self, frozen: Frozen) -> None:
        """Go back to a frozen state."""
        self.chunks, self.lasts, self.count = frozen
        self._owner = object()
        self._outer_owned = False

    def _own_outer(self) -> None:
        if not self._outer_owned:
            self.chunks = self.chunks.copy()
            self.lasts = self.lasts.copy()
            self._outer_owned = True

    def _own(self, number: int) -> Chunk:
        self._own_outer()
        chunk = self.chunks[number]
        if chunk.keys_owner is not self._owner:
            halves = chunk.halves
            chunk = self.chunks[number] = Chunk(
                chunk.keys.copy(), chunk.rows.copy(), self._owner, None if halves is None else halves.copy()
            )
        return chunk

    def _own_rows(self, number: int) -> Chunk:
        self._own_outer()
        chunk = self.chunks[number]
        own = self.chunks[number] = chunk.with_rows(chunk.rows.copy(), self._owner)
        return own

    # --- reading ---------------------------------------------------------------------------------------

    def get(self, key: Key) -> Row | None:
        """The row of a key, or None."""
        number = bisect_left(self.lasts, key)
        if number == len(self.lasts):
            return None
        chunk = self.chunks[number]
        keys = chunk.keys
        first = keys[0]
        if type(key) is int is type(first):
            # Numbers are often given out without gaps, and then a key tells its place.
            place = key - first
            if 0 <= place < len(keys) and keys[place] == key:
                return chunk.rows[place]
        place = bisect_left(keys, key)
        return chunk.rows[place] if keys[place] == key else None

    def get_many(self, keys: list[Key]) -> list[Row | None]:
        """The row, or None, of each key; many of them are looked up chunk by chunk."""
        if len(keys) < MANY:
            return list(map(self.get, keys))
        if is_sorted(keys):
            return self._get_sorted(keys)
        ordered = sorted(keys)
        return list(map(dict(zip(ordered, self._get_sorted(ordered), strict=True)).get, keys))

    def _get_sorted(self, keys: list[Key]) -> list[Row | None]:
        found: list[Row | None] = []
        for number, low, high in groups_of(self.lasts, keys):
            if number == len(self.chunks):
                found += [None] * (high - low)
            elif (high - low) * FEW_OF_CHUNK < len(self.chunks[number].keys):
                found += map(self.get, keys[low:high])
            else:
                found += found_in(self.chunks[number], keys[low:high])
        return found

    def position(self, key: Key, after: bool) -> Position:
        """Where the rows from ``key`` on begin; ``after`` leaves out the key itself."""
        bisect = bisect_right if after else bisect_left
        number = bisect(self.lasts, key)
        if number == len(self.lasts):
            return number, 0
        return number, bisect(self.chunks[number].keys, key)

    def end(self) -> Position:
        """The position behind all rows."""
        return len(self.chunks), 0

    def entry(self, position: Position) -> tuple[Key, Row] | None:
        """Key and row at a position; None at the end."""
        number, place = position
        if number == len(self.chunks):
            return None
        chunk = self.chunks[number]
        return chunk.keys[place], chunk.rows[place]

    def all_rows(self, reverse: bool = False) -> Iterator[list[Row]]:
        """All rows in batches, from a frozen state."""
        chunks, _, _ = self.freeze()
        if not reverse:
            return map(rows_of, chunks)
        return (chunk.rows[::-1] for chunk in reversed(chunks))

    def between(self, start: Position, stop: Position, reverse: bool = False) -> Iterable[list[Row]]:
        """The rows between two positions in batches, from a frozen state; few of them in a tuple."""
        first, begin = start
        last, end = stop
        if start >= stop:
            return ()
        if first == last:
            rows = self.chunks[first].rows[begin:end]
            if reverse:
                rows.reverse()
            return (rows,)
        chunks, _, _ = self.freeze()
        pieces = pieces_of(chunks, start, stop)
        return reversed_pieces(pieces) if reverse else iter(pieces)

    def equal(self, own: Key) -> list[Row]:
        """In an index, the rows whose own half of the key is this one."""
        number = bisect_left(self.lasts, (own,))
        if number == len(self.lasts):
            return []
        chunk = self.chunks[number]
        halves = chunk.halves or chunk.own_halves()
        begin = end = bisect_left(halves, own)
        size = len(halves)
        near = min(begin + SAME, size)
        while end < near and halves[end] == own:
            end += 1
        if end < near:
            return chunk.rows[begin:end]
        if end < size:
            end = bisect_right(halves, own, end)
        if end < size:
            return chunk.rows[begin:end]
        return self.collect((number, begin), self.position((own, HIGHEST), False))

    def first_equal(self, own: Key) -> Row | None:
        """In an index, the first row whose own half of the key is this one."""
        number = bisect_left(self.lasts, (own,))
        if number == len(self.lasts):
            return None
        chunk = self.chunks[number]
        halves = chunk.halves or chunk.own_halves()
        place = bisect_left(halves, own)
        return chunk.rows[place] if halves[place] == own else None

    def collect(self, start: Position, stop: Position) -> list[Row]:
        """The rows between two positions in one new list."""
        first, begin = start
        last, end = stop
        if first == last:
            return self.chunks[first].rows[begin:end] if begin < end else []
        if start >= stop:
            return []
        return [row for piece in pieces_of(self.chunks, start, stop) for row in piece]

    # --- changing one row ------------------------------------------------------------------------------

    def insert(self, key: Key, row: Row) -> Row | None:
        """Add a row; if the key is taken, change nothing and return the row that has it."""
        number = bisect_left(self.lasts, key)
        if number == len(self.lasts):
            self._append(key, row)
            return None
        chunk = self.chunks[number]
        place = self._place(chunk, key)
        if chunk.keys[place] == key:
            return chunk.rows[place]
        if chunk.keys_owner is not self._owner:
            chunk = self._own(number)
        chunk.keys.insert(place, key)
        chunk.rows.insert(place, row)
        if chunk.halves is not None:
            chunk.halves.insert(place, key[0])
        self.count += 1
        if len(chunk.keys) > LARGEST:
            self._split(number)
        return None

    def _append(self, key: Key, row: Row) -> None:
        self._own_outer()
        if not self.chunks or len(self.chunks[-1].keys) >= FULL:
            self.chunks.append(Chunk([key], [row], self._owner))
            self.lasts.append(key)
        else:
            chunk = self._own(len(self.chunks) - 1)
            chunk.keys.append(key)
            chunk.rows.append(row)
            if chunk.halves is not None:
                chunk.halves.append(key[0])
            self.lasts[-1] = key
        self.count += 1

    def _split(self, number: int) -> None:
        chunk = self.chunks[number]
        middle = len(chunk.keys) // 2
        right = Chunk(chunk.keys[middle:], chunk.rows[middle:], self._owner)
        del chunk.keys[middle:]
        del chunk.rows[middle:]
        chunk.halves = None
        self.chunks.insert(number + 1, right)
        self.lasts.insert(number, chunk.keys[-1])

    def delete(self, key: Key) -> None:
        """Take out the row of a key that is there."""
        number, place = self._find(key)
        chunk = self.chunks[number]
        if chunk.keys_owner is not self._owner:
            chunk = self._own(number)
        del chunk.keys[place]
        del chunk.rows[place]
        if chunk.halves is not None:
            del chunk.halves[place]
        self.count -= 1
        if not chunk.keys:
            del self.chunks[number]
            del self.lasts[number]
            return
        self.lasts[number] = chunk.keys[-1]
        if len(chunk.keys) < SMALLEST:
            self._join_neighbour(number)

    def _join_neighbour(self, number: int) -> None:
        left = number - 1 if number else 0
        if left + 1 >= len(self.chunks):
            return
        first, second = self.chunks[left], self.chunks[left + 1]
        if len(first.keys) + len(second.keys) > FULL:
            return
        self.chunks[left : left + 2] = [
            Chunk(first.keys + second.keys, first.rows + second.rows, self._owner)
        ]
        del self.lasts[left]

    def replace(self, key: Key, row: Row) -> None:
        """Put another row in the place of the one that has this key."""
        # _find without its call: most single-row updates do this once for each index.
        number = bisect_left(self.lasts, key)
        if number < len(self.lasts):
            chunk = self.chunks[number]
            place = self._place(chunk, key)
            if chunk.keys[place] == key:
                if chunk.owner is not self._owner:
                    chunk = self._own_rows(number)
                chunk.rows[place] = row
                return
        raise _missing(key)

    def _find(self, key: Key) -> Position:
        number = bisect_left(self.lasts, key)
        if number < len(self.lasts):
            chunk = self.chunks[number]
            place = self._place(chunk, key)
            if chunk.keys[place] == key:
                return number, place
        raise _missing(key)

    def _place(self, chunk: Chunk, key: Key) -> int:
        """Where a key stands in a chunk, or would be inserted."""
        keys = chunk.keys
        if self.nested:
            own = key[0]
            halves = chunk.halves or chunk.own_halves()
            place = bisect_left(halves, own)
            if place == len(halves) or halves[place] != own or not keys[place] < key:
                return place
            return bisect_left(keys, key, place + 1, bisect_right(halves, own, place))
        first = keys[0]
        if type(key) is int is type(first):
            # As in ``get``.
            place = key - first
            if 0 <= place < len(keys) and keys[place] == key:
                return place
        return bisect_left(keys, key)

    # --- changing many rows ----------------------------------------------------------------------------
    # Each returns the call that takes the change back.  Where a chunk gets only some of the rows,
    # changing rows one by one is cheaper than building the chunk anew.

    def merge(self, keys: list[Key], rows: list[Row], distinct: bool = False) -> Undo:
        """Add rows whose keys are sorted; raises :class:`DuplicateKey` and then has changed nothing.

        ``distinct``: the keys are known to differ from each other and from those that are there.
        """
        clash = None if distinct else adjacent_equal(keys)
        if clash is not None:
            raise DuplicateKey(rows[clash + 1], rows[clash])
        groups = list(groups_of(self.lasts, keys))
        if len(keys) <= SPARSE * len(groups):
            return self._merge_singly(keys, rows)
        frozen = self.freeze()
        swap = Swap(self)
        for number, low, high in groups:
            if number == len(self.chunks):
                swap.tail(keys[low:high], rows[low:high])
            else:
                swap.replace(number, *merged(self.chunks[number], keys[low:high], rows[low:high]))
        self._adopt(swap, len(keys))
        return SortedRows.restore, self, frozen

    def _merge_singly(self, keys: list[Key], rows: list[Row]) -> Undo:
        for count, (key, row) in enumerate(zip(keys, rows, strict=True)):
            existing = self.insert(key, row)
            if existing is not None:
                self._delete_singly(keys[:count])
                raise DuplicateKey(row, existing)
        return SortedRows._delete_singly, self, keys

    def remove(self, keys: list[Key]) -> Undo:
        """Take out the rows of these keys (sorted, all there)."""
        groups = list(groups_of(self.lasts, keys))
        if len(keys) <= SPARSE * len(groups):
            rows = [self._row(key) for key in keys]
            self._delete_singly(keys)
            return SortedRows._merge_singly, self, keys, rows
        frozen = self.freeze()
        swap = Swap(self)
        for number, low, high in groups:
            chunk = self._chunk_for(number, keys[low])
            swap.replace(number, *without(chunk, keys[low:high]))
        self._adopt(swap, -len(keys))
        return SortedRows.restore, self, frozen

    def _delete_singly(self, keys: list[Key]) -> None:
        for key in keys:
            self.delete(key)

    def _row(self, key: Key) -> Row:
        number, place = self._find(key)
        return self.chunks[number].rows[place]

    def replace_many(self, keys: list[Key], rows: list[Row]) -> Undo:
        """Put other rows in the places of these keys (sorted, all there)."""
        groups = list(groups_of(self.lasts, keys))
        if len(keys) <= SPARSE * len(groups):
            old = [self._row(key) for key in keys]
            self._replace_singly(keys, rows)
            return SortedRows._replace_singly, self, keys, old
        frozen = self.freeze()
        chunks = self.chunks.copy()
        for number, low, high in groups:
            chunk = self._chunk_for(number, keys[low])
            chunks[number] = chunk.with_rows(replaced(chunk, keys[low:high], rows[low:high]), self._owner)
        self._put_chunks(chunks)
        return SortedRows.restore, self, frozen

    def take_rows_of(self, primary: SortedRows) -> Undo:
        """Hold the rows that the table's own tree has now; no key of this index has changed."""
        frozen = self.freeze()
        source = primary.freeze()
        self._put_chunks([LateChunk(chunk, source) for chunk in self.chunks])
        return SortedRows.restore, self, frozen

    def _put_chunks(self, chunks: list[Chunk]) -> None:
        """Put chunks with the same keys in the places of the old ones."""
        self.chunks = chunks
        self.lasts = self.lasts.copy()
        self._outer_owned = True

    def _replace_singly(self, keys: list[Key], rows: list[Row]) -> None:
        for key, row in zip(keys, rows, strict=True):
            self.replace(key, row)

    def _chunk_for(self, number: int, key: Key) -> Chunk:
        if number == len(self.chunks):
            raise _missing(key)
        return self.chunks[number]

    def _adopt(self, swap: Swap, more: int) -> None:
        self.chunks, self.lasts = swap.finish()
        self._outer_owned = True
        self.count += more

    @property
    def owner(self) -> object:
        """The token of chunks that may be changed in place."""
        return self._owner


def _missing(key: Key) -> InternalError:
    return InternalError(f"memory table: no row has the key {key!r}")
