"""INSERT, UPDATE and DELETE (dml-transactions-constraints, section 1)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from quereus_store.errors import SourcePosition
from quereus_store.sql.lexer import INTEGER, REAL, STRING
from quereus_store.sql.nodes import (
    Assignment,
    ConflictAction,
    DataModification,
    DefaultValues,
    Delete,
    Expression,
    Insert,
    Literal,
    MultiAssignment,
    Query,
    ResultColumn,
    ResultStar,
    RowValue,
    Subquery,
    SubquerySource,
    TableReference,
    Tag,
    Update,
    UpsertClause,
    WithClause,
)
from quereus_store.sql.parser.select import SelectParser

_ACTIONS: Mapping[str, ConflictAction] = MappingProxyType({str(each): each for each in ConflictAction})
_CONFLICT_EXPECTATION = "Expected conflict resolution (ROLLBACK, ABORT, FAIL, IGNORE, REPLACE) after {word}."
_SOURCE_EXPECTATION = "Expected VALUES, SELECT, or DML (with RETURNING) after INSERT."
_TAG_EXPECTATION = "Expected tag value (string, number, true, false, or null)."
_TARGET_ALIAS = "a subquery UPDATE/DELETE write target requires an alias, e.g. (select …) as v"


class _Clauses:
    """The clauses that may stand before or after a statement's main part."""

    __slots__ = ("context", "schema_path", "tags")

    def __init__(self) -> None:
        self.context: tuple[Assignment, ...] | None = None
        self.schema_path: tuple[str, ...] = ()
        self.tags: tuple[Tag, ...] | None = None


class ModificationParser(SelectParser):
    """Statements that change rows."""

    __slots__ = ()

    def data_modification(self, with_clause: WithClause | None) -> DataModification:
        """INSERT, UPDATE or DELETE at the current token."""
        key = self.token.key
        if key == "update":
            return self.update(with_clause)
        if key == "delete":
            return self.delete(with_clause)
        return self.insert(with_clause)

    # Shared clauses

    def conflict_word(self, word: str) -> ConflictAction:
        """The action after OR or ON CONFLICT."""
        action = _ACTIONS.get(self.token.key)
        if action is None:
            raise self.failure(_CONFLICT_EXPECTATION.format(word=word))
        self.advance()
        return action

    def or_clause(self) -> ConflictAction | None:
        """``[or action]``."""
        return self.conflict_word("OR") if self.accept("or") else None

    def statement_clauses(self, clauses: _Clauses) -> None:
        """``[with context …] [with schema …] [with tags …]`` in any order."""
        while self.token.key == "with":
            word = self.peek_key()
            if word == "context" and self.peek_key(3) == "=":
                if clauses.context is not None:
                    raise self.failure("Duplicate WITH CONTEXT clause")
                self.advance()
                self.advance()
                clauses.context = self.comma_list(self.context_value)
            elif word == "tags" and self.at_tags():
                if clauses.tags is not None:
                    raise self.failure("Duplicate WITH TAGS clause")
                clauses.tags = self.tags_clause()
            elif word == "schema" and not clauses.schema_path:
                clauses.schema_path = self.schema_path()
                if not clauses.schema_path:
                    return
            else:
                return

    def context_value(self) -> Assignment:
        """``variable = e``."""
        position = self.token.position
        name = self.expect_name("Expected context variable name.")
        self.expect("=", "Expected '=' after context variable name.")
        return Assignment(name, self.expression(), position=position)

    def at_tags(self) -> bool:
        """Whether ``with tags (k =`` or ``with tags ()`` stands here, and not a CTE of that name."""
        return self.at_words("with", "tags", "(") and (self.peek_key(3) == ")" or self.peek_key(4) == "=")

    def tags_clause(self) -> tuple[Tag, ...]:
        """``with tags (k = v, …)``."""
        self.advance()
        self.advance()
        return self.tag_list()

    def tag_list(self) -> tuple[Tag, ...]:
        """``(k = v, …)``; of a repeated key the last value stays, in the first one's place."""
        tags = self.parenthesised_list(self.tag, "Expected '(' after TAGS.", "Expected ')' after tags.")
        return tuple({tag.key: tag for tag in tags}.values())

    def tag(self) -> Tag:
        """``key = value``."""
        position = self.token.position
        key = self.expect_name("Expected tag name.")
        self.expect("=", "Expected '=' after tag name.")
        return Tag(key, self.constant(_TAG_EXPECTATION), position=position)

    def constant(self, expectation: str) -> Literal:
        """A text, number with an optional minus, boolean or null."""
        token = self.token
        negative = token.key == "-" and self.peek_key() in (INTEGER, REAL)
        if negative:
            self.advance()
        if self.token.key not in (STRING, INTEGER, REAL, "true", "false", "null"):
            raise self.failure(expectation)
        found = self.primary()
        if not isinstance(found, Literal):
            raise self.failure(expectation)
        if negative and isinstance(found.value, int | float):
            return Literal(found.kind, -found.value, f"-{found.text}", position=token.position)
        return found

    def returning_clause(self) -> tuple[ResultColumn | ResultStar, ...]:
        """``[returning item, …]``."""
        return self.comma_list(self.result_item) if self.accept("returning") else ()

    def assignments(self) -> tuple[Assignment | MultiAssignment, ...]:
        """``c = e, (a, b) = (…), …`` after SET."""
        found: list[Assignment | MultiAssignment] = []
        while not found or self.accept(","):
            found.extend(self.assignment())
        return tuple(found)

    def assignment(self) -> tuple[Assignment | MultiAssignment, ...]:
        """One assignment; a row value is as many as it has items."""
        position = self.token.position
        if self.token.key != "(":
            column = self.expect_name("Expected column name in SET clause.")
            self.expect("=", "Expected '=' after column name in SET clause.")
            return (Assignment(column, self.value_or_default(), position=position),)
        columns = self.name_list("Expected column name in SET clause.", "Expected ')' after SET columns.")
        if not columns:
            raise self.error("Expected column name in SET clause.", position)
        self.expect("=", "Expected '=' after column list in SET clause.")
        values = self.assigned_row()
        if isinstance(values, Subquery):
            return (MultiAssignment(columns, values.query, position=position),)
        if len(values) != len(columns):
            raise self.error(f"{len(columns)} columns assigned {len(values)} values", position)
        return tuple(
            Assignment(column, value, position=position)
            for column, value in zip(columns, values, strict=True)
        )

    def assigned_row(self) -> tuple[Expression, ...] | Subquery:
        """What stands after ``(a, b) =``."""
        if self.token.key == "(" and not self.is_query_at(self.index + 1):
            return self.parenthesised_list(
                self.value_or_default, "Expected '('.", "Expected ')' after SET values."
            )
        found = self.expression()
        if isinstance(found, RowValue):
            return found.items
        return found if isinstance(found, Subquery) else (found,)

    # INSERT

    def insert(self, with_clause: WithClause | None) -> Insert:
        """``insert [or action] [into] t …`` or ``replace into t …``."""
        token = self.advance()
        action = ConflictAction.REPLACE if token.key == "replace" else self.or_clause()
        self.accept("into")
        name = self.object_name()
        alias = self.expect_name("Expected alias after 'AS'.") if self.accept("as") else None
        table = TableReference(name.name, name.schema, alias, position=name.position)
        columns: tuple[str, ...] = ()
        if self.token.key == "(" and not self.is_query_at(self.index + 1):
            if self.peek_key() == ")":
                self.advance()
                raise self.failure("Expected column name.")
            columns = self.name_list("Expected column name.", "Expected ')' after column list.")
        clauses = _Clauses()
        self.statement_clauses(clauses)
        source = self.insert_source()
        upserts: list[UpsertClause] = []
        while self.at_words("on", "conflict"):
            if action is not None:
                raise self.failure("Cannot use both 'INSERT OR ...' and 'ON CONFLICT' in the same statement.")
            upserts.append(self.upsert())
        self.statement_clauses(clauses)
        return Insert(
            table,
            source,
            columns,
            action,
            tuple(upserts),
            clauses.context or (),
            clauses.schema_path,
            clauses.tags or (),
            self.returning_clause(),
            with_clause,
            position=token.position,
        )

    def insert_source(self) -> Query | DataModification | DefaultValues:
        """VALUES, a query, a data modification with RETURNING, or DEFAULT VALUES."""
        position = self.token.position
        if self.accept_words("default", "values"):
            return DefaultValues(position=position)
        if self.token.key == "values":
            body = self.set_operations(self.values(defaults=True))
            return self.query_tail(body, None, position)
        if self.is_query_at(self.index) or self.token.key == "(":
            return self.relation_query()
        raise self.failure(_SOURCE_EXPECTATION)

    def upsert(self) -> UpsertClause:
        """``on conflict [(columns) [where e]] do nothing | update set … [where e]``."""
        position = self.advance().position
        self.advance()
        target: tuple[str, ...] = ()
        target_where: Expression | None = None
        if self.token.key == "(":
            target = self.name_list("Expected column name.", "Expected ')' after conflict target.")
            if self.accept("where"):
                target_where = self.expression()
        self.expect("do", "Expected 'DO' after ON CONFLICT [columns].", got=False)
        if self.accept("nothing"):
            return UpsertClause(target, target_where, position=position)
        self.expect("update", "Expected NOTHING or UPDATE after DO.")
        self.expect("set", "Expected 'SET' after DO UPDATE.")
        assignments = self.assignments()
        where = self.expression() if self.accept("where") else None
        return UpsertClause(target, target_where, assignments, where, position=position)

    # UPDATE and DELETE

    def write_target(self) -> TableReference | SubquerySource:
        """``t [[as] a]`` or ``(query) as a [(columns)]``."""
        position = self.token.position
        if self.token.key == "(" and self.is_query_at(self.index + 1):
            return self.subquery_target(position)
        name = self.object_name()
        alias: str | None = None
        if self.accept("as"):
            alias = self.expect_name("Expected alias after 'AS'.")
        elif self.is_bare_alias(self.token):
            alias = self.take_name()
        return TableReference(name.name, name.schema, alias, position=position)

    def subquery_target(self, position: SourcePosition) -> SubquerySource:
        """``(query) as a [(columns)]``."""
        opening = self.open_parenthesis("Expected '('.")
        query = self.relation_query()
        self.close_parenthesis(opening, "Expected ')' after subquery.")
        alias, columns = self.source_alias()
        if alias is None:
            raise self.error(_TARGET_ALIAS, position)
        return SubquerySource(query, alias, columns, position=position)

    def update(self, with_clause: WithClause | None) -> Update:
        """``update [or action] t set … [from …] [where …]``."""
        position = self.advance().position
        action = self.or_clause()
        target = self.write_target()
        clauses = _Clauses()
        self.statement_clauses(clauses)
        self.expect("set", "Expected 'SET' after table name in UPDATE.")
        assignments = self.assignments()
        source = self.from_clause("from")
        where = self.expression() if self.accept("where") else None
        self.statement_clauses(clauses)
        return Update(
            target,
            assignments,
            source,
            where,
            action,
            clauses.context or (),
            clauses.schema_path,
            clauses.tags or (),
            self.returning_clause(),
            with_clause,
            position=position,
        )

    def delete(self, with_clause: WithClause | None) -> Delete:
        """``delete [from] t [using …] [where …]``."""
        position = self.advance().position
        self.accept("from")
        target = self.write_target()
        clauses = _Clauses()
        self.statement_clauses(clauses)
        source = self.from_clause("using")
        where = self.expression() if self.accept("where") else None
        self.statement_clauses(clauses)
        return Delete(
            target,
            source,
            where,
            clauses.context or (),
            clauses.schema_path,
            clauses.tags or (),
            self.returning_clause(),
            with_clause,
            position=position,
        )
