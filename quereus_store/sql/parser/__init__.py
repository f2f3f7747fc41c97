"""Text to syntax tree.

::

    statement = parse_statement("select a from t where b = ?")
    for statement in iter_statements(script):
        run(statement)                       # a later syntax error does not stop this one

The whole text is read into tokens first, so a lexical error wins over everything;
statements are then parsed one by one.  All errors are
:class:`quereus_store.errors.Error` with a position (queries, sections 1 and 17).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from quereus_store.errors import StatusCode, sql_error
from quereus_store.sql.nodes import Expression, Statement
from quereus_store.sql.parser.commands import Parser

__all__ = ["iter_statements", "parse_expression", "parse_script", "parse_statement"]

Result = TypeVar("Result")


def parse_statement(text: str) -> Statement:
    """The one statement of a text; a semicolon may follow it.

    Raises the lexical and parse errors of the language (code ERROR, with position),
    also for an empty text and for a second statement.
    """
    parser = Parser(text)
    _guarded(parser, parser.skip_separators)
    statement = _guarded(parser, parser.statement)
    if parser.skip_separators():
        # What follows is first tried as a statement, for the message it then gives.
        _guarded(parser, parser.statement)
        raise sql_error(StatusCode.ERROR, "Expected a single statement, got several.", parser.token.position)
    return statement


def iter_statements(text: str) -> Iterator[Statement]:
    """The statements of a script, each parsed when it is asked for.

    The text is read into tokens at once, on the first ``next()``.
    """
    parser = Parser(text)
    while parser.skip_separators():
        yield _guarded(parser, parser.statement)


def parse_script(text: str) -> tuple[Statement, ...]:
    """All statements of a script; semicolons between them are optional."""
    return tuple(iter_statements(text))


def parse_expression(text: str) -> Expression:
    """The one expression of a text, for example a persisted CHECK or DEFAULT."""
    parser = Parser(text)
    expression = _guarded(parser, parser.expression)
    parser.expect_end()
    return expression


def _guarded(parser: Parser, parse: Callable[[], Result]) -> Result:
    """Turn an overflow of the stack into an error of the language."""
    try:
        return parse()
    except RecursionError:
        raise sql_error(StatusCode.TOOBIG, "Statement is nested too deeply.", parser.token.position) from None
