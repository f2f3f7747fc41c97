"""CREATE, DROP and REFRESH (seed sql-ddl, 2.6 and 6; views-and-maintained-tables, sections 1 and 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from quereus_store.errors import Error, SourcePosition
from quereus_store.sql.lexer import END
from quereus_store.sql.nodes import (
    Collate,
    ColumnDefinition,
    ContextVariable,
    CreateAssertion,
    CreateIndex,
    CreateMaterializedView,
    CreateTable,
    CreateView,
    DropObject,
    IndexedColumn,
    MaintainedClause,
    ModuleClause,
    ObjectKind,
    ObjectName,
    Query,
    RefreshMaterializedView,
    Statement,
    TableConstraint,
    Tag,
    TypeName,
)
from quereus_store.sql.parser.definitions import DefinitionParser

_CREATE_EXPECTATION = (
    "Expected TABLE, [UNIQUE] INDEX, VIEW, MATERIALIZED VIEW, ASSERTION, or VIRTUAL after CREATE."
)
_DROP_EXPECTATION = "Expected TABLE, VIEW, MATERIALIZED VIEW, INDEX, or ASSERTION after DROP."
_KINDS: Mapping[str, ObjectKind] = MappingProxyType(
    {str(each): each for each in ObjectKind if " " not in each}
)
_MAINTAINED_LIST = "Expected at least one column name in the maintained column list."

_DESCRIPTION = re.compile(r"\s*create\s+table\s", re.IGNORECASE)


class TableParts:
    """What has been read of a table's definition; its clauses may come in any order."""

    __slots__ = ("columns", "constraints", "context", "maintained", "module", "query", "tags")

    def __init__(self) -> None:
        self.columns: list[ColumnDefinition] = []
        self.constraints: list[TableConstraint] = []
        self.module: ModuleClause | None = None
        self.context: tuple[ContextVariable, ...] = ()
        self.maintained: MaintainedClause | None = None
        self.query: Query | None = None
        self.tags: tuple[Tag, ...] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing says what columns the table has."""
        return not (self.columns or self.constraints or self.module or self.maintained or self.query)


class DefinitionStatementParser(DefinitionParser):
    """Statements that make and remove schema objects."""

    __slots__ = ()

    # CREATE

    def create(self) -> Statement:
        """``create …``."""
        position = self.advance().position
        if self.token.key in ("temp", "temporary"):
            raise self.failure("TEMP/TEMPORARY is not supported.")
        if self.accept("table") or self.accept_words("virtual", "table"):
            exists = self.if_not_exists()
            return self.table(self.object_name(), exists, position)
        if self.token.key in ("unique", "index"):
            unique = self.accept("unique")
            self.expect("index", "Expected INDEX after UNIQUE.")
            exists = self.if_not_exists()
            return self.index_definition(self.object_name("Expected index name."), unique, exists, position)
        if self.accept("view"):
            exists = self.if_not_exists()
            return self.view(self.object_name("Expected view name."), exists, position)
        if self.accept_words("materialized", "view"):
            exists = self.if_not_exists()
            name = self.object_name("Expected materialized view name.")
            return self.materialized_view(name, exists, position)
        if self.accept("assertion"):
            exists = self.if_not_exists()
            return self.assertion(self.object_name("Expected assertion name."), exists, position)
        raise self.failure(_CREATE_EXPECTATION)

    def if_not_exists(self) -> bool:
        """``[if not exists]``."""
        return self.accept_words("if", "not", "exists")

    def table(self, name: ObjectName, exists: bool, position: SourcePosition) -> CreateTable:
        """A table's definition after its name."""
        parts = TableParts()
        self.table_clauses(parts)
        if self.token.key == "(":
            opening = self.open_parenthesis("Expected '(' before column definitions.")
            self.table_elements(parts, ")")
            self.close_parenthesis(opening, "Expected ')' after table definition.")
            self.table_clauses(parts)
        if parts.is_empty:
            raise self.failure("Expected '(' to begin the table definition.", got=True)
        return self.finished_table(name, parts, exists, position)

    def finished_table(
        self, name: ObjectName, parts: TableParts, exists: bool, position: SourcePosition
    ) -> CreateTable:
        """The node for what has been read."""
        if parts.module is not None and not (parts.columns or parts.query or parts.maintained):
            self._take_described(parts, parts.module)
        return CreateTable(
            name,
            tuple(parts.columns),
            tuple(parts.constraints),
            parts.module,
            parts.context,
            parts.maintained,
            parts.query,
            parts.tags or (),
            exists,
            position=position,
        )

    def _take_described(self, parts: TableParts, module: ModuleClause) -> None:
        """The columns of a table that gives them as a text: ``using memory('create table x (…)')``."""
        first = module.arguments[0] if module.arguments else None
        if first is None or first.name is not None or not isinstance(first.value.value, str):
            return
        try:
            described = self._described(first.value.value)
        except Error as error:
            error.position = module.position
            raise
        if described is not None:
            parts.columns, parts.constraints = list(described.columns), list(described.constraints)
            parts.module = replace(module, arguments=module.arguments[1:])

    def _described(self, text: str) -> CreateTable | None:
        """The table of a CREATE TABLE in a text; None for another text."""
        if not _DESCRIPTION.match(text):
            return None
        inner = type(self)(text)
        position = inner.token.position
        inner.accept("create")
        inner.accept("table")
        described = inner.table(inner.object_name("Expected table name."), False, position)
        inner.accept(";")
        if inner.token.key != END:
            raise inner.failure("Expected the end of the table's definition.", got=True)
        return described

    def table_elements(self, parts: TableParts, closing: str) -> None:
        """Column definitions and constraints up to ``closing``; a trailing comma is fine."""
        while True:
            constraint = self.table_constraint()
            if constraint is not None:
                parts.constraints.append(constraint)
            else:
                parts.columns.append(self.column_definition())
            if self.token.is_word:
                raise self.failure(
                    "Expected ',' between table elements."
                    f" Did you forget a comma before '{self.shown(self.token)}'?"
                )
            if not self.accept(",") or self.token.key == closing:
                return

    def table_clauses(self, parts: TableParts) -> None:
        """USING, WITH CONTEXT, WITH TAGS, MAINTAINED AS, AS, in any order."""
        while True:
            key = self.token.key
            if key == "using" and parts.module is None:
                parts.module = self.module_clause()
            elif key == "with" and self.at_words("with", "context", "("):
                self.advance()
                self.advance()
                parts.context = self.parenthesised_list(
                    self.context_variable,
                    "Expected '(' after WITH CONTEXT.",
                    "Expected ')' after context variables.",
                )
            elif key == "with" and self.at_tags():
                if parts.tags is not None:
                    raise self.failure("Duplicate WITH TAGS clause")
                parts.tags = self.tags_clause()
            elif key == "maintained" and parts.maintained is None and self.peek_key() in ("as", "("):
                parts.maintained = self.maintained_clause()
            elif key == "as" and parts.query is None:
                self.advance()
                parts.query = self.stored_query()
            else:
                return

    def context_variable(self) -> ContextVariable:
        """``name [type] [[not] null]``."""
        position = self.token.position
        name = self.expect_name("Expected context variable name.")
        type_name: TypeName | None = None
        if self.token.key not in (",", ")", "null", "not"):
            type_name = self.type_name("Expected type name.")
        nullable = self.accept("null")
        if not nullable:
            self.accept_words("not", "null")
        return ContextVariable(name, type_name, nullable, position=position)

    def maintained_clause(self) -> MaintainedClause:
        """``maintained [(columns)] as query``."""
        position = self.advance().position
        columns = self.maintained_columns()
        self.expect("as", "Expected 'AS' after MAINTAINED.")
        return MaintainedClause(self.stored_query(), columns, position=position)

    def maintained_columns(self) -> tuple[str, ...]:
        """``[(column, …)]``, not empty."""
        if self.token.key != "(":
            return ()
        columns = self.name_list("Expected column name.", "Expected ')' after maintained column list.")
        if not columns:
            raise self.failure(_MAINTAINED_LIST)
        return columns

    def index_definition(
        self, name: ObjectName, unique: bool, exists: bool, position: SourcePosition
    ) -> CreateIndex:
        """``on t (columns) [where e] [with tags …]`` after an index's name."""
        self.expect("on", "Expected 'ON' after index name.")
        table = self.object_name()
        columns = self.parenthesised_list(
            self.indexed_column, "Expected '(' before indexed columns.", "Expected ')' after indexed columns."
        )
        if not columns:
            raise self.failure("Expected column name.")
        where = self.expression() if self.accept("where") else None
        return CreateIndex(
            name, table, columns, unique, where, self.table_constraint_tags(), exists, position=position
        )

    def indexed_column(self) -> IndexedColumn:
        """``e [collate c] [asc|desc]``."""
        position = self.token.position
        written = self.expression()
        expression, collation = written, None
        if isinstance(written, Collate):
            expression, collation = written.operand, written.collation
        descending = self.accept("desc")
        if not descending:
            self.accept("asc")
        return IndexedColumn(expression, collation, descending, position=position)

    def view(self, name: ObjectName, exists: bool, position: SourcePosition) -> CreateView:
        """``[(columns)] as query [with tags …]`` after a view's name."""
        columns = self.view_columns()
        self.expect("as", "Expected 'AS' before view query.")
        query = self.stored_query()
        return CreateView(name, query, columns, self.table_constraint_tags(), exists, position=position)

    def materialized_view(
        self, name: ObjectName, exists: bool, position: SourcePosition
    ) -> CreateMaterializedView:
        """``[(columns)] [using module] as query [with tags …]`` after a materialized view's name."""
        columns = self.view_columns()
        module = self.module_clause()
        self.expect("as", "Expected 'AS' before materialized view query.")
        query = self.stored_query()
        tags = self.table_constraint_tags()
        return CreateMaterializedView(name, query, columns, module, tags, exists, position=position)

    def view_columns(self) -> tuple[str, ...]:
        """``[(column, …)]``; ``()`` means no list."""
        if self.token.key != "(":
            return ()
        return self.name_list("Expected column name.", "Expected ')' after view column list.")

    def assertion(self, name: ObjectName, exists: bool, position: SourcePosition) -> CreateAssertion:
        """``check (e)`` after an assertion's name."""
        self.expect("check", "Expected 'CHECK' after assertion name.")
        expression = self.enclosed("Expected '(' after CHECK.", "Expected ')' after CHECK expression.")
        return CreateAssertion(name, expression, exists, position=position)

    # DROP and REFRESH

    def drop(self) -> Statement:
        """``drop kind [if exists] name``."""
        position = self.advance().position
        kind = self.object_kind()
        if kind is None:
            raise self.failure(_DROP_EXPECTATION)
        exists = self.accept_words("if", "exists")
        return DropObject(kind, self.object_name(f"Expected {kind} name."), exists, position=position)

    def object_kind(self) -> ObjectKind | None:
        """The words that name a kind of object."""
        if self.accept_words("materialized", "view"):
            return ObjectKind.MATERIALIZED_VIEW
        kind = _KINDS.get(self.token.key)
        if kind is not None:
            self.advance()
        return kind

    def refresh(self) -> Statement:
        """``refresh materialized view name``."""
        position = self.advance().position
        self.expect("materialized", "Expected MATERIALIZED VIEW after REFRESH.")
        self.expect("view", "Expected MATERIALIZED VIEW after REFRESH.")
        return RefreshMaterializedView(
            self.object_name("Expected materialized view name."), position=position
        )
