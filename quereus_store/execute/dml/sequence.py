"""A statement that is one query and several mutations over its rows (a write through a join view).

The query runs first and to its end; each mutation is compiled like a statement of its own and is
handed the rows, as is the query that gives RETURNING's rows in the end.  All happen within the one
statement, which is atomic as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from quereus_store.execute.codegen.compiler import CompiledQuery, compile_query
from quereus_store.execute.dml.emission import first_matches
from quereus_store.execute.dml.generation import Workshop
from quereus_store.execute.dml.members import shared, tables_needed
from quereus_store.execute.dml.outcome import MutationOutcome
from quereus_store.execute.dml.runtime import MutationRuntime, open_all, reads_of
from quereus_store.execute.dml.violations import check_violation
from quereus_store.execute.runtime import Runtime
from quereus_store.modules.contract import Row
from quereus_store.plan.expressions import Column
from quereus_store.plan.mutations import SequencePlan
from quereus_store.plan.nodes import CommonTable, MutationScan, PlanNode, With, walk_plan


class CompiledSequence:
    """A sequence ready to run; see :class:`~quereus_store.execute.dml.mutation.CompiledMutation`."""

    takes_batches = False

    def __init__(
        self,
        workshop: Workshop,
        plan: SequencePlan,
        enclosing: tuple[CommonTable, ...],
        compile_step: Callable[..., Any],
    ) -> None:
        self.plan = plan
        self.columns: tuple[Column, ...] | None = plan.returning.columns if plan.returning else None
        tables = tuple(map(shared, (*tables_needed(plan, enclosing), *plan.common_tables)))
        source = With(plan.source.columns, tables, plan.source) if tables else plan.source
        self.source_plan: PlanNode = workshop.optimize(source)
        self._capture = compile_query(self.source_plan, workshop.engine)
        self._members = {
            number: compile_step(workshop, member, enclosing=tables)
            for number, member in self._capture.mutations
        }
        self._steps = [compile_step(workshop, step) for step in plan.steps]
        self._result: CompiledQuery | None = None
        if plan.result is not None:
            self._result = compile_query(workshop.optimize(plan.result), workshop.engine)
        compiled = [*self._steps, *self._members.values()]
        self.written: frozenset[str] = frozenset().union(*(each.written for each in compiled))
        self.source = "\n".join([self._capture.source, *[step.source for step in self._steps]])

    def runtime(
        self, session: Any, transaction: Any, parameters: Any, parameter_rows: list[Row] | None
    ) -> MutationRuntime:
        """What one execution needs."""
        reads = reads_of(self._capture.transactions, self.written)
        opened = open_all(reads, transaction)
        runtime = MutationRuntime(session, transaction, parameters, opened, parameter_rows)
        for number, member in self._members.items():
            runtime.mutations[number] = member.member(session, transaction, parameters)
        return runtime

    def run(self, runtime: MutationRuntime) -> MutationOutcome:
        """Capture the rows, change what they say, read RETURNING."""
        for node in walk_plan(self.source_plan):
            if isinstance(node, MutationScan):
                runtime.mutation_rows(node.mutation_id)
        rows = list(chain.from_iterable(self._capture.function(runtime)))
        if self.plan.once is not None:
            rows = first_matches(rows, (self.plan.once,))
        for position, check in self.plan.verdicts:
            if any(row[position] is not None and not row[position] for row in rows):
                raise check_violation(self.plan.table, check)
        for step in self._steps:
            inner = step.runtime(runtime.session, runtime.transaction, runtime.parameters, None)
            inner.given = (rows,)
            inner.belong_to(runtime)
            step.run(inner)
        if self._result is None:
            return MutationOutcome(len(rows), [])
        reader = runtime.fork(reads_of(self._result.transactions, self.written))
        reader.given = (rows,)
        return MutationOutcome(len(rows), list(chain.from_iterable(self._result.function(reader))))

    def member(self, session: Any, transaction: Any, parameters: Any) -> Callable[[Runtime], list[Row]]:
        """Run as part of an enclosing statement: a function of its runtime that gives RETURNING's rows."""

        def rows(enclosing: Runtime) -> list[Row]:
            runtime = self.runtime(session, transaction, parameters, None)
            runtime.belong_to(enclosing)
            for number in enclosing.mutations:
                runtime.mutations[number] = lambda _, number=number: enclosing.mutation_rows(number)
            return self.run(runtime).rows

        return rows
