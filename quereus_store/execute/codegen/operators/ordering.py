"""Order and how much of it: Sort, Limit, TopN.

A sort is a series of stable passes, last term first.  Each pass sorts by one
column of the gathered rows with a C-level key where the declared type allows;
a term that is no plain column is computed into an extra column first.  NULLs
are set aside before a pass, so keys never meet None.

A sort by one term that takes computing keeps its keys beside the rows, which stay as they are::

    def sorted0():
        keys0 = []
        add0 = keys0.append
        def rows0():
            for batch0 in rt.watch.over(table0.scan(x0)):
                yield [(r0[0], r0[2]) for r0 in batch0 if not add0(r0[2].upper())]
        return sort_by_keys(rows0(), keys0, False, 'first')
"""

from __future__ import annotations

from collections.abc import Sequence

from quereus_store.execute.codegen import kernels
from quereus_store.execute.codegen.compiler import QueryCompiler, constant_value, operator
from quereus_store.execute.codegen.expressions import ExpressionCompiler
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.codegen.pipeline import Clause, Pipeline, column_ids
from quereus_store.execute.spilling.sorting import external_sort, external_top
from quereus_store.plan import nodes
from quereus_store.plan.expressions import BoundExpression, Column, ColumnRef, SortTerm
from quereus_store.types.sortkeys import order_key, reversed_key


@operator(nodes.Sort)
def sort(compiler: QueryCompiler, node: nodes.Sort) -> Pipeline:
    """Gathers all rows, sorts them, and hands them on."""
    if _is_sorted_by_computed_keys(compiler, node):
        return _sort_by_computed_keys(compiler, node)
    rows, columns, positions = sortable_rows(compiler, node.input, node.terms)
    gather = compiler.module.helper(kernels.gather)
    order = sort_source(compiler, node.terms, positions)
    if compiler.memory_limit:
        key, kernel = sort_key(compiler, node.terms, positions), compiler.module.helper(external_sort)
        return compiler.over_batches(f"{kernel}({rows}, {order}, {key}, {compiler.share()})", columns)
    in_batches = compiler.module.helper(kernels.in_batches)
    return compiler.over_batches(f"{in_batches}({order}({gather}({rows})))", columns)


def _is_sorted_by_computed_keys(compiler: QueryCompiler, node: nodes.Sort) -> bool:
    """Whether there is one term, and it is no column that sorts itself (but for NaN)."""
    if compiler.memory_limit or len(node.terms) > 1:
        return False
    (term,) = node.terms
    recipe = order_key(term.expression.type, False, compiler.services.collation(term.using))
    sorts_itself = recipe.is_plain or recipe.plain_without_nan
    is_input = isinstance(term.expression, ColumnRef) and term.expression.id in column_ids(node.input.columns)
    return not (sorts_itself and is_input)


def _sort_by_computed_keys(compiler: QueryCompiler, node: nodes.Sort) -> Pipeline:
    module = compiler.module
    (term,) = node.terms
    expression = term.expression
    recipe = order_key(expression.type, False, compiler.services.collation(term.using))
    columns = node.input.columns
    pipeline = compiler.open(node.input)
    name, keys, add = module.name("sorted"), module.name("keys"), module.name("add")
    with module.block(f"def {name}():"):
        module.line(f"{keys} = []")
        module.line(f"{add} = {keys}.append")
        key = compiler.expressions(pipeline).value(expression)
        if not recipe.is_plain:
            value = compiler.variable(pipeline, key)
            key = module.render(recipe.template, value)
            if expression.nullable:
                key = f"None if {value} is None else {key}"
        row = compiler.row_source(pipeline, column_ids(columns))
        pipeline.clauses.append(Clause("if", f"not {add}({key})"))
        rows = compiler.close_values(pipeline, lambda _: row)
        nulls = "none" if not expression.nullable else "last" if term.nulls_last else "first"
        kernel = module.helper(kernels.sort_by_keys)
        module.line(f"return {kernel}({rows}, {keys}, {term.descending}, {nulls!r})")
    return compiler.over_batches(f"{module.helper(kernels.in_batches)}({name}())", columns)


@operator(nodes.SingleRow)
def single_row(compiler: QueryCompiler, node: nodes.SingleRow) -> Pipeline:
    """Reads far enough to know that there is one row at most."""
    module = compiler.module
    place = "" if node.position is None else f", {module.bind('place', node.position)}"
    rows = compiler.rows_of(node.input, column_ids(node.columns))
    return compiler.over_batches(f"{module.helper(kernels.single_row)}({rows}{place})", node.columns)


@operator(nodes.TopN)
def top(compiler: QueryCompiler, node: nodes.TopN) -> Pipeline:
    """Sorts while reading and keeps only what can still matter."""
    rows, columns, positions = sortable_rows(compiler, node.input, node.terms)
    order = sort_source(compiler, node.terms, positions)
    count = constant_value(compiler, node.count)
    offset = constant_value(compiler, node.offset) if node.offset else "None"
    kernel = compiler.module.helper(kernels.top_rows)
    in_batches = compiler.module.helper(kernels.in_batches)
    contenders = _contenders(compiler, node.terms[0], positions[0])
    if compiler.memory_limit:
        key, kernel = sort_key(compiler, node.terms, positions), compiler.module.helper(external_top)
        arguments = f"{rows}, {order}, {contenders}, {count}, {offset}, {key}, {compiler.share()}"
        return compiler.over_batches(f"{kernel}({arguments})", columns)
    source = f"{kernel}({rows}, {order}, {contenders}, {count}, {offset})"
    return compiler.over_batches(f"{in_batches}({source})", columns)


def _contenders(compiler: QueryCompiler, term: SortTerm, position: int) -> str:
    """Source of a filter of rows that may still be among the first, by the first term alone; or ``None``.

    Only where values order themselves; NULLs come first and always may.
    """
    expression = term.expression
    recipe = order_key(expression.type, False, compiler.services.collation(term.using))
    if not (recipe.is_plain or recipe.plain_without_nan) or term.nulls_last:
        return "None"
    contenders = compiler.module.helper(kernels.contenders)
    return f"{contenders}({position}, {term.descending}, {expression.nullable})"


@operator(nodes.Limit)
def limit(compiler: QueryCompiler, node: nodes.Limit) -> Pipeline:
    """Stops reading when enough rows came."""
    rows = compiler.rows_of(node.input)
    count = constant_value(compiler, node.count) if node.count else "None"
    offset = constant_value(compiler, node.offset) if node.offset else "None"
    kernel = compiler.module.helper(kernels.limit_batches)
    return compiler.over_batches(f"{kernel}({rows}, {count}, {offset})", node.columns)


def sortable_rows(
    compiler: QueryCompiler, input_plan: nodes.PlanNode, terms: Sequence[SortTerm]
) -> tuple[str, tuple[Column, ...], list[int]]:
    """Rows of a plan widened by the terms that are no plain columns.

    Returns the source of their batches, their columns (the widening has number
    0), and the position of each term in a row.
    """
    pipeline = compiler.open(input_plan)
    columns = list(input_plan.columns)
    ids = list(column_ids(columns))
    positions: list[int] = []
    computed: list[BoundExpression] = []
    for term in terms:
        expression = term.expression
        if isinstance(expression, ColumnRef) and expression.id in ids:
            positions.append(ids.index(expression.id))
        else:
            positions.append(len(ids) + len(computed))
            computed.append(expression)
    if not computed:
        return compiler.close(pipeline, ids), tuple(columns), positions

    def row(compiled: ExpressionCompiler) -> str:
        sources = [compiled.scope.column(column_id) for column_id in ids]
        return tuple_display([*sources, *compiled.values(computed)])

    source = compiler.close_values(pipeline, row)
    columns += [Column(0, "", expression.type) for expression in computed]
    return source, tuple(columns), positions


def sort_source(compiler: QueryCompiler, terms: Sequence[SortTerm], positions: Sequence[int]) -> str:
    """Source of a function that sorts a list of rows."""
    module = compiler.module
    passes = []
    for term, position in reversed(list(zip(terms, positions, strict=True))):
        expression = term.expression
        recipe = order_key(expression.type, False, compiler.services.collation(term.using))
        key = "None" if recipe.function is None else module.bind("key", recipe.function)
        nulls = "none" if not expression.nullable else "last" if term.nulls_last else "first"
        passes.append(f"({position}, {key}, {term.descending}, {nulls!r}, {recipe.plain_without_nan})")
    return f"{module.helper(kernels.sorting)}({', '.join(passes)})"


def sort_key(compiler: QueryCompiler, terms: Sequence[SortTerm], positions: Sequence[int]) -> str:
    """Source of a function from a row to one key by which all terms are obeyed."""
    parts = []
    for term, position in zip(terms, positions, strict=True):
        expression, collation = term.expression, compiler.services.collation(term.using)
        make = reversed_key if term.descending else order_key
        recipe = make(expression.type, expression.nullable, collation, nulls_first=not term.nulls_last)
        parts.append(compiler.module.render(recipe.template, f"row[{position}]"))
    return f"lambda row: {parts[0] if len(parts) == 1 else tuple_display(parts)}"
