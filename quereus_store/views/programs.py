"""Running plans over given rows: the compiled pieces that maintenance is made of.

A plan in which some table scan has been replaced by :class:`GivenRows` becomes a
program like any query's; running it hands the rows over in ``rt.given``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from quereus_store.execute.codegen.compiler import compile_query
from quereus_store.execute.counting import CountedTables, rule_context
from quereus_store.execute.engine import Engine
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

    def __init__(self, session: Any, transaction: Any, transactions: list[Any], given: Given) -> None:
        # Spelled out: one is made for every program that a small change runs.
        self.session = session
        self.transaction = transaction
        self.parameters = ()
        self.transactions = transactions
        self.parameter_rows = None
        self._members = None
        self._mutation_rows = None
        self._common_rows = None
        self.given = given


_GROWN = 20_000.0


def grown_tables(engine: Engine) -> CountedTables:
    """The engine's services to rules, with every table taken to be large.

    A view is often made before its sources are filled.  Its programs live on, so they must not be
    planned for the few rows there are: an index is used wherever there is one.
    """
    return CountedTables(engine, lambda table: max(_GROWN, engine.row_count(table)))


class Program:
    """A compiled plan; ``grown`` plans for larger tables than there may be now."""

    def __init__(
        self, engine: Engine, context: BindContext, plan: plans.PlanNode, *, grown: bool = False
    ) -> None:
        rules = rule_context(engine, context)
        self.plan = optimize(plan, replace(rules, services=grown_tables(engine)) if grown else rules)
        self._engine = engine
        compiled = compile_query(self.plan, engine)
        self._function = compiled.function
        self._modules = [use.module for use in compiled.transactions]
        self.source = compiled.source

    @property
    def lines(self) -> list[str]:
        """The plan as text."""
        return plan_lines(self.plan, self._engine)

    def rows(self, session: Any, transaction: Any, given: Given = ()) -> list[Row]:
        """All rows, as the transaction sees them now."""
        readers = list(map(transaction.reader, self._modules)) if self._modules else []
        batches = list(self._function(GivenRuntime(session, transaction, readers, given)))
        return batches[0] if len(batches) == 1 else [row for batch in batches for row in batch]
