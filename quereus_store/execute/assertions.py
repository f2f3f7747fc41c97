"""Assertions: conditions over whole tables that hold whenever a transaction commits.

At commit the :class:`AssertionGuard` of the session runs the violation query
(``select 1 where not (<condition>)``) of each assertion that the transaction may have
broken: one that reads a table with a *net* change.  A row that came and went, or that changed and
changed back, is no net change, so such a transaction is not judged for it.  An assertion that
reads no table is judged whenever anything changed.

A maintained table counts as read together with the tables that its body reads.  Compiled violation
queries are kept until the catalog or an option of the session changes.

Chapter: dml-transactions-constraints, section 12; seed: sql-ddl, section 2.6.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute import prepared as prepare
from quereus_store.execute.dml.changes import Change
from quereus_store.execute.prepared import PreparedQuery
from quereus_store.execute.transactions import ReadView, Transaction
from quereus_store.modules.contract import Row
from quereus_store.plan.binder import BindContext, bind_query
from quereus_store.schema.manager import MAIN, assertions_of
from quereus_store.schema.objects import AssertionSchema, Operation, TableSchema, fold
from quereus_store.sql import nodes
from quereus_store.sql.traversal import parameters
from quereus_store.types import to_text
from quereus_store.types.json import render_json

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

_SAMPLES = 5

TableKey = tuple[str, str]
"""Folded schema and name of a table."""


@dataclass(frozen=True, slots=True)
class WatchedAssertion:
    """An assertion, its violation query and the tables that it reads, also through views."""

    assertion: AssertionSchema
    query: PreparedQuery
    tables: tuple[TableSchema, ...]


def assertion_label(assertion: AssertionSchema) -> str:
    """The name as messages give it: with the schema outside ``main``."""
    if fold(assertion.schema) == MAIN:
        return assertion.name
    return f"{assertion.schema}.{assertion.name}"


def violation_query(assertion: AssertionSchema) -> nodes.Query:
    """The query that gives a row where the assertion does not hold."""
    negated = nodes.UnaryOperation(nodes.UnaryOperator.NOT, assertion.expression)
    one = nodes.ResultColumn(nodes.Literal.of(1))
    return nodes.Query(nodes.Select((one,), where=negated))


def compile_assertion(
    session: Session, transaction: ReadView, assertion: AssertionSchema
) -> WatchedAssertion:
    """Plan and compile the violation query; names are looked up in the assertion's schema first."""
    for parameter in parameters(assertion.expression):
        raise sql_error(
            StatusCode.ERROR,
            f"assertion '{assertion_label(assertion)}' may not reference bind parameters.",
            parameter.position,
        )
    context = assertion_context(session, transaction, assertion.schema)
    query = prepare.prepare_query(session.engine, violation_query(assertion), context)
    return WatchedAssertion(assertion, query, _tables_read(session, transaction, context))


def assertion_context(session: Session, transaction: ReadView, schema: str) -> BindContext:
    """A context for stored bodies of a schema: its own tables first, then the session's path."""
    others = [name for name in session.schema_path if fold(name) != fold(schema)]
    return session.engine.bind_context(transaction.catalog, (schema, *others), session.options, {})


def _tables_read(session: Session, transaction: ReadView, context: BindContext) -> tuple[TableSchema, ...]:
    """The tables that a bound query refers to, and those that maintained ones are computed from."""
    found: dict[TableKey, TableSchema] = {}
    pending = list(context.references.tables.values())
    while pending:
        table = pending.pop()
        key = (fold(table.schema), fold(table.name))
        if key in found:
            continue
        found[key] = table
        if table.derivation is not None:
            body = assertion_context(session, transaction, table.schema)
            bind_query(body, table.derivation.query)
            pending += body.references.tables.values()
    return tuple(found.values())


class AssertionGuard:
    """Checks a session's transactions against the assertions of the catalog."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._version: tuple[int, int] | None = None
        self._watched: tuple[WatchedAssertion, ...] = ()

    def check(self, transaction: Transaction) -> None:
        """Judge a transaction that is about to commit; raises CONSTRAINT for an assertion that it breaks."""
        if not transaction.changes or not transaction.catalog.has_assertions:
            return
        changed = ChangedTables(transaction.changes)
        for watched in self._assertions(transaction):
            if not watched.tables or any(map(changed.includes, watched.tables)):
                self._judge(transaction, watched)

    def check_readers(self, transaction: Transaction, table: TableSchema) -> None:
        """Judge the assertions that read a table whose rows a schema change has rewritten."""
        key = (fold(table.schema), fold(table.name))
        for watched in self._assertions(transaction):
            if any((fold(read.schema), fold(read.name)) == key for read in watched.tables):
                self._judge(transaction, watched)

    def _assertions(self, transaction: Transaction) -> tuple[WatchedAssertion, ...]:
        version = (transaction.catalog.version, self._session.options_version)
        if version != self._version:
            self._watched = tuple(
                compile_assertion(self._session, transaction, assertion)
                for assertion in assertions_of(transaction.catalog)
            )
            self._version = version
        return self._watched

    def _judge(self, transaction: Transaction, watched: WatchedAssertion) -> None:
        query = watched.query
        result = query.run(query.runtime(self._session, transaction, ()))
        rows = list(islice((row for batch in result.batches() for row in batch), _SAMPLES))
        result.close()
        if rows:
            raise assertion_violation(watched.assertion, rows)


def assertion_violation(assertion: AssertionSchema, samples: Iterable[Row]) -> Error:
    """The error for an assertion that does not hold."""
    shown = ", ".join(f"({', '.join(map(_shown, row))})" for row in samples)
    return sql_error(
        StatusCode.CONSTRAINT, f"Integrity assertion failed: {assertion_label(assertion)} [{shown}]"
    )


def _shown(value: Any) -> str:
    if value is None:
        return "NULL"
    return to_text(value) or "" if isinstance(value, bytes) else render_json(value)


# --- net changes ------------------------------------------------------------------------------------------


class ChangedTables:
    """The tables that a log of changes leaves different from what they were."""

    def __init__(self, changes: Iterable[Change]) -> None:
        self._logs: dict[tuple[str, int], list[Change]] = {}
        for change in changes:
            table = change.table
            self._logs.setdefault((fold(table.module), table.storage_id), []).append(change)
        self._names = {
            (fold(change.table.schema), fold(change.table.name)): log
            for log in self._logs.values()
            for change in log
        }
        self._verdicts: dict[int, bool] = {}

    def includes(self, table: TableSchema) -> bool:
        """Whether a table has a net change; it is known by its rows' place, and by its name."""
        log = self._logs.get((fold(table.module), table.storage_id))
        if log is None:
            log = self._names.get((fold(table.schema), fold(table.name)))
        if log is None:
            return False
        verdict = self._verdicts.get(id(log))
        if verdict is None:
            verdict = self._verdicts[id(log)] = _has_net_change(log)
        return verdict


def _has_net_change(log: list[Change]) -> bool:
    operations = {change.operation for change in log}
    if operations in ({Operation.INSERT}, {Operation.DELETE}):
        return True
    table = log[0].table
    if any(change.table.primary_key != table.primary_key for change in log):
        return True
    parts = [part.column for part in table.primary_key.parts]
    net: dict[Any, list[Row | None]] = {}

    def note(row: Row, before: Row | None, after: Row | None) -> None:
        key: Any = tuple([row[column] for column in parts])
        try:
            entry = net.get(key)
        except TypeError:
            key = repr(key)
            entry = net.get(key)
        if entry is None:
            net[key] = [before, after]
        else:
            entry[1] = after

    for change in log:
        # All old rows of a statement go before its new ones come, so that keys may change places.
        for row in change.old:
            note(row, row, None)
        for row in change.new:
            note(row, None, row)
    return any(before != after for before, after in net.values())
