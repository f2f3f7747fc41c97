"""Comparisons: coercions made explicit, collations settled, row values taken apart.

Everything that compares goes through here (types-and-values, sections 9 and 10):
``=``, BETWEEN, IN, simple CASE, ``nullif``, ``greatest``, ``least``.  A row value
never outlives binding: ``(a, b) < (c, d)`` becomes ``a < c or (a = c and b < d)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.plan.expressions import (
    Between,
    BoundExpression,
    Cast,
    ColumnRef,
    Comparison,
    Conjunction,
    ContextValue,
    Disjunction,
    Extremum,
    InList,
    Literal,
    Not,
    NullIf,
    Parameter,
)
from quereus_store.types import (
    BOOLEAN,
    LogicalType,
    comparison_plan,
    list_plan,
    merge_contributions,
    merge_types,
    resolve_comparison_collation,
    resolve_list_collation,
)

if TYPE_CHECKING:
    from quereus_store.plan.binder.context import Environment
    from quereus_store.sql import nodes

_FALSE = Literal(BOOLEAN, False, None, False)


def negation(operand: BoundExpression) -> BoundExpression:
    """NOT of a condition."""
    return Not(BOOLEAN, operand.nullable, None, operand)


def conjunction(operands: Sequence[BoundExpression]) -> BoundExpression:
    """AND of one or more conditions, nested ones spliced in."""
    if len(operands) == 1:
        return operands[0]
    flat: list[BoundExpression] = []
    for operand in operands:
        flat.extend(operand.operands if type(operand) is Conjunction else (operand,))
    return Conjunction(BOOLEAN, any(operand.nullable for operand in flat), None, tuple(flat))


def disjunction(operands: Sequence[BoundExpression]) -> BoundExpression:
    """OR of one or more conditions, nested ones spliced in."""
    if len(operands) == 1:
        return operands[0]
    flat: list[BoundExpression] = []
    for operand in operands:
        flat.extend(operand.operands if type(operand) is Disjunction else (operand,))
    return Disjunction(BOOLEAN, any(operand.nullable for operand in flat), None, tuple(flat))


def cast_to(operand: BoundExpression, target: LogicalType | None) -> BoundExpression:
    """The operand coerced for a comparison; itself when ``target`` is None or its own type."""
    if target is None or target is operand.type:
        return operand
    return Cast(target, True, operand.collation, operand)


def compare(
    operator: str, left: BoundExpression, right: BoundExpression, position: SourcePosition | None
) -> Comparison:
    """One comparison; ``is`` and ``is not`` are the null-safe ones."""
    if left.type is not right.type:
        plan = comparison_plan(left.type, right.type)
        left, right = cast_to(left, plan.left_cast), cast_to(right, plan.right_cast)
    if left.collation is None and right.collation is None:
        using = "BINARY"
    else:
        using = resolve_comparison_collation(left.collation, right.collation, position)
    nullable = (left.nullable or right.nullable) and operator not in ("is", "is not")
    return Comparison(BOOLEAN, nullable, None, operator, left, right, using)


def between(
    operand: BoundExpression,
    low: BoundExpression,
    high: BoundExpression,
    position: SourcePosition | None,
) -> Between:
    """``operand between low and high``."""
    lower = compare(">=", operand, low, position)
    upper = compare("<=", operand, high, position)
    return Between(BOOLEAN, lower.nullable or upper.nullable, None, lower, upper)


def in_list(
    probe: BoundExpression, members: Sequence[BoundExpression], position: SourcePosition | None
) -> BoundExpression:
    """``probe in (members)``; in an empty list it is false, whatever the probe."""
    if not members:
        return _FALSE
    plan = list_plan(probe.type, [member.type for member in members])
    using = resolve_list_collation(probe.collation, [member.collation for member in members], position)
    probe = cast_to(probe, plan.probe_cast)
    items = tuple(map(cast_to, members, plan.member_casts))
    nullable = probe.nullable or any(item.nullable for item in items)
    return InList(BOOLEAN, nullable, None, probe, items, using)


def simple_case(
    probe: BoundExpression,
    members: Sequence[BoundExpression],
    environment: Environment,
    node: nodes.Case,
) -> tuple[BoundExpression | None, int, list[BoundExpression]]:
    """The conditions of a simple CASE: the shared operand (None if cheap), its number, a comparison each."""
    plan = list_plan(probe.type, [member.type for member in members])
    original = probe
    probe = cast_to(probe, plan.probe_cast)
    shared: BoundExpression | None = None
    shared_id = 0
    if not isinstance(probe, ColumnRef | Literal | Parameter | ContextValue):
        shared, shared_id = probe, environment.context.number()
        probe = ColumnRef(probe.type, probe.nullable, original.collation, shared_id, "case")
    conditions: list[BoundExpression] = []
    for member, target, when in zip(members, plan.member_casts, node.whens, strict=True):
        if probe.type.is_textual and member.type.is_numeric:
            # Among members of other types a number does not make the text of the operand one.
            conditions.append(_FALSE)
            continue
        conditions.append(compare("=", probe, cast_to(member, target), when.position or node.position))
    return shared, shared_id, conditions


def null_if(operand: BoundExpression, other: BoundExpression, position: SourcePosition | None) -> NullIf:
    """``nullif(operand, other)``: compares converted copies, gives the original."""
    plan = list_plan(operand.type, [other.type])
    condition = compare(
        "=", cast_to(operand, plan.probe_cast), cast_to(other, plan.member_casts[0]), position
    )
    return NullIf(operand.type, True, None, operand, condition)


def extremum(
    greatest: bool, operands: Sequence[BoundExpression], position: SourcePosition | None
) -> BoundExpression:
    """``greatest`` or ``least`` of one or more operands."""
    types = [operand.type for operand in operands]
    plan = list_plan(types[0], types[1:])
    collation = None
    for operand in operands:
        collation = merge_contributions(collation, operand.collation, position)
    keys = (
        cast_to(operands[0], plan.probe_cast),
        *map(cast_to, operands[1:], plan.member_casts),
    )
    return Extremum(
        merge_types(types),
        all(operand.nullable for operand in operands),
        None,
        greatest,
        tuple(operands),
        keys,
        plan,
        collation.name if collation else "BINARY",
    )


# --- row values ---------------------------------------------------------------------------------------------

Row = Sequence[BoundExpression]


def check_width(left: int, right: int, position: SourcePosition | None) -> None:
    """Raise ERROR unless two row values have equally many components."""
    if left != right:
        raise sql_error(
            StatusCode.ERROR, f"Row values have different sizes: left has {left}, right has {right}", position
        )


def compare_rows(operator: str, left: Row, right: Row, position: SourcePosition | None) -> BoundExpression:
    """A comparison of row values, by the standard's three-valued logic."""
    check_width(len(left), len(right), position)
    if len(left) == 1:
        return compare(operator, left[0], right[0], position)
    if operator in ("=", "is"):
        return conjunction([compare(operator, a, b, position) for a, b in zip(left, right, strict=True)])
    if operator in ("!=", "is not"):
        return disjunction([compare(operator, a, b, position) for a, b in zip(left, right, strict=True)])
    strict_operator = operator[0]
    alternatives: list[BoundExpression] = []
    last = len(left) - 1
    for index in range(len(left)):
        own = operator if index == last else strict_operator
        terms: list[BoundExpression] = [
            compare("=", left[before], right[before], position) for before in range(index)
        ]
        terms.append(compare(own, left[index], right[index], position))
        alternatives.append(conjunction(terms))
    return disjunction(alternatives)


def one_of_rows(probe: Row, members: Sequence[Row], position: SourcePosition | None) -> BoundExpression:
    """``(a, b) in ((c, d), …)``."""
    if not members:
        return _FALSE
    return disjunction([compare_rows("=", probe, member, position) for member in members])
