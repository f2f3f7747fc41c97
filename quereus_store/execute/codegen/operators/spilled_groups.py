"""Groups under a memory limit: rows with their keys are handed to a kernel that may go to a temporary file.

An aggregate with DISTINCT gets a pass of its own over the rows, without those that repeat its argument
within their group, and is folded like any other.  All passes meet the groups in the same order, so their
rows are put side by side::

    def groups0():
        with Replay(rows0(), share) as replay0:
            yield from side_by_side(lambda a0, a1: (a0[0], a1[1], a0[1]), (
                Grouping(...).rows(replay0.batches()),
                Grouping(...).rows(external_distinct(replay0.batches(), lambda row: (row[0], row[1]), share)),
            ))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quereus_store.execute.codegen.compiler import QueryCompiler
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.codegen.operators.aggregate_calls import Collected, collect, results_of
from quereus_store.execute.codegen.pipeline import Pipeline
from quereus_store.execute.spilling.distinct import external_distinct
from quereus_store.execute.spilling.grouping import Fold, Grouping, side_by_side
from quereus_store.execute.spilling.replay import Replay
from quereus_store.plan import nodes
from quereus_store.plan.expressions import AggregateCall
from quereus_store.records import record
from quereus_store.types import truth
from quereus_store.types.sortkeys import identity_key, order_key


@record(frozen=True, slots=True)
class _Gathered:
    """What rows look like: the keys, their identity, the values that aggregates need."""

    node: nodes.Aggregate
    collected: Collected
    identity: list[str]

    @property
    def width(self) -> int:
        """How many values there are beside the keys."""
        return len(self.collected.expressions)


def spilling_groups(compiler: QueryCompiler, node: nodes.Aggregate, pipeline: Pipeline) -> str:
    """Source of the batches of groups of a pipeline's rows."""
    module = compiler.module
    gathered = _Gathered(node, collect(node.aggregates), _key_identities(compiler, node))
    inputs = [*node.keys, *gathered.collected.expressions]
    rows = compiler.close_values(pipeline, lambda compiled: tuple_display(compiled.values(inputs)))
    passes = _passes(compiler, node.aggregates, gathered.collected)
    if not any(_is_apart(compiler, call, gathered.collected) for call in node.aggregates):
        return f"{_grouping(compiler, gathered, node.aggregates)}.rows({rows})"
    name, replay = module.name("groups"), module.name("replay")
    parts = []
    for calls in passes:
        source = f"{replay}.batches()"
        if _is_apart(compiler, calls[0], gathered.collected):
            source = _without_repeats(compiler, gathered, calls[0], source)
            calls = [replace(calls[0], distinct=False)]
        parts.append(f"{_grouping(compiler, gathered, calls)}.rows({source})")
    with module.block(f"def {name}():"):
        opened = f"{module.helper(Replay)}({rows}, {compiler.share()})"
        with module.block(f"with {opened} as {replay}:"):
            pick = _side_by_side(node, passes)
            module.line(f"yield from {module.helper(side_by_side)}({pick}, {tuple_display(parts)})")
    return f"{name}()"


def _passes(
    compiler: QueryCompiler, calls: Sequence[AggregateCall], collected: Collected
) -> list[list[AggregateCall]]:
    """The calls that share a pass over the rows, and each of the others by itself."""
    passes = [[call] for call in calls if _is_apart(compiler, call, collected)]
    together = [call for call in calls if not _is_apart(compiler, call, collected)]
    return [together, *passes] if together else passes


def _is_apart(compiler: QueryCompiler, call: AggregateCall, collected: Collected) -> bool:
    """Whether a call has DISTINCT and can be folded once repeats are gone."""
    return call.distinct and fold_of(compiler, replace(call, distinct=False), collected) is not None


def _side_by_side(node: nodes.Aggregate, passes: Sequence[Sequence[AggregateCall]]) -> str:
    """Source of a function from one row of each pass to a row of the whole."""
    keys = len(node.keys)
    items = [f"a0[{place}]" for place in range(keys)]
    for call in node.aggregates:
        for number, calls in enumerate(passes):
            for place, other in enumerate(calls):
                if call is other:
                    items.append(f"a{number}[{keys + place}]")
    names = ", ".join(f"a{number}" for number in range(len(passes)))
    return f"lambda {names}: {tuple_display(items)}"


def _key_identities(compiler: QueryCompiler, node: nodes.Aggregate) -> list[str]:
    return [
        compiler.module.render(
            identity_key(key.type, key.nullable, compiler.services.collation(using)).template, f"row[{place}]"
        )
        for place, (key, using) in enumerate(zip(node.keys, node.using, strict=True))
    ]


def _without_repeats(compiler: QueryCompiler, gathered: _Gathered, call: AggregateCall, source: str) -> str:
    """Source of the rows that do not repeat a call's argument among those of its group that it counts."""
    argument = call.arguments[0]
    keys = len(gathered.node.keys)
    recipe = identity_key(argument.type, True, compiler.services.collation(call.using))
    place = keys + gathered.collected.slot(argument)
    parts = [*gathered.identity, compiler.module.render(recipe.template, f"row[{place}]")]
    if call.filter is not None:
        parts.append(f"{compiler.module.helper(truth)}(row[{keys + gathered.collected.slot(call.filter)}])")
    kernel = compiler.module.helper(external_distinct)
    return f"{kernel}({source}, lambda row: {tuple_display(parts)}, {compiler.share()})"


def _grouping(compiler: QueryCompiler, gathered: _Gathered, calls: Sequence[AggregateCall]) -> str:
    """Source of a kernel that groups the rows for some calls."""
    module, width, keys = compiler.module, gathered.width, len(gathered.node.keys)
    identity = gathered.identity[0] if keys == 1 else tuple_display(gathered.identity)
    count = f"len(values) // {width}" if width > 1 else "len(values)"
    used = results_of(compiler, calls, gathered.collected, count)
    finish = module.name("finish")
    with module.block(f"def {finish}(first, values):"):
        for place in range(width):
            module.line(f"column{place} = values[{place}::{width}]")
        module.line(f"return {tuple_display([*(f'first[{place}]' for place in range(keys)), *used])}")
    folds = [fold_of(compiler, call, gathered.collected) for call in calls]
    bound = "None" if None in folds else module.bind("folds", tuple(folds))
    arguments = f"{keys}, {width}, lambda row: {identity}, {finish}, {bound}, {compiler.share()}"
    return f"{module.helper(Grouping)}({arguments}, {gathered.node.streamed})"


def fold_of(compiler: QueryCompiler, call: AggregateCall, collected: Collected) -> Fold | None:
    """How an aggregate is folded into a state; None where it has to see all its values at once."""
    function = call.function
    algebra = function.algebra
    if algebra is None or call.distinct or call.order or function.ordered or function.raises:
        return None
    if function.collated and function.keyed_algebra is not None:
        argument = call.arguments[function.compared]
        recipe = order_key(argument.type, False, compiler.services.collation(call.using))
        algebra = function.keyed_algebra(recipe.function)
    condition = None if call.filter is None else collected.slot(call.filter)
    return Fold(algebra, tuple(collected.slot(argument) for argument in call.arguments), condition)
