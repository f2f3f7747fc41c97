"""Writing the programs of mutations: query programs that also build, judge and write rows.

A :class:`MutationCompiler` is the query compiler with what mutations need on top:
common tables shared by all parts of a statement, expressions over rows that
stand in variables (``n[2]`` for a new row's third column), and comprehensions
over lists of such rows::

    rows = [(r[0], n1 + 1) for r in source]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quereus_store.execute.codegen import kernels
from quereus_store.execute.codegen.compiler import QueryCompiler
from quereus_store.execute.codegen.expressions import ExpressionCompiler
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.codegen.metering import Meters
from quereus_store.execute.codegen.pipeline import Clause, Pipeline
from quereus_store.execute.counting import rule_context
from quereus_store.plan.binder.context import BindContext
from quereus_store.plan.expressions import BoundExpression, Column, subplans
from quereus_store.plan.nodes import CommonTable, ParameterRows, PlanNode, Project, Values
from quereus_store.plan.optimizer import optimize
from quereus_store.schema.objects import ColumnSchema, TableSchema
from quereus_store.types import ANY, REAL, LogicalType, convert
from quereus_store.types.values import int_to_float

if TYPE_CHECKING:
    from quereus_store.execute.engine import Engine


@dataclass(frozen=True, slots=True)
class Workshop:
    """What compiling one statement needs; ``follow_ups`` keeps the compiled actions of foreign keys.

    With ``meters`` the statement's own program measures itself.
    """

    engine: Engine
    context: BindContext
    follow_ups: dict[Any, Any] = field(default_factory=dict)
    meters: Meters | None = None

    @property
    def enforces_keys(self) -> bool:
        """Whether foreign keys are checked (option ``foreign_keys``)."""
        return bool(self.context.options.get("foreign_keys", True))

    def optimize(self, plan: PlanNode) -> PlanNode:
        """The physical plan."""
        if isinstance(plan, ParameterRows) or (isinstance(plan, Values) and plan.rows == ((),)):
            return plan
        return optimize(plan, rule_context(self.engine, self.context))

    def optimize_all(
        self, expressions: Sequence[BoundExpression], columns: Sequence[Column]
    ) -> tuple[BoundExpression, ...]:
        """Expressions over these columns with their subqueries' plans made physical."""
        if not any(True for expression in expressions for _ in subplans(expression)):
            return tuple(expressions)
        number = self.context.number
        output = tuple([Column(number(), "", expression.type) for expression in expressions])
        plan = self.optimize(Project(output, ParameterRows(tuple(columns), ()), tuple(expressions)))
        assert isinstance(plan, Project)
        return plan.expressions


class MutationCompiler(QueryCompiler):
    """The state of one mutation program."""

    def __init__(self, workshop: Workshop, meters: Meters | None = None) -> None:
        super().__init__(workshop.engine, meters, workshop.context.options.get("memory_limit", 0))
        self.workshop = workshop
        self.keeps_chance_results = True

    # -- tables ---------------------------------------------------------------

    def writer(self, table: TableSchema) -> str:
        """The variable that holds the transaction to write a table in (and to read it)."""
        return self.transaction(table, False)

    def bind_common_tables(self, tables: Iterable[CommonTable]) -> None:
        """Write the statement's WITH members as functions, which the whole statement evaluates once."""
        for table in tables:
            rows = self.rows_of(self.workshop.optimize(table.plan))
            name = self.module.name("table_")
            with self.module.block(f"def {name}():"):
                self.module.line(f"return {self.module.helper(kernels.gather)}({rows})")
            rows = f"rt.common_rows({table.id}, {name})"
            self.common_tables[table.id] = f"{self.module.helper(kernels.in_batches)}({rows})"

    # -- rows in variables ------------------------------------------------------

    def images(self, bindings: Mapping[int, str]) -> Pipeline:
        """A scope in which columns are read from variables that are at hand."""
        return Pipeline("", "", Clause("for", "", ""), bindings=dict(bindings))

    def loop(
        self,
        source: str,
        target: str,
        bindings: Mapping[int, str],
        whole: Mapping[str, tuple[int, ...]] | None = None,
    ) -> Loop:
        """A comprehension over ``source``, its rows in ``target``."""
        pipeline = Pipeline(
            source, "", Clause("for", source, target), bindings=dict(bindings), whole=dict(whole or {})
        )
        return Loop(self, pipeline, self.expressions(pipeline))

    def function(
        self,
        name: str,
        arguments: str,
        bindings: Mapping[int, str],
        body: Callable[[ExpressionCompiler], str],
    ) -> str:
        """Write a function whose result is an expression over rows given as arguments; its name."""
        pipeline = self.images(bindings)
        result = body(self.expressions(pipeline))
        with self.module.block(f"def {name}({arguments}):"):
            for line in pipeline.prologue:
                self.module.line(line)
            self.module.line(f"return {result}")
        return name

    def queried(self, plan: PlanNode, bindings: Mapping[int, str]) -> str:
        """Source of the only row of a plan that reads rows in variables."""
        return self.scope(self.images(bindings)).subquery(self.workshop.optimize(plan), "row", True)

    def cell(self, value: str, column: ColumnSchema, source_type: LogicalType) -> str:
        """Source of a value converted for a column; values of a clean class pass untouched."""
        if column.type is ANY:
            return value
        converter = self.module.bind("converted", _converter(column, source_type))
        clean = self.module.bind("clean", column.type.clean)
        variable = self.module.name("v")
        if column.type is not REAL or source_type is REAL:
            return f"({variable} if type({variable} := {value}) in {clean} else {converter}({variable}))"
        # Whole numbers among reals are common.
        kind, real = self.module.name("k"), self.module.helper(int_to_float)
        otherwise = f"{real}({variable}) if {kind} is int else {converter}({variable})"
        return f"({variable} if ({kind} := type({variable} := {value})) in {clean} else {otherwise})"


@dataclass(slots=True)
class Loop:
    """A comprehension under construction."""

    compiler: MutationCompiler
    pipeline: Pipeline
    expressions: ExpressionCompiler

    def comprehension(self, element: str, condition: str = "") -> str:
        """Write what must come before; the comprehension's source."""
        for line in self.pipeline.prologue:
            self.compiler.module.line(line)
        self.pipeline.prologue.clear()
        clauses = self.compiler.comprehension(self.pipeline)
        return f"[{element} {clauses}{f' if {condition}' if condition else ''}]"


def columns_of(row: str, columns: Sequence[Column]) -> dict[int, str]:
    """Where each column of a row stands that a variable holds."""
    return {column.id: f"{row}[{position}]" for position, column in enumerate(columns)}


def row_display(row: str, replaced: Mapping[int, str], width: int) -> str:
    """Source of a row with some cells replaced."""
    return tuple_display([replaced.get(position, f"{row}[{position}]") for position in range(width)])


def _converter(column: ColumnSchema, source_type: LogicalType) -> Callable[[Any], Any]:
    name, target = column.name, column.type

    def converted(value: Any) -> Any:
        return convert(value, target, name, source_type)

    return converted
