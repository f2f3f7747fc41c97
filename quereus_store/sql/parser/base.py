"""What every part of the parser stands on: the token cursor, names, parentheses and errors.

The parser is one class, built up in a chain of classes, one file for each family of
statements; each link adds the methods of its family and uses those before it::

    TokenCursor → ExpressionParser → SelectParser → SourceParser → … → Parser

Errors are raised here so that all have one shape: ``expectation`` with the
position of the token at fault, followed by `` Got 'x'.`` where the language says
so, or, where a parenthesis stays open, the place of that parenthesis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.sql.keywords import DECLARATION_ITEMS, NO_ALIASES, RESERVED, SCHEMA_NAMES
from quereus_store.sql.lexer import END, QUOTED, Token, tokenize
from quereus_store.sql.nodes import ObjectName

Item = TypeVar("Item")


class TokenCursor:
    """A position in a token list, and the questions a parser asks there."""

    __slots__ = (
        "_closing",
        "_default_depth",
        "_depth",
        "_item_depth",
        "_parameters",
        "_query_starts",
        "_tokens",
        "index",
        "text",
        "token",
    )

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokenize(text)
        self.index = 0
        self.token = self._tokens[0]
        self._parameters = 0
        self._query_starts: dict[int, bool] = {}
        self._closing: dict[int, int] | None = None
        self._depth = 0
        self._item_depth = -1
        self._default_depth = -1

    # Movement

    def advance(self) -> Token:
        """Take the current token."""
        token = self.token
        if token.key != END:
            self.index += 1
            self.token = self._tokens[self.index]
        return token

    def peek(self, distance: int = 1) -> Token:
        """The token ``distance`` places ahead."""
        return self._tokens[min(self.index + distance, len(self._tokens) - 1)]

    def peek_key(self, distance: int = 1) -> str:
        """The key of the token ``distance`` places ahead."""
        return self._tokens[min(self.index + distance, len(self._tokens) - 1)].key

    def accept(self, key: str) -> bool:
        """Take the current token if it has this key."""
        if self.token.key == key:
            self.index += 1
            self.token = self._tokens[self.index]
            return True
        return False

    def at_words(self, *keys: str) -> bool:
        """Whether the next tokens have these keys."""
        tokens, index = self._tokens, self.index
        if index + len(keys) > len(tokens):
            return False
        return tokens[index].key == keys[0] and all(
            tokens[index + place].key == key for place, key in enumerate(keys)
        )

    def accept_words(self, *keys: str) -> bool:
        """Take the next tokens if all of them have these keys."""
        if not self.at_words(*keys):
            return False
        for _ in keys:
            self.advance()
        return True

    def expect(self, key: str, expectation: str, *, got: bool = True) -> Token:
        """Take a token that must be there."""
        if self.token.key != key:
            raise self.failure(expectation, got=got)
        return self.advance()

    # Errors

    def error(self, message: str, position: SourcePosition | None = None) -> Error:
        """A parse error at a position, the current token's by default."""
        return sql_error(StatusCode.ERROR, message, position or self.token.position)

    def failure(self, expectation: str, *, got: bool = False) -> Error:
        """The error that refuses the current token; the caller raises it."""
        return self.error(f"{expectation} Got '{self.shown(self.token)}'." if got else expectation)

    def shown(self, token: Token) -> str:
        """A token as messages show it."""
        return "end of input" if token.key == END else token.text

    # Parentheses

    def open_parenthesis(self, expectation: str) -> Token:
        """Take ``(``; the result goes to :meth:`close_parenthesis`."""
        opening = self.expect("(", expectation)
        self._depth += 1
        return opening

    def close_parenthesis(self, opening: Token, expectation: str) -> None:
        """Take the ``)`` that belongs to ``opening``."""
        if self.token.key != ")":
            raise self.error(
                f"{expectation} Unterminated '(' opened at line {opening.line}, column {opening.column}."
                f" Got '{self.shown(self.token)}'.",
                opening.position,
            )
        self.advance()
        self._depth -= 1

    def after_parenthesis(self, index: int) -> str:
        """The key of the token that follows the parenthesis opened at ``index``."""
        if self._closing is None:
            self._closing = _closing_parentheses(self._tokens)
        return self._tokens[min(self._closing[index] + 1, len(self._tokens) - 1)].key

    def argument_words(self) -> frozenset[str] | None:
        """The words directly within the parenthesis that opens here; None where a comma stands there, too."""
        if self._closing is None:
            self._closing = _closing_parentheses(self._tokens)
        words: set[str] = set()
        index, end = self.index + 1, self._closing[self.index]
        while index < end:
            token = self._tokens[index]
            if token.key == ",":
                return None
            if token.is_word and self._tokens[index - 1].key != "distinct":
                words.add(token.key)
            index = self._closing[index] if token.key == "(" else index + 1
        return frozenset(words)

    # Lists

    def comma_list(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        """One or more items separated by commas."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    def parenthesised_list(
        self, item: Callable[[], Item], opening: str, closing: str, *, trailing_comma: bool = False
    ) -> tuple[Item, ...]:
        """``( [item, …] )``; ``opening`` and ``closing`` are the expectations in messages."""
        parenthesis = self.open_parenthesis(opening)
        items: list[Item] = []
        if self.token.key != ")":
            items.append(item())
            while self.accept(","):
                if trailing_comma and self.token.key == ")":
                    break
                items.append(item())
        self.close_parenthesis(parenthesis, closing)
        return tuple(items)

    # Names

    def is_name(self, token: Token) -> bool:
        """Whether a token may be a name where one is expected."""
        return token.key == QUOTED or (token.is_word and token.key not in RESERVED)

    def is_schema_or_table_name(self, token: Token) -> bool:
        """Like :meth:`is_name`, with ``temp`` allowed bare."""
        return self.is_name(token) or token.key in SCHEMA_NAMES

    def is_bare_alias(self, token: Token) -> bool:
        """Whether a token is an alias without AS."""
        key = token.key
        if key == QUOTED:
            return True
        if not token.is_word or key in NO_ALIASES:
            return False
        return not (self._item_depth == self._depth and key in DECLARATION_ITEMS)

    def take_name(self) -> str:
        """Take the current token, which is known to be a name."""
        token = self.advance()
        return str(token.value) if token.key == QUOTED else token.text

    def expect_name(self, expectation: str, *, got: bool = False) -> str:
        """Take a name."""
        if not self.is_name(self.token):
            raise self.failure(expectation, got=got)
        return self.take_name()

    def expect_table_name(self, expectation: str = "Expected table name.") -> str:
        """Take the name of a schema or relation, ``temp`` included."""
        if not self.is_schema_or_table_name(self.token):
            raise self.failure(expectation)
        return self.take_name()

    def object_name(self, expectation: str = "Expected table name.") -> ObjectName:
        """``name`` or ``schema.name``."""
        position = self.token.position
        name = self.expect_table_name(expectation)
        if self.token.key == "." and self.is_schema_or_table_name(self.peek()):
            self.advance()
            return ObjectName(self.take_name(), name, position=position)
        return ObjectName(name, position=position)

    def name_list(self, expectation: str, closing: str) -> tuple[str, ...]:
        """``( name, … )``, the list possibly empty."""
        return self.parenthesised_list(lambda: self.expect_name(expectation), "Expected '('.", closing)


def _closing_parentheses(tokens: list[Token]) -> dict[int, int]:
    """For each opening parenthesis, where it is closed; at the end of the text if nowhere."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.key == "(":
            opened.append(index)
        elif token.key == ")" and opened:
            closing[opened.pop()] = index
    return closing | dict.fromkeys(opened, len(tokens) - 1)
