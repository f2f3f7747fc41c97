"""Transactions, ATTACH, PRAGMA, ANALYZE, EXPLAIN, and the dispatch on a statement's first word."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType

from quereus_store.sql.lexer import END
from quereus_store.sql.nodes import (
    Analyze,
    Attach,
    BeginTransaction,
    CommitTransaction,
    Detach,
    Explain,
    ExplainKind,
    Literal,
    Pragma,
    ReleaseSavepoint,
    RollbackTransaction,
    Savepoint,
    SourceSpan,
    Statement,
    TransactionMode,
    WithClause,
)
from quereus_store.sql.parser.declarations import DeclarationParser

_STATEMENT_EXPECTATION = (
    "Expected statement type (SELECT, INSERT, UPDATE, DELETE, VALUES, CREATE, etc.), got '{got}'."
)
_STRAY_ON = " 'ON' must follow a JOIN. Use WHERE for filters in subqueries."
_MODES: Mapping[str, TransactionMode] = MappingProxyType({str(each): each for each in TransactionMode})
_WITH_TARGETS = frozenset({"select", "values", "insert", "update", "delete", "("})
_DML_STARTS = frozenset({"insert", "update", "delete"})


class Parser(DeclarationParser):
    """The whole language: one statement at a time from a list of tokens."""

    __slots__ = ()

    def statement(self) -> Statement:
        """The statement at the current token, with its span in the text."""
        start = self.token
        self._parameters = 0
        found = self.bare_statement()
        end = self._tokens[self.index - 1].end
        return dataclasses.replace(found, span=SourceSpan(start.start, end))

    def bare_statement(self) -> Statement:
        """The statement at the current token."""
        key = self.token.key
        if key == "with":
            return self.with_statement()
        if key in ("select", "values", "("):
            return self.query(None)
        if key in _DML_STARTS or (key == "replace" and self.peek_key() == "into"):
            return self.data_modification_or_query(None)
        parse = self.statement_parsers().get(key)
        if parse is None:
            message = _STATEMENT_EXPECTATION.format(got=self.shown(self.token))
            raise self.failure(message + _STRAY_ON if key == "on" else message)
        return parse()

    def statement_parsers(self) -> Mapping[str, Callable[[], Statement]]:
        """The statements that their first word tells."""
        return {
            "create": self.create,
            "drop": self.drop,
            "alter": self.alter,
            "refresh": self.refresh,
            "declare": self.declare,
            "diff": self.diff,
            "apply": self.apply,
            "begin": self.begin,
            "start": self.start,
            "commit": self.commit,
            "end": self.commit,
            "rollback": self.rollback,
            "savepoint": self.savepoint,
            "release": self.release,
            "attach": self.attach,
            "detach": self.detach,
            "pragma": self.pragma,
            "analyze": self.analyze,
            "explain": self.explain,
        }

    def with_statement(self) -> Statement:
        """A query or data modification with its leading WITH clause."""
        clause = self.with_clause(leading=True)
        if self.token.key in _DML_STARTS:
            return self.data_modification_or_query(clause)
        if self.token.key in _WITH_TARGETS:
            return self.query(clause)
        kind = self.statement_kind()
        if kind is None:
            raise self.failure(
                "Expected SELECT, INSERT, UPDATE, DELETE, or VALUES after WITH clause.", got=True
            )
        raise self.failure(f"WITH clause cannot be used with {kind} statement.")

    def statement_kind(self) -> str | None:
        """The kind of statement at the current token as messages name it, for example ``createTable``."""
        key = self.token.key
        if key not in self.statement_parsers():
            return None
        following = self.peek_key().title() if self.peek().is_word else ""
        return key + following if key in ("create", "drop", "alter") else key

    def data_modification_or_query(self, clause: WithClause | None) -> Statement:
        """A data modification, which a set operator turns into the first operand of a query."""
        found = self.data_modification(clause)
        if found.returning and self.token.key in ("union", "intersect", "except"):
            return self.query_tail(self.set_operations(found), None, found.position)
        return found

    # Transactions

    def begin(self) -> Statement:
        """``begin [deferred|immediate] [transaction]``."""
        position = self.advance().position
        mode = _MODES.get(self.token.key)
        if mode is not None:
            self.advance()
        self.accept("transaction")
        return BeginTransaction(mode, position=position)

    def start(self) -> Statement:
        """``start transaction``."""
        position = self.advance().position
        self.expect("transaction", "Expected 'TRANSACTION' after 'START'.")
        return BeginTransaction(None, position=position)

    def commit(self) -> Statement:
        """``commit [transaction]`` or ``end [transaction]``."""
        position = self.advance().position
        self.accept("transaction")
        return CommitTransaction(position=position)

    def rollback(self) -> Statement:
        """``rollback [transaction] [to [savepoint] name]``."""
        position = self.advance().position
        self.accept("transaction")
        name: str | None = None
        if self.accept("to"):
            self.accept("savepoint")
            name = self.expect_name("Expected savepoint name after TO.")
        return RollbackTransaction(name, position=position)

    def savepoint(self) -> Statement:
        """``savepoint name``."""
        position = self.advance().position
        return Savepoint(self.expect_name("Expected savepoint name."), position=position)

    def release(self) -> Statement:
        """``release [savepoint] name``."""
        position = self.advance().position
        self.accept("savepoint")
        return ReleaseSavepoint(self.expect_name("Expected savepoint name."), position=position)

    # ATTACH

    def attach(self) -> Statement:
        """``attach [database] file as name [(option = value, …)]``."""
        position = self.advance().position
        self.pass_database()
        file = self.expression()
        self.expect("as", "Expected 'AS' after the file of ATTACH.")
        name = self.expect_table_name("Expected database name after AS.")
        options = self.settings("options") if self.token.key == "(" else ()
        return Attach(file, name, options, position=position)

    def detach(self) -> Statement:
        """``detach [database] name``."""
        position = self.advance().position
        self.pass_database()
        return Detach(self.expect_table_name("Expected database name after DETACH."), position=position)

    def pass_database(self) -> None:
        """Take the word DATABASE, unless it is itself the name, or the file, that is meant."""
        if self.peek_key() not in (END, ";", "as"):
            self.accept("database")

    # PRAGMA, ANALYZE, EXPLAIN

    def pragma(self) -> Statement:
        """``pragma name [= value]``."""
        position = self.advance().position
        name = self.expect_name("Expected pragma name.")
        value: Literal | None = None
        if self.accept("="):
            value = self.setting_value()
        return Pragma(name, value, position=position)

    def analyze(self) -> Statement:
        """``analyze [t | s.t | s.*]``."""
        position = self.advance().position
        if not self.is_schema_or_table_name(self.token) or self.at_words("refresh", "materialized"):
            return Analyze(position=position)
        name = self.take_name()
        if not self.accept("."):
            return Analyze(name, position=position)
        if self.accept("*"):
            return Analyze(None, name, position=position)
        return Analyze(
            self.expect_table_name("Expected table name or '*' after '.'."), name, position=position
        )

    def explain(self) -> Statement:
        """``explain schema …`` or ``explain [query plan|code|analyze] statement``."""
        position = self.advance().position
        if self.token.key == "schema":
            return self.explain_schema(position)
        kind = ExplainKind.QUERY_PLAN
        if self.accept_words("query", "plan"):
            pass
        elif self.accept("code"):
            kind = ExplainKind.CODE
        elif self.accept("analyze"):
            kind = ExplainKind.ANALYZE
        return Explain(self.bare_statement(), kind, position=position)

    # Scripts

    def skip_separators(self) -> bool:
        """Take semicolons; whether a statement follows."""
        while self.accept(";"):
            pass
        return self.token.key != END

    def expect_end(self) -> None:
        """Refuse anything after the end of a text."""
        if self.token.key != END:
            raise self.failure("Expected end of input.", got=True)
