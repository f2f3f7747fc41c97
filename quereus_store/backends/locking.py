"""The lock of the single writer within one process."""

from __future__ import annotations

import threading

from quereus_store.errors import Error, StatusCode, sql_error


class WriterLock:
    """A lock with a timeout that notices a thread waiting for itself."""

    def __init__(self, where: str) -> None:
        self._lock = threading.Lock()
        self._where = where
        self._owner: int | None = None

    @property
    def owner(self) -> int | None:
        """The thread that is the writer."""
        return self._owner

    def take(self) -> bool:
        """Become the writer if nobody is; whether that was so."""
        if not self._lock.acquire(blocking=False):
            return False
        self._owner = threading.get_ident()
        return True

    def acquire(self, timeout: float) -> None:
        """Become the writer; BUSY after ``timeout`` seconds, at once if this very thread is the writer."""
        if not self.take():
            if self._owner == threading.get_ident():
                raise sql_error(
                    StatusCode.BUSY,
                    f"database is locked: this thread already has a write transaction open on {self._where}",
                )
            if timeout <= 0 or not self._lock.acquire(timeout=timeout):
                raise locked(self._where, timeout)
            self._owner = threading.get_ident()

    def release(self) -> None:
        """Let the next writer in."""
        self._owner = None
        self._lock.release()


def locked(where: str, timeout: float) -> Error:
    """The BUSY error of a writer that waited in vain."""
    return sql_error(
        StatusCode.BUSY,
        f"database is locked: another transaction is writing to {where} (waited {timeout:g} seconds)",
    )


def closed(what: str) -> Error:
    """The MISUSE error for a transaction or database that is used after its end."""
    return sql_error(StatusCode.MISUSE, f"cannot operate on a closed {what}")
