"""Window functions: which there are, their windows, their frames (queries, section 13; functions, section 9).

While a clause is bound, each window call becomes a reference to a column that a
:class:`WindowCollector` remembers; afterwards the collector stacks one
:class:`~quereus_store.plan.nodes.Window` node for each distinct partitioning and
ordering on the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.functions.registry import AggregateFunction
from quereus_store.functions.windows import check_window_call, frame_offset
from quereus_store.plan.binder.calls import bind_aggregate, collation_name, sort_term
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.expressions import ExpressionBinder, binds
from quereus_store.plan.binder.scopes import Scope
from quereus_store.plan.binder.syntax import mentions_columns
from quereus_store.plan.expressions import BoundExpression, Column, SortTerm, reference
from quereus_store.plan.nodes import (
    Frame,
    FrameBound,
    FrameExclusion,
    FrameUnit,
    PlanNode,
    Window,
    WindowCall,
)
from quereus_store.schema.objects import fold
from quereus_store.sql import nodes
from quereus_store.types import LogicalType, merge_types
from quereus_store.types.temporal.distances import MEASURED_TYPES


@dataclass(slots=True)
class _Group:
    """The calls that share one partitioning and ordering."""

    partition: tuple[BoundExpression, ...]
    order: tuple[SortTerm, ...]
    calls: list[WindowCall]
    columns: list[Column]


class WindowCollector:
    """The window calls of one SELECT, and the windows that it names.

    ``scope`` is what OVER sees where that is not what the call's clause sees.
    """

    __slots__ = ("columns", "environment", "groups", "named", "scope")

    def __init__(self, environment: Environment, definitions: Sequence[nodes.WindowDefinition]) -> None:
        self.environment = environment
        self.named: dict[str, nodes.WindowSpecification] = {}
        self.groups: list[_Group] = []
        self.columns: set[int] = set()
        self.scope: Scope | None = None
        for definition in definitions:
            if fold(definition.name) in self.named:
                raise sql_error(
                    StatusCode.ERROR, f"Duplicate window name '{definition.name}'", definition.position
                )
            self.named[fold(definition.name)] = self.resolve(definition.specification)

    def resolve(self, window: nodes.WindowSpecification | nodes.WindowReference) -> nodes.WindowSpecification:
        """A window with the named one that it refers to worked in."""
        if isinstance(window, nodes.WindowReference):
            return self._named(window.name, window)
        if window.base is None:
            return window
        base = self._named(window.base, window)
        if window.partition_by:
            raise sql_error(
                StatusCode.ERROR, f"cannot override PARTITION BY of window '{window.base}'", window.position
            )
        if window.order_by and base.order_by:
            raise sql_error(
                StatusCode.ERROR, f"cannot override ORDER BY of window '{window.base}'", window.position
            )
        if base.frame is not None:
            raise sql_error(
                StatusCode.ERROR, f"cannot refine window '{window.base}', which has a frame", window.position
            )
        return replace(
            window, partition_by=base.partition_by, order_by=window.order_by or base.order_by, base=None
        )

    def _named(self, name: str, node: nodes.Node) -> nodes.WindowSpecification:
        found = self.named.get(fold(name))
        if found is None:
            raise sql_error(StatusCode.ERROR, f"Unknown window name: {name}", node.position)
        return found

    def add(
        self,
        partition: tuple[BoundExpression, ...],
        order: tuple[SortTerm, ...],
        call: WindowCall,
        column: Column,
    ) -> BoundExpression:
        """Remember a call; the reference to its column."""
        group = next(
            (known for known in self.groups if known.partition == partition and known.order == order), None
        )
        if group is None:
            group = _Group(partition, order, [], [])
            self.groups.append(group)
        group.calls.append(call)
        group.columns.append(column)
        self.columns.add(column.id)
        return reference(column)

    def plan(self, source: PlanNode) -> PlanNode:
        """The window nodes over their input."""
        for group in self.groups:
            source = Window(
                (*source.columns, *group.columns),
                source,
                group.partition,
                tuple(map(collation_name, group.partition)),
                group.order,
                tuple(group.calls),
            )
        return source


@binds(nodes.WindowCall)
def _window_call(binder: ExpressionBinder, node: nodes.WindowCall) -> BoundExpression:
    collector = binder.windows
    name = fold(node.call.name)
    position = node.position or node.call.position
    if collector is None:
        raise sql_error(StatusCode.ERROR, f"Window function {name} not allowed in this context", position)
    specification = collector.resolve(node.window)
    inner = ExpressionBinder(binder.environment, binder.scope, binder.aggregates)
    window = ExpressionBinder(binder.environment, collector.scope or binder.scope, binder.aggregates)
    partition = window.bind_all(specification.partition_by)
    order = tuple([sort_term(window.bind(term.expression), term) for term in specification.order_by])
    frame = _frame(inner, specification.frame, order)
    registry = binder.environment.context.registry
    function = registry.find(name, len(node.call.arguments))
    if isinstance(function, AggregateFunction):
        call, column = _aggregate_call(inner, node, function, frame)
    else:
        call, column = _ranking_call(inner, node, bool(order), frame)
    return collector.add(partition, order, call, column)


def _ranking_call(
    binder: ExpressionBinder, node: nodes.WindowCall, ordered: bool, frame: Frame
) -> tuple[WindowCall, Column]:
    call = node.call
    function = check_window_call(
        call.spelling or call.name, len(call.arguments), ordered, node.position or call.position
    )
    if call.order_by:
        raise sql_error(
            StatusCode.ERROR,
            f"ORDER BY is only allowed in an aggregate call, not in {function.name}",
            call.position,
        )
    arguments = binder.bind_all(call.arguments)
    filter_ = None if call.filter is None else binder.bind(call.filter)
    types = [argument.type for argument in arguments]
    returns = function.returns
    result = returns if isinstance(returns, LogicalType) else returns(types)
    if len(types) > 2:
        result = merge_types((result, types[2]))
    collation = arguments[0].collation if arguments else None
    column = binder.environment.column(function.name, result, function.nullable, collation)
    return WindowCall(function, arguments, frame, filter_), column


def _aggregate_call(
    binder: ExpressionBinder, node: nodes.WindowCall, function: AggregateFunction, frame: Frame
) -> tuple[WindowCall, Column]:
    bound = bind_aggregate(binder, function, node.call)
    column = binder.environment.column(function.name, bound.type, bound.nullable)
    window_call = WindowCall(
        function,
        bound.arguments,
        frame,
        bound.filter,
        bound.distinct,
        using=bound.using,
        order=bound.order,
        position=bound.position,
    )
    return window_call, column


# --- frames -------------------------------------------------------------------------------------------------

_WHOLE = Frame(FrameUnit.RANGE, FrameBound.UNBOUNDED_PRECEDING, FrameBound.UNBOUNDED_FOLLOWING)
_RUNNING = Frame(FrameUnit.RANGE, FrameBound.UNBOUNDED_PRECEDING, FrameBound.CURRENT_ROW)


def _frame(binder: ExpressionBinder, frame: nodes.WindowFrame | None, order: tuple[SortTerm, ...]) -> Frame:
    if frame is None:
        return _RUNNING if order else _WHOLE
    unit = FrameUnit(frame.unit.value)
    offsets = frame.start.offset is not None or frame.end.offset is not None
    if unit is FrameUnit.RANGE and offsets and len(order) != 1:
        raise sql_error(
            StatusCode.ERROR, "RANGE with an offset needs exactly one ORDER BY term", frame.position
        )
    measured = order[0].expression.type if order else None
    return Frame(
        unit,
        FrameBound(frame.start.kind.value),
        FrameBound(frame.end.kind.value),
        _offset(binder, frame.start, unit, measured),
        _offset(binder, frame.end, unit, measured),
        FrameExclusion.NO_OTHERS if frame.exclusion is None else FrameExclusion(frame.exclusion.value),
        (_offset_position(frame.start), _offset_position(frame.end)),
    )


def _offset_position(bound: nodes.FrameBound) -> SourcePosition | None:
    return bound.position if bound.offset is None else bound.offset.position or bound.position


def _offset(
    binder: ExpressionBinder,
    bound: nodes.FrameBound,
    unit: FrameUnit,
    measured: LogicalType | None,
) -> BoundExpression | None:
    """A bound's offset, checked as far as it is known; ``measured``: the type that RANGE measures."""
    node = bound.offset
    if node is None:
        return None
    position = _offset_position(bound)
    if mentions_columns(node):
        raise sql_error(
            StatusCode.UNSUPPORTED, "Window frame offsets must be constant numeric literals", position
        )
    negative = isinstance(node, nodes.UnaryOperation) and node.operator is nodes.UnaryOperator.MINUS
    literal = node.operand if isinstance(node, nodes.UnaryOperation) and negative else node
    if isinstance(literal, nodes.Literal):
        value: Any = literal.value
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if unit is FrameUnit.RANGE and isinstance(value, str) and not negative and measured in MEASURED_TYPES:
            frame_offset(value, unit.value, measured, position)
            return ExpressionBinder(binder.environment, None).bind(node)
        if number and negative:
            value = -value
        if not number:
            raise sql_error(
                StatusCode.UNSUPPORTED, "Window frame offsets must be constant numeric literals", position
            )
        if value < 0 or (unit is not FrameUnit.RANGE and value != int(value)):
            raise sql_error(
                StatusCode.ERROR,
                f"Invalid window frame offset: {value}. Must be a non-negative integer.",
                position,
            )
    return ExpressionBinder(binder.environment, None).bind(node)
