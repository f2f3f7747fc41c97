"""Transactions over LMDB.

A reader is an LMDB read transaction and little else.  A writer adds three things:

*Savepoints.*  While one is open each write first notes what it replaces (keys it inserts need no look), and a
rollback writes the notes back, last first.  Without a savepoint nothing is noted.

*Growing.*  LMDB has a fixed address range, the map; a transaction that fills it is lost to LMDB.  So where
the room left in the map is less than ``JOURNAL_BELOW`` the writer keeps a journal of its calls (references,
not copies); when the map is full it aborts, lets the backend enlarge the map, and plays the journal into a
new LMDB transaction.  With more room there is no journal: it would outgrow the memory long before the map was
full.

*Failing cleanly.*  Any other error ends the transaction: it is aborted, and says so when it is used again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

import lmdb

from quereus_store.backends import lmdb_calls
from quereus_store.backends.contract import Item, Previous, Savepoint
from quereus_store.backends.lmdb_errors import translate
from quereus_store.backends.lmdb_long_keys import DIRECT, MARKER, Bucket, bucket_key
from quereus_store.backends.lmdb_scan import scan_entries, scan_entry_values, scan_expanded, spans_marker
from quereus_store.backends.locking import closed
from quereus_store.backends.memory import find_savepoint
from quereus_store.backends.undo import UndoLog
from quereus_store.errors import Error, StatusCode, sql_error

if TYPE_CHECKING:
    from quereus_store.backends.lmdb_backend import LmdbBackend

JOURNAL_BELOW = 32 * 2**30
"""Room in the map, in bytes, above which no journal is kept."""

_get_ident = threading.get_ident
_FAILURES = (lmdb.Error, OSError)
_READ_FAILURES = (lmdb.Error, OSError, AttributeError)
_key_of: Callable[[Item], bytes] = itemgetter(0)


class LmdbReadTransaction:
    """A snapshot: LMDB's own."""

    __slots__ = ("__weakref__", "_backend", "_has_long_keys", "txn")

    # What a scan asks of its transaction; a snapshot never changes.
    cursors: set[Any] | None = None
    version = 0

    def __init__(self, backend: LmdbBackend) -> None:
        self._backend = backend
        self._has_long_keys: bool | None = None
        self.txn: Any = None

    @property
    def has_long_keys(self) -> bool:
        """Whether there are keys that LMDB cannot hold as they are."""
        if self._has_long_keys is None:
            self._has_long_keys = self._backend.has_long_keys(self.txn)
        return self._has_long_keys

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``, or None."""
        try:
            if len(key) > DIRECT:
                return self._get_long(key)
            value: bytes | None = self.txn.get(key)
            return value
        except _READ_FAILURES as failure:
            raise self.scan_failure(failure) from failure

    def _get_long(self, key: bytes) -> bytes | None:
        packed = self.txn.get(bucket_key(key))
        return None if packed is None else Bucket(packed).get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of ``keys`` by position."""
        if not keys:
            return []
        try:
            if self._has_long_keys is not False and self.has_long_keys:
                return list(map(self.get, keys))
            return list(map(self.txn.get, keys))
        except lmdb.BadValsizeError:
            # A key that LMDB refuses, and that is not here.
            return list(map(self.get, keys))
        except _READ_FAILURES as failure:
            raise self.scan_failure(failure) from failure

    def scan(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[Item]]:
        """Items of a range in batches."""
        bounds = (lower, upper)
        if self._needs_expansion(bounds):
            return scan_expanded(self, bounds, reverse, batch_size)
        return scan_entries(self, bounds, reverse, batch_size, True)

    def scan_keys(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[bytes]]:
        """Keys of a range in batches."""
        bounds = (lower, upper)
        if self._needs_expansion(bounds):
            return _column(scan_expanded(self, bounds, reverse, batch_size), 0)
        return scan_entries(self, bounds, reverse, batch_size, False)

    def scan_values(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[bytes]]:
        """Values of a range in batches."""
        bounds = (lower, upper)
        if self._needs_expansion(bounds):
            return _column(scan_expanded(self, bounds, reverse, batch_size), 1)
        return scan_entry_values(self, bounds, reverse, batch_size)

    def first_values(
        self, lower: bytes, upper: bytes | None, limit: int, *, reverse: bool = False
    ) -> list[bytes]:
        """Values of the first items of a range, at most ``limit``."""
        known_plain = self._has_long_keys is False and lower > MARKER
        if reverse or upper is None or not (known_plain or not self._needs_expansion((lower, upper))):
            batches = self.scan_values(lower, upper, reverse=reverse)
            return list(islice(chain.from_iterable(batches), limit))
        values: list[bytes] = []
        if lower >= upper:
            return values
        try:
            cursor = self.txn.cursor()
            more = cursor.set_range(lower)
            # Few items: asking for each is cheaper than what an iterator costs to begin.
            while more and len(values) < limit:
                key, value = cursor.item()
                if key >= upper:
                    break
                values.append(value)
                more = cursor.next()
        except _READ_FAILURES as failure:
            raise self.scan_failure(failure) from failure
        return values

    def _needs_expansion(self, bounds: tuple[bytes, bytes | None]) -> bool:
        if self.txn is None:
            raise self._gone()
        return self.has_long_keys or spans_marker(bounds)

    def count(self, lower: bytes, upper: bytes | None) -> int:
        """How many keys a range has, exactly."""
        return sum(map(len, self.scan_keys(lower, upper)))

    def close(self) -> None:
        """Release the snapshot; may be repeated."""
        txn = self.txn
        if txn is not None:
            self.txn = None
            self._backend.end_read(self, txn)

    def scan_failure(self, failure: Exception) -> Exception:
        """The error to raise for a failure while reading."""
        if self.txn is None:
            return self._gone()
        if isinstance(failure, AttributeError):
            return failure
        return self._error(failure, "read")

    def _gone(self) -> Error:
        """The error for using it after its end."""
        return closed("transaction")

    def _error(self, failure: Exception, doing: str) -> Error:
        return translate(failure, self._backend.path, doing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self.txn is not None:
            self.close()

    def belongs_to(self, backend: LmdbBackend) -> bool:
        """Whether it is a snapshot of this database."""
        return self._backend is backend

    def leave_to_parent(self) -> None:
        """This is a forked child: every further use is refused. The backend keeps ``txn`` from its end."""
        self.txn = None
        self.__class__ = _LeftToParent


class _LeftToParent(LmdbReadTransaction):
    """What a snapshot is in a forked child, where nothing keeps the pages that it would read."""

    __slots__ = ()

    # Another one than scans have begun with, so that these look at the transaction again.
    version = -1

    def _gone(self) -> Error:
        return sql_error(StatusCode.MISUSE, "a snapshot cannot be used in a forked process")


def _column(batches: Iterator[list[Item]], index: int) -> Iterator[list[bytes]]:
    pick = itemgetter(index)
    for items in batches:
        yield list(map(pick, items))


class Handle:
    """An LMDB write transaction on its way out, with the cursors that still hold it."""

    __slots__ = ("cursors", "txn")

    def __init__(self, txn: Any, cursors: set[Any]) -> None:
        self.txn = txn
        self.cursors = cursors


_Call = tuple[Callable[..., Any], tuple[Any, ...]]


class LmdbWriteTransaction(LmdbReadTransaction):
    """The writer's transaction, bound to the thread that began it."""

    __slots__ = (
        "_direct",
        "_ended_by",
        "_journal",
        "_last_token",
        "_owner",
        "_pid",
        "_savepoints",
        "_thread",
        "_timeout",
        "_undo",
        "cursors",
        "version",
    )

    def __init__(self, backend: LmdbBackend, txn: Any, timeout: float, room: int) -> None:
        super().__init__(backend)
        self.txn = txn
        self.cursors: set[Any] | None = set()
        self.version = 0
        self._timeout = timeout
        self._thread = _get_ident()
        self._owner = threading.current_thread()
        self._pid = os.getpid()
        self._journal: list[_Call] | None = [] if room < JOURNAL_BELOW else None
        # The thread that may hand single writes straight to LMDB; 0 when each goes through ``_run``.
        self._direct = self._thread if self._journal is None and backend.faults is None else 0
        self._savepoints: list[tuple[int, int]] = []
        self._undo = UndoLog()
        self._last_token = 0
        self._ended_by: str | None = None

    @property
    def has_long_keys(self) -> bool:
        """Whether there are keys that LMDB cannot hold as they are."""
        # Nobody else can change that meanwhile, and ``note_long_key`` tells if this transaction does.
        if self._has_long_keys is None:
            try:
                self._has_long_keys = self.txn.get(MARKER) is not None
            except _READ_FAILURES as failure:
                raise self.scan_failure(failure) from failure
        return self._has_long_keys

    # --- calls ----------------------------------------------------------------------------------------

    def put(self, key: bytes, value: bytes) -> None:
        """Store an item."""
        if self._direct == _get_ident() and len(key) <= DIRECT:
            try:
                if self._savepoints:
                    self._undo.recent.append(((key,), (self.txn.replace(key, value),)))
                else:
                    self.txn.put(key, value)
            except _FAILURES as failure:
                raise self._fail(failure) from failure
            self.version += 1
            return
        if self._savepoints:
            self._undo.recent.append(((key,), (self.get(key),)))
        self._run(lmdb_calls.put, key, value)

    def insert(self, key: bytes, value: bytes) -> bool:
        """Store an item unless its key exists; whether it was stored."""
        if self._direct == _get_ident() and len(key) <= DIRECT:
            try:
                stored: bool = self.txn.put(key, value, True, False)
            except _FAILURES as failure:
                raise self._fail(failure) from failure
            self.version += 1
            if stored and self._savepoints:
                self._undo.recent.append(((key,), None))
            return stored
        return self.insert_many(((key, value),)) is None

    def put_many(self, items: Sequence[Item], previous: Previous | None = None) -> None:
        """Store items; the last of equal keys wins."""
        if not items:
            return
        if self._savepoints:
            keys = list(map(_key_of, items))
            self._undo.note(keys, previous or self.get_many(keys))
        self._run(lmdb_calls.put_many, items)

    def insert_many(self, items: Sequence[Item]) -> int | None:
        """Store items up to the first whose key exists; its index, or None."""
        if not items:
            return None
        existing: int | None = self._run(lmdb_calls.insert_many, items)
        if self._savepoints:
            self._undo.note(list(map(_key_of, items[:existing])), None)
        return existing

    def put_new(self, items: Sequence[Item]) -> bool:
        """Store items that are known to be new; False if some were not."""
        if not items:
            return True
        all_new: bool = self._run(lmdb_calls.put_new, items)
        if self._savepoints:
            self._undo.note(list(map(_key_of, items)), None)
        return all_new

    def delete(self, key: bytes) -> None:
        """Remove a key if it is there."""
        if self._direct == _get_ident() and len(key) <= DIRECT:
            try:
                if not self._savepoints:
                    self.txn.delete(key)
                elif (value := self.txn.pop(key)) is not None:
                    self._undo.recent.append(((key,), (value,)))
            except _FAILURES as failure:
                raise self._fail(failure) from failure
            self.version += 1
            return
        self.delete_many((key,))

    def delete_many(self, keys: Sequence[bytes], previous: Previous | None = None) -> None:
        """Remove keys that are there."""
        if not keys:
            return
        if self._savepoints:
            self._undo.note(keys, previous or self.get_many(keys))
        self._run(lmdb_calls.delete_many, keys)

    def delete_range(self, lower: bytes, upper: bytes | None) -> int:
        """Remove a range; returns how many keys it had."""
        removed = 0
        for keys in self.scan_keys(lower, upper):
            removed += len(keys)
            self.delete_many(keys)
        return removed

    # --- savepoints -----------------------------------------------------------------------------------

    def savepoint(self) -> Savepoint:
        """Mark this state."""
        # Another thread is found out when it writes.
        if not self._direct:
            self._check()
        token = self._last_token = self._last_token + 1
        self._savepoints.append((token, self._undo.position()))
        return Savepoint(token)

    def rollback_to(self, savepoint: Savepoint) -> None:
        """Return to a marked state, which stays open."""
        self._check()
        index = find_savepoint(self._savepoints, savepoint)
        start = self._savepoints[index][1]
        del self._savepoints[index + 1 :]
        for keys, values in self._undo.back_to(start):
            self._run(lmdb_calls.restore, keys, values() if callable(values) else values)

    def release(self, savepoint: Savepoint) -> None:
        """Forget a savepoint and later ones."""
        if not self._direct:
            self._check()
        savepoints = self._savepoints
        if savepoints and savepoints[-1][0] == savepoint:
            savepoints.pop()
        else:
            del savepoints[find_savepoint(savepoints, savepoint) :]
        if not savepoints:
            self._undo.clear()

    # --- the end --------------------------------------------------------------------------------------

    def commit(self, durable: bool = True) -> None:
        """Make everything visible at once; durability is the backend's ``synchronous`` setting."""
        self._check()
        try:
            self._commit()
        except BaseException:
            self._finish()
            raise
        self._finish(committed=True)

    def _commit(self) -> None:
        while True:
            try:
                if self._backend.faults is not None:
                    self._backend.faults("commit")
                self.txn.commit()
                return
            except lmdb.MapFullError as failure:
                self._grow_and_replay(failure)
            except _FAILURES as failure:
                self._ended_by = "its commit failed"
                raise self._error(failure, "write to") from failure

    def abort(self) -> None:
        """Drop everything; may be repeated."""
        self.close()

    def close(self) -> None:
        """End the transaction; what was not committed is gone."""
        if self.txn is None:
            return
        self._direct = 0
        if self._pid != os.getpid():
            self.txn = None
            return
        if self._thread != _get_ident() and not self._inherited():
            self._backend.strand(Handle(self.txn, self.cursors or set()), self._owner)
            self.txn = None
            return
        self._finish()

    def _finish(self, committed: bool = False) -> None:
        handle = Handle(self.txn, self.cursors or set())
        self.txn = self._journal = None
        self._direct = 0
        self._undo.clear()
        self._savepoints.clear()
        if handle.txn is not None:
            self._backend.end_write(handle, committed)

    def _gone(self) -> Error:
        if self._pid != os.getpid():
            return sql_error(StatusCode.MISUSE, "a write transaction cannot be used in a forked process")
        if self._ended_by is None:
            return closed("transaction")
        return sql_error(
            StatusCode.MISUSE, f"cannot go on: the transaction was aborted because {self._ended_by}"
        )

    def leave_to_parent(self) -> None:
        """This is a forked child: every further use is refused. The backend keeps ``txn`` from its end."""
        self._direct = 0
        self.txn = None

    def _inherited(self) -> bool:
        """Make the transaction this thread's own if the one that began it has ended.

        LMDB's lock is the beginner's; once that has ended, the system hands it to whoever asks next.
        """
        if self._owner.is_alive():
            return False
        if self._direct:
            self._direct = _get_ident()
        self._thread, self._owner = _get_ident(), threading.current_thread()
        return True

    # --- running and replaying ------------------------------------------------------------------------

    def _check(self) -> None:
        if self.txn is None:
            raise self._gone()
        if self._pid != os.getpid():
            raise self._gone()
        if self._thread != _get_ident() and not self._inherited():
            raise sql_error(
                StatusCode.MISUSE, "a write transaction can only be used by the thread that began it"
            )

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Do one call on the LMDB transaction and note it in the journal."""
        if self.txn is None or self._thread != _get_ident():
            self._check()
        self.version += 1
        while True:
            try:
                if self._backend.faults is not None:
                    self._backend.faults("write")
                result = function(self, *arguments)
                break
            except lmdb.MapFullError as failure:
                self._grow_and_replay(failure)
            except _FAILURES as failure:
                raise self._fail(failure) from failure
        if self._journal is not None:
            if function is lmdb_calls.insert_many and result is not None:
                function, arguments = lmdb_calls.put_many, (arguments[0][:result],)
            self._journal.append((function, arguments))
        return result

    def _fail(self, failure: Exception) -> Error:
        """End the transaction after a failure to write; the error to raise."""
        full = isinstance(failure, lmdb.MapFullError)
        self._ended_by = "the database is full" if full else "a write failed"
        self._finish()
        return self._error(failure, "write to")

    def _grow_and_replay(self, failure: lmdb.Error) -> None:
        """Enlarge the map and bring the transaction back to where it was; on failure it is as it was, too."""
        journal = self._journal
        if journal is None:
            raise self._fail(failure) from failure
        refusal: Error | None = None
        handle = Handle(self.txn, self.cursors or set())
        self.txn = None
        try:
            self.txn = self._backend.regrow(handle, self._timeout)
        except Error as error:
            refusal = error
            self.txn = self._backend.begin_again()
        self.version += 1
        self._has_long_keys = None
        try:
            for function, arguments in journal:
                function(self, *arguments)
        except _FAILURES as second:
            self._ended_by = "the database is full"
            self._finish()
            raise self._error(second, "write to") from second
        if refusal is not None:
            raise refusal

    def note_long_key(self) -> None:
        """The marker is there from now on."""
        self._has_long_keys = True
