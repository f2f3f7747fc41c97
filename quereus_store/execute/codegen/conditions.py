"""Predicates as Python source that is truthy exactly when they are true, or exactly when they are false.

:data:`CONDITIONS` has a function for each kind of predicate; ``wanted`` tells which of the two is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quereus_store.execute.codegen import library
from quereus_store.execute.codegen.arithmetic import raw_real
from quereus_store.execute.codegen.fragments import TEXTS, Strict, all_of, is_simple, not_null, tuple_display
from quereus_store.plan import expressions as bound
from quereus_store.plan.expressions import BoundExpression
from quereus_store.types import ANY, BOOLEAN, INTEGER, NULL, REAL, TEXT, CollationRank, truth
from quereus_store.types.comparison import ComparisonMode, comparison_plan, comparison_template, nan_aware
from quereus_store.types.sortkeys import identity_key
from quereus_store.types.templates import Template

if TYPE_CHECKING:
    from quereus_store.execute.codegen.expressions import ExpressionCompiler

_SAFE_EQUALITIES = ("{0} == {1}", "({0} == {1} or ")
_NEVER_NAN = frozenset({INTEGER, BOOLEAN, *TEXTS})
_INVERSE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

_AROUND: Mapping[str, tuple[str, str]] = {
    "{0} < {1}": ("{0} < ", " < {1}"),
    "{0} <= {1}": ("{0} < ", " < {1}"),
    "{0} > {1}": ("{1} > ", " > {0}"),
    "{0} >= {1}": ("{1} > ", " > {0}"),
    "{0} == {1}": ("{0} < ", " < {1}"),
}
"""What is compared before a comparison if its left side is raw, and after it if its right side is."""


def _and(compiler: ExpressionCompiler, expression: bound.Conjunction, wanted: bool) -> str:
    return _connect(compiler, expression.operands, wanted, wanted)


def _or(compiler: ExpressionCompiler, expression: bound.Disjunction, wanted: bool) -> str:
    return _connect(compiler, expression.operands, wanted, not wanted)


def _connect(
    compiler: ExpressionCompiler, operands: Sequence[BoundExpression], wanted: bool, conjunctive: bool
) -> str:
    first, *rest = operands
    parts = [compiler.condition(first, wanted)]
    compiler.conditional += 1
    parts += [compiler.condition(operand, wanted) for operand in rest]
    compiler.conditional -= 1
    return "(" + (" and " if conjunctive else " or ").join(parts) + ")"


def _xor(compiler: ExpressionCompiler, expression: bound.ExclusiveOr, wanted: bool) -> str:
    function = compiler.module.helper(library.exclusive_or)
    left, right = _truth_of(compiler, expression.left), _truth_of(compiler, expression.right)
    return f"{function}({left}, {right}) is {wanted}"


def _truth_of(compiler: ExpressionCompiler, expression: BoundExpression) -> str:
    if type(expression) in CONDITIONS:
        return compiler.truth_value(expression)
    return f"{compiler.module.helper(truth)}({compiler.value(expression)})"


def _not(compiler: ExpressionCompiler, expression: bound.Not, wanted: bool) -> str:
    return compiler.condition(expression.operand, not wanted)


def _is_test(compiler: ExpressionCompiler, expression: bound.IsTest, wanted: bool) -> str:
    positive = expression.negated is not wanted
    if expression.test is bound.Truth.NULL:
        return compiler.null_test(expression.operand, positive)
    condition = compiler.condition(expression.operand, expression.test is bound.Truth.TRUE)
    return condition if positive else f"not ({condition})"


def _exists(compiler: ExpressionCompiler, expression: bound.Exists, wanted: bool) -> str:
    source = compiler.scope.subquery(expression.plan, "exists", bool(compiler.conditional))
    return source if wanted else f"not {source}"


def _comparison(compiler: ExpressionCompiler, expression: bound.Comparison, wanted: bool) -> str:
    if expression.operator in ("is", "is not"):
        return _identity(compiler, expression, wanted)
    operator = expression.operator if wanted else _INVERSE[expression.operator]
    operands = compiler.strict_operands(expression.left, expression.right)
    template = _template(compiler, expression, operator, inline=operands is not None)
    if operands is None:
        of_finite = _of_finite(compiler, expression, operator)
        if of_finite is not None:
            return of_finite
        compare = compiler.module.bind("compare", library.null_safe(template))
        return f"{compare}({compiler.value(expression.left)}, {compiler.value(expression.right)})"
    (a, b), guards = operands
    if operator == "=" and template.source.startswith(_SAFE_EQUALITIES) and _only_side(guards, a, b):
        guards = ()
    if not template.names:
        a, b = _number(compiler, expression.left, a), _number(compiler, expression.right, b)
    return all_of([*not_null(guards), compiler.module.render(template, a, b)])


def _of_finite(compiler: ExpressionCompiler, expression: bound.Comparison, operator: str) -> str | None:
    """A comparison of raw real arithmetic, true of finite results only."""
    sides = expression.left, expression.right
    raw = [raw_real(compiler, side) for side in sides]
    left, right = (it or compiler.strict(side) for it, side in zip(raw, sides, strict=True))
    if raw == [None, None] or left is None or right is None:
        return None
    a, b = _number(compiler, expression.left, left.source), _number(compiler, expression.right, right.source)
    lowest, highest = (compiler.module.constant(limit) for limit in (-math.inf, math.inf))
    template = _template(compiler, expression, operator, inline=True)
    around = _AROUND.get(template.source)
    # At its other end a raw side is bounded by the other side: strictly, or because that is finite itself.
    if around is not None and (operator in ("<", ">") or None not in raw or any(map(_is_finite, sides))):
        before, after = (part.format(lowest, highest) for part in around)
        test = f"{before if raw[0] else ''}{template.render(a, b)}{after if raw[1] else ''}"
    else:
        tests = [f"{lowest} < {it.source} < {highest}" for it in raw if it is not None]
        test = " and ".join([*tests, compiler.module.render(template, a, b)])
    return all_of([*not_null(dict.fromkeys((*left.guards, *right.guards))), f"({test})"])


def _is_finite(expression: BoundExpression) -> bool:
    """Whether this is surely a finite number."""
    if isinstance(expression, bound.Literal):
        return isinstance(expression.value, (int, float)) and math.isfinite(expression.value)
    return expression.type is INTEGER


def _template(
    compiler: ExpressionCompiler, expression: bound.Comparison, operator: str, *, inline: bool = False
) -> Template:
    """The comparison; ``inline`` for operands that :func:`_number` writes."""
    left, right = expression.left, expression.right
    plan = comparison_plan(left.type, right.type)
    never = (_never_nan(left), _never_nan(right)) if inline else (False, False)
    template = comparison_template(
        plan,
        operator,
        compiler.scope.collation(expression.using),
        explicit_collation=_is_explicit(left) or _is_explicit(right),
        never_nan=never,
    )
    if inline and template.source.count("{0}") > 1 and not (_is_repeatable(left) and _is_repeatable(right)):
        return _called(compiler, template)
    return template


def _called(compiler: ExpressionCompiler, template: Template) -> Template:
    """The template as a function, for operands that are computed once."""
    return Template(f"{compiler.module.bind('compare', template.compile(2))}({{0}}, {{1}})")


def _is_repeatable(expression: BoundExpression) -> bool:
    """Whether an operand may be written twice: it costs little, and gives the same again."""
    if isinstance(expression, bound.Arithmetic):
        return _is_repeatable(expression.left) and _is_repeatable(expression.right)
    return is_simple(expression)


def _never_nan(expression: BoundExpression) -> bool:
    """Whether an operand is no NaN (arithmetic gives NULL), or written as one that knows how it compares."""
    if isinstance(expression, bound.Literal):
        return bool(expression.value == expression.value)
    if isinstance(expression, bound.Cast):
        return expression.operand.type in _NEVER_NAN
    if isinstance(expression, bound.Arithmetic):
        return True
    return _is_real_parameter(expression)


def _is_real_parameter(expression: BoundExpression) -> bool:
    """Whether an operand is a parameter that may be NaN."""
    return isinstance(expression, bound.Parameter) and expression.type is REAL


def _number(compiler: ExpressionCompiler, expression: BoundExpression, source: str) -> str:
    """An operand as it is compared."""
    if _is_real_parameter(expression):
        return compiler.scope.hoist(f"{compiler.module.helper(nan_aware)}({source})")
    return source


def _identity(compiler: ExpressionCompiler, expression: bound.Comparison, wanted: bool) -> str:
    same = (expression.operator == "is") is wanted
    compare = compiler.module.bind("same", library.null_equal(_template(compiler, expression, "=")))
    a, b = compiler.values((expression.left, expression.right))
    return f"{'' if same else 'not '}{compare}({a}, {b})"


def _between(compiler: ExpressionCompiler, expression: bound.Between, wanted: bool) -> str:
    low, high = expression.low, expression.high
    if wanted and low.left == high.left and is_simple(low.left):
        templates = [_template(compiler, side, "<=", inline=True).source for side in (low, high)]
        operands = compiler.strict_operands(low.right, low.left, high.right)
        if (
            templates == ["{0} <= {1}", "{0} <= {1}"]
            and operands is not None
            and not _is_real_parameter(high.right)
        ):
            (a, x, b), guards = operands
            return all_of([*not_null(guards), f"{a} <= {x} <= {b}"])
    return _connect(compiler, (low, high), wanted, wanted)


def _in_list(compiler: ExpressionCompiler, expression: bound.InList, wanted: bool) -> str:
    if not expression.items:
        return repr(not wanted)
    in_set = _in_set(compiler, expression, wanted) or _among_texts(compiler, expression, wanted)
    if in_set is not None:
        return in_set
    equalities = tuple(
        bound.Comparison(BOOLEAN, True, None, "=", expression.operand, item, expression.using)
        for item in expression.items
    )
    return _connect(compiler, equalities, wanted, not wanted)


def _in_set(compiler: ExpressionCompiler, expression: bound.InList, wanted: bool) -> str | None:
    """Membership in a set made beforehand, where no item depends on a row."""
    operand = expression.operand
    items = [item for item in expression.items if item.type is not NULL]
    if not items or not all(isinstance(item, bound.Literal | bound.Parameter) for item in expression.items):
        return None
    if any(item.nullable for item in items):
        return None
    modes = {comparison_plan(operand.type, item.type).mode for item in items}
    if not modes <= {ComparisonMode.NATIVE} and not modes <= {ComparisonMode.TEXT}:
        return None
    strict = compiler.strict(operand) or (None if operand.nullable else Strict(compiler.value(operand)))
    if strict is None:
        return None
    if not wanted and len(items) < len(expression.items):
        return "False"
    recipe = identity_key(operand.type, False, compiler.scope.collation(expression.using))
    if all(isinstance(item, bound.Literal) for item in items):
        members = frozenset(recipe.apply(item.value) for item in items)  # type: ignore[attr-defined]
        name = compiler.module.bind("members", members)
    else:
        keys = ", ".join(compiler.module.render(recipe.template, compiler.value(item)) for item in items)
        name = compiler.scope.hoist(f"frozenset(({keys},))")
    key = compiler.module.render(recipe.template, strict.source)
    return all_of([*not_null(strict.guards), f"{key} {'' if wanted else 'not '}in {name}"])


def _among_texts(compiler: ExpressionCompiler, expression: bound.InList, wanted: bool) -> str | None:
    """Membership in literal texts: of what may be NULL, or of any class if no text spells a duration."""
    texts = [item.value for item in expression.items if isinstance(item, bound.Literal)]
    operand = expression.operand
    if operand.type not in (ANY, TEXT) or len(texts) < len(expression.items):
        return None
    if not compiler.scope.collation(expression.using).is_binary:
        return None
    if not all(type(text) is str and (operand.type is TEXT or text[:1] not in ("P", "-")) for text in texts):
        return None
    make = library.is_among if wanted else library.is_not_among
    test = compiler.module.bind("among", make(frozenset(texts)))
    return f"{test}({compiler.value(operand)})"


def _in_subquery(compiler: ExpressionCompiler, expression: bound.InSubquery, wanted: bool) -> str:
    members = compiler.scope.subquery(expression.plan, "members", bool(compiler.conditional), expression)
    operands = compiler.values(expression.operands)
    if len(operands) == 1:
        method = "has" if wanted else "lacks"
        return f"{members}.{method}({operands[0]})"
    method = "has_row" if wanted else "lacks_row"
    return f"{members}.{method}({tuple_display(operands)})"


def _quantified(compiler: ExpressionCompiler, expression: bound.Quantified, wanted: bool) -> str:
    rows = compiler.scope.subquery(expression.plan, "rows", bool(compiler.conditional))
    function = compiler.module.helper(library.quantified)
    column = expression.plan.columns[0]
    plan = comparison_plan(expression.operand.type, column.type)
    template = comparison_template(plan, expression.operator, compiler.scope.collation(expression.using))
    compare = compiler.module.bind("compare", library.null_safe(template))
    return (
        f"{function}({compiler.value(expression.operand)}, {rows}, {compare}, {expression.every}) is {wanted}"
    )


def _pattern(compiler: ExpressionCompiler, expression: bound.PatternMatch, wanted: bool) -> str:
    pattern, escape = expression.pattern, expression.escape
    if isinstance(pattern, bound.Literal) and isinstance(escape, bound.Literal | None):
        operands = compiler.strict_operands(expression.operand)
        if isinstance(pattern.value, str) and expression.operand.type in TEXTS and operands is not None:
            mark = escape.value if escape is not None else None
            template = library.constant_pattern(expression.kind, pattern.value, mark)
            test = compiler.module.render(template, operands[0][0])
            return all_of([*not_null(operands[1]), test if wanted else f"not {test}"])
    match = compiler.module.helper(library.PATTERNS[expression.kind])
    arguments = compiler.values((expression.operand, pattern))
    if escape is not None:
        arguments.append(compiler.value(escape))
    return f"{match}({', '.join(arguments)}) is {wanted}"


def _only_side(guards: Sequence[str], left: str, right: str) -> bool:
    """Whether the one thing that may be NULL is a whole side of an equality: it then equals nothing."""
    if len(guards) != 1:
        return False
    (guard,) = guards
    return (left == guard and guard not in right) or (right == guard and guard not in left)


def _is_explicit(expression: BoundExpression) -> bool:
    """Whether COLLATE stands in the expression itself."""
    return expression.collation is not None and expression.collation.rank is CollationRank.EXPLICIT


_ConditionMethod = Callable[["ExpressionCompiler", Any, bool], str]

CONDITIONS: Mapping[type[BoundExpression], _ConditionMethod] = {
    bound.Conjunction: _and,
    bound.Disjunction: _or,
    bound.ExclusiveOr: _xor,
    bound.Not: _not,
    bound.IsTest: _is_test,
    bound.Exists: _exists,
    bound.Comparison: _comparison,
    bound.Between: _between,
    bound.InList: _in_list,
    bound.InSubquery: _in_subquery,
    bound.Quantified: _quantified,
    bound.PatternMatch: _pattern,
}
