"""ALTER (alter-and-ddl-lifecycle, section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from quereus_store.sql.nodes import (
    AddColumn,
    AddConstraint,
    AlterAction,
    AlterObjectTags,
    AlterPrimaryKey,
    AlterTable,
    ChangeTags,
    DropColumn,
    DropConstraint,
    DropDefault,
    DropMaintained,
    DropNotNull,
    ObjectKind,
    RenameColumn,
    RenameConstraint,
    RenameTable,
    SetCollation,
    SetDataType,
    SetDefault,
    SetMaintained,
    SetNotNull,
    Statement,
    TagChange,
    TagOperation,
)
from quereus_store.sql.parser.ddl import DefinitionStatementParser

_TAG_OPERATIONS: Mapping[str, TagOperation] = MappingProxyType({str(each): each for each in TagOperation})
_ALTER_EXPECTATION = "Expected TABLE, VIEW, MATERIALIZED VIEW, or INDEX after ALTER."
_ACTION_EXPECTATION = "Expected RENAME, ADD, DROP, ALTER, or SET after table name in ALTER TABLE."
_COLUMN_EXPECTATION = (
    "Expected SET NOT NULL, DROP NOT NULL, SET DATA TYPE, SET DEFAULT, DROP DEFAULT, SET COLLATE, or a TAGS "
    "verb in ALTER COLUMN."
)
_TAGS_EXPECTATION = "Expected SET TAGS, ADD TAGS, or DROP TAGS."


class AlterParser(DefinitionStatementParser):
    """Statements that change schema objects."""

    __slots__ = ()

    def alter(self) -> Statement:
        """``alter kind name action``."""
        position = self.advance().position
        kind = self.object_kind()
        if kind is None or kind is ObjectKind.ASSERTION:
            raise self.failure(_ALTER_EXPECTATION)
        name = self.object_name(f"Expected {kind} name.")
        if kind is ObjectKind.TABLE:
            return AlterTable(name, self.table_action(), position=position)
        change = self.tag_change()
        if change is None:
            raise self.failure(_TAGS_EXPECTATION, got=True)
        return AlterObjectTags(kind, name, change, position=position)

    def table_action(self) -> AlterAction:
        """What to do to a table."""
        position = self.token.position
        change = self.tag_change()
        if change is not None:
            return ChangeTags(change, position=position)
        word = self.token.key
        if word == "rename":
            return self.rename_action()
        if word == "add":
            return self.add_action()
        if word == "drop":
            return self.drop_action()
        if word == "alter":
            return self.alter_action()
        if self.accept_words("set", "maintained"):
            columns = self.maintained_columns()
            self.expect("as", "Expected 'AS' after SET MAINTAINED.")
            return SetMaintained(self.stored_query(), columns, position=position)
        raise self.failure(_ACTION_EXPECTATION, got=True)

    def tag_change(self) -> TagChange | None:
        """``set|add|drop tags (…)``; None where no such verb stands."""
        operation = _TAG_OPERATIONS.get(self.token.key)
        if operation is None or self.peek_key() != "tags" or self.peek_key(2) != "(":
            return None
        position = self.advance().position
        self.advance()
        if operation is not TagOperation.DROP:
            return TagChange(operation, self.tag_list(), position=position)
        keys = self.name_list("Expected tag name.", "Expected ')' after tag names.")
        return TagChange(operation, keys=keys, position=position)

    def rename_action(self) -> AlterAction:
        """``rename to n | rename [column] a to b | rename constraint a to b``."""
        position = self.advance().position
        if self.accept("to"):
            return RenameTable(
                self.expect_name("Expected new table name after RENAME TO."), position=position
            )
        what = "constraint" if self.accept("constraint") else "column"
        if what == "column" and self.token.key == "column" and self.peek_key() != "to":
            self.advance()
        old = self.expect_name(f"Expected {what} name after RENAME.", got=True)
        self.expect("to", f"Expected 'TO' after {what} name in RENAME.")
        new = self.expect_name(f"Expected new {what} name after TO.", got=True)
        node = RenameConstraint if what == "constraint" else RenameColumn
        return node(old, new, position=position)

    def add_action(self) -> AlterAction:
        """``add [column] definition | add [constraint c] …``."""
        position = self.advance().position
        constraint = self.table_constraint()
        if constraint is not None:
            return AddConstraint(constraint, position=position)
        self.skip_column_word()
        return AddColumn(self.column_definition(), position=position)

    def skip_column_word(self) -> None:
        """``[column]``, which is also a name."""
        if self.token.key == "column" and self.is_name(self.peek()):
            self.advance()

    def drop_action(self) -> AlterAction:
        """``drop [column] a | drop constraint c | drop maintained``."""
        position = self.advance().position
        if self.accept("constraint"):
            return DropConstraint(
                self.expect_name("Expected constraint name after DROP CONSTRAINT."), position=position
            )
        if self.accept("maintained"):
            return DropMaintained(position=position)
        self.skip_column_word()
        return DropColumn(self.expect_name("Expected column name after DROP COLUMN."), position=position)

    def alter_action(self) -> AlterAction:
        """``alter primary key (…) | alter constraint c … | alter [column] a …``."""
        position = self.advance().position
        if self.accept_words("primary", "key"):
            return AlterPrimaryKey(self.key_columns(), position=position)
        if self.accept("constraint"):
            constraint = self.expect_name("Expected constraint name after ALTER CONSTRAINT.")
            change = self.tag_change()
            if change is None:
                raise self.failure(_TAGS_EXPECTATION, got=True)
            return ChangeTags(change, constraint=constraint, position=position)
        if self.token.key == "column" and (
            self.peek_key() not in _TAG_OPERATIONS or self.peek_key(2) in _TAG_OPERATIONS
        ):
            self.advance()
        column = self.expect_name("Expected column name after ALTER COLUMN.")
        change = self.tag_change()
        if change is not None:
            return ChangeTags(change, column=column, position=position)
        return self.column_action(column)

    def column_action(self, column: str) -> AlterAction:
        """``set …`` or ``drop …`` of a column's property."""
        position = self.token.position
        if self.accept_words("set", "not", "null"):
            return SetNotNull(column, position=position)
        if self.accept_words("drop", "not", "null"):
            return DropNotNull(column, position=position)
        if self.accept_words("set", "data", "type"):
            return SetDataType(column, self.type_name("Expected type name."), position=position)
        if self.accept_words("set", "default"):
            return SetDefault(column, self.expression(), position=position)
        if self.accept_words("drop", "default"):
            return DropDefault(column, position=position)
        if self.accept_words("set", "collate"):
            collation = self.expect_name("Expected collation name after COLLATE.", got=True)
            return SetCollation(column, collation, position=position)
        raise self.failure(_COLUMN_EXPECTATION, got=True)
