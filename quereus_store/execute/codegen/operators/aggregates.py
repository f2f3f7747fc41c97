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
from dataclasses import replace
from typing import cast

from quereus_store.execute.codegen import kernels
from quereus_store.execute.codegen.compiler import QueryCompiler, operator
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.codegen.operators.aggregate_calls import (
    Collected,
    collect,
    collected_values,
    counts_rows,
    results_of,
)
from quereus_store.execute.codegen.operators.spilled_groups import spilling_groups
from quereus_store.execute.codegen.pipeline import Pipeline
from quereus_store.execute.spilling.replay import Replay
from quereus_store.functions.aggregates.indicators import Indicator
from quereus_store.plan import nodes
from quereus_store.plan.expressions import (
    AggregateCall,
    BoundExpression,
    Column,
    ColumnRef,
    map_children,
)
from quereus_store.types.sortkeys import identity_key

_FIRST_GROUPS = 4
_COMPLETE_GROUPS = 512
"""So many groups are collected before those that are complete are handed on; fewer at first, for a limit."""


@operator(nodes.Aggregate)
def aggregate(compiler: QueryCompiler, node: nodes.Aggregate) -> Pipeline:
    """Chooses the form: counting, one group, grouping sets, groups."""
    if node.sets is not None:
        return _grouping_sets(compiler, node)
    counted = _row_count(compiler, node)
    if counted is not None:
        return compiler.over_batches(f"([{counted}],)", node.columns)
    if compiler.memory_limit:
        return compiler.over_batches(spilling_groups(compiler, node, compiler.open(node.input)), node.columns)
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


def _one_group(compiler: QueryCompiler, node: nodes.Aggregate, pipeline: Pipeline) -> str:
    """Without GROUP BY: whole columns, gathered batch by batch."""
    module = compiler.module
    collected = collect(node.aggregates)
    compiled = compiler.expressions(pipeline)
    sources = collected_values(compiled, node, collected)
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
    values = collected_values(compiled, node, collected)
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
        "if len(groups) > wanted:",
        "    key, values = groups.popitem()",
        f"    yield {finish}(groups)",
        f"    groups = {empty}",
        "    groups[key] = values",
        f"    wanted = min(8 * wanted, {_COMPLETE_GROUPS})",
    ]
    pipeline.per_batch[:0] = flush
    with module.block(f"def {name}():"):
        module.line(f"groups = {empty}")
        module.line(f"wanted = {_FIRST_GROUPS}")
        compiler.row_loop(pipeline, [body])
        with module.block("if groups:"):
            module.line(f"yield {finish}(groups)")
    return f"{name}()"


def _grouping_sets(compiler: QueryCompiler, node: nodes.Aggregate) -> Pipeline:
    """Rows are gathered once as keys and arguments; each set then groups them by its own keys.

    With a memory limit what is gathered may go to a temporary file, and so may each set's groups.
    """
    module = compiler.module
    collected = collect([call for call in node.aggregates if not isinstance(call.function, Indicator)])
    pipeline = compiler.open(node.input)
    inputs = [*node.keys, *collected.expressions]
    rows = compiler.close_values(pipeline, lambda compiled: tuple_display(compiled.values(inputs)))
    gathered = module.name("gathered")
    once = module.helper(kernels.once)
    if compiler.memory_limit:
        module.line(f"{gathered} = {once}(lambda: {module.helper(Replay)}({rows}, {compiler.share()}))")
        source = f"{gathered}().batches()"
    else:
        module.line(f"{gathered} = {once}(lambda: {module.helper(kernels.gather)}({rows}))")
        source = f"({gathered}(),)"
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
    with compiler.one_after_the_other() as begin:
        for chosen in node.sets or ():
            begin()
            parts.append(_one_set(compiler, node, over_gathered, chosen, source, columns))
    name = module.name("sets")
    with module.block(f"def {name}():"):
        for part in parts:
            module.line(part)
        if compiler.memory_limit:
            module.line(f"{gathered}().close()")
    return compiler.over_batches(f"{name}()", node.columns)


def _one_set(
    compiler: QueryCompiler,
    node: nodes.Aggregate,
    over_gathered: nodes.Aggregate,
    chosen: tuple[int, ...],
    source: str,
    columns: tuple[Column, ...],
) -> str:
    """The statement that yields the result rows of one set of ``node``, with NULL for keys outside it.

    ``over_gathered`` is the same aggregation over the gathered rows.
    """
    keys = tuple(over_gathered.keys[position] for position in chosen)
    using = tuple(node.using[position] for position in chosen)
    inner = replace(over_gathered, keys=keys, using=using, sets=None)
    pipeline = compiler.over_batches(source, columns)
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
    result = tuple_display(items)
    if compiler.memory_limit:
        batches = spilling_groups(compiler, inner, pipeline)
        return f"yield from ([{result} for row in batch] for batch in {batches})"
    rows = _groups(compiler, inner, pipeline) if keys else _one_group(compiler, inner, pipeline)
    return f"yield [{result} for row in {rows}]"
