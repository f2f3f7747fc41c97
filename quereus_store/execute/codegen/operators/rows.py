"""Row by row: filters, projections, DISTINCT."""

from __future__ import annotations

from collections.abc import Sequence

from quereus_store.execute.codegen import kernels
from quereus_store.execute.codegen.compiler import QueryCompiler, operator
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.codegen.pipeline import Clause, Pipeline, column_ids
from quereus_store.execute.spilling.distinct import external_distinct
from quereus_store.plan import nodes
from quereus_store.plan.expressions import (
    BoundExpression,
    Column,
    ColumnRef,
    Conjunction,
    ContextValue,
    Literal,
    Parameter,
)
from quereus_store.types.sortkeys import identity_key


@operator(nodes.Filter)
def filter_rows(compiler: QueryCompiler, node: nodes.Filter) -> Pipeline:
    """A condition as one ``if`` per conjunct."""
    pipeline = compiler.open(node.input)
    add_condition(compiler, pipeline, node.predicate)
    return pipeline


def add_condition(compiler: QueryCompiler, pipeline: Pipeline, predicate: BoundExpression) -> None:
    """Let only rows through for which the predicate is true."""
    conjuncts = predicate.operands if isinstance(predicate, Conjunction) else (predicate,)
    for conjunct in conjuncts:
        source = compiler.expressions(pipeline).condition(conjunct)
        if source != "True":
            pipeline.clauses.append(Clause("if", source))


@operator(nodes.Project)
def project(compiler: QueryCompiler, node: nodes.Project) -> Pipeline:
    """Renames columns; computed ones wait until somebody asks for them."""
    pipeline = compiler.open(node.input)
    scope = compiler.scope(pipeline)
    compiled = compiler.expressions(pipeline)
    for column, expression in zip(node.columns, node.expressions, strict=True):
        if isinstance(expression, ColumnRef):
            if expression.id != column.id:
                pipeline.bindings[column.id] = scope.column(expression.id)
        elif isinstance(expression, Literal | Parameter | ContextValue):
            pipeline.bindings[column.id] = compiled.value(expression)
        else:
            pipeline.pending[column.id] = expression
    _rename_whole_rows(pipeline, node)
    return pipeline


def _rename_whole_rows(pipeline: Pipeline, node: nodes.Project) -> None:
    """A row variable that holds exactly the projected columns still does, under their new numbers."""
    sources = tuple(
        expression.id if isinstance(expression, ColumnRef) else 0 for expression in node.expressions
    )
    for row, held in list(pipeline.whole.items()):
        if held == sources and 0 not in sources:
            pipeline.whole[row] = column_ids(node.columns)


@operator(nodes.Distinct)
def distinct(compiler: QueryCompiler, node: nodes.Distinct) -> Pipeline:
    """Rows not met before."""
    key = row_identity(compiler, node.input.columns, node.using)
    if len(node.input.columns) == 1 and key == "None":
        return _distinct_values(compiler, node)
    return compiler.over_batches(distinct_source(compiler, compiler.rows_of(node.input), key), node.columns)


def distinct_source(compiler: QueryCompiler, rows: str, key: str) -> str:
    """Source of the batches of rows (or values) without repeats."""
    if compiler.memory_limit:
        return f"{compiler.module.helper(external_distinct)}({rows}, {key}, {compiler.share()})"
    return f"{compiler.module.helper(kernels.distinct_batches)}({rows}, {key})"


def _distinct_values(compiler: QueryCompiler, node: nodes.Distinct) -> Pipeline:
    """The distinct values of one column that is its own identity: no tuple is made for a repeated one."""
    module = compiler.module
    column = node.input.columns[0].id
    pipeline = compiler.open(node.input)
    values = compiler.close_values(pipeline, lambda compiled: compiled.scope.column(column))
    value, batch = module.name("v"), module.name("batch")
    return Pipeline(
        source=distinct_source(compiler, values, "None"),
        batch=batch,
        loop=Clause("for", batch, value),
        bindings={node.columns[0].id: value},
    )


def row_identity(compiler: QueryCompiler, columns: Sequence[Column], using: Sequence[str]) -> str:
    """Source of a function from a row to its identity; ``None`` where the row is its own."""
    recipes = [
        identity_key(column.type, column.nullable, compiler.services.collation(name))
        for column, name in zip(columns, using, strict=True)
    ]
    if all(recipe.is_plain for recipe in recipes):
        return "None"
    parts = [compiler.module.render(recipe.template, f"row[{index}]") for index, recipe in enumerate(recipes)]
    return f"lambda row: {parts[0] if len(parts) == 1 else tuple_display(parts)}"
