"""Expressions over rows at hand, as functions of a batch, with everything that SQL expressions may do.

Backfilling a column and validating a CHECK need values that a table's rows give, computed
while the rows stream past.  The rows stand in for a statement's parameters, so the same
compiler serves, subqueries included.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from quereus_store.execute.codegen.compiler import compile_query
from quereus_store.execute.counting import rule_context
from quereus_store.execute.prepared import transactions_for
from quereus_store.execute.runtime import Runtime
from quereus_store.execute.transactions import Transaction
from quereus_store.modules.contract import Row
from quereus_store.plan.binder import BindContext
from quereus_store.plan.expressions import BoundExpression, Column
from quereus_store.plan.nodes import ParameterRows, PlanNode, Project
from quereus_store.plan.optimizer import optimize

if TYPE_CHECKING:
    from quereus_store.execute.session import Session


class RowProgram:
    """A compiled function from rows with ``columns`` to one tuple of values per row."""

    def __init__(
        self,
        session: Session,
        transaction: Transaction,
        context: BindContext,
        columns: Sequence[Column],
        expressions: Sequence[BoundExpression],
    ) -> None:
        self._session = session
        self._transaction = transaction
        source = ParameterRows(tuple(columns), tuple(range(len(columns))))
        outputs = tuple(
            Column(context.number(), f"value_{position}", expression.type, expression.nullable)
            for position, expression in enumerate(expressions)
        )
        plan: PlanNode = Project(outputs, source, tuple(expressions))
        engine = session.engine
        self._compiled = compile_query(optimize(plan, rule_context(engine, context)), engine)

    def __call__(self, rows: list[Row]) -> list[tuple[Any, ...]]:
        """The values for each row, in the order of the rows."""
        transactions = transactions_for(self._compiled, self._transaction)
        runtime = Runtime(self._session, self._transaction, (), transactions, rows)
        return list(chain.from_iterable(self._compiled.function(runtime)))
