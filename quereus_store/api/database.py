"""The database behind connections: modules, functions, collations, types, options, catalog.

``connection.database`` is this object.  All connections of a process to one
file share it; it closes its storage when the last of them is closed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, overload

from quereus_store import views
from quereus_store.api.bound import BoundToProcess
from quereus_store.api.events import QUEUE_SIZE, Events, watch_stream, watch_with
from quereus_store.api.options import Options
from quereus_store.api.schema_manager import SchemaManager
from quereus_store.errors import StatusCode, sql_error, unsupported
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
from quereus_store.schema.objects import Catalog
from quereus_store.store.check import Finding, check_store
from quereus_store.store.copying import copy_database
from quereus_store.store.module import StoreModule
from quereus_store.types import CollationRegistry, LogicalType

MEMORY = ":memory:"


class Registry(Protocol):
    """Who counts what uses databases, and closes those that nothing uses any more."""

    def retain(self, database: Database) -> None:
        """One connection more; MISUSE for a database that is closed."""
        ...

    def release(self, database: Database) -> None:
        """One connection less."""
        ...


@dataclass(slots=True)
class Uses:
    """What uses an open database; ``key`` is its process and file, None for one in memory."""

    registry: Registry
    key: tuple[int, str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    connections: int = 0
    attached_to: int = 0


@dataclass(slots=True)
class Database(BoundToProcess):
    """An open database; made by :func:`quereus_store.connect`.

    It is open as long as it has connections, or is attached to others.
    """

    engine: Engine
    uses: Uses = field(repr=False)
    path: Path | None = None
    backend: str = "memory"

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
        # No database is detached meanwhile.
        view = ReadView(self.engine)
        try:
            for module in self.modules.values():
                if not isinstance(module, StoreModule):
                    continue
                snapshot = module.begin_read()
                try:
                    findings += check_store(module, snapshot)
                finally:
                    snapshot.rollback()
            return findings + self._check_views()
        finally:
            view.release()

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
        """Add a logical type, which columns can be declared with; MISUSE for a name of a built-in one.

        Values are compared by it where both have it.  Chapter: types-and-values, section 18.
        """
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
        # No database is detached between the two.
        view = ReadView(self.engine)
        try:
            tables = watched_tables(scope, view.catalog, self.engine.collations)
            if not tables:
                LOGGER.warning("watch: no table is watched, so nothing will ever be told")
            if handler is not None:
                return watch_with(self.engine.notifier, tables, handler)
            return watch_stream(self.engine.notifier, tables, queue_size)
        finally:
            view.release()

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
        self.uses.registry.retain(self)

    def release(self) -> None:
        """One connection less; the last one closes the storage, and ends subscriptions and attachments."""
        self.uses.registry.release(self)


def _same_call(known: Function, function: Function) -> bool:
    """Whether one function takes the other's place."""
    return known.name.lower() == function.name.lower() and (known.minimum, known.maximum) == (
        function.minimum,
        function.maximum,
    )
