"""Evaluates one operator over literals: what constant folding needs, and no more.

It calls the same functions that generated code calls or inlines, so a folded
constant is the value that a row would have seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quereus_store.functions.registry import call_for
from quereus_store.plan.expressions import (
    Arithmetic,
    BoundExpression,
    Call,
    Cast,
    Comparison,
    Concat,
    IsTest,
    Literal,
    Negation,
    Not,
    Truth,
)
from quereus_store.types import Collation, CollationRank, cast, truth
from quereus_store.types.arithmetic import (
    BITWISE,
    ArithmeticMode,
    arithmetic_plan,
    arithmetic_template,
    concat,
    invert_bits,
    negate,
    positive,
)
from quereus_store.types.comparison import comparison_plan, comparison_template

Collations = Callable[[str], Collation]

UNARY: Mapping[str, Callable[[Any], Any]] = {"-": negate, "+": positive, "~": invert_bits}


def evaluate(expression: BoundExpression, collations: Collations) -> Any:
    """The value of an operator whose operands are all literals."""
    return _EVALUATORS[type(expression)](expression, collations)


def value_of(expression: BoundExpression) -> Any:
    """The value of a literal."""
    assert isinstance(expression, Literal)
    return expression.value


def _arithmetic(expression: Arithmetic, _: Collations) -> Any:
    left, right = value_of(expression.left), value_of(expression.right)
    if left is None or right is None:
        return None
    if expression.operator in BITWISE:
        return BITWISE[expression.operator](left, right)
    types = expression.left.type, expression.right.type
    template = arithmetic_template(expression.operator, *types)
    if (
        arithmetic_plan(*types) is ArithmeticMode.NUMBERS
        and template.source == f"({{0}} {expression.operator} {{1}})"
    ):
        return {"+": left + right, "-": left - right, "*": left * right}[expression.operator]
    return template.compile(2)(left, right)


def _comparison(expression: Comparison, collations: Collations) -> Any:
    left, right = value_of(expression.left), value_of(expression.right)
    null_safe = expression.operator in ("is", "is not")
    if left is None or right is None:
        if not null_safe:
            return None
        return (left is right) is (expression.operator == "is")
    plan = comparison_plan(expression.left.type, expression.right.type)
    operator = {"is": "=", "is not": "!="}.get(expression.operator, expression.operator)
    explicit = any(
        side.collation is not None and side.collation.rank is CollationRank.EXPLICIT
        for side in (expression.left, expression.right)
    )
    template = comparison_template(plan, operator, collations(expression.using), explicit_collation=explicit)
    return bool(template.compile(2)(left, right))


def _is_test(expression: IsTest, _: Collations) -> bool:
    value = value_of(expression.operand)
    if expression.test is Truth.NULL:
        holds = value is None
    else:
        holds = truth(value) is (expression.test is Truth.TRUE)
    return holds is not expression.negated


def _not(expression: Not, _: Collations) -> bool | None:
    verdict = truth(value_of(expression.operand))
    return None if verdict is None else not verdict


def _call(expression: Call, _: Collations) -> Any:
    arguments = [value_of(argument) for argument in expression.arguments]
    if expression.function.null_propagates and any(argument is None for argument in arguments):
        return None
    return call_for(expression.function, [argument.type for argument in expression.arguments])(*arguments)


_EVALUATORS: Mapping[type[BoundExpression], Callable[[Any, Collations], Any]] = {
    Arithmetic: _arithmetic,
    Negation: lambda expression, _: UNARY[expression.operator](value_of(expression.operand)),
    Concat: lambda expression, _: concat(value_of(expression.left), value_of(expression.right)),
    Cast: lambda expression, _: cast(value_of(expression.operand), expression.type),
    Comparison: _comparison,
    IsTest: _is_test,
    Not: _not,
    Call: _call,
}
