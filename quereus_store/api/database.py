"""The database behind connections: modules, functions, collations, types, options, catalog.

``connection.database`` is this object.  All connections of a process to one
file share it; it closes its storage when the last of them is closed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, overload

from quereus_store import views
from quereus_store.api.bound import BoundToProcess
from quereus_store.api.events import QUEUE_SIZE, Events, watch_stream, watch_with
from quereus_store.api.options import Options
from quereus_store.api.schema_manager import SchemaManager
from quereus_store.backends import open_backend
from quereus_store.errors import StatusCode, sql_error, unsupported
from quereus_store.execute.attached import Opened
from quereus_store.execute.engine import Engine
from quereus_store.execute.notification import ChangeScope, Notification, Stream, Subscription
from quereus_store.execute.notification.analysis import change_scope
from quereus_store.execute.notification.matching import watched_tables
from quereus_store.execute.notification.notifier import LOGGER
from quereus_store.execute.session import Session
from quereus_store.execute.transactions import ReadView
from quereus_store.functions.registry import Function, FunctionRegistry
from quereus_store.functions.user import aggregate_function_from, scalar_function_from, table_function_from
from quereus_store.modules.contract import CatalogProblem, Module
from quereus_store.modules.json_tables import json_modules
from quereus_store.modules.memory import MemoryModule
from quereus_store.schema.objects import Catalog
from quereus_store.store.check import Finding, check_store
from quereus_store.store.copying import copy_database
from quereus_store.store.module import StoreModule
from quereus_store.store.open import open_module, open_store
from quereus_store.types import CollationRegistry, LogicalType

MEMORY = ":memory:"

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


@dataclass(slots=True)
class Database(BoundToProcess):
    """An open database; made by :func:`quereus_store.connect`.

    It is open as long as it has connections, or is attached to others.
    """

    engine: Engine
    path: Path | None = None
    backend: str = "memory"
    _connections: int = 0
    _attached_to: int = 0
    _options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _key: Any = None

    # -- what it knows -----------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """The committed catalog, as a snapshot; an attached database is a schema of it."""
        return self.engine.current_catalog()

    @property
    def schema_manager(self) -> SchemaManager:
        """The catalog to be looked up and changed by programs."""
        return SchemaManager(self)

    @property
    def modules(self) -> Mapping[str, Module]:
        """The registered virtual-table modules by name, in lower case."""
        return MappingProxyType(self.engine.modules)

    @property
    def functions(self) -> FunctionRegistry:
        """All functions, built-in and registered: iterate, ``find(name, arguments)``, ``knows(name)``."""
        return self.engine.registry

    @property
    def collations(self) -> CollationRegistry:
        """All collations: ``names()``, ``find(name)``."""
        return self.engine.collations

    @property
    def options(self) -> Options:
        """The options that connections opened from now on start with; ``pragma`` changes them for one."""
        return Options(self.engine)

    @property
    def problems(self) -> tuple[CatalogProblem, ...]:
        """Catalog entries that cannot be brought back, those of attached databases last; all others live."""
        _ = self.catalog  # entries are read when they are first needed
        attached = self.engine.attachments.databases.values()
        return sum((database.problems for database in attached), self.engine.problems)

    def check(self) -> list[Finding]:
        """What is wrong with rows, keys, indexes, counts, and maintained tables; empty when in order.

        Reads the whole database, and those attached to it, and changes nothing.
        """
        findings: list[Finding] = []
        for module in self.modules.values():
            if not isinstance(module, StoreModule):
                continue
            snapshot = module.begin_read()
            try:
                findings += check_store(module, snapshot)
            finally:
                snapshot.rollback()
        return findings + self._check_views()

    def _check_views(self) -> list[Finding]:
        """Maintained tables against their bodies."""
        maintenance = self.engine.maintenance
        if not isinstance(maintenance, views.Maintainer):
            return []
        view = ReadView(self.engine)
        try:
            found = list(views.differing_tables(maintenance, Session(self.engine), view))
        finally:
            view.release()
        return [Finding(place, what) for place, what in found]

    # -- what programs add ---------------------------------------------------------

    def register_module(self, module: Module) -> None:
        """Make a virtual-table module available to USING; raises MISUSE for a name that is taken or empty."""
        self.engine.register_module(module)
        self.engine.notifier.registered("module", module.name, after=module)

    def register_function(self, function: Function) -> None:
        """Add a scalar, aggregate or table function; one of the same name and arity is replaced."""
        replaced = next((known for known in self.functions if _same_call(known, function)), None)
        self.engine.registry.register(function)
        self.engine.notifier.registered("function", function.name, replaced, function)

    def unregister_function(self, name: str, arguments: int) -> bool:
        """Take a registered function back (``arguments`` -1: any number); whether there was one."""
        arity = (0, None) if arguments == -1 else (arguments, arguments)
        known = [found for found in self.functions if found.name.lower() == name.lower()]
        found = next((one for one in known if (one.minimum, one.maximum) == arity), None)
        if not self.engine.registry.unregister(name, None if arguments == -1 else arguments):
            return False
        self.engine.notifier.registered("function", name, found)
        return True

    def create_function(
        self, name: str, arguments: int, function: Callable[..., Any], **options: Any
    ) -> None:
        """Add a Python function as a scalar SQL function (``arguments`` -1: any number)."""
        self.register_function(scalar_function_from(function, name, arguments=arguments, **options))

    def create_aggregate(
        self,
        name: str,
        arguments: int,
        step: Callable[..., Any],
        finish: Callable[[Any], Any],
        initial: Any = None,
        **options: Any,
    ) -> None:
        """Add an aggregate: ``step(state, *values)`` gives the next state, ``finish(state)`` the value."""
        self.register_function(
            aggregate_function_from(step, finish, initial, name, arguments=arguments, **options)
        )

    def create_table_function(self, name: str, function: Callable[..., Any], **options: Any) -> None:
        """Add a generator as a table-valued function."""
        self.register_function(table_function_from(function, name=name, **options))

    def create_collation(
        self,
        name: str,
        comparator: Callable[[str, str], int],
        normalizer: Callable[[str], str] | None = None,
        *,
        order_preserving: bool = False,
    ) -> None:
        """Add a collation; without ``normalizer`` it can order but not key persistent structures."""
        known = self.collations.find(name.strip()) if isinstance(name, str) else None
        made = self.engine.collations.register(
            name, comparator, normalizer, order_preserving=order_preserving
        )
        self.engine.notifier.registered("collation", made.name, known, made)

    def unregister_collation(self, name: str) -> bool:
        """Take a registered collation back; whether there was one.  BINARY, NOCASE and RTRIM stay."""
        known = self.collations.find(name)
        if not self.engine.collations.unregister(name):
            return False
        self.engine.notifier.registered("collation", name.upper(), known)
        return True

    def register_type(self, logical_type: LogicalType) -> None:
        """Add a logical type."""
        self.engine.types.register(logical_type)

    # -- what changes ----------------------------------------------------------------

    @property
    def events(self) -> Events:
        """Listeners and streams for the rows and schema objects that commits change."""
        return Events(self.engine.notifier)

    def on_data_change(self, listener: Callable[[Any], Any]) -> Callable[[], None]:
        """See :meth:`quereus_store.api.events.Events.on_data_change`."""
        return self.events.on_data_change(listener)

    def on_schema_change(self, listener: Callable[[Any], Any]) -> Callable[[], None]:
        """See :meth:`quereus_store.api.events.Events.on_schema_change`."""
        return self.events.on_schema_change(listener)

    def on_transaction_commit(self, listener: Callable[[Any], Any]) -> Callable[[], None]:
        """See :meth:`quereus_store.api.events.Events.on_transaction_commit`."""
        return self.events.on_transaction_commit(listener)

    def change_scope(self, sql: str, parameters: Any = None) -> ChangeScope:
        """Which rows of which tables the result of a statement depends on; with ``parameters``, for these.

        Chapter: views-and-maintained-tables, section 14.
        """
        session = Session(self.engine)
        view = ReadView(self.engine)
        try:
            scope = change_scope(session, view, session.single_statement(sql))
        finally:
            view.release()
        if parameters is None or not scope.unbound_parameters:
            return scope
        return scope.bind_parameters(parameters)

    @overload
    def watch(
        self,
        what: str | ChangeScope,
        handler: Callable[[Notification], Any],
        *,
        parameters: Any = None,
    ) -> Subscription: ...

    @overload
    def watch(
        self,
        what: str | ChangeScope,
        handler: None = None,
        *,
        parameters: Any = None,
        queue_size: int = QUEUE_SIZE,
    ) -> Stream[Notification]: ...

    def watch(
        self,
        what: str | ChangeScope,
        handler: Callable[[Notification], Any] | None = None,
        *,
        parameters: Any = None,
        queue_size: int = QUEUE_SIZE,
    ) -> Subscription | Stream[Notification]:
        """Tell of commits that may change the result of a query, given as SQL or as its change scope.

        With a ``handler`` it is called after each such commit, and ``unsubscribe()`` of what is returned
        ends that.  Without, the notifications are to be iterated over, by ``for`` or ``async for``; a
        reader that lags behind by ``queue_size`` gets later ones joined into one.  Both end when a watched
        table is altered or dropped.

        Raises MISUSE for parameters without values, ERROR for unknown tables and columns.
        Chapter: views-and-maintained-tables, section 15.
        """
        scope = self.change_scope(what, parameters) if isinstance(what, str) else what
        if not isinstance(scope, ChangeScope):
            raise sql_error(
                StatusCode.MISUSE, f"watch takes SQL or a change scope, not {type(what).__name__}"
            )
        if not isinstance(what, str) and parameters is not None:
            scope = scope.bind_parameters(parameters)
        tables = watched_tables(scope, self.catalog, self.engine.collations)
        if not tables:
            LOGGER.warning("watch: no table is watched, so nothing will ever be told")
        if handler is not None:
            return watch_with(self.engine.notifier, tables, handler)
        return watch_stream(self.engine.notifier, tables, queue_size)

    def notify_external_change(self, table: str, schema: str = "main") -> None:
        """Tell the watches of a table that another process, or the program itself, has changed its rows."""
        self.engine.notifier.external_change(schema, table)

    def look_for_foreign_changes(self) -> bool:
        """Whether another process has changed the rows of a watched table; its watches are told if so.

        This costs one look-up for each watched table.  Commits of this process look by themselves.
        """
        return self.engine.notifier.look_for_foreign_changes()

    def backup(self, target: str | os.PathLike[str], backend: str | None = None) -> None:
        """See :meth:`quereus_store.api.connection.Connection.backup`."""
        store = self.engine.persistent_module
        if not isinstance(store, StoreModule):
            raise unsupported("BACKUP of a database in memory")
        if backend == "memory":
            raise sql_error(StatusCode.MISUSE, f"backend 'memory' keeps no file: use {MEMORY!r} as the path")
        copy_database(store.backend, target, backend or self.backend)

    # -- life ------------------------------------------------------------------------

    def retain(self) -> None:
        """One connection more.  MISUSE where the last one has closed the storage."""
        _OPEN.retain(self)

    def release(self) -> None:
        """One connection less; the last one closes the storage, and ends subscriptions and attachments."""
        _OPEN.release(self)


def _same_call(known: Function, function: Function) -> bool:
    """Whether one function takes the other's place."""
    return known.name.lower() == function.name.lower() and (known.minimum, known.maximum) == (
        function.minimum,
        function.maximum,
    )


class _OpenDatabases:
    """The databases of this process by file, so that opening one twice gives one.

    The garbage collector closes connections that nobody holds any more, and it may do so at any moment, also
    in the middle of what is done here.  So the lock lets its owner in again, and a database counts as used
    before anything else is done with it.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._open: dict[Any, Database] = {}

    def acquire(self, path: Path, backend: str, options: dict[str, Any]) -> Database:
        """The database of a file, counted as used; :meth:`release` is the caller's to call."""
        key = (os.getpid(), os.path.realpath(path))
        with self._lock:
            while True:
                database = self._open.get(key)
                if database is None:
                    database = self._opened(key, path, backend, options)
                database._connections += 1
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
            database._attached_to += 1
            self.release(database)
            return database

    def let_go(self, database: Database) -> None:
        """A database is attached to one other less."""
        with self._lock:
            database._attached_to -= 1
            self._close_unused(database)

    def _opened(self, key: Any, path: Path, backend: str, options: dict[str, Any]) -> Database:
        store = open_store(path, backend, **options)
        engine = _engine([store, MemoryModule(), *json_modules()], store.name, key[1])
        database = Database(engine, path, backend)
        database._key, database._options = key, options
        self._open[key] = database
        return database

    def retain(self, database: Database) -> None:
        with self._lock:
            database._connections += 1
            if database._key is not None and self._open.get(database._key) is not database:
                database._connections -= 1
                raise sql_error(StatusCode.MISUSE, "Database is closed")

    def release(self, database: Database) -> None:
        with self._lock:
            database._connections -= 1
            self._close_unused(database)

    def _close_unused(self, database: Database) -> None:
        if database._connections > 0:
            return
        if database._key is None or database._attached_to > 0:
            # Its rows are still there; for whom it was connected, it is gone.
            database.engine.notifier.close()
            database.engine.attachments.close()
            return
        self._open.pop(database._key, None)
        if database._key[0] != os.getpid():
            return
        try:
            database.engine.close()
        except BaseException:
            # It is still open, then, and the next connection must find it.
            self._open[database._key] = database
            raise


def _refuse_other_options(database: Database, options: Mapping[str, Any]) -> None:
    """Raise MISUSE where a connection asks for what the open file cannot be for it alone."""
    for name, usual in _SHARED_OPTIONS.items():
        present = database._options.get(name, usual)
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
        return Database(_engine([MemoryModule(), *json_modules()], "memory"), _connections=1)
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
