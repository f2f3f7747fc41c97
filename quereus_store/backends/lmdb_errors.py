"""What LMDB's failures mean to a user of the database."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from types import MappingProxyType

import lmdb

from quereus_store.backends.locking import closed
from quereus_store.errors import Error, StatusCode, sql_error

_BY_CLASS: Mapping[type[Exception], tuple[StatusCode, str]] = MappingProxyType(
    {
        lmdb.MapFullError: (StatusCode.FULL, "the database has reached its map size"),
        lmdb.DiskError: (StatusCode.FULL, "the disk is full"),
        lmdb.InvalidError: (StatusCode.NOTADB, "it is not an LMDB file"),
        lmdb.VersionMismatchError: (StatusCode.NOTADB, "it was written by an incompatible version of LMDB"),
        lmdb.CorruptedError: (StatusCode.CORRUPT, "it is damaged"),
        lmdb.PageNotFoundError: (StatusCode.CORRUPT, "it is damaged: a page is missing"),
        lmdb.PanicError: (StatusCode.CORRUPT, "a fatal error happened before; close it and check it"),
        lmdb.ReadonlyError: (StatusCode.READONLY, "it may not be written"),
        lmdb.LockError: (StatusCode.BUSY, "it is locked by another process"),
        lmdb.ReadersFullError: (StatusCode.BUSY, "too many read transactions are open at once"),
        lmdb.MapResizedError: (StatusCode.BUSY, "another process has made it grow"),
        lmdb.MemoryError: (StatusCode.NOMEM, "there is not enough memory"),
        lmdb.BadValsizeError: (StatusCode.MISUSE, "a key has one byte or more"),
    }
)

_BY_NUMBER: Mapping[int, tuple[StatusCode, str]] = MappingProxyType(
    {
        errno.ENOSPC: (StatusCode.FULL, "the disk is full"),
        errno.EDQUOT: (StatusCode.FULL, "the disk quota is used up"),
        errno.EFBIG: (StatusCode.FULL, "the file may not become so large"),
        errno.EACCES: (StatusCode.READONLY, "permission denied"),
        errno.EROFS: (StatusCode.READONLY, "the file system is read-only"),
        errno.ENOMEM: (StatusCode.NOMEM, "there is not enough memory"),
    }
)

_LITTLE_SPACE = 2**20


def translate(failure: Exception, path: str, doing: str, default: StatusCode = StatusCode.IOERR) -> Error:
    """The error to raise for what LMDB or the operating system reported.

    ``doing`` completes "cannot ... '<path>'": ``open``, ``write to``, ``read``.
    """
    if isinstance(failure, OSError):
        code, meaning = _BY_NUMBER.get(failure.errno or 0, (default, failure.strerror or str(failure)))
        return sql_error(code, f"cannot {doing} '{path}': {meaning}")
    for kind, (code, meaning) in _BY_CLASS.items():
        if isinstance(failure, kind):
            return sql_error(code, f"cannot {doing} '{path}': {meaning} ({failure})")
    if "closed/deleted/dropped" in str(failure):
        return closed("transaction")
    if "Input/output error" in str(failure) and _disk_is_full(path):
        # LMDB reports a write that was cut short as such.
        return sql_error(StatusCode.FULL, f"cannot {doing} '{path}': the disk is full")
    return sql_error(default, f"cannot {doing} '{path}': {failure}")


def _disk_is_full(path: str) -> bool:
    if not hasattr(os, "statvfs"):
        return False
    try:
        status = os.statvfs(path)
    except OSError:
        return False
    return status.f_bavail * status.f_frsize < _LITTLE_SPACE
