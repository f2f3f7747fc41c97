"""DECLARE, DIFF, APPLY and EXPLAIN SCHEMA; lenses (seed sql-ddl, 2.0; view-updates-and-lenses, 12).

The items of a declaration need no separator, so the word that opens one is no
bare alias at the item's own level of parentheses.
"""

from __future__ import annotations

from collections.abc import Callable

from quereus_store.errors import SourcePosition
from quereus_store.sql.keywords import DECLARATION_ITEMS
from quereus_store.sql.lexer import END, INTEGER, QUOTED, REAL, STRING
from quereus_store.sql.nodes import (
    ApplySchema,
    CreateTable,
    DeclaredItem,
    DeclareLens,
    DeclareSchema,
    DiffSchema,
    ExplainSchema,
    Expression,
    IgnoredItem,
    LensOverride,
    ModuleArgument,
    Query,
    SeedData,
    Select,
    Statement,
    Values,
)
from quereus_store.sql.parser.alter import AlterParser
from quereus_store.sql.parser.base import Item
from quereus_store.sql.parser.ddl import TableParts

_UNMODELLED = frozenset({"domain", "collation", "import"})
_ITEM_EXPECTATION = (
    "Expected TABLE, [UNIQUE] INDEX, VIEW, MATERIALIZED VIEW, SEED, ASSERTION, or '}' in schema declaration."
)


class DeclarationParser(AlterParser):
    """Statements about declared schemas."""

    __slots__ = ()

    def declare(self) -> Statement:
        """``declare [logical] schema …`` or ``declare lens …``."""
        position = self.advance().position
        if self.accept("lens"):
            return self.lens(position)
        logical = self.accept("logical")
        self.expect("schema", "Expected SCHEMA or LENS after DECLARE.")
        name = self.expect_table_name("Expected schema name.")
        version = self.version() if self.accept("version") else None
        settings: tuple[ModuleArgument, ...] = ()
        if self.accept("using"):
            settings = self.settings("schema settings")
        items = self.block(self.declared_item)
        return DeclareSchema(name, items, logical, version, settings, position=position)

    def version(self) -> str:
        """A version, as text."""
        if self.token.key == STRING:
            return str(self.advance().value)
        if self.token.key not in (INTEGER, REAL, QUOTED) and not self.token.is_word:
            raise self.failure("Expected version.", got=True)
        return self.advance().text

    def block(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        """``{ [item [;] …] }``."""
        self.expect("{", "Expected '{' to begin the declaration.")
        outer, self._item_depth = self._item_depth, self._depth
        items: list[Item] = []
        while not self.accept("}"):
            if not self.accept(";"):
                items.append(item())
        self._item_depth = outer
        return tuple(items)

    # Items

    def declared_item(self) -> DeclaredItem:
        """One item of a schema declaration."""
        position = self.token.position
        if self.accept("table"):
            return self.declared_table(position)
        if self.token.key in ("unique", "index"):
            unique = self.accept("unique")
            self.expect("index", "Expected INDEX after UNIQUE.")
            return self.index_definition(self.object_name("Expected index name."), unique, False, position)
        if self.accept("view"):
            return self.view(self.object_name("Expected view name."), False, position)
        if self.accept_words("materialized", "view"):
            name = self.object_name("Expected materialized view name.")
            return self.materialized_view(name, False, position)
        if self.accept("assertion"):
            return self.assertion(self.object_name("Expected assertion name."), False, position)
        if self.accept("seed"):
            return self.seed(position)
        if self.token.key in _UNMODELLED:
            return self.ignored_item(position)
        raise self.failure(_ITEM_EXPECTATION, got=True)

    def declared_table(self, position: SourcePosition) -> CreateTable:
        """``name [clauses] { … } | ( … ) [clauses]``."""
        name = self.object_name()
        parts = TableParts()
        self.table_clauses(parts)
        if self.token.key == "(":
            opening = self.open_parenthesis("Expected '(' before column definitions.")
            self.table_elements(parts, ")")
            self.close_parenthesis(opening, "Expected ')' after table definition.")
        elif self.accept("{"):
            self.table_elements(parts, "}")
            self.expect("}", "Expected '}' after table definition.")
        self.table_clauses(parts)
        if parts.is_empty:
            raise self.failure("Expected '{' or '(' to begin the table definition.", got=True)
        return self.finished_table(name, parts, False, position)

    def seed(self, position: SourcePosition) -> SeedData:
        """``seed t [values] [(columns) [values]] (row), …`` or ``seed t ( (row), … )``."""
        table = self.expect_table_name()
        values_word = self.accept("values")
        columns: tuple[str, ...] = ()
        rows: tuple[tuple[Expression, ...], ...]
        if self.token.key == "(" and self.peek_key() == "(" and not values_word:
            rows = self.parenthesised_list(
                self.seed_row, "Expected '('.", "Expected ')' after seed rows.", trailing_comma=True
            )
            return SeedData(table, rows, position=position)
        if self.token.key == "(" and self.peek_key() == ")" and not values_word:
            self.advance()
            self.advance()
            return SeedData(table, (), position=position)
        if self.token.key == "(" and self.after_parenthesis(self.index) == "values":
            columns = self.column_list("seed")
            self.advance()
        rows = self.comma_list(self.seed_row)
        return SeedData(table, rows, columns, position=position)

    def seed_row(self) -> tuple[Expression, ...]:
        """``(value, …)``."""
        return self.parenthesised_list(
            self.expression, "Expected '(' before seed values.", "Expected ')' after seed values."
        )

    def ignored_item(self, position: SourcePosition) -> IgnoredItem:
        """An item of a kind that is not modelled: its text up to the next item."""
        first = self.advance()
        last = first
        depth = 0
        while self.token.key != END:
            key = self.token.key
            if depth == 0 and (key in (";", "}") or key in DECLARATION_ITEMS):
                break
            depth += (key in ("(", "{")) - (key in (")", "}"))
            last = self.advance()
        return IgnoredItem(first.key, self.text[first.start : last.end], position=position)

    # Lenses

    def lens(self, position: SourcePosition) -> DeclareLens:
        """``for schema over basis { overrides }``."""
        self.expect("for", "Expected 'FOR' after DECLARE LENS.")
        schema = self.expect_table_name("Expected logical schema name.")
        self.expect("over", "Expected 'OVER' after logical schema name.")
        basis = self.expect_table_name("Expected basis schema name.")
        return DeclareLens(schema, basis, self.block(self.lens_override), position=position)

    def lens_override(self) -> LensOverride:
        """``view table as select …``."""
        position = self.token.position
        self.expect("view", "Expected VIEW or '}' in lens declaration.")
        table = self.expect_table_name()
        self.expect("as", "Expected 'AS' in lens override.")
        body_position = self.token.position
        query = self.stored_query()
        if not isinstance(query.body, Select):
            raise self.error(_override_refusal(query), body_position)
        return LensOverride(table, query, position=position)

    # Verbs

    def diff(self) -> Statement:
        """``diff schema [name]``."""
        position = self.advance().position
        self.expect("schema", "Expected SCHEMA after DIFF.")
        return DiffSchema(self.optional_schema(), position=position)

    def apply(self) -> Statement:
        """``apply schema [name] [to version v] [options (…)] [with seed]``."""
        position = self.advance().position
        self.expect("schema", "Expected SCHEMA after APPLY.")
        name = self.optional_schema()
        version: str | None = None
        options: tuple[ModuleArgument, ...] = ()
        with_seed = False
        while True:
            if self.accept_words("to", "version"):
                version = self.version()
            elif self.at_words("options", "("):
                self.advance()
                options = self.settings("options")
            elif self.accept_words("with", "seed"):
                with_seed = True
            else:
                return ApplySchema(name, version, options, with_seed, position=position)

    def explain_schema(self, position: SourcePosition) -> Statement:
        """``explain schema [name] [version v]`` after EXPLAIN."""
        self.advance()
        name = self.optional_schema()
        version = self.version() if self.accept("version") else None
        return ExplainSchema(name, version, position=position)

    def optional_schema(self) -> str | None:
        """``[name]``."""
        if not self.is_schema_or_table_name(self.token) or self.at_words("options", "("):
            return None
        if self.token.key == "version" and self.peek_key() in (STRING, INTEGER, REAL):
            return None
        return self.take_name()


def _override_refusal(query: Query) -> str:
    if isinstance(query.body, Values):
        return "A lens override body must be a SELECT; got 'values'."
    return "A lens override body must be a single SELECT; set operations have no single FROM to map from."
