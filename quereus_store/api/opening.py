"""Opening databases: by path, by ATTACH, and each file once in a process.

The connections of a process to one file share one :class:`~quereus_store.api.database.Database`.  So do the
databases that the file is attached to, though each has a module of its own over the shared storage.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from quereus_store import views
from quereus_store.api.database import MEMORY, Database, Uses
from quereus_store.backends import open_backend
from quereus_store.errors import Error, InterfaceError, StatusCode, sql_error
from quereus_store.execute.attached import Opened
from quereus_store.execute.engine import Engine
from quereus_store.modules.contract import Module
from quereus_store.modules.json_tables import json_modules
from quereus_store.modules.memory import MemoryModule
from quereus_store.store.module import StoreModule
from quereus_store.store.open import open_module, open_store

STORAGE_OPTIONS = frozenset(
    {
        "cache_size",
        "create",
        "faults",
        "map_size",
        "max_readers",
        "readonly",
        "salvage",
        "synchronous",
        "write_buffer_size",
    }
)
"""What a storage takes; a database in memory has no use for them, and lets the same call be made for it."""

_SHARED_OPTIONS = MappingProxyType({"readonly": False, "synchronous": "full"})
"""What all connections to a file have in common, with what holds where nothing is said."""


class _OpenDatabases:
    """The databases of this process by file, so that opening one twice gives one.

    The garbage collector closes connections that nobody holds any more, and it may do so at any moment, also
    in the middle of what is done here.  So the lock lets its owner in again, and a database counts as used
    before anything else is done with it.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._open: dict[tuple[int, str], Database] = {}

    def acquire(self, path: Path, backend: str, options: dict[str, Any]) -> Database:
        """The database of a file, counted as used; :meth:`release` is the caller's to call."""
        key = (os.getpid(), os.path.realpath(path))
        with self._lock:
            while True:
                database = self._open.get(key)
                if database is None:
                    database = self._opened(key, path, backend, options)
                database.uses.connections += 1
                if self._open.get(key) is database:
                    break
            try:
                if database.backend != backend:
                    raise sql_error(
                        StatusCode.MISUSE,
                        f"'{path}' is open with backend '{database.backend}' in this process",
                    )
                _refuse_other_options(database, options)
            except BaseException:
                self.release(database)
                raise
            return database

    def attach(self, path: Path, backend: str, options: dict[str, Any]) -> Database:
        """The database of a file, counted as attached to another; :meth:`let_go` is the caller's to call."""
        database = self.acquire(path, backend, options)
        with self._lock:
            database.uses.attached_to += 1
            self.release(database)
            return database

    def let_go(self, database: Database) -> None:
        """A database is attached to one other less."""
        with self._lock:
            database.uses.attached_to -= 1
            self._close_unused(database)

    def _opened(self, key: tuple[int, str], path: Path, backend: str, options: dict[str, Any]) -> Database:
        try:
            store = open_store(path, backend, **options)
        except InterfaceError:
            inherited = self._inherited(key)
            if inherited is None:
                raise
            return inherited
        engine = _engine([store, MemoryModule(), *json_modules()], store.name, key[1])
        database = Database(engine, Uses(self, key, options), path, backend)
        self._open[key] = database
        return database

    def _inherited(self, key: tuple[int, str]) -> Database | None:
        """One that was open before this process was forked off, and is open in this one again by its use."""
        known = next((old for old in self._open if old[1] == key[1]), None)
        if known is None:
            return None
        database = self._open[known]
        store = database.engine.persistent_module
        assert isinstance(store, StoreModule)
        try:
            store.backend.read().close()
        except Error:
            return None
        del self._open[known]
        self._open[key] = database
        database.uses.key = key
        return database

    def retain(self, database: Database) -> None:
        """See :class:`~quereus_store.api.database.Registry`."""
        with self._lock:
            database.uses.connections += 1
            if database.uses.key is not None and self._open.get(database.uses.key) is not database:
                database.uses.connections -= 1
                raise sql_error(StatusCode.MISUSE, "Database is closed")

    def release(self, database: Database) -> None:
        """See :class:`~quereus_store.api.database.Registry`."""
        with self._lock:
            database.uses.connections -= 1
            self._close_unused(database)

    def _close_unused(self, database: Database) -> None:
        key = database.uses.key
        if database.uses.connections > 0:
            return
        if key is None or database.uses.attached_to > 0:
            # Its rows are still there; for whom it was connected, it is gone.
            database.engine.notifier.close()
            database.engine.attachments.close()
            return
        self._open.pop(key, None)
        if key[0] != os.getpid():
            return
        try:
            database.engine.close()
        except BaseException:
            # It is still open, then, and the next connection must find it.
            self._open[key] = database
            raise


def _refuse_other_options(database: Database, options: Mapping[str, Any]) -> None:
    """Raise MISUSE where a connection asks for what the open file cannot be for it alone."""
    for name, usual in _SHARED_OPTIONS.items():
        present = database.uses.options.get(name, usual)
        if name in options and options[name] != present:
            raise sql_error(
                StatusCode.MISUSE,
                f"'{database.path}' is open in this process with {name} = {present!r}: close its connections "
                f"first to open it with {name} = {options[name]!r}",
            )


_OPEN = _OpenDatabases()


def _engine(modules: list[Module], default_module: str, file: str = "") -> Engine:
    engine = Engine(modules, default_module, file=file, opener=_open_attached)
    views.install(engine)
    return engine


def _open_attached(name: str, path: str, options: Mapping[str, Any]) -> Opened:
    """A database to be attached under a name: the storage of an open one, or of one that is opened for it.

    A module of its own stands for it, which finds what others commit as it would find another process's work.
    """
    backend, storage = options.get("backend"), {key: options[key] for key in options if key != "backend"}
    settings: dict[str, Any] = {"name": f"{name}.store", "attached": name}
    if "cache_size" in storage:
        settings["cache_size"] = storage["cache_size"]
    if path == MEMORY:
        _check_memory(backend, storage)
        module = open_module(open_backend("memory"), **settings)
        return Opened(module, "", module.close)
    database = _OPEN.attach(Path(path), _checked_backend(path, backend), storage)
    store = database.engine.persistent_module
    assert isinstance(store, StoreModule)
    return Opened(
        StoreModule(store.backend, **settings), os.path.realpath(path), lambda: _OPEN.let_go(database)
    )


def open_database(path: str, backend: str | None, options: dict[str, Any]) -> Database:
    """The database of a path, counted as used until it is released; ``:memory:`` is a new one each time."""
    if path == MEMORY:
        _check_memory(backend, options)
        return Database(_engine([MemoryModule(), *json_modules()], "memory"), Uses(_OPEN, connections=1))
    return _OPEN.acquire(Path(path), _checked_backend(path, backend), options)


def _check_memory(backend: str | None, options: Mapping[str, Any]) -> None:
    if backend not in (None, "memory"):
        raise sql_error(StatusCode.MISUSE, f"a database in memory has no backend '{backend}': give it a path")
    unknown = sorted(options.keys() - STORAGE_OPTIONS)
    if unknown:
        raise sql_error(StatusCode.MISUSE, f"a database in memory has no option '{unknown[0]}'")


def _checked_backend(path: str, backend: str | None) -> str:
    """The backend to open a path with; raises CANTOPEN for what is no path, MISUSE for what keeps no file."""
    if "\0" in path or not _encodable(path):
        raise sql_error(StatusCode.CANTOPEN, f"cannot open {path!r}: that is no name of a file")
    if backend == "memory":
        raise sql_error(StatusCode.MISUSE, f"backend 'memory' keeps no file: use {MEMORY!r} as the path")
    return backend or detect_backend(path)


def _encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def detect_backend(path: str) -> str:
    """The backend of an existing path: a folder is LevelDB's, a file (or nothing yet) LMDB's."""
    return "leveldb" if Path(path, "CURRENT").is_file() else "lmdb"
