"""Expressions (queries, section 2).

Forms that are only another spelling become the form they mean while parsing, so
that what follows has one shape to handle:

=====================================  ===========================================
written                                tree
=====================================  ===========================================
``a not in (…)``, ``a not like b``     ``UnaryOperation(NOT, …)``
``a isnull``, ``a notnull``            ``IsTest``
``a is b``, ``a is not b``             ``IsDistinctFrom``
``a -> p``, ``a ->> p``                ``json_extract(a, p)``, cast to text
``a <> b``                             ``BinaryOperation(NOT_EQUAL, …)``
``row(a, b)``                          ``RowValue``
=====================================  ===========================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from quereus_store.records import record
from quereus_store.sql.nodes.base import Expression, Node

if TYPE_CHECKING:
    from quereus_store.sql.nodes.dml import DataModification
    from quereus_store.sql.nodes.queries import OrderingTerm, Query, WindowReference, WindowSpecification

LiteralValue = int | float | str | bytes | bool | None


class LiteralKind(StrEnum):
    """What kind of constant a literal is."""

    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    BLOB = "blob"


_KIND_OF_TYPE: Mapping[type, LiteralKind] = MappingProxyType(
    {
        type(None): LiteralKind.NULL,
        bool: LiteralKind.BOOLEAN,
        int: LiteralKind.INTEGER,
        float: LiteralKind.REAL,
        str: LiteralKind.TEXT,
        bytes: LiteralKind.BLOB,
    }
)


class UnaryOperator(StrEnum):
    """Operators with one operand."""

    NOT = "not"
    MINUS = "-"
    PLUS = "+"
    BIT_NOT = "~"


class BinaryOperator(StrEnum):
    """Operators with two operands."""

    OR = "or"
    XOR = "xor"
    AND = "and"
    EQUAL = "="
    DOUBLE_EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    BIT_AND = "&"
    BIT_OR = "|"
    SHIFT_LEFT = "<<"
    SHIFT_RIGHT = ">>"
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"
    CONCATENATE = "||"


class PatternOperator(StrEnum):
    """Infix pattern predicates."""

    LIKE = "like"
    ILIKE = "ilike"
    GLOB = "glob"
    REGEXP = "regexp"
    MATCH = "match"


class IsTarget(StrEnum):
    """What ``is`` tests for."""

    NULL = "null"
    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


class Quantifier(StrEnum):
    """How many rows of a quantified comparison must hold; SOME is ANY."""

    ANY = "any"
    ALL = "all"


@record(frozen=True, slots=True)
class Literal(Expression):
    """A constant; ``text`` is the source spelling of a number (``1.50``, ``0x1F``), else None."""

    kind: LiteralKind
    value: LiteralValue
    text: str | None = None

    @staticmethod
    def of(value: LiteralValue) -> Literal:
        """The literal for a Python value, which the renderer will have to spell."""
        return Literal(_KIND_OF_TYPE[type(value)], value)


@record(frozen=True, slots=True)
class Parameter(Expression):
    """``?``, ``:1`` (``index`` from 1; ``numbered`` if written) or ``:name`` (also ``$name``, ``@name``)."""

    index: int | None = None
    name: str | None = None
    numbered: bool = False


@record(frozen=True, slots=True)
class ColumnReference(Expression):
    """``c``, ``t.c`` or ``s.t.c``, spelled as written."""

    column: str
    table: str | None = None
    schema: str | None = None


@record(frozen=True, slots=True)
class UnaryOperation(Expression):
    """``-a``, ``+a``, ``~a``, ``not a``."""

    operator: UnaryOperator
    operand: Expression


@record(frozen=True, slots=True)
class BinaryOperation(Expression):
    """``a op b``."""

    operator: BinaryOperator
    left: Expression
    right: Expression


@record(frozen=True, slots=True)
class PatternMatch(Expression):
    """``a like p [escape e]`` and its kin; negation is a UnaryOperation around it."""

    operator: PatternOperator
    operand: Expression
    pattern: Expression
    escape: Expression | None = None


@record(frozen=True, slots=True)
class IsTest(Expression):
    """``a is [not] null | true | false | unknown``."""

    operand: Expression
    target: IsTarget
    negated: bool = False


@record(frozen=True, slots=True)
class IsDistinctFrom(Expression):
    """``a is [not] distinct from b``; ``a is b`` is the negated form."""

    left: Expression
    right: Expression
    negated: bool = False


@record(frozen=True, slots=True)
class Between(Expression):
    """``a [not] between low and high``."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@record(frozen=True, slots=True)
class InList(Expression):
    """``a in (e, …)``, possibly empty; negation is a UnaryOperation around it."""

    operand: Expression
    items: tuple[Expression, ...]


@record(frozen=True, slots=True)
class InSubquery(Expression):
    """``a in (query)``; negation is a UnaryOperation around it."""

    operand: Expression
    query: Query | DataModification


@record(frozen=True, slots=True)
class QuantifiedComparison(Expression):
    """``a op any (query)``, ``a op all (query)``."""

    operator: BinaryOperator
    quantifier: Quantifier
    operand: Expression
    query: Query | DataModification


@record(frozen=True, slots=True)
class WhenClause(Node):
    """``when condition then result`` of a CASE."""

    condition: Expression
    result: Expression


@record(frozen=True, slots=True)
class Case(Expression):
    """``case [operand] when … then … [else …] end``."""

    operand: Expression | None
    whens: tuple[WhenClause, ...]
    otherwise: Expression | None = None


@record(frozen=True, slots=True)
class TypeName(Node):
    """A type as written: ``integer``, ``varchar(5)``, ``double precision``."""

    name: str
    arguments: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class Cast(Expression):
    """``cast(a as type)``."""

    operand: Expression
    type_name: TypeName


@record(frozen=True, slots=True)
class Collate(Expression):
    """``a collate name``."""

    operand: Expression
    collation: str


@record(frozen=True, slots=True)
class FunctionCall(Expression):
    """``f([distinct] a, … [order by …]) [filter (where …)]``; ``star`` for ``f(*)``.

    ``name`` is in lower case; ``spelling`` is the name as written, for messages.
    """

    name: str
    arguments: tuple[Expression, ...] = ()
    distinct: bool = False
    star: bool = False
    order_by: tuple[OrderingTerm, ...] = ()
    filter: Expression | None = None
    spelling: str = field(default="", compare=False, kw_only=True, repr=False)


@record(frozen=True, slots=True)
class WindowCall(Expression):
    """``call over (…)`` or ``call over name``."""

    call: FunctionCall
    window: WindowSpecification | WindowReference


@record(frozen=True, slots=True)
class Subquery(Expression):
    """``(query)`` used for its single value or row."""

    query: Query | DataModification


@record(frozen=True, slots=True)
class Exists(Expression):
    """``exists (query)``."""

    query: Query | DataModification


@record(frozen=True, slots=True)
class RowValue(Expression):
    """``(a, b, …)``: two or more values compared as one (one, if written ``row(a)``)."""

    items: tuple[Expression, ...]


@record(frozen=True, slots=True)
class DefaultValue(Expression):
    """The word DEFAULT in place of a value, in INSERT … VALUES and SET."""
