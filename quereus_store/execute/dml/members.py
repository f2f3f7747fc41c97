"""Data-modifying members of a mutation: statements in its WITH or where a relation stands (section 7).

A member runs at most once per execution, when its rows are first asked for; one
in the statement's own leading WITH runs in any case, before the statement if
nothing reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from quereus_store.execute.codegen.compiler import every_node
from quereus_store.execute.dml.generation import Workshop
from quereus_store.execute.dml.runtime import MutationRuntime
from quereus_store.execute.runtime import Runtime
from quereus_store.plan.expressions import BoundExpression, subplans
from quereus_store.plan.mutations import (
    CheckPlan,
    ContextPlan,
    GeneratedPlan,
    MutationPlan,
    NotNullPlan,
    ReturningPlan,
    UpsertPlan,
)
from quereus_store.plan.nodes import CommonTable, CommonTableScan, MutationScan, PlanNode, count_readers


class Members:
    """The members of one mutation, compiled."""

    def __init__(
        self,
        workshop: Workshop,
        plan: MutationPlan,
        mutations: Sequence[tuple[int, MutationPlan]],
        compile_member: Callable[..., Any],
    ) -> None:
        self.compiled = {
            number: compile_member(workshop, member, enclosing=plan.common_tables)
            for number, member in mutations
        }
        self.written: frozenset[str] = frozenset().union(
            *(member.written for member in self.compiled.values())
        )
        self._leading = [number for table in plan.common_tables for number in _scanned(table.plan)]
        read = count_readers(plan.source)
        self._unread = [
            number for table in plan.common_tables if not read[table.id] for number in _scanned(table.plan)
        ]

    def attach(self, runtime: MutationRuntime) -> None:
        """Make the members known to an execution."""
        for number, member in self.compiled.items():
            runtime.mutations[number] = member.member(
                runtime.session, runtime.transaction, runtime.parameters
            )

    def borrow(self, runtime: MutationRuntime, enclosing: Runtime) -> None:
        """Members of the enclosing statement that this one reads run once for both."""
        runtime.belong_to(enclosing)
        for number in enclosing.mutations:
            runtime.mutations[number] = lambda _, number=number: enclosing.mutation_rows(number)

    def run_unread(self, runtime: MutationRuntime) -> None:
        """Run the leading members that the statement's source does not read."""
        for number in self._unread:
            runtime.mutation_rows(number)

    def run_leading(self, runtime: MutationRuntime) -> None:
        """Run the leading members that have not run yet."""
        for number in self._leading:
            runtime.mutation_rows(number)


def shared(table: CommonTable) -> CommonTable:
    """A common table whose rows all programs of a statement have in common."""
    return replace(table, shared=True)


def tables_needed(plan: MutationPlan, tables: Sequence[CommonTable]) -> tuple[CommonTable, ...]:
    """Those common tables of an enclosing statement that a member reads, and what these read."""
    if not tables:
        return ()
    pending = [plan.source, *(table.plan for table in plan.common_tables)]
    pending += [inner for expression in _expressions(plan) for inner in subplans(expression)]
    needed: set[int] = set()
    by_number = {table.id: table for table in tables}
    while pending:
        for node in every_node(pending.pop()):
            if isinstance(node, CommonTableScan) and node.table_id in by_number.keys() - needed:
                needed.add(node.table_id)
                pending.append(by_number[node.table_id].plan)
    return tuple(table for table in tables if table.id in needed)


def _expressions(value: object) -> Iterator[BoundExpression]:
    """The expressions anywhere in the parts of a mutation plan."""
    if isinstance(value, BoundExpression):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _expressions(item)
    elif isinstance(value, _PARTS):
        for field in fields(value):
            if field.name not in ("source", "common_tables", "table", "constraint"):
                yield from _expressions(getattr(value, field.name))


_PARTS = (MutationPlan, ContextPlan, GeneratedPlan, NotNullPlan, CheckPlan, ReturningPlan, UpsertPlan)


def _scanned(plan: PlanNode) -> list[int]:
    return [node.mutation_id for node in every_node(plan) if isinstance(node, MutationScan)]
