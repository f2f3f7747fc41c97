"""Connections: PEP 249 over a session, and :func:`connect`.

A connection runs in autocommit: each statement is its own transaction unless
``begin`` or ``with connection.transaction():`` opened one.  With
``autocommit=False`` the first statement opens one and ``commit`` ends it, as
PEP 249 has it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal

from quereus_store import errors
from quereus_store.api.bound import BoundToProcess
from quereus_store.api.cursor import Cursor
from quereus_store.api.database import MEMORY, Database
from quereus_store.api.dumping import dump_statements
from quereus_store.api.hints import add_file_hint, add_hint
from quereus_store.api.opening import open_database
from quereus_store.errors import Error, InterfaceError, StatusCode, outward, sql_error
from quereus_store.execute.assertions import AssertionFailure
from quereus_store.execute.explaining import measured_tree, plan_tree
from quereus_store.execute.ingestion import ExternalChange, IngestOptions, ingest
from quereus_store.execute.maintenance import RefreshedView
from quereus_store.execute.results import Result
from quereus_store.execute.session import Session
from quereus_store.functions.user import aggregate_class_from
from quereus_store.plan.tree import PlanStep

_NO_PARAMETERS: tuple[Any, ...] = ()


def connect(
    database: str | os.PathLike[str] = MEMORY,
    *,
    backend: str | None = None,
    timeout: float = 5.0,
    autocommit: bool = True,
    cached_statements: int = 256,
    **options: Any,
) -> Connection:
    """Open a database and return a connection to it.

    ``database`` is a path (created when missing) or ``":memory:"``.  ``backend`` is
    ``"lmdb"`` (one file, the default) or ``"leveldb"`` (a folder).  ``timeout`` is how
    many seconds to wait for another writer before BUSY.  ``options`` go to the
    storage: ``synchronous`` (``"off"``, ``"normal"``, ``"full"``), ``cache_size`` in
    bytes, ``map_size`` in bytes, ``readonly``, ``create``.

    Raises :class:`~quereus_store.errors.OperationalError` when the path is no
    database, cannot be opened or is of a newer format.
    """
    timeout, cached_statements = _checked(timeout, cached_statements)
    path = os.fsdecode(database)
    try:
        opened = open_database(path, backend, options)
    except Error as error:
        add_file_hint(error, path)
        raise
    try:
        return Connection(opened, timeout=timeout, autocommit=autocommit, cached_statements=cached_statements)
    finally:
        opened.release()


def _checked(timeout: Any, cached_statements: Any) -> tuple[float, int]:
    """The options of a connection; raises MISUSE for values that mean nothing."""
    if not isinstance(timeout, int | float) or not timeout >= 0:
        raise sql_error(StatusCode.MISUSE, f"timeout is a number of seconds, not {timeout!r}")
    if not isinstance(cached_statements, int) or cached_statements < 0:
        raise sql_error(StatusCode.MISUSE, f"cached_statements is a number from 0, not {cached_statements!r}")
    return float(timeout), cached_statements


class Connection(BoundToProcess):
    """A connection; for one thread at a time.

    ``Connection(other.database)`` is a further connection to what is open, also to a database in memory.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(
        self,
        database: Database,
        *,
        timeout: float = 5.0,
        autocommit: bool = True,
        cached_statements: int = 256,
    ) -> None:
        self.database = database
        self.row_factory: Callable[[Cursor, tuple[Any, ...]], Any] | None = None
        self.session = Session(database.engine, timeout=timeout, cached_statements=cached_statements)
        for name, value in database.engine.session_options.items():
            self.session.set_option(name, value)
        self._autocommit = autocommit
        self._process = os.getpid()
        database.retain()
        self.closed = False

    # -- statements ----------------------------------------------------------------

    def execute(self, sql: str, parameters: Any = _NO_PARAMETERS) -> Cursor:
        """Run one statement and return a cursor over its rows."""
        if self.closed or not self._autocommit:
            self._ready()
        cursor = Cursor(self)
        try:
            cursor._result = self.session.execute(sql, parameters)
        except Error as error:
            raise self._told(error, sql) from error.__cause__
        return cursor

    def executemany(self, sql: str, parameter_sets: Any) -> Cursor:
        """Run one INSERT, UPDATE or DELETE for many sets of parameters, as one atomic step."""
        cursor = Cursor(self)
        cursor._result = self.run_many(sql, parameter_sets)
        return cursor

    def executescript(self, sql: str) -> Cursor:
        """Run all statements of a script; it stops at the first that fails."""
        self._ready()
        try:
            self.session.run_script(sql)
        except Error as error:
            raise self._told(error, sql) from error.__cause__
        return Cursor(self)

    def run(self, sql: str, parameters: Any = _NO_PARAMETERS) -> Result:
        """Run one statement and return the engine's own result."""
        if self.closed or not self._autocommit:
            self._ready()
        try:
            return self.session.execute(sql, parameters)
        except Error as error:
            raise self._told(error, sql) from error.__cause__

    def run_many(self, sql: str, parameter_sets: Any) -> Result:
        """The engine's result of :meth:`executemany`."""
        self._ready()
        try:
            sets = list(parameter_sets)
        except TypeError as failure:
            if isinstance(parameter_sets, Iterable):
                raise
            raise sql_error(
                StatusCode.MISUSE,
                f"executemany takes many sets of parameters, not {type(parameter_sets).__name__}",
            ) from failure
        try:
            return self.session.execute_batch(sql, sets)
        except Error as error:
            raise self._told(error, sql) from error.__cause__

    def _told(self, error: errors.Error, sql: str) -> errors.Error:
        """The error of a statement as a program sees it, with a hint where one is known."""
        add_hint(error, sql, lambda: self.session.catalog, self.database.functions)
        return outward(error)

    def ingest_external_row_changes(
        self,
        changes: Iterable[ExternalChange],
        *,
        maintain: bool = True,
        capture: bool = True,
        foreign_key_actions: bool = False,
        assertion_failures: Literal["throw", "report"] = "throw",
    ) -> list[AssertionFailure]:
        """Let the database follow rows that a module has stored past it, given in the order of its work.

        All of it is one statement, in the open transaction or in one of its own.  Nothing is judged again and
        nothing written to the tables themselves.  ``maintain``: materialized views follow.  ``capture``:
        watches, data events and assertions learn of the rows.  ``foreign_key_actions``: rows that refer to
        these follow by CASCADE, SET NULL and SET DEFAULT.  With ``"report"`` a transaction of its own commits
        whatever assertions say, and those that it breaks are returned.

        Raises MISUSE for what is no report of a row, NOTFOUND for an unknown table, CONSTRAINT for what a
        view's own constraints, or assertions, refuse; then nothing stays of what followed.
        Chapter: views-and-maintained-tables, section 16.
        """
        self._check_open()
        if not isinstance(changes, Iterable):
            raise sql_error(
                StatusCode.MISUSE, f"row changes are an iterable of them, not {type(changes).__name__}"
            )
        listed = list(changes)
        if listed:
            self._ready()
        if assertion_failures not in ("throw", "report"):
            raise sql_error(
                StatusCode.MISUSE, f"assertion_failures is 'throw' or 'report', not {assertion_failures!r}"
            )
        self.session.watch.rearm()
        options = IngestOptions(maintain, capture, foreign_key_actions, assertion_failures == "report")
        try:
            return ingest(self.session, listed, options)
        except Error as error:
            raise outward(error) from error.__cause__

    def refresh_all(self) -> list[RefreshedView]:
        """REFRESH for every materialized view, sources before the views over them; those that were.

        Each is refreshed by itself, so one that cannot be keeps none of the others from it.  Its error is
        raised when all have had their turn; ``details`` has the names of those that were ``refreshed``, and
        of those that ``failed`` with their messages.  Chapter: views-and-maintained-tables, section 10.
        """
        self._ready()
        self.session.watch.rearm()
        maintenance = self.database.engine.maintenance
        try:
            return [] if maintenance is None else maintenance.refresh_all(self.session)
        except Error as error:
            raise outward(error) from error.__cause__

    def backup(self, target: str | os.PathLike[str], *, backend: str | None = None) -> None:
        """Write a compact copy of the database to a file (LMDB) or folder (LevelDB) that is not there yet.

        The copy is of the last commit; statements of other connections go on meanwhile.  ``backend`` is that
        of the copy, by default the database's own.  Attached databases and rows in memory are no part of it.

        Raises CANTOPEN where something is there or nothing can be made, MISUSE for an unknown backend, and
        UNSUPPORTED for a database in memory, which has no file: ``quereus dump`` writes SQL.
        """
        self._check_open()
        self.database.backup(target, backend)

    def iterdump(self) -> Iterator[str]:
        """The whole database as SQL, a statement at a time: schema, rows, then indexes and views.

        ``"\\n".join(con.iterdump())`` is a script for ``executescript`` of an empty database.  It is of
        one state: that of the open transaction, else one of its own, which lasts until the last statement
        has been taken.
        """
        self._check_open()
        return dump_statements(self)

    def explain(self, sql: str, parameters: Any = _NO_PARAMETERS, *, analyze: bool = False) -> PlanStep:
        """The plan of a query, INSERT, UPDATE or DELETE as a tree of its operators.

        Nothing is run, unless ``analyze`` asks for measured rows and times: then the statement does
        what it always does.  Raises UNSUPPORTED for other statements.
        """
        self._ready()
        self.session.watch.rearm()
        statement = self.session.single_statement(sql)
        if not analyze:
            return plan_tree(self.session, statement, parameters)
        return measured_tree(self.session, statement, parameters)

    def cursor(self) -> Cursor:
        """A new cursor."""
        self._check_open()
        return Cursor(self)

    def _ready(self) -> None:
        """The connection must be open; without autocommit a transaction must be, too."""
        self._check_open()
        if not self._autocommit and self.session.transaction is None:
            self.session.begin()

    def _check_open(self) -> None:
        if self.closed:
            raise InterfaceError("Database is closed")

    # -- transactions ----------------------------------------------------------------

    @property
    def autocommit(self) -> bool:
        """Whether each statement is its own transaction."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self._check_open()
        if value and not self._autocommit:
            self.session.commit()
        self._autocommit = value

    @property
    def in_transaction(self) -> bool:
        """Whether an explicit transaction is open."""
        return self.session.transaction is not None

    @property
    def total_changes(self) -> int:
        """How many rows the connection has inserted, updated and deleted."""
        return self.session.total_changes

    def begin(self) -> None:
        """Open a transaction; raises ERROR when one is open."""
        self._check_open()
        self.session.begin()

    def commit(self) -> None:
        """Make the open transaction durable; nothing happens without one."""
        self._check_open()
        self.session.commit()

    def rollback(self) -> None:
        """Undo the open transaction; nothing happens without one."""
        self._check_open()
        self.session.rollback()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A block committed at its end and rolled back on an exception; nested ones are savepoints."""
        self._check_open()
        transaction = self.session.transaction
        if transaction is None:
            self.session.begin()
            try:
                yield self
            except BaseException:
                self.session.rollback()
                raise
            self.session.commit()
            return
        mark = transaction.mark()
        try:
            yield self
        except BaseException as failure:
            if self.session.transaction is transaction:
                self.session.undo(transaction, mark, failure)
            raise
        if self.session.transaction is transaction:
            transaction.forget(mark)

    # -- stopping ----------------------------------------------------------------------

    def interrupt(self) -> None:
        """Make the statement that is running, or whose rows are still being read, fail with INTERRUPT.

        May be called from any thread.  A change is rolled back as after any error.  It fails when it has
        read its next thousand rows or so; nothing happens where nothing runs.
        """
        self._check_open()
        self.session.watch.interrupt()

    def set_progress_handler(self, progress_handler: Callable[[], Any] | None, n: int) -> None:
        """Call a function while statements read, about every ``n`` rows; None for no function.

        A true result, or an exception, makes the statement fail with INTERRUPT.  Rows are read in batches, so
        it is called at most once in about a thousand.  It may run other queries, which it does not watch.
        """
        self._check_open()
        self.session.watch.set_handler(progress_handler, n)

    # -- what programs add -------------------------------------------------------------

    def create_function(self, name: str, narg: int, func: Callable[..., Any], **options: Any) -> None:
        """Add a scalar function (for all connections of this database); see ``Database.create_function``."""
        self._check_open()
        self.database.create_function(name, narg, func, **options)

    def create_aggregate(self, name: str, narg: int, aggregate_class: type) -> None:
        """Add an aggregate from a class with ``step`` and ``finalize`` methods, as ``sqlite3`` has it.

        With ``inverse`` and ``value``, too, windows take rows out again instead of starting anew.  The
        annotation of ``finalize`` declares the type.
        """
        self._check_open()
        self.database.register_function(aggregate_class_from(aggregate_class, name, arguments=narg))

    def create_collation(self, name: str, callable_: Callable[[str, str], int], **options: Any) -> None:
        """Add a collation; see ``Database.create_collation``."""
        self._check_open()
        self.database.create_collation(name, callable_, **options)

    # -- life --------------------------------------------------------------------------

    def close(self) -> None:
        """Roll back what is open and let the database go; may be repeated."""
        if self.closed:
            return
        self.closed = True
        try:
            self.session.close()
        finally:
            self.database.release()

    def __enter__(self) -> Connection:
        self._check_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Commit what is open, or roll it back after an exception, and close."""
        if self.closed:
            return
        try:
            if kind is None:
                self.session.commit()
        finally:
            self.close()

    def __del__(self) -> None:
        if not getattr(self, "closed", True) and self._process == os.getpid():
            self.close()
