"""Expressions by precedence climbing (queries, section 2).

Levels, loosest first; binary operators group to the left:

==== ======================================================================
 1    ``or xor``
 2    ``and``
 3    prefix ``not``
 4    postfix ``is …``, ``isnull``, ``notnull``, at most one
 5    ``= == != <>``
 6    ``< <= > >=``, ``[not] in | between | like | ilike | glob | regexp | match``
 7    ``& | << >>``
 8    ``+ -``
 9    ``* / %``
 10   prefix ``- + ~``
 11   ``||``
 12   postfix ``collate``, at most one
 13   ``-> ->>``
==== ======================================================================

Prefix minus is looser than ``||``: ``-2 || 3`` is -23.  To the right of ``||`` it
can only belong to the operand itself: ``'a' || -3``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from quereus_store.errors import SourcePosition
from quereus_store.sql.keywords import FUNCTION_NAMES, NO_ALIASES, RESERVED, TWO_WORD_TYPES
from quereus_store.sql.lexer import BLOB, INTEGER, PARAMETER, QUOTED, REAL, STRING, Token
from quereus_store.sql.nodes import (
    Between,
    BinaryOperation,
    BinaryOperator,
    Case,
    Cast,
    Collate,
    ColumnReference,
    DataModification,
    Exists,
    Expression,
    FunctionCall,
    InList,
    InSubquery,
    IsDistinctFrom,
    IsTarget,
    IsTest,
    Literal,
    LiteralKind,
    OrderingTerm,
    Parameter,
    PatternMatch,
    PatternOperator,
    QuantifiedComparison,
    Quantifier,
    Query,
    RowValue,
    Subquery,
    TypeName,
    UnaryOperation,
    UnaryOperator,
    WhenClause,
    WindowCall,
    WindowReference,
    WindowSpecification,
)
from quereus_store.sql.parser.base import TokenCursor
from quereus_store.sql.parser.standard_forms import ordered_set, standard_call, typed_literal

_LONGEST_PARAMETER_NUMBER = 9

_LOGICAL = 1
_CONJUNCTION = 2
_NEGATION = 3
_EQUALITY = 5
_RELATION = 6
BITS = 7
_SUM = 8
_PREFIX = 10
_CONCATENATION = 11

_BINARY: Mapping[str, tuple[int, BinaryOperator]] = MappingProxyType(
    {
        "or": (_LOGICAL, BinaryOperator.OR),
        "xor": (_LOGICAL, BinaryOperator.XOR),
        "and": (_CONJUNCTION, BinaryOperator.AND),
        "=": (_EQUALITY, BinaryOperator.EQUAL),
        "==": (_EQUALITY, BinaryOperator.DOUBLE_EQUAL),
        "!=": (_EQUALITY, BinaryOperator.NOT_EQUAL),
        "<>": (_EQUALITY, BinaryOperator.NOT_EQUAL),
        "<": (_RELATION, BinaryOperator.LESS),
        "<=": (_RELATION, BinaryOperator.LESS_EQUAL),
        ">": (_RELATION, BinaryOperator.GREATER),
        ">=": (_RELATION, BinaryOperator.GREATER_EQUAL),
        "&": (BITS, BinaryOperator.BIT_AND),
        "|": (BITS, BinaryOperator.BIT_OR),
        "<<": (BITS, BinaryOperator.SHIFT_LEFT),
        ">>": (BITS, BinaryOperator.SHIFT_RIGHT),
        "+": (_SUM, BinaryOperator.ADD),
        "-": (_SUM, BinaryOperator.SUBTRACT),
        "*": (9, BinaryOperator.MULTIPLY),
        "/": (9, BinaryOperator.DIVIDE),
        "%": (9, BinaryOperator.MODULO),
        "||": (_CONCATENATION, BinaryOperator.CONCATENATE),
    }
)
_PREFIXES: Mapping[str, UnaryOperator] = MappingProxyType(
    {"-": UnaryOperator.MINUS, "+": UnaryOperator.PLUS, "~": UnaryOperator.BIT_NOT}
)
_PATTERNS: Mapping[str, PatternOperator] = MappingProxyType({str(each): each for each in PatternOperator})
_PREDICATES = frozenset({"in", "between", *_PATTERNS})
_QUANTIFIERS: Mapping[str, Quantifier] = MappingProxyType(
    {"any": Quantifier.ANY, "some": Quantifier.ANY, "all": Quantifier.ALL}
)
_COMPARISONS = frozenset({"=", "==", "!=", "<>", "<", "<=", ">", ">="})
_IS_TARGETS: Mapping[str, IsTarget] = MappingProxyType({str(each): each for each in IsTarget})
_CONSTANTS: Mapping[str, tuple[LiteralKind, bool | None]] = MappingProxyType(
    {
        "null": (LiteralKind.NULL, None),
        "true": (LiteralKind.BOOLEAN, True),
        "false": (LiteralKind.BOOLEAN, False),
    }
)
_LITERALS: Mapping[str, LiteralKind] = MappingProxyType(
    {
        INTEGER: LiteralKind.INTEGER,
        REAL: LiteralKind.REAL,
        STRING: LiteralKind.TEXT,
        BLOB: LiteralKind.BLOB,
    }
)
_CLOSERS = frozenset({",", ")"})
_NUMBERS = frozenset({INTEGER, REAL})
_OPERAND_STARTS = frozenset(
    {INTEGER, REAL, STRING, BLOB, PARAMETER, QUOTED, "(", "-", "+", "~", "null", "true", "false", "case"}
    | {"cast", "not", "exists"}
)
_CALL_WORDS = FUNCTION_NAMES | {"row"}
_QUERY_STARTS = frozenset({"select", "values", "with", "insert", "update", "delete"})
_AFTER_QUERY = frozenset({")", "union", "intersect", "except", "diff", "order", "limit", "with"})
_TIME_ZONE_TYPES = frozenset({"time", "timestamp"})


class ExpressionParser(TokenCursor):
    """Expressions; queries within them are parsed by the classes that follow."""

    __slots__ = ()

    # Hooks, implemented further down the chain.

    def relation_query(self) -> Query | DataModification:
        """A query, or a data modification with RETURNING, that stands within another statement."""
        raise NotImplementedError

    def ordering_terms(self) -> tuple[OrderingTerm, ...]:
        """The terms after ORDER BY."""
        raise NotImplementedError

    def window(self) -> WindowSpecification | WindowReference:
        """What follows OVER."""
        raise NotImplementedError

    # Binary and prefix operators

    def expression(self, level: int = _LOGICAL) -> Expression:
        """An expression whose operators bind at least as tightly as ``level``.

        Raises the parse errors of queries, sections 2 and 17.
        """
        token = self.token
        key = token.key
        kind = _LITERALS.get(key)
        if kind is not None and self._tokens[self.index + 1].key in _CLOSERS:
            # A literal alone: most of a long VALUES list.
            self.advance()
            return self.literal(kind, token)
        if key == "not" and level <= _NEGATION:
            self.advance()
            operand = self.expression(_NEGATION)
            left: Expression = UnaryOperation(UnaryOperator.NOT, operand, position=token.position)
            return self.binary_tail(left, level, _NEGATION)
        if key in _PREFIXES:
            self.advance()
            operand = self.expression(max(level, _PREFIX))
            left = UnaryOperation(_PREFIXES[key], operand, position=token.position)
        else:
            left = self.operand()
        return self.binary_tail(left, level, _CONCATENATION)

    def binary_tail(self, left: Expression, level: int, ceiling: int) -> Expression:
        """``left`` with all operators that follow it, of strength ``level`` to ``ceiling``.

        The ceiling sinks to each operator applied: after ``not a`` or ``a is null`` only
        AND and OR may follow.
        """
        while True:
            key = self.token.key
            entry = _BINARY.get(key)
            if entry is not None:
                strength, operator = entry
                if strength < level or strength > ceiling:
                    return left
                left = self.binary(left, operator, strength)
                ceiling = strength
            elif key in _PREDICATES or key == "not":
                if level > _RELATION or ceiling < _RELATION:
                    return left
                predicate = self.predicate(left)
                if predicate is None:
                    return left
                left = predicate
                ceiling = _RELATION
            elif key in ("is", "isnull", "notnull"):
                if level > _NEGATION + 1 or ceiling < _NEGATION + 1:
                    return left
                left = self.is_test(left)
                ceiling = _NEGATION
            else:
                return left

    def binary(self, left: Expression, operator: BinaryOperator, strength: int) -> Expression:
        """The current operator with its right operand."""
        self.advance()
        position = left.position
        key = self.token.key
        if (
            key in _QUANTIFIERS
            and self.peek_key() == "("
            and operator in _COMPARISONS
            and (key == "all" or self.is_query_at(self.index + 2))
        ):
            self.advance()
            opening = self.open_parenthesis("Expected '('.")
            query = self.relation_query()
            self.close_parenthesis(opening, "Expected ')' after subquery.")
            return QuantifiedComparison(operator, _QUANTIFIERS[key], left, query, position=position)
        return BinaryOperation(operator, left, self.expression(strength + 1), position=position)

    # Predicates

    def predicate(self, left: Expression) -> Expression | None:
        """``[not] in``, ``[not] between``, ``[not] like`` and its kin; None if none of them follows."""
        negated = self.token.key == "not"
        word = self.peek_key() if negated else self.token.key
        if word not in _PREDICATES:
            return None
        soft = word in _PATTERNS and word != "like"
        if soft and not self.starts_operand(2 if negated else 1):
            return None
        if negated:
            self.advance()
        self.advance()
        position = left.position
        if word == "between":
            return self.between(left, negated)
        found: Expression
        if word == "in":
            found = self.membership(left, "NOT IN" if negated else "IN")
        else:
            pattern = self.expression(BITS)
            escape: Expression | None = None
            if self.token.key == "escape" and self.starts_operand(1):
                self.advance()
                escape = self.expression(BITS)
            found = PatternMatch(_PATTERNS[word], left, pattern, escape, position=position)
        return UnaryOperation(UnaryOperator.NOT, found, position=position) if negated else found

    def between(self, left: Expression, negated: bool) -> Expression:
        """``low and high``."""
        low = self.expression(BITS)
        name = "NOT BETWEEN" if negated else "BETWEEN"
        self.expect("and", f"Expected 'AND' after {name} lower bound.")
        return Between(left, low, self.expression(BITS), negated, position=left.position)

    def membership(self, left: Expression, name: str) -> Expression:
        """``( … )`` after IN."""
        opening = self.open_parenthesis(f"Expected '(' after {name}.")
        if self.is_query_at(self.index):
            query = self.relation_query()
            self.close_parenthesis(opening, "Expected ')' after subquery.")
            return InSubquery(left, query, position=left.position)
        items = () if self.token.key == ")" else self.comma_list(self.expression)
        self.close_parenthesis(opening, "Expected ')' after IN values.")
        return InList(left, items, position=left.position)

    def is_test(self, left: Expression) -> Expression:
        """``is [not] …``, ``isnull``, ``notnull``."""
        position = left.position
        word = self.advance().key
        if word != "is":
            return IsTest(left, IsTarget.NULL, word == "notnull", position=position)
        negated = self.accept("not")
        target = _IS_TARGETS.get(self.token.key)
        if target is not None:
            self.advance()
            return IsTest(left, target, negated, position=position)
        if self.accept("distinct"):
            self.expect("from", "Expected 'FROM' after IS DISTINCT.")
            return IsDistinctFrom(left, self.expression(_RELATION), negated, position=position)
        return IsDistinctFrom(left, self.expression(_RELATION), not negated, position=position)

    # Operands

    def plain_operand(self) -> Expression:
        """An expression that stops before the predicates: what stands before IN in POSITION."""
        return self.expression(_RELATION + 1)

    def operand(self) -> Expression:
        """A primary expression with its ``->``, ``->>`` and COLLATE."""
        left = self.primary()
        while self.token.key in ("->", "->>"):
            left = self.json_access(left)
        if self.token.key == "collate" and self._default_depth != self._depth:
            self.advance()
            name = self.expect_name("Expected collation name after COLLATE.", got=True)
            left = Collate(left, name.lower(), position=left.position)
        return left

    def json_access(self, left: Expression) -> Expression:
        """``-> p`` or ``->> p`` as the call it stands for."""
        as_text = self.advance().key == "->>"
        path = self.primary()
        if isinstance(path, Literal):
            if isinstance(path.value, str) and not path.value.startswith("$"):
                path = Literal(LiteralKind.TEXT, f"$.{path.value}", position=path.position)
            elif path.kind is LiteralKind.INTEGER and isinstance(path.value, int):
                path = Literal(LiteralKind.TEXT, f"$[{path.value}]", position=path.position)
        call = FunctionCall("json_extract", (left, path), position=left.position)
        return Cast(call, TypeName("text"), position=left.position) if as_text else call

    def primary(self) -> Expression:
        """Literal, parameter, name, call, CASE, CAST, EXISTS or parentheses."""
        token = self.token
        key = token.key
        kind = _LITERALS.get(key)
        if kind is not None:
            self.advance()
            return self.literal(kind, token)
        if key == QUOTED or (token.is_word and key not in RESERVED):
            return self.name_or_call()
        if key == "(":
            return self.parenthesised()
        if key == PARAMETER:
            return self.parameter()
        constant = _CONSTANTS.get(key)
        if constant is not None:
            self.advance()
            return Literal(*constant, position=token.position)
        return self.keyword_operand(token)

    def literal(self, kind: LiteralKind, token: Token) -> Literal:
        """The literal that a token is; only numbers need their spelling."""
        text = token.text if token.key in _NUMBERS else None
        return Literal(kind, token.value, text, position=token.position)

    def keyword_operand(self, token: Token) -> Expression:
        """The operands that begin with a reserved word."""
        key = token.key
        if key == "case":
            return self.case()
        if key == "cast":
            return self.cast()
        if key == "exists":
            self.advance()
            opening = self.open_parenthesis("Expected '(' after EXISTS.")
            query = self.relation_query()
            self.close_parenthesis(opening, "Expected ')' after subquery.")
            return Exists(query, position=token.position)
        if self.peek_key() == "(":
            if key == "row":
                self.advance()
                items = self.parenthesised_list(
                    self.expression, "Expected '('.", "Expected ')' after expression."
                )
                return RowValue(items, position=token.position)
            if key in FUNCTION_NAMES:
                return self.call_tail(self.advance().text, token.position)
        raise self.failure("Expected expression.")

    def parenthesised(self) -> Expression:
        """``(e)``, ``(e, e)`` or ``(query)``."""
        opening = self.open_parenthesis("Expected '('.")
        if self.is_query_at(self.index):
            query = self.relation_query()
            self.close_parenthesis(opening, "Expected ')' after subquery.")
            return Subquery(query, position=opening.position)
        first = self.expression()
        if self.token.key == ",":
            items = [first]
            while self.accept(","):
                items.append(self.expression())
            self.close_parenthesis(opening, "Expected ')' after expression.")
            return RowValue(tuple(items), position=opening.position)
        self.close_parenthesis(opening, "Expected ')' after expression.")
        return first

    def parameter(self) -> Expression:
        """``?``, ``?1``, ``:1``, ``:name``, ``$name``, ``@name``."""
        token = self.advance()
        name = str(token.value)
        if not name:
            if token.text != "?":
                raise self.error("Expected identifier or number after parameter prefix.", token.position)
            self._parameters += 1
            return Parameter(self._parameters, position=token.position)
        if name.isdigit():
            number = name.lstrip("0")
            if not 0 < len(number) <= _LONGEST_PARAMETER_NUMBER:
                raise self.error(f"No parameter has the number {name[:40]}.", token.position)
            return Parameter(int(number), numbered=True, position=token.position)
        return Parameter(name=name, position=token.position)

    def name_or_call(self) -> Expression:
        """``f(…)``, ``c``, ``t.c`` or ``s.t.c``."""
        token = self.token
        position = token.position
        name = self.take_name()
        if self.token.key == "(":
            return standard_call(self, name, position) or self.call_tail(name, position)
        if self.token.key == STRING and token.is_word:
            literal = typed_literal(self, name, position)
            if literal is not None:
                return literal
        if self.token.key != "." or not self.is_name(self.peek()):
            return ColumnReference(name, position=position)
        self.advance()
        second = self.take_name()
        if self.token.key != "." or not self.is_name(self.peek()):
            return ColumnReference(second, name, position=position)
        self.advance()
        return ColumnReference(self.take_name(), second, name, position=position)

    def call_tail(self, name: str, position: SourcePosition) -> Expression:
        """``( … ) [filter (where …)] [over …]`` after a function name."""
        call = self.call(name, position)
        if self.token.key == "over":
            self.advance()
            return WindowCall(call, self.window(), position=position)
        return call

    def call(self, name: str, position: SourcePosition) -> FunctionCall:
        """``( [distinct] args [order by …] ) [within group (order by …)] [filter (where …)]``."""
        opening = self.open_parenthesis("Expected '('.")
        closing = "Expected ')' after function arguments."
        distinct = star = False
        arguments: tuple[Expression, ...] = ()
        order_by: tuple[OrderingTerm, ...] = ()
        if self.token.key == "*":
            star = True
            self.advance()
        elif self.token.key != ")":
            distinct = self.accept("distinct")
            if not distinct:
                self.accept("all")
            if distinct and self.token.key == "*":
                raise self.failure("'*' cannot be used with other arguments in function call.")
            if self.token.key != "order":
                arguments = self.comma_list(self.expression)
            if self.accept("order"):
                self.expect("by", "Expected 'BY' after 'ORDER'.")
                order_by = self.ordering_terms()
        self.close_parenthesis(opening, closing)
        if not order_by and self.at_words("within", "group", "("):
            arguments, order_by = ordered_set(self, name, arguments)
        filter_ = self.filter_clause()
        return FunctionCall(
            name.lower(), arguments, distinct, star, order_by, filter_, spelling=name, position=position
        )

    def filter_clause(self) -> Expression | None:
        """``[filter (where e)]``; elsewhere ``filter`` is a plain name."""
        if not self.at_words("filter", "(", "where"):
            return None
        self.advance()
        opening = self.open_parenthesis("Expected '('.")
        self.advance()
        condition = self.expression()
        self.close_parenthesis(opening, "Expected ')' after FILTER condition.")
        return condition

    def case(self) -> Expression:
        """``case [e] when … then … [else …] end``."""
        position = self.advance().position
        outer, self._default_depth = self._default_depth, -1
        operand = None if self.token.key in ("when", "end") else self.expression()
        whens: list[WhenClause] = []
        while self.token.key == "when":
            start = self.advance().position
            condition = self.expression()
            self.expect("then", "Expected 'THEN' after WHEN condition in CASE expression.", got=False)
            whens.append(WhenClause(condition, self.expression(), position=start))
        if not whens:
            raise self.failure("CASE expression must have at least one WHEN clause.")
        otherwise = self.expression() if self.accept("else") else None
        self.expect("end", "Expected 'END' to terminate CASE expression.", got=False)
        self._default_depth = outer
        return Case(operand, tuple(whens), otherwise, position=position)

    def cast(self) -> Expression:
        """``cast(e as type)``."""
        position = self.advance().position
        opening = self.open_parenthesis("Expected '(' after CAST.")
        operand = self.expression()
        self.expect("as", "Expected 'AS' in CAST expression.", got=False)
        written = self.type_name("Expected type name after 'AS' in CAST expression.", got=False)
        self.close_parenthesis(opening, "Expected ')' after CAST expression type.")
        type_name = TypeName(written.name.lower(), written.arguments, position=written.position)
        return Cast(operand, type_name, position=position)

    def type_name(self, expectation: str, *, got: bool = True) -> TypeName:
        """``integer``, ``varchar(5)``, ``double precision``, ``timestamp with time zone``."""
        token = self.token
        if not (token.key == QUOTED or (token.is_word and token.key not in NO_ALIASES)):
            raise self.failure(expectation, got=got)
        words = [self.take_name()]
        if f"{token.key} {self.token.key}" in TWO_WORD_TYPES:
            words.append(self.advance().text)
        arguments: tuple[str, ...] = ()
        if self.token.key == "(":
            closing = "Expected ')' after type arguments."
            arguments = self.parenthesised_list(self.type_argument, "Expected '('.", closing)
        if token.key in _TIME_ZONE_TYPES and (
            self.at_words("with", "time", "zone") or self.at_words("without", "time", "zone")
        ):
            words += [self.advance().text for _ in range(3)]
        return TypeName(" ".join(words), arguments, position=token.position)

    def type_argument(self) -> str:
        """One argument of a type, as text."""
        sign = self.advance().text if self.token.key in ("-", "+") else ""
        if self.token.key not in (INTEGER, REAL, STRING) and not self.is_name(self.token):
            raise self.failure("Expected type argument.", got=True)
        return sign + self.advance().text

    # Lookahead

    def is_query_at(self, index: int) -> bool:
        """Whether a query starts at a token index; after ``((`` what follows its end decides."""
        known = self._query_starts.get(index)
        if known is not None:
            return known
        inner = index
        while self._tokens[inner].key == "(":
            inner += 1
        starts = self._tokens[inner].key in _QUERY_STARTS
        for place in range(inner - 1, index - 1, -1):
            starts = starts and self.after_parenthesis(place) in _AFTER_QUERY
            self._query_starts[place] = starts
        return starts

    def starts_operand(self, distance: int) -> bool:
        """Whether an operand can begin ``distance`` tokens ahead: tells a soft operator from an alias."""
        token = self.peek(distance)
        key = token.key
        if key in _CALL_WORDS:
            return self.peek_key(distance + 1) == "("
        return key in _OPERAND_STARTS or (token.is_word and key not in RESERVED)
