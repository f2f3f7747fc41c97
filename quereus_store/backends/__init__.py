"""Backends: storage engines under one contract (``contract.py``), and how to open one by name.

``conformance.py`` proves a backend against the contract; a third party's backend needs nothing else.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from quereus_store.backends.contract import Backend, Item, ReadTransaction, Savepoint, WriteTransaction
from quereus_store.errors import StatusCode, sql_error

__all__ = [
    "BACKENDS",
    "Backend",
    "Item",
    "ReadTransaction",
    "Savepoint",
    "WriteTransaction",
    "check_sizes",
    "open_backend",
]


def _open_memory(path: str | os.PathLike[str] | None, **options: Any) -> Backend:
    from quereus_store.backends.memory import MemoryBackend

    return MemoryBackend(**options)


def _open_lmdb(path: str | os.PathLike[str] | None, **options: Any) -> Backend:
    from quereus_store.backends.lmdb_backend import LmdbBackend

    return LmdbBackend(_required(path, "lmdb"), **options)


def _open_leveldb(path: str | os.PathLike[str] | None, **options: Any) -> Backend:
    from quereus_store.backends.leveldb_backend import LeveldbBackend

    return LeveldbBackend(_required(path, "leveldb"), **options)


def _required(path: str | os.PathLike[str] | None, name: str) -> str | os.PathLike[str]:
    if path is None:
        raise sql_error(StatusCode.MISUSE, f"backend '{name}' needs a path")
    return path


_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")

BACKENDS: Mapping[str, Callable[..., Backend]] = MappingProxyType(
    {"memory": _open_memory, "lmdb": _open_lmdb, "leveldb": _open_leveldb}
)
"""The built-in backends by name; each is imported when it is first opened."""


_SIZES = ("cache_size", "map_size", "max_readers", "write_buffer_size")


def check_sizes(options: Mapping[str, Any]) -> None:
    """Options that are sizes or counts must be numbers that a machine can count to; raises MISUSE."""
    for name in _SIZES:
        value = options.get(name, 0)
        if type(value) is not int or not 0 <= value <= sys.maxsize:
            raise sql_error(StatusCode.MISUSE, f"{name} is a number from 0 to {sys.maxsize}, not {value!r}")


def open_backend(name: str, path: str | os.PathLike[str] | None = None, **options: Any) -> Backend:
    """Open a database with one of the built-in backends.

    ``options`` are those of the backend's class.  Raises MISUSE for an unknown name or option, CANTOPEN,
    NOTADB, READONLY, BUSY, CORRUPT as the backend finds the place to be.
    """
    factory = BACKENDS.get(name)
    if factory is None:
        raise sql_error(StatusCode.MISUSE, f"unknown backend '{name}'; there are {', '.join(BACKENDS)}")
    check_sizes(options)
    try:
        return factory(path, **options)
    except TypeError as failure:
        unknown = _UNEXPECTED.search(str(failure))
        reason = f" has no option '{unknown[1]}'" if unknown else f": {failure}"
        raise sql_error(StatusCode.MISUSE, f"backend '{name}'{reason}") from failure
