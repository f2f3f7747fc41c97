"""Assertions: conditions over whole tables that hold whenever a transaction commits.

At commit the :class:`AssertionGuard` of the session judges each assertion that the transaction may
have broken: one that reads a table with a *net* change.  A row that came and went, or that
changed and changed back, is no net change, so such a transaction is not judged for it.  An
assertion that reads no table is judged whenever anything changed.

Judging runs the violation query (``select 1 where not (<condition>)``), conjunct by conjunct.  Once an
assertion has been found to hold by a transaction that then committed, it holds before every
later one, and a conjunct that allows it is judged by the changed keys alone
(:mod:`quereus_store.execute.assertion_deltas`).

Compiled queries are kept until the catalog or an option of the session changes.

Chapter: dml-transactions-constraints, section 12; seed: sql-ddl, section 2.6.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute import prepared as prepare
from quereus_store.execute.assertion_deltas import (
    TableKey,
    conjuncts_of,
    keyed_queries,
    scans_of,
    table_key,
)
from quereus_store.execute.dml.changes import Change
from quereus_store.execute.prepared import PreparedQuery
from quereus_store.execute.transactions import ReadView, Transaction
from quereus_store.modules.contract import Row
from quereus_store.plan.binder import BindContext, bind_query
from quereus_store.schema.manager import MAIN, assertions_of, find_relation, home_path
from quereus_store.schema.objects import AssertionSchema, TableSchema, fold
from quereus_store.sql import nodes
from quereus_store.sql.traversal import parameters
from quereus_store.types import LogicalType, to_text
from quereus_store.types.json import render_json

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

PartKey = tuple[str, str, int]
"""Folded schema and name of an assertion, and the place of a conjunct in it."""

_SAMPLES = 5
_FEW_KEYS = 8
_MOST_KEYS = 512
"""With more changed keys than this, all of an assertion is judged at once."""


@dataclass(frozen=True, slots=True)
class WatchedConjunct:
    """A part of an assertion: its violation query, the tables that it reads, and queries by changed key."""

    query: PreparedQuery
    tables: tuple[TableSchema, ...]
    keyed: Mapping[TableKey, tuple[PreparedQuery, ...]]


@dataclass(frozen=True, slots=True)
class WatchedAssertion:
    """An assertion ready to be judged."""

    assertion: AssertionSchema
    parts: tuple[WatchedConjunct, ...]

    def reads(self, key: TableKey) -> bool:
        """Whether it reads a table, also through views."""
        return any(table_key(table) == key for part in self.parts for table in part.tables)


def assertion_label(assertion: AssertionSchema) -> str:
    """The name as messages give it: with the schema outside ``main``."""
    if fold(assertion.schema) == MAIN:
        return assertion.name
    return f"{assertion.schema}.{assertion.name}"


def violation_query(expression: nodes.Expression) -> nodes.Query:
    """The query that gives a row where a condition does not hold."""
    negated = nodes.UnaryOperation(nodes.UnaryOperator.NOT, expression)
    one = nodes.ResultColumn(nodes.Literal.of(1))
    return nodes.Query(nodes.Select((one,), where=negated))


def compile_assertion(
    session: Session, transaction: ReadView, assertion: AssertionSchema
) -> WatchedAssertion:
    """Plan and compile all queries; names are looked up in the assertion's schema first."""
    for parameter in parameters(assertion.expression):
        raise sql_error(
            StatusCode.ERROR,
            f"assertion '{assertion_label(assertion)}' may not reference bind parameters.",
            parameter.position,
        )
    conjuncts = conjuncts_of(assertion.expression)
    parts = tuple(_conjunct(session, transaction, assertion.schema, conjunct) for conjunct in conjuncts)
    return WatchedAssertion(assertion, parts)


def _conjunct(
    session: Session, transaction: ReadView, schema: str, conjunct: nodes.Expression
) -> WatchedConjunct:
    engine = session.engine
    context = assertion_context(session, transaction, schema)
    query = prepare.prepare_query(engine, violation_query(conjunct), context)
    scans = tuple(
        scans_of(bind_query(assertion_context(session, transaction, schema), violation_query(conjunct)))
    )

    def resolve(reference: nodes.TableReference) -> TableSchema | None:
        found = find_relation(transaction.catalog, context.schema_path, reference.schema, reference.name)
        return found if isinstance(found, TableSchema) else None

    keyed = {
        key: tuple(_keyed(session, transaction, schema, key, tree) for tree in trees)
        for key, trees in keyed_queries(conjunct, scans, resolve, engine.registry).items()
    }
    return WatchedConjunct(query, tuple(context.references.tables.values()), keyed)


def _keyed(
    session: Session, transaction: ReadView, schema: str, key: TableKey, tree: nodes.Query
) -> PreparedQuery:
    table = transaction.catalog.table(*key)
    assert table is not None
    slots: dict[int | str, LogicalType] = {
        number: table.columns[part.column].type for number, part in enumerate(table.primary_key.parts)
    }
    context = replace(assertion_context(session, transaction, schema), parameters=slots)
    return prepare.prepare_query(session.engine, tree, context)


def assertion_context(session: Session, transaction: ReadView, schema: str) -> BindContext:
    """A context for stored bodies of a schema: its own tables first, then the session's path."""
    path = home_path(transaction.catalog, schema, session.schema_path)
    return session.engine.bind_context(
        transaction.catalog, path, session.options, {}, transaction.started_with
    )


@dataclass(frozen=True, slots=True)
class AssertionFailure:
    """An assertion that a commit has broken, with up to five of the rows or keys that break it."""

    assertion: str
    samples: tuple[Row, ...]


class AssertionGuard:
    """Checks a session's transactions against the assertions of the catalog."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._version: tuple[int, int] | None = None
        self._watched: tuple[WatchedAssertion, ...] = ()

    def check(self, transaction: Transaction) -> Callable[[], None] | None:
        """Judge a transaction that is about to commit; raises CONSTRAINT for an assertion that it breaks.

        Gives what is to be done once the transaction has been committed.
        """
        judged: dict[PartKey, AssertionSchema] = {}
        for key, assertion, samples in self._verdicts(transaction, 1):
            if samples:
                raise assertion_violation(assertion, samples)
            judged[key] = assertion
        return partial(self._known_to_hold.update, judged) if judged else None

    def report(self, failures: list[AssertionFailure], transaction: Transaction) -> Callable[[], None] | None:
        """Judge a transaction that commits whatever is found; ``failures`` takes what it breaks."""
        held: dict[PartKey, AssertionSchema] = {}
        broken: dict[PartKey, list[Row]] = {}
        labels: dict[str, list[Row]] = {}
        for key, assertion, samples in self._verdicts(transaction, _SAMPLES):
            if samples:
                broken[key] = samples
                labels.setdefault(assertion_label(assertion), []).extend(samples)
            else:
                held[key] = assertion
        failures += [AssertionFailure(name, tuple(rows[:_SAMPLES])) for name, rows in labels.items()]

        def remember() -> None:
            self._known_to_hold.update(held)
            for key in broken:
                self._known_to_hold.pop(key, None)

        return remember

    def forget_what_holds(self) -> None:
        """Rows have changed of which assertions are not told: each is judged as a whole the next time."""
        self._known_to_hold.clear()

    def _verdicts(
        self, transaction: Transaction, most: int
    ) -> Iterator[tuple[PartKey, AssertionSchema, list[Row]]]:
        """Each conjunct that the transaction may have broken, with rows or changed keys that break it.

        Of the keys there are at most so many.
        """
        if not transaction.changes or not transaction.catalog.has_assertions:
            return
        changed = ChangedTables(transaction.changes)
        for watched in self._assertions(transaction):
            for number, part in enumerate(watched.parts):
                if not part.tables or any(map(changed.includes, part.tables)):
                    key = (*_name_of(watched.assertion), number)
                    held = self._known_to_hold.get(key) is watched.assertion
                    yield key, watched.assertion, self._judge_part(transaction, part, changed, held, most)

    @property
    def _known_to_hold(self) -> dict[PartKey, AssertionSchema]:
        """The conjuncts that have been found to hold by a transaction that was committed."""
        return self._session.engine.assertions_held

    def check_readers(self, transaction: Transaction, table: TableSchema) -> None:
        """Judge the assertions that read a table whose rows a schema change has rewritten."""
        for watched in self._assertions(transaction):
            if watched.reads(table_key(table)):
                for part in watched.parts:
                    samples = self._rows(transaction, part.query, ())
                    if samples:
                        raise assertion_violation(watched.assertion, samples)

    def _assertions(self, transaction: Transaction) -> tuple[WatchedAssertion, ...]:
        version = (transaction.catalog.version, self._session.options_version)
        if version != self._version:
            self._watched = tuple(
                compile_assertion(self._session, transaction, assertion)
                for assertion in assertions_of(transaction.catalog)
            )
            self._version = version
        return self._watched

    def _judge_part(
        self,
        transaction: Transaction,
        part: WatchedConjunct,
        changed: ChangedTables,
        held: bool,
        most: int,
    ) -> list[Row]:
        keys = self._keys_to_judge(transaction, part, changed) if held and part.keyed else None
        if keys is None:
            return self._rows(transaction, part.query, ())
        breaking = (key for query, values in keys for key in values if self._rows(transaction, query, key))
        return list(islice(breaking, most))

    def _keys_to_judge(
        self, transaction: Transaction, part: WatchedConjunct, changed: ChangedTables
    ) -> list[tuple[PreparedQuery, list[Row]]] | None:
        """The queries to run and the keys to run them for; None where the whole is to be judged."""
        found = []
        for table in part.tables:
            if not changed.includes(table):
                continue
            queries = part.keyed.get(table_key(table))
            keys = None if queries is None else changed.keys(table)
            if queries is None or keys is None or len(keys) > _MOST_KEYS:
                return None
            rows = self._session.engine.table(table).count(transaction.reader(table.module))
            if len(keys) > _FEW_KEYS and 2 * len(keys) >= rows:
                return None
            found += [(query, keys) for query in queries]
        return found

    def _rows(self, transaction: Transaction, query: PreparedQuery, values: Row) -> list[Row]:
        found: list[Row] = []
        for batch in query.compiled.function(query.runtime(self._session, transaction, values)):
            found += batch
            if len(found) >= _SAMPLES:
                break
        return found[:_SAMPLES]


def _name_of(assertion: AssertionSchema) -> TableKey:
    return fold(assertion.schema), fold(assertion.name)


def assertion_violation(assertion: AssertionSchema, samples: Iterable[Row]) -> Error:
    """The error for an assertion that does not hold."""
    samples = list(samples)
    shown = ", ".join(f"({', '.join(map(_shown, row))})" for row in samples)
    error = sql_error(
        StatusCode.CONSTRAINT, f"Integrity assertion failed: {assertion_label(assertion)} [{shown}]"
    )
    error.details = MappingProxyType(
        {
            "schema": assertion.schema,
            "kind": "assertion",
            "constraint": assertion.name,
            "values": tuple(samples),
        }
    )
    return error


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
        self._by_name = {table_key(change.table): log for log in self._logs.values() for change in log}
        self._nets: dict[int, dict[Any, _Net] | None] = {}

    def includes(self, table: TableSchema) -> bool:
        """Whether a table has a net change."""
        log = self._log(table)
        if log is None:
            return False
        net = self._net(log)
        return net is None or any(old != new for _, old, new in net.values())

    def keys(self, table: TableSchema) -> list[Row] | None:
        """The primary keys of rows that are new or different; None where they cannot be told."""
        log = self._log(table)
        if log is None:
            return []
        net = self._net(log)
        if net is None or log[0].table.primary_key != table.primary_key:
            return None
        keys = [key for key, old, new in net.values() if new is not None and old != new]
        return None if any(None in key for key in keys) else keys

    def _log(self, table: TableSchema) -> list[Change] | None:
        """A table's changes; it is known by the place of its rows, or else by its name."""
        log = self._logs.get((fold(table.module), table.storage_id))
        return log if log is not None else self._by_name.get(table_key(table))

    def _net(self, log: list[Change]) -> dict[Any, _Net] | None:
        if id(log) not in self._nets:
            self._nets[id(log)] = _net_change(log)
        return self._nets[id(log)]


_Net = tuple[Row, Row | None, Row | None]
"""A primary key with its row before and after all changes."""


def _net_change(log: list[Change]) -> dict[Any, _Net] | None:
    """What became of each key; None where the table's key has changed on the way."""
    table = log[0].table
    if any(change.table.primary_key != table.primary_key for change in log):
        return None
    parts = [part.column for part in table.primary_key.parts]
    net: dict[Any, _Net] = {}

    def note(row: Row, before: Row | None, after: Row | None) -> None:
        key = tuple([row[column] for column in parts])
        name: Any = key
        try:
            entry = net.get(name)
        except TypeError:
            name = repr(key)
            entry = net.get(name)
        net[name] = (key, before, after) if entry is None else (key, entry[1], after)

    for change in log:
        # All old rows of a statement go before its new ones come, so that keys may change places.
        for row in change.old:
            note(row, row, None)
        for row in change.new:
            note(row, None, row)
    return net
