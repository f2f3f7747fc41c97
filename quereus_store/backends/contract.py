"""The key-value contract: what a storage engine must offer so that a database can live on it.

One backend is one ordered key space: keys and values are ``bytes``, keys sort as
unsigned bytes with a prefix before its extensions.  A backend gives *transactions*,
not just puts:

====================  ==============================================================
``backend.read()``    a pinned snapshot: the last commit, whatever is committed later
``backend.write(t)``  the single writer's transaction.  It reads its own writes, has
                      savepoints, and ends in ``commit`` or ``abort``.  A second
                      writer waits up to ``t`` seconds and then gets BUSY.
====================  ==============================================================

Rules that every implementation keeps (``conformance.py`` proves them):

* Keys have one byte or more and any length; values may be empty, an empty value is
  not an absent one.
* No buffer is shared: what a call returned never changes, what it was given may be
  changed afterwards.
* ``scan`` takes ``lower`` inclusive and ``upper`` exclusive (``None``: to the end) in
  both directions, and yields *batches*, so that callers work in C loops.  No batch is
  empty; memory is bounded by one batch; an abandoned scan holds nothing beyond its
  transaction.  A crossed or empty range yields nothing.
* A scan of a write transaction may be interleaved with writes of that transaction: each
  batch continues after the last key given, and shows the state at the time it is fetched.
* ``commit`` is atomic: after a crash the database holds all of a transaction or nothing
  of it.  A failed commit has aborted the transaction and left the last one in place.
* A transaction object is used by one thread at a time.  A write transaction is begun, used
  and finished by one and the same thread (LMDB requires it); different threads may hold
  different transactions at once.
* After ``close``, ``commit`` or ``abort`` a transaction refuses further use (MISUSE);
  ``close`` and ``abort`` may be repeated.

Errors are :class:`quereus_store.errors.OperationalError` with a status code: BUSY,
READONLY, FULL, IOERR, CORRUPT, NOTADB, CANTOPEN; wrong use is MISUSE.
Chapter: store-and-modules, sections 2, 12 and 15.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import NewType, Protocol, Self, runtime_checkable

Item = tuple[bytes, bytes]
"""A key and its value."""

Previous = Callable[[], Sequence[bytes]]
"""Gives, when asked, the values that some keys have, in their order."""

Savepoint = NewType("Savepoint", int)
"""Token of an open savepoint; meaningful only to the transaction that gave it."""


@runtime_checkable
class ReadTransaction(Protocol):
    """A pinned view of the key space."""

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``, or None."""
        ...

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of ``keys`` by position; a repeated key is answered each time."""
        ...

    def scan(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[Item]]:
        """Items with ``lower <= key < upper`` in key order (or reversed), in batches."""
        ...

    def scan_keys(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[bytes]]:
        """As :meth:`scan`, keys only."""
        ...

    def scan_values(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[bytes]]:
        """As :meth:`scan`, values only."""
        ...

    def first_values(
        self, lower: bytes, upper: bytes | None, limit: int, *, reverse: bool = False
    ) -> list[bytes]:
        """Values of the first ``limit`` items of a range (reversed: of the last, last first).

        The cheap way into a range that is expected to be small: nothing is set up for a second batch.
        """
        ...

    def count(self, lower: bytes, upper: bytes | None) -> int:
        """How many keys are in the range, exactly; costs a walk of the range's keys."""
        ...

    def close(self) -> None:
        """Release the view (a write transaction aborts).  May be repeated."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the view; a write transaction that was not committed is aborted."""
        ...


@runtime_checkable
class WriteTransaction(ReadTransaction, Protocol):
    """The single writer's transaction: reads its own writes."""

    def put(self, key: bytes, value: bytes) -> None:
        """Store ``value`` under ``key``, replacing what was there."""
        ...

    def put_many(self, items: Sequence[Item], previous: Previous | None = None) -> None:
        """Store all items; the last of equal keys wins.  Sorted input is fastest.

        ``previous``, where the caller has it, gives the values that the keys (different, all of them
        there) have now.  A backend that keeps an undo log may ask for it when a rollback needs them,
        instead of reading them now.
        """
        ...

    def insert(self, key: bytes, value: bytes) -> bool:
        """Store ``value`` under ``key`` unless that exists; whether it was stored."""
        ...

    def insert_many(self, items: Sequence[Item]) -> int | None:
        """Store items whose key is absent, stopping at the first that exists.

        Returns None when all were stored, else the index of the first item whose key
        existed already (in the database or earlier in ``items``): the items before it
        are stored, it and those after it are not.
        """
        ...

    def put_new(self, items: Sequence[Item]) -> bool:
        """Store items whose keys are known to be absent and to differ from each other, in any order.

        That spares looking before each write.  False if the caller was wrong: then keys that existed have
        kept their values, and rolling back to an earlier savepoint removes them with the others.
        """
        ...

    def delete(self, key: bytes) -> None:
        """Remove ``key``; an absent key is no error."""
        ...

    def delete_many(self, keys: Sequence[bytes], previous: Previous | None = None) -> None:
        """Remove all ``keys``; absent ones are no error.  ``previous``: as in :meth:`put_many`."""
        ...

    def delete_range(self, lower: bytes, upper: bytes | None) -> int:
        """Remove every key with ``lower <= key < upper``; returns how many there were."""
        ...

    def savepoint(self) -> Savepoint:
        """Mark this state; costs O(1).  Savepoints nest."""
        ...

    def rollback_to(self, savepoint: Savepoint) -> None:
        """Return to the marked state; later savepoints are gone, this one stays open."""
        ...

    def release(self, savepoint: Savepoint) -> None:
        """Forget this savepoint and later ones, keeping what was written."""
        ...

    def commit(self, durable: bool = True) -> None:
        """Make everything visible, all or nothing.

        With ``durable`` it is on stable storage when the call returns, as far as the
        backend's ``synchronous`` setting says; without, a crash may lose the commit (but
        never tear it).  On error the transaction is aborted, nothing of it remains.
        """
        ...

    def abort(self) -> None:
        """Drop everything.  May be repeated; does nothing after ``commit``."""
        ...


@runtime_checkable
class Backend(Protocol):
    """One open database: a file, a folder or a map in memory."""

    @property
    def name(self) -> str:
        """Which engine: ``memory``, ``lmdb``, ``leveldb``, or a third party's own name."""
        ...

    def read(self) -> ReadTransaction:
        """A snapshot of the last commit.  Never blocks on a writer."""
        ...

    def write(self, timeout: float = 5.0) -> WriteTransaction:
        """Begin the single write transaction; waits up to ``timeout`` seconds, then BUSY."""
        ...

    def close(self) -> None:
        """Close the database.  May be repeated.  Transactions still open are ended."""
        ...
