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
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, islice, pairwise
from operator import attrgetter, eq, is_not, itemgetter, lt
from typing import Any, TypeAlias

from quereus_store.errors import InternalError

Row: TypeAlias = tuple[Any, ...]
Key: TypeAlias = Any
Frozen: TypeAlias = "tuple[list[Chunk], list[Key], int]"
Position: TypeAlias = tuple[int, int]
Undo: TypeAlias = tuple[Any, ...]
"""A function and its arguments."""

FULL = 512
"""Rows of a chunk that was filled in key order."""
LARGEST = 768
"""A chunk that grows beyond this is cut in two."""
SMALLEST = 128
"""A chunk that shrinks below this joins its neighbour if there is room."""
SPARSE = 16
"""With up to so many rows per chunk a batch is written row by row."""

MANY = 16
"""From one row in so many on, changing rows passes over all of them."""

SAME = 16
"""Up to so many rows with equal own halves are counted singly."""

_rows_of = attrgetter("rows")
_own_half = itemgetter(0)


class Extreme:
    """A part of a key beyond all others; ``key`` is what it looks like inside a reversed key."""

    __slots__ = ("high", "key")

    def __init__(self, high: bool) -> None:
        self.high = high
        self.key: Extreme = self

    def __lt__(self, other: object) -> bool:
        return not self.high

    def __gt__(self, other: object) -> bool:
        return self.high


HIGHEST = Extreme(True)
LOWEST = Extreme(False)
HIGHEST.key, LOWEST.key = LOWEST, HIGHEST


class Chunk:
    """Some neighbouring rows and their keys; only its ``owner`` may change it.

    The keys have an owner of their own: putting a row in another's place leaves them shared.
    ``halves`` are the own halves of nested keys, once somebody has asked for them.
    """

    __slots__ = ("halves", "keys", "keys_owner", "owner", "rows")

    def __init__(
        self, keys: list[Key], rows: list[Row], owner: object, halves: list[Key] | None = None
    ) -> None:
        self.keys = keys
        self.rows = rows
        self.owner = self.keys_owner = owner
        self.halves = halves

    def own_halves(self) -> list[Key]:
        """The own halves of the keys, which are nested."""
        halves = self.halves
        if halves is None:
            halves = self.halves = list(map(_own_half, self.keys))
        return halves


class DuplicateKey(Exception):
    """A merge met a key that is already there; ``row`` is the new row, ``existing`` the one in its way."""

    def __init__(self, row: Row, existing: Row) -> None:
        super().__init__("duplicate key")
        self.row = row
        self.existing = existing


def sort_by_key(keys: list[Key], rows: Sequence[Row]) -> tuple[list[Key], list[Row]]:
    """Both lists in key order; free when they are in order already."""
    if _is_sorted(keys):
        return keys, list(rows)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return gather(keys, order), gather(rows, order)


def gather(items: Sequence[Any], order: list[int]) -> list[Any]:
    """The items at these places, in this order."""
    return list(itemgetter(*order)(items)) if len(order) > 1 else [items[place] for place in order]


def _is_sorted(keys: list[Key]) -> bool:
    return not any(map(lt, islice(keys, 1, None), keys))


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
        own = self.chunks[number] = Chunk(chunk.keys, chunk.rows.copy(), self._owner, chunk.halves)
        own.keys_owner = chunk.keys_owner
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
            return map(_rows_of, chunks)
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
        pieces = _pieces(chunks, start, stop)
        return _reversed_pieces(pieces) if reverse else iter(pieces)

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
        return [row for piece in _pieces(self.chunks, start, stop) for row in piece]

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
        number, place = self._find(key)
        chunk = self.chunks[number]
        if chunk.owner is not self._owner:
            chunk = self._own_rows(number)
        chunk.rows[place] = row

    def _find(self, key: Key) -> Position:
        number = bisect_left(self.lasts, key)
        if number < len(self.lasts):
            chunk = self.chunks[number]
            place = self._place(chunk, key)
            if chunk.keys[place] == key:
                return number, place
        raise InternalError(f"memory table: no row has the key {key!r}")

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
        clash = None if distinct else _adjacent_equal(keys)
        if clash is not None:
            raise DuplicateKey(rows[clash + 1], rows[clash])
        groups = list(_groups(self.lasts, keys))
        if len(keys) <= SPARSE * len(groups):
            return self._merge_singly(keys, rows)
        frozen = self.freeze()
        swap = _Swap(self)
        for number, low, high in groups:
            if number == len(self.chunks):
                swap.tail(keys[low:high], rows[low:high])
            else:
                swap.replace(number, *_merged(self.chunks[number], keys[low:high], rows[low:high]))
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
        groups = list(_groups(self.lasts, keys))
        if len(keys) <= SPARSE * len(groups):
            rows = [self._row(key) for key in keys]
            self._delete_singly(keys)
            return SortedRows._merge_singly, self, keys, rows
        frozen = self.freeze()
        swap = _Swap(self)
        for number, low, high in groups:
            chunk = self._chunk_for(number, keys[low])
            swap.replace(number, *_without(chunk, keys[low:high]))
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
        groups = list(_groups(self.lasts, keys))
        if len(keys) <= SPARSE * len(groups):
            old = [self._row(key) for key in keys]
            self._replace_singly(keys, rows)
            return SortedRows._replace_singly, self, keys, old
        frozen = self.freeze()
        swap = _Swap(self)
        for number, low, high in groups:
            chunk = self._chunk_for(number, keys[low])
            if high - low == len(chunk.keys):
                swap.replace(number, chunk.keys.copy(), rows[low:high])
            else:
                places = _places(chunk, keys[low:high])
                changed = chunk.rows.copy()
                for place, row in zip(places, rows[low:high], strict=True):
                    changed[place] = row
                swap.replace(number, chunk.keys.copy(), changed)
        self._adopt(swap, 0)
        return SortedRows.restore, self, frozen

    def exchange(self, old: Sequence[Row], new: Sequence[Row]) -> Undo | None:
        """Put new rows in the places of old ones, which are known by identity; None if some are not here.

        One pass over all rows: for changes of a good part of them, whose keys stay.
        """
        new_of = dict(zip(map(id, old), new, strict=True))
        if len(new_of) < len(old):
            return None
        missing = len(new_of)
        frozen = self.freeze()
        chunks = self.chunks.copy()
        for number, chunk in enumerate(chunks):
            if new_of.keys().isdisjoint(map(id, chunk.rows)):
                continue
            rows = list(map(new_of.get, map(id, chunk.rows), chunk.rows))
            missing -= sum(map(is_not, rows, chunk.rows))
            chunks[number] = Chunk(chunk.keys, rows, self._owner, chunk.halves)
            chunks[number].keys_owner = chunk.keys_owner
        if missing:
            return None
        self.chunks = chunks
        self.lasts = self.lasts.copy()
        self._outer_owned = True
        return SortedRows.restore, self, frozen

    def _replace_singly(self, keys: list[Key], rows: list[Row]) -> None:
        for key, row in zip(keys, rows, strict=True):
            self.replace(key, row)

    def _chunk_for(self, number: int, key: Key) -> Chunk:
        if number == len(self.chunks):
            raise InternalError(f"memory table: no row has the key {key!r}")
        return self.chunks[number]

    def _adopt(self, swap: _Swap, more: int) -> None:
        self.chunks, self.lasts = swap.finish()
        self._outer_owned = True
        self.count += more

    @property
    def owner(self) -> object:
        """The token of chunks that may be changed in place."""
        return self._owner


class _Swap:
    """New outer lists under construction: chunks of the old ones, some replaced by others."""

    def __init__(self, source: SortedRows) -> None:
        self._source = source
        self._done = 0
        self._chunks: list[Chunk] = []
        self._lasts: list[Key] = []

    def _keep_until(self, number: int) -> None:
        self._chunks += self._source.chunks[self._done : number]
        self._lasts += self._source.lasts[self._done : number]

    def replace(self, number: int, keys: list[Key], rows: list[Row]) -> None:
        """Put these rows in the place of chunk ``number``."""
        self._keep_until(number)
        self._done = number + 1
        self._add(keys, rows)

    def tail(self, keys: list[Key], rows: list[Row]) -> None:
        """Add rows behind all others, filling up the last chunk first."""
        self._keep_until(len(self._source.chunks))
        self._done = len(self._source.chunks)
        if self._chunks and len(self._chunks[-1].keys) + len(keys) <= FULL:
            last = self._chunks.pop()
            self._lasts.pop()
            keys, rows = last.keys + keys, last.rows + rows
        self._add(keys, rows)

    def _add(self, keys: list[Key], rows: list[Row]) -> None:
        if not keys:
            return
        owner = self._source.owner
        if len(keys) <= LARGEST:
            if self._chunks and len(keys) < SMALLEST and len(self._chunks[-1].keys) + len(keys) <= FULL:
                last = self._chunks.pop()
                self._lasts.pop()
                keys, rows = last.keys + keys, last.rows + rows
            self._chunks.append(Chunk(keys, rows, owner))
            self._lasts.append(keys[-1])
            return
        pieces = -(-len(keys) // FULL)
        bounds = [len(keys) * piece // pieces for piece in range(pieces + 1)]
        for low, high in pairwise(bounds):
            self._chunks.append(Chunk(keys[low:high], rows[low:high], owner))
            self._lasts.append(keys[high - 1])

    def finish(self) -> tuple[list[Chunk], list[Key]]:
        """The outer lists."""
        self._keep_until(len(self._source.chunks))
        return self._chunks, self._lasts


def _groups(lasts: list[Key], keys: list[Key]) -> Iterator[tuple[int, int, int]]:
    """Cut sorted keys by chunk: ``(chunk, low, high)``; chunk ``len(lasts)`` is beyond the last one."""
    low, number, total = 0, 0, len(keys)
    while low < total:
        number = bisect_left(lasts, keys[low], number)
        if number == len(lasts):
            yield number, low, total
            return
        high = bisect_right(keys, lasts[number], low)
        yield number, low, high
        low = high


def _merged(chunk: Chunk, keys: list[Key], rows: list[Row]) -> tuple[list[Key], list[Row]]:
    if len(keys) * 6 <= len(chunk.keys):
        return _merged_singly(chunk, keys, rows)
    both_keys, both_rows = chunk.keys + keys, chunk.rows + rows
    # Two sorted runs: the sort merges them in linear time.
    order = sorted(range(len(both_keys)), key=both_keys.__getitem__)
    new_keys = gather(both_keys, order)
    new_rows = gather(both_rows, order)
    clash = _adjacent_equal(new_keys)
    if clash is not None:
        # The sort is stable, so the old row stands before the new one.
        raise DuplicateKey(new_rows[clash + 1], new_rows[clash])
    return new_keys, new_rows


def _merged_singly(chunk: Chunk, keys: list[Key], rows: list[Row]) -> tuple[list[Key], list[Row]]:
    new_keys, new_rows = chunk.keys.copy(), chunk.rows.copy()
    for key, row in zip(keys, rows, strict=True):
        place = bisect_left(new_keys, key)
        if place < len(new_keys) and new_keys[place] == key:
            raise DuplicateKey(row, new_rows[place])
        new_keys.insert(place, key)
        new_rows.insert(place, row)
    return new_keys, new_rows


def _without(chunk: Chunk, keys: list[Key]) -> tuple[list[Key], list[Row]]:
    places = _places(chunk, keys)
    if len(places) == len(chunk.keys):
        return [], []
    keep = bytearray(b"\x01") * len(chunk.keys)
    for place in places:
        keep[place] = 0
    return list(compress(chunk.keys, keep)), list(compress(chunk.rows, keep))


def _places(chunk: Chunk, keys: list[Key]) -> Sequence[int]:
    if len(keys) == len(chunk.keys) and keys == chunk.keys:
        return range(len(keys))
    places = [bisect_left(chunk.keys, key) for key in keys]
    found = [chunk.keys[place] for place in places if place < len(chunk.keys)]
    if found != keys:
        raise InternalError("memory table: a row to be changed is not there")
    return places


def _adjacent_equal(keys: list[Key]) -> int | None:
    """Position of the first key that equals its successor."""
    flags = list(map(eq, keys, islice(keys, 1, None)))
    return flags.index(True) if True in flags else None


def _pieces(chunks: list[Chunk], start: Position, stop: Position) -> list[list[Row]]:
    (first, begin), (last, end) = start, stop
    pieces = [chunks[first].rows[begin:] if begin else chunks[first].rows]
    pieces.extend(map(_rows_of, chunks[first + 1 : last]))
    if end:
        pieces.append(chunks[last].rows[:end])
    return pieces


def _reversed_pieces(pieces: list[list[Row]]) -> Iterator[list[Row]]:
    while pieces:
        yield pieces.pop()[::-1]
