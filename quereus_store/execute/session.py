"""A session: one connection's side of the engine.

It keeps the open transaction, the options that pragmas set and the prepared
statements, and runs statements: queries as streams over a snapshot, everything
that writes as one atomic step.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakSet

from quereus_store.errors import Error, OperationalError, StatusCode, sql_error, unsupported
from quereus_store.execute.assertions import AssertionGuard
from quereus_store.execute.batches import run_many
from quereus_store.execute.codegen.metering import Meters
from quereus_store.execute.diagnostics import Diagnostics
from quereus_store.execute.dml.outcome import StatementFailed
from quereus_store.execute.engine import Engine
from quereus_store.execute.options import default_options
from quereus_store.execute.parameters import bind
from quereus_store.execute.prepared import PreparedMutation, PreparedQuery
from quereus_store.execute.preparing import REFUSALS, bind_context, prepare, too_deep
from quereus_store.execute.results import Result
from quereus_store.execute.runtime import Runtime
from quereus_store.execute.statements import HANDLERS
from quereus_store.execute.transactions import ReadView, Transaction
from quereus_store.execute.watch import Watch
from quereus_store.modules.contract import STALE_SNAPSHOT, Row
from quereus_store.plan.binder import BindContext
from quereus_store.schema.objects import Catalog, fold
from quereus_store.sql import iter_statements, nodes, render

T = TypeVar("T")
_NO_PARAMETERS: tuple[Any, ...] = ()
_PREPARED = nodes.Query | nodes.DataModification


class Session:
    """Runs statements for one connection; not for use by two threads at once."""

    def __init__(self, engine: Engine, *, timeout: float = 5.0, cached_statements: int = 256) -> None:
        self.engine = engine
        self.timeout = timeout
        self.durable = True
        self.options: dict[str, Any] = default_options(engine)
        self.options_version = 0
        self.transaction: Transaction | None = None
        self.assertions = AssertionGuard(self)
        self.watch = Watch()
        self.total_changes = 0
        self.last_changes = 0
        self._cached = cached_statements
        # The statement used last stands last.
        self._statements: OrderedDict[Any, PreparedQuery | PreparedMutation] = OrderedDict()
        self._open_results: WeakSet[Result] = WeakSet()
        # Asked by every statement, and a WeakSet is slow to tell.
        self._may_have_open_results = False

    # -- statements --------------------------------------------------------------

    def execute(self, sql: str, parameters: Any = _NO_PARAMETERS) -> Result:
        """Run one statement; raises MISUSE when the text holds several."""
        if self.watch.interrupted:
            self.watch.rearm()
        signature, parameters = bind(parameters)
        key = (sql, signature)
        statement = self._statements.get(key)
        if statement is None:
            return self._run_parsed(key, self.single_statement(sql), parameters)
        self._statements.move_to_end(key)
        if type(statement) is PreparedQuery and not statement.mutations:
            return self._run_query(key, statement, parameters)
        return self._run_change(key, statement, parameters)

    def execute_batch(self, sql: str, rows: Sequence[Any]) -> Result:
        """Run a data-modifying statement for many parameter tuples; the rows changed, and RETURNING's of all.

        All of it is one statement: it either happens for every tuple or not at all.
        """
        if not rows:
            return Result(None, (), 0)
        self.watch.rearm()
        try:
            result = self.write(lambda transaction: run_many(self, sql, transaction, rows))
        except REFUSALS as error:
            error.of_statement(self.single_statement(sql).position)
            raise
        self._count(result.row_count)
        return result

    def run_script(self, sql: str) -> None:
        """Run every statement of a script; stops at the first that fails."""
        self.watch.rearm()
        for statement in iter_statements(sql):
            self.run_statement(statement).all_rows()

    def run_statement(self, statement: nodes.Statement) -> Result:
        """Run a parsed statement, without keeping its plan."""
        return self._run_parsed(None, statement, _NO_PARAMETERS)

    def single_statement(self, sql: str) -> nodes.Statement:
        """The one statement of a text; raises MISUSE for none or several."""
        if not isinstance(sql, str):
            raise sql_error(StatusCode.MISUSE, f"a statement is a str, not {type(sql).__name__}")
        statements = iter_statements(sql)
        first = next(statements, None)
        if first is None:
            raise sql_error(StatusCode.MISUSE, "there is no statement in the text")
        if next(statements, None) is not None:
            raise sql_error(
                StatusCode.MISUSE, "the text holds several statements: use executescript for these"
            )
        return first

    def _run_parsed(self, key: Any, statement: nodes.Statement, parameters: Any) -> Result:
        handler = HANDLERS.get(type(statement))
        if handler is None and self.engine.maintenance is not None:
            handler = self.engine.maintenance.handlers.get(type(statement))
        if handler is not None:
            transaction = self.transaction
            try:
                result = handler(self, statement, parameters)
            except RecursionError:
                raise too_deep(statement) from None
            except REFUSALS as error:
                error.of_statement(statement.position)
                raise
            if transaction is not None:
                transaction.observed = True
            return result
        if isinstance(statement, _PREPARED):
            transaction = self.transaction or self._begin()
            try:
                made = prepare(self, statement, transaction, parameters)
            finally:
                self._end_if_own(transaction)
            self.keep_statement(key, made)
            return self._run_prepared(key, made, parameters)
        raise unsupported(_statement_name(statement), statement.position)

    def prepare(self, statement: nodes.Statement, parameters: Any = _NO_PARAMETERS) -> Any:
        """A query or row change as a prepared statement; raises UNSUPPORTED for other statements."""
        if not isinstance(statement, _PREPARED):
            raise unsupported(f"EXPLAIN {_statement_name(statement)}", statement.position)
        transaction = self.transaction or self._begin()
        try:
            return prepare(self, statement, transaction, parameters, check=False)
        finally:
            self._end_if_own(transaction)

    def run_measured(
        self,
        statement: nodes.Statement,
        parameters: Any = _NO_PARAMETERS,
        keeps_rows: bool = False,
    ) -> tuple[PreparedQuery | PreparedMutation, Meters]:
        """Run a query or row change to its end with counters; its plan, and what was measured."""
        if not isinstance(statement, _PREPARED):
            raise unsupported(f"EXPLAIN ANALYZE {_statement_name(statement)}", statement.position)
        _, parameters = bind(parameters)
        transaction = self.transaction or self._begin()
        try:
            meters = Meters(keeps_rows)
            made: Any = prepare(self, statement, transaction, parameters, meters=meters)
            if not made.writes:
                if self.transaction is not None:
                    self.transaction.observed = True
                with meters.whole():
                    result: Result = made.run(made.runtime(self, transaction, parameters))
                    meters.rows = sum(map(len, result.batches()))
                return made, meters
        finally:
            self._end_if_own(transaction)

        def change(transaction: Transaction) -> tuple[Any, Meters, Result]:
            # It may have to run again, on a later catalog, so what is measured starts from nothing.
            meters = Meters(keeps_rows)
            made: Any = prepare(self, statement, transaction, parameters, meters=meters)
            with meters.whole():
                return made, meters, made.run(made.runtime(self, transaction, parameters))

        made, meters, result = self.write(change)
        self._count(result.row_count)
        meters.rows = result.row_count if result.row_count >= 0 else sum(map(len, result.batches()))
        return made, meters

    def query_within(
        self, transaction: ReadView, query: nodes.Query, parameters: Any = _NO_PARAMETERS
    ) -> Iterator[list[Row]]:
        """The rows of a query as a transaction sees them, a batch at a time."""
        # Part of a statement: maintained tables may not have followed yet what it did.
        made: Any = prepare(self, query, transaction, parameters, from_views=False)
        result: Result = made.run(made.runtime(self, transaction, parameters))
        return result.batches()

    def rows_within(self, transaction: ReadView, sql: str) -> list[Row]:
        """All rows of a query given as text, as a transaction sees them."""
        statement = self.single_statement(sql)
        assert isinstance(statement, nodes.Query)
        return [row for batch in self.query_within(transaction, statement) for row in batch]

    def bind_context(self, transaction: ReadView, parameters: Mapping[Any, Any]) -> BindContext:
        """What the binder is told for a statement of this session."""
        return bind_context(self, transaction, parameters)

    def kept_statement(self, key: Any, transaction: ReadView) -> Any:
        """What is kept under a key and still holds for the transaction's catalog and the options."""
        kept: Any = self._statements.get(key)
        return kept if kept is not None and self._is_current(kept, transaction) else None

    def prepare_change(
        self,
        statement: nodes.DataModification,
        transaction: ReadView,
        parameters: Any,
        nullable: frozenset[int | str] = frozenset(),
    ) -> PreparedMutation:
        """Prepare a change of rows; parameters of the slots in ``nullable`` may be NULL at times."""
        made = prepare(self, statement, transaction, parameters, nullable=nullable)
        assert isinstance(made, PreparedMutation)
        return made

    def keep_statement(self, key: Any, statement: Any) -> None:
        """Remember a prepared statement for its next execution."""
        if key is None or self._cached == 0:
            return
        if len(self._statements) >= self._cached:
            self._statements.popitem(last=False)
        self._statements[key] = statement

    def _is_current(self, statement: PreparedQuery | PreparedMutation, transaction: ReadView) -> bool:
        """Whether a prepared statement still holds: catalog and options are the same, no table has grown."""
        scanned = statement.scanned
        return (
            statement.catalog_version == transaction.catalog.version
            and statement.options_version == self.options_version
            and (scanned is None or not scanned.outgrown(transaction.row_count))
        )

    def _current(self, key: Any, statement: Any, transaction: ReadView, parameters: Any) -> Any:
        """The prepared statement, made anew if it does not hold any more."""
        if self._is_current(statement, transaction):
            return statement
        made = prepare(self, statement.statement, transaction, parameters)
        if key is not None:
            self._statements[key] = made
        return made

    # -- reading -----------------------------------------------------------------

    def _run_query(self, key: Any, statement: PreparedQuery, parameters: Any) -> Result:
        transaction = self.transaction
        if transaction is None:
            view = ReadView(self.engine)
        else:
            view = transaction
            transaction.observed = True
        try:
            if (
                statement.scanned is not None
                or statement.catalog_version != view.catalog.version
                or statement.options_version != self.options_version
            ):
                statement = self._current(key, statement, view, parameters)
            if statement.only_primary and transaction is None:
                runtime = Runtime(self, view, parameters, (view.primary,))
            else:
                runtime = statement.runtime(self, view, parameters)
            compiled = statement.compiled
            batches = compiled.function(runtime)
        except BaseException as error:
            if transaction is None:
                view.release()
            if isinstance(error, Error) and statement.statement is not None:
                error.of_statement(statement.statement.position)
            raise
        columns, documents, parsed = compiled.columns, statement.documents, statement.statement
        if type(batches) is tuple:
            # Everything is there already: nothing will be read from the snapshot any more.
            if transaction is None:
                view.release()
            return Result(columns, batches, -1, None, documents, parsed)
        if transaction is None:
            return Result(columns, batches, -1, view.release, documents, parsed)
        result = Result(columns, batches, -1, None, documents, parsed)
        self._open_results.add(result)
        self._may_have_open_results = True
        return result

    def _run_prepared(self, key: Any, statement: Any, parameters: Any) -> Result:
        if not statement.writes:
            return self._run_query(key, statement, parameters)
        return self._run_change(key, statement, parameters)

    def _run_change(self, key: Any, statement: Any, parameters: Any) -> Result:
        def change(transaction: Transaction) -> Result:
            current = self._current(key, statement, transaction, parameters)
            result: Result = current.run(current.runtime(self, transaction, parameters))
            return result

        try:
            result = self.write(change, statement.writes_first)
        except REFUSALS as error:
            error.of_statement(statement.statement.position)
            raise
        self._count(result.row_count)
        return result

    # -- writing -----------------------------------------------------------------

    def write(self, change: Callable[[Transaction], T], writes_first: str | None = None) -> T:
        """Run a change atomically: in its own transaction, or within the open one up to a savepoint.

        Its own transaction begins as the writer of the module that ``writes_first`` names.
        The first change of a transaction that has shown nothing yet starts over when somebody else commits
        before its turn to write comes: so a statement that waits for its turn works on what it finds then.
        """
        transaction = self.transaction
        if transaction is None:
            return self._write_alone(change, self._begin(writes_first))
        if self._may_have_open_results:
            self.drain_results()
        try:
            return self._write_within(change, transaction)
        except OperationalError as error:
            if STALE_SNAPSHOT not in error.details or not transaction.can_start_over():
                raise
            transaction.start_over(error.details[STALE_SNAPSHOT])
        return self._write_within(change, transaction)

    def _write_within(self, change: Callable[[Transaction], T], transaction: Transaction) -> T:
        mark, before = transaction.mark(), transaction.catalog
        try:
            result = change(transaction)
            self._maintain(transaction, before)
        except StatementFailed as failure:
            self._settle(transaction, mark, failure)
            raise failure.error from failure.error.__cause__
        except BaseException as failure:
            self.undo(transaction, mark, failure)
            raise
        transaction.forget(mark)
        transaction.observed = True
        return result

    def undo(self, transaction: Transaction, mark: Any, failure: BaseException) -> None:
        """Return to a mark because of a failure, which the caller goes on to raise."""
        self.drain_results()
        try:
            transaction.return_to(mark)
            transaction.forget(mark)
        except Error:
            # The storage has given up the whole transaction; any further use of it will be told so.
            if not isinstance(failure, OperationalError):
                raise

    def _write_alone(
        self, change: Callable[[Transaction], T], transaction: Transaction, started_over: bool = False
    ) -> T:
        before = transaction.catalog
        try:
            result = change(transaction)
            self._maintain(transaction, before)
        except StatementFailed as failure:
            if failure.keeps_changes:
                self._keep_changes(transaction)
                try:
                    transaction.commit()
                except Error as refused:
                    # Nothing stays then; the user is told what came first.
                    raise failure.error from refused
            else:
                transaction.rollback()
            raise failure.error from failure.error.__cause__
        except BaseException as failure:
            transaction.rollback()
            if started_over or not (
                isinstance(failure, OperationalError) and STALE_SNAPSHOT in failure.details
            ):
                raise
            transaction = self._begin(failure.details[STALE_SNAPSHOT])
            return self._write_alone(change, transaction, started_over=True)
        transaction.commit()
        return result

    def _maintain(self, transaction: Transaction, before: Catalog) -> None:
        """The end of a statement that succeeds: maintained tables follow what it changed."""
        maintenance = self.engine.maintenance
        if maintenance is not None and (
            len(transaction.changes) > transaction.maintained or transaction.catalog is not before
        ):
            maintenance.after_statement(self, transaction, before)
        if transaction.renewed:
            transaction.renewed.clear()

    def _keep_changes(self, transaction: Transaction) -> None:
        """The end of a statement that fails and keeps what it did (OR FAIL)."""
        try:
            self._maintain(transaction, transaction.catalog)
        except BaseException:
            transaction.rollback()
            raise

    def _settle(self, transaction: Transaction, mark: Any, failure: StatementFailed) -> None:
        """What is left of an open transaction after OR FAIL and OR ROLLBACK."""
        if failure.ends_transaction:
            self.end_transaction()
            transaction.rollback()
            return
        if not failure.keeps_changes:
            transaction.return_to(mark)
        else:
            try:
                self._maintain(transaction, transaction.catalog)
            except BaseException:
                transaction.return_to(mark)
                transaction.forget(mark)
                raise
        transaction.forget(mark)

    def _count(self, changed: int) -> None:
        """Keep the row counts that ``changes()`` and ``total_changes`` give."""
        if changed >= 0:
            self.last_changes = changed
            self.total_changes += changed

    # -- transactions --------------------------------------------------------------

    def _begin(self, writes_first: str | None = None) -> Transaction:
        return Transaction(
            self.engine, self.timeout, self.durable, self.assertions.check, writes_first=writes_first
        )

    def _end_if_own(self, transaction: Transaction) -> None:
        if transaction is not self.transaction:
            transaction.release()

    def begin(self) -> None:
        """BEGIN: open an explicit transaction; raises ERROR inside one."""
        if self.transaction is not None:
            raise sql_error(StatusCode.ERROR, "Cannot begin transaction: already in a transaction")
        transaction = self._begin()
        transaction.explicit = True
        self.transaction = transaction

    def commit(self) -> None:
        """COMMIT; nothing happens outside a transaction. A failure has rolled everything back."""
        transaction = self.transaction
        if transaction is not None:
            self.drain_results()
            self.end_transaction()
            transaction.commit()

    def rollback(self) -> None:
        """ROLLBACK; nothing happens outside a transaction."""
        transaction = self.transaction
        if transaction is not None:
            self.drain_results()
            self.end_transaction()
            transaction.rollback()

    def end_transaction(self) -> None:
        """Go back to autocommit."""
        self.transaction = None

    def drain_results(self) -> None:
        """Read open results to their end, before what they read changes."""
        if self._may_have_open_results:
            for result in list(self._open_results):
                result.drain()
            self._open_results.clear()
            self._may_have_open_results = False

    def close(self) -> None:
        """Roll an open transaction back and forget everything."""
        self.rollback()
        self._statements.clear()

    @property
    def diagnostics(self) -> Diagnostics:
        """What ``query_plan()`` and its kin show."""
        return Diagnostics(self)

    # -- options -------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """The catalog that a statement would find now."""
        if self.transaction is not None:
            return self.transaction.catalog
        return self.engine.current_catalog()

    @property
    def schema_path(self) -> Sequence[str]:
        """The schemas that unqualified names are searched in, attached databases last."""
        path: Sequence[str] = self.options["schema_path"]
        attached = self.engine.attachments.databases
        return (*path, *(key for key in attached if key not in map(fold, path))) if attached else path

    def set_option(self, name: str, value: Any) -> None:
        """Change an option; plans that were made before are made anew."""
        self.options[name] = value
        self.options_version += 1


def _statement_name(statement: nodes.Statement) -> str:
    """A statement's first words, as an error names it."""
    words = render(statement).split()
    return " ".join(words[:3]).upper() if words else type(statement).__name__
