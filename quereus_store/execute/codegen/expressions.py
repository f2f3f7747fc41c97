"""Bound expressions as Python source.

Two questions are asked of an expression:

* :meth:`ExpressionCompiler.value`: source of its value, ``None`` for NULL;
* :meth:`ExpressionCompiler.condition`: source that is truthy exactly when the
  expression is true (or, asked so, exactly when it is false).  With both,
  three-valued logic disappears: a filter never sees NULL, NOT swaps the
  question, AND and OR become Python's.  :mod:`~quereus_store.execute.codegen.conditions`
  has a function for each kind of predicate.

Declared types decide what is written out.  Where both sides of an operator
have a family whose Python operators agree with SQL's (numbers; text under
BINARY or a collation with a template; blobs), the operator is inlined, else a
library function is called.  A NULL-strict tree of inlined operators is guarded
once by the nullable columns in it: ``None if r0[1] is None else r0[1] * 2 + 1``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from quereus_store.errors import StatusCode, sql_error
from quereus_store.execute.codegen import library
from quereus_store.execute.codegen.arithmetic import arithmetic, strict_arithmetic
from quereus_store.execute.codegen.conditions import CONDITIONS
from quereus_store.execute.codegen.fragments import NUMBERS, TEXTS, Strict, is_simple, tuple_display
from quereus_store.execute.codegen.source import SourceModule
from quereus_store.functions.registry import call_for, guarded
from quereus_store.plan import expressions as bound
from quereus_store.plan.expressions import BoundExpression
from quereus_store.types import ANY, INTEGER, NULL, NUMERIC, REAL, Collation, caster, truth
from quereus_store.types.arithmetic import concat
from quereus_store.types.comparison import list_comparator
from quereus_store.types.values import int_to_text, to_text

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
        """Source that evaluates a subquery: its scalar, existence, set of keys, rows or only row."""
        ...

    def hoist(self, source: str) -> str:
        """Name of a local that holds the value of row-independent source."""
        ...


class ExpressionCompiler:
    """Compiles bound expressions within a scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.module = scope.module
        self.conditional = 0
        """Within how many parts that may not be evaluated for every row the present one stands."""

    # -- values ---------------------------------------------------------------

    def value(self, expression: BoundExpression) -> str:
        """Source of the expression's value."""
        method = _VALUES.get(type(expression))
        if method is not None:
            return method(self, expression)
        strict = self.strict(expression)
        if strict is not None:
            return strict.value()
        if type(expression) in CONDITIONS:
            return self.truth_value(expression)
        raise sql_error(StatusCode.INTERNAL, f"no code for {type(expression).__name__}")

    def values(self, expressions: Sequence[BoundExpression]) -> list[str]:
        """Sources of several values."""
        return [self.value(expression) for expression in expressions]

    def strict(self, expression: BoundExpression) -> Strict | None:
        """The expression as inlined operators over guarded operands, if it can be written so."""
        method = _STRICT.get(type(expression))
        return method(self, expression) if method else None

    def strict_operands(self, *operands: BoundExpression) -> tuple[list[str], tuple[str, ...]] | None:
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

    def _negation(self, expression: bound.Negation) -> str:
        operand = expression.operand
        if operand.type in (INTEGER, REAL) and expression.operator == "-":
            strict = self.strict(operand)
            if strict is not None:
                return Strict(f"(-{strict.source})", strict.guards).value()
        return f"{self.module.helper(library.UNARY[expression.operator])}({self.value(operand)})"

    def _concat(self, expression: bound.Concat) -> str:
        operands = _concat_operands(expression)
        strict = self.strict_operands(*operands)
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
        self.conditional += 1
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
        self.conditional -= 1
        if shared:
            return f"(lambda {shared_name(expression.shared_id)}: {source})({shared})"
        return source

    def _coalesce(self, expression: bound.Coalesce) -> str:
        *first, last = expression.operands
        self.conditional += 1
        if len(first) > _MOST_NESTED:
            operands = ", ".join(f"lambda: {self.value(operand)}" for operand in expression.operands)
            self.conditional -= 1
            return f"{self.module.helper(library.first_value)}(({operands}))"
        source = self.value(last)
        for operand in reversed(first):
            value = self.value(operand)
            if not operand.nullable or self.module.is_value(value):
                source = value
            elif is_simple(operand):
                source = f"({value} if {value} is not None else {source})"
            else:
                source = f"{self.module.helper(library.first_not_null)}({value}, lambda: {source})"
        self.conditional -= 1
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
        if all(is_simple(argument) for argument, _ in nullable):
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
        operands = self.strict_operands(*expression.arguments)
        if operands is None:
            return None
        return Strict(f"({template.format(*operands[0])})", operands[1]).value()

    def _scalar_subquery(self, expression: bound.ScalarSubquery) -> str:
        return self.scope.subquery(expression.plan, "scalar", bool(self.conditional), expression.position)

    def _exists_value(self, expression: bound.Exists) -> str:
        return self.scope.subquery(expression.plan, "exists", bool(self.conditional))

    def _is_test_value(self, expression: bound.IsTest) -> str:
        return self._boolean(self.condition(expression))

    @staticmethod
    def _boolean(condition: str) -> str:
        return f"(True if {condition} else False)"

    def truth_value(self, expression: BoundExpression) -> str:
        """A predicate as a value: True, False or None."""
        if not expression.nullable:
            return self._boolean(self.condition(expression))
        true, false = self.condition(expression), self.condition(expression, False)
        return f"(True if {true} else False if {false} else None)"

    # -- conditions -----------------------------------------------------------

    def condition(self, expression: BoundExpression, wanted: bool = True) -> str:
        """Source that is truthy exactly when the expression is true (or false, if ``wanted`` is False)."""
        predicate = CONDITIONS.get(type(expression))
        if predicate is not None:
            return predicate(self, expression, wanted)
        if isinstance(expression, bound.Literal):
            return repr(truth(expression.value) is wanted)
        if expression.type in (REAL, NUMERIC) and not isinstance(expression, bound.Arithmetic):
            # NaN is not true, although Python says bool(nan).
            if not is_simple(expression):
                return f"{self.module.helper(truth)}({self.value(expression)}) is {wanted}"
            source = self.value(expression)
            return (
                f"({source} and {source} == {source})"
                if wanted
                else f"({source} == 0 or {source} != {source})"
            )
        if expression.type in NUMBERS:
            source = self.value(expression)
            return source if wanted else f"{source} == 0"
        return f"{self.module.helper(truth)}({self.value(expression)}) is {wanted}"

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


def shared_name(column_id: int) -> str:
    """The variable of a simple CASE's operand."""
    return f"c{column_id}"


def _concat_operands(expression: BoundExpression) -> list[BoundExpression]:
    if isinstance(expression, bound.Concat):
        return [*_concat_operands(expression.left), *_concat_operands(expression.right)]
    return [expression]


_ValueMethod = Callable[[ExpressionCompiler, Any], str]
_StrictMethod = Callable[[ExpressionCompiler, Any], Strict | None]

_VALUES: Mapping[type[BoundExpression], _ValueMethod] = {
    bound.Literal: ExpressionCompiler._literal,
    bound.Arithmetic: arithmetic,
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
    bound.Arithmetic: strict_arithmetic,
}
