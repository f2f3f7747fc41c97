"""Prepared statements: what is kept of a statement for its next execution.

A plan depends on the text, on the types of the parameters, on the catalog's
version and on the session's options; a prepared statement remembers the last
two and the session makes it anew when either has moved on, or when a table
that the plan reads whole has grown a lot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.execute.codegen import operators  # noqa: F401 - fills the compiler's table
from quereus_store.execute.codegen.compiler import CompiledQuery, compile_query, every_node
from quereus_store.execute.codegen.metering import Meters
from quereus_store.execute.counting import RowCounts, rule_context
from quereus_store.execute.dml import CompiledMutation, compile_mutation
from quereus_store.execute.dml.runtime import MutationRuntime
from quereus_store.execute.engine import Engine
from quereus_store.execute.maintenance import Maintenance
from quereus_store.execute.results import Batches, Result, document_columns
from quereus_store.execute.runtime import Runtime
from quereus_store.plan.binder import BindContext, bind_mutation, bind_query
from quereus_store.plan.explain import plan_lines
from quereus_store.plan.expressions import Column
from quereus_store.plan.nodes import (
    CommonTable,
    MutationScan,
    PlanNode,
    TableScan,
    With,
    bottom_up,
    free_columns,
    walk_plan,
)
from quereus_store.plan.optimizer import optimize
from quereus_store.plan.stored import StoredQuery
from quereus_store.schema.objects import Catalog, TableSchema, fold
from quereus_store.sql import nodes
from quereus_store.types import type_of_value

Parameters = tuple[Any, ...] | list[Any] | Mapping[str, Any]

_BINDABLE = frozenset({type(None), bool, int, float, str, bytes, list, dict})
_RUNS_BETWEEN_LOOKS = 16
_GROWTH = 10
_SMALL = 50
"""A table that had fewer rows counts as having had so many."""


@dataclass(slots=True)
class Scanned:
    """The tables that a plan reads whole, and how many rows they had when it was made.

    Reading all of a small table is cheap; once it has grown another way may be better, so every few runs
    of a statement its tables are looked at again.
    """

    tables: tuple[tuple[TableSchema, float], ...]
    runs: int = 0

    def outgrown(self, row_count: RowCounts) -> bool:
        """Whether it is time to look, and a table is large now and has ten times the rows it had."""
        self.runs += 1
        if self.runs % _RUNS_BETWEEN_LOOKS:
            return False
        return any(row_count(table) > _GROWTH * max(rows, _SMALL) for table, rows in self.tables)


def scanned_by(plan: PlanNode, row_count: RowCounts) -> Scanned | None:
    """What a plan reads whole, in subqueries too; None if it is nothing."""
    tables = {id(node.table): node.table for node in every_node(plan) if isinstance(node, TableScan)}
    if not tables:
        return None
    return Scanned(tuple([(table, row_count(table)) for table in tables.values()]))


@dataclass(slots=True)
class PreparedQuery:
    """A query as a program; ``mutations`` are its data-modifying members by number.

    ``writes_first`` is the default module if they write in that.
    """

    catalog_version: int
    plan: PlanNode
    compiled: CompiledQuery
    mutations: dict[int, CompiledMutation]
    only_primary: bool = False
    statement: nodes.Statement | None = None
    options_version: int = 0
    documents: tuple[int, ...] = ()
    scanned: Scanned | None = None
    writes_first: str | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The result's columns."""
        return self.compiled.columns

    @property
    def source(self) -> str:
        """The generated program."""
        return self.compiled.source

    @property
    def writes(self) -> bool:
        """Whether running it changes data."""
        return bool(self.mutations)

    def runtime(self, session: Any, transaction: Any, parameters: Any) -> Runtime:
        """The program's parameters and snapshots."""
        for mutation in self.mutations.values():
            # What members write the query is to see, so it reads in the writer from the start.
            for module in mutation.written:
                transaction.writer(module)
        runtime = Runtime(session, transaction, parameters, transactions_for(self.compiled, transaction))
        for mutation_id, mutation in self.mutations.items():
            runtime.mutations[mutation_id] = mutation.member(session, transaction, parameters)
        return runtime

    def run(self, runtime: Runtime) -> Result:
        """The rows, as they are asked for; all at once if the query also writes."""
        if not self.mutations:
            return self._result(self.compiled.function(runtime))
        for node in walk_plan(self.plan):
            # One inside an expression runs only if that is evaluated.
            if isinstance(node, MutationScan):
                runtime.mutation_rows(node.mutation_id)
        return self._result(list(self.compiled.function(runtime)))

    def _result(self, batches: Batches) -> Result:
        return Result(self.compiled.columns, batches, documents=self.documents, statement=self.statement)


@dataclass(slots=True)
class PreparedMutation:
    """An INSERT, UPDATE or DELETE; ``writes_first`` is the default module if it writes in that."""

    catalog_version: int
    plan: Any
    compiled: CompiledMutation
    statement: nodes.Statement | None = None
    options_version: int = 0
    writes: bool = True
    scanned: Scanned | None = None
    writes_first: str | None = None

    @property
    def columns(self) -> tuple[Column, ...] | None:
        """RETURNING's columns."""
        return self.compiled.columns

    def runtime(self, session: Any, transaction: Any, parameters: Any) -> MutationRuntime:
        """The statement's parameters; a single execution is a batch of one."""
        return self.compiled.runtime(session, transaction, parameters, None)

    @property
    def source(self) -> str:
        """The generated program."""
        return self.compiled.source

    @property
    def verb(self) -> str:
        """``Insert``, ``Update`` or ``Delete``."""
        return type(self.plan).__name__.removesuffix("Plan")

    def plan_lines(self, services: Engine) -> list[str]:
        """The plan as text: the change, then where its rows come from."""
        lines = plan_lines(self.compiled.source_plan, services)
        return [f"{self.verb.upper()} {self.plan.table.qualified_name}", *("  " + line for line in lines)]

    def run(self, runtime: MutationRuntime) -> Result:
        """Make the change; RETURNING's rows are complete afterwards."""
        compiled = self.compiled
        outcome = compiled.run(runtime)
        columns = compiled.columns
        if columns is None:
            return Result(None, (), outcome.row_count)
        return Result(columns, [outcome.rows], outcome.row_count, documents=document_columns(columns))


def transactions_for(compiled: CompiledQuery, transaction: Any) -> list[Any]:
    """The module transactions that a program reads in, in its order."""
    return [
        transaction.snapshot(use.module) if use.committed else transaction.reader(use.module)
        for use in compiled.transactions
    ]


def reads_only_primary(compiled: CompiledQuery, engine: Engine) -> bool:
    """Whether a program reads in one transaction, that of the default module."""
    uses = compiled.transactions
    return len(uses) == 1 and not uses[0].committed and fold(uses[0].module) == engine.primary_name


def prepare_query(
    engine: Engine,
    statement: nodes.Query,
    context: BindContext,
    meters: Meters | None = None,
    *,
    from_views: bool = False,
) -> PreparedQuery:
    """Bind, optimize and compile a query; with ``meters`` it measures itself.

    ``from_views``: maintained tables are up to date when it runs and may answer in the place of their
    sources.
    """
    bound = _with_shared_tables(bind_query(context, statement))
    rules = rule_context(engine, context)
    maintenance = engine.maintenance
    if maintenance is not None and from_views and context.options.get("answer_from_views"):
        rules = replace(rules, stored=partial(_lent, maintenance, context.catalog, bound))
    plan = optimize(bound, rules)
    compiled = compile_query(plan, engine, meters, context.options.get("memory_limit", 0))
    mutations = {
        mutation_id: compile_mutation(mutation, engine, context, with_members(plan), meters)
        for mutation_id, mutation in compiled.mutations
    }
    only_primary = reads_only_primary(compiled, engine)
    return PreparedQuery(
        context.catalog.version,
        plan,
        compiled,
        mutations,
        only_primary,
        documents=document_columns(compiled.columns),
        scanned=scanned_by(plan, rules.estimates.table_rows),
        writes_first=_writes_first(engine, mutations.values()),
    )


def _writes_first(engine: Engine, mutations: Iterable[CompiledMutation]) -> str | None:
    """The default module, if any of the mutations writes in it."""
    return engine.primary_name if any(engine.primary_name in each.written for each in mutations) else None


def _lent(
    maintenance: Maintenance, catalog: Catalog, query: PlanNode, tables: frozenset[tuple[str, str]]
) -> Sequence[StoredQuery]:
    """The maintained tables that may answer for some tables of a query."""
    found = maintenance.stored_queries(catalog, tables)
    if found and any(isinstance(node, MutationScan) for node in every_node(query)):
        # What the query itself writes reaches them only after it has run.
        return ()
    return found


def prepare_mutation(
    engine: Engine,
    statement: nodes.Insert | nodes.Update | nodes.Delete,
    context: BindContext,
    meters: Meters | None = None,
) -> PreparedMutation:
    """Bind and compile an INSERT, UPDATE or DELETE; with ``meters`` it measures itself."""
    plan = bind_mutation(context, statement)
    compiled = compile_mutation(plan, engine, context, meters=meters)
    return PreparedMutation(
        context.catalog.version,
        plan,
        compiled,
        scanned=scanned_by(compiled.source_plan, context.row_count or engine.row_count),
        writes_first=_writes_first(engine, (compiled,)),
    )


def _with_shared_tables(plan: PlanNode) -> PlanNode:
    """The plan whose common tables are shared with the data-modifying members, if it has any."""
    if not any(isinstance(node, With) for node in walk_plan(plan)):
        return plan
    if not any(isinstance(node, MutationScan) for node in every_node(plan)):
        return plan

    def share(node: PlanNode) -> PlanNode:
        if not isinstance(node, With):
            return node
        return replace(
            node,
            tables=tuple(
                table if free_columns(table.plan) else replace(table, shared=True) for table in node.tables
            ),
        )

    return bottom_up(plan, share)


def with_members(plan: PlanNode) -> tuple[CommonTable, ...]:
    """The common tables of a query, which its data-modifying members may read."""
    return tuple([table for node in walk_plan(plan) if isinstance(node, With) for table in node.tables])


def parameter_types(parameters: Parameters) -> dict[int | str, Any]:
    """The type of each parameter slot by its value; raises MISUSE for a value of no SQL type."""
    slots: dict[int | str, Any] = {}
    if isinstance(parameters, Mapping):
        for name, value in parameters.items():
            if type(value) not in _BINDABLE:
                raise _unbindable(f"for key '{name}'", value)
            slots[name] = type_of_value(value)
        return slots
    for index, value in enumerate(parameters):
        if type(value) not in _BINDABLE:
            raise _unbindable(f"at index {index}", value)
        slots[index] = type_of_value(value)
    return slots


def _unbindable(where: str, value: Any) -> Exception:
    return sql_error(
        StatusCode.MISUSE,
        f"bindAll: invalid value {where}: expected SqlValue, got {type(value).__name__}",
    )


def check_parameters(context: BindContext, parameters: Parameters) -> None:
    """Every parameter that a statement reads must be given; raises RANGE or NOTFOUND."""
    named = isinstance(parameters, Mapping)
    for slot, position in context.references.parameters.items():
        if isinstance(slot, int):
            if named or slot >= len(parameters):
                raise sql_error(StatusCode.RANGE, f"Parameter index {slot + 1} is out of bounds.", position)
        elif not named or slot not in parameters:
            raise sql_error(StatusCode.NOTFOUND, f"Parameter with name '{slot}' not found.", position)
