"""Arithmetic as Python's own operators.

Integers are exact in both languages, so ``+ - *`` over two of them are written out.  Reals differ in one
thing: where Python's result is infinite or no number, SQL's is NULL.  In a tree of ``+ - *`` such a result
stays what it is up to the root, whatever is done to it.  So a *raw* tree is written out as well, and looked
at once at its root: by :func:`~quereus_store.execute.codegen.library.finite` where its value is wanted, by
two comparisons in a row where it is compared, by the sum of the whole column where it is aggregated.

An integer in such a tree becomes a real first; Python would refuse to do that with one beyond all reals.

Chapter: types-and-values, section 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quereus_store.execute.codegen import library
from quereus_store.execute.codegen.fragments import Strict, is_simple
from quereus_store.plan import expressions as bound
from quereus_store.plan.expressions import BoundExpression
from quereus_store.types import INTEGER, REAL
from quereus_store.types.arithmetic import BITWISE, arithmetic_template
from quereus_store.types.values import int_to_float

if TYPE_CHECKING:
    from quereus_store.execute.codegen.expressions import ExpressionCompiler

_EXACT = 2**53
"""Up to here every integer is a real, too."""

_WORD = 2**63
"""Integers between this and its negative are far from what Python cannot turn into a real."""


def arithmetic(compiler: ExpressionCompiler, expression: bound.Arithmetic) -> str:
    """Source of the value."""
    strict = strict_arithmetic(compiler, expression)
    if strict is not None:
        return strict.value()
    raw = raw_real(compiler, expression)
    if raw is not None:
        return Strict(f"{compiler.module.helper(library.finite)}({raw.source})", raw.guards).value()
    left, right = expression.left, expression.right
    operands = None if expression.operator in BITWISE else compiler.strict_operands(left, right)
    if operands is not None:
        template = arithmetic_template(expression.operator, left.type, right.type)
        return Strict(compiler.module.render(template, *operands[0]), operands[1]).value()
    function = library.arithmetic(expression.operator, left.type, right.type)
    name = compiler.module.bind("arithmetic", function)
    return f"{name}({compiler.value(left)}, {compiler.value(right)})"


def strict_arithmetic(compiler: ExpressionCompiler, expression: bound.Arithmetic) -> Strict | None:
    """``+ - *`` of integers, which cannot make NULL."""
    left, right = expression.left, expression.right
    if expression.operator not in ("+", "-", "*") or not (left.type is right.type is INTEGER):
        return None
    operands = compiler.strict_operands(left, right)
    if operands is None:
        return None
    (a, b), guards = operands
    return Strict(f"({a} {expression.operator} {b})", guards)


def raw_real(compiler: ExpressionCompiler, expression: BoundExpression) -> Strict | None:
    """Real arithmetic as a Python float that is not finite where SQL has NULL; None for anything else."""
    if not isinstance(expression, bound.Arithmetic):
        return None
    left, right, operator = expression.left, expression.right, expression.operator
    if operator not in ("+", "-", "*") and not (operator == "/" and _is_divisor(right)):
        return None
    raw = raw_real(compiler, left), raw_real(compiler, right)
    reals = [it is not None or side.type is REAL for it, side in zip(raw, (left, right), strict=True)]
    if not (reals[0] if operator == "/" else any(reals)):
        return None
    a, b = raw[0] or _raw_operand(compiler, left), raw[1] or _raw_operand(compiler, right)
    if a is None or b is None:
        return None
    return Strict(f"({a.source} {operator} {b.source})", tuple(dict.fromkeys((*a.guards, *b.guards))))


def _is_divisor(expression: BoundExpression) -> bool:
    """Whether this is a constant by which a finite real, and no other, has a finite quotient or none."""
    if not isinstance(expression, bound.Literal) or expression.type not in (INTEGER, REAL):
        return False
    value = expression.value
    return type(value) in (int, float) and 0 < abs(value) < _EXACT


def _raw_operand(compiler: ExpressionCompiler, expression: BoundExpression) -> Strict | None:
    """An operand of a raw tree that is none itself, as a float."""
    if expression.type not in (INTEGER, REAL):
        return None
    strict = compiler.strict(expression)
    if strict is None:
        if expression.nullable:
            return None
        strict = Strict(compiler.value(expression))
    if expression.type is REAL:
        return strict
    if isinstance(expression, bound.Literal) and abs(expression.value) <= _EXACT:
        return Strict(compiler.module.constant(float(expression.value)))
    convert = f"{compiler.module.helper(int_to_float)}({strict.source})"
    if is_simple(expression):
        convert = f"({strict.source} if -{_WORD} < {strict.source} < {_WORD} else {convert})"
    return Strict(convert, strict.guards)


def finite_column(column: list[float]) -> list[float]:
    """The values of a raw tree without those that stand for NULL."""
    # A sum is finite only if everything in it is.
    if -math.inf < sum(column) < math.inf:
        return column
    return [value for value in column if -math.inf < value < math.inf]


def finite_first(evaluate: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """An aggregate over the column of a raw tree, if it is finite only where all its numbers are."""

    def apply(column: list[Any]) -> Any:
        result = evaluate(column)
        if result is not None and math.isfinite(result):
            return result
        return evaluate(finite_column(column))

    return apply
