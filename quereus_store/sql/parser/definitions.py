"""Columns, constraints and modules: the parts that CREATE, ALTER and DECLARE share (seed sql-ddl, 2.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from quereus_store.errors import SourcePosition
from quereus_store.sql.keywords import NO_ALIASES
from quereus_store.sql.lexer import QUOTED
from quereus_store.sql.nodes import (
    CheckConstraint,
    CollateConstraint,
    ColumnDefinition,
    ColumnPrimaryKey,
    ColumnReferences,
    ColumnUnique,
    ConflictAction,
    Constraint,
    DefaultConstraint,
    Expression,
    ForeignKeyConstraint,
    ForeignKeyReference,
    GeneratedConstraint,
    GeneratedStorage,
    KeyColumn,
    Literal,
    LiteralKind,
    ModuleArgument,
    ModuleClause,
    NotNullConstraint,
    NullConstraint,
    PrimaryKeyConstraint,
    ReferentialAction,
    RowOperation,
    TableConstraint,
    Tag,
    TypeName,
    UniqueConstraint,
)
from quereus_store.sql.parser.dml import ModificationParser

_OPERATIONS: Mapping[str, RowOperation] = MappingProxyType({str(each): each for each in RowOperation})
_ACTIONS: Mapping[tuple[str, ...], ReferentialAction] = MappingProxyType(
    {tuple(each.split()): each for each in ReferentialAction}
)
_STORAGE: Mapping[str, GeneratedStorage] = MappingProxyType({str(each): each for each in GeneratedStorage})
_AUTOINCREMENT = (
    "AUTOINCREMENT is not supported. Quereus uses key-based addressing without implicit side-effects."
)


class DefinitionParser(ModificationParser):
    """What stands within the parentheses of CREATE TABLE."""

    __slots__ = ()

    # Columns

    def column_definition(self) -> ColumnDefinition:
        """``name [type] constraints… [with tags (…)]``."""
        position = self.token.position
        name = self.expect_name("Expected column name.")
        type_name: TypeName | None = None
        token = self.token
        if token.key == QUOTED or (token.is_word and token.key not in NO_ALIASES):
            type_name = self.type_name("Expected type name.")
        constraints: list[Constraint] = []
        tags: tuple[Tag, ...] | None = None
        while True:
            if self.at_tags():
                if tags is not None:
                    raise self.failure("Duplicate WITH TAGS clause")
                tags = self.tags_clause()
                continue
            constraint = self.column_constraint()
            if constraint is None:
                break
            constraints.append(constraint)
        return ColumnDefinition(name, type_name, tuple(constraints), tags or (), position=position)

    def column_constraint(self) -> Constraint | None:
        """``[constraint name] …``; None where no constraint stands."""
        position = self.token.position
        name = self.constraint_name()
        parse = self.column_constraint_parsers().get(self.token.key)
        if parse is None or (self.token.key == "not" and self.peek_key() != "null"):
            if name is not None:
                raise self.failure("Expected column constraint.", got=True)
            return None
        return parse(name, position)

    def column_constraint_parsers(
        self,
    ) -> Mapping[str, Callable[[str | None, SourcePosition], Constraint]]:
        """The constraint that each word opens."""
        return {
            "primary": self.column_primary_key,
            "not": self.not_null,
            "null": self.null,
            "unique": self.column_unique,
            "check": self.check,
            "default": self.default,
            "collate": self.collation,
            "references": self.column_references,
            "generated": self.generated,
        }

    def constraint_name(self) -> str | None:
        """``[constraint name]``."""
        return self.expect_name("Expected constraint name.") if self.accept("constraint") else None

    def named_tags(self, name: str | None) -> tuple[Tag, ...]:
        """The tags of a named constraint; those after an unnamed one are the column's."""
        return self.tags_clause() if name is not None and self.at_tags() else ()

    def conflict_clause(self) -> ConflictAction | None:
        """``[on conflict action]``."""
        return self.conflict_word("ON CONFLICT") if self.accept_words("on", "conflict") else None

    def column_primary_key(self, name: str | None, position: SourcePosition) -> Constraint:
        """``primary key [asc|desc] [on conflict …]``."""
        self.advance()
        self.expect("key", "Expected 'KEY' after 'PRIMARY'.")
        descending = self.accept("desc")
        if not descending:
            self.accept("asc")
        action = self.conflict_clause()
        if self.token.key == "autoincrement":
            raise self.failure(_AUTOINCREMENT)
        return ColumnPrimaryKey(descending, action, name=name, tags=self.named_tags(name), position=position)

    def not_null(self, name: str | None, position: SourcePosition) -> Constraint:
        """``not null [on conflict …]``."""
        self.advance()
        self.advance()
        action = self.conflict_clause()
        return NotNullConstraint(action, name=name, tags=self.named_tags(name), position=position)

    def null(self, name: str | None, position: SourcePosition) -> Constraint:
        """``null``."""
        self.advance()
        return NullConstraint(name=name, tags=self.named_tags(name), position=position)

    def column_unique(self, name: str | None, position: SourcePosition) -> Constraint:
        """``unique [on conflict …]``."""
        self.advance()
        action = self.conflict_clause()
        return ColumnUnique(action, name=name, tags=self.named_tags(name), position=position)

    def check(
        self,
        name: str | None,
        position: SourcePosition,
        tags: Callable[[], tuple[Tag, ...]] | None = None,
    ) -> CheckConstraint:
        """``check [on insert, …] (e) [on conflict …]`` of a column or, with ``tags``, of a table."""
        self.advance()
        operations: tuple[RowOperation, ...] = ()
        if self.accept("on"):
            operations = self.comma_list(self.row_operation)
        expression = self.enclosed("Expected '(' after CHECK.", "Expected ')' after CHECK expression.")
        action = self.conflict_clause()
        found = self.named_tags(name) if tags is None else tags()
        return CheckConstraint(expression, operations, action, name=name, tags=found, position=position)

    def row_operation(self) -> RowOperation:
        """INSERT, UPDATE or DELETE after CHECK ON."""
        operation = _OPERATIONS.get(self.token.key)
        if operation is None:
            raise self.failure("Expected INSERT, UPDATE, or DELETE after ON in CHECK constraint.")
        self.advance()
        return operation

    def enclosed(self, opening: str, closing: str) -> Expression:
        """``( e )``."""
        parenthesis = self.open_parenthesis(opening)
        expression = self.expression()
        self.close_parenthesis(parenthesis, closing)
        return expression

    def default(self, name: str | None, position: SourcePosition) -> Constraint:
        """``default e``; a COLLATE outside of parentheses after it is the column's."""
        self.advance()
        outer, self._default_depth = self._default_depth, self._depth
        expression = self.expression()
        self._default_depth = outer
        return DefaultConstraint(expression, name=name, tags=self.named_tags(name), position=position)

    def collation(self, name: str | None, position: SourcePosition) -> Constraint:
        """``collate name``."""
        self.advance()
        collation = self.expect_name("Expected collation name after COLLATE.", got=True)
        return CollateConstraint(collation, name=name, tags=self.named_tags(name), position=position)

    def generated(self, name: str | None, position: SourcePosition) -> Constraint:
        """``generated always as (e) [stored|virtual]``."""
        self.advance()
        self.expect("always", "Expected 'ALWAYS' after 'GENERATED'.")
        self.expect("as", "Expected 'AS' after GENERATED ALWAYS.")
        expression = self.enclosed(
            "Expected '(' after GENERATED ALWAYS AS.", "Expected ')' after generated expression."
        )
        storage = GeneratedStorage.VIRTUAL
        if self.token.key in _STORAGE:
            storage = _STORAGE[self.advance().key]
        return GeneratedConstraint(
            expression, storage, name=name, tags=self.named_tags(name), position=position
        )

    def column_references(self, name: str | None, position: SourcePosition) -> Constraint:
        """``references …``."""
        reference = self.reference()
        return ColumnReferences(reference, name=name, tags=self.named_tags(name), position=position)

    # Table constraints

    def table_constraint(self) -> TableConstraint | None:
        """``[constraint name] primary key|unique|check|foreign key …``; None where none stands."""
        position = self.token.position
        key, following = self.token.key, self.peek_key()
        opens = (
            key == "constraint"
            or (key in ("primary", "foreign") and following == "key")
            or (key == "unique" and following == "(")
            or (key == "check" and following in ("(", "on"))
        )
        if not opens:
            return None
        name = self.constraint_name()
        key = self.token.key
        if key == "primary":
            return self.primary_key(name, position)
        if key == "unique":
            return self.unique(name, position)
        if key == "check":
            return self.check(name, position, self.table_constraint_tags)
        if key == "foreign":
            return self.foreign_key(name, position)
        raise self.failure("Expected table constraint.", got=True)

    def table_constraint_tags(self) -> tuple[Tag, ...]:
        """``[with tags (…)]`` after a table constraint, named or not."""
        return self.tags_clause() if self.at_tags() else ()

    def primary_key(self, name: str | None, position: SourcePosition) -> TableConstraint:
        """``primary key (columns) [on conflict …]``."""
        self.advance()
        self.expect("key", "Expected 'KEY' after 'PRIMARY'.")
        columns = self.key_columns()
        action = self.conflict_clause()
        tags = self.table_constraint_tags()
        return PrimaryKeyConstraint(columns, action, name=name, tags=tags, position=position)

    def key_columns(self) -> tuple[KeyColumn, ...]:
        """``( [column [asc|desc], …] )``."""
        return self.parenthesised_list(
            self.key_column, "Expected '(' after PRIMARY KEY.", "Expected ')' after PRIMARY KEY columns."
        )

    def key_column(self) -> KeyColumn:
        """``column [collate c] [asc|desc]``."""
        position = self.token.position
        name = self.expect_name("Expected column name.")
        collation: str | None = None
        if self.accept("collate"):
            collation = self.expect_name("Expected collation name after COLLATE.", got=True)
        descending = self.accept("desc")
        if not descending:
            self.accept("asc")
        return KeyColumn(name, descending, collation, position=position)

    def unique(self, name: str | None, position: SourcePosition) -> TableConstraint:
        """``unique (columns) [on conflict …]``."""
        self.advance()
        columns = self.column_list("UNIQUE")
        action = self.conflict_clause()
        tags = self.table_constraint_tags()
        return UniqueConstraint(columns, action, name=name, tags=tags, position=position)

    def foreign_key(self, name: str | None, position: SourcePosition) -> TableConstraint:
        """``foreign key (columns) references …``."""
        self.advance()
        self.expect("key", "Expected 'KEY' after 'FOREIGN'.")
        columns = self.column_list("FOREIGN KEY")
        if self.token.key != "references":
            raise self.failure("Expected 'REFERENCES' after FOREIGN KEY columns.", got=True)
        reference = self.reference()
        tags = self.table_constraint_tags()
        return ForeignKeyConstraint(columns, reference, name=name, tags=tags, position=position)

    def column_list(self, after: str) -> tuple[str, ...]:
        """``(column, …)``, at least one."""
        if self.token.key == "(" and self.peek_key() == ")":
            self.advance()
            raise self.failure("Expected column name.")
        return self.parenthesised_list(
            lambda: self.expect_name("Expected column name."),
            f"Expected '(' after {after}.",
            f"Expected ')' after {after} columns.",
        )

    # References

    def reference(self) -> ForeignKeyReference:
        """``references t [(columns)] [on …] [[not] deferrable [initially …]]``."""
        position = self.advance().position
        table = self.object_name()
        columns: tuple[str, ...] = ()
        if self.token.key == "(":
            columns = self.column_list("referenced table")
        actions: dict[str, ReferentialAction] = {}
        while self.token.key == "on" and self.peek_key() in ("delete", "update"):
            self.advance()
            event = self.advance().key
            actions[event] = self.referential_action(event)
        deferrable: bool | None = None
        if self.accept("deferrable"):
            deferrable = True
        elif self.accept_words("not", "deferrable"):
            deferrable = False
        deferred: bool | None = None
        if self.accept("initially"):
            deferred = self.accept("deferred")
            if not deferred:
                self.expect("immediate", "Expected DEFERRED or IMMEDIATE after INITIALLY.")
        return ForeignKeyReference(
            table,
            columns,
            actions.get("delete"),
            actions.get("update"),
            deferrable,
            deferred,
            position=position,
        )

    def referential_action(self, event: str) -> ReferentialAction:
        """The words after ON DELETE or ON UPDATE."""
        for words, action in _ACTIONS.items():
            if self.accept_words(*words):
                return action
        raise self.failure(
            f"Expected SET NULL, SET DEFAULT, CASCADE, RESTRICT, or NO ACTION after ON {event.upper()}.",
            got=True,
        )

    # Modules

    def module_clause(self) -> ModuleClause | None:
        """``[using module [(arguments)]]``."""
        if self.token.key != "using":
            return None
        position = self.advance().position
        name = self.expect_name("Expected module name after USING.")
        arguments: tuple[ModuleArgument, ...] = ()
        if self.token.key == "(":
            arguments = self.settings("module arguments")
        return ModuleClause(name, arguments, position=position)

    def settings(self, what: str) -> tuple[ModuleArgument, ...]:
        """``(value, name = value, …)``."""
        return self.parenthesised_list(
            self.module_argument, f"Expected '(' before {what}.", f"Expected ')' after {what}."
        )

    def module_argument(self) -> ModuleArgument:
        """``value`` or ``name = value``."""
        position = self.token.position
        name: str | None = None
        if self.peek_key() == "=" and self.is_name(self.token):
            name = self.take_name()
            self.advance()
        return ModuleArgument(self.setting_value(), name, position=position)

    def setting_value(self) -> Literal:
        """A constant, or a bare word for its text (``on``, ``main``)."""
        token = self.token
        if (token.is_word and token.key not in ("true", "false", "null")) or token.key == QUOTED:
            self.advance()
            text = str(token.value) if token.key == QUOTED else token.text
            return Literal(LiteralKind.TEXT, text, position=token.position)
        return self.constant("Expected a literal value.")
