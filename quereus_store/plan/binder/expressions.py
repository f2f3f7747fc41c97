"""Expressions: from syntax tree to bound expression (queries, section 2; types-and-values, sections 6 to 16).

:class:`ExpressionBinder` binds the expressions of one clause: it knows the
clause's names (a scope) and what is allowed there (aggregates, windows).  What a
node becomes is one entry in a table of functions, filled here and by the modules
``calls``, ``subqueries`` and ``windows`` through :func:`binds`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from quereus_store.errors import SourcePosition, StatusCode, sql_error, unsupported
from quereus_store.functions.registry import ScalarFunction
from quereus_store.plan.binder.comparisons import (
    between,
    compare,
    compare_rows,
    conjunction,
    disjunction,
    in_list,
    negation,
    one_of_rows,
    simple_case,
)
from quereus_store.plan.binder.context import BindContext, Environment
from quereus_store.plan.binder.scopes import KeyedScope, Scope, lookup, unknown_column
from quereus_store.plan.expressions import (
    Arithmetic,
    BoundExpression,
    Case,
    Cast,
    Concat,
    ExclusiveOr,
    IsTest,
    Literal,
    Negation,
    Parameter,
    PatternKind,
    PatternMatch,
    ScalarSubquery,
    Truth,
)
from quereus_store.plan.nodes import PlanNode
from quereus_store.sql import nodes
from quereus_store.sql.clock import clock_call
from quereus_store.sql.nodes import BinaryOperator, UnaryOperator
from quereus_store.types import (
    ANY,
    BOOLEAN,
    INTEGER,
    NULL,
    TEXT,
    CollationContribution,
    CollationRank,
    arithmetic_is_nullable,
    arithmetic_type,
    carry_contributions,
    cast_is_nullable,
    merge_types,
    type_of_value,
    unary_type,
)

if TYPE_CHECKING:
    from quereus_store.plan.binder.grouping import Grouping
    from quereus_store.plan.binder.windows import WindowCollector

NULL_LITERAL = Literal(NULL, True, None, None)
_Node = TypeVar("_Node", bound=nodes.Expression)
_BinderFunction = Callable[["ExpressionBinder", Any], BoundExpression]
_BINDERS: dict[type, _BinderFunction] = {}


def binds(
    node_type: type[_Node],
) -> Callable[
    [Callable[[ExpressionBinder, _Node], BoundExpression]],
    Callable[[ExpressionBinder, _Node], BoundExpression],
]:
    """Declare a function as the one that binds a node class."""

    def declare(
        function: Callable[[ExpressionBinder, _Node], BoundExpression],
    ) -> Callable[[ExpressionBinder, _Node], BoundExpression]:
        _BINDERS[node_type] = function
        return function

    return declare


class ExpressionBinder:
    """Binds the expressions of one clause.

    ``aggregates`` collects aggregate calls where they may stand, ``windows``
    window calls; None refuses them.
    """

    __slots__ = ("_keyed", "aggregates", "environment", "scope", "windows")

    def __init__(
        self,
        environment: Environment,
        scope: Scope | None,
        aggregates: Grouping | None = None,
        windows: WindowCollector | None = None,
    ) -> None:
        self.environment = environment
        self.scope = scope
        self.aggregates = aggregates
        self.windows = windows
        self._keyed = _keyed_scopes(scope)

    def bind(self, node: nodes.Expression) -> BoundExpression:
        """Bind one expression; raises ERROR, MISMATCH or UNSUPPORTED at the place of the mistake."""
        if self._keyed and (key := self.group_key(node)) is not None:
            return key
        function = _BINDERS.get(type(node))
        if function is None:
            raise unsupported(f"{type(node).__name__} in an expression", node.position)
        return function(self, node)

    def group_key(self, node: nodes.Expression) -> BoundExpression | None:
        """The expression key of a grouped level that a node is written like."""
        for scope in self._keyed:
            key = scope.match(node, self.scope)
            if key is not None:
                return key
        return None

    def bind_all(self, expressions: Sequence[nodes.Expression]) -> tuple[BoundExpression, ...]:
        """Bind several expressions."""
        return tuple([self.bind(node) for node in expressions])

    def bind_row(self, node: nodes.Expression) -> tuple[BoundExpression, ...]:
        """Bind an operand that may be a row value: one expression a component."""
        return self.bind_all(node.items) if isinstance(node, nodes.RowValue) else (self.bind(node),)

    def within(self, scope: Scope | None) -> ExpressionBinder:
        """A binder for the same environment that allows neither aggregates nor windows."""
        return ExpressionBinder(self.environment, scope)


def _keyed_scopes(scope: Scope | None) -> tuple[KeyedScope, ...]:
    """The grouped levels in sight whose keys include expressions, innermost first."""
    found: list[KeyedScope] = []
    while scope is not None:
        if isinstance(scope, KeyedScope) and scope.has_expression_keys:
            found.append(scope)
        scope = scope.parent
    return tuple(found)


def is_row(node: nodes.Expression) -> bool:
    """Whether an operand is a row value of several components."""
    return isinstance(node, nodes.RowValue) and len(node.items) > 1


# --- leaves -------------------------------------------------------------------------------------------------


@binds(nodes.Literal)
def _literal(binder: ExpressionBinder, node: nodes.Literal) -> BoundExpression:
    value = node.value
    return Literal(type_of_value(value), value is None, None, value)


@binds(nodes.Parameter)
def _parameter(binder: ExpressionBinder, node: nodes.Parameter) -> BoundExpression:
    slot = node.name if node.index is None else node.index - 1
    if slot is None:
        raise sql_error(
            StatusCode.ERROR, "Expected identifier or number after parameter prefix.", node.position
        )
    environment = binder.environment
    context = environment.context
    context.references.parameters.setdefault(slot, node.position)
    if environment.parameters is not None and slot in environment.parameters:
        return environment.parameters[slot]
    return parameter(context, slot)


def parameter(context: BindContext, slot: int | str) -> Parameter:
    """A parameter of the type of its value; it can be NULL where that does not say that it is not."""
    slot_type = context.parameters.get(slot, ANY)
    nullable = slot_type is ANY or slot_type is NULL or slot in context.nullable_parameters
    return Parameter(slot_type, nullable, None, slot)


def scalar(plan: PlanNode, position: SourcePosition | None) -> ScalarSubquery:
    """The value of a plan of one column."""
    column = plan.columns[0]
    return ScalarSubquery(column.type, True, column.collation, plan, position)


@binds(nodes.ColumnReference)
def _column(binder: ExpressionBinder, node: nodes.ColumnReference) -> BoundExpression:
    found = lookup(binder.scope, node)
    if found is not None:
        return found
    clock = clock_call(node)
    if clock is None:
        raise unknown_column(node)
    return binder.bind(clock)


@binds(nodes.DefaultValue)
def _default(binder: ExpressionBinder, node: nodes.DefaultValue) -> BoundExpression:
    raise sql_error(
        StatusCode.ERROR, "DEFAULT is only allowed as a value of INSERT and UPDATE.", node.position
    )


# --- operators ----------------------------------------------------------------------------------------------


@binds(nodes.UnaryOperation)
def _unary(binder: ExpressionBinder, node: nodes.UnaryOperation) -> BoundExpression:
    operand = binder.bind(node.operand)
    operator = node.operator
    if operator is UnaryOperator.NOT:
        return negation(operand)
    if isinstance(operand, Literal) and operand.type.is_numeric and operator is not UnaryOperator.BIT_NOT:
        value = operand.value
        return replace(operand, value=-value) if operator is UnaryOperator.MINUS else operand
    exact = operand.type is INTEGER or (operand.type.is_numeric and operator is not UnaryOperator.BIT_NOT)
    return Negation(
        unary_type(operator.value, operand.type), operand.nullable or not exact, None, operator.value, operand
    )


_BIT_OPERATORS = frozenset(("&", "|", "<<", ">>"))
_COMPARISONS = {
    BinaryOperator.EQUAL: "=",
    BinaryOperator.DOUBLE_EQUAL: "=",
    BinaryOperator.NOT_EQUAL: "!=",
    BinaryOperator.LESS: "<",
    BinaryOperator.LESS_EQUAL: "<=",
    BinaryOperator.GREATER: ">",
    BinaryOperator.GREATER_EQUAL: ">=",
}


@binds(nodes.BinaryOperation)
def _binary(binder: ExpressionBinder, node: nodes.BinaryOperation) -> BoundExpression:
    operator = node.operator
    comparison = _COMPARISONS.get(operator)
    if comparison is not None:
        return bind_comparison(binder, comparison, node.left, node.right, node)
    if operator is BinaryOperator.AND or operator is BinaryOperator.OR:
        return _connective(binder, node)
    left, right = binder.bind(node.left), binder.bind(node.right)
    if operator is BinaryOperator.CONCATENATE:
        collation = carry_contributions((left.collation, right.collation))
        return Concat(TEXT, left.nullable or right.nullable, collation, left, right)
    if operator is BinaryOperator.XOR:
        return ExclusiveOr(BOOLEAN, left.nullable or right.nullable, None, left, right)
    return arithmetic(operator.value, left, right)


def arithmetic(operator: str, left: BoundExpression, right: BoundExpression) -> BoundExpression:
    """An arithmetic operation; only ``+ - *`` and the bit operators on NOT NULL INTEGERs are never NULL."""
    if operator in _BIT_OPERATORS:
        exact = left.type is INTEGER and right.type is INTEGER
        nullable = not exact or left.nullable or right.nullable
        return Arithmetic(INTEGER, nullable, None, operator, left, right)
    nullable = arithmetic_is_nullable(operator, left.type, left.nullable, right.type, right.nullable)
    return Arithmetic(arithmetic_type(operator, left.type, right.type), nullable, None, operator, left, right)


def _connective(binder: ExpressionBinder, node: nodes.BinaryOperation) -> BoundExpression:
    operator = node.operator
    chain: list[nodes.Expression] = [node.right]
    left = node.left
    while (
        isinstance(left, nodes.BinaryOperation)
        and left.operator is operator
        and binder.group_key(left) is None
    ):
        chain.append(left.right)
        left = left.left
    chain.append(left)
    chain.reverse()
    operands = [binder.bind(operand) for operand in chain]
    return conjunction(operands) if operator is BinaryOperator.AND else disjunction(operands)


# --- predicates ---------------------------------------------------------------------------------------------


def bind_comparison(
    binder: ExpressionBinder,
    operator: str,
    left: nodes.Expression,
    right: nodes.Expression,
    node: nodes.Expression,
) -> BoundExpression:
    """A comparison of two values or two row values."""
    if is_row(left) or is_row(right):
        from quereus_store.plan.binder.subqueries import compare_with_row_subquery

        if isinstance(right, nodes.Subquery):
            return compare_with_row_subquery(binder, operator, left, right, node.position)
        if isinstance(left, nodes.Subquery):
            return compare_with_row_subquery(binder, _MIRRORED[operator], right, left, node.position)
        return compare_rows(operator, binder.bind_row(left), binder.bind_row(right), node.position)
    return compare(operator, _component(binder, left), _component(binder, right), node.position)


_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="} | {
    name: name for name in ("=", "!=", "is", "is not")
}


def _component(binder: ExpressionBinder, node: nodes.Expression) -> BoundExpression:
    return binder.bind(node.items[0] if isinstance(node, nodes.RowValue) and len(node.items) == 1 else node)


@binds(nodes.RowValue)
def _row_value(binder: ExpressionBinder, node: nodes.RowValue) -> BoundExpression:
    if len(node.items) == 1:
        return binder.bind(node.items[0])
    raise sql_error(StatusCode.ERROR, "A row value may only stand in a comparison or IN.", node.position)


@binds(nodes.IsTest)
def _is_test(binder: ExpressionBinder, node: nodes.IsTest) -> BoundExpression:
    test = Truth.NULL if node.target is nodes.IsTarget.UNKNOWN else Truth(node.target.value)
    if is_row(node.operand) and test is Truth.NULL:
        parts = [
            IsTest(BOOLEAN, False, None, part, test, node.negated) for part in binder.bind_row(node.operand)
        ]
        return conjunction(parts)
    return IsTest(BOOLEAN, False, None, binder.bind(node.operand), test, node.negated)


@binds(nodes.IsDistinctFrom)
def _is_distinct(binder: ExpressionBinder, node: nodes.IsDistinctFrom) -> BoundExpression:
    return bind_comparison(binder, "is" if node.negated else "is not", node.left, node.right, node)


@binds(nodes.Between)
def _between(binder: ExpressionBinder, node: nodes.Between) -> BoundExpression:
    if any(map(is_row, (node.operand, node.low, node.high))):
        operand = binder.bind_row(node.operand)
        found = conjunction(
            [
                compare_rows(">=", operand, binder.bind_row(node.low), node.position),
                compare_rows("<=", operand, binder.bind_row(node.high), node.position),
            ]
        )
    else:
        value, low, high = binder.bind_all((node.operand, node.low, node.high))
        found = between(value, low, high, node.position)
    return negation(found) if node.negated else found


@binds(nodes.InList)
def _in_list(binder: ExpressionBinder, node: nodes.InList) -> BoundExpression:
    if is_row(node.operand) or any(map(is_row, node.items)):
        rows = [binder.bind_row(item) for item in node.items]
        return one_of_rows(binder.bind_row(node.operand), rows, node.position)
    return in_list(_component(binder, node.operand), binder.bind_all(node.items), node.position)


@binds(nodes.PatternMatch)
def _pattern_match(binder: ExpressionBinder, node: nodes.PatternMatch) -> BoundExpression:
    operand, pattern = binder.bind(node.operand), binder.bind(node.pattern)
    if node.operator is nodes.PatternOperator.MATCH:
        return _program_match(binder, node, operand, pattern)
    escape = None if node.escape is None else binder.bind(node.escape)
    nullable = operand.nullable or pattern.nullable or (escape is not None and escape.nullable)
    return PatternMatch(BOOLEAN, nullable, None, PatternKind(node.operator.value), operand, pattern, escape)


def _program_match(
    binder: ExpressionBinder, node: nodes.PatternMatch, operand: BoundExpression, pattern: BoundExpression
) -> BoundExpression:
    """``x match y`` is ``match(y, x)``, which only a program can define; raises ERROR where none did."""
    from quereus_store.plan.binder.calls import scalar_call

    function = binder.environment.context.registry.find("match", 2)
    if not isinstance(function, ScalarFunction):
        raise sql_error(
            StatusCode.ERROR, "unable to use function MATCH in the requested context", node.position
        )
    call = nodes.FunctionCall("match", (node.pattern, node.operand), position=node.position)
    return scalar_call(function, (pattern, operand), call)


# --- conditional expressions, conversions -------------------------------------------------------------------


@binds(nodes.Case)
def _case(binder: ExpressionBinder, node: nodes.Case) -> BoundExpression:
    otherwise = NULL_LITERAL if node.otherwise is None else binder.bind(node.otherwise)
    if node.operand is None:
        branches = [(binder.bind(when.condition), binder.bind(when.result)) for when in node.whens]
        return case_of(branches, otherwise)
    if is_row(node.operand):
        operand = binder.bind_row(node.operand)
        return case_of(
            [
                (
                    compare_rows("=", operand, binder.bind_row(when.condition), when.position),
                    binder.bind(when.result),
                )
                for when in node.whens
            ],
            otherwise,
        )
    probe = binder.bind(node.operand)
    members = [binder.bind(when.condition) for when in node.whens]
    shared, shared_id, conditions = simple_case(probe, members, binder.environment, node)
    results = [binder.bind(when.result) for when in node.whens]
    made = case_of(list(zip(conditions, results, strict=True)), otherwise)
    return replace(made, shared=shared, shared_id=shared_id) if shared is not None else made


def case_of(branches: Sequence[tuple[BoundExpression, BoundExpression]], otherwise: BoundExpression) -> Case:
    """A searched CASE; its type is merged from the results."""
    results = [result for _, result in branches] + [otherwise]
    return Case(
        merge_types([result.type for result in results]),
        any(result.nullable for result in results),
        carry_contributions([result.collation for result in results]),
        tuple(branches),
        otherwise,
    )


@binds(nodes.Cast)
def _cast(binder: ExpressionBinder, node: nodes.Cast) -> BoundExpression:
    operand = binder.bind(node.operand)
    target = binder.environment.context.types.resolve(node.type_name.name)
    nullable = cast_is_nullable(operand.type, target, operand.nullable)
    return Cast(target, nullable, operand.collation if target is TEXT else None, operand)


@binds(nodes.Collate)
def _collate(binder: ExpressionBinder, node: nodes.Collate) -> BoundExpression:
    operand = binder.bind(node.operand)
    collation = binder.environment.context.collations.get(node.collation, node.position)
    return replace(operand, collation=CollationContribution(collation.name, CollationRank.EXPLICIT))
