"""Spellings of the SQL standard that stand for something the language already has.

====================================  =========================================
``date '2024-03-01'``                 ``cast('2024-03-01' as date)``; likewise TIME, TIMESTAMP, INTERVAL, JSON
``interval '3' day``                  ``cast('3 day' as timespan)``
``extract(year from d)``              ``extract('year', d)``
``position(a in b)``                  ``instr(b, a)``
``substring(s from 2 for 3)``         ``substring(s, 2, 3)``
``trim(leading 'x' from s)``          ``ltrim(s, 'x')``; TRAILING ``rtrim``, BOTH or neither ``trim``
``percentile_cont(f) within group     ``percentile_cont(x, f)``, with DESC ``percentile_cont(x, f, true)``;
(order by x)``                        likewise ``percentile_disc``, and ``mode(x)``
``f(x) within group (order by y)``    ``f(x order by y)``
====================================  =========================================

All of these names stay ordinary names: only what could be nothing else is read like this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from quereus_store.errors import SourcePosition
from quereus_store.sql.lexer import STRING
from quereus_store.sql.nodes import (
    Cast,
    Expression,
    FunctionCall,
    Literal,
    LiteralKind,
    OrderingTerm,
    TypeName,
)
from quereus_store.types.conversion import ConversionFailure, converted
from quereus_store.types.logical import DATE, DATETIME, JSON, TIME, TIMESPAN, LogicalType

if TYPE_CHECKING:
    from quereus_store.sql.parser.expressions import ExpressionParser

_LITERAL_TYPES: Mapping[str, LogicalType] = MappingProxyType(
    {
        "date": DATE,
        "time": TIME,
        "timestamp": DATETIME,
        "datetime": DATETIME,
        "interval": TIMESPAN,
        "timespan": TIMESPAN,
        "json": JSON,
    }
)
_UNITS = frozenset({"year", "month", "week", "day", "hour", "minute", "second"})
_TRIMS: Mapping[str, str] = MappingProxyType({"leading": "ltrim", "trailing": "rtrim", "both": "trim"})
_ARGUMENTS = "Expected ')' after function arguments."


def typed_literal(parser: ExpressionParser, word: str, position: SourcePosition) -> Expression | None:
    """``date '…'`` after its word; None where the word names no type.  Raises ERROR for text that is none."""
    logical_type = _LITERAL_TYPES.get(word.lower())
    if logical_type is None:
        return None
    text = str(parser.advance().value)
    if logical_type is TIMESPAN and parser.token.key in _UNITS:
        text += f" {parser.advance().key}"
    try:
        converted(text, logical_type)
    except ConversionFailure as failure:
        raise parser.error(str(failure), position) from None
    literal = Literal(LiteralKind.TEXT, text, position=position)
    return Cast(literal, TypeName(logical_type.name.lower()), position=position)


def standard_call(parser: ExpressionParser, name: str, position: SourcePosition) -> FunctionCall | None:
    """A call with words between its arguments, at its ``(``; None where it is an ordinary one."""
    form = _FORMS.get(name.lower())
    if form is None:
        return None
    words = parser.argument_words()
    if words is None or not words & form.words:
        return None
    opening = parser.open_parenthesis("Expected '('.")
    function, arguments = form.read(parser)
    parser.close_parenthesis(opening, _ARGUMENTS)
    return FunctionCall(function, arguments, spelling=function, position=position)


_OF_THE_ORDER = MappingProxyType({"percentile_cont": 1, "percentile_disc": 1, "mode": 0})
"""The aggregates of what the group is ordered by, and how many arguments they take."""


def ordered_set(
    parser: ExpressionParser, name: str, arguments: tuple[Expression, ...]
) -> tuple[tuple[Expression, ...], tuple[OrderingTerm, ...]]:
    """The arguments and the order of a call that ``within group (order by …)`` follows, at its first word.

    A percentile or mode is of what the group is ordered by; all others are told their rows in that order.
    """
    parser.advance()
    parser.advance()
    opening = parser.open_parenthesis("Expected '('.")
    parser.expect("order", "Expected 'ORDER BY' in WITHIN GROUP.")
    parser.expect("by", "Expected 'BY' after 'ORDER'.")
    terms = parser.ordering_terms()
    parser.close_parenthesis(opening, "Expected ')' after WITHIN GROUP.")
    wanted = _OF_THE_ORDER.get(name.lower())
    if wanted is None:
        return arguments, terms
    if len(terms) != 1 or len(arguments) != wanted:
        before = "one fraction" if wanted else "no argument"
        raise parser.error(f"{name.lower()} takes {before} and one ORDER BY term", terms[0].position)
    descending = (Literal.of(True),) if terms[0].descending else ()
    return (terms[0].expression, *arguments, *descending), ()


_Call: TypeAlias = tuple[str, tuple[Expression, ...]]
"""The function that a form stands for, and its arguments."""


@dataclass(frozen=True, slots=True)
class _Form:
    """A call that has one of these words between its arguments, and how these are read."""

    words: frozenset[str]
    read: Callable[[ExpressionParser], _Call]


def _extract(parser: ExpressionParser) -> _Call:
    token = parser.advance()
    field = str(token.value) if token.key == STRING else token.text
    parser.expect("from", "Expected 'FROM' after the field of EXTRACT.")
    name = Literal(LiteralKind.TEXT, field.lower(), position=token.position)
    return "extract", (name, parser.expression())


def _position(parser: ExpressionParser) -> _Call:
    sought = parser.plain_operand()
    parser.expect("in", "Expected 'IN' in POSITION.")
    return "instr", (parser.expression(), sought)


def _substring(parser: ExpressionParser) -> _Call:
    arguments = [parser.expression()]
    if parser.accept("from"):
        arguments.append(parser.expression())
    else:
        arguments.append(Literal.of(1))
    if parser.accept("for"):
        arguments.append(parser.expression())
    return "substring", tuple(arguments)


def _trim(parser: ExpressionParser) -> _Call:
    function = "trim"
    if parser.token.key in _TRIMS and (parser.peek_key() == "from" or parser.starts_operand(1)):
        function = _TRIMS[parser.advance().key]
    characters = None if parser.token.key == "from" else parser.expression()
    parser.expect("from", "Expected 'FROM' in TRIM.")
    text = parser.expression()
    return function, (text,) if characters is None else (text, characters)


_FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        "extract": _Form(frozenset({"from"}), _extract),
        "position": _Form(frozenset({"in"}), _position),
        "substring": _Form(frozenset({"from", "for"}), _substring),
        "trim": _Form(frozenset({"from"}), _trim),
    }
)
