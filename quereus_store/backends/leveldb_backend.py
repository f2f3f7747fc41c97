"""The LevelDB backend: one folder, one process, one atomic batch for each commit.

LevelDB has snapshots and batches but no transactions; `leveldb_transactions` makes them of those.  Damage on
disk is an error, never a wrong answer or a missing row: blocks are read with their checksums, and a log that
cannot be read to its end is told apart by `leveldb_log`.

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
``salvage``             open a database whose log is damaged, dropping the commits that cannot be read
``faults``              for tests: called with ``"commit"`` before each commit, may raise ``OSError``
======================  ===============================================================================

Chapters: store-and-modules, sections 2, 12 and 15.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any
from weakref import WeakSet, ref

from quereus_store.backends.forking import abandon, watch
from quereus_store.backends.leveldb_binding import plyvel
from quereus_store.backends.leveldb_errors import FAILURES, translate
from quereus_store.backends.leveldb_log import damaged_before_a_later_commit
from quereus_store.backends.leveldb_transactions import LeveldbReadTransaction, LeveldbWriteTransaction
from quereus_store.backends.locking import WriterLock, closed
from quereus_store.backends.permissions import permitted
from quereus_store.errors import Error, StatusCode, sql_error


class _Log(Enum):
    """What the last commits did to the log."""

    GOOD = "takes commits"
    TORN = "may end in a part of a commit that failed"
    NEW = "begun because of that, and without a commit so far"


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
        salvage: bool = False,
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
        # Held by calls of the library's that are made in no transaction that is known here.
        self.closing = threading.RLock()
        self._readers: WeakSet[LeveldbReadTransaction] = WeakSet()
        self._writer: Callable[[], LeveldbWriteTransaction | None] = lambda: None
        self._forked_away = False
        self._log = _Log.GOOD
        self._check_place(create)
        options = {
            "create_if_missing": create,
            "write_buffer_size": write_buffer_size,
            "lru_cache_size": cache_size,
            "bloom_filter_bits": 10,
            "max_open_files": 512,
        }
        self._database: Any = self._open(options, salvage)
        watch(self)

    def _open(self, options: dict[str, Any], salvage: bool) -> Any:
        """Open the library's database, dropping a torn end of its log, or on demand more."""
        try:
            return plyvel.DB(self.path, paranoid_checks=True, **options)
        except plyvel.CorruptionError as failure:
            if not salvage and damaged_before_a_later_commit(Path(self.path)):
                raise sql_error(
                    StatusCode.CORRUPT,
                    f"cannot open '{self.path}': its log is damaged before commits that can be read; restore "
                    "a copy, or open it with salvage = true, which loses the commits that cannot be read",
                ) from failure
        except FAILURES as failure:
            raise self._cannot_open(failure) from failure
        try:
            plyvel.DB(self.path, **options).close()
            return plyvel.DB(self.path, paranoid_checks=True, **options)
        except FAILURES as failure:
            raise self._cannot_open(failure) from failure

    def _check_place(self, create: bool) -> None:
        place = Path(self.path)
        if place.is_file():
            self._refuse("it is a file, and a LevelDB database is a folder")
        if not place.parent.is_dir():
            self._refuse(f"the folder '{place.parent}' does not exist")
        if not place.exists():
            if not create:
                self._refuse("the folder does not exist")
            if not permitted(place.parent, os.W_OK):
                self._refuse(f"the folder '{place.parent}' may not be written", StatusCode.READONLY)
        elif any(place.iterdir()) and not (place / "CURRENT").exists():
            self._refuse("the folder holds other things than a LevelDB database", StatusCode.NOTADB)

    def _refuse(self, reason: str, code: StatusCode = StatusCode.CANTOPEN) -> None:
        raise sql_error(code, f"cannot open '{self.path}': {reason}")

    def _cannot_open(self, failure: Exception) -> Error:
        error = translate(failure, self.path, "open")
        if error.code is StatusCode.BUSY:
            return sql_error(
                StatusCode.BUSY,
                f"cannot open '{self.path}': it is open already, in another process or in this one, and "
                "LevelDB belongs to one process at a time",
            )
        return error

    def live(self) -> Any:
        """The library's database; MISUSE where it is closed, or the parent's of this process."""
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
        transaction = LeveldbReadTransaction(self)
        # Before it looks whether the database is open: so whoever closes that sees it, or is seen.
        self._readers.add(transaction)
        transaction.begin()
        return transaction

    def write(self, timeout: float = 5.0) -> LeveldbWriteTransaction:
        """Begin the write transaction; BUSY after ``timeout`` seconds, READONLY if opened so."""
        self.live()
        if self._readonly:
            raise sql_error(StatusCode.READONLY, f"cannot write to '{self.path}': it was opened read-only")
        self.writer_lock.acquire(timeout)
        try:
            with self.closing:
                self._leave_torn_log()
                writer = LeveldbWriteTransaction(self, self.live())
                self._writer = ref(writer)
        except BaseException:
            self.writer_lock.release()
            raise
        return writer

    def _transactions(self) -> list[LeveldbReadTransaction]:
        """Those that are open."""
        while True:
            try:
                readers = list(self._readers)
                break
            except RuntimeError:
                # Another thread has begun one meanwhile.
                continue
        writer = self._writer()
        return [*readers, *([] if writer is None else [writer])]

    def commit_failed(self, failure: Exception) -> Error:
        """The error for a commit that failed; the log may now end in a part of it."""
        error = translate(failure, self.path, "write to")
        if self._log is _Log.NEW:
            error = sql_error(
                error.code,
                f"{error.message}; once that is mended, close the database and open it again to write",
            )
        self._log = _Log.TORN
        return error

    def commit_succeeded(self) -> None:
        """The log takes commits."""
        self._log = _Log.GOOD

    def _leave_torn_log(self) -> None:
        """Begin a new log after a commit that failed.

        LevelDB would go on writing behind the part that got into the log, where recovery finds nothing.
        Compacting a range without keys only makes it write out what the log holds and begin another; where
        that fails too it refuses every commit until it is opened again.
        """
        if self._log is _Log.TORN:
            self.live().compact_range(start=b"", stop=b"")
            self._log = _Log.NEW

    def disk_size(self) -> int:
        """Bytes of all files of the database."""
        return sum(entry.stat().st_size for entry in os.scandir(self.path) if entry.is_file())

    def close(self) -> None:
        """Close the database, ending transactions that are still open; may be repeated."""
        with self.closing:
            database, self._database = self._database, None
        if database is None:
            return
        for transaction in self._transactions():
            transaction.end()
        with self.closing:
            database.close()

    def before_fork(self) -> None:
        """LevelDB stays with the parent."""

    def after_fork_in_child(self) -> None:
        """Cleaning up here would wait for a thread that only the parent has."""
        self.writer_lock = WriterLock(f"'{self.path}'")
        self.closing = threading.RLock()
        if self._database is not None:
            self._forked_away = True
            for transaction in self._transactions():
                transaction.leave_to_parent()
            abandon(self._database)
            self._database = None
