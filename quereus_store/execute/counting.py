"""How many rows the optimizer takes tables to have.

Modules plan with the rows that are committed.  Two statements need other numbers: one within a transaction
that has changed rows itself (:class:`OwnCounts`), and the programs of views, which outlive
the numbers of today.  :class:`CountedTables` puts a function in the place of the modules' numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import ref

from quereus_store.modules.contract import AccessPlan, AccessRequest, Row
from quereus_store.plan.binder.context import BindContext
from quereus_store.plan.expressions import BoundExpression
from quereus_store.plan.optimizer import RuleContext
from quereus_store.schema.objects import IndexSchema, TableSchema
from quereus_store.types import Collation

if TYPE_CHECKING:
    from quereus_store.execute.engine import Engine
    from quereus_store.execute.transactions import ReadView

RowCounts = Callable[[TableSchema], float]


class CountedTables:
    """The engine's services to rules, with the numbers of rows that a function gives."""

    def __init__(self, engine: Engine, row_count: RowCounts) -> None:
        self._engine = engine
        self.row_count = row_count

    def collation(self, name: str) -> Collation:
        """A registered collation."""
        return self._engine.collation(name)

    def index_predicate(self, table: TableSchema, index: IndexSchema) -> BoundExpression | None:
        """The bound predicate of a partial index."""
        return self._engine.index_predicate(table, index)

    def statistics(self, table: TableSchema) -> Mapping[str, Any] | None:
        """What ANALYZE found out about a table."""
        return self._engine.statistics(table)

    def first_rows(self, table: TableSchema) -> Sequence[Row]:
        """Some rows with which a table begins, as last committed."""
        return self._engine.first_rows(table)

    def plan_access(self, table: TableSchema, request: AccessRequest) -> AccessPlan:
        """How the table's module would serve a request of so many rows."""
        rows = int(self.row_count(table))
        return self._engine.plan_access(table, replace(request, estimated_rows=rows))


class OwnCounts:
    """The numbers of rows as a transaction sees them; after its end, those that are committed."""

    __slots__ = ("_engine", "_transaction")

    def __init__(self, transaction: ReadView) -> None:
        self._engine = transaction.engine
        # What is prepared is kept for longer than the transaction.
        self._transaction = ref(transaction)

    def __call__(self, table: TableSchema) -> float:
        transaction = self._transaction()
        return self._engine.row_count(table) if transaction is None else transaction.row_count(table)


def rule_context(engine: Engine, context: BindContext) -> RuleContext:
    """What the optimizer is given for a statement."""
    counts = context.row_count
    services = engine if counts is None else CountedTables(engine, counts)
    return RuleContext(services, context.number, context.options)
