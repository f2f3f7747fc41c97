"""Bodies: the query of a maintained table, bound and looked into.

A body is bound as every stored query is: unqualified names are looked up in the
table's own schema first, then in the default path, never in the reader's.  What it
reads (tables, plain views) decides which changes concern it.

Chapter: views-and-maintained-tables, sections 1, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from quereus_store.errors import StatusCode, sql_error
from quereus_store.execute.engine import Engine
from quereus_store.execute.options import default_options
from quereus_store.plan import nodes as plans
from quereus_store.plan.binder import BindContext, bind_query
from quereus_store.plan.expressions import subplans
from quereus_store.schema.manager import home_path, put_view
from quereus_store.schema.objects import Catalog, Derivation, TableSchema, ViewSchema
from quereus_store.sql import nodes
from quereus_store.views.coarsening import coarsened_key
from quereus_store.views.facts import Facts, facts_of, logical_key

TableKey = tuple[str, str]
"""Schema and name of a table, as the catalog spells them."""


def key_of(table: TableSchema | ViewSchema) -> TableKey:
    """Under which key a table or view is known."""
    return table.schema, table.name


@dataclass(frozen=True, slots=True)
class Body:
    """A bound body: its logical plan, what it reads, what is proved of its rows.

    ``key`` lists the positions of the logical key's columns; None for a bag.  One that ``is_coarsened``
    does not tell all rows of the source apart (:mod:`quereus_store.views.coarsening`).
    """

    plan: plans.PlanNode
    context: BindContext
    sources: Mapping[TableKey, TableSchema]
    views: Mapping[TableKey, ViewSchema]
    facts: Facts
    key: tuple[int, ...] | None
    is_coarsened: bool = False
    programs: dict[object, object] = field(default_factory=dict, compare=False)

    def current_in(self, catalog: Catalog) -> bool:
        """Whether everything that the body reads is in a catalog just as it was bound."""
        return all(catalog.table(*key) is table for key, table in self.sources.items()) and all(
            catalog.view(*key) is view for key, view in self.views.items()
        )


def bind_derivation(engine: Engine, catalog: Catalog, schema: str, derivation: Derivation) -> Body:
    """Bind the body of a maintained table, over the dropped views that it keeps."""
    for view in derivation.views:
        catalog = put_view(catalog, view)
    return bind_body(engine, catalog, schema, derivation.query, {key_of(view) for view in derivation.views})


def bind_body(
    engine: Engine, catalog: Catalog, schema: str, query: nodes.Query, kept: Container[TableKey] = ()
) -> Body:
    """Bind a body; raises what binding raises, and ERROR for one that takes parameters.

    ``kept`` are views that its table keeps: the catalog's own of these names are not its concern.
    """
    context = engine.bind_context(catalog, home_path(catalog, schema), default_options(engine), {})
    plan = bind_query(context, query)
    if context.references.parameters:
        raise sql_error(
            StatusCode.ERROR,
            "a materialized view body may not reference bind parameters",
            query.position,
        )
    facts = facts_of(plan)
    key = logical_key(facts, plan.columns)
    coarsened = coarsened_key(plan) if key is None else None
    return Body(
        plan,
        context,
        {key_of(table): table for table in context.references.tables.values()},
        {key_of(view): view for view in context.references.views.values() if key_of(view) not in kept},
        facts,
        coarsened if key is None else key,
        coarsened is not None,
    )


def scans(plan: plans.PlanNode) -> Iterator[plans.TableScan]:
    """The table scans of a plan, those in subqueries of its expressions left out."""
    return (node for node in plans.walk_plan(plan) if isinstance(node, plans.TableScan))


def hidden_scans(plan: plans.PlanNode) -> Iterator[plans.TableScan]:
    """The table scans in subqueries of a plan's expressions."""
    for node in plans.walk_plan(plan):
        for expression in plans.expressions(node):
            for inner in subplans(expression):
                yield from scans(inner)
                yield from hidden_scans(inner)
