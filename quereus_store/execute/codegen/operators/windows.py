"""Window functions: rows are gathered with everything that the calls read, then handed to a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from quereus_store.execute.codegen import kernels, window_kernels
from quereus_store.execute.codegen.compiler import QueryCompiler, constant_value, operator
from quereus_store.execute.codegen.expressions import ExpressionCompiler
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.codegen.operators.ordering import sort_key, sort_source
from quereus_store.execute.codegen.pipeline import Clause, Pipeline, column_ids
from quereus_store.execute.spilling.windows import SpillingWindow
from quereus_store.functions.registry import AggregateFunction, guarded_aggregate
from quereus_store.plan import nodes
from quereus_store.plan.expressions import BoundExpression, Column, ColumnRef, Places
from quereus_store.types.sortkeys import identity_key, order_key


class _Wide:
    """Rows of the input's columns, widened by the other expressions that the window reads."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.ids = list(column_ids(columns))
        self._at = {column: place for place, column in enumerate(self.ids)}
        self._places = Places()

    @property
    def computed(self) -> list[BoundExpression]:
        """The other expressions."""
        return self._places.items

    def position(self, expression: BoundExpression) -> int:
        """Where an expression's value stands in a row."""
        place = self._at.get(expression.id) if isinstance(expression, ColumnRef) else None
        return len(self.ids) + self._places.of(expression) if place is None else place


@operator(nodes.Window)
def window(compiler: QueryCompiler, node: nodes.Window) -> Pipeline:
    """All calls over one partitioning and ordering."""
    module = compiler.module
    wide = _Wide(node.input.columns)
    partition = _identity(compiler, wide, node.partition, node.partition_using)
    order = _identity(
        compiler, wide, [term.expression for term in node.order], [term.using for term in node.order]
    )
    positions = [wide.position(term.expression) for term in node.order]
    tasks = [_task(compiler, node, call, wide, positions) for call in node.calls]
    pipeline = compiler.open(node.input)
    width = len(wide.ids)

    def row(compiled: ExpressionCompiler) -> str:
        sources = [compiled.scope.column(column_id) for column_id in wide.ids]
        return (
            tuple_display([*sources, *compiled.values(wide.computed)]) if wide.ids or wide.computed else "()"
        )

    rows = compiler.close_values(pipeline, row) if wide.computed else compiler.close(pipeline, wide.ids)
    sort = sort_source(compiler, node.order, positions)
    if compiler.memory_limit:
        key = sort_key(compiler, node.order, positions) if node.order else "None"
        arguments = (
            f"{width}, {partition}, {sort}, {order}, {tuple_display(tasks)}, {key}, {compiler.share()}"
        )
        return compiler.over_batches(
            f"{module.helper(SpillingWindow)}({arguments}).rows({rows})", node.columns
        )
    gather, kernel = module.helper(kernels.gather), module.helper(window_kernels.window_values)
    source = f"{kernel}({gather}({rows}), {partition}, {sort}, {order}, {tuple_display(tasks)})"
    return _over_values(compiler, f"{module.helper(kernels.in_batches)}({source})", node)


def _over_values(compiler: QueryCompiler, source: str, node: nodes.Window) -> Pipeline:
    """A pipeline over batches of input rows, each with the values of the calls beside it."""
    module = compiler.module
    row, batch = module.name("r"), module.name("batch")
    values = [module.name("v") for _ in node.calls]
    columns = [*(f"{row}[{index}]" for index in range(len(node.input.columns))), *values]
    return Pipeline(
        source=source,
        batch=batch,
        loop=Clause("for", batch, tuple_display([row, *values])),
        bindings=dict(zip(column_ids(node.columns), columns, strict=True)),
    )


def _identity(
    compiler: QueryCompiler, wide: _Wide, keys: Sequence[BoundExpression], using: Sequence[str]
) -> str:
    """Source of a function from a row to the identity of some expressions; ``None`` for none."""
    if not keys:
        return "None"
    parts = []
    recipes = [
        identity_key(key.type, key.nullable, compiler.services.collation(name))
        for key, name in zip(keys, using, strict=True)
    ]
    if all(recipe.is_plain for recipe in recipes):
        return f"{compiler.module.helper(itemgetter)}({', '.join(str(wide.position(key)) for key in keys)})"
    for key, recipe in zip(keys, recipes, strict=True):
        parts.append(compiler.module.render(recipe.template, f"row[{wide.position(key)}]"))
    return f"lambda row: {parts[0] if len(parts) == 1 else tuple_display(parts)}"


def _task(
    compiler: QueryCompiler,
    node: nodes.Window,
    call: nodes.WindowCall,
    wide: _Wide,
    positions: Sequence[int],
) -> str:
    module = compiler.module
    arguments = [wide.position(argument) for argument in call.arguments]
    used = call.function
    if isinstance(used, AggregateFunction):
        used = guarded_aggregate(used, call.position)
        if call.order and used.ordered:
            arguments += [wide.position(term.expression) for term in call.order]
            used = _in_order(compiler, used, call)
    function = module.bind("window_function", used)
    frame = call.frame
    measured = frame.unit is nodes.FrameUnit.RANGE and (frame.start_offset or frame.end_offset)
    distance = positions[0] if measured and positions else None
    keep = None if call.filter is None else wide.position(call.filter)
    descending = bool(node.order) and node.order[0].descending
    key = "None"
    if isinstance(call.function, AggregateFunction) and call.function.collated:
        compared = call.arguments[call.function.compared]
        recipe = order_key(compared.type, False, compiler.services.collation(call.using))
        if not recipe.is_plain:
            key = f"lambda value: {module.render(recipe.template, 'value')}"
    specification = _frame(compiler, node, frame)
    return (
        f"{module.helper(window_kernels.WindowTask)}({function}, {tuple(arguments)!r}, {specification},"
        f" {keep}, {distance}, {descending}, {call.ignore_nulls}, {key})"
    )


def _in_order(
    compiler: QueryCompiler, function: AggregateFunction, call: nodes.WindowCall
) -> AggregateFunction:
    """The aggregate over its arguments and the values that ORDER BY within the call sorts them by."""
    terms = []
    for term in call.order:
        collation = compiler.services.collation(term.using)
        recipe = order_key(term.expression.type, False, collation)
        key = None if recipe.is_plain else recipe.function
        terms.append(window_kernels.OrderTerm(key, term.descending, term.nulls_last))
    return window_kernels.ordered_aggregate(function, len(call.arguments), terms)


def _frame(compiler: QueryCompiler, node: nodes.Window, frame: nodes.Frame) -> str:
    module = compiler.module
    none = module.bind("no_offset", window_kernels.NO_OFFSET)
    start = constant_value(compiler, frame.start_offset) if frame.start_offset else none
    end = constant_value(compiler, frame.end_offset) if frame.end_offset else none
    kinds = (frame.unit.value, frame.start.value, frame.end.value, frame.exclusion.value)
    source = f"{module.helper(window_kernels.frame)}({', '.join(map(repr, kinds))}, {start}, {end}"
    if not frame.start_offset and not frame.end_offset:
        return f"{source})"
    measured = module.bind("measured", node.order[0].expression.type if node.order else None)
    return f"{source}, {measured}, {module.bind('places', frame.positions)})"
