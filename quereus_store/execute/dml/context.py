"""The mutation context of a statement: its values, evaluated once before the statement does anything.

All programs of the statement read them from the runtime, the CHECKs that wait for the commit too
(dml-transactions-constraints, section 9).
"""

from __future__ import annotations

from quereus_store.execute.codegen.compiler import preamble_of
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.dml.generation import MutationCompiler, Workshop
from quereus_store.execute.dml.runtime import MutationRuntime, reads_of
from quereus_store.plan.mutations import MutationPlan
from quereus_store.plan.nodes import CommonTable


class ContextProgram:
    """The values of a statement's mutation context, compiled; ``mutations`` are the members they read."""

    def __init__(self, workshop: Workshop, plan: MutationPlan, enclosing: tuple[CommonTable, ...]) -> None:
        compiler = MutationCompiler(workshop)
        module = compiler.module
        pipeline = compiler.images({})
        with module.block("def program(rt):"):
            compiler.bind_common_tables(enclosing)
            compiler.bind_common_tables(plan.common_tables)
            expressions = compiler.expressions(pipeline)
            values = [expressions.value(value) for value in workshop.optimize_all(plan.context.values, ())]
            for line in pipeline.prologue:
                module.line(line)
            module.line(f"return {tuple_display(values)}")
        module.fill_preamble(preamble_of(compiler))
        self._program = module.compile("program")
        self._reads = reads_of(compiler.transactions, frozenset())
        self.mutations = dict(compiler.mutations)

    def evaluate(self, runtime: MutationRuntime) -> None:
        """Evaluate the values for one execution and all its programs."""
        runtime.context_values = self._program(runtime.fork(self._reads))
