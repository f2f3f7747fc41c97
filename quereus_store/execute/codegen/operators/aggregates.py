"""Grouping and aggregates.

Rows are not accumulated one by one.  The loop only sorts values out: each group
has one flat list to which a row appends what the aggregates need of it.  When
all rows are in, each aggregate is one C loop over its slice of the list::

    for batch0 in table0.scan(x0):
        for r0 in batch0:
            groups[r0[1]].append(r0[2])
    ...
    for key, values in groups.items():
        rows.append((key, len(values), sum_(values)))

Where the rows come in the order of the keys, groups are finished and handed on between two batches.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from quereus_store.execute.codegen import aggregate_kernels, kernels
from quereus_store.execute.codegen.compiler import QueryCompiler, operator
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.codegen.pipeline import Pipeline
from quereus_store.execute.spilling.grouping import Fold, Grouping
from quereus_store.functions.aggregates.counting import COUNT_ROWS
from quereus_store.functions.aggregates.indicators import Indicator
from quereus_store.functions.registry import guarded_evaluate
from quereus_store.plan import nodes
from quereus_store.plan.expressions import (
    AggregateCall,
    BoundExpression,
    Column,
    ColumnRef,
    SortTerm,
    map_children,
)
from quereus_store.types.sortkeys import identity_key, order_key

_COMPLETE_GROUPS = 500
"""So many groups are collected before those that are complete are handed on."""


@dataclass(slots=True)
class Collected:
    """The expressions whose values every group collects, in order, each once."""

    expressions: list[BoundExpression] = field(default_factory=list)

    def slot(self, expression: BoundExpression) -> int:
        """Position of an expression's values in what a row contributes."""
        if expression not in self.expressions:
            self.expressions.append(expression)
        return self.expressions.index(expression)


def spilling_groups(compiler: QueryCompiler, node: nodes.Aggregate) -> Pipeline:
    """Groups that may go to a temporary file: rows with their keys are handed to a kernel."""
    module = compiler.module
    collected = collect(node.aggregates)
    width, keys = len(collected.expressions), len(node.keys)
    inputs = [*node.keys, *collected.expressions]
    rows = compiler.close_values(
        compiler.open(node.input), lambda compiled: tuple_display(compiled.values(inputs))
    )
    identities = [
        module.render(
            identity_key(key.type, key.nullable, compiler.services.collation(using)).template, f"row[{place}]"
        )
        for place, (key, using) in enumerate(zip(node.keys, node.using, strict=True))
    ]
    identity = identities[0] if keys == 1 else tuple_display(identities)
    count = f"len(values) // {width}" if width > 1 else "len(values)"
    used = results_of(compiler, node.aggregates, collected, count)
    finish = module.name("finish")
    with module.block(f"def {finish}(first, values):"):
        for place in range(width):
            module.line(f"column{place} = values[{place}::{width}]")
        module.line(f"return {tuple_display([*(f'first[{place}]' for place in range(keys)), *used])}")
    folds = [fold_of(compiler, call, collected) for call in node.aggregates]
    bound = "None" if None in folds else module.bind("folds", tuple(folds))
    grouping = module.helper(Grouping)
    arguments = f"{keys}, {width}, lambda row: {identity}, {finish}, {bound}, {compiler.share()}"
    return compiler.over_batches(f"{grouping}({arguments}).rows({rows})", node.columns)


def fold_of(compiler: QueryCompiler, call: AggregateCall, collected: Collected) -> Fold | None:
    """How an aggregate is folded into a state; None where it has to see all its values at once."""
    function = call.function
    algebra = function.algebra
    if algebra is None or call.distinct or call.order or function.ordered or function.raises:
        return None
    if function.collated and function.keyed_algebra is not None:
        argument = call.arguments[0]
        recipe = order_key(argument.type, False, compiler.services.collation(call.using))
        algebra = function.keyed_algebra(recipe.function)
    condition = None if call.filter is None else collected.slot(call.filter)
    return Fold(algebra, tuple(collected.slot(argument) for argument in call.arguments), condition)


@operator(nodes.Aggregate)
def aggregate(compiler: QueryCompiler, node: nodes.Aggregate) -> Pipeline:
    """Chooses the form: counting, one group, grouping sets, groups."""
    if node.sets is not None:
        return _grouping_sets(compiler, node)
    counted = _row_count(compiler, node)
    if counted is not None:
        return compiler.over_batches(f"([{counted}],)", node.columns)
    if compiler.memory_limit and not node.streamed:
        return spilling_groups(compiler, node)
    pipeline = compiler.open(node.input)
    if node.streamed:
        return compiler.over_batches(_groups(compiler, node, pipeline), node.columns)
    if not node.keys:
        return compiler.over_batches(f"({_one_group(compiler, node, pipeline)},)", node.columns)
    return compiler.over_batches(
        f"{compiler.module.helper(kernels.in_batches)}({_groups(compiler, node, pipeline)})", node.columns
    )


def _row_count(compiler: QueryCompiler, node: nodes.Aggregate) -> str | None:
    """``count(*)`` of a whole table is what the module knows anyway."""
    scan = node.input
    if node.keys or not isinstance(scan, nodes.TableScan):
        return None
    if not all(counts_rows(call) and call.filter is None for call in node.aggregates):
        return None
    transaction = compiler.transaction(scan.table, scan.committed)
    count = f"{compiler.table(scan.table)}.count({transaction})"
    return tuple_display([count] * len(node.aggregates))


def counts_rows(call: AggregateCall) -> bool:
    return call.function == COUNT_ROWS


def collect(calls: Sequence[AggregateCall]) -> Collected:
    """Everything that the aggregates need of a row."""
    collected = Collected()
    for call in calls:
        for expression in _needs(call):
            collected.slot(expression)
    return collected


def _needs(call: AggregateCall) -> list[BoundExpression]:
    needs = list(call.arguments)
    if call.filter is not None:
        needs.append(call.filter)
    return needs + [term.expression for term in call.order]


def _one_group(compiler: QueryCompiler, node: nodes.Aggregate, pipeline: Pipeline) -> str:
    """Without GROUP BY: whole columns, gathered batch by batch."""
    module = compiler.module
    collected = collect(node.aggregates)
    compiled = compiler.expressions(pipeline)
    sources = compiled.values(collected.expressions)
    name = module.name("aggregate")
    width = len(sources)
    results = tuple_display(results_of(compiler, node.aggregates, collected, "count"))
    with module.block(f"def {name}():"):
        for line in pipeline.prologue:
            module.line(line)
        module.line("count = 0")
        for index in range(width):
            module.line(f"column{index} = []")
        with module.block(f"for {pipeline.batch} in {pipeline.source}:"):
            for line in pipeline.per_batch:
                module.line(line)
            comprehension = compiler.comprehension(pipeline)
            if width == 0:
                counted = (
                    f"len({pipeline.loop.source})" if not pipeline.clauses else f"sum([1 {comprehension}])"
                )
                module.line(f"count += {counted}")
            elif width == 1:
                module.line(f"column0 += [{sources[0]} {comprehension}]")
            else:
                module.line(f"rows = [{tuple_display(sources)} {comprehension}]")
                module.line("count += len(rows)")
                for index in range(width):
                    module.line(f"column{index} += [row[{index}] for row in rows]")
        if width == 1:
            module.line("count = len(column0)")
        module.line(f"return [{results}]")
    return f"{name}()"


def results_of(
    compiler: QueryCompiler, calls: Sequence[AggregateCall], collected: Collected, count: str
) -> list[str]:
    """Source of each aggregate over variables ``column0``, ``column1``, ..."""
    return [_result(compiler, call, collected, count) for call in calls]


def _result(compiler: QueryCompiler, call: AggregateCall, collected: Collected, count: str) -> str:
    module = compiler.module
    if counts_rows(call) and call.filter is None:
        return count
    evaluate = guarded_evaluate(call.function) if call.function.raises else call.function.evaluate
    function = module.bind(f"{call.function.name.lower()}_", evaluate)
    arguments = [f"column{collected.slot(argument)}" for argument in call.arguments]
    keyword = _order_key_argument(compiler, call)
    shaped = call.filter is not None or call.order or call.distinct
    if not shaped:
        if call.function.skips_nulls and call.arguments and call.arguments[0].nullable:
            if len(arguments) == 1:
                arguments = [f"[value for value in {arguments[0]} if value is not None]"]
            else:
                skip = module.helper(aggregate_kernels.without_nulls)
                arguments = [f"*{skip}({', '.join(arguments)})"]
        return f"{function}({', '.join(arguments + keyword)})"
    if not arguments:
        condition = f"column{collected.slot(call.filter)}" if call.filter is not None else ""
        return f"{module.helper(aggregate_kernels.count_true)}({condition})"
    shape = module.helper(aggregate_kernels.shape_arguments)
    condition = f"column{collected.slot(call.filter)}" if call.filter is not None else "None"
    order = [_order_spec(compiler, term, collected) for term in call.order]
    identity = "None"
    if call.distinct:
        recipe = identity_key(
            call.arguments[0].type, call.arguments[0].nullable, compiler.services.collation(call.using)
        )
        identity = f"lambda value: {module.render(recipe.template, 'value')}"
    skips = call.function.skips_nulls
    columns = tuple_display(arguments)
    return (
        f"{function}(*{shape}({columns}, {condition}, [{', '.join(order)}], {identity}, {skips})"
        f"{''.join(', ' + item for item in keyword)})"
    )


def _order_spec(compiler: QueryCompiler, term: SortTerm, collected: Collected) -> str:
    expression = term.expression
    recipe = order_key(expression.type, False, compiler.services.collation(term.using))
    key = "None" if recipe.is_plain else f"lambda value: {compiler.module.render(recipe.template, 'value')}"
    return f"(column{collected.slot(expression)}, {key}, {term.descending}, {term.nulls_last})"


def _order_key_argument(compiler: QueryCompiler, call: AggregateCall) -> list[str]:
    """The order key that min and max compare by, where values do not order themselves."""
    if not call.function.collated:
        return []
    recipe = order_key(call.arguments[0].type, False, compiler.services.collation(call.using))
    if recipe.is_plain:
        return []
    return [f"key=lambda value: {compiler.module.render(recipe.template, 'value')}"]


def _groups(compiler: QueryCompiler, node: nodes.Aggregate, pipeline: Pipeline) -> str:
    """Rows sorted out by key, then one result row per group."""
    module = compiler.module
    collected = collect(node.aggregates)
    recipes = [
        identity_key(key.type, key.nullable, compiler.services.collation(using))
        for key, using in zip(node.keys, node.using, strict=True)
    ]
    raw_keys = [
        key
        for key, recipe in zip(node.keys, recipes, strict=True)
        if not recipe.is_plain and not recipe.plain_without_nan
    ]
    for key in raw_keys:
        collected.slot(key)
    compiled = compiler.expressions(pipeline)
    keys = [
        module.render(recipe.template, compiler.variable(pipeline, compiled.value(key)))
        if not recipe.is_plain
        else compiled.value(key)
        for key, recipe in zip(node.keys, recipes, strict=True)
    ]
    values = compiled.values(collected.expressions)
    group_key = keys[0] if len(keys) == 1 else tuple_display(keys)
    outputs = [
        f"column{collected.slot(expression)}[0]"
        if expression in raw_keys
        else ("key" if len(keys) == 1 else f"key[{index}]")
        for index, expression in enumerate(node.keys)
    ]
    return _write_groups(compiler, node, pipeline, group_key, values, outputs, collected)


def _write_groups(
    compiler: QueryCompiler,
    node: nodes.Aggregate,
    pipeline: Pipeline,
    key: str,
    values: list[str],
    outputs: list[str],
    collected: Collected,
) -> str:
    module = compiler.module
    width = len(values)
    counting = width == 0
    count = "values" if counting else "len(values)" if width == 1 else f"len(values) // {width}"
    used = results_of(compiler, node.aggregates, collected, count)
    result = tuple_display([*outputs, *used])
    kind = "int" if counting else "list"
    if counting:
        body = f"groups[{key}] += 1"
    elif width == 1:
        body = f"groups[{key}].append({values[0]})"
    else:
        body = f"groups[{key}].extend(({', '.join(values)}))"
    empty = f"{module.helper(defaultdict)}({kind})"
    if node.streamed:
        return _write_stream(compiler, pipeline, body, empty, (width, result))
    name = module.name("groups")
    with module.block(f"def {name}():"):
        module.line(f"groups = {empty}")
        compiler.row_loop(pipeline, [body])
        _write_rows(compiler, width, result)
    return f"{name}()"


def _write_rows(compiler: QueryCompiler, width: int, result: str) -> None:
    """Write what makes one result row of each group in ``groups``, and returns them."""
    module = compiler.module
    module.line("rows = []")
    with module.block("for key, values in groups.items():"):
        if width == 1:
            module.line("column0 = values")
        else:
            for index in range(width):
                module.line(f"column{index} = values[{index}::{width}]")
        module.line(f"rows.append({result})")
    module.line("return rows")


def _write_stream(
    compiler: QueryCompiler, pipeline: Pipeline, body: str, empty: str, row: tuple[int, str]
) -> str:
    """Groups of rows that come in the order of their keys: all but the last one met are complete."""
    module = compiler.module
    finish, name = module.name("finish"), module.name("groups")
    with module.block(f"def {finish}(groups):"):
        _write_rows(compiler, *row)
    flush = [
        f"if len(groups) > {_COMPLETE_GROUPS}:",
        "    key, values = groups.popitem()",
        f"    yield {finish}(groups)",
        f"    groups = {empty}",
        "    groups[key] = values",
    ]
    pipeline.per_batch[:0] = flush
    with module.block(f"def {name}():"):
        module.line(f"groups = {empty}")
        compiler.row_loop(pipeline, [body])
        with module.block("if groups:"):
            module.line(f"yield {finish}(groups)")
    return f"{name}()"


def _grouping_sets(compiler: QueryCompiler, node: nodes.Aggregate) -> Pipeline:
    """Rows are gathered once as keys and arguments; each set then groups them by its own keys."""
    module = compiler.module
    collected = collect([call for call in node.aggregates if not isinstance(call.function, Indicator)])
    pipeline = compiler.open(node.input)
    inputs = [*node.keys, *collected.expressions]
    rows = compiler.close_values(pipeline, lambda compiled: tuple_display(compiled.values(inputs)))
    gathered = module.name("gathered")
    module.line(
        f"{gathered} = {module.helper(kernels.once)}(lambda: {module.helper(kernels.gather)}({rows}))"
    )
    columns = tuple(
        Column(-index - 1, "", expression.type, expression.nullable, expression.collation)
        for index, expression in enumerate(inputs)
    )
    stand_ins = [
        ColumnRef(column.type, column.nullable, column.collation, column.id, "") for column in columns
    ]

    # Expressions are compared, not hashed: a subquery in one may hold anything.
    def stand_in(expression: BoundExpression) -> BoundExpression:
        return stand_ins[inputs.index(expression)] if expression in inputs else expression

    calls = tuple(
        cast(AggregateCall, map_children(call, stand_in))
        for call in node.aggregates
        if not isinstance(call.function, Indicator)
    )
    over_gathered = replace(node, keys=tuple(stand_ins[: len(node.keys)]), aggregates=calls)
    parts = []
    for chosen in node.sets or ():
        parts.append(_one_set(compiler, node, over_gathered, chosen, f"({gathered}(),)", columns))
    name = module.name("sets")
    with module.block(f"def {name}():"):
        for part in parts:
            module.line(f"yield {part}")
    return compiler.over_batches(f"{name}()", node.columns)


def _one_set(
    compiler: QueryCompiler,
    node: nodes.Aggregate,
    over_gathered: nodes.Aggregate,
    chosen: tuple[int, ...],
    source: str,
    columns: tuple[Column, ...],
) -> str:
    """The result rows of one grouping set of ``node``, with NULL for the keys outside it.

    ``over_gathered`` is the same aggregation over the gathered rows.
    """
    keys = tuple(over_gathered.keys[position] for position in chosen)
    using = tuple(node.using[position] for position in chosen)
    inner = replace(over_gathered, keys=keys, using=using, sets=None)
    pipeline = compiler.over_batches(source, columns)
    rows = _groups(compiler, inner, pipeline) if keys else _one_group(compiler, inner, pipeline)
    items = [
        f"row[{chosen.index(position)}]" if position in chosen else "None"
        for position in range(len(node.keys))
    ]
    places = itertools.count(len(keys))
    for call in node.aggregates:
        function = call.function
        items.append(
            str(function.value(chosen)) if isinstance(function, Indicator) else f"row[{next(places)}]"
        )
    return f"[{tuple_display(items)} for row in {rows}]"
