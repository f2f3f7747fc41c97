"""Transactions: one snapshot or one writer per module, one catalog, and how far to go back.

A :class:`Transaction` lives for a statement (autocommit) or from BEGIN to
COMMIT.  It takes a module's snapshot when the module is first read and becomes
the module's writer when it first writes; the catalog is the one that belongs
to the snapshot.  A savepoint is a mark on every module written to, the catalog
and the queue of checks that wait for the commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.schema.objects import Catalog, fold

if TYPE_CHECKING:
    from quereus_store.execute.engine import Engine

DeferredCheck = Callable[["Transaction"], None]


@dataclass(frozen=True, slots=True)
class Mark:
    """A place to roll back to."""

    tokens: dict[str, int]
    catalog: Catalog
    deferred: int
    changes: int


@dataclass(frozen=True, slots=True)
class NamedSavepoint:
    """A user's savepoint."""

    name: str
    mark: Mark


@dataclass(slots=True)
class _Writer:
    """A module's writing transaction and the token of its beginning."""

    transaction: Any
    start: int


@dataclass(slots=True)
class Transaction:
    """A transaction over all modules of an engine.

    ``explicit`` distinguishes BEGIN from a statement's own; ``deferred`` holds
    checks to run at commit, ``changes`` what happened to rows (for listeners).
    """

    engine: Engine
    timeout: float = 5.0
    durable: bool = True
    explicit: bool = False
    catalog: Catalog = field(init=False)
    deferred: list[DeferredCheck] = field(default_factory=list)
    changes: list[Any] = field(default_factory=list)
    savepoints: list[NamedSavepoint] = field(default_factory=list)
    started_with: Catalog = field(init=False)
    _readers: dict[str, Any] = field(default_factory=dict)
    _writers: dict[str, _Writer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        engine = self.engine
        with engine.publishing:
            module = engine.persistent_module
            snapshot = None
            if module is not None:
                snapshot = self._readers[fold(module.name)] = module.begin_read()
            try:
                self.catalog = self.started_with = engine.catalog_for(snapshot)
            except BaseException:
                self.release()
                raise
            if module is None:
                # The snapshot must not be older or newer than the catalog.
                for name, other in engine.modules.items():
                    self._readers[name] = other.begin_read()

    # -- access ----------------------------------------------------------------

    def reader(self, module_name: str) -> Any:
        """The module's transaction to read in: what this transaction has written is seen."""
        name = fold(module_name)
        writer = self._writers.get(name)
        return writer.transaction if writer is not None else self.snapshot(name)

    def snapshot(self, module_name: str) -> Any:
        """The module's state from before this transaction."""
        name = fold(module_name)
        found = self._readers.get(name)
        if found is None:
            found = self._readers[name] = self.engine.module(name).begin_read()
        return found

    def writer(self, module_name: str) -> Any:
        """The module's writing transaction; raises BUSY when another connection writes, or has written since."""
        name = fold(module_name)
        writer = self._writers.get(name)
        if writer is None:
            module = self.engine.module(name)
            transaction = module.begin_write(self.timeout, self._readers.get(name), self.durable)
            writer = self._writers[name] = _Writer(transaction, transaction.savepoint())
        return writer.transaction

    @property
    def has_written(self) -> bool:
        """Whether any module has been written to, or the catalog changed."""
        return bool(self._writers) or self.catalog is not self.started_with

    def change_catalog(self, catalog: Catalog) -> None:
        """Work on with a changed catalog; what persists of it is written at once."""
        before = self.catalog
        self.catalog = self.engine.versioned(catalog)
        module = self.engine.persistent_module
        if module is not None:
            self.engine.save_catalog(self.writer(module.name), before, self.catalog)

    # -- savepoints ------------------------------------------------------------

    def mark(self) -> Mark:
        """A place to come back to."""
        tokens = {name: writer.transaction.savepoint() for name, writer in self._writers.items()}
        return Mark(tokens, self.catalog, len(self.deferred), len(self.changes))

    def return_to(self, mark: Mark) -> None:
        """Undo everything since a mark; the mark stays good."""
        for name, writer in self._writers.items():
            writer.transaction.rollback_to(mark.tokens.get(name, writer.start))
        self.catalog = mark.catalog
        del self.deferred[mark.deferred :]
        del self.changes[mark.changes :]

    def forget(self, mark: Mark) -> None:
        """Give a mark up; what was done since stays."""
        for name, token in mark.tokens.items():
            self._writers[name].transaction.release(token)

    def open_savepoint(self, name: str) -> None:
        """SAVEPOINT."""
        self.savepoints.append(NamedSavepoint(name, self.mark()))

    def rollback_to_savepoint(self, name: str) -> None:
        """ROLLBACK TO: the savepoint stays, later ones go. Raises ERROR for an unknown name."""
        position = self._find_savepoint(name)
        self.return_to(self.savepoints[position].mark)
        del self.savepoints[position + 1 :]

    def release_savepoint(self, name: str) -> None:
        """RELEASE: the savepoint and later ones are merged. Raises ERROR for an unknown name."""
        position = self._find_savepoint(name)
        self.forget(self.savepoints[position].mark)
        del self.savepoints[position:]

    def _find_savepoint(self, name: str) -> int:
        for position in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[position].name == name:
                return position
        raise sql_error(StatusCode.ERROR, f"No such savepoint: {name}")

    # -- end -------------------------------------------------------------------

    def commit(self) -> None:
        """Run the waiting checks and commit every module; any failure rolls everything back and is raised."""
        try:
            self._run_deferred()
            if self._writers or self.catalog is not self.started_with:
                with self.engine.publishing:
                    self._commit_modules()
        except BaseException:
            self.rollback()
            raise
        self.release()

    def _run_deferred(self) -> None:
        while self.deferred:
            waiting, self.deferred = self.deferred, []
            for check in waiting:
                check(self)

    def _commit_modules(self) -> None:
        engine = self.engine
        persistent = engine.persistent_module
        names = sorted(self._writers, key=lambda name: not engine.modules[name].persistent)
        changed = self.catalog is not self.started_with
        version = None
        if changed and persistent is not None:
            version = engine.persistent_version(self.reader(persistent.name))
        for name in names:
            writer = self._writers[name]
            writer.transaction.commit()
            del self._writers[name]
        if changed:
            engine.publish(self.catalog, version)

    def rollback(self) -> None:
        """Undo everything and let go of all modules; may be repeated."""
        writers, self._writers = self._writers, {}
        for writer in writers.values():
            writer.transaction.rollback()
        self.catalog = self.started_with
        self.deferred.clear()
        self.changes.clear()
        self.release()

    def release(self) -> None:
        """Let go of the snapshots."""
        readers, self._readers = self._readers, {}
        for reader in readers.values():
            reader.rollback()
