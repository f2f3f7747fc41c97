"""Function calls: lookup, special forms, aggregates (functions, section 1; queries, section 8).

Some functions must not evaluate all their arguments, or compare them by the rules
of ``=``; they are nodes of their own: ``coalesce``, ``iif``, ``nullif``,
``greatest``, ``least``.  A function of the program registered under one of these
names wins over the form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.functions.aggregates.indicators import GROUPING
from quereus_store.functions.registry import (
    AggregateFunction,
    Function,
    FunctionRegistry,
    ScalarFunction,
    TableFunction,
)
from quereus_store.plan.binder.comparisons import extremum, null_if
from quereus_store.plan.binder.expressions import NULL_LITERAL, ExpressionBinder, binds, case_of
from quereus_store.plan.binder.scopes import KeyedScope
from quereus_store.plan.expressions import (
    AggregateCall,
    BoundExpression,
    Call,
    Coalesce,
    SortTerm,
)
from quereus_store.sql import nodes, traversal
from quereus_store.types import LogicalType, merge_types

if TYPE_CHECKING:
    from collections.abc import Sequence

_BUILT_IN_PACKAGE = "quereus_store.functions"


@binds(nodes.FunctionCall)
def _call(binder: ExpressionBinder, node: nodes.FunctionCall) -> BoundExpression:
    function = find_function(binder.environment.context.registry, node)
    if isinstance(function, AggregateFunction):
        if binder.aggregates is None:
            return _outer_aggregate(binder, function, node)
        if function is GROUPING:
            return binder.aggregates.indicator(node)
        return binder.aggregates.add(
            bind_aggregate(binder.aggregates.argument_binder(binder), function, node)
        )
    if isinstance(function, TableFunction):
        raise sql_error(
            StatusCode.ERROR,
            f"Table-valued function {node.name.lower()} not allowed in this context",
            node.position,
        )
    if node.filter is not None or node.order_by:
        clause = "FILTER" if node.filter is not None else "ORDER BY"
        raise sql_error(
            StatusCode.ERROR,
            f"{clause} is only allowed in an aggregate call, not in {node.name.lower()}",
            node.position,
        )
    arguments = binder.bind_all(node.arguments)
    form = _FORMS.get(function.name.lower())
    if form is not None and function.call.__module__.startswith(_BUILT_IN_PACKAGE):
        return form(arguments, node)
    return scalar_call(function, arguments, node)


def _outer_aggregate(
    binder: ExpressionBinder, function: AggregateFunction, node: nodes.FunctionCall
) -> BoundExpression:
    """An aggregate where this query may have none: it belongs to the grouped query whose columns it reads."""
    names = [part for part in traversal.walk(node) if isinstance(part, nodes.ColumnReference)]
    scope = binder.scope
    while scope is not None and names:
        if isinstance(scope, KeyedScope):
            return scope.aggregate(function, node)
        if any(scope.find(name) is not None for name in names):
            break
        scope = scope.parent
    raise sql_error(
        StatusCode.ERROR,
        f"Aggregate function {node.name.lower()} not allowed in this context",
        node.position,
    )


def scalar_call(
    function: ScalarFunction, arguments: tuple[BoundExpression, ...], node: nodes.FunctionCall
) -> Call:
    """A call of a scalar function; raises MISMATCH for argument types that it refuses."""
    types = [argument.type for argument in arguments]
    _check(function, types, node)
    nullable = function.nullable or (
        function.null_propagates and any(argument.nullable for argument in arguments)
    )
    return Call(_result_type(function, types), nullable, None, function, arguments, node.position)


def find_function(registry: FunctionRegistry, node: nodes.FunctionCall) -> Function:
    """The function that a call names; raises ERROR for an unknown name or number of arguments."""
    if node.star and (node.arguments or node.distinct):
        raise sql_error(
            StatusCode.ERROR, "'*' cannot be used with other arguments in function call.", node.position
        )
    function = registry.find(node.name, len(node.arguments))
    if function is None:
        raise function_not_found(node)
    return function


def function_not_found(node: nodes.FunctionCall) -> Error:
    """The error for a call that no function fits."""
    name = node.spelling or node.name
    return sql_error(StatusCode.ERROR, f"Function not found: {name}/{len(node.arguments)}", node.position)


def bind_aggregate(
    binder: ExpressionBinder, function: AggregateFunction, node: nodes.FunctionCall
) -> AggregateCall:
    """An aggregate call; ``binder`` sees the rows of the group."""
    arguments = binder.bind_all(node.arguments)
    types = [argument.type for argument in arguments]
    _check(function, types, node)
    return AggregateCall(
        _result_type(function, types),
        function.nullable,
        None,
        function,
        arguments,
        node.distinct,
        None if node.filter is None else binder.bind(node.filter),
        tuple([sort_term(binder.bind(term.expression), term) for term in node.order_by]),
        collation_name(arguments[function.compared]) if arguments else "BINARY",
        node.position,
    )


def sort_term(expression: BoundExpression, term: nodes.OrderingTerm) -> SortTerm:
    """One term of an ORDER BY over a bound expression."""
    return SortTerm(
        expression,
        term.descending,
        term.nulls is nodes.NullsPlacement.LAST,
        collation_name(expression),
    )


def collation_name(expression: BoundExpression) -> str:
    """The collation under which an expression is ordered and grouped."""
    contribution = expression.collation
    return contribution.name if contribution is not None else "BINARY"


def _check(
    function: ScalarFunction | AggregateFunction, types: Sequence[LogicalType], node: nodes.FunctionCall
) -> None:
    if function.check is not None:
        try:
            function.check(types)
        except Error as error:
            raise error.located(node.position) from None


def _result_type(function: ScalarFunction | AggregateFunction, types: Sequence[LogicalType]) -> LogicalType:
    returns = function.returns
    return returns if isinstance(returns, LogicalType) else returns(types)


# --- special forms ------------------------------------------------------------------------------------------

_Form = Callable[[tuple[BoundExpression, ...], nodes.FunctionCall], BoundExpression]


def _coalesce(arguments: tuple[BoundExpression, ...], node: nodes.FunctionCall) -> BoundExpression:
    if not arguments:
        return NULL_LITERAL
    merged = merge_types([argument.type for argument in arguments])
    return Coalesce(merged, all(argument.nullable for argument in arguments), None, arguments)


def _iif(arguments: tuple[BoundExpression, ...], node: nodes.FunctionCall) -> BoundExpression:
    condition, then, *otherwise = arguments
    return case_of([(condition, then)], otherwise[0] if otherwise else NULL_LITERAL)


def _null_if(arguments: tuple[BoundExpression, ...], node: nodes.FunctionCall) -> BoundExpression:
    return null_if(arguments[0], arguments[1], node.position)


def _greatest(arguments: tuple[BoundExpression, ...], node: nodes.FunctionCall) -> BoundExpression:
    return extremum(True, arguments, node.position) if arguments else NULL_LITERAL


def _least(arguments: tuple[BoundExpression, ...], node: nodes.FunctionCall) -> BoundExpression:
    return extremum(False, arguments, node.position) if arguments else NULL_LITERAL


_FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        "coalesce": _coalesce,
        "ifnull": _coalesce,
        "iif": _iif,
        "nullif": _null_if,
        "greatest": _greatest,
        "least": _least,
    }
)
