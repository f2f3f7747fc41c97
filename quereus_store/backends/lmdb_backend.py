"""The LMDB backend: one file, many readers, one writer, any number of processes.

A database is the file that the user named and, beside it, LMDB's lock file (``-lock``).  LMDB maps the file
into memory: a snapshot costs about a microsecond, reading copies nothing but the answer, and a commit is one
fsync.  Relative to LMDB's own calls from Python: point reads cost the same, scans and batches of writes a
third more; a batch that replaces rows under a savepoint twice as much, since it notes what it replaces, while
one that inserts new sorted keys pays a fifth for it.  Around a commit there are some 6 microseconds of ours,
as much as LMDB's own work for one without fsync.

*Writers* are one at a time, across processes.  LMDB's own lock waits without end, so two locks stand in front
of it that do not: one for the threads of this process, and ``flock`` on the database file, polled until the
timeout.  The system releases the latter when a process dies.

*The map* is the address range that LMDB uses, and the limit of the file's size.  It costs nothing until it is
used, so it is generous by default; where the system refuses, half of it is tried, and so on.  When more than
half of it is used it is doubled as a writer begins; if a transaction fills it nevertheless, it is enlarged
and the transaction replayed (``lmdb_transactions.py``).  Enlarging needs a moment without any transaction in
this process: new ones wait at the *gate*, open ones are waited for.  Other processes follow by themselves.

*Forking.*  LMDB must not cross a fork.  Before one, a database without open transactions is closed; parent
and child open it again when they next use it.  If a transaction is open, the parent goes on with it, and the
child refuses to use the database: its copy shares the parent's reader slots, which it must not touch even to
close it.

======================  ===============================================================================
option                  meaning
======================  ===============================================================================
``synchronous``         ``full`` (default): a commit is on disk when it returns.  ``normal``: a system
                        crash may lose the last commit.  ``off``: a system crash may lose or damage
                        what was not yet written; a crash of the program alone loses nothing.
``map_size``            size of the map in bytes
``max_readers``         read transactions at once, in all processes (default 1024)
``readonly``            open without writing; the file must exist
``create``              make the file if it is missing (default)
``faults``              for tests: called with ``"write"`` or ``"commit"`` before each, may raise
======================  ===============================================================================

Chapters: store-and-modules, sections 2, 12 and 15.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import lmdb

from quereus_store.backends.forking import abandon, is_left, leave, watch
from quereus_store.backends.lmdb_errors import translate
from quereus_store.backends.lmdb_long_keys import MARKER
from quereus_store.backends.lmdb_transactions import (
    JOURNAL_BELOW,
    Handle,
    LmdbReadTransaction,
    LmdbWriteTransaction,
)
from quereus_store.backends.locking import WriterLock, closed, locked
from quereus_store.backends.permissions import permitted
from quereus_store.errors import Error, StatusCode, sql_error

try:
    import fcntl
except ImportError:  # Windows: LMDB's own lock is all there is.
    fcntl = None  # type: ignore[assignment]

_SPARSE_FILES = os.name != "nt" and sys.maxsize > 2**32
DEFAULT_MAP_SIZE = 256 * 2**30 if _SPARSE_FILES else 2**30
LEAST_MAP_SIZE = 2**17
LEAST_RETRIED_MAP_SIZE = 64 * 2**20

_SYNCHRONOUS: Mapping[str, Mapping[str, bool]] = MappingProxyType(
    {
        "full": MappingProxyType({"sync": True, "metasync": True}),
        "normal": MappingProxyType({"sync": True, "metasync": False}),
        "off": MappingProxyType({"sync": False, "metasync": False}),
    }
)

_LOOK_EVERY = 64
"""Transactions between two looks at the room left in the map, while there is plenty."""

_OWN_REFERENCES = 2
"""References to an object that a function sees when only its own variable holds it."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02

Faults = Callable[[str], None]


class LmdbBackend:
    """An LMDB database that is open in this process."""

    name = "lmdb"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str = "full",
        map_size: int = DEFAULT_MAP_SIZE,
        max_readers: int = 1024,
        readonly: bool = False,
        create: bool = True,
        faults: Faults | None = None,
    ) -> None:
        if synchronous not in _SYNCHRONOUS:
            raise sql_error(
                StatusCode.MISUSE,
                f"synchronous must be one of {', '.join(_SYNCHRONOUS)}, not {synchronous!r}",
            )
        self.path = os.path.abspath(os.fspath(path))
        self.faults = faults
        self._synchronous = synchronous
        self._map_size: int = max(map_size, LEAST_MAP_SIZE)
        self._max_readers = max_readers
        self._readonly = readonly
        self._closed = False
        self._forked_away = False
        self._environment: Any = None
        self._lock_descriptor: int | None = None
        self._long_keys = (-1, False)
        self._room = 0
        self._until_next_look = 0
        self._forget_locks()
        self._check_place(create)
        self._open()
        watch(self)

    def _forget_locks(self) -> None:
        self._writer_lock = WriterLock(f"'{self.path}'")
        self._gate = threading.Condition()
        self._gate_closed = False
        self._active: dict[int, Any] = {}
        self._writer: weakref.ref[LmdbWriteTransaction] | None = None
        self._stranded: list[tuple[threading.Thread, Handle]] = []

    # --- opening and closing --------------------------------------------------------------------------

    def _check_place(self, create: bool) -> None:
        place = Path(self.path)
        if place.is_dir():
            raise self._cannot_open("it is a folder, and an LMDB database is one file")
        if not place.parent.is_dir():
            raise self._cannot_open(f"the folder '{place.parent}' does not exist")
        if not place.exists() and (self._readonly or not create):
            raise self._cannot_open("the file does not exist")

    def _cannot_open(self, reason: str) -> Error:
        return sql_error(StatusCode.CANTOPEN, f"cannot open '{self.path}': {reason}")

    def _open(self) -> None:
        lock_file = Path(f"{self.path}-lock")
        was_locked = lock_file.exists()
        try:
            self._environment = self._open_environment()
        except Error as refusal:
            if refusal.code is StatusCode.NOTADB and not was_locked:
                # A stranger's file must not gain a companion by having been looked at.
                lock_file.unlink(missing_ok=True)
            raise
        self._map_size = self._environment.info()["map_size"]
        self._page_size = self._environment.stat()["psize"]
        self._environment.reader_check()
        if fcntl is not None and not self._readonly:
            try:
                self._lock_descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            except OSError as failure:
                self._close_environment()
                raise translate(failure, self.path, "open", StatusCode.CANTOPEN) from failure
            self._mend_length(self._lock_descriptor)

    def _mend_length(self, descriptor: int) -> None:
        """Give a file that was cut off its length back.

        LMDB maps the file: a missing page would kill the process, one of zeros is an error when it is read.
        A sound file may lack pages at its end, too, which hold nothing; so this is no reason to refuse it.
        """
        if os.fstat(descriptor).st_size >= self._expected_length():
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # A writer is at work: it has opened the file before and seen to this.
        try:
            if os.fstat(descriptor).st_size < (length := self._expected_length()):
                os.ftruncate(descriptor, length)
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _expected_length(self) -> int:
        return int((self._environment.info()["last_pgno"] + 1) * self._page_size)

    def _open_environment(self) -> Any:
        size = self._map_size
        while True:
            try:
                return lmdb.open(
                    self.path,
                    subdir=False,
                    map_size=size,
                    max_readers=self._max_readers,
                    readonly=self._readonly,
                    **_SYNCHRONOUS[self._synchronous],
                )
            except lmdb.MemoryError as failure:
                if size // 2 < LEAST_RETRIED_MAP_SIZE:
                    raise translate(failure, self.path, "open") from failure
                size //= 2
            except lmdb.ReadonlyError as failure:
                if self._readonly and permitted(self.path, os.R_OK):
                    raise self._cannot_open(
                        f"its lock file '{self.path}-lock' may not be written, and readers register there"
                    ) from failure
                raise translate(failure, self.path, "open") from failure
            except (lmdb.Error, OSError) as failure:
                if "already open" in str(failure) and is_left(self.path):
                    raise _left_by_fork("open", self.path) from failure
                if "already open" in str(failure):
                    raise sql_error(
                        StatusCode.MISUSE,
                        f"cannot open '{self.path}': it is already open in this process; share that backend",
                    ) from failure
                raise translate(failure, self.path, "open", StatusCode.CANTOPEN) from failure

    def close(self) -> None:
        """Close the database, ending transactions that are still open; may be repeated.

        BUSY while *another* thread that still runs has a write transaction open: only that thread can end it.
        """
        if self._closed:
            return
        self._collect_stranded()
        me, writer = threading.get_ident(), self._writer_lock.owner
        # Nobody may become the writer meanwhile.
        if writer != me and not self._writer_lock.take():
            writer = self._writer_lock.owner
            if writer is None or any(writer == one.ident for one in threading.enumerate()):
                raise sql_error(
                    StatusCode.BUSY,
                    f"cannot close '{self.path}': another thread has a write transaction open",
                )
            # LMDB would wait for the lock of a thread that has ended.
            for token, txn in list(self._active.items()):
                if token == id(txn):
                    txn.abort()
        self._closed = True
        self._close_environment()
        self._active.clear()
        # Whoever waits for it is told.
        self._writer_lock.release()

    def _close_environment(self) -> None:
        environment, self._environment = self._environment, None
        if environment is not None:
            environment.close()
        if self._lock_descriptor is not None:
            os.close(self._lock_descriptor)
            self._lock_descriptor = None

    def disk_size(self) -> int:
        """Bytes of the database file that are in use on disk."""
        status = os.stat(self.path)
        return getattr(status, "st_blocks", 0) * 512 or status.st_size

    # --- reading --------------------------------------------------------------------------------------

    def read(self) -> LmdbReadTransaction:
        """A snapshot of the last commit.

        Raises BUSY if ``max_readers`` are open, or if another process has enlarged the database and this
        process has a transaction open that keeps it from following.
        """
        transaction = LmdbReadTransaction(self)
        active, token = self._active, id(transaction)
        while True:
            # Registered before the gate is looked at, so whoever closes the gate sees us or is seen.
            active[token] = None
            environment = self._environment
            if not self._gate_closed and environment is not None:
                break
            active.pop(token, None)
            self._wait_at_gate()
            active = self._active
        try:
            active[token] = transaction.txn = environment.begin()
        except (lmdb.Error, OSError) as failure:
            active.pop(token, None)
            if self._closed:
                raise closed("database") from failure
            self._recover_reader(failure)
            return self.read()
        return transaction

    def _recover_reader(self, failure: Exception) -> None:
        """Repair what kept a reader from beginning, or raise the error."""
        if isinstance(failure, lmdb.MapResizedError):
            self._follow_growth(5.0)
        elif not (isinstance(failure, lmdb.ReadersFullError) and self._environment.reader_check()):
            raise translate(failure, self.path, "read") from failure

    def end_read(self, transaction: LmdbReadTransaction, txn: Any) -> None:
        """A read transaction is to end."""
        if self._active.pop(id(transaction), None) is not None and self._environment is not None:
            txn.abort()
        if self._gate_closed:
            with self._gate:
                self._gate.notify_all()

    def has_long_keys(self, txn: Any) -> bool:
        """Whether a snapshot has keys that LMDB cannot hold as they are; looked up once for each commit."""
        commit, found = self._long_keys
        try:
            if not found and commit != (commit := txn.id()):
                found = txn.get(MARKER) is not None
                self._long_keys = (commit, found)
        except lmdb.Error as failure:
            raise translate(failure, self.path, "read") from failure
        return found

    def _wait_at_gate(self) -> None:
        """Wait until the map has been changed; open the database if a fork had closed it."""
        if self._closed:
            raise closed("database")
        if self._forked_away:
            raise _left_by_fork("use", self.path)
        with self._gate:
            while self._gate_closed:
                self._gate.wait(1.0)
            if self._environment is None and not self._closed:
                self._open()

    # --- writing --------------------------------------------------------------------------------------

    def write(self, timeout: float = 5.0) -> LmdbWriteTransaction:
        """Begin the write transaction; BUSY after ``timeout`` seconds, READONLY if opened so."""
        if self._readonly:
            raise sql_error(StatusCode.READONLY, f"cannot write to '{self.path}': it was opened read-only")
        if self._environment is None or self._closed:
            self._wait_at_gate()
        if self._stranded:
            self._collect_stranded()
        begun = time.monotonic()
        self._writer_lock.acquire(timeout)
        try:
            if self._closed:
                raise closed("database")
            if self._lock_descriptor is not None:
                self._lock_file(self._lock_descriptor, timeout, begun)
            try:
                self._make_room()
                writer = LmdbWriteTransaction(self, self._begin_write(timeout), timeout, self._room)
                self._writer = weakref.ref(writer)
                return writer
            except BaseException:
                self._unlock_file()
                raise
        except BaseException:
            self._writer_lock.release()
            raise

    def _lock_file(self, descriptor: int, timeout: float, begun: float) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                left = begun + timeout - time.monotonic()
                if left <= 0:
                    raise locked(f"'{self.path}'", timeout) from None
                time.sleep(min(pause, left))
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _unlock_file(self) -> None:
        if self._lock_descriptor is not None:
            fcntl.flock(self._lock_descriptor, fcntl.LOCK_UN)

    def _make_room(self) -> None:
        """Find out how much of the map is left; double it if most is used and nobody is looking."""
        if self._until_next_look:
            self._until_next_look -= 1
            return
        information = self._environment.info()
        used = (information["last_pgno"] + 1) * self._page_size
        if used * 2 > self._map_size and not self._active:
            try:
                self._with_gate_closed(lambda: self._set_map_size(max(self._map_size, used) * 2), 0.0)
            except Error as failure:
                if failure.code is not StatusCode.BUSY:
                    raise
        self._room = self._map_size - used
        self._until_next_look = _LOOK_EVERY if self._room >= 2 * JOURNAL_BELOW else 0

    def _begin_write(self, timeout: float) -> Any:
        while True:
            if self._gate_closed or self._environment is None:
                self._wait_at_gate()
            try:
                txn = self._environment.begin(write=True)
            except lmdb.MapResizedError:
                self._follow_growth(timeout)
                continue
            except (lmdb.Error, OSError) as failure:
                raise translate(failure, self.path, "write to") from failure
            self._active[id(txn)] = txn
            return txn

    def end_write(self, handle: Handle, committed: bool = False) -> None:
        """A write transaction has ended, or is to be aborted; the next writer may begin."""
        if self._active.pop(id(handle.txn), None) is None:
            return
        if not committed and self._environment is not None:
            self._abort(handle)
        self._unlock_file()
        self._writer_lock.release()

    def _abort(self, handle: Handle) -> None:
        """Abort by letting go.

        The library's ``abort`` waits for a moment in which no thread reads, which may never come; the
        destructor does not.  Something may still hold the transaction, the traceback of a failed write for
        one; then new readers wait at the gate until the moment has come.
        """
        txn, handle.txn = handle.txn, None
        for cursor in handle.cursors:
            cursor.close()
        handle.cursors.clear()
        if sys.getrefcount(txn) <= _OWN_REFERENCES:
            del txn
            return
        was_closed, self._gate_closed = self._gate_closed, True
        try:
            txn.abort()
        finally:
            self._gate_closed = was_closed
            with self._gate:
                self._gate.notify_all()

    def strand(self, handle: Handle, thread: threading.Thread) -> None:
        """A write transaction was dropped by a thread that may not end it: its own will, or any after it."""
        self._stranded.append((thread, handle))

    def _collect_stranded(self) -> None:
        me = threading.current_thread()
        entries, self._stranded = self._stranded, []
        for thread, handle in entries:
            if thread is me or not thread.is_alive():
                self.end_write(handle)
            else:
                self._stranded.append((thread, handle))

    # --- changing the map -----------------------------------------------------------------------------

    def regrow(self, handle: Handle, timeout: float) -> Any:
        """Drop a write transaction that filled the map, enlarge the map, and begin another.

        Raises BUSY if read transactions of this process stay open for ``timeout`` seconds: then no write
        transaction is open (see :meth:`begin_again`), but the writer still holds its locks.
        """
        self._active.pop(id(handle.txn), None)
        self._abort(handle)
        size = max(self._map_size * 2, self._map_size + 16 * 2**20)
        self._with_gate_closed(lambda: self._set_map_size(size), timeout)
        return self.begin_again()

    def begin_again(self) -> Any:
        """A new LMDB transaction for the writer that holds the locks."""
        return self._begin_write(0.0)

    def _follow_growth(self, timeout: float) -> None:
        """Take over the map size that another process has set."""
        self._with_gate_closed(lambda: self._set_map_size(0), timeout)

    def _set_map_size(self, size: int) -> None:
        try:
            self._environment.set_mapsize(size)
        except (lmdb.Error, OSError) as failure:
            raise translate(failure, self.path, "enlarge", StatusCode.NOMEM) from failure
        self._map_size = self._environment.info()["map_size"]

    def _with_gate_closed(self, action: Callable[[], None], timeout: float) -> None:
        """Do something while this process has no transaction open; BUSY if that does not come to pass."""
        deadline = time.monotonic() + timeout
        with self._gate:
            while self._gate_closed:
                self._gate.wait(1.0)
            self._gate_closed = True
            try:
                while self._active:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise sql_error(
                            StatusCode.BUSY,
                            f"cannot enlarge '{self.path}': {len(self._active)} transactions of this process "
                            f"are still open after {timeout:g} seconds",
                        )
                    self._gate.wait(min(left, 0.05))
                action()
            finally:
                self._gate_closed = False
                self._gate.notify_all()

    # --- forking --------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Close the environment if nothing is going on; it is opened again on its next use."""
        if self._environment is None or self._stranded:
            return
        try:
            self._with_gate_closed(self._close_environment, 0.0)
        except Error:
            return

    def _leave_snapshots(self) -> None:
        """Whoever reads holds them, so they are looked for among all objects: forks alone pay for it."""
        if gc.get_freeze_count():
            gc.unfreeze()  # what is frozen is not found
        for thing in gc.get_objects():
            if type(thing) is LmdbReadTransaction and thing.belongs_to(self):
                thing.leave_to_parent()

    def after_fork_in_child(self) -> None:
        """Never use what the parent is using, nor let it be cleaned up here."""
        inherited = list(self._active.values())
        was_open = self._environment is not None
        writer = None if self._writer is None else self._writer()
        if writer is not None:
            writer.leave_to_parent()
        if inherited:
            self._leave_snapshots()
        self._forget_locks()
        if was_open:
            self._forked_away = True
            leave(self.path)
            for thing in (self._environment, *inherited):
                abandon(thing)
            self._environment = None


def _left_by_fork(what: str, path: str) -> Error:
    """The MISUSE error in a child of a fork; says how the next one can do better."""
    return sql_error(
        StatusCode.MISUSE,
        f"cannot {what} '{path}' in this process: it was forked while a transaction was open; "
        "end transactions before forking, or start processes with the 'spawn' method",
    )
