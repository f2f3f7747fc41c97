"""SELECT, VALUES, set operations, WITH, ORDER BY and LIMIT (queries, sections 3, 9 to 11, 14)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from quereus_store.errors import SourcePosition
from quereus_store.sql import traversal
from quereus_store.sql.lexer import INTEGER, STRING
from quereus_store.sql.nodes import (
    Assignment,
    CommonTableExpression,
    DataModification,
    DefaultValue,
    Expression,
    GroupingElement,
    Literal,
    LiteralKind,
    Materialization,
    MembershipFlag,
    NullsPlacement,
    OrderingTerm,
    Query,
    QueryBody,
    ResultColumn,
    ResultStar,
    Select,
    SetOperation,
    SetOperator,
    Side,
    Values,
    WindowDefinition,
    WithClause,
)
from quereus_store.sql.parser.sources import SourceParser

_SET_OPERATORS: Mapping[str, SetOperator] = MappingProxyType({str(each): each for each in SetOperator})
_SIDES: Mapping[str, Side] = MappingProxyType({str(each): each for each in Side})
_DML_STARTS = frozenset({"insert", "update", "delete"})
_NULLS: Mapping[str, NullsPlacement] = MappingProxyType({str(each): each for each in NullsPlacement})
_OPERAND_EXPECTATION = "Expected SELECT, VALUES, a DML statement, or '(' to begin a query operand."
_DIFF_FLAGS = (
    "'exists <branch> as' membership columns are not valid on DIFF — symmetric difference desugars to two "
    "EXCEPTs, so branch membership is ambiguous"
)
_LOST_WRITE = (
    "WITH member '{name}' is data-modifying ({verb}), which is only allowed in a statement's own leading "
    "WITH clause — not in a subquery or a stored view/materialized-view body, where the write would either "
    "be dropped or re-driven on every evaluation. Move the mutation to the statement that uses this query."
)


class SelectParser(SourceParser):
    """Queries; data modifications within them come from the next class."""

    __slots__ = ()

    # Hooks

    def data_modification(self, with_clause: WithClause | None) -> DataModification:
        """INSERT, UPDATE or DELETE at the current token."""
        raise NotImplementedError

    # Whole queries

    def relation_query(self) -> Query | DataModification:
        """A query, or a data modification with RETURNING, within another statement."""
        with_clause = self.with_clause(leading=False)
        if self.token.key in _DML_STARTS:
            found = self.relation_modification(with_clause)
            if self.token.key not in _SET_OPERATORS:
                return found
            return self.query_tail(self.set_operations(found), None, found.position)
        return self.query(with_clause)

    def relation_modification(self, with_clause: WithClause | None) -> DataModification:
        """A data modification that stands for its RETURNING rows."""
        position = self.token.position
        verb = self.token.key.upper()
        found = self.data_modification(with_clause)
        if not found.returning:
            message = f"{verb} in a relation position must have a RETURNING clause."
            raise self.error(message, position)
        return found

    def stored_query(self) -> Query:
        """The body of a view, which may not write; a member of WITH that does is refused by the binder."""
        position = self.token.position
        found = self.relation_query()
        write = next(traversal.writes_in(found), None)
        if write is not None or not isinstance(found, Query):
            verb = type(write).__name__.upper()
            raise self.error(
                f"{verb} cannot be used as a view body — a view re-evaluates on every reference, which would "
                "re-drive the write. Move the mutation into the statement that references the view.",
                position if write is None else write.position or position,
            )
        return found

    def query(self, with_clause: WithClause | None) -> Query:
        """A query after its WITH clause."""
        position = self.token.position if with_clause is None else with_clause.position
        return self.query_tail(self.query_body(), with_clause, position)

    def query_tail(
        self, body: QueryBody, with_clause: WithClause | None, position: SourcePosition | None
    ) -> Query:
        """ORDER BY, LIMIT and WITH DEFAULTS after a body."""
        order_by: tuple[OrderingTerm, ...] = ()
        if self.accept("order"):
            self.expect("by", "Expected 'BY' after 'ORDER'.")
            order_by = self.ordering_terms()
        limit, offset = self.limit_clause()
        defaults: tuple[Assignment, ...] = ()
        if self.at_words("with", "defaults", "(") and (self.peek_key(3) == ")" or self.peek_key(4) == "="):
            self.advance()
            self.advance()
            defaults = self.assignment_list("WITH DEFAULTS")
        if isinstance(body, Query) and not (order_by or limit is not None or defaults):
            # ``(query)`` with nothing of its own around it is the query itself.
            if with_clause is None:
                return body
            if body.with_clause is None:
                return Query(
                    body.body,
                    with_clause,
                    body.order_by,
                    body.limit,
                    body.offset,
                    body.defaults,
                    position=position,
                )
        return Query(body, with_clause, order_by, limit, offset, defaults, position=position)

    def limit_clause(self) -> tuple[Expression | None, Expression | None]:
        """``[limit n [offset m] | limit m, n]`` or ``[offset m [rows]] [fetch first [n] rows only]``."""
        if self.accept("limit"):
            first = self.expression()
            if self.token.key == "offset":
                return first, self.offset()
            if self.accept(","):
                return self.expression(), first
            return first, None
        offset = self.offset() if self.token.key == "offset" else None
        if self.at_fetch():
            return self.fetch(), offset
        # LIMIT null is no limit.
        return None if offset is None else Literal(LiteralKind.NULL, None), offset

    def offset(self) -> Expression:
        """``offset m [row|rows]``."""
        self.advance()
        skipped = self.expression()
        if not self.accept("rows"):
            self.accept("row")
        return skipped

    def fetch(self) -> Expression:
        """``fetch {first|next} [n] {row|rows} only``."""
        self.advance()
        self.advance()
        count = Literal.of(1) if self.token.key in ("row", "rows") else self.expression()
        if not self.accept("rows"):
            self.expect("row", "Expected 'ROWS' in FETCH.")
        self.expect("only", "Expected 'ONLY' after FETCH … ROWS.", got=True)
        return count

    def ordering_terms(self) -> tuple[OrderingTerm, ...]:
        """The terms after ORDER BY."""
        return self.comma_list(self.ordering_term)

    def ordering_term(self) -> OrderingTerm:
        """``e [asc|desc] [nulls first|last]``."""
        position = self.token.position
        expression = self.expression()
        descending = self.accept("desc")
        if not descending:
            self.accept("asc")
        nulls: NullsPlacement | None = None
        if self.accept("nulls"):
            nulls = _NULLS.get(self.token.key)
            if nulls is None:
                raise self.failure("Expected 'FIRST' or 'LAST' after 'NULLS'.")
            self.advance()
        return OrderingTerm(expression, descending, nulls, position=position)

    def assignment_list(self, clause: str) -> tuple[Assignment, ...]:
        """``( column = e, … )`` of WITH DEFAULTS and WITH INVERSE."""
        opening = self.open_parenthesis(f"Expected '(' after {clause}.")
        seen: set[str] = set()
        assignments: list[Assignment] = []
        while not assignments or self.accept(","):
            position = self.token.position
            column = self.expect_name(f"Expected column name in {clause}.")
            if column.lower() in seen:
                raise self.error(f"Duplicate column '{column}' in {clause}.", position)
            seen.add(column.lower())
            self.expect("=", f"Expected '=' after column name in {clause}.")
            assignments.append(Assignment(column, self.expression(), position=position))
        self.close_parenthesis(opening, f"Expected ')' after {clause}.")
        return tuple(assignments)

    # Set operations

    def query_body(self) -> QueryBody:
        """Operands joined by set operators."""
        return self.set_operations(self.query_operand(first=True))

    def set_operations(self, left: QueryBody) -> QueryBody:
        """The set operators after a first operand: to the left, INTERSECT tighter."""
        left = self.intersections(left)
        while self.token.key in _SET_OPERATORS:
            operator, distinct, flags = self.set_operator()
            right = self.intersections(self.query_operand())
            left = SetOperation(operator, left, right, distinct, flags, position=left.position)
        return left

    def intersections(self, left: QueryBody) -> QueryBody:
        """A chain of INTERSECT."""
        while self.token.key == "intersect":
            operator, distinct, flags = self.set_operator()
            right = self.query_operand()
            left = SetOperation(operator, left, right, distinct, flags, position=left.position)
        return left

    def set_operator(self) -> tuple[SetOperator, bool, tuple[MembershipFlag, ...]]:
        """``operator [all|distinct] [exists left|right as name, …]``."""
        token = self.advance()
        operator = _SET_OPERATORS[token.key]
        distinct = not self.accept("all")
        if distinct:
            self.accept("distinct")
        flags: list[MembershipFlag] = []
        while self.token.key == "exists":
            if operator is SetOperator.DIFF:
                raise self.failure(_DIFF_FLAGS)
            flags.append(self.membership_flag())
            if not (self.token.key == "," and self.peek_key() == "exists"):
                break
            self.advance()
        return operator, distinct, tuple(flags)

    def membership_flag(self) -> MembershipFlag:
        """``exists [left|right] as name``."""
        position = self.advance().position
        side = _SIDES.get(self.token.key)
        if side is not None:
            self.advance()
        self.expect("as", "Expected 'AS' after EXISTS.")
        name = self.expect_name("Expected column name after 'AS'.")
        return MembershipFlag(name, side, position=position)

    def query_operand(self, *, first: bool = False) -> QueryBody:
        """``(query)``, SELECT, VALUES, or a data modification with RETURNING."""
        key = self.token.key
        if key == "(":
            opening = self.open_parenthesis("Expected '('.")
            if not self.is_query_at(self.index):
                raise self.failure(_OPERAND_EXPECTATION)
            found = self.relation_query()
            self.close_parenthesis(opening, "Expected ')' after query.")
            return _without_wrapper(found)
        if key == "with" and not first:
            position = self.token.position
            with_clause = self.with_clause(leading=False)
            return Query(self.query_operand(first=True), with_clause, position=position)
        if key == "select":
            return self.select()
        if key == "values":
            return self.values()
        if key in _DML_STARTS:
            return self.relation_modification(None)
        raise self.failure(_OPERAND_EXPECTATION)

    # SELECT

    def select(self) -> Select:
        """``select … [with schema …]``."""
        position = self.advance().position
        distinct = self.accept("distinct")
        if not distinct:
            self.accept("all")
        items = self.comma_list(self.result_item)
        source = self.from_clause("from")
        where = self.expression() if self.accept("where") else None
        group_by: tuple[GroupingElement, ...] = ()
        if self.accept("group"):
            self.expect("by", "Expected 'BY' after 'GROUP'.")
            group_by = self.comma_list(self.grouping_element)
        having = self.expression() if self.accept("having") else None
        windows = self.window_clause()
        qualify: Expression | None = None
        if self.token.key == "qualify" and self.starts_operand(1):
            self.advance()
            qualify = self.expression()
        return Select(
            items,
            source,
            where,
            group_by,
            having,
            windows,
            qualify,
            distinct,
            self.schema_path(),
            position=position,
        )

    def result_item(self) -> ResultColumn | ResultStar:
        """``*``, ``t.*`` or ``e [[as] alias] [with inverse (…)]``."""
        token = self.token
        if self.accept("*"):
            star = ResultStar(position=token.position)
        elif self.peek_key() == "." and self.peek_key(2) == "*" and self.is_schema_or_table_name(token):
            star = ResultStar(self.take_name(), position=token.position)
            self.advance()
            self.advance()
        else:
            expression = self.expression()
            alias = self.result_alias()
            inverse: tuple[Assignment, ...] = ()
            if self.at_words("with", "inverse", "("):
                self.advance()
                self.advance()
                inverse = self.assignment_list("WITH INVERSE")
            return ResultColumn(expression, alias, inverse, position=token.position)
        if self.at_words("with", "inverse", "("):
            raise self.failure("WITH INVERSE cannot apply to a '*' result column.")
        return star

    def result_alias(self) -> str | None:
        """``[[as] alias]``; AS also takes a string."""
        if self.accept("as"):
            if self.token.key == STRING:
                return str(self.advance().value)
            return self.expect_name("Expected identifier or string after 'AS'.")
        if self.is_bare_alias(self.token) and not self.at_clause():
            return self.take_name()
        return None

    def schema_path(self) -> tuple[str, ...]:
        """``[with schema a, b]``."""
        if not self.at_words("with", "schema") or self.peek_key(2) in ("as", "("):
            return ()
        self.advance()
        self.advance()
        return self.comma_list(lambda: self.expect_table_name("Expected schema name in WITH SCHEMA clause."))

    def window_clause(self) -> tuple[WindowDefinition, ...]:
        """``[window name as (…), …]``."""
        if not self.at_window_clause():
            return ()
        self.advance()
        return self.comma_list(self.window_definition)

    def window_definition(self) -> WindowDefinition:
        """``name as (…)``."""
        position = self.token.position
        name = self.expect_name("Expected window name.")
        self.expect("as", "Expected 'AS' after window name.")
        return WindowDefinition(name, self.window_specification(), position=position)

    # VALUES

    def values(self, *, defaults: bool = False) -> Values:
        """``values (…), (…)``; DEFAULT stands for a value only where ``defaults`` says so."""
        position = self.advance().position
        item = self.value_or_default if defaults else self.expression

        def row() -> tuple[Expression, ...]:
            return self.parenthesised_list(item, "Expected '(' before values.", "Expected ')' after values.")

        return Values(self.comma_list(row), position=position)

    def value_or_default(self) -> Expression:
        """An expression, or the bare word DEFAULT."""
        if self.token.key == "default" and self.peek_key() not in (".", "("):
            return DefaultValue(position=self.advance().position)
        return self.expression()

    # WITH

    def with_clause(self, *, leading: bool) -> WithClause | None:
        """``[with [recursive] …]``; only a statement's own leading one may hold writes."""
        if self.token.key != "with":
            return None
        position = self.advance().position
        recursive = self.accept("recursive")
        members = self.comma_list(lambda: self.common_table_expression(leading))
        seen: set[str] = set()
        for member in members:
            if member.name.lower() in seen:
                raise self.error(f"Duplicate CTE name '{member.name}' in WITH clause", member.position)
            seen.add(member.name.lower())
        return WithClause(members, recursive, self.recursion_option(), position=position)

    def recursion_option(self) -> int | None:
        """``[option (maxrecursion n)]``."""
        if self.token.key != "option":
            return None
        self.advance()
        opening = self.open_parenthesis("Expected '(' after OPTION.")
        self.expect("maxrecursion", "Expected MAXRECURSION in OPTION clause.", got=False)
        token = self.expect(INTEGER, "Expected integer value after MAXRECURSION.", got=False)
        self.close_parenthesis(opening, "Expected ')' after MAXRECURSION value.")
        return int(str(token.value))

    def common_table_expression(self, leading: bool) -> CommonTableExpression:
        """``name [(columns)] as [[not] materialized] (query)``."""
        position = self.token.position
        name = self.expect_name("Expected CTE name.")
        columns: tuple[str, ...] = ()
        if self.token.key == "(":
            columns = self.parenthesised_list(
                lambda: self.expect_name("Expected column name in CTE definition."),
                "Expected '('.",
                "Expected ')' after CTE column list.",
                trailing_comma=True,
            )
        self.expect("as", "Expected 'AS' after CTE name.")
        materialization: Materialization | None = None
        if self.accept("not"):
            self.expect("materialized", "Expected 'MATERIALIZED' after 'NOT'.", got=False)
            materialization = Materialization.NOT_MATERIALIZED
        elif self.accept("materialized"):
            materialization = Materialization.MATERIALIZED
        opening = self.open_parenthesis("Expected '(' before CTE query.")
        query = self.relation_query()
        self.close_parenthesis(opening, "Expected ')' after CTE query.")
        if not isinstance(query, Query) and not leading:
            verb = type(query).__name__.upper()
            raise self.error(_LOST_WRITE.format(name=name, verb=verb), position)
        return CommonTableExpression(name, query, columns, materialization, position=position)


def _without_wrapper(query: Query | DataModification) -> QueryBody:
    """The body of a query that has no clauses of its own, else the query."""
    if not isinstance(query, Query):
        return query
    if query.with_clause or query.order_by or query.limit is not None or query.defaults:
        return query
    return query.body
