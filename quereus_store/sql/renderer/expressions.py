"""Rules for expressions.

Exact mode wraps an operand whose level is below what its place requires, and
also where canonical text has parentheses, so that the two agree wherever both
are right.  Chains of binary operators are unrolled, so their length is no matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from quereus_store.sql.keywords import CONTEXTUAL, FUNCTION_NAMES, RESERVED, TWO_WORD_TYPES
from quereus_store.sql.nodes import (
    Between,
    BinaryOperation,
    BinaryOperator,
    Case,
    Cast,
    Collate,
    ColumnReference,
    DefaultValue,
    Exists,
    Expression,
    FunctionCall,
    InList,
    InSubquery,
    IsDistinctFrom,
    IsTest,
    Literal,
    Parameter,
    PatternMatch,
    QuantifiedComparison,
    RowValue,
    Subquery,
    TypeName,
    UnaryOperation,
    UnaryOperator,
    WhenClause,
    WindowCall,
)
from quereus_store.sql.renderer.base import (
    Renderer,
    Rule,
    qualified,
    quote_identifier,
    quote_name,
    quote_text,
)

_NEGATION = 3
_IS = 4
_EQUALITY = 5
_RELATION = 6
BITS = 7
_PREFIX = 10
PRIMARY = 13

# Beyond it the interpreter refuses to spell an integer in decimal digits.
_LONGEST_DECIMAL = 12_000

_STRENGTH: Mapping[BinaryOperator, int] = MappingProxyType(
    {
        BinaryOperator.OR: 1,
        BinaryOperator.XOR: 1,
        BinaryOperator.AND: 2,
        BinaryOperator.EQUAL: _EQUALITY,
        BinaryOperator.DOUBLE_EQUAL: _EQUALITY,
        BinaryOperator.NOT_EQUAL: _EQUALITY,
        BinaryOperator.LESS: _RELATION,
        BinaryOperator.LESS_EQUAL: _RELATION,
        BinaryOperator.GREATER: _RELATION,
        BinaryOperator.GREATER_EQUAL: _RELATION,
        BinaryOperator.BIT_AND: BITS,
        BinaryOperator.BIT_OR: BITS,
        BinaryOperator.SHIFT_LEFT: BITS,
        BinaryOperator.SHIFT_RIGHT: BITS,
        BinaryOperator.ADD: 8,
        BinaryOperator.SUBTRACT: 8,
        BinaryOperator.MULTIPLY: 9,
        BinaryOperator.DIVIDE: 9,
        BinaryOperator.MODULO: 9,
        BinaryOperator.CONCATENATE: 11,
    }
)
_LEVELS: Mapping[type[Expression], int] = MappingProxyType(
    {
        IsTest: _IS,
        IsDistinctFrom: _IS,
        Between: _RELATION,
        InList: _RELATION,
        InSubquery: _RELATION,
        PatternMatch: _RELATION,
        Collate: 12,
    }
)
_ASSOCIATIVE = frozenset(
    {
        BinaryOperator.AND,
        BinaryOperator.OR,
        BinaryOperator.XOR,
        BinaryOperator.ADD,
        BinaryOperator.MULTIPLY,
        BinaryOperator.CONCATENATE,
    }
)


def _level(expression: Expression) -> int:
    """How tightly an expression holds together: see the table in ``parser.expressions``."""
    if isinstance(expression, BinaryOperation | QuantifiedComparison):
        return _STRENGTH[expression.operator]
    if isinstance(expression, UnaryOperation):
        return _NEGATION if expression.operator is UnaryOperator.NOT else _PREFIX
    if isinstance(expression, Literal) and _is_negative(expression):
        return _PREFIX
    return _LEVELS.get(type(expression), PRIMARY)


def _is_negative(literal: Literal) -> bool:
    value = literal.value
    return isinstance(value, int | float) and not isinstance(value, bool) and _number(literal)[0] == "-"


def _is_binary(expression: Expression) -> bool:
    return isinstance(expression, BinaryOperation | PatternMatch)


def operand_text(renderer: Renderer, operand: Expression, required: int, canonical: bool = False) -> str:
    """An operand, wrapped if exact text needs it at this place or canonical text has it there."""
    text = renderer.text(operand)
    if canonical or (renderer.exact and _level(operand) < required):
        return f"({text})"
    return text


def _literal(renderer: Renderer, node: Literal) -> str:
    value = node.value
    if isinstance(value, str):
        return quote_text(value)
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else _number(node)


def _number(node: Literal) -> str:
    """The source spelling, else one that reads back as the same number."""
    if node.text is not None:
        return node.text
    value = node.value
    if isinstance(value, float):
        text = repr(value)
        return text.replace("inf", "9e999")
    if isinstance(value, int) and value.bit_length() > _LONGEST_DECIMAL:
        return f"{value:#x}"
    return str(value)


def _parameter(renderer: Renderer, node: Parameter) -> str:
    if node.name is not None:
        return f":{node.name}"
    return f":{node.index}" if node.numbered else "?"


def _column(renderer: Renderer, node: ColumnReference) -> str:
    text = qualified(node.schema, node.table, node.column)
    # Bare, it would read back as the marker for a column's default in VALUES and SET.
    return f'"{text}"' if renderer.exact and text.lower() == "default" else text


def _unary(renderer: Renderer, node: UnaryOperation) -> str:
    operand = node.operand
    if node.operator is UnaryOperator.NOT:
        return "not " + operand_text(renderer, operand, _NEGATION, _is_binary(operand))
    text = operand_text(renderer, operand, _PREFIX, _is_binary(operand))
    if renderer.exact and node.operator is UnaryOperator.MINUS and text.startswith("-"):
        # Two minus signs would open a comment.
        text = f"({text})"
    return node.operator + text


def _binary(renderer: Renderer, node: BinaryOperation) -> str:
    parts: list[str] = []
    left: Expression = node
    while isinstance(left, BinaryOperation):
        current = left
        strength = _STRENGTH[current.operator]
        parts.append(f" {current.operator} {_right_operand(renderer, current, strength)}")
        left = current.left
        if _level(left) < strength or not isinstance(left, BinaryOperation):
            canonical = _is_binary(left) and _level(left) < strength
            parts.append(operand_text(renderer, left, strength, canonical))
            break
    return "".join(reversed(parts))


def _right_operand(renderer: Renderer, node: BinaryOperation, strength: int) -> str:
    right = node.right
    level = _level(right)
    canonical = _is_binary(right) and (
        level < strength or (level == strength and node.operator not in _ASSOCIATIVE)
    )
    return operand_text(renderer, right, strength + 1, canonical)


def _pattern(renderer: Renderer, node: PatternMatch) -> str:
    left, right = node.operand, node.pattern
    text = (
        operand_text(renderer, left, _RELATION, _is_binary(left) and _level(left) < _RELATION)
        + f" {node.operator} "
        + operand_text(renderer, right, BITS, _is_binary(right) and _level(right) <= _RELATION)
    )
    if node.escape is not None:
        text += f" escape {operand_text(renderer, node.escape, BITS)}"
    return text


def _is_test(renderer: Renderer, node: IsTest) -> str:
    operand = operand_text(renderer, node.operand, _EQUALITY, _is_binary(node.operand))
    return f"{operand} is {'not ' if node.negated else ''}{node.target}"


def _is_distinct(renderer: Renderer, node: IsDistinctFrom) -> str:
    left = operand_text(renderer, node.left, _EQUALITY)
    right = operand_text(renderer, node.right, _RELATION)
    return f"{left} is {'not ' if node.negated else ''}distinct from {right}"


def _between(renderer: Renderer, node: Between) -> str:
    operand = operand_text(renderer, node.operand, _RELATION)
    low = operand_text(renderer, node.low, BITS)
    high = operand_text(renderer, node.high, BITS)
    return f"{operand} {'not ' if node.negated else ''}between {low} and {high}"


def _in_list(renderer: Renderer, node: InList) -> str:
    return f"{operand_text(renderer, node.operand, _RELATION)} in {renderer.parenthesised(node.items)}"


def _in_subquery(renderer: Renderer, node: InSubquery) -> str:
    return f"{operand_text(renderer, node.operand, _RELATION)} in ({renderer.text(node.query)})"


def _quantified(renderer: Renderer, node: QuantifiedComparison) -> str:
    operand = operand_text(renderer, node.operand, _STRENGTH[node.operator])
    return f"{operand} {node.operator} {node.quantifier} ({renderer.text(node.query)})"


def _case(renderer: Renderer, node: Case) -> str:
    whens = "".join(f" {renderer.text(when)}" for when in node.whens)
    operand = renderer.optional(" ", node.operand)
    return f"case{operand}{whens}{renderer.optional(' else ', node.otherwise)} end"


def _when(renderer: Renderer, node: WhenClause) -> str:
    return f"when {renderer.text(node.condition)} then {renderer.text(node.result)}"


def _type_name(renderer: Renderer, node: TypeName) -> str:
    words, arguments = node.name, f"({', '.join(node.arguments)})" if node.arguments else ""
    for zone in (" with time zone", " without time zone"):
        if words.lower().endswith(zone):
            return words[: -len(zone)] + arguments + words[-len(zone) :]
    bare = words.lower() in TWO_WORD_TYPES or (
        words.isidentifier() and words.isascii() and words.lower() not in RESERVED | CONTEXTUAL
    )
    return (words if bare else quote_name(words)) + arguments


def _cast(renderer: Renderer, node: Cast) -> str:
    return f"cast({renderer.text(node.operand)} as {renderer.text(node.type_name).lower()})"


def _collate(renderer: Renderer, node: Collate) -> str:
    return (
        f"{operand_text(renderer, node.operand, PRIMARY)} collate {quote_identifier(node.collation.lower())}"
    )


def _call(renderer: Renderer, node: FunctionCall) -> str:
    inner = "*" if node.star else renderer.list(node.arguments)
    if node.distinct:
        inner = f"distinct {inner}"
    if node.order_by:
        inner = f"{inner} order by {renderer.list(node.order_by)}".lstrip()
    text = f"{_function_name(node.name)}({inner})"
    return text if node.filter is None else f"{text} filter (where {renderer.text(node.filter)})"


def _function_name(name: str) -> str:
    lowered = name.lower()
    return lowered if lowered in FUNCTION_NAMES else quote_identifier(lowered)


def _window_call(renderer: Renderer, node: WindowCall) -> str:
    return f"{renderer.text(node.call)} over {renderer.text(node.window)}"


def _row(renderer: Renderer, node: RowValue) -> str:
    text = renderer.parenthesised(node.items)
    return text if len(node.items) > 1 else f"row{text}"


def _subquery(renderer: Renderer, node: Subquery) -> str:
    return f"({renderer.text(node.query)})"


def _exists(renderer: Renderer, node: Exists) -> str:
    return f"exists ({renderer.text(node.query)})"


def _default(renderer: Renderer, node: DefaultValue) -> str:
    return "default"


EXPRESSION_RULES: Mapping[type[Any], Rule] = MappingProxyType(
    {
        Between: _between,
        BinaryOperation: _binary,
        Case: _case,
        Cast: _cast,
        Collate: _collate,
        ColumnReference: _column,
        DefaultValue: _default,
        Exists: _exists,
        FunctionCall: _call,
        InList: _in_list,
        InSubquery: _in_subquery,
        IsDistinctFrom: _is_distinct,
        IsTest: _is_test,
        Literal: _literal,
        Parameter: _parameter,
        PatternMatch: _pattern,
        QuantifiedComparison: _quantified,
        RowValue: _row,
        Subquery: _subquery,
        TypeName: _type_name,
        UnaryOperation: _unary,
        WhenClause: _when,
        WindowCall: _window_call,
    }
)
