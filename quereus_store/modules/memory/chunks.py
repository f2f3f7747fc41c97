"""Chunks: some neighbouring rows of a memory table, and what is done to one of them.

A chunk is two parallel lists, keys and rows.  :mod:`~quereus_store.modules.memory.sorted_rows` strings
chunks together and says who may change one.

A :class:`LateChunk` of an index has no rows yet.  An UPDATE of many rows that leaves the keys of an index
alone would have to find each new row's place in it; the table's own tree has them in order already.  So the
index keeps its keys, and a chunk looks its rows up in that tree, as it was then, when somebody first
reads them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import compress, islice, pairwise
from operator import attrgetter, eq, is_not, itemgetter, lt
from typing import TYPE_CHECKING, Any, TypeAlias

from quereus_store.errors import InternalError

if TYPE_CHECKING:
    from quereus_store.modules.memory.sorted_rows import SortedRows

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

FEW_OF_CHUNK = 8
"""From one row in so many on, finding or replacing rows of a chunk passes over all of them."""

MANY = 64
"""From so many keys on, rows are looked up chunk by chunk."""

LATE = 16
"""From one row in so many on, an index looks replaced rows up later."""

SAME = 16
"""Up to so many rows with equal own halves are counted singly."""

rows_of = attrgetter("rows")
_own_half = itemgetter(0)


class Extreme:
    """A part of a key beyond all others, not beyond itself; ``key`` is what it is inside a reversed key."""

    __slots__ = ("high", "key")

    def __init__(self, high: bool) -> None:
        self.high = high
        self.key: Extreme = self

    def __lt__(self, other: object) -> bool:
        return not self.high and other is not self

    def __gt__(self, other: object) -> bool:
        return self.high and other is not self


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

    def with_rows(self, rows: list[Row], owner: object) -> Chunk:
        """A chunk with the same keys, which stay shared, and other rows."""
        chunk = Chunk(self.keys, rows, owner, self.halves)
        chunk.keys_owner = self.keys_owner
        return chunk

    def own_halves(self) -> list[Key]:
        """The own halves of the keys, which are nested."""
        halves = self.halves
        if halves is None:
            halves = self.halves = list(map(_own_half, self.keys))
        return halves


class LateChunk(Chunk):
    """A chunk of an index that looks its rows up in the table's tree when they are first asked for.

    Nobody owns it, so whoever changes it makes an ordinary chunk of it first.  Two threads may ask at
    once: both find the same rows.
    """

    __slots__ = ("_source",)

    def __init__(self, chunk: Chunk, source: Frozen) -> None:
        # ``rows`` stays unset: reading it comes to ``__getattr__``, and only as long as it is unset.
        self.keys = chunk.keys
        self.halves = chunk.halves
        self.owner = self.keys_owner = None
        self._source: Frozen | None = source

    def __getattr__(self, name: str) -> Any:
        if name != "rows":
            raise AttributeError(name)
        source = self._source
        if source is not None:
            chunks, lasts, _ = source
            self.rows = [
                (chunk := chunks[bisect_left(lasts, key)]).rows[bisect_left(chunk.keys, key)]
                for _, key in self.keys
            ]
            # The tree as it was need not be kept any longer.
            self._source = None
        return self.rows


class DuplicateKey(Exception):
    """A merge met a key that is already there; ``row`` is the new row, ``existing`` the one in its way."""

    def __init__(self, row: Row, existing: Row) -> None:
        super().__init__("duplicate key")
        self.row = row
        self.existing = existing


def sort_by_key(keys: list[Key], rows: Sequence[Row]) -> tuple[list[Key], list[Row]]:
    """Both lists in key order; free when they are in order already."""
    if is_sorted(keys):
        return keys, list(rows)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return gather(keys, order), gather(rows, order)


def gather(items: Sequence[Any], order: list[int]) -> list[Any]:
    """The items at these places, in this order."""
    return list(itemgetter(*order)(items)) if len(order) > 1 else [items[place] for place in order]


def is_sorted(keys: list[Key]) -> bool:
    """Whether keys are in order."""
    return not any(map(lt, islice(keys, 1, None), keys))


class Swap:
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


def groups_of(lasts: list[Key], keys: list[Key]) -> Iterator[tuple[int, int, int]]:
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


def merged(chunk: Chunk, keys: list[Key], rows: list[Row]) -> tuple[list[Key], list[Row]]:
    """The chunk's keys and rows with these among them; raises :class:`DuplicateKey`."""
    if len(keys) * 6 <= len(chunk.keys):
        return _merged_singly(chunk, keys, rows)
    both_keys, both_rows = chunk.keys + keys, chunk.rows + rows
    # Two sorted runs: the sort merges them in linear time.
    order = sorted(range(len(both_keys)), key=both_keys.__getitem__)
    new_keys = gather(both_keys, order)
    new_rows = gather(both_rows, order)
    clash = adjacent_equal(new_keys)
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


def without(chunk: Chunk, keys: list[Key]) -> tuple[list[Key], list[Row]]:
    """The chunk's keys and rows but for these, all of which are there."""
    if keys == chunk.keys:
        return [], []
    gone = set(keys)
    keep = [key not in gone for key in chunk.keys]
    left = list(compress(chunk.keys, keep))
    if len(chunk.keys) - len(left) != len(keys):
        raise _not_there()
    return left, list(compress(chunk.rows, keep))


def found_in(chunk: Chunk, keys: list[Key]) -> Sequence[Row | None]:
    """The row, or None, of each of these keys."""
    return list(map(dict(zip(chunk.keys, chunk.rows, strict=True)).get, keys))


def _places_of(chunk: Chunk, keys: list[Key]) -> Sequence[int]:
    if len(keys) == len(chunk.keys) and keys == chunk.keys:
        return range(len(keys))
    places = [bisect_left(chunk.keys, key) for key in keys]
    found = [chunk.keys[place] for place in places if place < len(chunk.keys)]
    if found != keys:
        raise _not_there()
    return places


def _not_there() -> InternalError:
    return InternalError("memory table: a row to be changed is not there")


def replaced(chunk: Chunk, keys: list[Key], rows: list[Row]) -> list[Row]:
    """The chunk's rows with these in the places of their keys, all of which are there."""
    if len(keys) == len(chunk.keys):
        return rows
    if len(keys) * FEW_OF_CHUNK > len(chunk.keys):
        new_of = dict(zip(keys, rows, strict=True))
        changed = list(map(new_of.get, chunk.keys, chunk.rows))
        if sum(map(is_not, changed, chunk.rows)) == len(keys):
            return changed
    changed = chunk.rows.copy()
    for place, row in zip(_places_of(chunk, keys), rows, strict=True):
        changed[place] = row
    return changed


def adjacent_equal(keys: list[Key]) -> int | None:
    """Position of the first key that equals its successor."""
    flags = list(map(eq, keys, islice(keys, 1, None)))
    return flags.index(True) if True in flags else None


def pieces_of(chunks: list[Chunk], start: Position, stop: Position) -> list[list[Row]]:
    """The rows between two positions, by chunk; whole chunks' lists as they are."""
    (first, begin), (last, end) = start, stop
    pieces = [chunks[first].rows[begin:] if begin else chunks[first].rows]
    pieces.extend(map(rows_of, chunks[first + 1 : last]))
    if end:
        pieces.append(chunks[last].rows[:end])
    return pieces


def reversed_pieces(pieces: list[list[Row]]) -> Iterator[list[Row]]:
    """The pieces and their rows from the last to the first; ``pieces`` is used up."""
    while pieces:
        yield pieces.pop()[::-1]
