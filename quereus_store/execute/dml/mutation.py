"""Compiled mutations: how a statement that changes rows is prepared and run.

Compiling writes the fast program (see :mod:`~quereus_store.execute.dml.rules`
for the two ways); the careful one is compiled when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.codegen.compiler import preamble_of
from quereus_store.execute.codegen.metering import Meters
from quereus_store.execute.dml.conflicts import CarefulDelete, CarefulInsert, CarefulUpdate
from quereus_store.execute.dml.context import ContextProgram
from quereus_store.execute.dml.delete import write_delete
from quereus_store.execute.dml.generation import MutationCompiler, Workshop
from quereus_store.execute.dml.insert import insert_cells, write_insert
from quereus_store.execute.dml.keyed_sets import KeyedSets, keyed_sets
from quereus_store.execute.dml.members import Members, tables_needed
from quereus_store.execute.dml.outcome import MutationOutcome
from quereus_store.execute.dml.rules import rules_of
from quereus_store.execute.dml.runtime import MutationRuntime, open_all, reads_of
from quereus_store.execute.dml.sequence import CompiledSequence
from quereus_store.execute.dml.update import write_update
from quereus_store.execute.runtime import Runtime
from quereus_store.modules.contract import Row
from quereus_store.plan.binder.context import BindContext
from quereus_store.plan.expressions import Column
from quereus_store.plan.mutations import DeletePlan, InsertPlan, MutationPlan, SequencePlan, UpdatePlan
from quereus_store.plan.nodes import CommonTable, ParameterRows
from quereus_store.schema.objects import TableSchema

if TYPE_CHECKING:
    from quereus_store.execute.engine import Engine

_WRITERS: Mapping[type[MutationPlan], tuple[Any, Any]] = MappingProxyType(
    {
        InsertPlan: (write_insert, CarefulInsert),
        UpdatePlan: (write_update, CarefulUpdate),
        DeletePlan: (write_delete, CarefulDelete),
    }
)


class CompiledMutation:
    """A statement ready to run: ``columns`` are RETURNING's (None without it).

    ``written`` names the modules that a run may write in.
    """

    def __init__(
        self,
        workshop: Workshop,
        plan: MutationPlan,
        cascaded: bool,
        enclosing: tuple[CommonTable, ...],
    ) -> None:
        if plan.table.derivation is not None:
            raise _derived(plan.table)
        enclosing = tables_needed(plan, enclosing)
        self.plan = plan
        self.columns: tuple[Column, ...] | None = plan.returning.columns if plan.returning else None
        self._make_keyed_sets: Callable[[], KeyedSets | None] | None = None
        self.source_plan = workshop.optimize(plan.source)
        rules = rules_of(workshop, plan, cascaded)
        write, careful_way = _WRITERS[type(plan)]
        careful = careful_way(workshop, plan, rules, enclosing)
        if isinstance(plan, UpdatePlan | DeletePlan) and not cascaded and not enclosing:
            self._make_keyed_sets = partial(
                keyed_sets, workshop, plan, self.source_plan, rules, careful.key_error
            )
        compiler = MutationCompiler(workshop, None if cascaded else workshop.meters)
        with compiler.module.block("def program(rt):"):
            compiler.bind_common_tables(enclosing)
            compiler.bind_common_tables(plan.common_tables)
            write(compiler, plan, self.source_plan, rules, careful)
        compiler.module.fill_preamble(preamble_of(compiler))
        self.source = compiler.module.text()
        self._program: Callable[[Any], MutationOutcome] = compiler.module.compile("program")
        self._context = ContextProgram(workshop, plan, enclosing) if plan.context.values else None
        mutations = dict(compiler.mutations)
        if self._context is not None:
            mutations |= self._context.mutations
        self._members = Members(workshop, plan, list(mutations.items()), compile_in)
        self.written = careful.written = rules.written | self._members.written
        self._reads = reads_of(compiler.transactions, self.written)
        self._slots = plan.source.slots if isinstance(plan.source, ParameterRows) else ()
        self._width = len(self._slots)
        self._in_order = self._slots == tuple(range(self._width))

    @cached_property
    def keyed_sets(self) -> KeyedSets | None:
        """The program for many sets of parameters of an UPDATE or DELETE that has one."""
        return None if self._make_keyed_sets is None else self._make_keyed_sets()

    @property
    def takes_batches(self) -> bool:
        """Whether one run may serve many sets of parameters."""
        plan = self.plan
        return plan.batchable if isinstance(plan, InsertPlan) else self.keyed_sets is not None

    @cached_property
    def parameter_cells(self) -> Mapping[int | str, int]:
        """Parameters that are read once, as the whole new value of a column: slot and column."""
        if self.keyed_sets is not None:
            return self.keyed_sets.cells
        plan = self.plan
        return insert_cells(plan) if isinstance(plan, InsertPlan) else {}

    def run_batch(self, session: Any, transaction: Any, rows: list[Row]) -> MutationOutcome:
        """Run for many sets; raises Trouble, with nothing written, if they must go one by one."""
        if self.keyed_sets is not None:
            return self.keyed_sets.run(session, transaction, rows)
        return self.run(self.runtime(session, transaction, (), rows))

    def runtime(
        self, session: Any, transaction: Any, parameters: Any, parameter_rows: list[Row] | None
    ) -> MutationRuntime:
        """What one execution needs: for the parameters given, or for many tuples of them."""
        if self._width:
            if parameter_rows is None:
                parameter_rows = [self._row(parameters)]
            elif not self._in_order or (parameter_rows and len(parameter_rows[0]) != self._width):
                parameter_rows = list(map(self._row, parameter_rows))
        elif parameter_rows is None:
            parameter_rows = [()]
        runtime = MutationRuntime(
            session, transaction, parameters, open_all(self._reads, transaction), parameter_rows
        )
        if self._members.compiled:
            self._members.attach(runtime)
        return runtime

    def _row(self, parameters: Any) -> Row:
        if self._in_order and type(parameters) is tuple and len(parameters) == self._width:
            return parameters
        row = itemgetter(*self._slots)(parameters)
        return row if self._width > 1 else (row,)

    def run(self, runtime: MutationRuntime) -> MutationOutcome:
        """Make the change; raises StatementFailed where more or less than the statement is to be undone."""
        if not self._members.compiled:
            if self._context is not None:
                self._context.evaluate(runtime)
            return self._program(runtime)
        self._members.run_unread(runtime)
        if self._context is not None:
            self._context.evaluate(runtime)
        outcome = self._program(runtime)
        self._members.run_leading(runtime)
        return outcome

    def member(self, session: Any, transaction: Any, parameters: Any) -> Callable[[Runtime], list[Row]]:
        """Run as part of an enclosing statement: a function of its runtime that gives RETURNING's rows."""

        def rows(enclosing: Runtime) -> list[Row]:
            runtime = self.runtime(session, transaction, parameters, None)
            self._members.borrow(runtime, enclosing)
            return self.run(runtime).rows

        return rows


def _derived(table: TableSchema) -> Error:
    """The error for a plan that would write derived rows past their source."""
    return sql_error(
        StatusCode.READONLY,
        f"table '{table.qualified_name}' is a maintained table — its contents are derived and may not be"
        " written directly (write its source, or make it an ordinary table by ALTER TABLE … DROP MAINTAINED)",
    )


def compile_in(
    workshop: Workshop,
    plan: MutationPlan,
    *,
    cascaded: bool = False,
    enclosing: tuple[CommonTable, ...] = (),
) -> CompiledMutation:
    """Compile within a workshop; ``enclosing`` are the common tables of a statement around it."""
    if isinstance(plan, SequencePlan):
        # It has the same methods, and nothing else in common.
        sequence: Any = CompiledSequence(workshop, plan, enclosing, compile_in)
        return sequence  # type: ignore[no-any-return]
    return CompiledMutation(workshop, plan, cascaded, enclosing)


def compile_mutation(
    plan: MutationPlan,
    engine: Engine,
    context: BindContext,
    enclosing: tuple[CommonTable, ...] = (),
    meters: Meters | None = None,
) -> CompiledMutation:
    """Compile a bound mutation; raises ERROR for foreign keys that do not fit their parents."""
    return compile_in(Workshop(engine, context, engine.actions(context), meters), plan, enclosing=enclosing)
