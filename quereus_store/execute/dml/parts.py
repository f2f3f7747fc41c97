"""The pieces of a statement as functions of single rows, for the careful way.

A program gives a fresh set of them for each execution, since they read its
parameters and snapshots.  Where rows change between two calls, a subquery is
evaluated anew for each row; one that depends on no row is evaluated once, except
in CHECKs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from quereus_store.execute.codegen.compiler import preamble_of
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.dml import emission
from quereus_store.execute.dml.generation import MutationCompiler, Workshop, columns_of, row_display
from quereus_store.execute.dml.rules import upserts_of
from quereus_store.execute.dml.runtime import Reads, reads_of
from quereus_store.modules.contract import Row
from quereus_store.plan.expressions import BoundExpression
from quereus_store.plan.mutations import (
    CheckPlan,
    DeletePlan,
    InsertPlan,
    MutationPlan,
    UpdatePlan,
    UpsertPlan,
)
from quereus_store.plan.nodes import CommonTable
from quereus_store.schema.objects import TableSchema

Pair = Callable[[Row, Row | None], Any]
Triple = Callable[[Row, Row | None, Row], Any]


@dataclass(frozen=True, slots=True)
class UpsertParts:
    """One ON CONFLICT clause: functions of the existing and the proposed row."""

    where: Callable[[Row, Row], bool] | None
    compose: Callable[[Row, Row], Row] | None
    violated: Sequence[Pair]
    substitutes: Sequence[Callable[[Row], Any] | None]


@dataclass(frozen=True, slots=True)
class Parts:
    """A statement taken apart.

    ``read`` gives the source's rows; ``build`` the new row of one of them, converted and without
    generated columns, which ``generate`` fills in.  ``violated`` says for each check whether a pair of
    new and old row violates it; ``returning`` takes the source row as well; ``substitutes`` gives for
    each NOT NULL column what REPLACE puts there.
    """

    read: Callable[[], list[Row]]
    build: Callable[[Row], Row] | None
    generate: Callable[[Row], Row]
    violated: Sequence[Pair]
    substitutes: Sequence[Callable[[Row], Any] | None]
    returning: Triple | None
    upserts: Sequence[UpsertParts]


def compile_parts(
    workshop: Workshop, plan: MutationPlan, enclosing: tuple[CommonTable, ...], written: frozenset[str]
) -> tuple[Callable[[Any], Parts], Reads]:
    """A program that gives the parts of a statement for one execution, and what it reads."""
    writer = _Writer(workshop, plan)
    compiler = writer.compiler
    module = compiler.module
    with module.block("def program(rt):"):
        compiler.bind_common_tables(enclosing)
        compiler.bind_common_tables(plan.common_tables)
        compiler.writer(plan.table)
        names = [
            writer.read(),
            writer.build(),
            writer.generate(),
            writer.checks(plan.checks),
            writer.substitutes([item.substitute for item in plan.not_null]),
            writer.returning(),
            tuple_display([writer.upsert(clause) for clause in upserts_of(plan)]),
        ]
        module.line(f"return {module.helper(Parts)}({', '.join(names)})")
    module.fill_preamble(preamble_of(compiler))
    return module.compile("program"), reads_of(compiler.transactions, written)


class _Writer:
    """Writes one function a part; each method gives the source that names what it wrote."""

    def __init__(self, workshop: Workshop, plan: MutationPlan) -> None:
        self.workshop = workshop
        self.plan = plan
        self.compiler = MutationCompiler(workshop)
        self.table: TableSchema = plan.table
        self.new = columns_of("n", plan.new)
        self.both = {**self.new, **columns_of("o", plan.old)}

    def read(self) -> str:
        """The source's rows."""
        module = self.compiler.module
        rows = emission.all_rows(self.compiler, self.workshop.optimize(self.plan.source))
        with module.block("def read():"):
            module.line(f"return {rows}")
        return "read"

    def build(self) -> str:
        """The new row of a source row; there is none for a DELETE."""
        plan = self.plan
        if isinstance(plan, DeletePlan):
            return "None"
        assert isinstance(plan, InsertPlan | UpdatePlan)
        columns = plan.source.columns
        row = self._optimized(plan.row, columns)
        return self.compiler.function(
            "build",
            "s",
            columns_of("s", columns),
            lambda expressions: emission.cells(self.compiler, expressions, row, plan.converts, plan.table),
        )

    def generate(self) -> str:
        """The row with its generated columns."""
        module, plan = self.compiler.module, self.plan
        lines = []
        for generated, expression in zip(
            plan.generated, emission.optimized_generated(self.compiler, plan), strict=True
        ):
            pipeline = self.compiler.images(self.new)
            value = emission.generated_cell(
                self.compiler, self.compiler.expressions(pipeline), generated, expression, self.table
            )
            lines += pipeline.prologue
            lines.append(f"n = {row_display('n', {generated.position: value}, len(self.table.columns))}")
        with module.block("def generate(n):"):
            for line in (*lines, "return n"):
                module.line(line)
        return "generate"

    def checks(self, checks: Sequence[CheckPlan]) -> str:
        """One test a CHECK; subqueries see the table as it is when the test runs."""
        compiler = self.compiler
        compiler.keeps_constant_results = compiler.keeps_correlated_results = False
        columns = (*self.plan.new, *self.plan.old)
        expressions = self.workshop.optimize_all([check.expression for check in checks], columns)
        names = [
            compiler.function(
                compiler.module.name("violated"),
                "n, o",
                self.both,
                lambda compiled, expression=expression: compiled.condition(expression, False),  # type: ignore[misc]
            )
            for expression in expressions
        ]
        compiler.keeps_constant_results = compiler.keeps_correlated_results = True
        return tuple_display(names)

    def substitutes(self, values: Sequence[BoundExpression | None]) -> str:
        """One function a NOT NULL column: what stands for NULL under REPLACE."""
        optimized = self._optimized(values, self.plan.new)
        return tuple_display(
            [
                "None"
                if value is None
                else self._changing(self.compiler.module.name("substitute"), "n", self.new, value)
                for value in optimized
            ]
        )

    def returning(self) -> str:
        """The RETURNING row of new row, old row and source row."""
        plan = self.plan.returning
        if plan is None:
            return "None"
        columns = (*self.plan.new, *self.plan.old, *self.plan.beside)
        optimized = self.workshop.optimize_all(plan.expressions, columns)
        bindings = {**self.both, **emission.beside_columns(self.plan)}
        self.compiler.keeps_correlated_results = False
        name = self.compiler.function(
            "returning", "n, o, s", bindings, lambda compiled: tuple_display(compiled.values(optimized))
        )
        self.compiler.keeps_correlated_results = True
        return name

    def upsert(self, clause: UpsertPlan) -> str:
        """The functions of an ON CONFLICT clause; ``o`` is the existing row, ``n`` the proposed one."""
        compiler, module = self.compiler, self.compiler.module
        where = compose = "None"
        self.compiler.keeps_correlated_results = False
        if clause.where is not None:
            (condition,) = self._optimized([clause.where], (*self.plan.new, *self.plan.old))
            where = compiler.function(
                module.name("where"),
                "o, n",
                self.both,
                lambda compiled: compiled.condition(condition),  # type: ignore[arg-type]
            )
        if clause.row:
            compose = self._compose(clause)
        self.compiler.keeps_correlated_results = True
        violated = self.checks(clause.checks)
        substitutes = self.substitutes([item.substitute for item in clause.not_null])
        return f"{module.helper(UpsertParts)}({where}, {compose}, {violated}, {substitutes})"

    def _compose(self, clause: UpsertPlan) -> str:
        """The row that an ON CONFLICT clause makes of ``o`` and ``n``, with ``q`` what its queries assign."""
        compiler, module = self.compiler, self.compiler.module
        row = self._optimized(clause.row, (*self.plan.new, *self.plan.old))
        queried = clause.queried
        assigned = () if queried is None else queried.columns
        name = compiler.function(
            module.name("compose"),
            "o, n" if queried is None else "o, n, q",
            {**self.both, **columns_of("q", assigned)},
            lambda compiled: emission.cells(compiler, compiled, row, clause.converts, self.table),
        )
        if queried is None:
            return name
        return f"lambda o, n: {name}(o, n, {compiler.queried(queried, self.both)})"

    def _changing(self, name: str, arguments: str, bindings: dict[int, str], value: BoundExpression) -> str:
        """A function of an expression whose correlated subqueries are evaluated anew each time."""
        self.compiler.keeps_correlated_results = False
        self.compiler.function(name, arguments, bindings, lambda compiled: compiled.value(value))
        self.compiler.keeps_correlated_results = True
        return name

    def _optimized(
        self, row: Sequence[BoundExpression | None], columns: Sequence[Any]
    ) -> list[BoundExpression | None]:
        optimized = iter(self.workshop.optimize_all([value for value in row if value is not None], columns))
        return [None if value is None else next(optimized) for value in row]
