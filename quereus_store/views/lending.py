"""Maintained tables that may answer queries in the place of their sources.

The optimizer is lent the query of each, normalized as its own plans are at the point where it looks for
them.  Left out are tables that are not kept up (stale), bodies with subqueries, tables whose key merges
rows, and tables in another module than their sources: two modules have two snapshots, and rows in memory do
not follow other processes.
"""

from __future__ import annotations

from collections.abc import Sequence

from quereus_store.execute.counting import rule_context
from quereus_store.execute.engine import Engine
from quereus_store.plan.optimizer import optimize
from quereus_store.plan.rules.common_tables import inline_common_tables
from quereus_store.plan.rules.constants import fold_constants
from quereus_store.plan.rules.filters import push_filters
from quereus_store.plan.rules.projections import drop_projections
from quereus_store.plan.stored import StoredQuery
from quereus_store.schema.objects import fold
from quereus_store.views.body import TableKey, hidden_scans
from quereus_store.views.coarsening import weakened_columns
from quereus_store.views.deltas.substitution import with_columns
from quereus_store.views.graph import Graph, Member

_RULES = (fold_constants, drop_projections, inline_common_tables, push_filters)


def stored_queries(engine: Engine, graph: Graph, tables: frozenset[TableKey]) -> Sequence[StoredQuery]:
    """The members of a graph whose queries read nothing but these tables, as far as they can be used."""
    found = []
    for member in graph.members:
        if member.body.sources.keys() <= tables:
            stored = _stored(engine, member)
            if stored is not None:
                found.append(stored)
    return found


def _stored(engine: Engine, member: Member) -> StoredQuery | None:
    kept = member.body.programs
    known = kept.get("stored")
    if isinstance(known, StoredQuery) and known.table is member.table:
        return known
    table, body = member.table, member.body
    module = fold(table.module)
    if any(fold(source.module) != module for source in body.sources.values()):
        return None
    if next(hidden_scans(body.plan), None) is not None or weakened_columns(table, body):
        return None
    plan = optimize(body.plan, rule_context(engine, body.context), _RULES)
    stored = kept["stored"] = StoredQuery(table, with_columns(plan, body.plan.columns))
    return stored
