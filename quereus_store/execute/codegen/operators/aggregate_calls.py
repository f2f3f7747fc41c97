"""What aggregates need of a row, and the source of their results over collected columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from quereus_store.execute.codegen import aggregate_kernels
from quereus_store.execute.codegen.arithmetic import finite_column, finite_first, raw_real
from quereus_store.execute.codegen.compiler import QueryCompiler
from quereus_store.execute.codegen.expressions import ExpressionCompiler
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.functions.aggregates.counting import COUNT_ROWS
from quereus_store.functions.aggregates.sums import AVG, SUM, mean
from quereus_store.functions.registry import guarded_aggregate
from quereus_store.plan.expressions import AggregateCall, BoundExpression, ColumnRef, Places, SortTerm
from quereus_store.plan.nodes import Aggregate, IndexAccess, PlanNode, TableScan, walk_plan
from quereus_store.types import INTEGER, REAL
from quereus_store.types.sortkeys import identity_key, order_key


@dataclass(slots=True)
class Collected:
    """The expressions whose values every group collects, in order, each once.

    At the positions in ``raw`` stand raw results of real arithmetic, which are NULL where they are not
    finite; it tells whether ``None`` may stand there, too.  At those in ``floats`` stands nothing but floats
    and ``None``: raw results, and columns of tables that are declared REAL.
    """

    places: Places = field(default_factory=Places)
    raw: dict[int, bool] = field(default_factory=dict)
    floats: set[int] = field(default_factory=set)

    @property
    def expressions(self) -> list[BoundExpression]:
        """The expressions."""
        return self.places.items

    def slot(self, expression: BoundExpression) -> int:
        """Position of an expression's values in what a row contributes."""
        return self.places.of(expression)


def counts_rows(call: AggregateCall) -> bool:
    """Whether this is ``count(*)``, with or without FILTER."""
    return call.function == COUNT_ROWS


def collect(calls: Sequence[AggregateCall]) -> Collected:
    """Everything that the aggregates need of a row."""
    collected = Collected()
    for call in calls:
        for expression in _needs(call):
            collected.slot(expression)
    return collected


def collected_values(compiled: ExpressionCompiler, node: Aggregate, collected: Collected) -> list[str]:
    """Source of what a row contributes; real arithmetic stays raw where all who need it skip NULLs."""
    stored = _stored_reals(node.input)
    sources = []
    for position, expression in enumerate(collected.expressions):
        raw = raw_real(compiled, expression)
        if (
            raw is None
            or expression in node.keys
            or not all(_skips_nulls_of(call, expression) for call in node.aggregates)
        ):
            sources.append(compiled.value(expression))
            if isinstance(expression, ColumnRef) and expression.id in stored:
                collected.floats.add(position)
        else:
            collected.raw[position] = bool(raw.guards)
            collected.floats.add(position)
            sources.append(raw.value())
    return sources


def _stored_reals(plan: PlanNode) -> frozenset[int]:
    """The REAL columns of tables in a plan; functions may give integers for what they call REAL."""
    scans = [part for part in walk_plan(plan) if isinstance(part, TableScan | IndexAccess)]
    return frozenset([column.id for scan in scans for column in scan.columns if column.type is REAL])


def _skips_nulls_of(call: AggregateCall, expression: BoundExpression) -> bool:
    """Whether NULLs of an expression are taken out of its column before the aggregate sees it."""
    if expression not in _needs(call):
        return True
    return call.arguments == (expression,) and call.function.skips_nulls and not _is_shaped(call)


def _is_shaped(call: AggregateCall) -> bool:
    return bool(call.filter is not None or call.order or call.distinct)


def _needs(call: AggregateCall) -> list[BoundExpression]:
    needs = list(call.arguments)
    if call.filter is not None:
        needs.append(call.filter)
    return needs + [term.expression for term in call.order]


def results_of(
    compiler: QueryCompiler, calls: Sequence[AggregateCall], collected: Collected, count: str
) -> list[str]:
    """Source of each aggregate over variables ``column0``, ``column1``, ..., to be evaluated in order."""
    sources = [_result(compiler, call, collected, count) for call in calls]
    for place, call in enumerate(calls):
        if call.function == AVG and _is_sum_over_count(call, collected):
            total = _place_of_sum(calls, call.arguments)
            if total is not None:
                _share_sum(compiler, sources, place, total, count)
    return sources


def _place_of_sum(calls: Sequence[AggregateCall], arguments: tuple[BoundExpression, ...]) -> int | None:
    """Where the sum of a whole column stands among the calls."""
    for place, call in enumerate(calls):
        if call.function == SUM and call.arguments == arguments and not _is_shaped(call):
            return place
    return None


def _is_sum_over_count(call: AggregateCall, collected: Collected) -> bool:
    """Whether an average is over numbers only, one of each row."""
    (argument,) = call.arguments
    known = argument.type is INTEGER or collected.slot(argument) in collected.floats
    return known and not argument.nullable and not _is_shaped(call)


def _share_sum(compiler: QueryCompiler, sources: list[str], average: int, total: int, count: str) -> None:
    """Compute an average from the sum of the same column, which is one of the results, too."""
    name = compiler.module.name("total")
    summed = f"({name} := {sources[total]})"
    first, second = (summed, name) if average < total else (name, summed)
    sources[average], sources[total] = f"{compiler.module.helper(mean)}({first}, {count})", second


def _result(compiler: QueryCompiler, call: AggregateCall, collected: Collected, count: str) -> str:
    module = compiler.module
    if counts_rows(call) and call.filter is None:
        return count
    evaluate = _evaluation(call, collected)
    function = module.bind(f"{call.function.name.lower()}_", evaluate)
    arguments = [f"column{collected.slot(argument)}" for argument in call.arguments]
    keyword = _order_key_argument(compiler, call)
    if not _is_shaped(call):
        if call.function.skips_nulls and call.arguments and call.arguments[0].nullable:
            if len(arguments) == 1:
                arguments = [_without_nulls(compiler, call, collected)]
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
    identity = _identities(compiler, call) if call.distinct else "None"
    skips = call.function.skips_nulls
    columns = tuple_display(arguments)
    return (
        f"{function}(*{shape}({columns}, {condition}, [{', '.join(order)}], {identity}, {skips})"
        f"{''.join(', ' + item for item in keyword)})"
    )


def _identities(compiler: QueryCompiler, call: AggregateCall) -> str:
    """Source of what tells the values of each argument apart; the one compared has the call's collation."""
    sources = []
    for place, argument in enumerate(call.arguments):
        own = argument.collation.name if argument.collation is not None else "BINARY"
        collation = compiler.services.collation(call.using if place == call.function.compared else own)
        recipe = identity_key(argument.type, argument.nullable, collation)
        sources.append(f"lambda value: {compiler.module.render(recipe.template, 'value')}")
    return tuple_display(sources)


def _is_over_floats(call: AggregateCall, collected: Collected) -> bool:
    """Whether the function has a quick way, and its argument is such that it may be taken."""
    if call.function.over_floats is None or _is_shaped(call):
        return False
    return collected.slot(call.arguments[0]) in collected.floats


def _evaluation(call: AggregateCall, collected: Collected) -> Callable[..., Any]:
    """The function over the columns that :func:`_result` writes."""
    function = call.function
    if function.over_floats is not None and _is_over_floats(call, collected):
        is_raw = collected.slot(call.arguments[0]) in collected.raw
        return finite_first(function.over_floats) if is_raw else function.over_floats
    return guarded_aggregate(function, call.position).evaluate


def _without_nulls(compiler: QueryCompiler, call: AggregateCall, collected: Collected) -> str:
    """Source of the column of a call's argument without its NULLs."""
    argument = collected.slot(call.arguments[0])
    column = f"column{argument}"
    if collected.raw.get(argument, True):
        column = f"[value for value in {column} if value is not None]"
    if argument in collected.raw and not _is_over_floats(call, collected):
        return f"{compiler.module.helper(finite_column)}({column})"
    return column


def _order_spec(compiler: QueryCompiler, term: SortTerm, collected: Collected) -> str:
    expression = term.expression
    recipe = order_key(expression.type, False, compiler.services.collation(term.using))
    key = "None" if recipe.is_plain else f"lambda value: {compiler.module.render(recipe.template, 'value')}"
    return f"(column{collected.slot(expression)}, {key}, {term.descending}, {term.nulls_last})"


def _order_key_argument(compiler: QueryCompiler, call: AggregateCall) -> list[str]:
    """The order key that min and max compare by, where values do not order themselves."""
    if not call.function.collated:
        return []
    compared = call.arguments[call.function.compared]
    recipe = order_key(compared.type, False, compiler.services.collation(call.using))
    if recipe.is_plain:
        return []
    return [f"key=lambda value: {compiler.module.render(recipe.template, 'value')}"]
