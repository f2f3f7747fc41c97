"""Bound expressions as Python source.

Two questions are asked of an expression:

* :meth:`ExpressionCompiler.value`: source of its value, ``None`` for NULL;
* :meth:`ExpressionCompiler.condition`: source that is truthy exactly when the
  expression is true (or, asked so, exactly when it is false).  With both,
  three-valued logic disappears: a filter never sees NULL, NOT swaps the
  question, AND and OR become Python's.

Declared types decide what is written out.  Where both sides of an operator
have a family whose Python operators agree with SQL's (numbers; text under
BINARY or a collation with a template; blobs), the operator is inlined, else a
library function is called.  A NULL-strict tree of inlined operators is guarded
once by the nullable columns in it: ``None if r0[1] is None else r0[1] * 2 + 1``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from quereus_store.errors import StatusCode, sql_error
from quereus_store.execute.codegen import library
from quereus_store.execute.codegen.source import SourceModule
from quereus_store.functions.registry import call_for, guarded
from quereus_store.plan import expressions as bound
from quereus_store.plan.expressions import BoundExpression
from quereus_store.types import (
    ANY,
    BOOLEAN,
    DATE,
    DATETIME,
    INTEGER,
    NULL,
    NUMERIC,
    REAL,
    TEXT,
    TIME,
    TIMESTAMP,
    Collation,
    CollationRank,
    caster,
    truth,
)
from quereus_store.types.arithmetic import BITWISE, arithmetic_template, concat
from quereus_store.types.comparison import (
    ComparisonMode,
    comparison_plan,
    comparison_template,
    list_comparator,
)
from quereus_store.types.sortkeys import identity_key
from quereus_store.types.templates import Template
from quereus_store.types.values import int_to_text, to_text

NUMBERS = frozenset({INTEGER, REAL, NUMERIC, BOOLEAN, TIMESTAMP})
TEXTS = frozenset({TEXT, DATE, TIME, DATETIME})

_INVERSE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


_MOST_NESTED = 20
"""So many alternatives are written one inside the other; Python's parser has a limit."""


class Scope(Protocol):
    """What an expression compiler needs to know of its surroundings."""

    module: SourceModule

    def column(self, column_id: int) -> str:
        """Source of a column's value; cheap to repeat."""
        ...

    def parameter(self, slot: int | str) -> str:
        """Source of a parameter's value."""
        ...

    def context_value(self, number: int) -> str:
        """Source of a value of the mutation context."""
        ...

    def collation(self, name: str) -> Collation:
        """A registered collation."""
        ...

    def context(self) -> str:
        """Source of the statement's runtime context."""
        ...

    def subquery(self, plan: Any, kind: str, conditional: bool, extra: Any = None) -> str:
        """Source that evaluates a subquery: its scalar, its existence, its set of keys, its rows."""
        ...

    def hoist(self, source: str) -> str:
        """Name of a local that holds the value of row-independent source."""
        ...


@dataclass(frozen=True, slots=True)
class Strict:
    """A NULL-strict value: NULL exactly if one of ``guards`` (source of nullable operands) is."""

    source: str
    guards: tuple[str, ...] = ()

    def value(self) -> str:
        """Source with the guards applied."""
        if not self.guards:
            return self.source
        if self.guards == (self.source,):
            return self.source
        tests = " or ".join(f"{guard} is None" for guard in self.guards)
        return f"(None if {tests} else {self.source})"


class ExpressionCompiler:
    """Compiles bound expressions within a scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.module = scope.module
        self._conditional = 0

    # -- values ---------------------------------------------------------------

    def value(self, expression: BoundExpression) -> str:
        """Source of the expression's value."""
        method = _VALUES.get(type(expression))
        if method is not None:
            return method(self, expression)
        strict = self.strict(expression)
        if strict is not None:
            return strict.value()
        if type(expression) in _CONDITIONS:
            return self._truth_value(expression)
        raise sql_error(StatusCode.INTERNAL, f"no code for {type(expression).__name__}")

    def values(self, expressions: Sequence[BoundExpression]) -> list[str]:
        """Sources of several values."""
        return [self.value(expression) for expression in expressions]

    def strict(self, expression: BoundExpression) -> Strict | None:
        """The expression as inlined operators over guarded operands, if it can be written so."""
        method = _STRICT.get(type(expression))
        return method(self, expression) if method else None

    def _strict_operands(self, *operands: BoundExpression) -> tuple[list[str], tuple[str, ...]] | None:
        """Sources of operands and all their guards; None if one may be NULL for other reasons."""
        sources: list[str] = []
        guards: dict[str, None] = {}
        for operand in operands:
            strict = self.strict(operand)
            if strict is None:
                if operand.nullable:
                    return None
                strict = Strict(self.value(operand))
            sources.append(strict.source)
            guards.update(dict.fromkeys(strict.guards))
        return sources, tuple(guards)

    def _literal(self, expression: bound.Literal) -> str:
        return self.module.constant(expression.value)

    def _strict_literal(self, expression: bound.Literal) -> Strict | None:
        return None if expression.value is None else Strict(self._literal(expression))

    def _strict_column(self, expression: bound.ColumnRef) -> Strict:
        source = self.scope.column(expression.id)
        return Strict(source, (source,) if expression.nullable and not self.module.is_value(source) else ())

    def _strict_parameter(self, expression: bound.Parameter) -> Strict:
        source = self.scope.parameter(expression.slot)
        return Strict(source, (source,) if expression.nullable or expression.type is NULL else ())

    def _strict_context_value(self, expression: bound.ContextValue) -> Strict:
        source = self.scope.context_value(expression.number)
        return Strict(source, (source,) if expression.nullable or expression.type is NULL else ())

    def _strict_arithmetic(self, expression: bound.Arithmetic) -> Strict | None:
        """Operators that cannot make NULL of numbers: ``+ - *`` over two of one type."""
        left, right = expression.left, expression.right
        if expression.operator not in ("+", "-", "*") or left.type is not right.type:
            return None
        if left.type is not INTEGER and left.type is not REAL:
            return None
        operands = self._strict_operands(left, right)
        if operands is None:
            return None
        (a, b), guards = operands
        return Strict(f"({a} {expression.operator} {b})", guards)

    def _arithmetic(self, expression: bound.Arithmetic) -> str:
        strict = self._strict_arithmetic(expression)
        if strict is not None:
            if expression.type is REAL:
                finite = self.module.helper(library.finite)
                return Strict(f"{finite}{strict.source}", strict.guards).value()
            return strict.value()
        left, right = expression.left, expression.right
        operands = None if expression.operator in BITWISE else self._strict_operands(left, right)
        if operands is not None:
            template = arithmetic_template(expression.operator, left.type, right.type)
            return Strict(self.module.render(template, *operands[0]), operands[1]).value()
        function = library.arithmetic(expression.operator, left.type, right.type)
        return f"{self.module.bind('arithmetic', function)}({self.value(left)}, {self.value(right)})"

    def _negation(self, expression: bound.Negation) -> str:
        operand = expression.operand
        if operand.type in (INTEGER, REAL) and expression.operator == "-":
            strict = self.strict(operand)
            if strict is not None:
                return Strict(f"(-{strict.source})", strict.guards).value()
        return f"{self.module.helper(library.UNARY[expression.operator])}({self.value(operand)})"

    def _concat(self, expression: bound.Concat) -> str:
        operands = _concat_operands(expression)
        strict = self._strict_operands(*operands)
        if strict is not None:
            texts = [
                source if operand.type in TEXTS else f"{self._text_of(operand)}({source})"
                for operand, source in zip(operands, strict[0], strict=True)
            ]
            return Strict("(" + " + ".join(texts) + ")", strict[1]).value()
        join = self.module.helper(concat)
        source = self.value(operands[0])
        for operand in operands[1:]:
            source = f"{join}({source}, {self.value(operand)})"
        return source

    def _text_of(self, operand: BoundExpression) -> str:
        whole = operand.type is INTEGER and isinstance(operand, bound.ColumnRef)
        return self.module.helper(int_to_text if whole else to_text)

    def _cast(self, expression: bound.Cast) -> str:
        operand = expression.operand
        source = self.value(operand)
        if expression.type in (operand.type, ANY):
            return source
        name = f"cast_{expression.type.name.lower()}_"
        return f"{self.module.bind(name, caster(expression.type))}({source})"

    def _case(self, expression: bound.Case) -> str:
        shared = ""
        if expression.shared is not None:
            shared = self.value(expression.shared)
        self._conditional += 1
        source = self.value(expression.otherwise)
        branches = [
            (self.condition(condition), self.value(result)) for condition, result in expression.branches
        ]
        if len(branches) > _MOST_NESTED:
            choices = [f"({condition}) and ({result},)" for condition, result in branches]
            source = f"({' or '.join(choices)} or ({source},))[0]"
        else:
            for condition, result in reversed(branches):
                source = f"({result} if {condition} else {source})"
        self._conditional -= 1
        if shared:
            return f"(lambda {shared_name(expression.shared_id)}: {source})({shared})"
        return source

    def _coalesce(self, expression: bound.Coalesce) -> str:
        *first, last = expression.operands
        self._conditional += 1
        if len(first) > _MOST_NESTED:
            operands = ", ".join(f"lambda: {self.value(operand)}" for operand in expression.operands)
            self._conditional -= 1
            return f"{self.module.helper(library.first_value)}(({operands}))"
        source = self.value(last)
        for operand in reversed(first):
            value = self.value(operand)
            if not operand.nullable or self.module.is_value(value):
                source = value
            elif _is_simple(operand):
                source = f"({value} if {value} is not None else {source})"
            else:
                source = f"{self.module.helper(library.first_not_null)}({value}, lambda: {source})"
        self._conditional -= 1
        return source

    def _extremum(self, expression: bound.Extremum) -> str:
        function = self.module.helper(library.extremum)
        operands = tuple_display(self.values(expression.operands))
        keys = (
            operands
            if expression.keys == expression.operands
            else tuple_display(self.values(expression.keys))
        )
        order = list_comparator(expression.plan, self.scope.collation(expression.using))
        return f"{function}({expression.greatest}, {operands}, {keys}, {self.module.bind('order', order)})"

    def _null_if(self, expression: bound.NullIf) -> str:
        return f"(None if {self.condition(expression.condition)} else {self.value(expression.operand)})"

    def _call(self, expression: bound.Call) -> str:
        function = expression.function
        inlined = self._inline_call(expression)
        if inlined is not None:
            return inlined
        quick = self._call_with_constants(expression)
        if quick is not None:
            return quick
        types = [argument.type for argument in expression.arguments]
        call_ = (
            guarded(function, expression.position, types) if function.raises else call_for(function, types)
        )
        name = self.module.bind(f"{function.name.lower()}_", call_)
        arguments = self.values(expression.arguments)
        if function.needs_context:
            arguments.insert(0, self.scope.context())
        call = f"{name}({', '.join(arguments)})"
        nullable = [
            (argument, source)
            for argument, source in zip(
                expression.arguments, arguments[-len(expression.arguments) :], strict=False
            )
            if argument.nullable and not self.module.is_value(source)
        ]
        if not function.null_propagates or not nullable:
            return call
        if all(_is_simple(argument) for argument, _ in nullable):
            return Strict(call, tuple(source for _, source in nullable)).value()
        return f"{self.module.helper(library.call_strict)}({name}, {', '.join(arguments)})"

    def _call_with_constants(self, expression: bound.Call) -> str | None:
        function = expression.function
        first, *others = expression.arguments or (None,)
        constants = [argument.value for argument in others if isinstance(argument, bound.Literal)]
        if function.with_constants is None or first is None or len(constants) < len(others):
            return None
        call = function.with_constants(first.type, constants)
        if call is None:
            return None
        return f"{self.module.bind(f'{function.name.lower()}_', call)}({self.value(first)})"

    def _inline_call(self, expression: bound.Call) -> str | None:
        templates = expression.function.inline
        if not templates:
            return None
        template = templates.get(tuple(argument.type.name for argument in expression.arguments))
        if template is None:
            return None
        operands = self._strict_operands(*expression.arguments)
        if operands is None:
            return None
        return Strict(f"({template.format(*operands[0])})", operands[1]).value()

    def _scalar_subquery(self, expression: bound.ScalarSubquery) -> str:
        return self.scope.subquery(expression.plan, "scalar", bool(self._conditional), expression.position)

    def _exists_value(self, expression: bound.Exists) -> str:
        return self.scope.subquery(expression.plan, "exists", bool(self._conditional))

    def _is_test_value(self, expression: bound.IsTest) -> str:
        return self._boolean(self.condition(expression))

    @staticmethod
    def _boolean(condition: str) -> str:
        return f"(True if {condition} else False)"

    def _truth_value(self, expression: BoundExpression) -> str:
        """A predicate as a value: True, False or None."""
        if not expression.nullable:
            return self._boolean(self.condition(expression))
        true, false = self.condition(expression), self.condition(expression, False)
        return f"(True if {true} else False if {false} else None)"

    # -- conditions -----------------------------------------------------------

    def condition(self, expression: BoundExpression, wanted: bool = True) -> str:
        """Source that is truthy exactly when the expression is true (or false, if ``wanted`` is False)."""
        method = _CONDITIONS.get(type(expression))
        if method is not None:
            return method(self, expression, wanted)
        if isinstance(expression, bound.Literal):
            return repr(truth(expression.value) is wanted)
        if expression.type in NUMBERS:
            source = self.value(expression)
            return source if wanted else f"{source} == 0"
        return f"{self.module.helper(truth)}({self.value(expression)}) is {wanted}"

    def _and(self, expression: bound.Conjunction, wanted: bool) -> str:
        return self._connect(expression.operands, wanted, wanted)

    def _or(self, expression: bound.Disjunction, wanted: bool) -> str:
        return self._connect(expression.operands, wanted, not wanted)

    def _connect(self, operands: Sequence[BoundExpression], wanted: bool, conjunctive: bool) -> str:
        first, *rest = operands
        parts = [self.condition(first, wanted)]
        self._conditional += 1
        parts += [self.condition(operand, wanted) for operand in rest]
        self._conditional -= 1
        return "(" + (" and " if conjunctive else " or ").join(parts) + ")"

    def _xor(self, expression: bound.ExclusiveOr, wanted: bool) -> str:
        function = self.module.helper(library.exclusive_or)
        left, right = self._truth_of(expression.left), self._truth_of(expression.right)
        return f"{function}({left}, {right}) is {wanted}"

    def _truth_of(self, expression: BoundExpression) -> str:
        if type(expression) in _CONDITIONS:
            return self._truth_value(expression)
        return f"{self.module.helper(truth)}({self.value(expression)})"

    def _not(self, expression: bound.Not, wanted: bool) -> str:
        return self.condition(expression.operand, not wanted)

    def _is_test(self, expression: bound.IsTest, wanted: bool) -> str:
        positive = expression.negated is not wanted
        if expression.test is bound.Truth.NULL:
            return self.null_test(expression.operand, positive)
        condition = self.condition(expression.operand, expression.test is bound.Truth.TRUE)
        return condition if positive else f"not ({condition})"

    def null_test(self, operand: BoundExpression, wanted: bool = True) -> str:
        """Whether a value is NULL (or is not); of inlined operators only what may be NULL is looked at."""
        strict = self.strict(operand)
        if strict is None and not operand.nullable and isinstance(operand, bound.Concat | bound.Negation):
            strict = Strict("", ())
        if strict is None:
            source = self.value(operand)
            if self.module.is_value(source):
                return repr(not wanted)
            return f"{source} is {'' if wanted else 'not '}None"
        if not strict.guards:
            return repr(not wanted)
        tests = [f"{guard} is {'' if wanted else 'not '}None" for guard in strict.guards]
        return tests[0] if len(tests) == 1 else "(" + (" or " if wanted else " and ").join(tests) + ")"

    def _exists(self, expression: bound.Exists, wanted: bool) -> str:
        source = self.scope.subquery(expression.plan, "exists", bool(self._conditional))
        return source if wanted else f"not {source}"

    def _comparison(self, expression: bound.Comparison, wanted: bool) -> str:
        if expression.operator in ("is", "is not"):
            return self._identity(expression, wanted)
        operator = expression.operator if wanted else _INVERSE[expression.operator]
        template = self._template(expression, operator)
        operands = self._strict_operands(expression.left, expression.right)
        if operands is None:
            compare = self.module.bind("compare", library.null_safe(template))
            return f"{compare}({self.value(expression.left)}, {self.value(expression.right)})"
        (a, b), guards = operands
        if operator == "=" and template.source == "{0} == {1}" and _only_side(guards, a, b):
            guards = ()
        return _all([*_not_null(guards), self.module.render(template, a, b)])

    def _template(self, expression: bound.Comparison, operator: str) -> Template:
        left, right = expression.left, expression.right
        plan = comparison_plan(left.type, right.type)
        return comparison_template(
            plan,
            operator,
            self.scope.collation(expression.using),
            explicit_collation=_is_explicit(left) or _is_explicit(right),
        )

    def _identity(self, expression: bound.Comparison, wanted: bool) -> str:
        same = (expression.operator == "is") is wanted
        compare = self.module.bind("same", library.null_equal(self._template(expression, "=")))
        a, b = self.values((expression.left, expression.right))
        return f"{'' if same else 'not '}{compare}({a}, {b})"

    def _between(self, expression: bound.Between, wanted: bool) -> str:
        low, high = expression.low, expression.high
        if wanted and low.left == high.left and _is_simple(low.left):
            templates = [self._template(side, "<").source for side in (low, high)]
            operands = self._strict_operands(low.right, low.left, high.right)
            if templates == ["{0} < {1}", "{0} < {1}"] and operands is not None:
                (a, x, b), guards = operands
                return _all([*_not_null(guards), f"{a} <= {x} <= {b}"])
        return self._connect((low, high), wanted, wanted)

    def _in_list(self, expression: bound.InList, wanted: bool) -> str:
        if not expression.items:
            return repr(not wanted)
        in_set = self._in_set(expression, wanted)
        if in_set is not None:
            return in_set
        equalities = tuple(
            bound.Comparison(BOOLEAN, True, None, "=", expression.operand, item, expression.using)
            for item in expression.items
        )
        return self._connect(equalities, wanted, not wanted)

    def _in_set(self, expression: bound.InList, wanted: bool) -> str | None:
        """Membership in a set made beforehand, where no item depends on a row."""
        operand = expression.operand
        items = [item for item in expression.items if item.type is not NULL]
        if not items or not all(
            isinstance(item, bound.Literal | bound.Parameter) for item in expression.items
        ):
            return None
        if any(item.nullable for item in items):
            return None
        modes = {comparison_plan(operand.type, item.type).mode for item in items}
        if not modes <= {ComparisonMode.NATIVE} and not modes <= {ComparisonMode.TEXT}:
            return None
        strict = self.strict(operand) or (None if operand.nullable else Strict(self.value(operand)))
        if strict is None:
            return None
        if not wanted and len(items) < len(expression.items):
            return "False"
        recipe = identity_key(operand.type, False, self.scope.collation(expression.using))
        if all(isinstance(item, bound.Literal) for item in items):
            members = frozenset(recipe.apply(item.value) for item in items)  # type: ignore[attr-defined]
            name = self.module.bind("members", members)
        else:
            keys = ", ".join(self.module.render(recipe.template, self.value(item)) for item in items)
            name = self.scope.hoist(f"frozenset(({keys},))")
        key = self.module.render(recipe.template, strict.source)
        return _all([*_not_null(strict.guards), f"{key} {'' if wanted else 'not '}in {name}"])

    def _in_subquery(self, expression: bound.InSubquery, wanted: bool) -> str:
        members = self.scope.subquery(expression.plan, "members", bool(self._conditional), expression)
        operands = self.values(expression.operands)
        if len(operands) == 1:
            method = "has" if wanted else "lacks"
            return f"{members}.{method}({operands[0]})"
        method = "has_row" if wanted else "lacks_row"
        return f"{members}.{method}({tuple_display(operands)})"

    def _quantified(self, expression: bound.Quantified, wanted: bool) -> str:
        rows = self.scope.subquery(expression.plan, "rows", bool(self._conditional))
        function = self.module.helper(library.quantified)
        column = expression.plan.columns[0]
        plan = comparison_plan(expression.operand.type, column.type)
        template = comparison_template(plan, expression.operator, self.scope.collation(expression.using))
        compare = self.module.bind("compare", library.null_safe(template))
        return (
            f"{function}({self.value(expression.operand)}, {rows}, {compare}, {expression.every}) is {wanted}"
        )

    def _pattern(self, expression: bound.PatternMatch, wanted: bool) -> str:
        pattern, escape = expression.pattern, expression.escape
        if isinstance(pattern, bound.Literal) and isinstance(escape, bound.Literal | None):
            operands = self._strict_operands(expression.operand)
            if isinstance(pattern.value, str) and expression.operand.type in TEXTS and operands is not None:
                mark = escape.value if escape is not None else None
                template = library.constant_pattern(expression.kind, pattern.value, mark)
                test = self.module.render(template, operands[0][0])
                return _all([*_not_null(operands[1]), test if wanted else f"not {test}"])
        match = self.module.helper(library.PATTERNS[expression.kind])
        arguments = self.values((expression.operand, pattern))
        if escape is not None:
            arguments.append(self.value(escape))
        return f"{match}({', '.join(arguments)}) is {wanted}"


def shared_name(column_id: int) -> str:
    """The variable of a simple CASE's operand."""
    return f"c{column_id}"


def tuple_display(sources: Sequence[str]) -> str:
    """Source of a tuple."""
    return f"({', '.join(sources)}{',' if len(sources) == 1 else ''})"


def _not_null(guards: Sequence[str]) -> list[str]:
    return [f"{guard} is not None" for guard in guards]


def _only_side(guards: Sequence[str], left: str, right: str) -> bool:
    """Whether the one thing that may be NULL is a whole side of an equality: it then equals nothing."""
    if len(guards) != 1:
        return False
    (guard,) = guards
    return (left == guard and guard not in right) or (right == guard and guard not in left)


def _all(tests: Sequence[str]) -> str:
    return tests[0] if len(tests) == 1 else f"({' and '.join(tests)})"


def _concat_operands(expression: BoundExpression) -> list[BoundExpression]:
    if isinstance(expression, bound.Concat):
        return [*_concat_operands(expression.left), *_concat_operands(expression.right)]
    return [expression]


def _is_explicit(expression: BoundExpression) -> bool:
    """Whether COLLATE stands in the expression itself."""
    return expression.collation is not None and expression.collation.rank is CollationRank.EXPLICIT


def _is_simple(expression: BoundExpression) -> bool:
    """Whether repeating the expression's source costs next to nothing."""
    return isinstance(expression, bound.ColumnRef | bound.Parameter | bound.ContextValue | bound.Literal)


_ValueMethod = Callable[[ExpressionCompiler, Any], str]
_StrictMethod = Callable[[ExpressionCompiler, Any], Strict | None]
_ConditionMethod = Callable[[ExpressionCompiler, Any, bool], str]

_VALUES: Mapping[type[BoundExpression], _ValueMethod] = {
    bound.Literal: ExpressionCompiler._literal,
    bound.Arithmetic: ExpressionCompiler._arithmetic,
    bound.Negation: ExpressionCompiler._negation,
    bound.Concat: ExpressionCompiler._concat,
    bound.Cast: ExpressionCompiler._cast,
    bound.Case: ExpressionCompiler._case,
    bound.Coalesce: ExpressionCompiler._coalesce,
    bound.Extremum: ExpressionCompiler._extremum,
    bound.NullIf: ExpressionCompiler._null_if,
    bound.Call: ExpressionCompiler._call,
    bound.ScalarSubquery: ExpressionCompiler._scalar_subquery,
    bound.Exists: ExpressionCompiler._exists_value,
    bound.IsTest: ExpressionCompiler._is_test_value,
}

_STRICT: Mapping[type[BoundExpression], _StrictMethod] = {
    bound.Literal: ExpressionCompiler._strict_literal,
    bound.ColumnRef: ExpressionCompiler._strict_column,
    bound.Parameter: ExpressionCompiler._strict_parameter,
    bound.ContextValue: ExpressionCompiler._strict_context_value,
    bound.Arithmetic: ExpressionCompiler._strict_arithmetic,
}

_CONDITIONS: Mapping[type[BoundExpression], _ConditionMethod] = {
    bound.Conjunction: ExpressionCompiler._and,
    bound.Disjunction: ExpressionCompiler._or,
    bound.ExclusiveOr: ExpressionCompiler._xor,
    bound.Not: ExpressionCompiler._not,
    bound.IsTest: ExpressionCompiler._is_test,
    bound.Exists: ExpressionCompiler._exists,
    bound.Comparison: ExpressionCompiler._comparison,
    bound.Between: ExpressionCompiler._between,
    bound.InList: ExpressionCompiler._in_list,
    bound.InSubquery: ExpressionCompiler._in_subquery,
    bound.Quantified: ExpressionCompiler._quantified,
    bound.PatternMatch: ExpressionCompiler._pattern,
}
