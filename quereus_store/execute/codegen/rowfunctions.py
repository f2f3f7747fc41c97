"""Functions over batches of rows: index expressions, partial predicates, checks, row builders.

The same expression compiler as for queries, over one input: a list of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quereus_store.execute.codegen.compiler import CompilerServices, QueryCompiler
from quereus_store.execute.codegen.expressions import ExpressionCompiler
from quereus_store.modules.contract import Row
from quereus_store.plan.expressions import BoundExpression, Column


def compile_row_function(
    expression: BoundExpression, columns: Sequence[Column], services: CompilerServices
) -> Callable[[Sequence[Row]], list[Any]]:
    """A function from rows (with these columns) to the expression's values, one per row.

    The expression may read nothing but the columns: no parameter, no subquery.
    """
    compiler = QueryCompiler(services)
    pipeline = compiler.over_batches("", columns)
    row = pipeline.loop.target
    value = ExpressionCompiler(compiler.scope(pipeline)).value(expression)
    clauses = " ".join(clause.render() for clause in pipeline.clauses)
    with compiler.module.block("def values_of(rows):"):
        compiler.module.line(f"return [{value} for {row} in rows{' ' + clauses if clauses else ''}]")
    compiler.module.fill_preamble([])
    function: Callable[[Sequence[Row]], list[Any]] = compiler.module.compile("values_of")
    return function
