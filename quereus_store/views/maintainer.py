"""The maintainer: after each statement, every maintained table equals its body again.

It takes what the statement changed from the transaction's log, works out for each
dependent table, sources first, how its rows have to change, and writes that.  What it writes
is a change like any other: it is logged, travels on to tables that read this one, and is
undone with the statement.

Chapter: views-and-maintained-tables, sections 2, 6 and 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from quereus_store.execute.dml.changes import Change
from quereus_store.execute.engine import Engine
from quereus_store.execute.maintenance import Handler, RefreshedView
from quereus_store.modules.contract import CatalogProblem
from quereus_store.plan.stored import StoredQuery
from quereus_store.schema.objects import Catalog, TableSchema
from quereus_store.sql import nodes
from quereus_store.views import attaching, creating, lending, refreshing, reporting, restoring, staleness
from quereus_store.views.body import TableKey, key_of
from quereus_store.views.graph import Graph, Graphs, Member
from quereus_store.views.parents import FollowUp
from quereus_store.views.plans import Maintained, Strategies
from quereus_store.views.rows import Delta, net_delta

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import Transaction


class Station(NamedTuple):
    """A maintained table that a change comes by.

    ``is_read``: others read it.  ``direct``: it reads nothing but the one table where the change begins.
    """

    maintained: Maintained
    sources: tuple[TableKey, ...]
    key: TableKey
    is_read: bool
    direct: bool


class Maintainer:
    """Implements :class:`~quereus_store.execute.maintenance.Maintenance` for one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.graphs = Graphs(engine)
        self.strategies = Strategies(engine)
        self.handlers: Mapping[type[nodes.Statement], Handler] = MappingProxyType(
            {
                nodes.CreateMaterializedView: self._create_view,
                nodes.RefreshMaterializedView: self._refresh,
            }
        )

    # -- statements --------------------------------------------------------------

    def _create_view(self, session: Any, statement: Any, parameters: Any) -> Any:
        return creating.create_materialized_view(self, session, statement)

    def _refresh(self, session: Any, statement: Any, parameters: Any) -> Any:
        return refreshing.refresh_statement(self, session, statement)

    def refresh_all(self, session: Session) -> list[RefreshedView]:
        """REFRESH for every maintained table there is, sources first."""
        return refreshing.refresh_all(self, session)

    def create_table(self, session: Session, statement: nodes.CreateTable) -> None:
        """CREATE TABLE … MAINTAINED AS."""
        creating.create_maintained_table(self, session, statement)

    def attach(
        self, session: Session, transaction: Transaction, table: TableSchema, action: nodes.SetMaintained
    ) -> None:
        """ALTER TABLE … SET MAINTAINED."""
        attaching.attach(self, session, transaction, table, action)

    def detach(self, session: Session, transaction: Transaction, table: TableSchema) -> None:
        """ALTER TABLE … DROP MAINTAINED."""
        attaching.detach(transaction, table)

    def restore(self, catalog: Catalog, snapshot: Any) -> tuple[Catalog, tuple[CatalogProblem, ...]]:
        """Fill the maintained tables of a loaded catalog whose rows live in memory."""
        return restoring.restore(self, catalog, snapshot)

    def explain(self, catalog: Catalog, table: TableSchema) -> list[str]:
        """What follows a change of a table, as text."""
        return reporting.explain_lines(self, catalog, table)

    def stored_queries(self, catalog: Catalog, tables: frozenset[TableKey]) -> Sequence[StoredQuery]:
        """The live maintained tables whose queries read nothing but these tables."""
        graph = self.graphs.graph(catalog)
        if tables.isdisjoint(graph.sources):
            return ()
        return lending.stored_queries(self.engine, graph, tables)

    # -- the end of a statement ------------------------------------------------------

    def watches(self, catalog: Catalog, table: TableSchema) -> bool:
        """Whether some live maintained table reads this one."""
        return (table.schema, table.name) in self.graphs.graph(catalog).sources

    def after_statement(self, session: Session, transaction: Transaction, before: Catalog) -> None:
        """Let every dependent follow what a statement changed."""
        log = transaction.changes
        rebuilt: frozenset[TableKey] = frozenset()
        if transaction.catalog is not before:
            rebuilt = staleness.settle(self, session, transaction, before)
        if len(log) > transaction.maintained:
            part = log[transaction.maintained :]
            transaction.maintained = len(log)
            self._follow(session, transaction, part, rebuilt)
            while len(log) > transaction.maintained:
                # Derived changes have been followed already; those of rows that refer to them have not.
                part = [change for change in log[transaction.maintained :] if change.table.derivation is None]
                transaction.maintained = len(log)
                if part:
                    self._follow(session, transaction, part)
        if log and not (self.engine.records_changes or transaction.catalog.has_assertions):
            log.clear()
            transaction.maintained = 0

    def passed_over(self, transaction: Transaction, tables: Iterable[TableSchema]) -> None:
        """Nobody is to follow these changes: what dependents know of the tables by heart is void."""
        keys = set(map(key_of, tables))
        for member in self.graphs.graph(transaction.catalog).readers(keys):
            self.strategies.of(member).forget()
        transaction.touched |= keys

    def _follow(
        self,
        session: Session,
        transaction: Transaction,
        log: Sequence[Change],
        rebuilt: frozenset[TableKey] = frozenset(),
    ) -> None:
        graph = self.graphs.graph(transaction.catalog)
        if graph.broken:
            staleness.give_up(transaction, graph.broken)
            graph = self.graphs.graph(transaction.catalog)
        deltas = _deltas(log)
        if not any(deltas.values()):
            for station in self._route(graph, deltas):
                station.maintained.unchanged(transaction, deltas)
            return
        waiting: list[FollowUp] = []
        logs_all = self.engine.records_changes or transaction.catalog.has_assertions
        for station in self._route(graph, deltas):
            relevant: Mapping[TableKey, Delta] = deltas
            if not station.direct or len(deltas) > 1:
                relevant = {key: delta for key in station.sources if (delta := deltas.get(key))}
                if not relevant:
                    station.maintained.unchanged(transaction, deltas)
                    continue
            maintained = station.maintained
            # What was computed anew has seen some of these changes already.
            strategy = maintained.rebuild if station.key in rebuilt else maintained
            difference = strategy.difference(session, transaction, relevant)
            if not difference:
                continue
            logs = logs_all or station.is_read
            waiting += maintained.writer.write(session, transaction, difference, logs=logs)
            if station.is_read:
                known, key = deltas.get(station.key), station.key
                deltas[key] = difference.delta if known is None else _joined(known, difference.delta)
        transaction.touched.update(deltas)
        for follow_up in waiting:
            follow_up()

    def _route(self, graph: Graph, changed: Mapping[TableKey, Delta]) -> Sequence[Station]:
        """Where a change of these tables leads, in order; remembered for each table that changes alone."""
        routes: Any = graph.routes
        asked = next(iter(changed)) if len(changed) == 1 else frozenset(changed)
        found: Sequence[Station] | None = routes.get(asked)
        if found is None:
            found = routes[asked] = [
                Station(
                    self.strategies.of(member),
                    tuple(member.body.sources),
                    key := key_of(member.table),
                    key in graph.sources,
                    changed.keys() == member.body.sources.keys(),
                )
                for member in graph.readers(changed)
            ]
        return found

    def rebuild(self, session: Session, transaction: Transaction, member: Member) -> Delta:
        """Compute one table anew and write what differs."""
        maintained = self.strategies.of(member)
        difference = maintained.rebuild.difference(session, transaction, {})
        for follow_up in maintained.writer.write(session, transaction, difference):
            follow_up()
        return difference.delta


def _deltas(log: Sequence[Change]) -> dict[TableKey, Delta]:
    """What the statement did to each table, net."""
    if len(log) == 1:
        ((table, _, old, new, _),) = log
        if not old or not new:
            return {(table.schema, table.name): Delta(list(old), list(new))}
        return {key_of(table): net_delta(table, log)}
    by_table: dict[TableKey, list[Change]] = {}
    for change in log:
        by_table.setdefault(key_of(change.table), []).append(change)
    return {key: net_delta(changes[0].table, changes) for key, changes in by_table.items()}


def _joined(known: Delta, more: Delta) -> Delta:
    """Direct changes of a table (a refresh) and what followed from its sources."""
    return Delta(known.removed + more.removed, known.added + more.added)
