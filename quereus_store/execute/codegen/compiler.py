"""From a physical plan to one Python function.

:func:`compile_query` walks the plan once.  Each operator (see ``operators/``)
returns an open :class:`Pipeline`; breakers close the pipelines below them as
generator functions.  All of a statement's functions stand inside one function
``program(rt)``, so that parameters, snapshots and subqueries' results are plain
variables::

    def program(rt):
        x0 = rt.transactions[0]
        p0 = rt.parameters[0]
        def rows0():
            for batch0 in rt.watch.over(table0.scan(x0)):
                yield [(r0[0], r0[2]) for r0 in batch0 if r0[1] > p0]
        return rows0()

The function returns an iterable of batches.  A plan without free columns is
written at the outermost level, once; one that depends on outer columns becomes
a function of these columns with a cache of its results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from quereus_store.errors import SourcePosition
from quereus_store.execute.codegen import kernels
from quereus_store.execute.codegen.expressions import ExpressionCompiler
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.codegen.metering import Meters
from quereus_store.execute.codegen.pipeline import Clause, Pipeline, column_ids
from quereus_store.execute.codegen.source import SourceModule
from quereus_store.execute.spilling.files import LEAST_SHARE
from quereus_store.execute.spilling.replay import cached_within
from quereus_store.modules.contract import Table
from quereus_store.plan import nodes
from quereus_store.plan.analysis import is_deterministic
from quereus_store.plan.expressions import BoundExpression, Column, ColumnRef, InSubquery, subplans
from quereus_store.records import record
from quereus_store.schema.objects import TableSchema
from quereus_store.types import Collation
from quereus_store.types.comparison import comparison_plan, comparison_template
from quereus_store.types.sortkeys import identity_key

_MOST_NESTED = 15
"""So many clauses become nested statements; Python has a limit of 20 loops, comprehensions have none."""


class CompilerServices(Protocol):
    """What the compiler needs of the engine."""

    def collation(self, name: str) -> Collation:
        """A registered collation."""
        ...

    def table(self, schema: TableSchema) -> Table:
        """The module's handle for a table."""
        ...


@record(frozen=True, slots=True)
class TransactionUse:
    """One transaction that a program reads in: of which module, current or committed state."""

    module: str
    committed: bool = False


@record(frozen=True, slots=True)
class CompiledQuery:
    """A runnable plan: ``function(runtime)`` gives an iterable of batches of row tuples."""

    function: Callable[[Any], Any]
    source: str
    columns: tuple[Column, ...]
    transactions: tuple[TransactionUse, ...]
    mutations: tuple[Any, ...] = ()


class QueryCompiler:
    """The state of one compilation: the module being written, transactions, common tables."""

    def __init__(
        self, services: CompilerServices, meters: Meters | None = None, memory_limit: int = 0
    ) -> None:
        self.services = services
        self.meters = meters
        # Bytes that operators may hold together; 0 is no limit.
        self.memory_limit = memory_limit
        self.module = SourceModule()
        self.transactions: list[TransactionUse] = []
        self.mutations: list[Any] = []
        self.common_tables: dict[int, str] = {}
        self.working_sets: dict[int, str] = {}
        self.preamble: list[str] = []
        # Whether a subquery may be answered from an earlier result; not where rows change in between.
        self.keeps_constant_results = True
        self.keeps_correlated_results = True
        # Whether one that reads no row is evaluated once even if it is not deterministic.
        self.keeps_chance_results = False
        self._parameters: dict[int | str, str] = {}
        self._context_values: dict[int, str] = {}
        self._holders = 0
        self._outer: list[dict[int, str]] = [{}]

    # -- names ----------------------------------------------------------------

    def transaction(self, table: TableSchema, committed: bool) -> str:
        """The variable that holds the transaction to read a table in."""
        use = TransactionUse(table.module, committed)
        if use not in self.transactions:
            self.transactions.append(use)
        return f"x{self.transactions.index(use)}"

    def table(self, schema: TableSchema) -> str:
        """The global that holds a table's handle."""
        return self.module.bind("table", self.services.table(schema))

    def parameter(self, slot: int | str) -> str:
        """The variable that holds a parameter's value."""
        known = self._parameters.get(slot)
        if known is None:
            known = self._parameters[slot] = (
                f"p{slot}" if isinstance(slot, int) else f"p_{len(self._parameters)}"
            )
        return known

    def context_value(self, number: int) -> str:
        """The variable that holds a value of the mutation context."""
        name = f"k{number}"
        self._context_values[number] = name
        return name

    def outer_column(self, column_id: int) -> str | None:
        """The variable of a column of an enclosing query."""
        return self._outer[-1].get(column_id)

    def hoist(self, source: str) -> str:
        """A program-level variable for source that depends on parameters only."""
        name = self.module.name("constant_")
        self.preamble.append(f"{name} = {source}")
        return name

    def share(self) -> str:
        """The variable that holds one operator's share of the memory limit."""
        self._holders += 1
        return "share"

    @contextmanager
    def one_after_the_other(self) -> Iterator[Callable[[], None]]:
        """Write parts that do not run at the same time, so that their operators hold the same shares.

        The function is to be called before each part.
        """
        before = most = self._holders

        def begin() -> None:
            nonlocal most
            most = max(most, self._holders)
            self._holders = before

        yield begin
        self._holders = max(most, self._holders)

    def first_lines(self) -> list[str]:
        """The first lines of the program: snapshots, parameters, constants made of them."""
        lines = [f"x{index} = rt.transactions[{index}]" for index in range(len(self.transactions))]
        lines += [f"{name} = rt.parameters[{slot!r}]" for slot, name in self._parameters.items()]
        lines += [f"{name} = rt.context_values[{number}]" for number, name in self._context_values.items()]
        if self._holders:
            lines.append(f"share = {max(self.memory_limit // self._holders, LEAST_SHARE)}")
        return lines + self.preamble

    # -- pipelines ------------------------------------------------------------

    def open(self, node: nodes.PlanNode) -> Pipeline:
        """An open pipeline that produces a plan's rows."""
        pipeline = OPERATORS[type(node)](self, node)
        if self.meters is None:
            return pipeline
        return self.meters.attach(self, node, pipeline)

    def scope(self, pipeline: Pipeline) -> PipelineScope:
        """The scope of expressions over a pipeline's rows."""
        return PipelineScope(self, pipeline)

    def expressions(self, pipeline: Pipeline) -> ExpressionCompiler:
        """A compiler of expressions over a pipeline's rows."""
        return ExpressionCompiler(self.scope(pipeline))

    def over_batches(self, source: str, columns: Sequence[Column]) -> Pipeline:
        """A pipeline over batches of finished rows of these columns."""
        row = self.module.name("r")
        batch = self.module.name("batch")
        ids = column_ids(columns)
        return Pipeline(
            source=source,
            batch=batch,
            loop=Clause("for", batch, row),
            bindings={column_id: f"{row}[{index}]" for index, column_id in enumerate(ids)},
            whole={row: ids},
        )

    def close(self, pipeline: Pipeline, output: Sequence[int]) -> str:
        """Finish a pipeline; source of an iterable of batches of rows with these columns."""
        if pipeline.passes_batches_through(output) and not pipeline.prologue:
            return pipeline.source
        element = self.row_source(pipeline, output)
        if pipeline.has_one_batch:
            return f"({self._only_list(pipeline, element)},)"
        return self._rows_function(pipeline, element)

    def close_values(self, pipeline: Pipeline, elements: Callable[[ExpressionCompiler], str]) -> str:
        """Finish a pipeline whose rows are made by other source than plain columns."""
        return self._rows_function(pipeline, elements(self.expressions(pipeline)))

    def list_of(self, node: nodes.PlanNode) -> str:
        """Source of a list of all rows of a plan."""
        pipeline, output = self.open(node), column_ids(node.columns)
        gather = self.module.helper(kernels.gather)
        if pipeline.passes_batches_through(output) and not pipeline.prologue:
            return f"{gather}({pipeline.source})"
        element = self.row_source(pipeline, output)
        if pipeline.has_one_batch:
            return self._only_list(pipeline, element)
        return f"{gather}({self._rows_function(pipeline, element)})"

    @staticmethod
    def _only_list(pipeline: Pipeline, element: str) -> str:
        loop = replace(pipeline.loop, source=pipeline.only_batch)
        clauses = " ".join(clause.render() for clause in (loop, *pipeline.clauses))
        return f"[{element} {clauses}]"

    def _rows_function(self, pipeline: Pipeline, element: str) -> str:
        name = self.module.name("rows")
        with self.module.block(f"def {name}():"):
            self.batch_loop(pipeline, self.yielding(pipeline, element))
        return f"{name}()"

    def yielding(self, pipeline: Pipeline, element: str) -> str:
        """The statement that hands on what comes of a batch.

        With a memory limit a join does so bit by bit, since a batch of a side may have any number of matches.
        """
        rows = f"{element} {self.comprehension(pipeline)}"
        if self.memory_limit and any(clause.kind == "for" for clause in pipeline.clauses):
            return f"yield from {self.module.helper(kernels.batches_of)}({rows})"
        return f"yield [{rows}]"

    def row_source(self, pipeline: Pipeline, output: Sequence[int]) -> str:
        """Source of the tuple of these columns: a row variable where one holds just them."""
        for row, held in pipeline.whole.items():
            if held == tuple(output):
                return row
        scope = self.scope(pipeline)
        repeated = {column for column, times in Counter(output).items() if times > 1}
        compiler = ExpressionCompiler(scope)
        items = []
        for column in output:
            pending = pipeline.pending.get(column)
            if pending is not None and column not in repeated:
                items.append(compiler.value(pending))
            else:
                items.append(scope.column(column))
        return tuple_display(items)

    def variable(self, pipeline: Pipeline, source: str) -> str:
        """A loop variable that holds the value of source from here on."""
        name = self.module.name("v")
        pipeline.clauses.append(Clause("for", f"({source},)", name))
        return name

    @staticmethod
    def comprehension(pipeline: Pipeline) -> str:
        """The loop and its clauses as they stand in a comprehension."""
        return " ".join(clause.render() for clause in (pipeline.loop, *pipeline.clauses))

    def batch_loop(self, pipeline: Pipeline, *body: str) -> None:
        """The loop over batches around statements."""
        for line in pipeline.prologue:
            self.module.line(line)
        with self.module.block(f"for {pipeline.batch} in {pipeline.source}:"):
            for line in (*pipeline.per_batch, *body):
                self.module.line(line)

    def row_loop(self, pipeline: Pipeline, body: Sequence[str]) -> None:
        """Write a pipeline as nested statements around a body, at the current place."""
        if len(pipeline.clauses) > _MOST_NESTED:
            self.materialise_rows(pipeline)
        for line in pipeline.prologue:
            self.module.line(line)
        with self.module.block(f"for {pipeline.batch} in {pipeline.source}:"):
            for line in pipeline.per_batch:
                self.module.line(line)
            self._nest((pipeline.loop, *pipeline.clauses), body)

    def _nest(self, clauses: Sequence[Clause], body: Sequence[str]) -> None:
        if not clauses:
            for line in body:
                self.module.line(line)
            return
        with self.module.block(clauses[0].render() + ":"):
            self._nest(clauses[1:], body)

    def rows_of(self, node: nodes.PlanNode, output: Sequence[int] | None = None) -> str:
        """Source of an iterable of batches with a plan's rows (or some columns of them)."""
        return self.close(self.open(node), column_ids(node.columns) if output is None else output)

    def materialise_rows(self, pipeline: Pipeline) -> None:
        """End the comprehension so far: the batch becomes a list, to be worked on as a whole.

        Afterwards ``pipeline.loop`` runs over the variable in ``pipeline.loop.source``.
        """
        if not pipeline.clauses:
            return
        variables = pipeline.row_variables()
        element = variables[0] if len(variables) == 1 else f"({', '.join(variables)})"
        batch = self.module.name("batch")
        pipeline.per_batch.append(f"{batch} = [{element} {self.comprehension(pipeline)}]")
        pipeline.clauses = []
        pipeline.loop = Clause("for", batch, element)

    # -- subqueries -----------------------------------------------------------

    def subquery(
        self,
        plan: nodes.PlanNode,
        kind: str,
        pipeline_scope: PipelineScope,
        conditional: bool,
        expression: Any,
    ) -> str:
        """Source that evaluates a subquery for the current row."""
        free = sorted(nodes.free_columns(plan))
        finish = _SUBQUERY_RESULTS[kind](self, plan, expression)
        arguments = [pipeline_scope.column(column) for column in free]
        name = self.define_function(kind, plan, free, finish)
        if free or not self.is_evaluated_once(plan):
            return f"{name}({', '.join(arguments)})"
        once = f"{name}_once"
        if not conditional and pipeline_scope.pipeline is not None:
            variable = self.module.name("value")
            pipeline_scope.pipeline.prologue.append(f"{variable} = {once}()")
            return variable
        return f"{once}()"

    def is_evaluated_once(self, plan: nodes.PlanNode) -> bool:
        """Whether a plan that reads no outer column gives its rows once for the whole program."""
        return self.keeps_constant_results and (self.keeps_chance_results or is_deterministic(plan))

    def define_function(
        self, stem: str, plan: nodes.PlanNode, free: Sequence[int], finish: Callable[[str], str]
    ) -> str:
        """Write a plan as a function of its free columns; the name of the (caching) function."""
        name = self.module.name(f"{stem}_")
        if not free and not self._uses_local_tables(plan):
            with self.module.outermost():
                self._write_function(name, plan, free, finish)
        else:
            self._write_function(name, plan, free, finish)
        return name

    def _write_function(
        self, name: str, plan: nodes.PlanNode, free: Sequence[int], finish: Callable[[str], str]
    ) -> None:
        names = {column: f"c{column}" for column in free}
        self._outer.append({**self._outer[-1], **names})
        with self.module.block(f"def {name}({', '.join(names.values())}):"):
            self.module.line(f"return {finish(self.rows_of(plan))}")
        self._outer.pop()
        if free:
            if self.keeps_correlated_results and is_deterministic(plan):
                self.module.line(f"{name} = {self._cached(name)}")
        elif self.is_evaluated_once(plan):
            self.module.line(f"{name}_once = {self.module.helper(kernels.once)}({name})")

    def _cached(self, name: str) -> str:
        """Source of a function that keeps its results by its arguments."""
        if self.memory_limit:
            return f"{self.module.helper(cached_within)}({name}, {self.share()})"
        return f"{self.module.helper(kernels.cached)}({name})"

    def _uses_local_tables(self, plan: nodes.PlanNode) -> bool:
        """Whether a plan reads common tables that are defined inside the function being written."""
        if self.module.depth <= 1:
            return False
        return any(isinstance(part, nodes.CommonTableScan) for part in every_node(plan))


class PipelineScope:
    """Resolves names in expressions over the rows of one pipeline (or of none)."""

    def __init__(self, compiler: QueryCompiler, pipeline: Pipeline | None) -> None:
        self.compiler = compiler
        self.module = compiler.module
        self.pipeline = pipeline

    def column(self, column_id: int) -> str:
        """Source of a column: bound by the pipeline, computed now, or a variable of an outer query."""
        pipeline = self.pipeline
        if pipeline is not None:
            known = pipeline.bindings.get(column_id)
            if known is not None:
                return known
            pending = pipeline.pending.pop(column_id, None)
            if pending is not None:
                source = ExpressionCompiler(self).value(pending)
                variable = self.compiler.variable(pipeline, source)
                pipeline.bindings[column_id] = variable
                return variable
        outer = self.compiler.outer_column(column_id)
        if outer is not None:
            return outer
        return f"c{column_id}"

    def parameter(self, slot: int | str) -> str:
        """Source of a parameter."""
        return self.compiler.parameter(slot)

    def context_value(self, number: int) -> str:
        """Source of a value of the mutation context."""
        return self.compiler.context_value(number)

    def collation(self, name: str) -> Collation:
        """A registered collation."""
        return self.compiler.services.collation(name)

    def context(self) -> str:
        """Source of the statement's runtime context."""
        return "rt"

    def hoist(self, source: str) -> str:
        """A variable for row-independent source."""
        return self.compiler.hoist(source)

    def subquery(self, plan: nodes.PlanNode, kind: str, conditional: bool, extra: Any = None) -> str:
        """Source that evaluates a subquery."""
        return self.compiler.subquery(plan, kind, self, conditional, extra)


def _scalar_result(
    compiler: QueryCompiler, plan: nodes.PlanNode, position: SourcePosition | None
) -> Callable[[str], str]:
    place = "" if position is None else f", {compiler.module.bind('place', position)}"
    return lambda rows: f"{compiler.module.helper(kernels.scalar_result)}({rows}{place})"


def _exists_result(compiler: QueryCompiler, plan: nodes.PlanNode, _: Any) -> Callable[[str], str]:
    return lambda rows: f"{compiler.module.helper(kernels.has_rows)}({rows})"


def _row_result(compiler: QueryCompiler, plan: nodes.PlanNode, _: Any) -> Callable[[str], str]:
    return lambda rows: f"{compiler.module.helper(kernels.gather)}({rows})[0]"


def _rows_result(compiler: QueryCompiler, plan: nodes.PlanNode, _: Any) -> Callable[[str], str]:
    return lambda rows: f"{compiler.module.helper(kernels.gather)}({rows})"


def _members_result(
    compiler: QueryCompiler, plan: nodes.PlanNode, expression: InSubquery
) -> Callable[[str], str]:
    """The set of a subquery's rows, with the means to compare an operand to its members."""
    factory = kernels.Members
    probes: list[Any] = []
    for operand, column, using in zip(expression.operands, plan.columns, expression.using, strict=True):
        collation = compiler.services.collation(using)
        comparison = comparison_plan(operand.type, column.type)
        if kernels.hashable_mode(comparison.mode) and (
            comparison.left_type is comparison.right_type or comparison.equality_is_native
        ):
            recipe = identity_key(comparison.right_type, True, collation)
            probes.append(kernels.Probe(recipe.function, None))
        else:
            template = comparison_template(comparison, "=", collation)
            probes.append(kernels.Probe(None, template.compile(2)))
    name = compiler.module.bind("probes", tuple(probes))
    return lambda rows: f"{compiler.module.helper(factory)}({rows}, {name})"


_SUBQUERY_RESULTS: dict[str, Callable[[QueryCompiler, nodes.PlanNode, Any], Callable[[str], str]]] = {
    "scalar": _scalar_result,
    "exists": _exists_result,
    "row": _row_result,
    "rows": _rows_result,
    "members": _members_result,
}


def every_node(plan: nodes.PlanNode) -> list[nodes.PlanNode]:
    """All nodes of a plan, those in subqueries included."""
    found = []
    for node in nodes.walk_plan(plan):
        found.append(node)
        for expression in nodes.expressions(node):
            if type(expression) is not ColumnRef:
                for inner in subplans(expression):
                    found += every_node(inner)
    return found


Operator = Callable[[QueryCompiler, Any], Pipeline]
OPERATORS: dict[type[nodes.PlanNode], Operator] = {}


def operator(node: type[nodes.PlanNode]) -> Callable[[Operator], Operator]:
    """Register the code of one kind of plan node."""

    def register(function: Operator) -> Operator:
        OPERATORS[node] = function
        return function

    return register


def compile_query(
    plan: nodes.PlanNode,
    services: CompilerServices,
    meters: Meters | None = None,
    memory_limit: int = 0,
) -> CompiledQuery:
    """Generate, compile and wrap the program of a physical plan.

    With ``meters`` it measures itself; ``memory_limit`` bounds the bytes that its operators hold.
    """
    compiler = QueryCompiler(services, meters, memory_limit)
    module = compiler.module
    with module.block("def program(rt):"):
        result = compiler.rows_of(plan)
        module.line(f"return {result}")
    module.fill_preamble(preamble_of(compiler))
    return CompiledQuery(
        function=module.compile("program"),
        source=module.text(),
        columns=plan.columns,
        transactions=tuple(compiler.transactions),
        mutations=tuple(compiler.mutations),
    )


def preamble_of(compiler: QueryCompiler) -> list[str]:
    """The first lines of the program: snapshots, parameters, constants made of them."""
    return compiler.first_lines()


def constant_value(compiler: QueryCompiler, expression: BoundExpression) -> str:
    """Source of an expression that reads no row."""
    return ExpressionCompiler(PipelineScope(compiler, None)).value(expression)
