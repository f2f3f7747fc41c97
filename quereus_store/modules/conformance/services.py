"""An engine's stand-in for the kit: the built-in collations and a very small expression language.

Index expressions and predicates of the kit use columns, literals, comparisons, ``+ - *``, AND, OR,
NOT, IS NULL, ``lower`` and ``length``; anything else is an error of the kit.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from quereus_store.modules.contract import Row, RowFunction
from quereus_store.schema.objects import TableSchema
from quereus_store.sql import nodes
from quereus_store.sql.nodes import BinaryOperator
from quereus_store.types.collations import Collation, CollationRegistry
from quereus_store.types.logical import BOOLEAN, INTEGER, TEXT, LogicalType

Evaluate = Callable[[Row], Any]

_OPERATORS: Mapping[BinaryOperator, Callable[[Any, Any], Any]] = {
    BinaryOperator.EQUAL: operator.eq,
    BinaryOperator.NOT_EQUAL: operator.ne,
    BinaryOperator.LESS: operator.lt,
    BinaryOperator.LESS_EQUAL: operator.le,
    BinaryOperator.GREATER: operator.gt,
    BinaryOperator.GREATER_EQUAL: operator.ge,
    BinaryOperator.ADD: operator.add,
    BinaryOperator.SUBTRACT: operator.sub,
    BinaryOperator.MULTIPLY: operator.mul,
}
_FUNCTIONS: Mapping[str, tuple[Callable[[Any], Any], LogicalType]] = {
    "lower": (str.lower, TEXT),
    "length": (len, INTEGER),
}


class KitServices:
    """What the kit lends a module (contract: ``EngineServices``)."""

    def __init__(self) -> None:
        self.collations = CollationRegistry()

    def collation(self, name: str) -> Collation:
        """A built-in collation."""
        return self.collations.get(name)

    def row_function(self, table: TableSchema, expression: nodes.Expression) -> RowFunction:
        """The values of an expression for a batch."""
        evaluate = _compiled(table, expression)

        def values(rows: Sequence[Row]) -> list[Any]:
            return [evaluate(row) for row in rows]

        return values


def part_type(table: TableSchema, expression: nodes.Expression) -> tuple[LogicalType, bool, str]:
    """Type, nullability and collation of an index expression of the kit."""
    match expression:
        case nodes.FunctionCall(name=name):
            return _FUNCTIONS[name.lower()][1], True, "BINARY"
        case nodes.BinaryOperation(operator=symbol) if symbol in (
            BinaryOperator.ADD,
            BinaryOperator.SUBTRACT,
            BinaryOperator.MULTIPLY,
        ):
            return INTEGER, True, "BINARY"
        case _:
            return BOOLEAN, True, "BINARY"


def _compiled(table: TableSchema, expression: nodes.Expression) -> Evaluate:
    def sub(part: nodes.Expression) -> Evaluate:
        return _compiled(table, part)

    match expression:
        case nodes.Literal(value=value):
            return lambda row: value
        case nodes.ColumnReference(column=name):
            position = table.column_index(name)
            assert position is not None
            return operator.itemgetter(position)
        case nodes.IsTest(operand=operand, negated=negated):
            inner = sub(operand)
            return lambda row: (inner(row) is None) != negated
        case nodes.UnaryOperation(operand=operand):
            inner = sub(operand)
            return lambda row: None if (value := inner(row)) is None else not value
        case nodes.FunctionCall(name=name, arguments=(argument,)):
            inner, function = sub(argument), _FUNCTIONS[name.lower()][0]
            return lambda row: None if (value := inner(row)) is None else function(value)
        case nodes.BinaryOperation(operator=BinaryOperator.AND, left=left, right=right):
            first, second = sub(left), sub(right)
            return lambda row: bool(first(row)) and bool(second(row))
        case nodes.BinaryOperation(operator=BinaryOperator.OR, left=left, right=right):
            first, second = sub(left), sub(right)
            return lambda row: bool(first(row)) or bool(second(row))
        case nodes.BinaryOperation(operator=symbol, left=left, right=right):
            return _null_propagating(_OPERATORS[symbol], sub(left), sub(right))
    raise NotImplementedError(f"the conformance kit has no {type(expression).__name__}")


def _null_propagating(function: Callable[[Any, Any], Any], left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(row: Row) -> Any:
        first, second = left(row), right(row)
        return None if first is None or second is None else function(first, second)

    return evaluate
