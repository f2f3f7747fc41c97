"""Running plans over given rows: the compiled pieces that maintenance is made of.

A plan in which some table scan has been replaced by :class:`GivenRows` becomes a
program like any query's; running it hands the rows over in ``rt.given``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quereus_store.execute.codegen.compiler import compile_query
from quereus_store.execute.engine import Engine
from quereus_store.execute.prepared import rule_context, transactions_for
from quereus_store.execute.runtime import Runtime
from quereus_store.modules.contract import Row
from quereus_store.plan import nodes as plans
from quereus_store.plan.binder import BindContext
from quereus_store.plan.explain import plan_lines
from quereus_store.plan.optimizer import optimize

Given = Sequence[list[Row]]


class GivenRuntime(Runtime):
    """A runtime with rows for the plan's :class:`GivenRows`, by slot."""

    __slots__ = ("given",)

    given: Given


class Program:
    """A compiled plan."""

    def __init__(self, engine: Engine, context: BindContext, plan: plans.PlanNode) -> None:
        self.plan = optimize(plan, rule_context(engine, context))
        self._engine = engine
        self._compiled = compile_query(self.plan, engine)

    @property
    def source(self) -> str:
        """The generated code."""
        return self._compiled.source

    @property
    def lines(self) -> list[str]:
        """The plan as text."""
        return plan_lines(self.plan, self._engine)

    def rows(self, session: Any, transaction: Any, given: Given = ()) -> list[Row]:
        """All rows, as the transaction sees them now."""
        compiled = self._compiled
        runtime = GivenRuntime(session, transaction, (), transactions_for(compiled, transaction))
        runtime.given = given
        batches = list(compiled.function(runtime))
        return batches[0] if len(batches) == 1 else [row for batch in batches for row in batch]
