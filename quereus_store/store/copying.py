"""A copy of an open database: one snapshot, item by item, into a new file or folder.

All that a database holds is one ordered key space, the same on every backend.  So a copy is a scan of a
snapshot and puts in key order: readers and writers go on meanwhile, the copy has no free pages, and it may be
on another backend than its source.  It is written beside its place and takes it when it is whole, so that
what failed or was killed in between is never taken for a backup.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quereus_store.backends import Backend, ReadTransaction, open_backend
from quereus_store.errors import OperationalError, StatusCode, sql_error

_ITEMS_OF_A_COMMIT = 20_000


def copy_database(source: Backend, target: str | os.PathLike[str], backend: str) -> None:
    """Write the last commit of a database to a place where nothing is yet, durably.

    Raises CANTOPEN where something is there or nothing can be made, MISUSE for an unknown backend, FULL and
    IOERR where the place gives out; then nothing stays there.
    """
    place = Path(os.path.abspath(target))
    if os.path.lexists(place):
        raise sql_error(StatusCode.CANTOPEN, f"cannot write '{target}': it exists already")
    with (
        _file_errors(target),
        tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as folder,
    ):
        made = Path(folder, "copy")
        copy = open_backend(backend, made)
        try:
            with source.read() as snapshot:
                _copy_items(snapshot, copy)
        finally:
            copy.close()
        os.rename(made, place)
        _sync_folder(place.parent)


def _copy_items(snapshot: ReadTransaction, copy: Backend) -> None:
    # In several commits, since a transaction of LevelDB holds what it has written.
    for batch in snapshot.scan(b"\0", None, batch_size=_ITEMS_OF_A_COMMIT):
        with copy.write() as transaction:
            transaction.put_new(batch)
            transaction.commit()


@contextmanager
def _file_errors(target: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as failure:
        reason = failure.strerror or str(failure)
        raise OperationalError(f"cannot write '{target}': {reason}", StatusCode.CANTOPEN) from failure


def _sync_folder(folder: Path) -> None:
    """Let the new name outlive a power failure, where the system can be asked for that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
