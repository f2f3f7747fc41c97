"""Bound expressions as text, for EXPLAIN: close to the SQL they came from, columns by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from quereus_store.plan import expressions as bound
from quereus_store.plan.expressions import BoundExpression


def expression_text(expression: BoundExpression) -> str:
    """The expression in a form for people."""
    writer = _WRITERS.get(type(expression))
    return writer(expression) if writer else type(expression).__name__.lower()


def _joined(expressions: Iterable[BoundExpression], separator: str = ", ") -> str:
    return separator.join(expression_text(expression) for expression in expressions)


def _literal(expression: bound.Literal) -> str:
    value = expression.value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(value)


def _parameter(expression: bound.Parameter) -> str:
    return f"?{expression.slot + 1}" if isinstance(expression.slot, int) else f":{expression.slot}"


def _operand(expression: BoundExpression) -> str:
    text = expression_text(expression)
    nested = isinstance(
        expression, bound.Conjunction | bound.Disjunction | bound.Comparison | bound.Arithmetic | bound.Concat
    )
    return f"({text})" if nested else text


def conjunct_text(expression: BoundExpression) -> str:
    """A condition as it stands among others that must be true as well."""
    weaker = isinstance(expression, bound.Disjunction | bound.ExclusiveOr)
    return f"({expression_text(expression)})" if weaker else expression_text(expression)


def _binary(expression: Any) -> str:
    return f"{_operand(expression.left)} {expression.operator} {_operand(expression.right)}"


def _comparison(expression: bound.Comparison) -> str:
    left, right = expression_text(expression.left), expression_text(expression.right)
    collation = "" if expression.using == "BINARY" else f" collate {expression.using.lower()}"
    return f"{left} {expression.operator} {right}{collation}"


def _case(expression: bound.Case) -> str:
    branches = "".join(
        f" when {expression_text(condition)} then {expression_text(result)}"
        for condition, result in expression.branches
    )
    return f"case{branches} else {expression_text(expression.otherwise)} end"


def _is_test(expression: bound.IsTest) -> str:
    return f"{_operand(expression.operand)} is {'not ' if expression.negated else ''}{expression.test.value}"


def _pattern(expression: bound.PatternMatch) -> str:
    return f"{_operand(expression.operand)} {expression.kind.value} {_operand(expression.pattern)}"


def _aggregate(expression: bound.AggregateCall) -> str:
    arguments = _joined(expression.arguments) or ("*" if expression.function.name == "count" else "")
    distinct = "distinct " if expression.distinct else ""
    filtered = f" filter ({expression_text(expression.filter)})" if expression.filter else ""
    return f"{expression.function.name}({distinct}{arguments}){filtered}"


_WRITERS: Mapping[type[BoundExpression], Callable[[Any], str]] = MappingProxyType(
    {
        bound.Literal: _literal,
        bound.Parameter: _parameter,
        bound.ContextValue: lambda e: f"context.{e.name}",
        bound.ColumnRef: lambda e: e.name or f"#{e.id}",
        bound.Cast: lambda e: f"cast({expression_text(e.operand)} as {e.type.name.lower()})",
        bound.Arithmetic: _binary,
        bound.Negation: lambda e: f"{e.operator}{_operand(e.operand)}",
        bound.Concat: lambda e: f"{_operand(e.left)} || {_operand(e.right)}",
        bound.Comparison: _comparison,
        bound.Between: lambda e: (
            f"{_operand(e.low.left)} between {_operand(e.low.right)} and {_operand(e.high.right)}"
        ),
        bound.InList: lambda e: f"{_operand(e.operand)} in ({_joined(e.items)})",
        bound.Conjunction: lambda e: " and ".join(map(conjunct_text, e.operands)),
        bound.Disjunction: lambda e: " or ".join(_operand(operand) for operand in e.operands),
        bound.ExclusiveOr: lambda e: f"{_operand(e.left)} xor {_operand(e.right)}",
        bound.Not: lambda e: f"not {_operand(e.operand)}",
        bound.IsTest: _is_test,
        bound.PatternMatch: _pattern,
        bound.Case: _case,
        bound.Coalesce: lambda e: f"coalesce({_joined(e.operands)})",
        bound.Extremum: lambda e: f"{'greatest' if e.greatest else 'least'}({_joined(e.operands)})",
        bound.NullIf: lambda e: f"nullif({expression_text(e.operand)}, ...)",
        bound.Call: lambda e: f"{e.function.name}({_joined(e.arguments)})",
        bound.AggregateCall: _aggregate,
        bound.ScalarSubquery: lambda e: "(subquery)",
        bound.Exists: lambda e: "exists (subquery)",
        bound.InSubquery: lambda e: f"{_joined(e.operands)} in (subquery)",
        bound.Quantified: lambda e: (
            f"{_operand(e.operand)} {e.operator} {'all' if e.every else 'any'} (subquery)"
        ),
    }
)
