"""Transactions: one snapshot or one writer per module, one catalog, and how far to go back.

A :class:`Transaction` lives for a statement (autocommit) or from BEGIN to
COMMIT.  It takes a module's snapshot when the module is first read and becomes
the module's writer when it first writes; the catalog is the one that belongs
to the snapshot.  A statement known to write, alone in its transaction, has no use for a
snapshot: such a transaction begins as the default module's writer, and nobody can commit
before it.  A savepoint is a mark on every module written to, the catalog and the queue of
checks that wait for the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.attached import own_part_differs
from quereus_store.modules.contract import stale_snapshot
from quereus_store.schema.objects import Catalog, TableSchema, fold

if TYPE_CHECKING:
    from quereus_store.execute.attached import PinnedDatabases
    from quereus_store.execute.engine import Engine
    from quereus_store.execute.notification.events import Reshape

DeferredCheck = Callable[["Transaction"], None]
Verification = Callable[["Transaction"], Callable[[], None] | None]
"""Judges a transaction before its commit; gives what is to be done after it."""


class Mark:
    """A place to roll back to: a savepoint of each writer there was, and how far the queues had come.

    Made for every statement of an explicit transaction, hence a plain class.
    """

    __slots__ = ("announced", "catalog", "changes", "deferred", "reshapes", "tokens")

    def __init__(
        self,
        tokens: Sequence[tuple[_Writer, int]],
        catalog: Catalog,
        deferred: int,
        changes: int,
        announced: int,
        reshapes: int,
    ) -> None:
        self.tokens = tokens
        self.catalog = catalog
        self.deferred = deferred
        self.changes = changes
        self.announced = announced
        self.reshapes = reshapes


@dataclass(frozen=True, slots=True)
class NamedSavepoint:
    """A user's savepoint."""

    name: str
    mark: Mark


@dataclass(slots=True, eq=False)
class _Writer:
    """A module's writing transaction and the token of its beginning.

    Without a mark to come back to there is no such token: a failure then ends the whole transaction.
    """

    transaction: Any
    start: int | None


class ReadView:
    """What a statement that only reads needs: a snapshot of each module it reads, and their catalog.

    ``primary`` is the snapshot of the database's default module, pinned together
    with the catalog; other modules' snapshots are taken when first asked for, and so is this one
    where its writer is held.  ``started_with`` is the
    catalog that was found, after so many ``publications``, and ``reshapes`` is what has been done to stored
    rows since by altering tables.
    """

    __slots__ = (
        "__weakref__",
        "_attached",
        "_readers",
        "catalog",
        "engine",
        "primary",
        "publications",
        "reshapes",
        "started_with",
    )

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        # First, so that one that comes in between is taken to have been missed.
        self.publications = engine.publications
        self.catalog, self.primary = engine.pin()
        self._attached: PinnedDatabases | None = None
        self._readers: dict[str, Any] | None = None
        if engine.attachments.databases:
            self._join_attached()
        self.started_with = self.catalog
        self.reshapes: Sequence[Reshape] = ()

    def _join_attached(self, writing: str | None = None, writer: Any = None) -> None:
        """Pin the attached databases too, and work with the joined catalog."""
        attachments = self.engine.attachments
        try:
            self._attached = attachments.pin(writing, writer)
            self._readers = self._attached.readers
            self.catalog = attachments.joined(self.catalog, self._attached.schemas)
        except BaseException:
            self.release()
            raise

    def reader(self, module_name: str) -> Any:
        """The module's transaction to read in."""
        return self.snapshot(module_name)

    def snapshot(self, module_name: str) -> Any:
        """The module's committed state as this view sees it."""
        engine = self.engine
        name = fold(module_name)
        if name == engine.primary_name:
            if self.primary is None:
                self.primary = engine.module(name).begin_read()
            return self.primary
        readers = self._readers
        if readers is None:
            readers = self._readers = {}
        found = readers.get(name)
        if found is None:
            found = readers[name] = engine.module(name).begin_read()
        return found

    @property
    def writes(self) -> bool:
        """Whether it may see rows that are not committed."""
        return False

    def row_count(self, table: TableSchema) -> float:
        """About how many rows a table has, as its module plans with."""
        return self.engine.row_count(table)

    def release(self) -> None:
        """Let go of the snapshots."""
        if self.primary is not None:
            self.primary.rollback()
        if self._readers:
            for reader in self._readers.values():
                reader.rollback()
            self._readers = None
        if self._attached is not None:
            self._attached.release()


class Transaction(ReadView):
    """A transaction over all modules of an engine.

    ``explicit`` distinguishes BEGIN from a statement's own; ``deferred`` holds
    checks to run at commit, after ``verify`` has had its say on the whole;
    ``changes`` is what happened to rows (for maintained tables, assertions and
    listeners); maintained tables know of the first ``maintained`` of them.  ``announced`` is what
    schema statements tell listeners, ``began`` the newest subscription when it began.  ``renewed``
    names the maintained tables that the running statement itself made anew, ``touched`` the tables whose
    changes by earlier statements maintained tables have followed.  Until it is ``observed``
    nobody has learnt anything from its snapshots, so they may still be exchanged for later ones.
    With ``writes_first`` it begins as the writer of that module.
    """

    __slots__ = (
        "_marks",
        "_owns_catalog",
        "_writers",
        "announced",
        "began",
        "changes",
        "committed",
        "deferred",
        "durable",
        "explicit",
        "maintained",
        "observed",
        "renewed",
        "savepoints",
        "timeout",
        "touched",
        "verify",
    )

    def __init__(
        self,
        engine: Engine,
        timeout: float = 5.0,
        durable: bool = True,
        verify: Verification | None = None,
        *,
        writes_first: str | None = None,
    ) -> None:
        self.timeout = timeout
        self.durable = durable
        self._writers: dict[str, _Writer] = {}
        self._owns_catalog = False
        if writes_first is None:
            super().__init__(engine)
        else:
            self.engine = engine
            self._attached = self._readers = None
            self._begin_as_writer(writes_first)
        self.verify = verify
        self.explicit = False
        self.committed = False
        self.observed = False
        self.reshapes: list[Reshape] = []
        self.deferred: list[DeferredCheck] = []
        self.changes: list[Any] = []
        self.announced: list[Any] = []
        self.began = engine.notifier.last_number
        self.maintained = 0
        self.renewed: set[tuple[str, str]] = set()
        self.touched: set[tuple[str, str]] = set()
        self.savepoints: list[NamedSavepoint] = []
        self._marks = 0

    # -- access ----------------------------------------------------------------

    def reader(self, module_name: str) -> Any:
        """The module's transaction to read in: what this transaction has written is seen."""
        writer = self._writers.get(fold(module_name))
        return writer.transaction if writer is not None else self.snapshot(module_name)

    @property
    def writes(self) -> bool:
        """Whether it may see rows that are not committed."""
        return bool(self._writers)

    def row_count(self, table: TableSchema) -> float:
        """About how many rows a table has, with those that this transaction has written."""
        writer = self._writers.get(fold(table.module))
        if writer is None:
            return self.engine.row_count(table)
        return self.engine.table(table).count(writer.transaction)

    def writer(self, module_name: str) -> Any:
        """The module's writing transaction; BUSY when another connection writes, or has written since."""
        name = fold(module_name)
        writer = self._writers.get(name)
        if writer is None:
            module = self.engine.module(name)
            transaction = module.begin_write(self.timeout, self._seen(name), self.durable)
            start = transaction.savepoint() if self._marks else None
            writer = self._writers[name] = _Writer(transaction, start)
        return writer.transaction

    def can_start_over(self) -> bool:
        """Whether nothing was seen, written or marked yet."""
        return not (self.observed or self._writers or self._marks)

    def start_over(self, module_name: str) -> None:
        """Become a module's writer first, then take new snapshots; only where :meth:`can_start_over`."""
        outdated = self.primary, self._readers, self._attached
        self._readers = self._attached = None
        try:
            self._begin_as_writer(module_name)
        except BaseException:
            self.primary, self._readers, self._attached = outdated
            raise
        primary, readers, attached = outdated
        for snapshot in (primary, *(readers or {}).values()):
            snapshot.rollback()
        if attached is not None:
            attached.release()

    def _begin_as_writer(self, module_name: str) -> None:
        """Become a module's writer, then find the catalog that there is now."""
        engine, name = self.engine, fold(module_name)
        writer = engine.module(name).begin_write(self.timeout, None, self.durable)
        try:
            engine.await_publication()
            self.publications = engine.publications
            if name == engine.primary_name:
                self.catalog, self.primary = engine.catalog_for(writer), None
            else:
                self.catalog, self.primary = engine.pin()
            if engine.attachments.databases:
                self._join_attached(name, writer)
        except BaseException:
            writer.rollback()
            raise
        self.started_with = self.catalog
        self._writers[name] = _Writer(writer, None)

    def _seen(self, name: str) -> Any:
        """The snapshot that this transaction has of a module, if it has one."""
        if name == self.engine.primary_name:
            return self.primary
        return self._readers.get(name) if self._readers else None

    def change_catalog(self, catalog: Catalog) -> None:
        """Work on with a changed catalog; what persists of it is written at once."""
        before = self.catalog
        self.catalog = self.engine.versioned(catalog)
        keepers = list(self.engine.keepers(before, self.catalog))
        if not self._owns_catalog and own_part_differs(before, self.catalog):
            self._own_catalog()
        for module in keepers:
            module.save_catalog(self.writer(module.name), before, self.catalog)

    def _own_catalog(self) -> None:
        """See to it that nobody else changes the own database's catalog, nor has since this one began.

        Its writer is who changes the catalog, also what is not kept with the rows.
        """
        engine, name = self.engine, self.engine.primary_name
        wrote = name in self._writers
        self.writer(name)
        engine.await_publication()
        if engine.publications != self.publications:
            if not wrote:
                self._writers.pop(name).transaction.rollback()
            raise stale_snapshot(name)
        self._owns_catalog = True

    # -- savepoints ------------------------------------------------------------

    def mark(self) -> Mark:
        """A place to come back to."""
        self._marks += 1
        tokens = []
        for writer in self._writers.values():
            tokens.append((writer, writer.transaction.savepoint()))
        return Mark(
            tokens,
            self.catalog,
            len(self.deferred),
            len(self.changes),
            len(self.announced),
            len(self.reshapes),
        )

    def return_to(self, mark: Mark) -> None:
        """Undo everything since a mark; the mark stays good."""
        known = {id(writer): token for writer, token in mark.tokens}
        for writer in self._writers.values():
            token = known.get(id(writer), writer.start)
            assert token is not None, "a writer that began after a mark has a token"
            writer.transaction.rollback_to(token)
        self.catalog = mark.catalog
        del self.deferred[mark.deferred :]
        del self.changes[mark.changes :]
        del self.announced[mark.announced :]
        del self.reshapes[mark.reshapes :]
        self.renewed.clear()
        self.maintained = min(self.maintained, len(self.changes))

    def forget(self, mark: Mark) -> None:
        """Give a mark up; what was done since stays."""
        for writer, token in mark.tokens:
            writer.transaction.release(token)
        self._marks -= 1
        if self._marks == 0:
            self._forget_starts()

    def _drop_marks(self, count: int) -> None:
        """So many marks are gone."""
        self._marks -= count
        if self._marks == 0:
            self._forget_starts()

    def _forget_starts(self) -> None:
        """There is no mark any more, so modules need not remember what they overwrite."""
        for writer in self._writers.values():
            if writer.start is not None:
                writer.transaction.release(writer.start)
                writer.start = None

    def open_savepoint(self, name: str) -> None:
        """SAVEPOINT."""
        self.savepoints.append(NamedSavepoint(name, self.mark()))

    def rollback_to_savepoint(self, name: str) -> None:
        """ROLLBACK TO: the savepoint stays, later ones go. Raises ERROR for an unknown name."""
        position = self._find_savepoint(name)
        self.return_to(self.savepoints[position].mark)
        later = len(self.savepoints) - position - 1
        if later:
            self._drop_marks(later)
        del self.savepoints[position + 1 :]

    def release_savepoint(self, name: str) -> None:
        """RELEASE: the savepoint and later ones are merged. Raises ERROR for an unknown name."""
        position = self._find_savepoint(name)
        later = len(self.savepoints) - position - 1
        self.forget(self.savepoints[position].mark)
        if later:
            self._drop_marks(later)
        del self.savepoints[position:]

    def _find_savepoint(self, name: str) -> int:
        for position in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[position].name == name:
                return position
        raise sql_error(StatusCode.ERROR, f"No such savepoint: {name}")

    # -- end -------------------------------------------------------------------

    def commit(self) -> None:
        """Run the waiting checks and commit every module; any failure rolls everything back and is raised."""
        told = False
        try:
            confirm = self.verify(self) if self.verify is not None else None
            self._run_deferred()
            if self._writers or self.catalog is not self.started_with or self.announced or self.changes:
                with self.engine.publishing:
                    told = self._commit_modules()
        except BaseException:
            self.rollback()
            raise
        self.committed = True
        self.release()
        if confirm is not None:
            confirm()
        if told:
            self.engine.notifier.deliver()

    def _run_deferred(self) -> None:
        while self.deferred:
            waiting, self.deferred = self.deferred, []
            for check in waiting:
                check(self)

    def _commit_modules(self) -> bool:
        """Make it all durable and visible; whether there is something to tell listeners of."""
        engine = self.engine
        persistent = engine.persistent_module
        names = list(self._writers)
        if len(names) > 1:
            names = engine.commit_order(names)
        changed = self.catalog is not self.started_with
        notifier = engine.notifier
        counted = None
        if notifier.active:
            counted = notifier.before_commit({name: it.transaction for name, it in self._writers.items()})
        version = None
        if changed and persistent is not None:
            version = engine.persistent_version(self.reader(persistent.name))
        for place, name in enumerate(names):
            try:
                self._writers[name].transaction.commit()
            except Error as error:
                if place == 0:
                    raise
                raise engine.attachments.partly_committed(error, names[:place], names[place:]) from error
            del self._writers[name]
        if changed:
            engine.publish(self.started_with, self.catalog, version)
        if self.announced:
            notifier.count_merges(self.announced)
        if not notifier.active:
            return False
        return notifier.hand_over(self, bool(names), counted)

    def rollback(self) -> None:
        """Undo everything and let go of all modules; may be repeated."""
        writers, self._writers = self._writers, {}
        for writer in writers.values():
            writer.transaction.rollback()
        self.catalog = self.started_with
        self.deferred.clear()
        self.changes.clear()
        self.announced.clear()
        self.reshapes.clear()
        self.maintained = 0
        self.release()
