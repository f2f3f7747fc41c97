"""Small pieces of syntax that the constraints of logical tables are made of.

Qualifiers that no text can spell keep these apart from the names of the declarations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from quereus_store.plan.binder.scopes import RowImage
from quereus_store.schema.objects import TableSchema
from quereus_store.sql import nodes

ROW = "\0row"
"""The qualifier of the logical row that is written."""


@dataclass(frozen=True, slots=True)
class WrittenRow:
    """What a row that is written to the basis gives of the logical row, before and after, by folded name."""

    new: RowImage
    old: RowImage


def column(qualifier: str, name: str) -> nodes.ColumnReference:
    """``qualifier.name``."""
    return nodes.ColumnReference(name, qualifier)


def equal(left: nodes.Expression, right: nodes.Expression) -> nodes.Expression:
    """``left = right``."""
    return nodes.BinaryOperation(nodes.BinaryOperator.EQUAL, left, right)


def is_same(left: nodes.Expression, right: nodes.Expression) -> nodes.Expression:
    """``left is not distinct from right``."""
    return nodes.IsDistinctFrom(left, right, negated=True)


def negated(expression: nodes.Expression) -> nodes.Expression:
    """``not expression``."""
    return nodes.UnaryOperation(nodes.UnaryOperator.NOT, expression)


def all_of(conditions: Sequence[nodes.Expression]) -> nodes.Expression:
    """The conditions joined by AND; true for none."""
    return _joined(nodes.BinaryOperator.AND, conditions, nodes.Literal.of(True))


def any_of(conditions: Sequence[nodes.Expression]) -> nodes.Expression:
    """The conditions joined by OR; false for none."""
    return _joined(nodes.BinaryOperator.OR, conditions, nodes.Literal.of(False))


def _joined(
    operator: nodes.BinaryOperator, conditions: Sequence[nodes.Expression], none: nodes.Expression
) -> nodes.Expression:
    if not conditions:
        return none
    return reduce(lambda left, right: nodes.BinaryOperation(operator, left, right), conditions)


def select_from(
    term: nodes.Expression, source: nodes.Relation, where: nodes.Expression | None = None
) -> nodes.Query:
    """``select term from source where …``."""
    return nodes.Query(nodes.Select((nodes.ResultColumn(term),), source, where))


def exists(source: nodes.Relation, where: nodes.Expression) -> nodes.Expression:
    """``exists (select 1 from source where …)``."""
    return nodes.Exists(select_from(nodes.Literal.of(1), source, where))


def count_of_equals(table: TableSchema, names: Sequence[str]) -> nodes.Expression:
    """``(select count(*) from table where its columns = those of the row)``."""
    other = nodes.TableReference(table.name, table.schema, "\0other")
    where = all_of([equal(column("\0other", name), column(ROW, name)) for name in names])
    return nodes.Subquery(select_from(nodes.FunctionCall("count", star=True), other, where))
