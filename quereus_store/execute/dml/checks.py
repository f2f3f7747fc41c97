"""CHECKs that wait for the commit, because they read other rows.

A deferred CHECK judges the rows that exist when the transaction commits
(dml-transactions-constraints, sections 4 and 10): each statement queues the rows
that it wrote, and a row that has since gone or changed is passed over (what
changed it queued the new image).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from quereus_store.execute.codegen.compiler import preamble_of
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.dml.generation import MutationCompiler, Workshop, columns_of
from quereus_store.execute.dml.runtime import MutationRuntime, reads_of
from quereus_store.execute.dml.violations import check_violation
from quereus_store.modules.contract import Row, Table
from quereus_store.plan.binder.rows import bind_check, new_row
from quereus_store.plan.mutations import CheckPlan, MutationPlan
from quereus_store.schema.objects import Catalog, Operation, TableSchema

if TYPE_CHECKING:
    from quereus_store.execute.transactions import Transaction


def current_table(catalog: Catalog, table: TableSchema) -> TableSchema | None:
    """What has become of a table within the transaction (renamed, altered); None if it is gone.

    It is known by the place of its rows, and by its name where a new key has moved them.
    """
    found = catalog.table(table.schema, table.name)
    if found is not None and found.storage_id == table.storage_id:
        return found
    for schema in catalog.schemas.values():
        for other in schema.tables.values():
            if other.storage_id == table.storage_id and other.module == table.module:
                return other
    return found


def same_layout(one: TableSchema, other: TableSchema) -> bool:
    """Whether the rows of one schema of a table may be read as rows of another."""
    return one.primary_key == other.primary_key and [column.type for column in one.columns] == [
        column.type for column in other.columns
    ]


def key_of(table: TableSchema, row: Row) -> tuple[Any, ...]:
    """A row's primary key."""
    return tuple([row[part.column] for part in table.primary_key.parts])


def surviving(handle: Table, reader: Any, table: TableSchema, rows: Sequence[Row]) -> list[int]:
    """The positions of the rows that are in the table as they are given."""
    found = handle.points(reader, [key_of(table, row) for row in rows])
    return [position for position, (row, now) in enumerate(zip(rows, found, strict=True)) if now == row]


def absent(handle: Table, reader: Any, table: TableSchema, rows: Sequence[Row]) -> list[Row]:
    """The rows whose keys are not in the table."""
    found = handle.points(reader, [key_of(table, row) for row in rows])
    return [row for row, now in zip(rows, found, strict=True) if now is None]


class DeferredChecks:
    """The deferred CHECKs of one statement."""

    def __init__(
        self,
        workshop: Workshop,
        table: TableSchema,
        checks: tuple[CheckPlan, ...],
        plan: MutationPlan,
        operation: Operation,
    ) -> None:
        self._workshop = workshop
        self._table = table
        self._checks = checks
        self._plan = plan
        self._operation = operation
        self._rebound: dict[Operation, DeferredChecks] = {}

    def enqueue(self, runtime: MutationRuntime, new: Sequence[Row], old: Sequence[Row] | None) -> None:
        """Judge these rows when the transaction commits (``old``: what they replaced)."""
        runtime.transaction.deferred.append(partial(self._judge, runtime, new, old))

    def _judge(
        self,
        runtime: MutationRuntime,
        new: Sequence[Row],
        old: Sequence[Row] | None,
        transaction: Transaction,
    ) -> None:
        table = self._table
        if transaction.catalog.version != self._workshop.context.catalog.version:
            # Not only this table may have been altered, but any that the checks read.
            now = current_table(transaction.catalog, table)
            if now is not None:
                self._judge_altered(runtime, now, new, old, transaction)
            return
        engine = self._workshop.engine
        reader = transaction.reader(table.module)
        if self._operation is Operation.DELETE:
            assert old is not None
            rows = before = absent(engine.table(table), reader, table, old)
        else:
            positions = surviving(engine.table(table), reader, table, new)
            rows = [new[position] for position in positions]
            before = rows if old is None else [old[position] for position in positions]
        if not rows:
            return
        program, reads = self._compiled
        for check, fails in zip(self._checks, program(runtime.fork(reads, transaction)), strict=True):
            failing = fails(rows, before)
            if failing:
                raise check_violation(table, check.constraint, failing[0])

    def _judge_altered(
        self,
        runtime: MutationRuntime,
        now: TableSchema,
        new: Sequence[Row],
        old: Sequence[Row] | None,
        transaction: Transaction,
    ) -> None:
        """The schema was changed after the write: the checks of today judge the rows of today."""
        engine = self._workshop.engine
        operation = self._operation
        if not same_layout(now, self._table):
            if operation is Operation.DELETE:
                return
            new = [row for batch in engine.table(now).scan(transaction.reader(now.module)) for row in batch]
            old, operation = None, Operation.INSERT
        rebound = self._rebound.get(operation)
        if rebound is None or rebound._workshop.context.catalog.version != transaction.catalog.version:
            context = engine.bind_context(
                transaction.catalog, runtime.schema_path, runtime.options, None, transaction.started_with
            )
            rebound = self._rebound[operation] = self._bound_anew(Workshop(engine, context), now, operation)
        if rebound._checks:
            rebound._judge(runtime, new, old, transaction)

    def _bound_anew(self, workshop: Workshop, now: TableSchema, operation: Operation) -> DeferredChecks:
        """The same checks over the catalog of the commit."""
        context = workshop.context
        plan = replace(self._plan, common_tables=(), new=new_row(context, now), old=new_row(context, now))
        variables = plan.context.variables
        # One of the two is still the same whether a constraint or something in it was renamed.
        names = {check.constraint.name.lower() for check in self._checks}
        expressions = [check.constraint.expression for check in self._checks]
        checks = tuple(
            CheckPlan(check, bind_check(context, now, check, operation, plan.new, plan.old, variables), True)
            for check in now.checks
            if check.name.lower() in names or check.expression in expressions
        )
        return DeferredChecks(workshop, now, checks, plan, operation)

    @cached_property
    def _compiled(self) -> tuple[Any, Any]:
        """``program(rt)`` gives a function per check: the rows of a batch that violate it."""
        plan = self._plan
        compiler = MutationCompiler(self._workshop)
        module = compiler.module
        bindings = {**columns_of("n", plan.new), **columns_of("o", plan.old)}
        expressions = self._workshop.optimize_all(
            [check.expression for check in self._checks], (*plan.new, *plan.old)
        )
        names = []
        with module.block("def program(rt):"):
            compiler.bind_common_tables(plan.common_tables)
            for expression in expressions:
                loop = compiler.loop("zip(new, old)", "n, o", bindings)
                condition = loop.expressions.condition(expression, False)
                name = module.name("violated")
                with module.block(f"def {name}(new, old):"):
                    module.line(f"return {loop.comprehension('n', condition)}")
                names.append(name)
            module.line(f"return {tuple_display(names)}")
        module.fill_preamble(preamble_of(compiler))
        return module.compile("program"), reads_of(compiler.transactions, frozenset())
