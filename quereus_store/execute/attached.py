"""Attached databases: other files whose tables stand beside those of the own database, as one schema each.

An attached database is one more store module of the engine.  So reading, writing, savepoints and waiting
for another writer are what they are for any module, and only three things are said here:

* the catalog of a transaction is *joined* of the own one and of one schema for each attached database,
  every part as of the snapshot that the transaction has of it;
* a changed catalog is saved part by part, each in its own database, whose objects may name no others';
* a database in which a transaction still reads cannot be detached.

Attachments belong to the engine, as the catalog does: all connections to a database see them.  The storage
is opened by whoever opens databases, the layer above, through :data:`Opener`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import is_
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.versions import with_version
from quereus_store.modules.contract import CatalogProblem, Module, PersistentCatalog
from quereus_store.schema.databases import check_one_database
from quereus_store.schema.manager import DEFAULT_PATH, MAIN
from quereus_store.schema.objects import Catalog, Schema, fold

if TYPE_CHECKING:
    from quereus_store.execute.engine import Engine

_JOINED = 8
"""How many joined catalogs are kept."""


class CatalogKeeper(Module, PersistentCatalog, Protocol):
    """A module that keeps tables and their definitions."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A database that was opened to be attached: its module, its file, and how to let it go."""

    module: CatalogKeeper
    file: str
    release: Callable[[], None]


Opener = Callable[[str, str, Mapping[str, Any]], Opened]
"""Opens a file under a schema's name, with options."""


@dataclass(slots=True, eq=False)
class AttachedDatabase:
    """One attached database; ``readers`` are the transactions that have a snapshot of it."""

    name: str
    opened: Opened
    readers: WeakSet[PinnedDatabases] = field(default_factory=WeakSet)
    problems: tuple[CatalogProblem, ...] = ()
    _schemas: dict[int, Schema] = field(default_factory=dict)

    @property
    def module(self) -> CatalogKeeper:
        """The module of all its tables."""
        return self.opened.module

    @property
    def module_name(self) -> str:
        """The name that the engine knows the module by."""
        return fold(self.opened.module.name)

    def schema(self, transaction: Any) -> Schema:
        """Its objects as a transaction of its module sees them."""
        version = self.module.catalog_version(transaction)
        known = self._schemas.get(version)
        if known is None:
            loaded = self.module.load_catalog(transaction)
            self.problems = loaded.problems
            found = loaded.catalog.schemas[fold(self.name)]
            known = replace(found, name=self.name, attached=True)
            self._schemas = with_version(self._schemas, version, known)
        return known


class Attachments:
    """The attached databases of an engine, by folded name and in the order in which they were attached."""

    def __init__(self, engine: Engine, opener: Opener | None) -> None:
        self.databases: dict[str, AttachedDatabase] = {}
        self._engine = engine
        self._open = opener
        # The garbage collector closes connections, at any moment.
        self._lock = threading.RLock()
        self._joined: list[tuple[Catalog, tuple[Schema, ...], Catalog]] = []

    # -- attaching -----------------------------------------------------------------

    def attach(self, name: str, file: str, options: Mapping[str, Any]) -> None:
        """Open a database under a name; ERROR for a name or file that is in use, and what opening raises."""
        engine = self._engine
        if self._open is None:
            raise sql_error(StatusCode.UNSUPPORTED, "this engine opens no files: ATTACH takes a connection")
        if not name:
            raise sql_error(StatusCode.ERROR, "a database is attached under a name")
        with self._lock:
            if engine.current_catalog().schema(name) is not None or fold(name) == "committed":
                raise sql_error(StatusCode.ERROR, f"database {name} is already in use")
            opened = self._open(name, file, options)
            try:
                self._check_file(opened.file)
                database = AttachedDatabase(name, opened)
                engine.add_module(opened.module)
            except BaseException:
                opened.release()
                raise
            try:
                snapshot = opened.module.begin_read()
                try:
                    database.schema(snapshot)
                finally:
                    snapshot.rollback()
            except BaseException:
                self._let_go(database)
                raise
            self.databases = {**self.databases, fold(name): database}

    def _check_file(self, file: str) -> None:
        if not file:
            return
        if file == self._engine.file:
            raise sql_error(
                StatusCode.ERROR, f"'{file}' is the main database: it cannot be attached to itself"
            )
        for other in self.databases.values():
            if other.opened.file == file:
                raise sql_error(StatusCode.ERROR, f"'{file}' is already attached as {other.name}")

    def detach(self, name: str) -> None:
        """Close an attached database; raises ERROR for other names and for one in which somebody reads."""
        with self._lock:
            database = self.databases.get(fold(name))
            if database is None:
                raise sql_error(
                    StatusCode.ERROR,
                    f"cannot detach database {name}"
                    if fold(name) in DEFAULT_PATH
                    else f"no such database: {name}",
                )
            if database.readers:
                raise sql_error(
                    StatusCode.BUSY,
                    f"database {database.name} is locked: a transaction or an open cursor still reads it",
                )
            self._remove(database)

    def close(self) -> None:
        """Let all of them go."""
        with self._lock:
            for database in list(self.databases.values()):
                self._remove(database)

    def _remove(self, database: AttachedDatabase) -> None:
        # First: whoever looks for changes of what is watched finds the database attached, or no watch of it.
        self._engine.notifier.forget_schema(database.name)
        self.databases = {key: each for key, each in self.databases.items() if each is not database}
        self._joined.clear()
        self._let_go(database)

    def _let_go(self, database: AttachedDatabase) -> None:
        self._engine.remove_module(database.module)
        database.opened.release()

    # -- transactions --------------------------------------------------------------

    def pin(self, writing: str | None = None, writer: Any = None) -> PinnedDatabases:
        """A snapshot of each, save of the module that is being written, where the writer is asked."""
        pinned = PinnedDatabases()
        with self._lock:
            pinned.databases = tuple(self.databases.values())
            for database in pinned.databases:
                database.readers.add(pinned)
        try:
            schemas = []
            for database in pinned.databases:
                if database.module_name == writing:
                    transaction = writer
                else:
                    transaction = pinned.readers[database.module_name] = database.module.begin_read()
                schemas.append(database.schema(transaction))
            pinned.schemas = tuple(schemas)
        except BaseException:
            for reader in pinned.readers.values():
                reader.rollback()
            pinned.release()
            raise
        return pinned

    def joined(self, own: Catalog, schemas: tuple[Schema, ...]) -> Catalog:
        """The own catalog with these schemas; the same one for the same parts."""
        for base, parts, catalog in self._joined:
            if base is own and len(parts) == len(schemas) and all(map(is_, parts, schemas)):
                return catalog
        for schema in schemas:
            if fold(schema.name) in own.schemas:
                raise sql_error(
                    StatusCode.ERROR,
                    f"schema {schema.name} has come into being in the main database:"
                    " detach the database of that name",
                )
        joined = {**own.schemas, **{fold(schema.name): schema for schema in schemas}}
        made = self._engine.versioned(Catalog(joined))
        self._joined = [*self._joined[1 - _JOINED :], (own, schemas, made)]
        # What ANALYZE has found may have changed with any of them.
        self._engine.forget_statistics()
        return made

    # -- changes -------------------------------------------------------------------

    def keepers(self, own: CatalogKeeper | None, before: Catalog, after: Catalog) -> Iterator[CatalogKeeper]:
        """The modules whose parts of a catalog have changed; ERROR where one names another's objects."""
        old, new = before.schemas, after.schemas
        changed = {key for key in old.keys() | new.keys() if old.get(key) is not new.get(key)}
        check_one_database(before, after)
        if own is not None and not changed <= self.databases.keys():
            yield own
        for key, database in self.databases.items():
            if key in changed:
                yield database.module

    def name_of(self, module_name: str) -> str:
        """The database that a module's tables belong to."""
        found = (each.name for each in self.databases.values() if each.module_name == module_name)
        return next(found, MAIN)

    def partly_committed(self, error: Error, committed: Iterable[str], failed: Iterable[str]) -> Error:
        """The error for a commit that fails when other databases have committed already, by modules."""
        done = list(dict.fromkeys(map(self.name_of, committed)))
        lost = list(dict.fromkeys(map(self.name_of, failed)))
        outcome = f"committed in {', '.join(done)}, rolled back in {', '.join(lost)}"
        made = sql_error(error.code, f"{error.message} (the transaction is {outcome})")
        made.details = {**error.details, "committed": tuple(done), "rolled_back": tuple(lost)}
        return made


@dataclass(slots=True, eq=False, weakref_slot=True)
class PinnedDatabases:
    """What one transaction holds of the attached databases: snapshots by module, and their schemas.

    One that nobody holds any more, as of a cursor that was dropped, is no reader either.
    """

    databases: tuple[AttachedDatabase, ...] = ()
    readers: dict[str, Any] = field(default_factory=dict)
    schemas: tuple[Schema, ...] = ()

    def release(self) -> None:
        """The databases may be detached again, as far as this transaction goes; may be repeated."""
        for database in self.databases:
            database.readers.discard(self)


def own_part(catalog: Catalog) -> Catalog:
    """A catalog without the schemas of attached databases."""
    return replace(
        catalog, schemas={key: schema for key, schema in catalog.schemas.items() if not schema.attached}
    )


def own_part_differs(before: Catalog, after: Catalog) -> bool:
    """Whether two catalogs differ in more than the schemas of attached databases."""
    old, new = before.schemas, after.schemas
    differing = (key for key in old.keys() | new.keys() if old.get(key) is not new.get(key))
    return not all(before.is_attached(key) or after.is_attached(key) for key in differing)
